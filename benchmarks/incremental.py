"""Measure incremental runs over large stored tables (``make bench-incremental``).

It makes the tables and resolves all messages in a first run. Then it appends new messages and resolves them, with
and without ``resolve.duplicates_within``, and runs over unchanged inputs. New messages are a day younger than all
others. Everything happens in one session, which a small run warms up, and each kind of run comes twice. It prints
seconds and stages as a table, or as JSON with ``--json``. With ``--gate`` it fails if the faster run of a kind
takes longer than its limit.

A second job has no delayed message. Its run over unchanged inputs shows the fixed cost.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import routing
from benchmarks.data import Shape, tables
from benchmarks.naming import DAY, guid, instance_name
from routing.document import DataTable, make_columns
from routing.render.text import write_text
from routing.sessions.session import start

_INPUTS = ("instances", "databases", "services", "routes", "messages", "dialogs")
_OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "runs", "pending_messages")
_OF_TEN_THOUSAND = 10_000
_SMALL = 10_000
WARM_UP, NEW, WITHIN, IDLE, BARE = "warm-up", "1 % new", "1 % new, within 1 hour", "nothing new", "nothing delayed"
LIMITS = {NEW: 15.0, WITHIN: 12.0, IDLE: 8.0, BARE: 6.0}
"""Seconds by path, at 30 million stored messages, 2.4 million delayed ones and 5 million dialogs on two cores."""
_BY_NAME = 4.0


def main() -> int:
    """Make the tables, measure, print. Return 1 if a limit is exceeded."""
    options = _options()
    shape = Shape(**{f.name: getattr(options, f.name) for f in fields(Shape)})
    folder = Path(options.folder or tempfile.mkdtemp(prefix="sbroute-incremental-")).absolute()
    settings = {"spark.master": options.master, "spark.driver.memory": options.memory}
    spark = start({**settings, "spark.sql.warehouse.dir": str(folder / "warehouse")})
    job = Job(spark, folder / "large", shape, by_name=options.by_name, spare_dialogs=options.spare_dialogs)
    rows = [job.run("first run"), job.append(0.001, WARM_UP)]
    rows += [job.append(0.01, name) for name in (NEW, NEW, WITHIN, WITHIN)]
    rows += [job.run(IDLE) for _ in range(options.idle)]
    small = Job(spark, folder / "small", replace(shape, messages=_SMALL), by_name=options.by_name, delays=False)
    rows.append(small.run("first run, small"))
    rows += [small.run(BARE) for _ in range(options.idle)]
    if rows[-1]["read"]:
        raise RuntimeError(f"{rows[-1]['read']} messages of the small job are delayed")
    over = _over_limits(rows, by_name=options.by_name) if options.gate else []
    if options.json:
        sys.stdout.write(json.dumps({"shape": vars(shape), "folder": str(folder), "rows": rows}) + "\n")
    else:
        columns = ("run", "read", "decided", "seconds", "jobs", "duplicates", "pending", "write")
        lines = [tuple(row[name] for name in columns) for row in rows]
        table = DataTable(make_columns(columns, columns[1:]), lines, f"Incremental runs in {folder}")
        print(write_text([table], width=120))
    for line in over:
        sys.stderr.write(f"{line}\n")
    return 1 if over else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-incremental", description=__doc__)
    for field in fields(Shape):
        default = 30_000_000 if field.name == "messages" else field.default
        parser.add_argument(f"--{field.name}", type=type(default), default=default, help="(%(default)s)")
    parser.add_argument("--spare-dialogs", type=int, default=5_000_000, help="dialogs of no message (%(default)s)")
    parser.add_argument("--by-name", action="store_true", help="tables are names of the catalog, not paths")
    parser.add_argument("--idle", type=int, default=3, help="runs over unchanged inputs (%(default)s)")
    parser.add_argument("--gate", action="store_true", help="fail if a run takes longer than its limit")
    parser.add_argument("--folder", help="where the tables are made (a new temporary folder)")
    parser.add_argument("--memory", default="4g", help="heap of the Java process (%(default)s)")
    parser.add_argument("--master", default="local[2]", help="Spark master (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def _over_limits(rows: list[dict[str, Any]], *, by_name: bool) -> list[str]:
    """Return a sentence for each kind of run whose fastest one exceeds its limit, or which rewrote a table."""
    faults = []
    for name, limit in LIMITS.items():
        seconds = min(row["seconds"] for row in rows if row["run"] == name)
        allowed = limit + (_BY_NAME if by_name and name in (NEW, WITHIN) else 0)
        if seconds > allowed:
            faults.append(f"{name}: {seconds} s, the limit is {allowed} s")
    # A run over unchanged inputs leaves every table as it is.
    faults += [f"{row['run']} wrote {row['wrote']}" for row in rows if row["run"] in (IDLE, BARE) and row["wrote"]]
    return faults


class Job:
    """The tables of one incremental job, by path below a folder or by name in a schema of its own."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        shape: Shape,
        *,
        by_name: bool,
        spare_dialogs: int = 0,
        delays: bool = True,
    ) -> None:
        self.spark, self.schema = spark, f"bench_{folder.name}" if by_name else None
        self.folder, self.appended = folder, 0
        if self.schema is not None:
            spark.sql(f"CREATE SCHEMA {self.schema}")
        frames = tables(spark, shape)
        self.messages = frames["messages"]()
        for key in _INPUTS:
            frame = self.messages if key == "messages" else frames[key]()
            if key == "dialogs" and spare_dialogs:
                frame = frame.unionByName(_spare(spark, spare_dialogs), allowMissingColumns=True)
            if key == "messages" and not delays:
                # Messages to services that no object names are delayed.
                frame = frame.where(~F.col("to_service_name").startswith("unknown/"))
            self._write(frame, key, "error")
        places = {key: self._place(key) for key in (*_INPUTS, *_OUTPUTS)}
        lines = ["tables:", *(f"  {key}: {places[key]}" for key in _INPUTS), "output:"]
        lines += [*(f"  {key}: {places[key]}" for key in _OUTPUTS), "resolve:", "  mode: incremental"]
        self.file = folder.parent / f"{folder.name}.yaml"
        self.file.write_text("\n".join(lines), encoding="utf-8")
        self.versions = dict[str, int]()

    def append(self, share: float, name: str) -> dict[str, Any]:
        """Append a share of the messages with new ids and times a day later, and run."""
        self.appended += 1
        chosen = F.pmod(F.xxhash64("message_id"), F.lit(_OF_TEN_THOUSAND)) < int(share * _OF_TEN_THOUSAND)
        new = self.messages.where(chosen).withColumns(
            {
                "message_id": F.concat("message_id", F.lit(f"+{self.appended}")),
                "enqueue_time": F.timestamp_micros(
                    F.unix_micros("enqueue_time") + F.lit(self.appended * 86_400_000_000)
                ),
            }
        )
        self._write(new, "messages", "append")
        return self.run(name, *(["resolve.duplicates_within=1 hour"] if name == WITHIN else []))

    def run(self, name: str, *overrides: str) -> dict[str, Any]:
        """Run once, and return its costs. ``wrote`` has the outputs with a new version, apart from runs."""
        before = self._last_job()
        row = routing.run(self.spark, routing.load_config(str(self.file), overrides)).row
        stages, versions = row["stage_seconds"], row["output_versions"]
        wrote = [key for key in versions if versions[key] != self.versions.get(key)]
        self.versions = dict(versions)
        return {
            "run": name,
            "read": row["rows_read"],
            "decided": row["rows_resolved"],
            "seconds": round((row["finished_at"] - row["started_at"]).total_seconds(), 1),
            "jobs": self._last_job() - before,
            "duplicates": round(stages.get("duplicates", 0.0), 1),
            "pending": round(stages.get("pending", 0.0), 1),
            "write": round(stages.get("write", 0.0), 1),
            "wrote": wrote,
            "stage_seconds": stages,
        }

    def _last_job(self) -> int:
        """Return the number of Spark jobs that the session has started."""
        return int(self.spark.sparkContext._jsc.sc().dagScheduler().nextJobId())

    def _place(self, key: str) -> str:
        return str(self.folder / key) if self.schema is None else f"spark_catalog.{self.schema}.{key}"

    def _write(self, frame: DataFrame, key: str, mode: str) -> None:
        writer = frame.write.format("delta").mode(mode).option("compression", "zstd")
        writer.save(self._place(key)) if self.schema is None else writer.saveAsTable(self._place(key))


def _spare(spark: SparkSession, count: int) -> DataFrame:
    """Return dialogs of conversations without messages, which were acknowledged at noon."""
    number = F.col("id")
    return spark.range(count).select(
        instance_name(F.lit(0)).alias("instance_name"),
        F.lit("app_0").alias("database_name"),
        guid(number, "spare").alias("conversation_id"),
        F.lit(True).alias("is_initiator"),
        F.timestamp_seconds(F.lit(DAY + 43_200)).alias("acknowledged_at"),
        guid(number, "spare broker").alias("acknowledged_broker_instance"),
    )


if __name__ == "__main__":
    sys.exit(main())
