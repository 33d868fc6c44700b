"""List the routes of a searched table, each with the reason why it did or did not match: lines of item ROUTE.

The rules list the matching routes and their use (`rules.candidate_order.list_candidates`). This module adds how
near the other routes came.
"""

from __future__ import annotations

from dataclasses import dataclass

from routing.cases.background import SHOWN, Line, line
from routing.cases.judged_questions import JudgedQuestion
from routing.groups import group_pairs
from routing.rules import choosing, text
from routing.rules.candidate_order import Candidate, list_candidates
from routing.rules.choosing import RouteTier
from routing.rules.deciding import RouteSearch
from routing.rules.estate import EstateRoute, SqlInstance
from routing.rules.matching import MatchKey, comes_before, names_service, routes_to_search, step_of
from routing.rules.resolving import RoutedMessage
from routing.rules.text import EXPIRED, NO_SERVICE, NOT_YET, OTHER_BROKER, OTHER_SERVICE, SpelledName
from routing.terms import MatchingStep, Reason, SortKey


@dataclass(frozen=True)
class ShownSearch:
    """One search of a routing table.

    ``is_requested`` is True if step 4 ends it because the message waits for a requested route. ``is_undecided`` is
    True if the pick and all later steps depend on an unknown dialog.
    """

    number: int
    route_search: RouteSearch
    is_requested: bool
    is_undecided: bool

    @property
    def looks_at_routes(self) -> bool:
        """True if routes are searched: the message is not a reply, and the scope's broker is on."""
        return self.route_search.match is not None and not self.route_search.is_reply

    @property
    def stop(self) -> MatchingStep | None:
        """The step that ended the search."""
        return MatchingStep.ROUTE_REQUEST if self.is_requested else self.route_search.step

    @property
    def is_told(self) -> bool:
        """True if tiers and later steps are the same for every dialog, or the dialog is known."""
        return self.route_search.match is not None and not self.is_requested and not self.is_undecided

    def address(self, service: str) -> str | None:
        """Return the chosen address, which may come from the service name."""
        return text.address_in_name(service) if self.route_search.reads_address else self.route_search.address

    def tiers(self) -> list[tuple[RouteTier, tuple[EstateRoute, ...], str]]:
        """List the tiers with their routes and USED, NOT_USABLE or NOT_REACHED. Empty if a dialog is missing."""
        shown_tiers, used = [], False
        for tier, routes in choosing.tiers(self.route_search.routes) if self.is_told else ():
            is_used = self.route_search.choice.is_usable and tier is self.route_search.choice.tier
            shown_tiers.append((tier, routes, "USED" if is_used else "NOT_REACHED" if used else "NOT_USABLE"))
            used = used or is_used
        return shown_tiers

    @property
    def locates(self) -> bool:
        """True if section 4 was reached, by the tier of LOCAL routes."""
        return any(
            tier.reason is Reason.LOCAL_SERVICE and finding != "NOT_REACHED" for tier, _, finding in self.tiers()
        )


def searches(judged: JudgedQuestion) -> list[ShownSearch]:
    """Return the searches of a message: none if its dialog has expired, a second one if it came back."""
    verdict = judged.case.verdicts[0]
    decision = verdict.decision
    if decision is None:
        return []
    is_requested = verdict.requested_in is not None
    # A request after the message came back shows the route that led back.
    ends_first = is_requested and verdict.rerouted_from is None
    first = ShownSearch(1, decision.first, ends_first, _hangs_on_dialog(judged, decision.first))
    if decision.second is None or ends_first or first.is_undecided:
        return [first]
    return [first, ShownSearch(2, decision.second, is_requested, _hangs_on_dialog(judged, decision.second))]


def _hangs_on_dialog(judged: JudgedQuestion, route_search: RouteSearch) -> bool:
    return judged.case.verdict is None and route_search.pick is not None


# The findings of route lines, in the order within a step.
MATCHED, EQUAL, NOT_PICKED, NO_MATCH, LATER = "MATCHED", "EQUAL", "NOT_PICKED", "NO_MATCH", "LATER"
RANKS = (MATCHED, EQUAL, NOT_PICKED, NO_MATCH, LATER)


