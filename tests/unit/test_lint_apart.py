"""What lint finds on one side of a change alone is the difference of all findings, though it looks at less."""

from __future__ import annotations

from collections import Counter

from routing.features.lint import lint_tables, linting
from routing.features.lint.catalogue import BY_CODE
from routing.features.lint.linting import Moment, lint_apart, rows_of
from routing.tables.times import micros_of
from tests.frames import arrow
from tests.random_estates import draw_sides
from tests.reference.estate_words import NOON
from tests.reference.estates import Tables

SEEDS = range(2)
# What the row of a route shows, whatever other rows there are.
OF_A_ROW = {"SBR003", "SBR015", "SBR016", "SBR031", "SBR032"}


def _moment(tables: Tables) -> Moment:
    now = micros_of(NOON)
    return lint_tables.columns(arrow(tables), now), now


def test_it_is_the_difference_of_all_findings() -> None:
    gone: Counter[str] = Counter()
    come: Counter[str] = Counter()
    for seed in SEEDS:
        sides = draw_sides(seed, NOON, NOON)
        # Routes alone differ: then rows that are equal are not looked at.
        tables = [sides.before, {**sides.before, "routes": sides.after["routes"]}]
        before, after = map(_moment, tables)
        old, new = (linting.find_all(*moment) for moment in (before, after))
        first, second = lint_apart(before, after)
        assert list(first) == list(rows_of(old - new, BY_CODE)), seed
        assert list(second) == list(rows_of(new - old, BY_CODE)), seed
        gone.update(row["code"] for row in first)
        come.update(row["code"] for row in second)
    assert OF_A_ROW & gone.keys()
    assert OF_A_ROW & come.keys()
