"""The table of askers by Spark: all cases in one run."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import routing
from routing.messages.openers import openers, order_requests
from routing.schemas import ROUTE_REQUESTS, ColumnKind, Field, Schema
from routing.tables.cached_frames import side_of
from tests import askers
from tests.frames import frame_of, frames, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.core, pytest.mark.spark]


@cache
def _run(spark: SparkSession) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    done = routing.resolve(spark, frames(spark, askers.estates()))
    return rows_of(done.resolved_routes), rows_of(done.new_route_requests)


@pytest.mark.parametrize("number", range(len(askers.CASES)), ids=[case.name for case in askers.CASES])
def test_each_case_has_the_expected_waiting_messages_and_requests(spark: SparkSession, number: int) -> None:
    resolved, requests = _run(spark)
    case, prefix = askers.CASES[number], f"{number}/"
    assert askers.stops_of(resolved, prefix) == askers.expected_stops(case)
    assert askers.requests_of(requests, prefix) == askers.expected_requests(case)
    assert sum(row["instance_name"] == f"{prefix}hub" for row in resolved) == len(case.messages)


Rows = list[dict[str, Any]]
_TEXTS = ("instance_name", "ask_database", "to_service_name", "message_id", "conversation_id")
_ASKING = Schema(
    (
        *(Field(name, ColumnKind.STRING) for name in _TEXTS),
        Field("decided_at", ColumnKind.TIMESTAMP),
        Field("is_initiator", ColumnKind.BOOLEAN),
    )
)
# These are few, so that many requests and the messages that made them share a time and an id.
_MINUTES, _IDS = 30, "abc"


def _record_of(rng: random.Random, service: str, count: int) -> Rows:
    """Return requests on record of a service. Most end soon, some at once, and a few late ones never."""
    rows = []
    for _ in range(count):
        minute = rng.randrange(_MINUTES)
        never = minute > _MINUTES * 2 // 3 and rng.random() < 0.1
        rows.append(
            {
                "instance_name": "hub",
                "database_name": "Sales",
                "service_name": service,
                "requested_at": askers.at(minute),
                "message_id": rng.choice(_IDS),
                "ended_at": None if never else askers.at(minute + rng.choice([0, 0, 0, 1, 2])),
            }
        )
    return rows


def _asking_for(rng: random.Random, service: str, count: int, record: Rows) -> Rows:
    """Return messages that ask for a service. Most of them have made a request on record."""
    rows = []
    for number in range(count):
        own = rng.choice(record) if record and rng.random() < 0.95 else {}
        rows.append(
            {
                "instance_name": "hub",
                "ask_database": "Sales",
                "to_service_name": service,
                "decided_at": own.get("requested_at", askers.at(rng.randrange(_MINUTES + 3))),
                "message_id": own.get("message_id", rng.choice(_IDS)),
                "conversation_id": f"c{number:03}",
                "is_initiator": True,
            }
        )
    return rows


def _opened_by(asking: Rows, record: Rows) -> list[tuple[Any, ...]]:
    """Return the requests of messages of one service, in order and each after every request on record."""
    opened: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    new: tuple[Any, ...] | None = None
    for row in sorted(asking, key=lambda row: (row["decided_at"], row["message_id"], row["conversation_id"])):
        at, place = row["decided_at"], (row["decided_at"], row["message_id"])
        ends = {
            is_own: [
                one["ended_at"]
                for one in record
                if (place == (one["requested_at"], one["message_id"])) is is_own
                and (one["requested_at"], one["message_id"]) <= place
            ]
            for is_own in (False, True)
        }
        is_pending = any(end is None or at < end for end in ends[False])
        if is_pending or place in opened or (new is not None and new < place):
            continue
        own = ends[True]
        if not own:
            new = place
        end = None if not own or None in own else max(own)
        opened[place] = (row["to_service_name"], *place, row["conversation_id"], end)
    return list(opened.values())


@pytest.mark.parametrize("least", [1, 64], ids=["many blocks", "blocks as they are"])
def test_any_number_of_requests_on_record(spark: SparkSession, least: int) -> None:
    """Services have 0 to 200 requests, and 1 to 40 messages."""
    rng, record, asking, expected = random.Random(5), Rows(), Rows(), list[tuple[Any, ...]]()
    for number, count in enumerate([0, 1, 2, 3, 5, 7, 8, 9, 30, 64, 65, 66, 200] * 4):
        service = f"//s{number}"
        theirs = _record_of(rng, service, count)
        messages = _asking_for(rng, service, rng.choice([1, 5, 40]), theirs)
        record, asking = [*record, *theirs], [*asking, *messages]
        expected += _opened_by(messages, theirs)
    ordered = order_requests(frame_of(spark, record, ROUTE_REQUESTS), least)
    found = openers(frame_of(spark, asking, _ASKING), side_of(ordered, fits=True))
    names = ("to_service_name", "decided_at", "message_id", "conversation_id", "ended_at")
    assert sorted((tuple(row[name] for name in names) for row in rows_of(found)), key=repr) == sorted(
        expected, key=repr
    )
    assert len(expected) > 100
    assert sum(end is not None for *_, end in expected) > 50


def test_requests_are_looked_up_in_short_arrays(spark: SparkSession) -> None:
    """There are as many requests as messages. Comparing each message with all of them would never finish."""
    count = 10_000
    like = F.lit("s")
    record = spark.range(count).select(
        *(like.alias(name) for name in ("instance_name", "database_name", "service_name")),
        F.timestamp_micros("id").alias("requested_at"),
        F.col("id").cast("string").alias("message_id"),
        F.timestamp_micros("id").alias("ended_at"),
    )
    [most] = (
        order_requests(record)
        .agg(F.count(F.lit(1)), F.max(F.size("requests")), F.max(F.size("firsts")), F.sum(F.size("requests")))
        .collect()
    )
    assert tuple(most) == (100, 100, 100, count)
