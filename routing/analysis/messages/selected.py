"""What is found among the messages: the rows to be listed, and how many there are in all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routing.analysis.messages.asked import GROUP, LEVELS
from routing.storage.inputs import COUNT

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Selected:
    """Messages in their order, as many as were asked for, with columns `asked.READ`.

    ``counts``: outcome, reason and messages of all that match. ``groups``: columns `asked.GROUP` and messages, of
    the groups that have a listed one, whole.
    """

    rows: Sequence[Row]
    counts: Sequence[Row]
    groups: Sequence[Row]

    @classmethod
    def of(cls, rows: Sequence[Row], counts: Iterable[Row], groups: Iterable[Row]) -> Selected:
        """Counts with most messages first, groups in the order of their columns, without those of no listed row.

        Both say in column `COUNT` how many messages they have.
        """
        listed = {tuple(row[name] for name in LEVELS) for row in rows}
        mine = [row for row in map(_named, groups) if tuple(row[name] for name in LEVELS) in listed]
        return cls(
            rows,
            sorted(map(_named, counts), key=lambda row: (-row["messages"], row["outcome"], row["reason"])),
            sorted(mine, key=lambda row: tuple(row[name] for name in GROUP)),
        )


def _named(group: Row) -> Row:
    return {"messages" if name == COUNT else name: value for name, value in group.items()}
