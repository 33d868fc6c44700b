"""Build the tables and sections of the page. All of their texts are printable and bounded.

The filter changes the tables of messages. Each groups the page's cells or moments by some of their columns. Python
fills them with all messages. The page's script adds up the same cells, which have the numbers of their rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from routing.document import Block
from routing.render.phrases import cut
from routing.render.wording import count, format_duration, format_time
from routing.rules.timeline import SECOND, moment_of
from routing.terms import JsonObject
from routing.views.page.facts import ENDINGS, STUCK, Report
from routing.views.page.message_cells import UNTOLD, MessageCell, MessageMoment, ReportCube, size_of

SHOWN = 200
"""The number of list rows that are shown. Further rows are counted."""
MOST_BYTES = 150_000
"""So long may the texts of a table be: reached by names that nobody gives."""
LONGEST_NAME, LONGEST_TEXT = 256, 400
NUMBER, WORD, OUTCOME, NAME, TEXT, TIME = "number", "word", "outcome", "name", "text", "time"
"""Kinds of columns by which they look: a word is never broken, names and texts are given room."""
Heads = Sequence[tuple[str, str]]
T = TypeVar("T")


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
    read_rows = ([words(value) for value in row] for row in all_rows[:SHOWN])
    shown_rows = first_of(read_rows, lambda row: sum(map(size_of, row)))
    return PageTable(name, caption, heads, shown_rows, len(all_rows) - len(shown_rows), nothing)


def first_of(items: Iterable[T], size: Callable[[T], int], room: int = MOST_BYTES) -> list[T]:
    """Return the first items, as many as there is room for, and one at least. ``size`` is in bytes."""
    shown_items: list[T] = []
    for item in items:
        room -= size(item)
        if shown_items and room < 0:
            break
        shown_items.append(item)
    return shown_items


def count_more(hidden: int, noun: str = "") -> str:
    """Return the words for items that are not shown, or an empty text."""
    return f"and {hidden:,} more{noun}" if hidden else ""


def words(value: Any) -> str:
    """Return a value as a cell of a table has it."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return cut(value, LONGEST_TEXT)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def instant(micros: int) -> str:
    """Return a time as sentences have it, in whole seconds."""
    return format_time(moment_of(micros).replace(microsecond=0))


# The tables of messages, which the filter changes.


MESSAGES, SINCE = "Messages", "Waiting since (UTC)"
_BLANKS = {"database": "(over the network)", "reason": "–"}
"""The text for a null name."""
_NO_ROW = -1


@dataclass(frozen=True)
class MessageGrid:
    """A table that groups the cells or moments by some columns, ``group_columns`` (column, head, kind).

    Only the endings in ``only`` count. ``has_endings`` adds a column for each ending. ``in_time`` sorts by the
    first column, not by the number of messages. ``has_ids`` gives rows anchors for the links of charts. All of its
    rows are shown, grouped by their first two columns.
    """

    id: str
    caption: str
    group_columns: tuple[tuple[str, str, str], ...]
    only: tuple[str, ...] = ENDINGS
    has_endings: bool = False
    has_age: bool = False
    has_advice: bool = False
    in_time: bool = False
    has_ids: bool = False


TIMES = MessageGrid(
    "times",
    "Messages by the time of their decision, UTC, and where they end",
    (("at", "From", TIME),),
    has_endings=True,
    in_time=True,
)
_INSTANCE, _SERVICE = ("instance", "Instance", NAME), ("service", "To service", NAME)
_ENDING, _REASON = ("ending", "Ending", OUTCOME), ("reason", "Reason", WORD)
GRIDS = (
    MessageGrid(
        "services", "Messages by instance and service, and where they end", (_INSTANCE, _SERVICE), has_endings=True
    ),
    MessageGrid("reasons", "Stuck messages by reason", (_ENDING, _REASON), STUCK, has_advice=True),
    MessageGrid(
        "stuck",
        "Stuck messages by service, and since when",
        (_SERVICE, _INSTANCE, ("database", "Database", NAME), _ENDING, _REASON),
        STUCK,
        has_age=True,
    ),
    MessageGrid(
        "estate",
        "Messages by the instance that sends and the place where they end",
        (("source", "From", NAME), ("target", "To", NAME), _ENDING),
        has_ids=True,
    ),
)


