"""Measure full runs over many keys on standalone clusters of one and two workers (``make bench-cluster``).

Each key has a route and ``--messages-a-key`` messages. It prints the seconds, and the memory of the driver's two
processes, as a table. With ``--gate`` it fails if a run does not resolve every message, or if the driver's Python
takes over 1.5 GiB. The workers have one core each, and the driver runs beside them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import routing
from benchmarks.memory import java_peak
from benchmarks.naming import DAY, database_name, guid, instance_name, service_name
from benchmarks.shape import DATABASES, SCOPES
from benchmarks.stored import Stored
from routing.document import DataTable, make_columns
from routing.render.text import write_text
from routing.sessions.session import start
from routing.terms import DEFAULT_BROADCAST_LIMIT
from tests.platforms.standalone import standalone

_COLUMNS = ("workers", "keys", "seconds", "validate", "plan", "write", "Python GiB", "Java GiB")
_SHAPE = ("keys", "messages_a_key", "instances")
_SHARED = (*_SHAPE, "heap", "memory", "folder")
_MAKE = "make"
MOST_PYTHON = 1.5
"""GiB of the driver's Python."""


def main() -> int:
    """Measure each cluster in a new process, and print. Return 1 if a gate fails."""
    options = _options()
    if options.master is not None:
        sys.stdout.write(json.dumps(_run(options, options.master)) + "\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="sbroute-cluster-") as temporary:
        options.folder = str(Path(options.folder or temporary).absolute())
        _make_in_own_process(options)
        rows = [_measure(options, workers) for workers in options.workers]
    lines = [tuple(str(row[name]) for name in _COLUMNS) for row in rows]
    table = DataTable(
        make_columns(_COLUMNS, _COLUMNS), lines, f"{options.keys} keys, {options.instances} instances"
    )
    print(write_text([table], width=120))
    faults = [fault for row in rows for fault in _find_faults(row)] if options.gate else []
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return 1 if faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-cluster", description=__doc__)
    parser.add_argument("--keys", type=int, default=3_000_000, help="routes and routing keys (%(default)s)")
    parser.add_argument("--messages-a-key", type=int, default=1, help="(%(default)s)")
    parser.add_argument("--instances", type=int, default=10, help="(%(default)s)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="(%(default)s)")
    parser.add_argument("--heap", default="4g", help="heap of the driver's Java (%(default)s)")
    parser.add_argument("--memory", default="4g", help="memory of a worker (%(default)s)")
    parser.add_argument("--folder", help="where the tables are made (a new temporary folder)")
    parser.add_argument("--gate", action="store_true", help="fail if messages or memory are not as expected")
    parser.add_argument("--master", help=argparse.SUPPRESS)
    return parser.parse_args()


def _command(options: argparse.Namespace, *more: str) -> list[str]:
    """The command line of this module with the same options."""
    named = [(f"--{name.replace('_', '-')}", str(getattr(options, name))) for name in _SHARED]
    return [sys.executable, "-m", "benchmarks.cluster", *(part for pair in named for part in pair), *more]


def _make_in_own_process(options: argparse.Namespace) -> None:
    """Make the tables that do not exist yet. The memory for it does not count."""
    subprocess.run(_command(options, "--master", _MAKE), stdout=subprocess.DEVNULL, check=True)


def _measure(options: argparse.Namespace, workers: int) -> dict[str, Any]:
    """Return the costs of one run from a separate process, because a session never changes its cluster."""
    with (
        tempfile.TemporaryDirectory(prefix="sbroute-workers-") as logs,
        standalone(Path(logs), workers, memory=options.memory) as cluster,
    ):
        done = subprocess.run(
            _command(options, "--master", cluster.master), stdout=subprocess.PIPE, text=True, check=True
        )
    row: dict[str, Any] = json.loads(done.stdout)
    return {**row, "workers": workers}


def _run(options: argparse.Namespace, master: str) -> dict[str, Any]:
    """Run once over the tables, or only make them."""
    folder = Path(options.folder, "-".join(str(getattr(options, name)) for name in _SHAPE))
    memory = {"spark.driver.memory": options.heap, "spark.executor.memory": options.memory}
    settings = {"spark.sql.shuffle.partitions": "16", **memory}
    spark = start({"spark.master": "local[2]" if master == _MAKE else master, **settings})
    tables = _tables(spark, options)
    job = Stored({key: str(folder / key) for key in tables}, folder / "out")
    if master == _MAKE:
        for key in job.missing:
            tables[key].write.format("delta").save(job.tables[key])
        return {}
    file = job.config(job.results, "builtin", DEFAULT_BROADCAST_LIMIT)
    done = routing.run(spark, routing.load_config(str(file)))
    row, stages = done.row, done.row["stage_seconds"]
    return {
        "keys": options.keys,
        "expected": options.keys * options.messages_a_key,
        "resolved": row["rows_resolved"],
        "seconds": round((row["finished_at"] - row["started_at"]).total_seconds(), 1),
        **{name: round(stages.get(name, 0.0), 1) for name in ("validate", "plan", "write")},
        "Python GiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "Java GiB": round(java_peak(spark) / 2**30, 2),
        "driver decides": [note for note in done.notes if note.startswith("the driver decides")],
    }


def _find_faults(row: dict[str, Any]) -> list[str]:
    faults = []
    if row["resolved"] != row["expected"]:
        faults.append(f"{row['workers']} workers: {row['resolved']} of {row['expected']} messages are resolved")
    faults += row["driver decides"]
    if row["Python GiB"] > MOST_PYTHON:
        faults.append(f"{row['workers']} workers: the driver's Python takes {row['Python GiB']} GiB")
    return faults


def _tables(spark: SparkSession, options: argparse.Namespace) -> dict[str, DataFrame]:
    """The input tables. Key number n belongs to instance n modulo their number, and to one of its scopes."""
    instances, number = options.instances, F.col("key")
    names = instance_name(F.col("id"))
    scope = F.floor(number / instances) % SCOPES
    place = {
        "instance_name": instance_name((number % instances).cast("int")),
        "database_name": database_name(scope.cast("int")),
        "service": service_name(F.floor(number / (instances * SCOPES)).cast("int")),
    }
    keys = spark.range(options.keys).withColumnRenamed("id", "key").withColumns(place)
    messages = spark.range(options.keys * options.messages_a_key).withColumn("key", F.col("id") % options.keys)
    is_network = scope == DATABASES
    databases = spark.range(instances * SCOPES)
    return {
        "instances": spark.range(instances).select(
            names.alias("instance_name"),
            F.lit(False).alias("is_message_forwarding_enabled"),
            F.array(F.concat(F.lit("tcp://"), names, F.lit(":4022"))).alias("addresses"),
        ),
        "databases": databases.select(
            instance_name((F.col("id") % instances).cast("int")).alias("instance_name"),
            database_name(F.floor(F.col("id") / instances).cast("int")).alias("name"),
            guid(F.col("id"), "database").alias("service_broker_guid"),
        ),
        "services": databases.select(
            instance_name((F.col("id") % instances).cast("int")).alias("instance_name"),
            database_name(F.floor(F.col("id") / instances).cast("int")).alias("database_name"),
            service_name(F.lit(99_999)).alias("name"),
        ),
        "routes": keys.select(
            "instance_name",
            "database_name",
            F.format_string("route_%d", number).alias("name"),
            F.col("service").alias("remote_service_name"),
            F.format_string("tcp://far-%03d.example.net:4022", number % 500).alias("address"),
        ),
        "messages": messages.withColumns(place).select(
            F.format_string("m%d", F.col("id")).alias("message_id"),
            guid(F.col("id"), "conversation").alias("conversation_id"),
            F.lit(True).alias("is_initiator"),
            F.timestamp_seconds(F.lit(DAY) + F.col("id") % 86_400).alias("enqueue_time"),
            "instance_name",
            F.when(~is_network, F.col("database_name")).alias("database_name"),
            F.col("service").alias("to_service_name"),
        ),
    }


if __name__ == "__main__":
    sys.exit(main())
