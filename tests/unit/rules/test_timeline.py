"""The times between which the routes in force stay the same: rule book, section 0."""

from __future__ import annotations

import pytest

from routing.rules.timeline import spans
from tests.unit.rules.made import names, route

Bounds = dict[str, tuple[int | None, int | None]]
Span = tuple[int | None, int | None, str]

# Routes by name with their bounds; the intervals, each with the names in force.
_TABLE: list[tuple[Bounds, list[Span]]] = [
    ({}, [(None, None, "")]),
    ({"a": (None, None)}, [(None, None, "a")]),
    ({"a": (3, None)}, [(None, 3, ""), (3, None, "a")]),
    ({"a": (None, 3)}, [(None, 3, "a"), (3, None, "")]),
    ({"a": (3, 5)}, [(None, 3, ""), (3, 5, "a"), (5, None, "")]),
    # One version after another, at the same moment; and with a gap.
    ({"a": (None, 3), "b": (3, None)}, [(None, 3, "a"), (3, None, "b")]),
    (
        {"a": (1, 3), "b": (5, 7)},
        [(None, 1, ""), (1, 3, "a"), (3, 5, ""), (5, 7, "b"), (7, None, "")],
    ),
    # In the order given, whichever began first.
    (
        {"a": (4, 8), "b": (2, 6), "c": (None, None)},
        [(None, 2, "c"), (2, 4, "bc"), (4, 6, "abc"), (6, 8, "ac"), (8, None, "c")],
    ),
    ({"a": (0, 1)}, [(None, 0, ""), (0, 1, "a"), (1, None, "")]),
]


@pytest.mark.parametrize(("bounds", "expected"), _TABLE)
def test_the_intervals_of_one_table(bounds: Bounds, expected: list[Span]) -> None:
    routes = [route(name, valid_from=start, valid_to=end) for name, (start, end) in bounds.items()]
    intervals = [(s.valid_from, s.valid_to, "".join(map(str, names(s.tables[0])))) for s in spans(routes)]
    assert intervals == expected


def test_the_intervals_of_two_tables() -> None:
    own_routes = [route("a", valid_to=5), route("b", valid_from=2)]
    returned = [route("x", valid_from=5, lifetime=9)]
    assert [(s.valid_from, s.valid_to, *map(names, s.tables)) for s in spans(own_routes, returned)] == [
        (None, 2, ["a"], []),
        (2, 5, ["a", "b"], []),
        (5, 9, ["b"], ["x"]),
        (9, None, ["b"], []),
    ]


def test_without_a_table_there_is_one_interval() -> None:
    assert [(s.valid_from, s.valid_to, s.tables) for s in spans()] == [(None, None, ())]
