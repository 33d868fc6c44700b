"""Random estates in all commands without Spark, against the tests' own resolver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any

import pyarrow
import pytest

from routing.engines.arrow.traced_batches import ArrowPaths
from routing.plan.planner import MOST_KEYS
from routing.rules.timeline import micros_of
from routing.schemas import INPUTS, RESOLVED_ROUTES
from routing.tables.table_columns import TableColumns
from routing.views.page.facts import NeverPicked
from routing.views.report.dialog_balance import (
    ChoiceScope,
    InstanceChoice,
    count_dialogs,
    find_balances,
    find_choices,
    spans_of,
)
from tests.frames import Tables, arrow, arrow_of
from tests.random_estates import (
    AS_OF,
    ESTATES,
    Decider,
    Row,
    assert_agrees,
    assert_compared,
    assert_few_agree,
    assert_paths_part_everywhere,
    assert_same,
    assert_traces,
    compare_sides,
    draw_batch,
    draw_network_sides,
    draw_sides,
    networks,
)
from tests.reference.dialog_hash import picked
from tests.reference.estate_words import MOMENTS, NOON
from tests.reference.paths import path_rows
from tests.unit.explained_rows import ExplainDecider
from tests.unit.judged_messages import decide_by_planner
from tests.unit.test_local_engine import decide_locally

# Compared by both engines: Spark's test has more of them.
FEW = 15
TIMES = pytest.mark.parametrize("as_of", [None, AS_OF], ids=["own time", "as_of"])


@TIMES
@pytest.mark.parametrize("decider", [decide_by_planner, decide_locally], ids=["planner", "local engine"])
def test_random_estates_agree(decider: Decider, as_of: datetime | None) -> None:
    assert_agrees(decider, as_of)


@TIMES
def test_explanations_agree(as_of: datetime | None) -> None:
    decider = ExplainDecider()
    assert_few_agree(decider, as_of, is_apart=True)
    assert {step for step, _ in decider.steps} == {None, 0, 1, 2, 3, 4, 5, 6, 7}
    assert {step for step, came_back in decider.steps if came_back} >= {0, 1, 2, 5, 7}
    assert decider.items >= {"ID", "OWN_ADDRESS", "DATABASE", "REQUEST"}


def test_competing_ids_in_a_report_equal_those_of_dialogs() -> None:
    """The report lists choices without deciding messages. The dialog hash picks one of these ids."""
    seen: Counter[str] = Counter()
    for tables, expected in draw_batch(None).each:
        choices = cache(partial(find_instance_choices, tables))
        for row in balanced_rows(expected.resolved_routes):
            choice = choices(row["decided_at"]).get(scope_of(row))
            # Else all routes of the scope have one id.
            if choice is not None:
                ids = sorted(choice.owners.keys() | coming_back(choice.never))
                assert row["broker_instance"] == picked(ids, row["conversation_id"]), row
                seen.update([f"{len(ids)} ids", *(one.why for one in choice.never)])
    assert seen["2 ids"] > ESTATES / 8, seen
    assert {"EXPIRED", "NOT_YET_VALID", "DOUBLED"} <= seen.keys(), seen


def test_dialogs_of_a_balance_equal_those_in_its_time() -> None:
    told = 0
    for tables, expected in draw_batch(None).each:
        rows = expected.resolved_routes
        last = max(row["decided_at"] for row in rows)
        choices = find_instance_choices(tables, last).values()
        dialogs = count_dialogs(arrow_of(rows, RESOLVED_ROUTES), spans_of(choices))
        for one in find_balances(choices, dialogs):
            scope = ChoiceScope(one.instance, one.database, one.service)
            since, until = (-(2**63) if one.since is None else one.since, one.until or 2**63)
            got = {
                (row["broker_instance"], row["conversation_id"])
                for row in balanced_rows(rows)
                if scope_of(row) == scope and since <= micros_of(row["decided_at"]) < until
            }
            counts = Counter(broker for broker, _ in got if broker not in coming_back(one.never))
            assert {pick.broker_instance: pick.dialogs for pick in one.picks if pick.dialogs} == counts
            # Nothing but what competes was picked.
            assert [pick for pick in one.picks if pick.dialogs and not pick.expected] == []
            told += len(counts)
    assert told > ESTATES / 3, told


def find_instance_choices(tables: Tables, at: datetime) -> dict[ChoiceScope, InstanceChoice]:
    """The report's choices as of a time."""
    keys = ("instances", "databases", "services", "routes")
    columns = {key: TableColumns.of_rows(tables[key], INPUTS[key]) for key in keys}
    return {choice.scope: choice for choice in find_choices(columns, micros_of(at))}


def balanced_rows(rows: list[Row]) -> list[Row]:
    """Return the messages with an id that the dialog hash picked."""
    return [row for row in rows if row["matching_step"] == 3]


def scope_of(row: Row) -> ChoiceScope:
    """Where the last search of a message was."""
    searched = "msdb" if row["database_name"] is None or row["rerouted_from"] else row["database_name"]
    return ChoiceScope(row["instance_name"], searched, row["to_service_name"])


def coming_back(never: Sequence[NeverPicked]) -> set[str]:
    """Return the ids of dialogs with messages that come back. These are not counted."""
    return {one.broker_instance for one in never if one.why == "COMES_BACK"}


def trace_locally(tables: Tables, as_of: datetime | None, *, most_keys: int = MOST_KEYS) -> list[Row]:
    """The rows of ``message_paths`` of Arrow's tables."""
    paths = ArrowPaths.of(arrow(tables), as_of, most_keys=most_keys)
    rows = [row for batch in paths.tables() for row in batch.to_pylist()]
    assert (paths.read, paths.traced) == (len(tables["messages"]), len(rows))
    return rows


@TIMES
def test_paths_agree(as_of: datetime | None) -> None:
    assert_traces(trace_locally, as_of)


def in_small_parts(tables: Tables) -> dict[str, Any]:
    """Return Arrow tables with messages in small batches."""
    arrow_tables = arrow(tables)
    messages = arrow_tables["messages"].to_batches(max_chunksize=30)
    return {**arrow_tables, "messages": pyarrow.Table.from_batches(messages)}


def test_paths_of_messages_in_small_parts_agree() -> None:
    few = networks(4)
    rows = [row for part in ArrowPaths.of(in_small_parts(few), None).tables() for row in part.to_pylist()]
    assert_same(rows, path_rows(few), "message_paths")


def test_messages_in_small_parts_differ_as_two_runs_do() -> None:
    sides = draw_sides(2, MOMENTS[5], MOMENTS[5], count=FEW)
    assert_compared(compare_sides(in_small_parts, sides), sides)


def test_forgotten_paths_are_decided_again() -> None:
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


@pytest.mark.parametrize(("seed", "first", "second"), [(2, 5, 5), (3, 1, 6)])
def test_paths_of_two_sides_differ_as_two_runs_do(seed: int, first: int, second: int) -> None:
    sides = draw_network_sides(seed, MOMENTS[first], MOMENTS[second])
    assert_compared(compare_sides(arrow, sides), sides)
    if seed == 2:
        assert_paths_part_everywhere(sides)


def test_a_configuration_does_not_differ_from_itself() -> None:
    sides = draw_sides(1, NOON, NOON, is_altered=False, count=FEW)
    done = compare_sides(arrow, sides)
    assert (done.changed, done.worse) == (0, 0)
    assert [len(rows) for rows in (done.counts, done.keys, done.routes, done.findings)] == [0, 0, 0, 0]
    assert_compared(done, sides)
