"""``make bench``: what resolving costs, by itself and with each part of the rules switched on by the data.

Makes the tables once, then runs every scenario in one session after a warm-up, and prints medians, rate and the
peak memory of the Java process as a table, or as JSON with ``--json``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console

import routing
from benchmarks.data import Shape, tables
from routing import show
from routing.config import Location
from routing.session import start
from routing.tables import overwrite

_OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")


@dataclass(frozen=True)
class Scenario:
    """A name and what its shape has that the plain one has not."""

    name: str
    shape: Shape


def scenarios(shape: Shape) -> list[Scenario]:
    """The plain shape, and one more for each part of the rules that costs something."""
    plain = replace(shape, dialogs=0.0, changes=0, asking=0.0)
    return [
        Scenario("no dialogs", plain),
        Scenario(f"dialogs {shape.dialogs:.0%}", replace(plain, dialogs=shape.dialogs)),
        Scenario("dialogs 10%", replace(plain, dialogs=0.1)),
        Scenario("1,000 route changes a day", replace(plain, changes=1000)),
        Scenario("every instance asks for routes", replace(plain, asking=1.0)),
    ]


def main() -> int:
    """Make what is missing, measure, print."""
    options = _options()
    shape = Shape(**{f.name: getattr(options, f.name) for f in fields(Shape)})
    spark = start({"spark.master": options.master, "spark.driver.memory": options.memory})
    chosen = scenarios(shape) if options.scenarios == "all" else [Scenario("as given", shape)]
    folder = Path(options.folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for scenario in chosen:
        sys.stderr.write(f"measuring: {scenario.name}\n")
        rows.append(_measured(spark, folder, scenario, options.rounds))
    rows.append({"scenario": "copy of the result", **_copied(spark, folder, options.rounds)})
    peak = _peak_memory(spark)
    if options.json:
        sys.stdout.write(json.dumps({"shape": vars(shape), "peak_bytes": peak, "rows": rows}) + "\n")
        return 0
    columns = ("scenario", "messages", "seconds", "messages a second", "keys", "plan", "write")
    lines = [tuple(row.get(name, "-") for name in columns) for row in rows]
    terminal = Console(highlight=False)
    terminal.print(show.table("Resolve, warm medians", columns, lines, columns[1:]))
    terminal.print(f"peak memory of the Java process: {peak / 2**30:.2f} GiB (heap limit {options.memory})")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    for field in fields(Shape):
        name = f"--{field.name}"
        parser.add_argument(name, type=type(field.default), default=field.default, help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds after one warm-up (%(default)s)")
    parser.add_argument("--scenarios", choices=("all", "one"), default="all", help="all, or just the shape given")
    parser.add_argument("--folder", default="build/bench", help="where the tables are made (%(default)s)")
    parser.add_argument("--memory", default="4g", help="heap of the Java process (%(default)s)")
    parser.add_argument("--master", default="local[2]", help="Spark master (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def _location(spark: SparkSession, folder: Path, key: str, shape: Shape) -> str:
    """The table of this shape, made where it is missing; named after the fields that it depends on."""
    depends: Mapping[str, tuple[str, ...]] = {
        "instances": ("instances",),
        "databases": ("instances",),
        "services": ("instances",),
        "routes": ("instances", "routes", "changes", "asking"),
        "messages": ("messages", "instances", "keys", "network", "bound"),
        "dialogs": ("messages", "instances", "keys", "dialogs", "acknowledged"),
    }
    name = "-".join([key, *(f"{getattr(shape, field)}" for field in depends[key])])
    path = folder / name
    if not (path / "_delta_log").exists():
        frame = tables(spark, shape)[key]()
        frame.write.format("delta").option("compression", "zstd").save(str(path))
    return str(path)


def _measured(spark: SparkSession, folder: Path, scenario: Scenario, rounds: int) -> dict[str, Any]:
    keys = ["instances", "databases", "services", "routes", "messages"]
    keys += ["dialogs"] if scenario.shape.dialogs else []
    lines = ["tables:", *(f"  {k}: {_location(spark, folder, k, scenario.shape)}" for k in keys), "output:"]
    lines += [f"  {key}: {folder / 'out' / key}" for key in _OUTPUTS]
    file = folder / "bench.yaml"
    file.write_text("\n".join(lines), encoding="utf-8")
    config = routing.load_config(str(file))
    runs = [_timed(spark, config) for _ in range(rounds + 1)][1:]
    seconds = statistics.median(run[0] for run in runs)
    row = runs[-1][1]
    return {
        "scenario": scenario.name,
        "messages": row["rows_read"],
        "seconds": round(seconds, 1),
        "messages a second": int(row["rows_read"] / seconds),
        "keys": row["stage_seconds"]["keys"],
        "plan": row["stage_seconds"]["plan"],
        "write": row["stage_seconds"]["resolved_routes"],
    }


def _timed(spark: SparkSession, config: routing.Config) -> tuple[float, dict[str, Any]]:
    begun = time.monotonic()
    done = routing.run(spark, config)
    return time.monotonic() - begun, done.row


def _copied(spark: SparkSession, folder: Path, rounds: int) -> dict[str, Any]:
    """The limit: read the last result and write it again with the same table settings."""
    result = str(folder / "out" / "resolved_routes")
    seconds = []
    for _ in range(rounds):
        begun = time.monotonic()
        frame = spark.read.format("delta").load(result)
        overwrite(frame, "resolved_routes", Location(str(folder / "out" / "copy")), "copy")
        seconds.append(time.monotonic() - begun)
    rows = spark.read.format("delta").load(result).count()
    median = statistics.median(seconds)
    return {"messages": rows, "seconds": round(median, 1), "messages a second": int(rows / median)}


def _peak_memory(spark: SparkSession) -> int:
    """The largest resident size of the Java process so far, in bytes (Linux)."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kilobytes) * 1024


if __name__ == "__main__":
    sys.exit(main())
