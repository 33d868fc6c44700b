"""The benchmark's textbook comparator, against rows worked out by hand, and how results are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.bench_estate import EXPECTED, TABLES
from tests.frames import assert_same_frames, frame_of, frames, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("xxhash", reason="only make bench installs the hash of the textbook's UDF")
pytestmark = pytest.mark.usefixtures("interpreted")


def _sorted(frame: DataFrame) -> list[dict[str, Any]]:
    rows = rows_of(frame.drop("run_id"))
    return sorted(rows, key=lambda row: str(row["message_id"]))


def test_naive_and_resolve_follow_every_rule_of_the_subset(spark: SparkSession) -> None:
    import routing
    from benchmarks.naive import resolved_routes
    from routing.schemas import RESOLVED_ROUTES
    from routing.tables.frames import spark_schema

    inputs = frames(spark, TABLES)
    naive = resolved_routes(inputs, spark_schema(RESOLVED_ROUTES))
    assert _sorted(naive) == EXPECTED
    resolution = routing.resolve(spark, inputs)
    assert_same_frames(resolution.resolved_routes.drop("run_id"), naive.drop("run_id"))
    resolution.unpersist()


def test_a_difference_is_found_row_by_row_and_by_checksums(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from benchmarks.comparing import ROW_BY_ROW_UP_TO, differences
    from routing.schemas import RESOLVED_ROUTES

    same = frame_of(spark, [{**row, "run_id": "one"} for row in EXPECTED], RESOLVED_ROUTES)
    is_first = F.col("message_id") == "m00"
    address = F.when(is_first, F.lit("tcp://other:1")).otherwise(F.col("address"))
    other = same.withColumn("address", address).withColumn("run_id", F.lit("two"))
    # Two values that change places are as many of each as before.
    swapped = same.withColumn(
        "reason",
        F.when(is_first, "NO_ROUTE")
        .when(F.col("message_id") == "m07", "NETWORK_ADDRESS")
        .otherwise(F.col("reason")),
    )
    few, many = len(EXPECTED), ROW_BY_ROW_UP_TO + 1
    assert [differences(same, same, rows) for rows in (few, many)] == [[], []]
    assert differences(other, same, few) == [f"address differs in 1 of {few} rows"]
    assert differences(other, same, many) == ["the checksum of address differs"]
    assert differences(swapped, same, few) == [f"reason differs in 2 of {few} rows"]
    assert differences(swapped, same, many) == ["the checksum of reason differs"]
    assert differences(same.where(~is_first), same, few) == ["1 rows are missing"]
    assert differences(same.where(~is_first), same, many) == [f"{few - 1} rows, not {few}"]
    twice = same.unionByName(same.where(is_first))
    assert differences(twice, same, few) == ["a row is there more than once"]
    assert "the columns are" in differences(same.drop("attempt"), same, few)[0]
