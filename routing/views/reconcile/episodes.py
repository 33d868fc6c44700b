"""An episode: consecutive observations of one conversation, role and service with the same answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from routing.rules import text
from routing.rules.reconciling import PairClass, SeenMessage
from routing.schemas import ColumnKind, Field, Schema
from routing.tables.table_columns import Table
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

if TYPE_CHECKING:
    from routing.delta.ledger import ReplacedOutput

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


class ObservedEpisode(NamedTuple):
    """An observation that was made once or repeatedly.

    ``database`` is None for arrivals (or events without one), and ``service`` is None if unknown. ``broker_told``
    is the observed id in its form for comparison. A TRANSMISSION_QUEUE has the id of the message,
    and an event has either that id or the picked one. Times are microseconds.
    """

    instance: str
    database: str | None
    conversation: str
    is_initiator: bool | None
    service: str | None
    message_id: str | None
    source: str
    first_at: int
    last_at: int
    observations: int
    broker_told: str | None
    is_arrival: bool
    message: SeenMessage
    status_text: str | None = None

    @classmethod
    def of_row(
        cls,
        instance_name: str,
        database_name: str | None,
        conversation_id: str,
        is_initiator: bool | None,
        to_service_name: str | None,
        is_arrival: bool,
        outcome: str | None,
        error_number: int | None,
        next_hop: str | None,
        to_broker_instance: str | None,
        message_id: str | None,
        source: str,
        status_text: str | None,
        remaining_hop_count: int | None,
        time_to_live_seconds: int | None,
        live_time_seconds: int | None,
        first_at: int,
        last_at: int,
        observations: int,
    ) -> ObservedEpisode:
        """Return a row in the columns of `EPISODES`."""
        broker = text.broker_id(to_broker_instance)
        status = text.empty_as_null(status_text)
        seen_outcome, number = known_outcome(outcome), error_number or None
        seen_message = SeenMessage(
            source,
            seen_outcome,
            number,
            broker,
            text.empty_as_null(next_hop),
            number is None and seen_outcome is None and (status or outcome) is not None,
            remaining_hop_count,
            time_to_live_seconds,
            live_time_seconds,
        )
        return cls(
            instance_name,
            None if is_arrival else text.empty_as_null(database_name),
            conversation_id,
            is_initiator,
            text.empty_as_null(to_service_name),
            message_id,
            source,
            first_at,
            last_at,
            observations,
            broker,
            is_arrival,
            seen_message,
            status,
        )


def episode_of(row: ReadRow) -> ObservedEpisode:
    """Return the episode of a row, which has the columns of `EPISODES`."""
    return ObservedEpisode.of_row(*(row[name] for name in EPISODES.names))


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
    and cause. ``unobserved`` is the number of sides with messages but without observations. ``rows`` are those of
    ``reconciliation``, or None if they are not kept.
    """

    observations: int
    unobserved: int
    counts: dict[tuple[str, PairClass], EpisodeCount] = field(default_factory=dict)
    causes: dict[tuple[str, MismatchCause], EpisodeCount] = field(default_factory=dict)
    balanced: dict[tuple[str, str, int], PickedInstances] = field(default_factory=dict)
    rows: Table | None = None

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


class JudgedTraffic(Protocol):
    """All judged episodes of one engine's tables, before the rows of ``reconciliation`` are made."""

    def summarize(self, rows: Table | None) -> ObservedEpisodes:
        """Return the judged episodes with their ``rows``, or None if these are not kept."""

    def replace_output(self, place: ReplacedOutput, metadata: str) -> tuple[Table, int]:
        """Write all rows in place of an output's, and return where they are, with the version that made.

        ``metadata`` is that of the commit. Raises StorageError.
        """

    def make_rows(self) -> Table:
        """Return all rows."""
