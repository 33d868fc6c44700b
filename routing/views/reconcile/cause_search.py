"""Search the most likely cause for groups of episodes. The searches run in the order of this module."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from routing.errors import quote
from routing.render.wording import format_time
from routing.rules import text
from routing.rules.deciding import scope_of
from routing.rules.estate import ARRIVALS, AddressKind, EstateRoute, SqlInstance
from routing.rules.network import EstateNetwork
from routing.rules.reconciling import MATCHING, PairClass
from routing.rules.text import likeness
from routing.rules.timeline import moment_of
from routing.terms import ON_ITS_WAY, Outcome, Rejection
from routing.views.reconcile.episodes import CauseKind, EpisodeGroup, GroupAnswers, MismatchCause

LOCALLY = (9795, 9796, 28012, 28013)
"""Error numbers of messages that a LOCAL route matches but cannot deliver."""


class ObservedPlace(NamedTuple):
    """An instance, a service, and the database with the routes to search (msdb for arrivals)."""

    instance: str
    scope: str
    service: str


@dataclass
class ObservedLane:
    """The observations in one place, right and wrong."""

    place: ObservedPlace
    wrong: list[EpisodeGroup] = field(default_factory=list)
    correct: list[EpisodeGroup] = field(default_factory=list)


def lanes_of(groups: Iterable[EpisodeGroup]) -> dict[ObservedPlace, ObservedLane]:
    """Return the lanes of groups. Groups without a service have no lane."""
    lanes: dict[ObservedPlace, ObservedLane] = {}
    for group in groups:
        group_answers = group.answers
        if group_answers.service is None:
            continue
        place = ObservedPlace(group_answers.instance, scope_of(group_answers.database), group_answers.service)
        lane = lanes.setdefault(place, ObservedLane(place))
        if group_answers.kind is PairClass.CONTRADICTED:
            lane.wrong.append(group)
        elif group_answers.kind in MATCHING:
            lane.correct.append(group)
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
    origin = "routed in msdb" if place.scope == ARRIVALS else f"of database {quote(place.scope)}"
    return f"messages {origin} for service {quote(place.service)} on instance {quote(place.instance)}"


def when(micros: int) -> str:
    """Return a time as text has it."""
    return format_time(moment_of(micros))


def find_change(group: EpisodeGroup, lane: ObservedLane, instance: SqlInstance) -> MismatchCause | None:
    """Return a route of a lane that was right until a time, and wrong since a later one.

    The earlier answer was right if the tables still predict it and SQL Server has not given it again since.
    """
    wrong_since = min(
        wrong_group.first_at
        for wrong_group in lane.wrong
        if _observed_facts(wrong_group.answers) == _observed_facts(group.answers)
    )
    still_predicted = {wrong_group.answers.route_name for wrong_group in lane.wrong}
    before = [
        earlier
        for earlier in lane.correct
        if earlier.answers.route_name in still_predicted and earlier.last_at < wrong_since
    ]
    facts_seen_again = {_observed_facts(later.answers) for later in lane.correct if later.last_at >= wrong_since}
    no_longer_seen = [
        earlier
        for earlier in before
        if _observed_facts(earlier.answers) not in facts_seen_again and _differs(earlier.answers, group.answers)
    ]
    if not no_longer_seen:
        return None
    last = max(no_longer_seen, key=lambda earlier: earlier.last_at)
    named = _named(last.answers, routes_in(instance, lane.place))
    sentence = (
        f"{named} changed between {when(last.last_at)} and {when(wrong_since)}: {where(lane.place)} were"
        f" {describe_answer(last.answers)}, as the tables say, and then {describe_answer(group.answers)};"
        " import its routes again"
    )
    return MismatchCause(CauseKind.ROUTE_CHANGED, sentence)


def _named(right: GroupAnswers, routes: Sequence[EstateRoute]) -> str:
    """Name the route of a right answer: of several that are balanced, the one with its id or address."""
    by_broker = [route.name for route in routes if route.broker is not None and route.broker == right.broker]
    by_hop = [route.name for route in routes if right.next_hop in (route.compared, route.compared_mirror)]
    name = next(iter((*by_broker, *(by_hop if right.next_hop else ()), right.route_name)), None)
    return "the routes" if name is None else f"route {quote(name)}"


def _observed_facts(answers: GroupAnswers) -> tuple[object, ...]:
    return answers.seen_outcome, answers.error_number, answers.next_hop, answers.broker


def _differs(right: GroupAnswers, wrong: GroupAnswers) -> bool:
    """Return True if two answers surely differ. An unknown next hop may be equal to any other."""
    return right.seen_outcome is not wrong.seen_outcome or None not in (right.next_hop, wrong.next_hop)


def find_hidden(group: EpisodeGroup, lane: ObservedLane, instance: SqlInstance) -> MismatchCause | None:
    """Return a cause if SQL Server used a route that the tables do not have."""
    answers = group.answers
    went_on = answers.seen_outcome in ON_ITS_WAY
    if not went_on and answers.error_number not in LOCALLY:
        return None
    named_routes = (route for route in routes_in(instance, lane.place) if route.service is not None)
    if answers.next_hop is not None and any(answers.next_hop in _hops(route) for route in named_routes):
        return None
    direction = "to LOCAL" if not went_on or answers.seen_outcome is Outcome.DELIVERED else ""
    direction = (
        f"to {quote(answers.next_hop)}" if answers.next_hop is not None else direction or "over the network"
    )
    sentence = (
        f"a route {direction} is in force and not in the tables:"
        f" {where(lane.place)} were {describe_answer(answers)},"
        f" where the tables say {answers.outcome} ({answers.reason}); import the routes of"
        f" {quote(lane.place.scope)} again"
    )
    return MismatchCause(CauseKind.ROUTE_NOT_IN_TABLES, sentence)


# The minimal length of a name. In shorter ones a typing error looks like another name.
_SHORTEST = 4
# The compared length of long names.
_LENGTH = 256
_DIGITS = re.compile(r"\d+")


def is_near(name: str, other: str) -> bool:
    """Return True if two names differ by case, outer blanks, final slashes, or one letter.

    Names that differ only in digits are numbered, so they are two names.
    """
    if name == other:
        return False
    (whole, first, counted), (whole_too, second, counted_too) = _compared(name), _compared(other)
    if whole == whole_too:
        return True
    if min(len(first), len(second)) < _SHORTEST or abs(len(first) - len(second)) > 1:
        return False
    return counted != counted_too and _is_one_slip(first, second)


# The names of an estate are compared repeatedly.
@lru_cache(100_000)
def _compared(name: str) -> tuple[str, str, str]:
    """Return a name as names are compared, its beginning, and that without its numbers."""
    whole = likeness(name)
    return whole, whole[:_LENGTH], _DIGITS.sub("#", whole[:_LENGTH])


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the first near name in order, or None."""
    return min((other for other in names if is_near(name, other)), default=None)


