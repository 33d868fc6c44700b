"""Run bare processes that show the minimum cost of a command.

    python -m benchmarks.bare spark DATA OUT
    python -m benchmarks.bare copy CONFIG SOURCE OUT
    python -m benchmarks.bare group TABLE
    python -m benchmarks.bare reader TABLE...

They apply no rules. They start, read and write with as little code as possible, and exit like the commands.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SCANNED = ("messages", "dialogs")
TABLE = "resolved_routes"
REPLACED = ("new_route_requests", "rejected_messages", TABLE)
GROWING = "runs"


def with_spark(data: Path, out: Path) -> None:
    """Start Spark as ``resolve`` does, scan messages and dialogs, replace three outputs, and append to a fourth.

    The outputs of a run are in ``out``. Each is written from its own rows, so that sizes are those of a run.
    ``runs`` must have one row.
    """
    from routing.sessions.session import settle_java_logs, start

    spark = start({})
    for key in SCANNED:
        # This format takes every column of every row, and keeps nothing.
        spark.read.format("delta").load(str(data / key)).write.format("noop").mode("overwrite").save()
    for key in (*REPLACED, GROWING):
        rows = spark.read.format("delta").load(str(out / key))
        writer = rows.write.format("delta").option("compression", "zstd")
        writer.mode("append" if key == GROWING else "overwrite").save(str(out / key))
    settle_java_logs(ended_well=True)


def copy(config: str, source: str, out: str) -> None:
    """Start Spark as ``resolve`` does by a configuration, and write a result once more as that writes it."""
    from routing import load_config
    from routing.config import TableLocation
    from routing.delta.spark_tables import WriteOptions, write_output
    from routing.sessions.session import settle_java_logs, start

    configuration = load_config(config)
    rows = start(configuration.spark).read.format("delta").load(source)
    write_output(rows, TABLE, TableLocation(out), WriteOptions("copy"), "copy")
    settle_java_logs(ended_well=True)


def group(table: str) -> None:
    """Start Spark, and count messages once by the columns of a report's flows and points."""
    from pyspark.sql import functions as F

    from routing.sessions.session import settle_java_logs, start
    from routing.views.report.flows import DECIDED, ENQUEUED, FLOW

    rows = start({}).read.format("delta").load(table)
    rows.groupBy(*FLOW).agg(F.count(F.lit(1)), F.min(ENQUEUED), F.min(DECIDED), F.max(DECIDED)).collect()
    settle_java_logs(ended_well=True)


def with_deltalake(tables: Sequence[str]) -> None:
    """Read whole tables into memory."""
    for table in tables:
        opened(table).to_table()


def opened(table: str) -> Any:
    """A local table as a dataset of Arrow, times as Spark writes them included."""
    from deltalake import DeltaTable
    from pyarrow.dataset import ParquetReadOptions
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    # By the file system that deltalake takes itself, written in Python, every third process that has read some
    # tables aborts as it ends (delta-rs issue 2184).
    files = SubTreeFileSystem(table, LocalFileSystem())
    options = ParquetReadOptions(coerce_int96_timestamp_unit="us")
    return DeltaTable(table).to_pyarrow_dataset(filesystem=files, parquet_read_options=options)


def main() -> None:
    """Be one of them."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", choices=("spark", "copy", "group", "reader"))
    parser.add_argument("given", nargs="+", help="folders and tables")
    options = parser.parse_args()
    which, command_arguments = options.which, options.given
    if which == "spark":
        data, out = command_arguments
        with_spark(Path(data), Path(out))
    elif which == "copy":
        copy(*command_arguments)
    elif which == "group":
        group(*command_arguments)
    else:
        with_deltalake(command_arguments)


if __name__ == "__main__":
    main()
