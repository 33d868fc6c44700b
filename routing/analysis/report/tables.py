"""A table as the page's template shows it: words all through, bounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from routing.analysis.report.coded import shown

SHOWN = 200
"""Rows of a list that are shown; the others are counted."""
LONGEST_TEXT = 600
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
    """A table of any values, the first `SHOWN` of them."""
    every = list(rows)
    return Table(name, caption, heads, [[words(v) for v in row] for row in every[:SHOWN]], rest(every), nothing)


def rest(every: Sequence[Any], most: int = SHOWN) -> int:
    """How many of a list are not among the first."""
    return max(0, len(every) - most)


def words(value: Any) -> str:
    """A value as a cell of a table has it."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return shown(value, LONGEST_TEXT)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
