"""Measure the cost of incremental runs with 1 %, 10 % and 100 % new rows over a stored table.

    python -m benchmarks.incremental --messages 30000000

It makes the tables and resolves all messages in a first run. Then it appends and resolves each share in turn, on
the result of the earlier runs. It prints seconds and stages as a table, or as JSON with ``--json``. All files are
in one folder, which stays afterwards. If ``--folder`` has such tables, the runs continue from them. A copy of the
folder can therefore measure a share again without the first run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import routing
from benchmarks.data import Shape, tables
from routing.delta.commits import newest_version
from routing.document import DataTable, make_columns
from routing.render.text import write_text
from routing.sessions.session import start

_INPUTS = ("instances", "databases", "services", "routes", "messages")
_OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "runs", "pending_messages")
_OF_TEN_THOUSAND = 10_000


def main() -> int:
    """Make the tables, measure, print."""
    options = _options()
    shape = Shape(**{f.name: getattr(options, f.name) for f in fields(Shape)})
    folder = Path(options.folder or tempfile.mkdtemp(prefix="sbroute-incremental-")).absolute()
    spark = start({"spark.master": options.master, "spark.driver.memory": options.memory})
    file, rows = folder / "incremental.yaml", []
    if file.is_file():
        config = routing.load_config(str(file))
    else:
        config = _made(spark, file, shape)
        rows.append(_measured(spark, config, "first run", shape.messages))
    messages = tables(spark, shape)["messages"]()
    for share in options.shares:
        new = _share_of(messages, share, newest_version(config.tables["messages"]) or 0)
        new.write.format("delta").mode("append").option("compression", "zstd").save(config.tables["messages"].text)
        rows.append(_measured(spark, config, f"{share:.0%} new", shape.messages))
    if options.json:
        sys.stdout.write(json.dumps({"shape": vars(shape), "folder": str(folder), "rows": rows}) + "\n")
        return 0
    columns = ("run", "messages", "seconds", "duplicates", "without duplicates", "keys", "write", "pending")
    lines = [tuple(row[name] for name in columns) for row in rows]
    table = DataTable(make_columns(columns, columns[1:]), lines, f"Incremental runs in {folder}")
    print(write_text([table], width=120))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.incremental", description=__doc__)
    for field in fields(Shape):
        parser.add_argument(
            f"--{field.name}", type=type(field.default), default=field.default, help="(%(default)s)"
        )
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.1, 1.0], help="new rows (%(default)s)")
    parser.add_argument("--folder", help="where the tables are made, or were (a new temporary folder)")
    parser.add_argument("--memory", default="4g", help="heap of the Java process (%(default)s)")
    parser.add_argument("--master", default="local[2]", help="Spark master (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def _made(spark: SparkSession, file: Path, shape: Shape) -> routing.Config:
    """The input tables beside ``file``, which is made last: an incremental configuration for them."""
    keys = [*_INPUTS, *(["dialogs"] if shape.dialogs else [])]
    frames = tables(spark, shape)
    for key in keys:
        frames[key]().write.format("delta").option("compression", "zstd").save(str(file.parent / key))
    lines = ["tables:", *(f"  {key}: {key}" for key in keys), "output:"]
    lines += [*(f"  {key}: out/{key}" for key in _OUTPUTS), "resolve:", "  mode: incremental"]
    file.write_text("\n".join(lines), encoding="utf-8")
    return routing.load_config(str(file))


def _share_of(messages: DataFrame, share: float, number: int) -> DataFrame:
    """Return a share of the messages with new ids. ``number`` separates those of one append from all others."""
    chosen = F.pmod(F.xxhash64("message_id"), F.lit(_OF_TEN_THOUSAND)) < int(share * _OF_TEN_THOUSAND)
    new_id = F.concat("message_id", F.lit(f"+{number}"))
    return messages.where(chosen).withColumn("message_id", new_id)


def _measured(spark: SparkSession, config: routing.Config, name: str, stored: int) -> dict[str, Any]:
    row = routing.run(spark, config).row
    stages = row["stage_seconds"]
    seconds = (row["finished_at"] - row["started_at"]).total_seconds()
    doubles = stages.get("duplicates", 0.0)
    return {
        "run": name,
        "stored at first": stored,
        "messages": row["rows_read"],
        "seconds": round(seconds, 1),
        "duplicates": round(doubles, 1),
        "without duplicates": round(seconds - doubles, 1),
        "keys": stages.get("keys", 0.0),
        "write": stages.get("write", 0.0),
        "pending": round(stages.get("pending", 0.0) + stages.get("pending_messages", 0.0), 1),
        "stage_seconds": stages,
    }


if __name__ == "__main__":
    sys.exit(main())