@dataclass(frozen=True)
class SearchedRoute:
    """A route of a searched table: its step, its use, and the reasons why it did not match."""

    route: EstateRoute
    home: MatchingStep
    finding: str
    reasons: tuple[str, ...]
    is_near: bool

    @property
    def place(self) -> SortKey:
        """The sort key in the list of its step. Versions of a route share a name, but begin at different times."""
        route = self.route
        start = -(2**63) if route.live_from is None else route.live_from
        return (RANKS.index(self.finding), route.name or "", start, route.address or "")


def searched_routes(message: RoutedMessage, search: ShownSearch, instance: SqlInstance) -> list[SearchedRoute]:
    """Return every route of the searched table."""
    route_search, t = search.route_search, message.t
    by_service = instance.routes.get(route_search.scope, {})
    spelled_service = SpelledName(message.service)
    spellings = {named: [] if named is None else spelled_service.list_differences(named) for named in by_service}
    match_key = MatchKey(message.service, route_search.broker)
    searched = routes_to_search(match_key, instance, route_search.scope)
    in_force = [route for route in searched if route.is_live(t)]
    candidates = list_candidates(route_search, message.service, instance, in_force, stop=search.stop)
    matching = {id(candidate.route): candidate for candidate in candidates}
    return [
        _searched(route, match_key, t, search, matching.get(id(route)), spellings[named])
        for named, routes in by_service.items()
        for route in routes
    ]


def _searched(
    route: EstateRoute,
    match_key: MatchKey,
    t: int,
    search: ShownSearch,
    candidate: Candidate | None,
    spelling: list[str],
) -> SearchedRoute:
    actual = step_of(match_key, route)
    # The step in which the route would match a message to its own service and broker instance.
    broker = None if match_key.broker is None else route.broker or match_key.broker
    home = actual or step_of(MatchKey(route.service, broker), route) or MatchingStep.ANY_SERVICE
    reasons = tuple(_reasons(route, match_key, actual, t, spelling))
    finding = NO_MATCH if candidate is None else _finding(candidate, search)
    is_later = finding == NO_MATCH and search.stop is not None and comes_before(search.stop, home)
    return SearchedRoute(route, home, finding, reasons, OTHER_SERVICE not in reasons and not is_later)


def _reasons(
    route: EstateRoute, match_key: MatchKey, actual: MatchingStep | None, t: int, spelling: list[str]
) -> list[str]:
    """List the reasons why a route does not match at the decision time. The list is empty if it does."""
    reasons = []
    if actual is None:
        if route.service is None:
            reasons = [NO_SERVICE]
        elif names_service(match_key, route):
            reasons = [OTHER_BROKER]
        else:
            reasons = list(spelling)
    if not route.is_live(t):
        reasons.append(NOT_YET if route.live_from is not None and route.live_from > t else EXPIRED)
    return reasons


def _finding(candidate: Candidate, search: ShownSearch) -> str:
    if search.stop is None or comes_before(search.stop, candidate.step):
        return LATER
    # With a pending request the search has passed step 4.
    if candidate.step is MatchingStep.ROUTE_REQUEST:
        return MATCHED
    if not candidate.is_reached:
        return LATER
    if search.is_undecided:
        return MATCHED
    if candidate.is_picked is False:
        return NOT_PICKED
    return MATCHED if candidate.equal_route is None else EQUAL


def list_routes(routes: list[SearchedRoute], number: int) -> dict[MatchingStep, list[Line]]:
    """List up to `SHOWN` routes near the message for each step, and count the rest."""
    by_step = {}
    for step, near_routes in group_pairs((route.home, route) for route in routes if route.is_near).items():
        shown = sorted(near_routes, key=lambda route: route.place)[:SHOWN]
        by_step[step] = [_route_line(searched, number) for searched in shown]
        if len(near_routes) > SHOWN:
            unlisted = len(near_routes) - SHOWN
            by_step[step].append(line("OTHER_ROUTES", "MORE", search=number, step=int(step), count=unlisted))
    return by_step


def count_far(routes: list[SearchedRoute], number: int) -> list[Line]:
    """Return the line with the number of the other routes, if there are any."""
    far_count = sum(not searched.is_near for searched in routes)
    return [line("OTHER_ROUTES", "OTHER", search=number, count=far_count)] if far_count else []


def _route_line(searched: SearchedRoute, number: int) -> Line:
    route, reasons = searched.route, searched.reasons
    return line(
        "ROUTE",
        searched.finding,
        search=number,
        step=int(searched.home),
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
