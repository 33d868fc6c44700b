"""Compare two results row by row, or by checksums of their columns.

    python -m benchmarks.comparing FOUND WANTED

prints the differences of two tables as JSON. A measuring process starts it separately, to avoid running Java
itself.
"""

from __future__ import annotations

import argparse
import json

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

ROW_BY_ROW_UP_TO = 1_000_000
# Each writer names its own run.
_OWN = ("run_id",)
# Keeps the sum of a hundred million hashes within a bigint.
_SHIFT = 28


def differences(actual: DataFrame, expected: DataFrame, rows: int) -> list[str]:
    """Return the differences between two frames of ``resolved_routes`` with about this number of rows.

    A difference is a sentence that names the column. Columns must be the same in name and type.
    """
    types = ({f.name: f.dataType.simpleString() for f in frame.schema} for frame in (actual, expected))
    if (have := next(types)) != (want := next(types)):
        return [f"the columns are {have}, not {want}"]
    columns = [name for name in expected.columns if name not in _OWN]
    if rows <= ROW_BY_ROW_UP_TO:
        return _row_by_row(actual, expected, columns)
    return unequal(checksums(actual, columns), checksums(expected, columns))


def _row_by_row(actual: DataFrame, expected: DataFrame, columns: list[str]) -> list[str]:
    key = ["instance_name", "message_id"]
    expected_rows = expected.select(
        *(F.col(c).alias(f"wanted_{c}") for c in columns), F.lit(True).alias("is_wanted")
    )
    on = [F.col(c) == F.col(f"wanted_{c}") for c in key]
    marked = actual.select(*columns, F.lit(True).alias("is_found"))
    # A row that is there twice has two partners: the counts show it.
    joined = marked.join(expected_rows, on, how="full")
    in_both = F.col("is_found") & F.col("is_wanted")
    counts = joined.agg(
        F.count(F.when(F.col("is_found").isNull(), 1)).alias("missing"),
        F.count(F.when(F.col("is_wanted").isNull(), 1)).alias("too many"),
        F.count(F.when(in_both, 1)).alias("in both"),
        *(_unequal_rows(in_both, name).alias(name) for name in columns),
    ).collect()[0]
    row = counts.asDict()
    both, missing, extra = (row.pop(name) for name in ("in both", "missing", "too many"))
    faults = [
        f"{number} rows are {fault}" for number, fault in ((missing, "missing"), (extra, "too many")) if number
    ]
    faults += [f"{name} differs in {number} of {both} rows" for name, number in row.items() if number]
    if (both + extra, both + missing) != (actual.count(), expected.count()):
        faults.append("a row is there more than once")
    return faults


def _unequal_rows(in_both: Column, name: str) -> Column:
    differs = ~F.col(name).eqNullSafe(F.col(f"wanted_{name}"))
    return F.count(F.when(in_both & differs, 1))


def checksums(frame: DataFrame, columns: list[str]) -> dict[str, int]:
    """The number of rows, and a sum for each column over all rows: of a hash of it and the message's id."""
    sums = [
        F.coalesce(F.sum(F.shiftright(F.xxhash64("message_id", F.isnull(name), name), _SHIFT)), F.lit(0)).alias(
            name
        )
        for name in columns
    ]
    row = frame.agg(F.count(F.lit(1)).alias("rows"), *sums).collect()[0].asDict()
    return {name: int(value) for name, value in row.items()}


def unequal(actual: dict[str, int], expected: dict[str, int]) -> list[str]:
    """A sentence for each checksum that is not as wanted."""
    if actual["rows"] != expected["rows"]:
        return [f"{actual['rows']} rows, not {expected['rows']}"]
    return [f"the checksum of {name} differs" for name in expected if actual[name] != expected[name]]


def main() -> None:
    """Compare two tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparing", description=__doc__)
    for name in ("found", "wanted"):
        parser.add_argument(name)
    options = parser.parse_args()
    from routing.sessions.session import settle_java_logs, start

    spark = start({"spark.driver.memory": "4g"})
    actual, expected = (spark.read.format("delta").load(table) for table in (options.found, options.wanted))
    print(json.dumps(differences(actual, expected, expected.count())))
    settle_java_logs(ended_well=True)


if __name__ == "__main__":
    main()
