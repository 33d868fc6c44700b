"""The groups of one lane: what is routed in one database of an instance, for one service."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from routing.errors import quote
from routing.features.reconcile.groups import EpisodeGroup, GroupAnswers
from routing.render.wording import format_time
from routing.rules.deciding import scope_of
from routing.rules.estate import ARRIVALS, EstateRoute, SqlInstance
from routing.rules.reconciling import MATCHING, PairClass
from routing.tables.times import moment_of
from routing.terms import Outcome

LOCALLY = (9795, 9796, 28012, 28013)
"""Numbers of what a LOCAL route leads to, and is not delivered there."""
WENT_ON = (Outcome.SENT, Outcome.FORWARDED, Outcome.DELIVERED)


class ObservedPlace(NamedTuple):
    """An instance, the database whose routes are searched (msdb for arrivals) and a service."""

    instance: str
    scope: str
    service: str


@dataclass
class ObservedLane:
    """The observations in one place, right and wrong."""

    place: ObservedPlace
    off: list[EpisodeGroup] = field(default_factory=list)
    right: list[EpisodeGroup] = field(default_factory=list)


def lanes_of(groups: Iterable[EpisodeGroup]) -> dict[ObservedPlace, ObservedLane]:
    """Return the lanes of groups; what tells of no service is in none."""
    lanes: dict[ObservedPlace, ObservedLane] = {}
    for group in groups:
        one = group.answers
        if one.service is None:
            continue
        place = ObservedPlace(one.instance, scope_of(one.database), one.service)
        lane = lanes.setdefault(place, ObservedLane(place))
        if one.kind is PairClass.CONTRADICTED:
            lane.off.append(group)
        elif one.kind in MATCHING:
            lane.right.append(group)
    return lanes


def routes_in(instance: SqlInstance, place: ObservedPlace) -> Sequence[EstateRoute]:
    """Return the routes of the place's scope that name its service, or any."""
    return (*instance.naming(place.scope, place.service), *instance.unnamed(place.scope))


def describe_answer(answers: GroupAnswers) -> str:
    """Write SQL Server's answer in words."""
    did = "an outcome that is not known" if answers.seen_outcome is None else str(answers.seen_outcome)
    number = "" if answers.error_number is None else f" with number {answers.error_number}"
    hop = "" if answers.next_hop is None else f" to {quote(answers.next_hop)}"
    broker = "" if answers.broker is None else f", bound to {quote(answers.broker)}"
    return f"{did}{hop}{number}{broker}"


def where(place: ObservedPlace) -> str:
    """Return a place in words."""
    come = "routed in msdb" if place.scope == ARRIVALS else f"of database {quote(place.scope)}"
    return f"messages {come} for service {quote(place.service)} on instance {quote(place.instance)}"


def when(micros: int) -> str:
    """Return a time as text has it."""
    return format_time(moment_of(micros))
