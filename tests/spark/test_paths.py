"""Paths of all messages by Spark: the worked cases, and random networks beside the walk of each message."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from routing.rules import hashing, text
from routing.rules.following import Addressee, Errand, Network, decide_now, follow
from routing.rules.path_rows import path_row
from routing.rules.pathing import Path, Sender, trace_back
from routing.rules.requesting import Request
from routing.rules.resolving import Verdict
from routing.runs.tracing import Traced, trace_all
from tests.frames import frames, load_trace_cases, merged, moment, rows_of
from tests.reference.estates import joined, random_estate
from tests.spark.test_random_estates import assert_same
from tests.unit.rules import by_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Tables = dict[str, list[Row]]
pytestmark = pytest.mark.core
CASES = load_trace_cases()
ESTATES, MESSAGES, SEED = 120, 40, 20260105
AS_OF = datetime(2026, 3, 1, 13, 0, 0, tzinfo=timezone.utc)
NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
_HOP = {"instance": "instance_name", "step": "matching_step", "route": "route_name"}
_END = {"end": "outcome", "instance": "final_instance_name", "database": "final_database_name"}
_BACK = {"end": "return_outcome", "instance": "return_instance_name", "database": "return_database_name"}


def _apart(value: Any, prefix: str) -> Any:
    """The same with instances and hosts of their own; ``value`` is made of a case's rows, and of what it expects."""
    if isinstance(value, list):
        return [_apart(item, prefix) for item in value]
    if isinstance(value, dict):
        named = ("instance_name", "instance")
        return {
            key: f"{prefix}{item}" if key in named and isinstance(item, str) else _apart(item, prefix)
            for key, item in value.items()
        }
    if isinstance(value, str) and value.lower().startswith("tcp://"):
        return f"{value[:6]}{prefix}{value[6:]}"
    return value


def _asked(case: Row, number: int) -> Row:
    ask = case["ask"]
    return {
        "message_id": f"m{number}",
        "conversation_id": ask["conversation_id"],
        "is_initiator": True,
        "enqueue_time": case["at"],
        "instance_name": ask["instance"],
        "database_name": ask["database"],
        "to_service_name": ask["service"],
        "from_service_name": ask["from_service"],
        "hops_remaining": ask.get("hops_remaining"),
    }


def _expected_end(way: Row, names: dict[str, str]) -> Row:
    return {name: way.get(key) for key, name in names.items()}


def test_worked_cases(spark: SparkSession) -> None:
    cases = [_apart(case, f"case{number}-") for number, case in enumerate(CASES)]
    tables = merged([case["tables"] for case in cases])
    tables["messages"] = [_asked(case, number) for number, case in enumerate(cases)]
    found = trace_all(spark, frames(spark, tables))
    rows = {row["message_id"]: row for row in rows_of(found.message_paths)}
    found.unpersist()
    assert (found.read, found.traced, found.rejected) == (len(CASES), len(CASES), 0)
    assert len(rows) == len(CASES)
    for number, case in enumerate(cases):
        row, first = rows[f"m{number}"], case["ways"][0]
        want = _expected_end(first, {**_END, "reason": "reason", "address": "final_address"})
        want["hops"] = [{_HOP.get(key, key): value for key, value in hop.items()} for hop in first["hops"]]
        want |= {name: case[name] for name in ("ways_agree", "multiple_targets")}
        want["decided_at"] = moment(case["at"])
        assert {name: row[name] for name in want} == want, case["case"]
        if "back" in case:
            back = _expected_end(case["back"][0], {**_BACK, "reason": "return_reason"})
            assert {name: row[name] for name in back} == back, case["case"]
