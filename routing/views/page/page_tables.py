"""Tables and sections as the page's template shows them: words all through, bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from routing.render.wording import count, format_time, printable
from routing.rules.timeline import SECOND, moment_of
from routing.terms import NOT_KNOWN, Outcome, ReadRow, TableRow
from routing.views.page.facts import STUCK
from routing.views.page.message_cells import (
    UNTOLD,
    MessageCell,
    MessageMoment,
    ReportCube,
    ShownNames,
    size_of,
)

# Cells and moments by numbers of names, as the page holds them: each name stands there once.
#
# Numbers are in the order of the names, so that Python and the page sort alike by them.


NO_CODE = -1
"""The number of what has no name (null), or is not told apart."""
LONGEST_NAME = 256
_NODE = "node"
_BY_NUMBER = {**dict.fromkeys(("instance", "service", "database", "reason"), ""), "source": _NODE, "target": _NODE}
_NOT_APART = (("instance", UNTOLD), ("service", UNTOLD))


def shown(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a text of the data as the page shows it: printable, cut where it is longer than any name can be."""
    return printable(text if len(text) <= longest else f"{text[:longest]}…")


@dataclass(frozen=True)
class CodedCells:
    """``names`` by number; ``cells`` and ``moments`` have numbers in the columns of `_BY_NUMBER`.

    ``others`` tells of instance and service the number of the name that stands for many, and for how many;
    ``nodes`` the id of a node by the number of its title.
    """

    names: Sequence[str]
    cells: Sequence[ReadRow]
    moments: Sequence[ReadRow]
    others: Mapping[str, Mapping[str, int]]
    nodes: Mapping[int, str]


def coded(cube: ReportCube, nodes: Mapping[str, str]) -> CodedCells:
    """Return the cells of a cube by numbers; ``nodes`` are titles of the estate's nodes by id."""
    labels = _labels(cube, nodes)
    # What stands for many comes last, among equals the order is that of what is shown.
    order = sorted(labels, key=lambda key: (key[1] is None, labels[key], str(key[1]), key[0]))
    numbers = {key: number for number, key in enumerate(order)}
    return CodedCells(
        [labels[key] for key in order],
        [_numbered(cell, numbers) for cell in cube.cells],
        [_numbered(moment, numbers) for moment in cube.moments],
        {kind: {"name": numbers[kind, None], "count": names.others} for kind, names in _folded(cube)},
        {numbers[_NODE, node]: node for node in nodes},
    )


_Key = tuple[str, "str | None"]


def _labels(cube: ReportCube, nodes: Mapping[str, str]) -> dict[_Key, str]:
    """Return the label of each name."""
    labels: dict[_Key, str] = {(_NODE, node): shown(title) for node, title in nodes.items()}
    for cell in cube.cells:
        for text in (cell.instance, cell.service, cell.database, cell.reason):
            if text is not None:
                labels["", text] = shown(text)
    return labels | {(kind, None): _others(kind, names) for kind, names in _folded(cube)}


def _folded(cube: ReportCube) -> list[tuple[str, ShownNames]]:
    """List the dimensions of which some names are shown as one."""
    pairs = (("instance", cube.instances), ("service", cube.services))
    return [(kind, names) for kind, names in pairs if names.others]


def _others(kind: str, names: ShownNames) -> str:
    return count(names.others, f"other {kind}") if names.names else f"all {count(names.others, kind)}"


def _numbered(row: MessageCell | MessageMoment, numbers: Mapping[_Key, int]) -> TableRow:
    return {
        name: _number(name, value, numbers) if name in _BY_NUMBER else value
        for name, value in row._asdict().items()
    }


def _number(column: str, value: str | None, numbers: Mapping[_Key, int]) -> int:
    if value is None:
        return numbers.get((column, None), NO_CODE)
    if (column, value) in _NOT_APART:
        return NO_CODE
    return numbers[_BY_NUMBER[column], value]


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


# The tables that the filter works on: what each groups its cells by, and how its columns read.
#
# The page's script makes the same tables anew of the cells that the filter leaves, by the same description.


OUTCOMES = (*map(str, Outcome), NOT_KNOWN)
"""Every word that a flow may have as its outcome, as the page orders them."""
MESSAGES, SINCE = "messages", "oldest"


@dataclass(frozen=True)
class MessageGrid:
    """A table of messages: of ``cells`` or ``moments``, by some columns of these, with ``only`` some outcomes.

    ``columns`` are (key, head): a column of the cells, ``messages``, ``oldest``, an outcome, or what is known of
    a reason. ``in_time``: in the order of the first column, else most messages first.
    """

    id: str
    caption: str
    source: str
    by: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    only: tuple[str, ...] = OUTCOMES
    in_time: bool = False


_INSTANCE, _DATABASE, _SERVICE = ("instance", "Instance"), ("database", "Database"), ("service", "To service")
_OUTCOME, _REASON, _MESSAGES = ("outcome", "Outcome"), ("reason", "Reason"), (MESSAGES, "Messages")
_AT, _SINCE, _AGE = ("at", "From"), (SINCE, "Waiting since (UTC)"), ("age", "For")
_OF_REASONS = (_OUTCOME, _REASON, _MESSAGES, ("numbers", "SQL Server’s numbers"), ("advice", "What to do"))
_OF_STUCK = (_SERVICE, _INSTANCE, _DATABASE, _REASON, _MESSAGES, _SINCE, _AGE)
_OF_ESTATE = (("source", "From"), ("target", "To"), _OUTCOME, _MESSAGES)
_KINDS = {
    **dict.fromkeys(("service", "source", "target"), "name"),
    **dict.fromkeys(("at", SINCE, "age"), "time"),
    "outcome": "outcome",
    "reason": "word",
    "advice": "text",
    MESSAGES: "number",
}


