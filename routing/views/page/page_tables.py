"""Tables and sections as the page's template shows them: words all through, bounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from routing.document import Block
from routing.render.wording import format_time, printable
from routing.rules.timeline import moment_of
from routing.views.page.message_cells import size_of

SHOWN = 200
"""The number of list rows that are shown. Further rows are counted."""
MOST_BYTES = 150_000
"""So long may the texts of a table be: reached by names that nobody gives."""
LONGEST_NAME, LONGEST_TEXT = 256, 400
NUMBER, WORD, OUTCOME, NAME, TEXT, TIME = "number", "word", "outcome", "name", "text", "time"
"""Kinds of columns by which they look: a word is never broken, names and texts are given room."""
Heads = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class PageTable:
    """A table of the page. ``heads`` are (words, kind), and ``more`` counts rows that are left out.

    Rows from ``limit`` on are only for the filter. ``nothing`` replaces an empty table. ``ids`` are the anchors of
    rows, or empty. ``order`` is the column that sorts the rows, and True if the greatest comes first.
    """

    id: str
    caption: str
    heads: Heads
    rows: Sequence[Sequence[str]]
    more: int = 0
    nothing: str = "none"
    ids: Sequence[str] = ()
    order: tuple[int, bool] | None = None
    limit: int = SHOWN


@dataclass(frozen=True)
class PageChart:
    """A chart with its title, drawn for wide and for narrow windows. ``words`` describe it."""

    id: str
    title: str
    words: str
    wide: str
    narrow: str


@dataclass(frozen=True)
class PageSection:
    """A section of the page. ``short`` is its name in the menu, and ``words`` describe it.

    ``is_filtered`` sections show cells and moments. In ``is_folded`` ones the tables repeat the charts. A part
    that is not ``is_open`` shows only its title until the reader opens it. ``mark`` is an ending.
    """

    id: str
    title: str
    short: str
    words: str = ""
    charts: Sequence[PageChart] = ()
    tables: Sequence[PageTable] = ()
    parts: Sequence[PageSection] = field(default_factory=tuple)
    more: str = ""
    blocks: Sequence[Block] = ()
    evidence: Sequence[Block] = ()
    mark: str = ""
    is_open: bool = True
    is_folded: bool = False
    is_filtered: bool = False


def table(
    name: str, caption: str, heads: Heads, rows: Iterable[Sequence[Any]], nothing: str = "none"
) -> PageTable:
    """Return a table of any values, the first `SHOWN` of them, or as many as `MOST_BYTES` hold."""
    all_rows = list(rows)
    shown_rows = first_of([words(value) for value in row] for row in all_rows[:SHOWN])
    return PageTable(name, caption, heads, shown_rows, len(all_rows) - len(shown_rows), nothing)


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


def shown(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a text of the data in the form of the page: printable, and cut above the length of names."""
    return printable(text if len(text) <= longest else f"{text[:longest]}…")


def words(value: Any) -> str:
    """Return a value as a cell of a table has it."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return shown(value, LONGEST_TEXT)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def instant(micros: int) -> str:
    """Return a time as sentences have it, in whole seconds."""
    return format_time(moment_of(micros).replace(microsecond=0))
