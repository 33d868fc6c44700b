"""Episodes counted by what was predicted and observed: what the search for a cause looks at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from routing.rules.reconciling import PairClass
from routing.terms import Outcome, Reason, Word


class GroupAnswers(NamedTuple):
    """The facts that episodes of one group share.

    ``database`` is None for arrivals. ``next_hop`` is the observed one as addresses are compared, ``broker`` the
    observed id, as ids are compared; ``address`` and ``route_name`` those of the prediction. ``rejections`` are
    the codes for which nothing was predicted (class NOT_PREDICTED), then outcome and reason are None.
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
class EpisodeGroup:
    """Episodes with the same answers: how many, and from when to when they began (microseconds).

    ``observations``: how many rows they are of.
    """

    answers: GroupAnswers
    episodes: int
    first_at: int
    last_at: int
    observations: int = 0


class CauseKind(Word):
    """The most likely cause of a mismatch."""

    CLOCK_OFF = "CLOCK_OFF"
    ROUTE_CHANGED = "ROUTE_CHANGED"
    NEAR_NAME = "NEAR_NAME"
    INSTANCE_NOT_IMPORTED = "INSTANCE_NOT_IMPORTED"
    DATABASE_NOT_IMPORTED = "DATABASE_NOT_IMPORTED"
    ROUTE_NOT_IN_TABLES = "ROUTE_NOT_IN_TABLES"


class MismatchCause(NamedTuple):
    """A cause and the sentence that tells it, with names, addresses and times."""

    kind: CauseKind
    text: str


@dataclass
class PickedInstances:
    """The share of predictions whose broker id is the one that was observed."""

    episodes: int = 0
    same: int = 0


Balanced = Mapping[tuple[str, str, int], PickedInstances]
"""Picks by instance, service, and number of broker ids that the dialog-ID hash picks among."""
