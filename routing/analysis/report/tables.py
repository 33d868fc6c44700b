"""A table as the page's template shows it: words all through, bounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from routing.analysis.report.cells import size_of
from routing.analysis.report.coded import shown

SHOWN = 200
"""Rows of a list that are shown; the others are counted."""
MOST_BYTES = 150_000
"""So long may the texts of a table be: reached by names that nobody gives."""
LONGEST_TEXT = 400
NUMBER, WORD, OUTCOME, NAME, TEXT = "number", "word", "outcome", "name", "text"
"""Kinds of columns by which they look: a word is never broken, names and texts are given room."""
Heads = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Table:
    """``heads`` are (words, kind); ``more`` rows are not among these. ``nothing`` is said where there are none."""

    id: str
    caption: str
    heads: Heads
    rows: Sequence[Sequence[str]]
    more: int = 0
    nothing: str = "none"


def table(name: str, caption: str, heads: Heads, rows: Iterable[Sequence[Any]], nothing: str = "none") -> Table:
    """A table of any values, the first `SHOWN` of them, or as many as `MOST_BYTES` hold."""
    every = list(rows)
    shown = first_of([words(value) for value in row] for row in every[:SHOWN])
    return Table(name, caption, heads, shown, len(every) - len(shown), nothing)


def first_of(rows: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """The first rows, as many as a table has room for, and one at least."""
    found: list[Sequence[str]] = []
    room = MOST_BYTES
    for row in rows:
        room -= sum(map(size_of, row))
        if found and room < 0:
            break
        found.append(row)
    return found


def words(value: Any) -> str:
    """A value as a cell of a table has it."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return shown(value, LONGEST_TEXT)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
