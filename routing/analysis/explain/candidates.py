"""The routes of a searched table, each with why it did or did not match: lines of item ROUTE.

Whether a route matches is asked of the rules (`matching.step_of`, `Route.is_live`); what this room adds is how
near a route came that did not.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from routing.analysis.differing import (
    EXPIRED,
    NO_SERVICE,
    NOT_YET,
    OTHER_BROKER,
    OTHER_SERVICE,
    differences,
)
from routing.analysis.explain.lines import SHOWN, Line, line
from routing.analysis.explain.searches import Search
from routing.rules.estate import Instance, Route
from routing.rules.matching import Bound, comes_before, names_service, step_of
from routing.rules.resolving import Message
from routing.terms import MatchingStep

# What a route's line finds, in the order in which a step lists them.
MATCHED, EQUAL, NOT_PICKED, NO_MATCH, LATER = "MATCHED", "EQUAL", "NOT_PICKED", "NO_MATCH", "LATER"
RANKS = (MATCHED, EQUAL, NOT_PICKED, NO_MATCH, LATER)


@dataclass(frozen=True)
class Candidate:
    """A route of a searched table: the step that it belongs to, what became of it, and why it did not match."""

    route: Route
    home: MatchingStep
    finding: str
    reasons: tuple[str, ...]
    is_near: bool

    @property
    def place(self) -> tuple[int, str, int, str]:
        """Its place in the list of its step; versions of a route share a name, and begin at different times."""
        route = self.route
        start = -(2**63) if route.live_from is None else route.live_from
        return (RANKS.index(self.finding), route.name or "", start, route.address or "")


def candidates(message: Message, search: Search, instance: Instance) -> list[Candidate]:
    """Every route of the searched table."""
    by_service = instance.routes.get(search.leg.scope, {}).values()
    bound = Bound(message.service, search.leg.broker)
    counting = {route.name for route in search.leg.routes}
    return [_candidate(route, bound, message.t, search, counting) for routes in by_service for route in routes]


def _candidate(route: Route, bound: Bound, t: int, search: Search, counting: set[str | None]) -> Candidate:
    actual = step_of(bound, route)
    # The step in which the route would match a message that asks for just what it names.
    wanted = None if bound.broker is None else route.broker or bound.broker
    home = actual or step_of(Bound(route.service, wanted), route) or MatchingStep.ANY_SERVICE
    reasons = tuple(_reasons(route, bound, actual, t))
    finding = NO_MATCH if reasons or actual is None else _finding(route, actual, search, counting)
    is_later = finding == NO_MATCH and search.stop is not None and comes_before(search.stop, home)
    return Candidate(route, home, finding, reasons, OTHER_SERVICE not in reasons and not is_later)


def _reasons(route: Route, bound: Bound, actual: MatchingStep | None, t: int) -> list[str]:
    """Why a route does not match at the moment of the decision; empty where it does."""
    found = []
    if actual is None:
        if route.service is None:
            found = [NO_SERVICE]
        elif names_service(bound, route):
            found = [OTHER_BROKER]
        else:
            found = differences(bound.service or "", route.service)
    if not route.is_live(t):
        found.append(NOT_YET if route.live_from is not None and route.live_from > t else EXPIRED)
    return found


def _finding(route: Route, actual: MatchingStep, search: Search, counting: set[str | None]) -> str:
    """What became of a route that matches in a step."""
    is_reached = search.stop is not None and not comes_before(search.stop, actual)
    if is_reached and actual is MatchingStep.ROUTE_REQUEST:
        return MATCHED
    if not is_reached or actual is not search.leg.step:
        return LATER
    if search.is_undecided:
        return MATCHED
    if search.leg.pick is not None and route.broker != search.leg.pick:
        return NOT_PICKED
    return MATCHED if route.name in counting else EQUAL


@dataclass(frozen=True)
class Listed:
    """The lines of routes by the step they belong to, and how many others the table has."""

    by_step: dict[MatchingStep, list[Line]]
    others: list[Line]


def list_routes(found: list[Candidate], number: int) -> Listed:
    """Routes near the message, at most `SHOWN` of a step; the rest are counted."""
    near: dict[MatchingStep, list[Candidate]] = defaultdict(list)
    for candidate in found:
        if candidate.is_near:
            near[candidate.home].append(candidate)
    by_step = {}
    for step, mine in near.items():
        shown = sorted(mine, key=lambda each: each.place)[:SHOWN]
        by_step[step] = [_route_line(candidate, number) for candidate in shown]
        if len(mine) > SHOWN:
            more = len(mine) - SHOWN
            by_step[step].append(line("OTHER_ROUTES", "MORE", search=number, step=int(step), count=more))
    far = sum(not candidate.is_near for candidate in found)
    return Listed(by_step, [line("OTHER_ROUTES", "OTHER", search=number, count=far)] if far else [])


def _route_line(candidate: Candidate, number: int) -> Line:
    route, reasons = candidate.route, candidate.reasons
    return line(
        "ROUTE",
        candidate.finding,
        search=number,
        step=int(candidate.home),
        name=route.name,
        reasons=list(reasons) or None,
        service_name=route.service,
        broker_instance=route.broker,
        address=route.address,
        mirror_address=route.mirror_address,
        valid_from=route.live_from,
        valid_to=route.live_to,
        at=route.live_to if EXPIRED in reasons else route.live_from if NOT_YET in reasons else None,
    )