@dataclass
class GridGroup:
    """The messages with one key, by ending. ``oldest`` is the first enqueue time, or None for moments."""

    key: tuple[Any, ...]
    messages: int = 0
    oldest: int | None = None
    endings: dict[str, int] = field(default_factory=dict)

    def add(self, row: MessageCell | MessageMoment) -> None:
        """Count a cell or a moment in."""
        self.messages += row.messages
        self.endings[row.ending] = self.endings.get(row.ending, 0) + row.messages
        if isinstance(row, MessageCell):
            self.oldest = row.oldest if self.oldest is None else min(self.oldest, row.oldest)


@dataclass(frozen=True)
class FilledGrid:
    """A table of all messages, with the row number of each cell or moment (`_NO_ROW` if it has none)."""

    page_table: PageTable
    rows: Sequence[int]


@dataclass(frozen=True)
class TableFiller:
    """A filler of tables. ``made_at`` is the time for ages (seconds). ``advice`` has two texts for each reason.

    ``endings`` are those with columns.
    """

    cube: ReportCube
    endings: Sequence[str]
    made_at: int
    advice: Mapping[str, Sequence[str]]

    def fill(self, grid: MessageGrid, rows: Sequence[MessageCell | MessageMoment]) -> FilledGrid:
        """Return a table of all cells or moments."""
        columns = [column for column, _, _ in grid.group_columns]
        keys = [tuple(row._asdict()[column] for column in columns) for row in rows]
        groups: dict[tuple[Any, ...], GridGroup] = {}
        for key, row in zip(keys, rows, strict=True):
            if row.ending in grid.only:
                groups.setdefault(key, GridGroup(key)).add(row)
        ordered = sorted(groups.values(), key=lambda group: self._place(grid, group))
        if grid.has_ids:
            whole = Counter[Any]()
            for group in ordered:
                whole[group.key[:2]] += group.messages
            ordered.sort(key=lambda group: (-whole[group.key[:2]], group.key[:2]))
        places = {group.key: place for place, group in enumerate(ordered)}
        row_numbers = [
            places[key] if row.ending in grid.only else _NO_ROW for key, row in zip(keys, rows, strict=True)
        ]
        heads = self._heads(grid)
        by_messages = None if grid.has_ids else ([head for head, _ in heads].index(MESSAGES), True)
        limit = len(ordered) if grid.has_ids else SHOWN
        table = PageTable(
            grid.id,
            grid.caption,
            heads,
            [list(self._read(grid, group)) for group in ordered],
            max(0, len(ordered) - limit),
            ids=[f"{grid.id}-{place}" for place in range(len(ordered))] if grid.has_ids else (),
            order=(0, False) if grid.in_time else by_messages,
            limit=limit,
        )
        return FilledGrid(table, row_numbers)

    def _place(self, grid: MessageGrid, group: GridGroup) -> tuple[Any, ...]:
        names = tuple(
            (value is None, value if column == "at" else self.name(column, value))
            for (column, _, _), value in zip(grid.group_columns, group.key, strict=True)
        )
        return (names, ()) if grid.in_time else (-group.messages, names, tuple(map(str, group.key)))

    def _heads(self, grid: MessageGrid) -> list[tuple[str, str]]:
        heads = [(head, kind) for _, head, kind in grid.group_columns]
        if grid.has_endings:
            heads += [(word, NUMBER) for word in self.endings]
        heads.append((MESSAGES, NUMBER))
        if grid.has_age:
            heads += [(SINCE, TIME), ("For", TIME)]
        if grid.has_advice:
            heads += [("SQL Server’s numbers", WORD), ("What to do", TEXT)]
        return heads

    def _read(self, grid: MessageGrid, group: GridGroup) -> Iterable[str]:
        for (column, _, _), value in zip(grid.group_columns, group.key, strict=True):
            yield minute(value) if column == "at" else self.name(column, value)
        if grid.has_endings:
            yield from (f"{group.endings.get(word, 0):,}" for word in self.endings)
        yield f"{group.messages:,}"
        if grid.has_age:
            oldest = group.oldest or 0
            yield from (minute(oldest), format_duration(timedelta(seconds=self.made_at - oldest)))
        if grid.has_advice:
            yield from self.advice.get(group.key[1], ("", ""))

    def name(self, column: str, value: str | None) -> str:
        """Return the displayed name for a value of a column."""
        if column in ("instance", "service") and value is None:
            names = self.cube.instances if column == "instance" else self.cube.services
            others = count(names.other_count, f"other {column}")
            return others if names.names else f"all {count(names.other_count, column)}"
        return _BLANKS[column] if value is None else cut(value, LONGEST_NAME)


