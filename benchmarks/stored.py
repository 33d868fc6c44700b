"""The benchmark's tables on disk: made once for each shape, and configurations that name them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.data import tables
from benchmarks.shape import Shape

_CONFIGURATION = ("instances",)
_TRAFFIC = ("messages", "instances", "keys", "routes", "network", "bound", "dialogs", "acknowledged")
_SKEW = ("hot", "garbage", "longest")
_DEPENDS = {
    "instances": _CONFIGURATION,
    "databases": _CONFIGURATION,
    "services": _CONFIGURATION,
    "routes": (*_CONFIGURATION, "routes", "changes", "asking"),
    "messages": (*_TRAFFIC, *_SKEW),
    "dialogs": (*_TRAFFIC, "open", *_SKEW),
}
_OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")


@dataclass(frozen=True)
class Stored:
    """Where the input tables of a shape are (absolute paths by key), and a folder for results."""

    tables: dict[str, str]
    results: Path

    def config(self, out: Path, dialog_hash: str, broadcast_limit: str) -> Path:
        """Write a configuration whose outputs are in ``out``; returns its path, beside that folder."""
        lines = ["tables:", *(f"  {key}: {where}" for key, where in self.tables.items()), "output:"]
        lines += [f"  {key}: {out / key}" for key in _OUTPUTS]
        lines += ["resolve:", f"  dialog_hash: {dialog_hash}", f"  broadcast_limit: {broadcast_limit}"]
        out.parent.mkdir(parents=True, exist_ok=True)
        file = out.with_suffix(".yaml")
        file.write_text("\n".join(lines), encoding="utf-8")
        return file


def stored(spark: SparkSession, shape: Shape, folder: Path) -> Stored:
    """The tables of a shape, made where they are missing; each named after the options that it depends on."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for key, make in tables(spark, shape).items():
        if key == "dialogs" and not shape.dialogs:
            continue
        # Where no skew is asked for, names stay short.
        plain = replace(shape, hot=0.0, garbage=0.0, longest=0) == shape
        fields = [name for name in _DEPENDS[key] if not (plain and name in _SKEW)]
        path = folder / "-".join([key, *(f"{getattr(shape, name)}" for name in fields)])
        if not (path / "_delta_log").exists():
            make().write.format("delta").option("compression", "zstd").mode("overwrite").save(str(path))
        made[key] = str(path)
    return Stored(made, folder / "out")