def grids(outcomes: Sequence[str]) -> dict[str, MessageGrid]:
    """Return the tables of a report that has these outcomes, by id."""
    each = tuple((word, word) for word in outcomes)
    message_grids = (
        MessageGrid(
            "times",
            "Messages by the time of their decision, UTC",
            "moments",
            ("at",),
            (_AT, *each, _MESSAGES),
            in_time=True,
        ),
        MessageGrid(
            "services",
            "Messages by instance and service",
            "cells",
            ("instance", "service"),
            (_INSTANCE, _SERVICE, *each, _MESSAGES),
        ),
        MessageGrid(
            "reasons",
            "Messages delayed and dropped, by reason",
            "cells",
            ("outcome", "reason"),
            _OF_REASONS,
            STUCK,
        ),
        MessageGrid(
            "stuck",
            "Messages that wait, by service",
            "cells",
            ("service", "instance", "database", "reason"),
            _OF_STUCK,
            (str(Outcome.DELAYED),),
        ),
        MessageGrid(
            "estate",
            "Messages between the places of the estate",
            "cells",
            ("source", "target", "outcome"),
            _OF_ESTATE,
        ),
    )
    return {grid.id: grid for grid in message_grids}


def kind_of(column: str) -> str:
    """Return the style of a column, empty where it is words."""
    return "number" if column in OUTCOMES else _KINDS.get(column, "")


@dataclass
class GridGroup:
    """Messages with one key: how many, by outcome, and when the first was enqueued (None of moments)."""

    key: tuple[Any, ...]
    messages: int = 0
    oldest: int | None = None
    outcomes: dict[str, int] = field(default_factory=dict)

    def add(self, row: ReadRow) -> None:
        """Count a cell or a moment in."""
        messages, oldest = row[MESSAGES], row.get(SINCE)
        self.messages += messages
        self.outcomes[row["outcome"]] = self.outcomes.get(row["outcome"], 0) + messages
        if oldest is not None:
            self.oldest = oldest if self.oldest is None else min(self.oldest, oldest)


def groups_of(grid: MessageGrid, rows: Iterable[ReadRow]) -> list[GridGroup]:
    """Return the rows of a table, in their order, made of `coded` cells or moments."""
    groups: dict[tuple[Any, ...], GridGroup] = {}
    for row in rows:
        if row["outcome"] in grid.only:
            key = tuple(row[name] for name in grid.by)
            groups.setdefault(key, GridGroup(key)).add(row)
    return sorted(groups.values(), key=lambda group: (0 if grid.in_time else -group.messages, group.key))


# The tables that the filter works on, filled with all messages: what a reader without JavaScript sees.


_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
NOTHING = "none"
BLANKS = {"database": "(over the network)", "reason": "–", "target": "(stops here)"}
"""What stands where a name is null."""


def instant(micros: int) -> str:
    """Return a time as sentences have it, in whole seconds."""
    return format_time(moment_of(micros).replace(microsecond=0))


def minute(seconds: int) -> str:
    """Return a time in seconds as tables have it, whose heads say UTC; the page's script writes it alike."""
    return moment_of(seconds * SECOND).isoformat(" ", "minutes")[:16]


def shorten_age(seconds: int) -> str:
    """Return an age by its two largest units, as page.js does: ``3 d 4 h``; a minus before a time to come."""
    parts: list[tuple[int, str]] = []
    rest = abs(seconds)
    for unit, size in _UNITS:
        number, rest = divmod(rest, size)
        if number or parts or unit == "s":
            parts.append((number, unit))
    age = " ".join(f"{number} {unit}" for number, unit in parts[:2] if number or len(parts) == 1)
    return f"-{age}" if seconds < 0 else age


def named(coded: CodedCells, column: str, number: int) -> str:
    """Return the name behind a number."""
    return BLANKS.get(column, "") if number < 0 else coded.names[number]


@dataclass(frozen=True)
class TableFiller:
    """Fills tables. ``made_at``: the time of the ages (seconds); ``advice``: two texts by a reason's number."""

    coded: CodedCells
    made_at: int
    advice: Mapping[int, Sequence[str]]

    def fill(self, grid: MessageGrid) -> PageTable:
        """Return a table of all cells or moments."""
        groups = groups_of(grid, self.coded.cells if grid.source == "cells" else self.coded.moments)
        rows = first_of(
            [self._read(grid, group, column) for column, _ in grid.columns] for group in groups[:SHOWN]
        )
        heads = [(head, kind_of(column)) for column, head in grid.columns]
        return PageTable(grid.id, grid.caption, heads, rows, len(groups) - len(rows), NOTHING)

    def _read(self, grid: MessageGrid, group: GridGroup, column: str) -> str:
        if column in grid.by:
            value = group.key[grid.by.index(column)]
            return _KEYS[column](value) if column in _KEYS else named(self.coded, column, value)
        if column in ("numbers", "advice"):
            reason_advice = self.advice.get(group.key[grid.by.index("reason")], ("", ""))
            return reason_advice[column == "advice"]
        if column == "age":
            return shorten_age(self.made_at - (group.oldest or 0))
        if column == SINCE:
            return minute(group.oldest or 0)
        return f"{group.messages if column == MESSAGES else group.outcomes.get(column, 0):,}"


_KEYS: Mapping[str, Callable[..., str]] = {"at": minute, "outcome": str}
