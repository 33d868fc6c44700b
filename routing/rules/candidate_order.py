"""Rule book, sections 2 and 3: list and order all routes that a search may choose."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from routing.rules import choosing, matching
from routing.rules.choosing import RouteTier
from routing.rules.deciding import RouteSearch
from routing.rules.estate import IMPLIED_LOCAL, AddressKind, EstateRoute, SqlInstance
from routing.rules.locating import locate
from routing.rules.matching import MatchKey
from routing.terms import MatchingStep, Reason

_BY_ROUTE = (MatchingStep.BROKER_INSTANCE, MatchingStep.BALANCED)
"""The steps in which the message has the broker instance of its route."""


class Candidate(NamedTuple):
    """A valid route that matches a step of a search.

    ``tier`` is None in step 4, where routes carry the request, not the message. ``broker`` is the broker
    instance of the message on this route. ``is_picked`` is None outside step 3. ``equal_route`` is the first
    equal route by name, or None if this route is the first. ``why_not`` is a reason of sections 3 and 4.
    ``is_reached`` is True if its step ended the search.
    """

    route: EstateRoute
    step: MatchingStep
    tier: RouteTier | None
    broker: str | None
    is_picked: bool | None
    equal_route: EstateRoute | None
    leads_back: bool
    why_not: Reason | None
    is_reached: bool

    @property
    def is_usable(self) -> bool:
        """True if the message can take the route, which it cannot in step 4."""
        return self.tier is not None and self.why_not is None


def list_candidates(
    search: RouteSearch,
    service: str | None,
    instance: SqlInstance,
    routes: Iterable[EstateRoute],
    *,
    stop: MatchingStep | None,
) -> list[Candidate]:
    """Return the candidates of a search, in the order of ``routes``.

    Args:
        search: the search. It has no candidates if it looked at no route.
        service: the target service, or None if no known object has the name.
        instance: the instance with the routes.
        routes: the valid routes of the scope, by name. Routes that match no step are left out.
        stop: the step that ended the search. This is step 4 if the message waits for a requested route.
    """
    if search.match is None or search.is_reply:
        return []
    match_key, first_of = MatchKey(service, search.broker), dict[Hashable, EstateRoute]()
    candidates = []
    for route in (*routes, *((IMPLIED_LOCAL,) if search.holders else ())):
        step = matching.step_of(match_key, route)
        if step is not None:
            first = first_of.setdefault((step, choosing.identity_of(route)), route)
            same = None if first is route else first
            candidates.append(_candidate(search, instance, route, step, same, is_reached=step is stop))
    return candidates


def _candidate(
    search: RouteSearch,
    instance: SqlInstance,
    route: EstateRoute,
    step: MatchingStep,
    same: EstateRoute | None,
    *,
    is_reached: bool,
) -> Candidate:
    broker = route.broker if step in _BY_ROUTE else search.broker
    is_picked = route.broker == search.pick if step is MatchingStep.BALANCED else None
    if step is MatchingStep.ROUTE_REQUEST:
        return Candidate(route, step, None, broker, is_picked, same, False, None, is_reached)
    situation = search.situation._replace(location=locate(instance, search.holders, search.sender, broker))
    tier = choosing.tier_of(route)
    leads_back = tier is not None and tier.is_own(route, situation)
    why_not = None if tier is None else tier.why_not(situation)
    return Candidate(route, step, tier, broker, is_picked, same, leads_back, why_not, is_reached)


class CandidateRow(NamedTuple):
    """A candidate with the columns of its table and the numbers of its order.

    ``broker_instance`` is None if the message already has it. ``reads_address`` is True if the address comes from
    the message's service name.
    """

    search: int
    step_place: int
    matching_step: int
    tier_place: int | None
    tier: str | None
    route_name: str | None
    broker_instance: str | None
    address: str | None
    mirror_address: str | None
    is_picked: bool | None
    is_equal: bool
    equal_to: str | None
    leads_back: bool
    is_usable: bool
    why_not: str | None
    is_reached: bool
    reads_address: bool


class OrderTerm(NamedTuple):
    """A column of `CandidateRow` to sort by. Nulls come last."""

    column: str
    is_descending: bool = False


ORDER_WITHIN_TIER = (OrderTerm("route_name"), OrderTerm("broker_instance"))
"""The order of routes that are equally good for the transport."""
CANDIDATE_ORDER = (
    # A message that came back is decided by its second search.
    OrderTerm("search", is_descending=True),
    OrderTerm("step_place"),
    OrderTerm("is_picked", is_descending=True),
    OrderTerm("is_equal"),
    OrderTerm("is_usable", is_descending=True),
    OrderTerm("tier_place"),
    *ORDER_WITHIN_TIER,
)
"""The order of a message's candidates: the first of the last search is the route that the rules report."""


def row_of(candidate: Candidate, search: int, picked_before: str | None) -> CandidateRow:
    """Return the row of a candidate of the search with this number.

    ``picked_before`` is the broker instance that step 3 picked in the search before it.
    """
    route, tier = candidate.route, candidate.tier
    same = candidate.equal_route
    return CandidateRow(
        search,
        matching.place_of(candidate.step),
        int(candidate.step),
        None if tier is None else choosing.place_of(tier),
        None if tier is None else tier.letter,
        route.name,
        route.broker if candidate.step in _BY_ROUTE else picked_before,
        route.address,
        route.mirror_address,
        candidate.is_picked,
        same is not None,
        None if same is None else same.name,
        candidate.leads_back,
        candidate.is_usable,
        None if candidate.why_not is None else str(candidate.why_not),
        candidate.is_reached,
        candidate.is_usable and route.kind is AddressKind.TRANSPORT,
    )


def in_order(rows: Iterable[CandidateRow]) -> list[CandidateRow]:
    """Sort rows by `CANDIDATE_ORDER`."""
    return sorted(rows, key=_places)


def _places(row: CandidateRow) -> list[tuple[bool, str | int]]:
    values = row._asdict()
    return [_place(values[term.column], term) for term in CANDIDATE_ORDER]


def _place(value: str | int | None, term: OrderTerm) -> tuple[bool, str | int]:
    if value is None or isinstance(value, str):
        return value is None, value or ""
    return False, -value if term.is_descending else value
