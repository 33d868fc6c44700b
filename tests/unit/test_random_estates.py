"""Random estates, decided, traced and compared without Spark: every row is that of the tests' own resolver."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow
import pytest

from routing.engines.arrow.traced_batches import ArrowPaths
from routing.plan.planner import MOST_KEYS
from tests.frames import Tables, arrow
from tests.random_estates import (
    AS_OF,
    TRACED_AS_OF,
    Decider,
    Row,
    assert_agrees,
    assert_compared,
    assert_same,
    assert_traces,
    compare_sides,
    draw_sides,
    networks,
)
from tests.reference.estate_words import MOMENTS, NOON
from tests.reference.paths import path_rows
from tests.unit.judged_messages import decide_by_planner
from tests.unit.test_local_engine import decide_locally

# Compared by both engines: Spark's test has more of them.
FEW = 15
_DECIDERS = [
    pytest.param(decide_by_planner, False, id="planner"),
    pytest.param(decide_locally, True, id="local engine"),
]


@pytest.mark.parametrize("as_of", [None, AS_OF], ids=["own time", "as_of"])
@pytest.mark.parametrize(("decider", "is_whole"), _DECIDERS)
def test_random_estates_agree(decider: Decider, is_whole: bool, as_of: datetime | None) -> None:
    assert_agrees(decider, as_of, is_whole=is_whole)


def trace_locally(tables: Tables, as_of: datetime | None, *, most_keys: int = MOST_KEYS) -> list[Row]:
    """The rows of ``message_paths`` of Arrow's tables."""
    paths = ArrowPaths.of(arrow(tables), as_of, most_keys=most_keys)
    rows = [row for batch in paths.tables() for row in batch.to_pylist()]
    assert (paths.read, paths.traced) == (len(tables["messages"]), len(rows))
    return rows


@pytest.mark.parametrize("as_of", [None, TRACED_AS_OF], ids=["own time", "as_of"])
def test_paths_agree(as_of: datetime | None) -> None:
    assert_traces(trace_locally, as_of)


def in_small_parts(tables: Tables) -> dict[str, Any]:
    """Arrow's tables, whose messages are read few at a time."""
    arrow_tables = arrow(tables)
    messages = arrow_tables["messages"].to_batches(max_chunksize=7)
    return {**arrow_tables, "messages": pyarrow.Table.from_batches(messages)}


def test_paths_of_messages_in_small_parts_agree() -> None:
    few = networks(4)
    rows = [row for part in ArrowPaths.of(in_small_parts(few), None).tables() for row in part.to_pylist()]
    assert_same(rows, path_rows(few), "message_paths")


def test_messages_in_small_parts_differ_as_two_runs_do() -> None:
    sides = draw_sides(2, MOMENTS[5], MOMENTS[5], count=FEW)
    assert_compared(compare_sides(in_small_parts, sides), sides)


def test_paths_that_are_forgotten_are_found_again() -> None:
    few = networks(4)
    assert_same(trace_locally(few, None, most_keys=2), path_rows(few), "message_paths")


@pytest.mark.parametrize("seed", range(3))
def test_two_configurations_differ_as_two_runs_do(seed: int) -> None:
    sides = draw_sides(seed, MOMENTS[2 * seed + 1], MOMENTS[2 * seed + 1], count=FEW)
    assert len(sides.changed) > 100
    assert_compared(compare_sides(arrow, sides), sides)


@pytest.mark.parametrize(("first", "second"), [(0, 4), (4, 1), (3, 7)])
def test_two_times_differ_as_two_runs_do(first: int, second: int) -> None:
    sides = draw_sides(first, MOMENTS[first], MOMENTS[second], is_altered=False, count=FEW)
    assert len(sides.changed) > 50
    assert_compared(compare_sides(arrow, sides), sides)


def test_a_configuration_does_not_differ_from_itself() -> None:
    sides = draw_sides(1, NOON, NOON, is_altered=False, count=FEW)
    done = compare_sides(arrow, sides)
    assert (done.changed, done.worse) == (0, 0)
    assert [len(rows) for rows in (done.counts, done.keys, done.routes, done.findings)] == [0, 0, 0, 0]
    assert_compared(done, sides)
