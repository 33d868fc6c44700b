"""Which messages are asked for: the rows to be listed, and how many there are in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from routing.engines.traffic_tables import COUNT, Filter, TrafficTable
from routing.features.messages.message_filter import GROUP, HELD, LEVELS, READ, STUCK, MessageFilter
from routing.rules.text import UndecodedText
from routing.tables.table_columns import TableColumns
from routing.tables.times import moment_of, with_moments

Row = Mapping[str, Any]
_VERDICT = ("outcome", "reason")
_AGE = "enqueue_time"


@dataclass(frozen=True)
class SelectedMessages:
    """Messages in their order, as many as were asked for, with columns `message_filter.READ`.

    ``counts``: outcome, reason and messages of all that match, most first. ``groups``: columns
    `message_filter.GROUP` and messages, of the groups that have a listed one, whole. ``oldest_stuck``: when the
    oldest of all that match and are stuck was enqueued, None where none is.
    """

    rows: Sequence[Row]
    counts: Sequence[Row]
    groups: Sequence[Row]
    oldest_stuck: datetime | None = None


def select(
    resolved: TrafficTable, asked: MessageFilter, held: TrafficTable | TableColumns | None
) -> SelectedMessages:
    """Return the messages that are asked for; with ``held`` (columns `message_filter.HELD`) those it names."""
    messages, only = resolved.last_attempts(READ), dict[str, Any](asked.only)
    if held is not None:
        messages, only = messages.matching(held, HELD, names=READ, only=only), {}
    listed = messages.rows(READ, only=only, order=asked.order, limit=asked.limit)
    rows = with_moments(listed.dicts(), (_AGE,))
    counts = _count(messages, _VERDICT, only)
    groups = _count(messages, GROUP, {**only, **_find_levels(listed)})
    levels = {tuple(row[name] for name in LEVELS) for row in rows}
    stuck = sum(row["messages"] for row in counts if row["outcome"] in STUCK)
    times = [row[_AGE] for row in rows if row["outcome"] in STUCK]
    return SelectedMessages(
        rows,
        sorted(counts, key=lambda row: (-row["messages"], row["outcome"], row["reason"])),
        sorted(
            (row for row in groups if tuple(row[name] for name in LEVELS) in levels),
            key=lambda row: tuple(row[name] for name in GROUP),
        ),
        min(times, default=None) if len(times) == stuck else _find_oldest_stuck(messages, only),
    )


def _find_levels(listed: TableColumns) -> Filter:
    """Return the values by which messages are listed, those of listed messages."""
    values = {name: sorted(set(listed.values[name])) for name in LEVELS}
    # What is no UTF-8 is nothing that a condition may name; it stands in tables of older releases alone.
    return {
        name: texts for name, texts in values.items() if not any(isinstance(text, UndecodedText) for text in texts)
    }


def _count(messages: TrafficTable, names: Sequence[str], only: Filter) -> list[Row]:
    """Return how many messages there are, by columns."""
    groups = messages.groups(names, only=only).rows().dicts()
    return [{"messages" if name == COUNT else name: value for name, value in row.items()} for row in groups]


def _find_oldest_stuck(messages: TrafficTable, only: Filter) -> datetime:
    """Return when the oldest of the messages that are stuck was enqueued; there is one."""
    outcomes = set(STUCK) & set(only.get("outcome") or STUCK)
    [oldest] = messages.rows((_AGE,), only={**only, "outcome": outcomes}, order=(_AGE,), limit=1).values[_AGE]
    return moment_of(oldest)
