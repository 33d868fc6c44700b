"""An episode: consecutive observations of one conversation, role and service with the same answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from routing.rules import text
from routing.rules.reconciling import PairClass, SeenMessage
from routing.rules.resolving import DIALOG_COLUMNS, NO_DIALOG, DialogFacts
from routing.schemas import ColumnKind, Field, Schema
from routing.terms import (
    FORWARD_DROPPED,
    FORWARD_SENT,
    UNDELIVERABLE,
    Outcome,
    ReadRow,
    Reason,
    Word,
    known_outcome,
)

T = TypeVar("T")

TRAFFIC = ("observed_routing", "messages", "dialogs")
"""The tables that grow. One engine reads all of them."""
APART = 192_000_000
"""The microseconds between two episodes. SQL Server tries again after 64 s at the latest."""
OF_ARRIVALS = (FORWARD_SENT, FORWARD_DROPPED, UNDELIVERABLE)
"""Sources that always describe arrivals over the network."""
SIDE = ("instance_name", "database_name", "conversation_id", "is_initiator", "to_service_name", "is_arrival")
"""The columns that are equal in observations of one episode."""
ANSWER = ("outcome", "error_number", "next_hop", "to_broker_instance")
"""The columns of their answer, which is equal as well."""
_OF_EVENTS = ("remaining_hop_count", "time_to_live_seconds", "live_time_seconds")
ORDER = ("observed_at", "source", "message_id", *ANSWER, "status_text", *_OF_EVENTS)
"""The order of the observations of a side. Equal ones have the same content."""
_FIRST = ("message_id", "source", "status_text", *_OF_EVENTS)
"""The columns of the first observation of an episode."""
_KINDS = {
    "is_initiator": ColumnKind.BOOLEAN,
    "is_arrival": ColumnKind.BOOLEAN,
    "error_number": ColumnKind.INT,
    "remaining_hop_count": ColumnKind.INT,
    "time_to_live_seconds": ColumnKind.BIGINT,
    "live_time_seconds": ColumnKind.BIGINT,
    "first_at": ColumnKind.BIGINT,
    "last_at": ColumnKind.BIGINT,
    "observations": ColumnKind.BIGINT,
}
EPISODES = Schema(
    tuple(
        Field(name, _KINDS.get(name, ColumnKind.STRING))
        for name in (*SIDE, *ANSWER, *_FIRST, "first_at", "last_at", "observations")
    )
)
"""The columns of episodes. Times are microseconds since 1970."""


END = ("instance_name", "database_name", "conversation_id", "is_initiator")
"""The columns that identify the ends of conversations."""
OWN = ("is_named", "own", *DIALOG_COLUMNS)
"""The facts of an episode's end from messages and dialogs: True if messages have it, and its broker instances."""


class ObservedEpisode(NamedTuple):
    """An observation that was made once or repeatedly, with the facts of its end of the conversation.

    ``database`` is None for arrivals (or events without one), and ``service`` is None if unknown. The broker
    instance of ``message`` is that of a queued message. An event has either that id or the picked one.
    ``is_named`` is True if messages have this end, and ``own`` is the broker instance that they name. Times are
    microseconds.
    """

    instance: str
    database: str | None
    conversation: str
    is_initiator: bool | None
    service: str | None
    first_at: int
    observations: int
    is_arrival: bool
    message: SeenMessage
    is_named: bool
    own: str | None
    dialog: DialogFacts


def episode_of(row: ReadRow) -> ObservedEpisode:
    """Return the episode of a row, which has the columns of `EPISODES` and `OWN`."""
    status = text.empty_as_null(row["status_text"])
    seen_outcome, number = known_outcome(row["outcome"]), row["error_number"] or None
    seen_message = SeenMessage(
        row["source"],
        seen_outcome,
        number,
        text.broker_id(row["to_broker_instance"]),
        text.empty_as_null(row["next_hop"]),
        number is None and seen_outcome is None and (status or row["outcome"]) is not None,
        row["remaining_hop_count"],
        row["time_to_live_seconds"],
        row["live_time_seconds"],
    )
    database, is_initiator = text.empty_as_null(row["database_name"]), row["is_initiator"]
    is_end = database is not None and is_initiator is not None
    return ObservedEpisode(
        row["instance_name"],
        None if row["is_arrival"] else database,
        row["conversation_id"],
        is_initiator,
        text.empty_as_null(row["to_service_name"]),
        row["first_at"],
        row["observations"],
        row["is_arrival"],
        seen_message,
        bool(row["is_named"]),
        row["own"],
        DialogFacts.of_row(*(row[name] for name in DIALOG_COLUMNS)) if is_end else NO_DIALOG,
    )


