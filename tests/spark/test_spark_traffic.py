"""The Spark engine's operations on traffic equal the table of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from routing.engines.traffic_tables import TrafficTable, open_traffic
from routing.schemas import RESOLVED_ROUTES, Schema
from tests.frames import frame_of
from tests.traffic_operations import (
    OPERATIONS,
    ROWS,
    Operation,
    Row,
    check,
    check_asking_order,
    check_doubtful_rows,
    check_empty,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return frame_of(spark, ROWS, RESOLVED_ROUTES)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_traffic_operations_give_the_expected_rows(operation: Operation, rows: DataFrame) -> None:
    check(operation, open_traffic(rows))
    check_empty(operation, open_traffic(rows.limit(0)))


@pytest.mark.parametrize("check_all", [check_asking_order, check_doubtful_rows])
def test_inputs_are_read_in_the_required_order(check_all: Any, spark: SparkSession) -> None:
    def open_table(given: list[Row], schema: Schema, key: str | None) -> TrafficTable:
        return open_traffic(frame_of(spark, given, schema), key)

    check_all(open_table)