@dataclass(frozen=True)
class PageFilter:
    """The cells for the page's script, and the options of its filter: (number, name) by column.

    A cell is a list of numbers: instance, service, ending, messages, and its row in each table. A moment has the
    same form.
    """

    instances: Sequence[tuple[int, str]]
    services: Sequence[tuple[int, str]]
    data: JsonObject


def fill_tables(report: Report, cube: ReportCube, filler: TableFiller) -> tuple[dict[str, PageTable], PageFilter]:
    """Return the tables of messages by their ids, and the data of the filter for the same cells."""
    filled = {grid.id: filler.fill(grid, cube.cells) for grid in GRIDS}
    over_time = {} if report.series is None else {TIMES.id: filler.fill(TIMES, cube.moments)}
    numbers = {column: _numbers(filler, column, cube) for column in ("instance", "service")}
    data: JsonObject = {
        "endings": ENDINGS,
        "cells": {"tables": list(filled), "rows": _coded(cube.cells, numbers, filled.values())},
        "moments": {"tables": list(over_time), "rows": _coded(cube.moments, numbers, over_time.values())},
    }
    instances, services = (
        [(number, filler.name(column, value)) for value, number in of_column.items() if value != UNTOLD]
        for column, of_column in numbers.items()
    )
    tables = {name: filled_table.page_table for name, filled_table in (filled | over_time).items()}
    return tables, PageFilter(instances, services, data)


def _numbers(filler: TableFiller, column: str, cube: ReportCube) -> dict[str | None, int]:
    """Number the names of a column in the order of the filter. Values that are not separated get -1."""
    rows: list[MessageCell | MessageMoment] = [*cube.cells, *cube.moments]
    names = {row._asdict()[column] for row in rows}
    ordered = sorted(names - {UNTOLD}, key=lambda name: (name is None, filler.name(column, name), str(name)))
    return {**{name: number for number, name in enumerate(ordered)}, UNTOLD: _NO_ROW}


def _coded(
    rows: Sequence[MessageCell | MessageMoment],
    numbers: Mapping[str, Mapping[str | None, int]],
    filled: Iterable[FilledGrid],
) -> list[list[int]]:
    grids = [filled_table.rows for filled_table in filled]
    endings = {word: place for place, word in enumerate(ENDINGS)}
    return [
        [
            numbers["instance"][row.instance],
            numbers["service"][row.service],
            endings[row.ending],
            row.messages,
            *(grid[place] for grid in grids),
        ]
        for place, row in enumerate(rows)
    ]


def minute(seconds: int) -> str:
    """Return a time in seconds in the format of tables. Their heads have the time zone."""
    return moment_of(seconds * SECOND).isoformat(" ", "minutes")[:16]
