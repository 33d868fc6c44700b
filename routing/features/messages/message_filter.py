"""The filter of a list of messages, and its order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from routing.features.explain.questions import QuestionError
from routing.tables.table_columns import Only
from routing.terms import Outcome, Reason, Word

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
HELD = ("instance_name", "database_name", "message_id")
"""What tells a message of an exported queue."""


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
