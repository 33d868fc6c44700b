"""Lint accepts rows that `resolve` refuses. It finds faults in any cell and never fails."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from routing.errors import InputError
from routing.lint.linting import LintResult, lint
from routing.schemas import INPUTS, KEYS
from tests.estate_rows import small_estate
from tests.frames import Tables, arrow
from tests.lint_drafts import NOW
from tests.reference.estates import random_estate

_TEXTS = (None, "", " ", "NULL, x", "LOCAL", "%s", "\x00", "tcp://", "\U0001f600" * 200)
_TIMES = (None, *(datetime(year, 1, 1, tzinfo=timezone.utc) for year in (1, 1969, 9999)))
_OTHER: dict[str, tuple[Any, ...]] = {
    "timestamp": _TIMES,
    "boolean": (None,),
    "int": (None, 0),
    "array<string>": (None, [], [None, "", "LOCAL", "tcp://a b"]),
}


def _linted(tables: Tables) -> LintResult:
    return lint(arrow({key: rows for key, rows in tables.items() if key in KEYS}), now=NOW)


def _spoilt(tables: Tables) -> Iterator[tuple[str, Tables]]:
    """The tables with each cell of each table's first row in turn replaced, or with rows that differ in it."""
    for key in KEYS:
        first, *rest = tables[key]
        for field in INPUTS[key]:
            rows = [{**first, field.name: value} for value in _OTHER.get(str(field.kind), _TEXTS)]
            for spoilt in rows:
                yield f"{key}.{field.name} {spoilt[field.name]!r}", {**tables, key: [spoilt, *rest]}
            yield f"{key}.{field.name} besides", {**tables, key: [*rows, *tables[key]]}


def test_no_cell_makes_lint_fail() -> None:
    # A small one: each of its first cells is linted with each of these values.
    estate = random_estate(random.Random(149), 5)
    assert all(estate[key] for key in KEYS)
    assert _codes(_linted(estate), "SBR010") == []
    refused = {what for what, tables in _spoilt(estate) if _codes(_linted(tables), "SBR010")}
    for key in KEYS:
        for field in INPUTS[key]:
            if not field.nullable:
                assert f"{key}.{field.name} None" in refused


def _codes(done: LintResult, code: str) -> list[Any]:
    return [row for row in done.findings if row["code"] == code]


@pytest.mark.parametrize("seed", range(20))
def test_findings_are_the_same_in_any_order_of_rows(seed: int) -> None:
    rng = random.Random(seed)
    tables = random_estate(rng, 20)
    mixed = {key: rng.sample(rows, len(rows)) for key, rows in tables.items()}
    assert _linted(tables) == _linted(mixed)


def test_empty_tables_have_no_findings() -> None:
    assert list(_linted({}).findings) == []


def test_a_missing_table_and_a_missing_column() -> None:
    tables = arrow(small_estate())
    with pytest.raises(InputError, match="input tables are missing: routes, services"):
        lint({key: tables[key] for key in ("databases", "instances")}, now=NOW)
    with pytest.raises(InputError, match="table routes has 1 column fault: required column address is missing"):
        lint({**tables, "routes": tables["routes"].drop_columns("address")}, now=NOW)
