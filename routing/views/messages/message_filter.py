"""The filter of a list of messages, and its order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from routing.arguments import checked
from routing.cases.questions import QuestionError
from routing.engines.traffic_tables import TrafficTable
from routing.rules.text import UndecodedText
from routing.rules.timeline import moment_of
from routing.tables.arrow_rows import with_moments
from routing.tables.table_columns import COUNT, Filter, Only, TableColumns
from routing.terms import Outcome, ReadRow, Reason, TableRow, Word

SHOWN = 20
STUCK = (str(Outcome.DELAYED), str(Outcome.DROPPED))
"""Outcomes of stuck messages, in listing order. All others follow."""
LEVELS = ("instance_name", "to_service_name", "reason")
"""The columns of a group, without its outcome."""
GROUP = (*LEVELS, "outcome")
"""The columns of a group: messages that are counted together."""
_AGE = "enqueue_time"
# The oldest first. The other columns make the order total, so that every engine lists the same messages.
_ORDER = (_AGE, *LEVELS, "message_id", "conversation_id", "is_initiator", "database_name")
READ = (
    *("instance_name", "database_name", "to_service_name", "outcome", "reason", "enqueue_time", "message_id"),
    *("conversation_id", "is_initiator", "message_sequence_number", "route_name", "rerouted_from", "attempt"),
    "decided_at",
)
"""The columns of ``resolved_routes`` that a listed message needs."""
MESSAGE_KEY = ("instance_name", "database_name", "message_id")
"""The columns that identify a message of an exported queue."""


@dataclass(frozen=True)
class MessageFilter:
    """The selection of messages: those with one of the given values of each kind.

    ``waiting`` keeps only messages that the newest export of their database's queue holds. ``oldest`` lists the
    oldest first for all outcomes together, otherwise in groups: each of `STUCK`, then the others. Messages above
    ``limit`` are only counted.
    """

    outcomes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    oldest: bool = False
    waiting: bool = False
    limit: int = SHOWN

    @property
    def only(self) -> Only:
        """The allowed values by column."""
        values_by_column = {
            "outcome": self.outcomes,
            "reason": self.reasons,
            "instance_name": self.instances,
            "to_service_name": self.services,
        }
        return {name: list(values) for name, values in values_by_column.items() if values}


@checked
def ask(
    *,
    outcomes: Sequence[str] = (),
    reasons: Sequence[str] = (),
    instances: Sequence[str] = (),
    services: Sequence[str] = (),
    oldest: bool = False,
    waiting: bool = False,
    limit: int = SHOWN,
) -> MessageFilter:
    """Build the filter of `list_messages`. Words may have any case.

    Args:
        outcomes: words of `Outcome`. An empty list means all, as with the other lists.
        reasons: words of `Reason`.
        instances: names of instances.
        services: names of target services.
        oldest: list the oldest messages first for all outcomes together. By default the delayed messages come
            first, then the dropped ones, then the others, each oldest first.
        waiting: True to count only messages that the newest exports of their queues hold.
        limit: the number of messages to list. The rest is counted.

    Returns:
        The filter.

    Raises:
        QuestionError: a word is unknown, or a name is not text.

    Example:
        >>> routing.ask(outcomes=["delayed"], limit=5).outcomes
        ('DELAYED',)
    """
    for option, texts in (("--instance", instances), ("--service", services)):
        for text in texts:
            # Python reads invalid bytes as surrogates, which no table holds.
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise QuestionError.no_text(option)
    return MessageFilter(
        _words("outcome", outcomes, Outcome),
        _words("reason", reasons, Reason),
        tuple(instances),
        tuple(services),
        oldest,
        waiting,
        limit,
    )


def _words(kind: str, texts: Iterable[str], vocabulary: Iterable[Word]) -> tuple[str, ...]:
    words = [str(word) for word in vocabulary]
    for text in texts:
        if text.upper() not in words:
            raise QuestionError.unknown_word(kind, text, words)
    return tuple(text.upper() for text in texts)


_VERDICT = ("outcome", "reason")


@dataclass(frozen=True)
class SelectedMessages:
    """Messages in their order, as many as were asked for, with columns `message_filter.READ`.

    ``counts``: outcome, reason and messages of all that match, most first. ``groups``: columns
    `message_filter.GROUP` and messages, of the groups that have a listed one, whole. ``oldest_stuck``: when the
    oldest of all that match and are stuck was enqueued, None if there is none.
    """

    rows: Sequence[ReadRow]
    counts: Sequence[ReadRow]
    groups: Sequence[ReadRow]
    oldest_stuck: datetime | None = None


def select(
    resolved: TrafficTable, message_filter: MessageFilter, queued: TrafficTable | TableColumns | None
) -> SelectedMessages:
    """Return the selected messages. ``queued`` limits them to its keys (columns `MESSAGE_KEY`)."""
    messages, only = resolved.last_attempts(READ), dict(message_filter.only)
    if queued is not None:
        messages, only = messages.matching(queued, MESSAGE_KEY, names=READ, only=only), {}
    counts = _count(messages, _VERDICT, only)
    outcomes = {row["outcome"] for row in counts}
    rows = with_moments(_list_first(messages, only, message_filter, outcomes), (_AGE, "decided_at"))
    groups = _count(messages, GROUP, {**only, **_find_levels(rows)})
    levels = {tuple(row[name] for name in LEVELS) for row in rows}
    return SelectedMessages(
        rows,
        sorted(counts, key=lambda row: (-row["messages"], row["outcome"], row["reason"])),
        sorted(
            (row for row in groups if tuple(row[name] for name in LEVELS) in levels),
            key=lambda row: tuple(row[name] for name in GROUP),
        ),
        _find_oldest_stuck(messages, only, rows, outcomes),
    )


def _list_first(
    messages: TrafficTable, only: Filter, message_filter: MessageFilter, outcomes: set[str]
) -> list[TableRow]:
    if message_filter.oldest:
        return list(messages.rows(READ, only=only, order=_ORDER, limit=message_filter.limit).dicts())
    rows: list[TableRow] = []
    # Usually the delayed messages fill the list, so that only they are sorted.
    for rank in (*([outcome] for outcome in STUCK), sorted(outcomes.difference(STUCK))):
        remaining = message_filter.limit - len(rows)
        if remaining and not outcomes.isdisjoint(rank):
            rows += messages.rows(READ, only={**only, "outcome": rank}, order=_ORDER, limit=remaining).dicts()
    return rows


def _find_levels(rows: Sequence[ReadRow]) -> Filter:
    """Return the values of listed messages in the columns of their groups."""
    values = {name: sorted({row[name] for row in rows}) for name in LEVELS}
    # Only tables of older releases hold invalid UTF-8, which a condition cannot contain.
    return {
        name: texts for name, texts in values.items() if not any(isinstance(text, UndecodedText) for text in texts)
    }


def _count(messages: TrafficTable, names: Sequence[str], only: Filter) -> list[ReadRow]:
    groups = messages.groups(names, only=only).rows().dicts()
    return [{"messages" if name == COUNT else name: value for name, value in row.items()} for row in groups]


def _find_oldest_stuck(
    messages: TrafficTable, only: Filter, listed_rows: Sequence[ReadRow], outcomes: Collection[str]
) -> datetime | None:
    times: dict[str, datetime] = {}
    for row in listed_rows:
        # The first listed message of an outcome is its oldest.
        times.setdefault(row["outcome"], row[_AGE])
    unlisted = [outcome for outcome in STUCK if outcome in outcomes and outcome not in times]
    stuck = [times[outcome] for outcome in STUCK if outcome in times]
    if unlisted:
        oldest = messages.rows((_AGE,), only={**only, "outcome": unlisted}, order=(_AGE,), limit=1)
        stuck += map(moment_of, oldest.values[_AGE])
    return min(stuck, default=None)
