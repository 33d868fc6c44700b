"""Two sides compared: every changed message is one of which two runs of the tests' own resolver differ."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from routing.analysis.diff.diffing import Diff, diff
from tests.frames import arrow
from tests.reference.altered import altered
from tests.reference.differing import both, has_changed
from tests.reference.estate_words import MOMENTS, NOON
from tests.reference.estates import Tables, joined, random_estate

ESTATES, MESSAGES = 40, 40
SETTINGS = ("routes", "databases", "services", "instances", "route_requests")
ENDS = ("outcome_before", "reason_before", "outcome_after", "reason_after")
KEY = ("instance_name", "database_name", "to_service_name")
EXAMPLE = ("instance_name", "message_id", "conversation_id")
RANKS = {"DELAYED": 1, "DROPPED": 2, "REJECTED": 3}
Row = Mapping[str, Any]


def random_sides(seed: int) -> tuple[Tables, Tables]:
    """Many random estates, and the same altered, some in many ways and some in none."""
    rng = random.Random(seed)
    before = [random_estate(rng, MESSAGES, f"e{number}/") for number in range(ESTATES)]
    return joined(before), joined([altered(rng, estate, rng.randint(0, 4)) for estate in before])


def compared(before: Tables, after: Tables, **options: Any) -> Diff:
    tables = {key: rows for key, rows in arrow(after).items() if key in SETTINGS}
    return diff(arrow(before), tables, with_messages=True, **options)


def changed_rows(before: Tables, after: Tables, at: datetime, later: datetime | None = None) -> list[Row]:
    """What is to be found, in the columns of the table of changed messages."""
    return [row for row in both(before, after, (at, later or at)) if has_changed(row)]


def counted(rows: Iterable[Row], names: Sequence[str]) -> Counter[tuple[Any, ...]]:
    """How often each combination of values stands there."""
    return Counter(tuple(row[name] for name in names) for row in rows)


def is_worse(row: Row) -> bool:
    return RANKS.get(row["outcome_after"], 0) > RANKS.get(row["outcome_before"], 0)


def first_three(rows: Iterable[Row], ends: tuple[Any, ...]) -> list[dict[str, Any]]:
    """The examples of a change from an outcome and reason to others."""
    mine = [{n: row[n] for n in EXAMPLE} for row in rows if tuple(row[name] for name in ENDS) == ends]
    mine.sort(key=lambda row: [(row[name] is not None, row[name] or "") for name in EXAMPLE])
    return mine[:3]


def assert_same(done: Diff, expected: Sequence[Row]) -> None:
    """Row by row, each as often as it is expected."""
    messages: Any = done.messages
    names = list(expected[0])
    assert sorted(messages.schema.names) == sorted(names)
    assert counted(messages.to_pylist(), names) == counted(expected, names)


@pytest.mark.parametrize("seed", range(3))
def test_two_configurations(seed: int) -> None:
    before, after = random_sides(seed)
    as_of = MOMENTS[2 * seed + 1]
    expected = changed_rows(before, after, as_of)
    assert len(expected) > 150
    done = compared(before, after, at=as_of)
    assert_same(done, expected)
    assert done.compared == len(before["messages"])
    assert done.changed == len(expected)
    assert done.worse == sum(map(is_worse, expected)) > 0
    assert {tuple(row[n] for n in ENDS): row["messages"] for row in done.counts} == counted(expected, ENDS)
    for row in done.counts:
        assert row["examples"] == first_three(expected, tuple(row[name] for name in ENDS))
    names = (*KEY, *(name for name in expected[0] if name.endswith(("_before", "_after"))))
    groups = {tuple(row[name] for name in names): row["messages"] for row in done.keys}
    # Empty text is no database: such a message arrived over the network.
    arrivals = [{**row, "database_name": row["database_name"] or None} for row in expected]
    assert groups == counted(arrivals, names)
    assert len(groups) == len(done.keys)


@pytest.mark.parametrize(("first", "second"), [(0, 4), (4, 1), (3, 7)])
def test_two_times_of_the_same_tables(first: int, second: int) -> None:
    rng = random.Random(first)
    tables = joined([random_estate(rng, MESSAGES, f"e{number}/") for number in range(ESTATES)])
    expected = changed_rows(tables, tables, MOMENTS[first], MOMENTS[second])
    assert len(expected) > 60
    done = diff(arrow(tables), MOMENTS[second], at=MOMENTS[first], with_messages=True)
    assert_same(done, expected)
    assert (done.before.moment, done.after.moment) == (MOMENTS[first], MOMENTS[second])


def test_a_configuration_beside_itself() -> None:
    tables, _ = random_sides(1)
    for done in (compared(tables, tables, at=NOON), diff(arrow(tables), NOON, at=NOON, with_messages=True)):
        messages: Any = done.messages
        assert (len(messages), done.changed, done.worse) == (0, 0, 0)
        assert [len(rows) for rows in (done.counts, done.keys, done.routes, done.findings)] == [0, 0, 0, 0]
        assert done.compared == len(tables["messages"])
