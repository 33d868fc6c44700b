"""How a finding is made: one maker of all, and how names and times read in its message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from routing.features.lint.catalogue import BY_CODE
from routing.tables.row_faults import phrase, time_text
from routing.tables.times import SECOND

Place = tuple["str | None", "str | None"]
"""Instance and database."""
_SHOWN = 5


class LintFinding(NamedTuple):
    """The parts that differ between findings of a code; the rest is in the catalogue."""

    code: str
    instance_name: str | None
    database_name: str | None
    object: str | None
    message: str
    error_number: int | None


def finding(
    code: str, place: Place, object_name: str | None, sentence: str, *values: str | None, number: int | None = None
) -> LintFinding:
    """Return a finding; all findings are made here.

    ``object_name`` names a route, for example; ``sentence`` holds a ``%s`` for each value; ``number`` is the
    engine's where it depends on the row.
    """
    error_number = BY_CODE[code].error_number if number is None else number
    return LintFinding(code, *place, object_name, phrase(sentence, *values), error_number)


def list_names(names: Iterable[str]) -> str:
    """Write names as text: sorted, each once, at most five shown and the rest counted."""
    distinct = sorted(set(names))
    rest = len(distinct) - _SHOWN
    shown = ", ".join(distinct[:_SHOWN])
    return f"{shown} and {rest} more" if rest > 0 else shown


def utc(micros: int) -> str:
    """Return a time as ISO 8601 text in UTC, in whole seconds."""
    return time_text(micros // SECOND * SECOND).replace(" ", "T") + "Z"
