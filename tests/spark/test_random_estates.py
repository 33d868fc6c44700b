"""Spark and the tests' own resolver agree on every column of every row for random estates."""

from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.schemas import NEW_ROUTE_REQUESTS, REJECTED_MESSAGES, RESOLVED_ROUTES
from routing.tables.frames import spark_schema
from tests.frames import Tables, frames, rows_of
from tests.random_estates import AS_OF, BATCHES, RUN_ID, SEED, Decided, assert_agrees, draw_batch
from tests.stored import store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.core


def _decide(spark: SparkSession, input_tables: dict[str, DataFrame], as_of: datetime | None) -> Decided:
    import routing

    done = routing.resolve(spark, input_tables, as_of=as_of, run_id=RUN_ID)
    try:
        rows = (done.resolved_routes, done.new_route_requests, done.rejected_messages)
        declared = (RESOLVED_ROUTES, NEW_ROUTE_REQUESTS, REJECTED_MESSAGES)
        kinds = [spark_schema(schema).simpleString() for schema in declared]
        assert [frame.schema.simpleString() for frame in rows] == kinds
        # Columns that are never null are declared so, and the schemas of the rows confirm it.
        for frame, shape in zip(rows, declared, strict=True):
            nullable = {field.name for field in frame.schema if field.nullable}
            assert not nullable & {field.name for field in shape if not field.nullable}
        return Decided(*map(rows_of, rows))
    finally:
        done.unpersist()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_estates_agree(spark: SparkSession, batch: int) -> None:
    assert_agrees(lambda tables, as_of: _decide(spark, frames(spark, tables), as_of), None, batch)


# The second run of test_runs also decides at one time, and reads messages of two commits.
@pytest.mark.long
@pytest.mark.parametrize("batch", range(BATCHES))
def test_order_and_layout_do_not_matter_at_one_time(spark: SparkSession, tmp_path: Path, batch: int) -> None:
    """All messages are decided at one time, with rows in another order and messages in many Delta files."""

    def decide(tables: Tables, as_of: datetime | None) -> Decided:
        rng = random.Random(SEED)
        shuffled = {key: rng.sample(rows, len(rows)) for key, rows in tables.items()}
        input_tables = {key: frame.repartition(3) for key, frame in frames(spark, shuffled).items()}
        for part in input_tables["messages"].randomSplit([1.0] * 3, seed=3):
            store(part.repartition(4), tmp_path, mode="append")
        input_tables["messages"] = spark.read.format("delta").load(str(tmp_path))
        assert len(input_tables["messages"].inputFiles()) > 10
        return _decide(spark, input_tables, as_of)

    assert_agrees(decide, AS_OF, batch)


@pytest.mark.usefixtures("interpreted")
def test_no_messages_give_no_rows(spark: SparkSession) -> None:
    tables = {**draw_batch(AS_OF).tables, "messages": []}
    done = _decide(spark, frames(spark, tables), None)
    assert [*done.resolved_routes, *(done.new_route_requests or []), *done.rejected_messages] == []