def _is_one_slip(first: str, second: str) -> bool:
    """Return True if one letter differs, is missing in one of them, or two have changed places."""
    start = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    first_rest, second_rest = first[start:], second[start:]
    if len(first_rest) != len(second_rest):
        longer, shorter = sorted((first_rest, second_rest), key=len, reverse=True)
        return longer[1:] == shorter
    return first_rest[1:] == second_rest[1:] or (
        first_rest[:2] == second_rest[1::-1] and first_rest[2:] == second_rest[2:]
    )


def find_missing(answers: GroupAnswers, network: EstateNetwork) -> MismatchCause | None:
    """Find the unknown name that prevents a prediction."""
    if Rejection.UNKNOWN_INSTANCE in answers.rejections:
        return _instance(answers.instance, network)
    if Rejection.UNKNOWN_DATABASE in answers.rejections and answers.database is not None:
        return _database(answers.instance, answers.database, network)
    return None


def _instance(name: str, network: EstateNetwork) -> MismatchCause:
    near = nearest(name, network.instances)
    if near is not None:
        text = f"the tables have no instance {quote(name)}, but {quote(near)}: is it the same?"
        return MismatchCause(CauseKind.NEAR_NAME, f"{text} If so, import under one name (--instance)")
    text = f"the tables have no instance {quote(name)}: import its databases, services, endpoint and routes"
    return MismatchCause(CauseKind.INSTANCE_NOT_IMPORTED, text)


