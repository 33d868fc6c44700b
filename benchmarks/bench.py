"""Measure ``make bench``: resolve in a warm session beside a copy of its result, and plain PySpark.

It makes the tables once and runs all contenders in turn after a warm-up. Then it compares the results, and prints
medians and ratios as a table, or as JSON with ``--json``. Run ``make floor`` to measure whole commands, also
beside Polars and DuckDB.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.bare import TABLE
from benchmarks.comparing import ROW_BY_ROW_UP_TO, differences
from benchmarks.contenders import NAIVE_UP_TO, Copy, Naive, Resolve
from benchmarks.gates import COPY, RESOLVE
from benchmarks.memory import java_peak
from benchmarks.report import NAIVE, Line, lines, ratios
from benchmarks.rounds import Measurable, Mismatch, first_result, measure
from benchmarks.shape import Shape
from benchmarks.stored import Stored, stored
from routing.document import DataTable, make_columns
from routing.render.text import write_text
from routing.render.wording import count
from routing.sessions.session import JAVA_OPTIONS, start

UDF = "resolve-udf"
ALL = (RESOLVE, COPY, UDF, NAIVE)


@dataclass(frozen=True)
class Options:
    """How to measure. wanted: names of `ALL`."""

    wanted: tuple[str, ...] = ALL
    rounds: int = 3
    folder: str = "build/bench"
    memory: str = "4g"
    master: str = "local[2]"
    broadcast_limit: str = "512MB"


@dataclass(frozen=True)
class Result:
    """A line for each contender, the `runs` row of resolve's last round, and notes."""

    lines: list[Line]
    last_run: dict[str, Any]
    java_peak: int
    notes: tuple[str, ...]


def main() -> int:
    """Make missing tables, measure, and print."""
    arguments = make_parser().parse_args()
    shape = Shape(**{f.name: getattr(arguments, f.name) for f in fields(Shape)})
    options = Options(
        wanted=tuple(arguments.only or ALL),
        rounds=arguments.rounds,
        folder=arguments.folder,
        memory=arguments.memory,
        master=arguments.master,
        broadcast_limit=arguments.broadcast_limit,
    )
    try:
        result = bench(shape, options)
    except Mismatch as fault:
        sys.stderr.write(f"the results differ, so no time is printed. {fault}\n")
        return 1
    if arguments.json:
        sys.stdout.write(json.dumps(_as_json(shape, options, result), indent=2) + "\n")
    else:
        _print(shape, options, result)
    return 0


def bench(shape: Shape, options: Options) -> Result:
    """Measure the contenders. Raises Mismatch if two results differ."""
    spark = start(_settings(options))
    stored_tables = stored(spark, shape, Path(options.folder).absolute())
    resolve = Resolve(RESOLVE, spark, stored_tables, "builtin", options.broadcast_limit)
    other_contenders, notes = _others(spark, stored_tables, shape, options)
    times = measure(
        [resolve, *other_contenders],
        stored_tables.results,
        options.rounds,
        lambda c, out: _differences(spark, stored_tables, shape, out),
    )
    return Result(
        lines=lines(times, shape.messages),
        last_run=resolve.rows[-1],
        java_peak=java_peak(spark),
        notes=(*notes, *resolve.notes),
    )


def _settings(options: Options) -> dict[str, str]:
    """Return the session's settings. Those of executors matter only on a cluster (docs/how-to/schedule.md)."""
    return {
        "spark.master": options.master,
        "spark.driver.memory": options.memory,
        "spark.executor.memory": options.memory,
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    }


def _others(
    spark: SparkSession, stored_tables: Stored, shape: Shape, options: Options
) -> tuple[Sequence[Measurable], list[str]]:
    """Return the installed contenders other than resolve, and a sentence for each missing one."""
    notes: list[str] = []
    chosen: list[Measurable] = []
    for name in (n for n in ALL if n in options.wanted and n != RESOLVE):
        if name == NAIVE and not shape.fits_subset:
            notes.append(f"{name} is left out: it knows no route versions and no route requests")
        elif name == NAIVE and shape.messages > NAIVE_UP_TO:
            notes.append(f"{name} is left out: more than {NAIVE_UP_TO:,} messages")
        elif name == NAIVE and find_spec("xxhash") is None:
            notes.append(f"{name} is left out: not installed (pip install -e '.[bench]')")
        elif name == COPY:
            chosen.append(Copy(name, spark, stored_tables, source=first_result(stored_tables.results, RESOLVE)))
        elif name == UDF:
            chosen.append(Resolve(name, spark, stored_tables, "udf", options.broadcast_limit))
        else:
            chosen.append(Naive(name, spark, stored_tables))
    return chosen, notes


def _differences(spark: SparkSession, stored_tables: Stored, shape: Shape, out: Path) -> list[str]:
    """Return the differences of a contender's result from resolve's, which comes first."""
    first = first_result(stored_tables.results, RESOLVE)
    if out == first:
        return []
    actual, expected = (spark.read.format("delta").load(str(folder / TABLE)) for folder in (out, first))
    return differences(actual, expected, shape.messages)


def make_parser(prog: str = "make bench", description: str | None = __doc__) -> argparse.ArgumentParser:
    """Return the parser of a benchmark that passes its arguments to this one."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    usual = Options()
    for field in fields(Shape):
        parser.add_argument(
            f"--{field.name}", type=type(field.default), default=field.default, help="(%(default)s)"
        )
    parser.add_argument("--only", nargs="+", choices=ALL, help="these, and resolve (all)")
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="rounds after a warm-up (%(default)s)")
    parser.add_argument("--folder", default=usual.folder, help="where the tables are made (%(default)s)")
    parser.add_argument("--memory", default=usual.memory, help="heap of a Java process (%(default)s)")
    parser.add_argument("--master", default=usual.master, help="Spark master (%(default)s)")
    parser.add_argument("--broadcast-limit", default=usual.broadcast_limit, help="of resolve (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _as_json(shape: Shape, options: Options, result: Result) -> dict[str, Any]:
    return {
        "shape": vars(shape),
        "options": vars(options),
        "contenders": [vars(line) for line in result.lines],
        "ratios": ratios(result.lines),
        "stage_seconds": result.last_run["stage_seconds"],
        "java_peak_bytes": result.java_peak,
        "notes": list(result.notes),
    }


def _print(shape: Shape, options: Options, result: Result) -> None:
    columns = ("contender", "median s", "messages/s", "× copy", "× resolve")
    title = f"{shape.messages:,} messages, {count(options.rounds, 'round')} in turn after a warm-up"
    table = DataTable(make_columns(columns, columns[1:]), [line.cells() for line in result.lines], title)
    print(write_text([table], width=120))
    method = "row by row" if shape.messages <= ROW_BY_ROW_UP_TO else "by checksums of their columns"
    print(f"The results are equal, compared {method}.")
    stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in result.last_run["stage_seconds"].items())
    print(f"Resolve's last round, in seconds: {stages}.")
    gib = result.java_peak / 2**30
    print(f"Peak of the Java process of all in Spark: {gib:.2f} GiB (heap limit {options.memory}).")
    for note in result.notes:
        print(f"Note: {note}")


if __name__ == "__main__":
    sys.exit(main())
