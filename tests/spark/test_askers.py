"""The table of askers by Spark: all cases in one run."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

import routing
from tests import askers
from tests.frames import frames, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.core


@cache
def _run(spark: SparkSession) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    done = routing.resolve(spark, frames(spark, askers.estates()))
    return rows_of(done.resolved_routes), rows_of(done.new_route_requests)


@pytest.mark.parametrize("number", range(len(askers.CASES)), ids=[case.name for case in askers.CASES])
def test_a_case(spark: SparkSession, number: int) -> None:
    resolved, requests = _run(spark)
    case, prefix = askers.CASES[number], f"{number}/"
    assert askers.stops_of(resolved, prefix) == askers.expected_stops(case)
    assert askers.requests_of(requests, prefix) == askers.expected_requests(case)
    assert sum(row["instance_name"] == f"{prefix}hub" for row in resolved) == len(case.messages)