def _database(instance: str, name: str, network: EstateNetwork) -> MismatchCause:
    near = nearest(name, network.instances[instance].databases)
    whole = f"database {quote(name)} of instance {quote(instance)}"
    if near is not None:
        text = f"the tables know no {whole}, but {quote(near)}: is it the same?"
        return MismatchCause(CauseKind.NEAR_NAME, f"{text} If so, import it under one name")
    text = f"the tables know no {whole}: import sys.databases of the instance, and its services and routes"
    return MismatchCause(CauseKind.DATABASE_NOT_IMPORTED, text)


def find_near_name(
    answers: GroupAnswers, place: ObservedPlace, instance: SqlInstance, in_use: Collection[str]
) -> MismatchCause | None:
    """Find a similar name that would explain an answer. Names ``in_use`` are not typing errors."""
    for route in _near_routes(place, instance, in_use):
        if _explains(route, answers):
            named = f"route {quote(route.name)} names the service {quote(route.service)}"
            return _cause(place, f"{named}, and goes where SQL Server sent them")
    for service in sorted(instance.holders):
        is_slip = service not in in_use and is_near(place.service, service)
        if is_slip and (answers.seen_outcome is Outcome.DELIVERED or answers.error_number in LOCALLY):
            return _cause(place, f"the instance holds a service {quote(service)}, and SQL Server found one")
    return None


def _near_routes(place: ObservedPlace, instance: SqlInstance, in_use: Collection[str]) -> Iterator[EstateRoute]:
    for service, routes in instance.routes.get(place.scope, {}).items():
        if service is not None and service not in in_use and is_near(place.service, service):
            yield from routes


def _explains(route: EstateRoute, answers: GroupAnswers) -> bool:
    if answers.seen_outcome not in ON_ITS_WAY:
        # The error number shows that a LOCAL route did not deliver.
        return route.kind is AddressKind.LOCAL and answers.error_number in LOCALLY
    if route.kind is AddressKind.LOCAL:
        return answers.seen_outcome is Outcome.DELIVERED
    if answers.seen_outcome is Outcome.DELIVERED:
        return False
    return answers.next_hop is None or answers.next_hop in _hops(route)


def _hops(route: EstateRoute) -> list[str]:
    return [text.comparable_address(hop) for hop in (route.address, route.mirror_address) if hop is not None]


def _cause(place: ObservedPlace, why: str) -> MismatchCause:
    sentence = f"{where(place)} take another route than the tables say; {why}: is the name misspelt in the tables?"
    return MismatchCause(CauseKind.NEAR_NAME, sentence)


@dataclass
class CauseSearch:
    """Searches the likely causes of groups of episodes. All groups must be noted first.

    ``in_use`` are the target names of any messages of the estate, which are never typing errors.
    """

    network: EstateNetwork
    in_use: set[str] = field(default_factory=set)

    def note(self, groups: Iterable[EpisodeGroup]) -> None:
        """Note the names that are in use."""
        for group in groups:
            group_answers = group.answers
            if group_answers.service is not None and group_answers.service in self._named:
                self.in_use.add(group_answers.service)

    def find_causes(self, groups: Iterable[EpisodeGroup]) -> dict[GroupAnswers, MismatchCause]:
        """Return the likely cause of each group that contradicts the tables or has no prediction, if there is one.

        All groups of a service on an instance must be present, because correct ones date the start of a
        contradiction.
        """
        # Independent of the order of discovery.
        groups = sorted(groups, key=lambda group: (group.first_at, tuple(map(str, group.answers))))
        causes: dict[GroupAnswers, MismatchCause] = {}
        for group in groups:
            cause = find_missing(group.answers, self.network) if group.answers.rejections else None
            if cause is not None:
                causes[group.answers] = cause
        for lane in lanes_of(groups).values():
            for group in lane.wrong:
                cause = self._search(group, lane)
                if cause is not None:
                    causes[group.answers] = cause
        return causes

    def _search(self, group: EpisodeGroup, lane: ObservedLane) -> MismatchCause | None:
        instance = self.network.instances[lane.place.instance]
        return (
            find_near_name(group.answers, lane.place, instance, self.in_use)
            or find_change(group, lane, instance)
            or find_hidden(group, lane, instance)
        )

    @cached_property
    def _named(self) -> set[str]:
        """The services that routes name, or instances hold."""
        return set().union(*(instance.service_names for instance in self.network.instances.values()))
