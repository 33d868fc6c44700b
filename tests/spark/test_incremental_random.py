"""Random estates in incremental runs, held to the tests' own resolver: every row of every output table.

Messages and outputs are tables of a catalog, so that the way of names is gone as well, and the view is made.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import routing
from routing.schemas import MESSAGES
from tests.frames import frame_of, rows_of
from tests.random_estates import SEED, assert_same
from tests.reference.estates import joined, random_estate
from tests.reference.increments import Increments
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ESTATES = 60
# Before, at and after most times of the estates.
TIMES = [datetime(2026, 1, 5, hour, tzinfo=timezone.utc) for hour in (9, 10, 12)]
OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "pending_messages", "runs")


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[str]:
    """A schema of the session's catalog, empty before and gone afterwards."""
    spark.sql("CREATE SCHEMA increments")
    yield "increments"
    spark.sql("DROP SCHEMA increments CASCADE")


@pytest.mark.long
def test_three_runs_agree(spark: SparkSession, catalog: str, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    tables = joined([random_estate(rng, 40, f"e{number}/") for number in range(ESTATES)])
    messages = tables.pop("messages")
    expected = Increments(tables)
    inputs = save_estate(tables, tmp_path / "in", files=1)
    named = [f"output.{key}={catalog}.{key}" for key in OUTPUTS]
    config = config_of(inputs, tmp_path, f"tables.messages={catalog}.messages", "resolve.mode=incremental", *named)
    for number, now in enumerate(TIMES):
        batch = messages[number :: len(TIMES)]
        new = frame_of(spark, batch, MESSAGES).coalesce(1)
        new.write.format("delta").mode("append").saveAsTable(f"{catalog}.messages")
        routing.run(spark, config, run_id=f"run{number}", now=now)
        expected.run(batch, now, f"run{number}")
    assert max(row["attempt"] for row in expected.resolved_routes) == len(TIMES)
    assert any("DUPLICATE_MESSAGE_ID" in row["reasons"] for row in expected.rejected_messages)
    for key in OUTPUTS[:4]:
        assert_same(rows_of(spark.table(f"{catalog}.{key}")), getattr(expected, key), key)
    last: dict[object, dict[str, object]] = {}
    for row in expected.resolved_routes:
        last[row["instance_name"], row["message_id"]] = row
    assert_same(rows_of(spark.table(f"{catalog}.current_routes")), list(last.values()), "the view")
    assert_same(rows_of(routing.current_routes(spark, config)), list(last.values()), "current_routes")