class GroupAnswers(NamedTuple):
    """The facts that episodes of one group share.

    ``database`` is None for arrivals. ``next_hop`` and ``broker`` are the observed address and id in their form
    for comparison. ``address`` and ``route_name`` are predicted. ``rejections`` are the codes that prevented a
    prediction (class NOT_PREDICTED). Outcome and reason are then None.
    """

    instance: str
    database: str | None
    service: str | None
    kind: PairClass
    source: str
    seen_outcome: Outcome | None
    error_number: int | None
    next_hop: str | None
    broker: str | None
    outcome: Outcome | None
    reason: Reason | None
    route_name: str | None
    address: str | None
    rejections: tuple[str, ...] = ()


@dataclass
class EpisodeCount:
    """A number of episodes and of their rows, with the times of their first and last start (microseconds)."""

    episodes: int
    observations: int
    first_at: int
    last_at: int

    def add(self, other: EpisodeCount) -> None:
        """Count others as well."""
        self.episodes += other.episodes
        self.observations += other.observations
        self.first_at, self.last_at = min(self.first_at, other.first_at), max(self.last_at, other.last_at)


@dataclass
class EpisodeGroup(EpisodeCount):
    """Episodes with the same answers."""

    answers: GroupAnswers


class CauseKind(Word):
    """The most likely cause of a mismatch."""

    ROUTE_CHANGED = "ROUTE_CHANGED"
    NEAR_NAME = "NEAR_NAME"
    INSTANCE_NOT_IMPORTED = "INSTANCE_NOT_IMPORTED"
    DATABASE_NOT_IMPORTED = "DATABASE_NOT_IMPORTED"
    ROUTE_NOT_IN_TABLES = "ROUTE_NOT_IN_TABLES"


class MismatchCause(NamedTuple):
    """A cause and its sentence with names, addresses and times."""

    kind: CauseKind
    text: str


@dataclass
class PickedInstances:
    """The share of predictions with the observed broker instance."""

    episodes: int = 0
    same: int = 0


Balanced = Mapping[tuple[str, str, int], PickedInstances]
"""Picks by instance, service, and number of broker instances that the dialog-ID hash picks among."""


RENAMED = {
    "observed_outcome": "outcome",
    "observed_error_number": "error_number",
    "observed_status_text": "status_text",
    "observed_broker_instance": "to_broker_instance",
    "observed_next_hop": "next_hop",
    "first_observed_at": "first_at",
    "last_observed_at": "last_at",
}
"""Columns of episodes by their names in the output, if these differ."""


@dataclass
class ObservedEpisodes:
    """The judged and counted episodes of ``observations`` rows of ``observed_routing``.

    ``counts`` holds every episode once, by instance and class. ``causes`` has the explained episodes by instance
    and cause. ``unobserved`` is the number of sides with messages but without observations.
    """

    observations: int
    unobserved: int
    counts: dict[tuple[str, PairClass], EpisodeCount] = field(default_factory=dict)
    causes: dict[tuple[str, MismatchCause], EpisodeCount] = field(default_factory=dict)
    balanced: dict[tuple[str, str, int], PickedInstances] = field(default_factory=dict)

    def add(
        self, groups: Iterable[EpisodeGroup], causes: Mapping[GroupAnswers, MismatchCause], balanced: Balanced
    ) -> None:
        """Count the groups of some services on some instances, all of them, with the causes of some groups."""
        for group in groups:
            instance, cause = group.answers.instance, causes.get(group.answers)
            _count(self.counts, (instance, group.answers.kind), group)
            if cause is not None:
                _count(self.causes, (instance, cause), group)
        self.balanced.update(balanced)


def _count(counts: dict[T, EpisodeCount], key: T, group: EpisodeGroup) -> None:
    counts.setdefault(key, EpisodeCount(0, 0, group.first_at, group.last_at)).add(group)
