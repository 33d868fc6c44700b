"""The same input gives the same rows: twice, in another order, in other files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import routing
from tests.frames import frames, rows_of
from tests.reference.estates import joined, random_estate
from tests.reference.resolver import resolve as reference
from tests.spark.test_random_estates import assert_same
from tests.stored import store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NAMES = ("resolved_routes", "new_route_requests", "rejected_messages")


def test_order_and_layout_do_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(22)
    tables = joined([random_estate(rng, 40, f"e{n}/") for n in range(3)])
    plain = frames(spark, tables)
    for rows in tables.values():
        rng.shuffle(rows)
    shuffled = {key: frame.repartition(3) for key, frame in frames(spark, tables).items()}
    for part in plain["messages"].randomSplit([1.0] * 5, seed=3):
        store(part.repartition(4), tmp_path, mode="append")
    shuffled["messages"] = spark.read.format("delta").load(str(tmp_path))
    assert len(shuffled["messages"].inputFiles()) > 10
    expected = reference(tables, as_of=None, run_id="same")
    first, other = (routing.resolve(spark, found, run_id="same") for found in (plain, shuffled))
    try:
        for name in NAMES:
            mine, theirs = getattr(first, name), getattr(other, name)
            wanted = getattr(expected, name)
            assert wanted
            assert_same(rows_of(mine), wanted, name)
            assert_same(rows_of(theirs), wanted, name)
            assert theirs.schema == mine.schema
    finally:
        first.unpersist()
        other.unpersist()
