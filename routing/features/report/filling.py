"""The tables that the filter works on, filled with all messages: what a reader without JavaScript sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from routing.features.report.coded_cells import CodedCells
from routing.features.report.grids import MESSAGES, SINCE, GridGroup, MessageGrid, groups_of, kind_of
from routing.features.report.page_tables import SHOWN, PageTable, first_of
from routing.render.wording import format_time
from routing.tables.times import SECOND, moment_of

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
NOTHING = "none"
BLANKS = {"database": "(over the network)", "reason": "–", "target": "(stops here)"}
"""What stands where a name is null."""


def instant(micros: int) -> str:
    """Return a time as sentences have it, in whole seconds."""
    return format_time(moment_of(micros).replace(microsecond=0))


def minute(seconds: int) -> str:
    """Return a time in seconds as tables have it, whose heads say UTC; the page's script writes it alike."""
    return f"{moment_of(seconds * SECOND):%Y-%m-%d %H:%M}"


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
