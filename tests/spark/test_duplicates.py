"""Spark finds the keys of new messages that are already stored or repeated."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from routing.messages import duplicates
from routing.runs.increment import select_near
from routing.schemas import MESSAGES, RESOLVED_ROUTES
from routing.tables.cached_frames import BroadcastBudget, FrameCache, JoinSide, select_by_hash, side_of
from tests.estate_rows import message
from tests.frames import frame_of, rows_of
from tests.plans import printed_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEW = [
    message(1, "//new"),
    message(2, "//stored"),
    message(3, "//twice"),
    message(3, "//twice"),
    message(4, "//stored, and three times"),
    message(4, "//stored, and three times"),
    message(4, "//stored, and three times"),
    message(5, "//stored for another instance"),
    message(6, "//new to this instance", instance_name="far"),
    message(7, "//without an instance", instance_name=None),
    message(7, "//without an instance", instance_name=None),
    message(8, "//without an id", message_id=None),
    message(9, "//an empty id is one", message_id=""),
    message(9, "//an empty id is one", message_id=""),
    message(10, "//another id", message_id="M2"),
]
STORED = [
    message(2, "//stored"),
    message(2, "//stored", attempt=2),
    message(4, "//stored"),
    message(5, "//stored", instance_name="far"),
    message(6, "//stored"),
    message(11, "//stored"),
]
TWICE = {("hub", "m3"): False, ("hub", ""): False}
FOUND = {**TWICE, ("hub", "m2"): True, ("hub", "m4"): True}


def _stored_by_key(doubled: JoinSide | None) -> dict[tuple[str, str], bool]:
    assert doubled is not None
    rows = rows_of(doubled.rows)
    stored = {(row["instance_name"], row["message_id"]): row["is_stored"] for row in rows}
    assert len(stored) == len(rows)
    return stored


def test_doubled_keys_of_new_messages(spark: SparkSession) -> None:
    new, stored = frame_of(spark, NEW, MESSAGES), frame_of(spark, STORED, RESOLVED_ROUTES)
    with FrameCache() as frame_cache:
        budget = BroadcastBudget(1_000_000)
        # The second number makes a bitmap exclude most stored rows first.
        for count in (None, 60_000):
            assert _stored_by_key(duplicates.find_doubles(new, stored, frame_cache, budget, count)) == FOUND
        assert _stored_by_key(duplicates.find_doubles(new, None, frame_cache, budget)) == {
            **TWICE,
            ("hub", "m4"): False,
        }
        assert duplicates.find_doubles(new.limit(1), stored, frame_cache, budget) is None


@pytest.mark.parametrize("count", [10, 60_000])
def test_rows_by_their_hash(spark: SparkSession, count: int) -> None:
    """A row is selected only if all 64 bits are equal, with and without a bitmap."""
    hashes = [2**63 - 1, -(2**63), -1, 0, 65_536, *(bit << 58 for bit in range(-32, 32))]
    with_others = {one ^ other for one in hashes for other in (0, -(2**63), *(1 << bit for bit in range(63)))}
    rows = spark.createDataFrame([(one,) for one in with_others], "value bigint")
    side = side_of(spark.createDataFrame([(one,) for one in hashes], "hash bigint"), fits=True)
    selected = select_by_hash(rows, F.col("value"), side, count)
    assert selected.columns == ["value"]
    assert {row["value"] for row in rows_of(selected)} == set(hashes)
    assert ("NestedLoop" in printed_plan(selected)) == (count == 60_000)


def test_duplicates_within_a_distance(spark: SparkSession) -> None:
    """A stored row further than the distance from the first or last message is not a duplicate."""
    new = [
        message(n, "//new", enqueue_time=f"2026-01-{day}T12:00:00Z")
        for n, day in ((1, 10), (2, 11), (3, 12), (4, 12))
    ]
    times = {1: "09T12:00:00", 2: "09T11:59:59.999999", 3: "13T12:00:00", 4: "13T12:00:00.000001"}
    stored = [message(n, "//stored", enqueue_time=f"2026-01-{time}Z") for n, time in times.items()]
    with FrameCache() as frame_cache:
        rows = frame_of(spark, new, MESSAGES)
        near = select_near(frame_of(spark, stored, RESOLVED_ROUTES), rows, timedelta(days=1))
        found = _stored_by_key(duplicates.find_doubles(rows, near, frame_cache, BroadcastBudget(1_000_000)))
        assert found == {("hub", "m1"): True, ("hub", "m3"): True}
        nothing = frame_of(spark, [message(1, "//new", enqueue_time=None)], MESSAGES)
        assert select_near(near, nothing, timedelta(days=1)).count() == 0
