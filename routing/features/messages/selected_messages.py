"""What is found among the messages: the rows to be listed, and how many there are in all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from routing.features.messages.message_filter import GROUP, LEVELS, STUCK
from routing.tables.input_columns import COUNT

Row = Mapping[str, Any]


@dataclass(frozen=True)
class SelectedMessages:
    """Messages in their order, as many as were asked for, with columns `message_filter.READ`.

    ``counts``: outcome, reason and messages of all that match. ``groups``: columns `message_filter.GROUP` and
    messages, of
    the groups that have a listed one, whole. ``oldest_stuck``: when the oldest of all that match and are stuck
    was enqueued, None where none is.
    """

    rows: Sequence[Row]
    counts: Sequence[Row]
    groups: Sequence[Row]
    oldest_stuck: datetime | None = None

    @classmethod
    def of(
        cls,
        rows: Sequence[Row],
        counts: Iterable[Row],
        groups: Iterable[Row],
        find_oldest: Callable[[], datetime | None],
    ) -> SelectedMessages:
        """Sort counts by most messages and groups by their columns, and drop groups of no listed row.

        Both say in column `COUNT` how many messages they have. ``find_oldest`` finds when the oldest message that
        is stuck was enqueued, where not all of them are listed.
        """
        listed = {tuple(row[name] for name in LEVELS) for row in rows}
        mine = [row for row in map(_named, groups) if tuple(row[name] for name in LEVELS) in listed]
        ordered = sorted(map(_named, counts), key=lambda row: (-row["messages"], row["outcome"], row["reason"]))
        stuck = sum(row["messages"] for row in ordered if row["outcome"] in STUCK)
        times = [row["enqueue_time"] for row in rows if row["outcome"] in STUCK]
        return cls(
            rows,
            ordered,
            sorted(mine, key=lambda row: tuple(row[name] for name in GROUP)),
            min(times, default=None) if len(times) == stuck else find_oldest(),
        )


def _named(group: Row) -> Row:
    return {"messages" if name == COUNT else name: value for name, value in group.items()}
