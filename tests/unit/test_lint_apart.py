"""Linting only the difference of two sides gives the difference of all findings, with less work."""

from __future__ import annotations

import pytest

from routing.lint import lint_estate, linting
from routing.lint.catalogue import BY_CODE
from routing.lint.linting import Moment, lint_apart, rows_of
from routing.rules.timeline import micros_of
from tests.frames import arrow
from tests.random_estates import draw_altered
from tests.reference.estate_words import NOON
from tests.reference.estates import Tables

# What the row of a route shows, whatever other rows there are.
OF_A_ROW = {"SBR003", "SBR015", "SBR016", "SBR031", "SBR032"}


def _moment(tables: Tables) -> Moment:
    now = micros_of(NOON)
    return lint_estate.columns(arrow(tables), now), now


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_changed_findings_equal_the_difference_of_all_findings(seed: int) -> None:
    first_tables, altered = draw_altered(seed, count=15)
    # Routes alone differ: then rows that are equal are not looked at.
    tables = [first_tables, {**first_tables, "routes": altered["routes"]}]
    before, after = map(_moment, tables)
    old, new = (linting.find_all(*moment) for moment in (before, after))
    gone, come = lint_apart(before, after)
    assert list(gone) == list(rows_of(old - new, BY_CODE))
    assert list(come) == list(rows_of(new - old, BY_CODE))
    assert OF_A_ROW & {row["code"] for row in gone}
    assert OF_A_ROW & {row["code"] for row in come}
