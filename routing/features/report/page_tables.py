"""Tables and sections as the page's template shows them: words all through, bounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from routing.features.report.coded_cells import shown
from routing.features.report.message_cells import size_of

SHOWN = 200
"""Rows of a list that are shown; the others are counted."""
MOST_BYTES = 150_000
"""So long may the texts of a table be: reached by names that nobody gives."""
LONGEST_TEXT = 400
NUMBER, WORD, OUTCOME, NAME, TEXT = "number", "word", "outcome", "name", "text"
"""Kinds of columns by which they look: a word is never broken, names and texts are given room."""
Heads = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class PageTable:
    """``heads`` are (words, kind); ``more`` rows are not among these. ``nothing`` is said where there are none."""

    id: str
    caption: str
    heads: Heads
    rows: Sequence[Sequence[str]]
    more: int = 0
    nothing: str = "none"


@dataclass(frozen=True)
class PageSection:
    """``short`` is its name among all; ``words`` say what is shown; ``pictures`` are ids; ``code`` is T-SQL.

    ``is_folded``: the tables have the numbers of the pictures.
    ``is_filtered`` sections are made of cells and moments.
    """

    id: str
    title: str
    short: str
    words: str = ""
    pictures: Sequence[str] = ()
    tables: Sequence[PageTable] = ()
    parts: Sequence[PageSection] = field(default_factory=tuple)
    more: str = ""
    code: str = ""
    is_folded: bool = False
    is_filtered: bool = False


def table(
    name: str, caption: str, heads: Heads, rows: Iterable[Sequence[Any]], nothing: str = "none"
) -> PageTable:
    """Return a table of any values, the first `SHOWN` of them, or as many as `MOST_BYTES` hold."""
    every = list(rows)
    shown = first_of([words(value) for value in row] for row in every[:SHOWN])
    return PageTable(name, caption, heads, shown, len(every) - len(shown), nothing)


def first_of(rows: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """Return the first rows, as many as a table has room for, and one at least."""
    shown_rows: list[Sequence[str]] = []
    room = MOST_BYTES
    for row in rows:
        room -= sum(map(size_of, row))
        if shown_rows and room < 0:
            break
        shown_rows.append(row)
    return shown_rows


def words(value: Any) -> str:
    """Return a value as a cell of a table has it."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return shown(value, LONGEST_TEXT)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
