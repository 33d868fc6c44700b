"""The lines of a path: one flat row each, so that two explanations can be compared line by line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from routing.schemas import EXPLAINED_STEPS
from routing.tables.times import moment_of

Line = dict[str, Any]
# How many routes, databases or ids one list shows; the rest are counted.
SHOWN = 20
_TIMES = ("valid_from", "valid_to", "at")


def line(item: str, finding: str, **values: Any) -> Line:
    """Return one line; fields of `EXPLAINED_STEPS` that are not given are null, times are microseconds."""
    return {"item": item, "finding": finding, **values}


def number_lines(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Add missing columns to lines, as rows of `EXPLAINED_STEPS`, and number them from 1."""
    return tuple({**_complete(each), "position": number} for number, each in enumerate(lines, start=1))


def _complete(partial_line: Line) -> Line:
    row = {name: partial_line.get(name) for name in EXPLAINED_STEPS.names}
    return {
        **row,
        **{name: moment_of(partial_line[name]) for name in _TIMES if partial_line.get(name) is not None},
    }
