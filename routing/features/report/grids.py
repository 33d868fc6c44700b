"""The tables that the filter works on: what each groups its cells by, and how its columns read.

The page's script makes the same tables anew of the cells that the filter leaves, by the same description.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from routing.features.report.facts import STUCK
from routing.terms import NOT_KNOWN, Outcome

OUTCOMES = (*map(str, Outcome), NOT_KNOWN)
"""Every word that a flow may have as its outcome, as the page orders them."""
MESSAGES, SINCE = "messages", "oldest"
Row = Mapping[str, Any]


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

    def add(self, row: Row) -> None:
        """Count a cell or a moment in."""
        messages, oldest = row[MESSAGES], row.get(SINCE)
        self.messages += messages
        self.outcomes[row["outcome"]] = self.outcomes.get(row["outcome"], 0) + messages
        if oldest is not None:
            self.oldest = oldest if self.oldest is None else min(self.oldest, oldest)


def groups_of(grid: MessageGrid, rows: Iterable[Row]) -> list[GridGroup]:
    """Return the rows of a table, in their order, made of `coded` cells or moments."""
    groups: dict[tuple[Any, ...], GridGroup] = {}
    for row in rows:
        if row["outcome"] in grid.only:
            key = tuple(row[name] for name in grid.by)
            groups.setdefault(key, GridGroup(key)).add(row)
    return sorted(groups.values(), key=lambda group: (0 if grid.in_time else -group.messages, group.key))
