"""The groups of one lane: what goes from one database of an instance, or arrives there, to one service."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from routing.analysis.reconcile.groups import Answers, Group
from routing.errors import quote
from routing.rules.estate import ARRIVALS, Instance, Route
from routing.rules.reconciling import Class
from routing.storage.faults import time_text
from routing.terms import Outcome

MATCHING = (Class.CONFIRMED, Class.COMPATIBLE)
WENT_ON = (Outcome.SENT, Outcome.FORWARDED, Outcome.DELIVERED)


class Place(NamedTuple):
    """An instance, a database (None for arrivals) and a service."""

    instance: str
    database: str | None
    service: str

    @property
    def scope(self) -> str:
        """The database whose routes are searched."""
        return ARRIVALS if self.database is None else self.database


@dataclass
class Lane:
    """What was observed in one place, right and wrong."""

    place: Place
    off: list[Group] = field(default_factory=list)
    right: list[Group] = field(default_factory=list)


def lanes_of(groups: Iterable[Group]) -> dict[Place, Lane]:
    """The lanes of groups; what tells of no service is in none."""
    found: dict[Place, Lane] = {}
    for group in groups:
        one = group.answers
        if one.service is None:
            continue
        lane = found.setdefault(place := Place(one.instance, one.database, one.service), Lane(place))
        if one.kind is Class.CONTRADICTED:
            lane.off.append(group)
        elif one.kind in MATCHING:
            lane.right.append(group)
    return found


def routes_in(instance: Instance, place: Place) -> Sequence[Route]:
    """The routes of the place's scope that name its service, or any."""
    return (*instance.naming(place.scope, place.service), *instance.unnamed(place.scope))


def way(answers: Answers) -> str:
    """What SQL Server did, in words."""
    did = "an outcome that is not known" if answers.seen_outcome is None else str(answers.seen_outcome)
    number = "" if answers.error_number is None else f" with number {answers.error_number}"
    hop = "" if answers.next_hop is None else f" to {quote(answers.next_hop)}"
    broker = "" if answers.broker is None else f", bound to {quote(answers.broker)}"
    return f"{did}{hop}{number}{broker}"


def where(place: Place) -> str:
    """A place in words."""
    come = "that arrive over the network" if place.database is None else f"of database {quote(place.database)}"
    return f"messages {come} for service {quote(place.service)} on instance {quote(place.instance)}"


def when(micros: int) -> str:
    """A time in words."""
    return f"{time_text(micros)} UTC"
