"""The tables made from messages are measured before joins. Runs over the limit broadcast none and stay correct."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.delta import spark_tables
from routing.delta.opening import TableOpener
from routing.runs.pipeline import spark_engine
from routing.runs.running import run_by
from routing.schemas import MESSAGES
from routing.tables.cached_frames import BroadcastBudget, FrameCache, FrameLimits
from tests.imports import rows_at
from tests.plans import broadcast_tables
from tests.random_estates import RUN_TIMES, SEED, Row, assert_runs_agree
from tests.reference.estates import draw_estates, joined
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Columns of the tables that are made from messages.
OF_MESSAGES = {"message_id", "requests", "choices"}
NAMES = ["//short", "//" + "n" * 1_000_000, None]


def _names(spark: SparkSession, names: list[str | None]) -> DataFrame:
    return spark.createDataFrame([(n, name) for n, name in enumerate(names)], "number bigint, name string")


def test_a_side_has_the_size_of_its_texts(spark: SparkSession) -> None:
    short, long = _names(spark, NAMES[:1]), _names(spark, NAMES)
    narrow = BroadcastBudget(1_000_000)
    assert narrow.join_side("names", short).join_hint == "broadcast"
    assert narrow.notes == []
    assert narrow.join_side("names", long).join_hint == "shuffle_hash"
    (note,) = narrow.notes
    assert note.startswith("names are over broadcast_limit (1000")
    assert note.endswith("both sides are shuffled to join them (shuffled hash join)")
    assert BroadcastBudget(1_100_000).join_side("names", long).fits
    # If a task would hold too much of a side, the join sorts instead.
    small_tasks = BroadcastBudget(1_000_000, task_bytes=500_000)
    assert small_tasks.join_side("names", long).join_hint == "merge"
    assert small_tasks.notes[0].endswith("(sort-merge join)")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    assert small_tasks.join_side("names", long).join_hint == "shuffle_hash"
    spark.conf.set("spark.sql.shuffle.partitions", "1")


def test_nested_values_count_towards_the_broadcast_limit(spark: SparkSession) -> None:
    inside = spark.range(1).selectExpr("array(named_struct('name', repeat('n', 100000))) AS requests")
    assert not BroadcastBudget(100_000).join_side("requests", inside).fits
    assert BroadcastBudget(101_000).join_side("requests", inside).fits


def test_the_number_of_rows_may_be_enough(spark: SparkSession) -> None:
    """Rows are not read if there are none, or too many to fit."""
    failing = spark.range(1).selectExpr("CAST(raise_error('read') AS string) AS name")
    few = BroadcastBudget(1_000)
    assert few.join_side("rows", failing, count=0).fits
    assert few.join_side("rows", failing, count=10).join_hint == "merge"
    assert len(few.notes) == 1
    with pytest.raises(Exception, match="read"):
        few.join_side("rows", failing, count=1)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[DataFrame]:
    """Record every frame that a run keeps or writes, in order."""
    seen: list[DataFrame] = []
    keep, keep_counted, hold = FrameCache.keep, FrameCache.keep_counted, FrameCache.hold
    put = spark_tables.put

    # The plan of rows that the driver holds would not show their source.
    def keep_others(self: FrameCache, small: DataFrame, most_rows: int | None = None) -> DataFrame:
        seen.append(small)
        return small if {*MESSAGES.names} <= {*small.columns} else keep(self, small, most_rows)

    def keep_counted_others(
        self: FrameCache, small: DataFrame, most_rows: int | None = None
    ) -> tuple[DataFrame, int]:
        seen.append(small)
        is_of_messages = {*MESSAGES.names} <= {*small.columns}
        return (small, small.count()) if is_of_messages else keep_counted(self, small, most_rows)

    def hold_others(self: FrameCache, rows: DataFrame) -> DataFrame:
        return rows if OF_MESSAGES & {*rows.columns} else hold(self, rows)

    def watch_put(rows: DataFrame, *arguments: Any) -> None:
        seen.append(rows)
        put(rows, *arguments)

    monkeypatch.setattr(FrameCache, "keep", keep_others)
    monkeypatch.setattr(FrameCache, "keep_counted", keep_counted_others)
    monkeypatch.setattr(FrameCache, "hold", hold_others)
    monkeypatch.setattr(spark_tables, "put", watch_put)
    return seen


@pytest.mark.long
def test_runs_over_the_limit_agree(
    spark: SparkSession, tmp_path: Path, plans: list[DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full run and two incremental ones equal the tests' own resolver, with hashed and then sorted sides."""
    tables = joined(draw_estates(random.Random(SEED), 6, 40))
    first, *others = (tables["messages"][number::3] for number in range(3))
    # A full run does not look for duplicate ids.
    ids = Counter((row.get("instance_name"), row.get("message_id")) for row in first)
    first = [row for row in first if ids[row.get("instance_name"), row.get("message_id")] == 1]
    inputs, out = save_estate({**tables, "messages": []}, tmp_path / "in", 1), tmp_path / "out"
    of_messages = [inputs / "messages", inputs / "route_requests"]
    of_messages += [out / key for key in ("resolved_routes", "new_route_requests", "pending_messages")]
    folders = [str(folder) for folder in of_messages]
    notes = []

    def run(number: int, part: list[Row], now: datetime) -> dict[str, list[Row]]:
        # In the last run, a task may hold no row of a side.
        limits = FrameLimits(task_bytes=0) if number == 2 else FrameLimits()
        save_estate({"messages": part}, inputs, files=1)
        mode = "incremental" if number else "full"
        settings = ("resolve.broadcast_limit=1B", f"resolve.mode={mode}")
        pending = f"output.pending_messages={out / 'pending_messages'}"
        config = config_of(inputs, out, pending, *settings)
        # The run would release its stored frames, and their plans would no longer show the source.
        with monkeypatch.context() as patch:
            patch.setattr(FrameCache, "release", lambda self: None)
            engine = spark_engine(TableOpener.of_session(spark), limits)
            done = run_by(engine, config, run_id=f"run{number}", now=now if number else None)
        notes.append(" | ".join(done.notes))
        assert plans
        assert [broadcast_tables(frame, folders) for frame in plans] == [set()] * len(plans)
        plans.clear()
        keys = ("resolved_routes", "new_route_requests", "rejected_messages", "pending_messages")
        return {key: rows_at(config.output[key]) for key in (keys if number else keys[:3])}

    expected = assert_runs_agree(run, tables, [first, *others], RUN_TIMES)
    spark.catalog.clearCache()
    assert max(row["attempt"] for row in expected.resolved_routes) == 2
    assert any("DUPLICATE_MESSAGE_ID" in row["reasons"] for row in expected.rejected_messages)
    always = ("the route requests on record", "the messages that open a route request", "the routing plan")
    later = (
        "the doubled message ids",
        "the rows of route_requests",
        "the route requests of earlier runs",
        "the times of messages that are tried again",
    )
    for number, note in enumerate(notes):
        whats = always if number == 0 else (*always, *later)
        assert [what for what in whats if f"{what} are over" not in note and f"{what} takes" not in note] == []
    assert "the messages that the last run delayed are over" in notes[1]
    assert "the messages that the last run delayed" not in notes[2]
