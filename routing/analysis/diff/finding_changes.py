"""Which findings of `lint` a change brings, and which it takes away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routing.analysis.diff.sides import Side
from routing.analysis.lint.catalogue import Severity
from routing.analysis.lint.linting import lint_columns
from routing.analysis.lint.options import LintSettings
from routing.schemas import FINDING_CHANGES, FINDINGS
from routing.storage.columns import Columns
from routing.storage.rows import Rows

COMES, GOES = "comes", "goes"
_WORST_FIRST = [str(severity) for severity in Severity]


def find_finding_changes(
    before: Side, after: Side, dialogs: Sequence[Columns | None], settings: LintSettings
) -> Rows:
    """The findings that one side alone has, those that come first, the worst of each first.

    Whole rows are compared: a finding that says something else goes, and comes. ``dialogs`` are, for each side,
    the rows of dialogs that can tell something at its time. Suppressed findings are left out.
    """
    if not after.differs_in(before) and not before.differs_in(after) and before.at == after.at:
        return Rows(FINDING_CHANGES, ())
    old, new = (_findings(side, rows, settings) for side, rows in zip((before, after), dialogs, strict=True))
    comes = [{"change": COMES, **row} for key, row in new.items() if key not in old]
    goes = [{"change": GOES, **row} for key, row in old.items() if key not in new]
    return Rows(FINDING_CHANGES, (*sorted(comes, key=_place), *sorted(goes, key=_place)))


def _findings(
    side: Side, dialogs: Columns | None, settings: LintSettings
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """A side's findings, by all that they say."""
    columns = {**side.settings, **({} if dialogs is None else {"dialogs": dialogs})}
    found = lint_columns(columns, side.at, settings.expiring_within_days, settings.suppress)
    return {tuple(row[name] for name in FINDINGS.names): dict(row) for row in found}


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    said = ((row[name] is not None, row[name] or "") for name in FINDINGS.names if name != "error_number")
    return (_WORST_FIRST.index(row["severity"]), *said, row["error_number"] or 0)
