"""Which findings of `lint` a change brings, and which it takes away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routing.features.diff.sides import DiffSides, OneSide
from routing.features.lint.catalogue import Severity
from routing.features.lint.lint_settings import LintSettings
from routing.features.lint.linting import lint_apart
from routing.schemas import FINDING_CHANGES, FINDINGS
from routing.tables.schema_rows import SchemaRows
from routing.tables.table_columns import TableColumns

COMES, GOES = "comes", "goes"
_WORST_FIRST = [str(severity) for severity in Severity]


def find_finding_changes(
    diff_sides: DiffSides, dialogs: Sequence[TableColumns | None], settings: LintSettings
) -> SchemaRows:
    """Return the findings that one side alone has, those that come first, the worst of each first.

    Whole rows are compared: a finding that says something else goes, and comes. ``dialogs`` are, for each side,
    the rows of dialogs that can tell something at its time. Suppressed findings are left out.
    """
    if diff_sides.is_one_time and not diff_sides.differing:
        return SchemaRows(FINDING_CHANGES, ())
    before, after = (
        (_columns(one_side, rows), one_side.at) for one_side, rows in zip(diff_sides.both, dialogs, strict=True)
    )
    finding_rows = lint_apart(before, after, settings.expiring_within_days, settings.suppress, settings.rules)
    goes, comes = (
        [{"change": change, **row} for row in rows]
        for change, rows in zip((GOES, COMES), finding_rows, strict=True)
    )
    return SchemaRows(FINDING_CHANGES, (*sorted(comes, key=_place), *sorted(goes, key=_place)))


def _columns(one_side: OneSide, dialogs: TableColumns | None) -> Mapping[str, TableColumns]:
    return {**one_side.settings, **({} if dialogs is None else {"dialogs": dialogs})}


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    column_values = ((row[name] is not None, row[name] or "") for name in FINDINGS.names if name != "error_number")
    return (_WORST_FIRST.index(row["severity"]), *column_values, row["error_number"] or 0)
