"""Two sides compared: every changed message is one of which two runs of the tests' own resolver differ."""

from __future__ import annotations

import random
from typing import Any

import pytest

from routing.analysis.diff.diffing import Diff, diff
from tests.edited_estates import EDITS, edited
from tests.expected_changes import changed_rows, counted, first_three, is_worse
from tests.frames import arrow
from tests.reference.estate_words import MOMENTS, NOON
from tests.reference.estates import Tables, joined, random_estate

ESTATES, MESSAGES = 40, 40
SETTINGS = ("routes", "databases", "services", "instances", "route_requests")
ENDS = ("outcome_before", "reason_before", "outcome_after", "reason_after")
KEY = ("instance_name", "database_name", "to_service_name")


def estates(seed: int) -> tuple[Tables, Tables]:
    """Many random estates, and the same after random edits."""
    rng = random.Random(seed)
    before = [random_estate(rng, MESSAGES, f"e{number}/") for number in range(ESTATES)]
    return joined(before), joined([edited(rng, estate) for estate in before])


def compared(before: Tables, after: Tables, **options: Any) -> Diff:
    tables = {key: rows for key, rows in arrow(after).items() if key in SETTINGS}
    return diff(arrow(before), tables, with_messages=True, **options)


@pytest.mark.parametrize("seed", range(2))
def test_two_configurations(seed: int) -> None:
    before, after = estates(seed)
    as_of = MOMENTS[2 * seed + 1]
    expected = changed_rows(before, after, as_of)
    assert len(expected) > 150
    done = compared(before, after, at=as_of)
    assert done.messages is not None
    assert counted(done.messages.to_pylist()) == counted(expected)
    assert done.compared == len(before["messages"])
    assert done.changed == len(expected)
    assert done.worse == sum(map(is_worse, expected)) > 0
    assert {tuple(row[n] for n in ENDS): row["messages"] for row in done.counts} == counted(expected, ENDS)
    for row in done.counts:
        assert row["examples"] == first_three(expected, tuple(row[name] for name in ENDS))
    decided = tuple(name for name in expected[0] if name.endswith(("_before", "_after")))
    groups = {tuple(row[n] for n in (*KEY, *decided)): row["messages"] for row in done.keys}
    assert groups == counted(expected, (*KEY, *decided))
    assert len(groups) == len(done.keys)


@pytest.mark.parametrize("edit", EDITS)
def test_one_kind_of_edit(edit: Any) -> None:
    rng = random.Random(7)
    before = [random_estate(rng, MESSAGES, f"e{number}/") for number in range(10)]
    after = [{key: list(rows) for key, rows in estate.items()} for estate in before]
    for estate in after[1:]:
        edit(rng, estate)
    expected = changed_rows(joined(before), joined(after), MOMENTS[4])
    assert expected
    done = compared(joined(before), joined(after), at=MOMENTS[4])
    assert done.messages is not None
    assert counted(done.messages.to_pylist()) == counted(expected)


@pytest.mark.parametrize(("first", "second"), [(0, 4), (4, 1), (3, 7)])
def test_two_times_of_the_same_tables(first: int, second: int) -> None:
    rng = random.Random(first)
    tables = joined([random_estate(rng, MESSAGES, f"e{number}/") for number in range(ESTATES)])
    expected = changed_rows(tables, tables, MOMENTS[first], MOMENTS[second])
    assert len(expected) > 100
    done = diff(arrow(tables), MOMENTS[second], at=MOMENTS[first], with_messages=True)
    assert done.messages is not None
    assert counted(done.messages.to_pylist()) == counted(expected)
    assert (done.before.moment, done.after.moment) == (MOMENTS[first], MOMENTS[second])


def test_a_configuration_beside_itself() -> None:
    tables, _ = estates(1)
    for done in (compared(tables, tables, at=NOON), diff(arrow(tables), NOON, at=NOON, with_messages=True)):
        assert done.messages is not None
        assert (len(done.messages), done.changed, done.worse) == (0, 0, 0)
        assert [len(rows) for rows in (done.counts, done.keys, done.routes, done.findings)] == [0, 0, 0, 0]
        assert done.compared == len(tables["messages"])
