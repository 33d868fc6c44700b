"""Incremental runs over random estates write the same rows as the tests' own resolver.

Messages and outputs are tables of a catalog, so that catalog names and the view are tested too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import routing
from routing.schemas import MESSAGES
from tests.frames import frame_of, rows_of
from tests.random_estates import RUN_TIMES, SEED, Row, assert_runs_agree, assert_same
from tests.reference.estates import draw_estates, joined
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ESTATES = 60
OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "pending_messages", "runs")


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[str]:
    """Create an empty schema of the session's catalog, and drop it afterwards."""
    spark.sql("CREATE SCHEMA increments")
    yield "increments"
    spark.sql("DROP SCHEMA increments CASCADE")


@pytest.mark.long
def test_incremental_runs_equal_a_full_run_and_the_reference(
    spark: SparkSession, catalog: str, tmp_path: Path
) -> None:
    tables = joined(draw_estates(random.Random(SEED), ESTATES, 40))
    parts = [tables["messages"][number :: len(RUN_TIMES)] for number in range(len(RUN_TIMES))]
    inputs = save_estate({**tables, "messages": []}, tmp_path / "in", files=1)
    named = [f"output.{key}={catalog}.{key}" for key in OUTPUTS]
    config = config_of(inputs, tmp_path, f"tables.messages={catalog}.messages", "resolve.mode=incremental", *named)

    def run(number: int, part: list[Row], now: datetime) -> dict[str, list[Row]]:
        new = frame_of(spark, part, MESSAGES).coalesce(1)
        new.write.format("delta").mode("append").saveAsTable(f"{catalog}.messages")
        routing.run(spark, config, run_id=f"run{number}", now=now)
        is_last = number == len(parts) - 1
        return {key: rows_of(spark.table(f"{catalog}.{key}")) for key in OUTPUTS[:4] if is_last}

    expected = assert_runs_agree(run, tables, parts, RUN_TIMES)
    assert max(row["attempt"] for row in expected.resolved_routes) == len(parts)
    assert any("DUPLICATE_MESSAGE_ID" in row["reasons"] for row in expected.rejected_messages)
    last: dict[object, Row] = {}
    for row in expected.resolved_routes:
        last[row["instance_name"], row["message_id"]] = row
    assert_same(rows_of(spark.table(f"{catalog}.current_routes")), list(last.values()), "the view")
    assert_same(rows_of(routing.current_routes(spark, config)), list(last.values()), "current_routes")
