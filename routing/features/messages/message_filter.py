"""The filter of a list of messages, and its order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from routing.arguments import checked
from routing.engines.traffic_tables import TrafficTable
from routing.features.explain.questions import QuestionError
from routing.rules.text import UndecodedText
from routing.rules.timeline import moment_of
from routing.tables.arrow_rows import with_moments
from routing.tables.table_columns import COUNT, Filter, Only, TableColumns
from routing.terms import Outcome, ReadRow, Reason, Word

SHOWN = 20
STUCK = (str(Outcome.DELAYED), str(Outcome.DROPPED))
"""Outcomes of messages that go nowhere."""
LEVELS = ("instance_name", "to_service_name", "reason")
"""What messages are listed by; within it the oldest come first."""
GROUP = (*LEVELS, "outcome")
"""What is counted together."""
_AGE = "enqueue_time"
# So that the order is total, whatever reads the rows.
_TIES = ("message_id", "conversation_id", "is_initiator", "database_name")
READ = (
    *("instance_name", "database_name", "to_service_name", "outcome", "reason", "enqueue_time", "message_id"),
    *("conversation_id", "is_initiator", "message_sequence_number", "route_name", "rerouted_from", "attempt"),
)
"""The columns of ``resolved_routes`` that a listed message needs."""
MESSAGE_KEY = ("instance_name", "database_name", "message_id")
"""The columns that tell a message of an exported queue."""


@dataclass(frozen=True)
class MessageFilter:
    """The selection of messages: those that have one of each given kind of value.

    ``waiting``: only those that the newest export of their database's queue holds. ``oldest``: in the order of
    their age over all, else within instance, service and reason. ``limit``: as many are listed, the rest counted.
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
        """The values by column of which each row has one."""
        values_by_column = {
            "outcome": self.outcomes,
            "reason": self.reasons,
            "instance_name": self.instances,
            "to_service_name": self.services,
        }
        return {name: list(values) for name, values in values_by_column.items() if values}

    @property
    def order(self) -> tuple[str, ...]:
        """The columns by which the messages are sorted, ascending, nulls last."""
        return (_AGE, *LEVELS, *_TIES) if self.oldest else (*LEVELS, _AGE, *_TIES)


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
    """Build the filter of `list_messages`; words in any case.

    Args:
        outcomes: words of `Outcome`; none stands for all, as with the other lists.
        reasons: words of `Reason`.
        instances: names of instances.
        services: names of services that messages are for.
        oldest: whether the oldest messages come first, rather than groups.
        waiting: whether only messages count that the newest exports of their queues hold.
        limit: the number of messages to list; the rest is counted.

    Returns:
        The filter.

    Raises:
        QuestionError: a word is unknown, or a name is no text.

    Example:
        >>> routing.ask(outcomes=["delayed"], limit=5).outcomes
        ('DELAYED',)
    """
    for option, texts in (("--instance", instances), ("--service", services)):
        for text in texts:
            # Halves of surrogates stand for such bytes; no table holds them.
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


def _words(what: str, texts: Iterable[str], vocabulary: Iterable[Word]) -> tuple[str, ...]:
    """Convert words to the case of the tables. Raises QuestionError."""
    words = [str(word) for word in vocabulary]
    for text in texts:
        if text.upper() not in words:
            raise QuestionError.unknown_word(what, text, words)
    return tuple(text.upper() for text in texts)


# Which messages are asked for: the rows to be listed, and how many there are in all.


_VERDICT = ("outcome", "reason")


@dataclass(frozen=True)
class SelectedMessages:
    """Messages in their order, as many as were asked for, with columns `message_filter.READ`.

    ``counts``: outcome, reason and messages of all that match, most first. ``groups``: columns
    `message_filter.GROUP` and messages, of the groups that have a listed one, whole. ``oldest_stuck``: when the
    oldest of all that match and are stuck was enqueued, None where none is.
    """

    rows: Sequence[ReadRow]
    counts: Sequence[ReadRow]
    groups: Sequence[ReadRow]
    oldest_stuck: datetime | None = None


def select(
    resolved: TrafficTable, asked: MessageFilter, queued: TrafficTable | TableColumns | None
) -> SelectedMessages:
    """Return the messages that are asked for; with ``queued`` (columns `MESSAGE_KEY`) those it names."""
    messages, only = resolved.last_attempts(READ), dict(asked.only)
    if queued is not None:
        messages, only = messages.matching(queued, MESSAGE_KEY, names=READ, only=only), {}
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


def _count(messages: TrafficTable, names: Sequence[str], only: Filter) -> list[ReadRow]:
    """Return how many messages there are, by columns."""
    groups = messages.groups(names, only=only).rows().dicts()
    return [{"messages" if name == COUNT else name: value for name, value in row.items()} for row in groups]


def _find_oldest_stuck(messages: TrafficTable, only: Filter) -> datetime:
    """Return when the oldest of the messages that are stuck was enqueued; there is one."""
    outcomes = set(STUCK) & set(only.get("outcome") or STUCK)
    [oldest] = messages.rows((_AGE,), only={**only, "outcome": outcomes}, order=(_AGE,), limit=1).values[_AGE]
    return moment_of(oldest)
