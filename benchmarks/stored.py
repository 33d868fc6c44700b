"""The benchmark's tables on disk: made once for each shape, and configurations that name them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.shape import Shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    """The locations of a shape's input tables (absolute paths by key), and a folder for results."""

    tables: dict[str, str]
    results: Path

    @property
    def missing(self) -> list[str]:
        """The keys of the tables that are still to be made."""
        return [key for key, where in self.tables.items() if not Path(where, "_delta_log").exists()]

    def config(self, out: Path, dialog_hash: str, broadcast_limit: str, heap: str = "") -> Path:
        """Write a configuration with outputs in ``out``, and return its path beside that folder.

        ``heap`` is that of the session's Java, with Spark's default if not given.
        """
        lines = ["tables:", *(f"  {key}: {where}" for key, where in self.tables.items()), "output:"]
        lines += [f"  {key}: {out / key}" for key in _OUTPUTS]
        lines += ["resolve:", f"  dialog_hash: {dialog_hash}", f"  broadcast_limit: {broadcast_limit}"]
        lines += ["spark:", f"  spark.driver.memory: {heap}"] if heap else []
        out.parent.mkdir(parents=True, exist_ok=True)
        file = out.with_suffix(".yaml")
        file.write_text("\n".join(lines), encoding="utf-8")
        return file


def placed(shape: Shape, folder: Path) -> Stored:
    """Return the locations of a shape's tables, made or not. Each is named after its options."""
    found = {}
    for key, depends in _DEPENDS.items():
        if key == "dialogs" and not shape.dialogs:
            continue
        # Where no skew is asked for, names stay short.
        plain = replace(shape, hot=0.0, garbage=0.0, longest=0) == shape
        fields = [name for name in depends if not (plain and name in _SKEW)]
        found[key] = str(folder / "-".join([key, *(f"{getattr(shape, name)}" for name in fields)]))
    return Stored(found, folder / "out")


def stored(spark: SparkSession, shape: Shape, folder: Path) -> Stored:
    """Return the tables of a shape, and make missing ones."""
    from benchmarks.data import tables

    folder.mkdir(parents=True, exist_ok=True)
    stored_tables = placed(shape, folder)
    frames = tables(spark, shape)
    for key in stored_tables.missing:
        frames[key]().write.format("delta").option("compression", "zstd").mode("overwrite").save(
            stored_tables.tables[key]
        )
    return stored_tables
