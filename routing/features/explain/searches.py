"""The searches that a message makes of routing tables, and which of their parts are shown."""

from __future__ import annotations

from dataclasses import dataclass

from routing.features.explain.judging import JudgedQuestion
from routing.rules import choosing, text
from routing.rules.choosing import RouteTier
from routing.rules.deciding import RouteSearch
from routing.rules.estate import EstateRoute
from routing.terms import MatchingStep, Reason


@dataclass(frozen=True)
class ShownSearch:
    """One search of a routing table that takes place.

    ``is_requested``: step 4 ends it, the message waits for a route that was requested. ``is_undecided``: what is
    picked, and all that follows, hangs on a dialog that is not given.
    """

    number: int
    route_search: RouteSearch
    is_requested: bool
    is_undecided: bool

    @property
    def looks_at_routes(self) -> bool:
        """Whether routes are looked at: it is no reply, and the scope's broker is on."""
        return self.route_search.match is not None and not self.route_search.is_reply

    @property
    def stop(self) -> MatchingStep | None:
        """The step that ended the search."""
        return MatchingStep.ROUTE_REQUEST if self.is_requested else self.route_search.step

    @property
    def is_told(self) -> bool:
        """Whether tiers and what follows them are the same for every dialog, or the dialog is known."""
        return self.route_search.match is not None and not self.is_requested and not self.is_undecided

    def address(self, service: str) -> str | None:
        """Return the address that was chosen, read from the service name where the route leaves it to that."""
        return text.address_in_name(service) if self.route_search.reads_address else self.route_search.address

    def tiers(self) -> list[tuple[RouteTier, tuple[EstateRoute, ...], str]]:
        """List tiers that have routes, each with these and USED, NOT_USABLE or NOT_REACHED; empty if not told."""
        shown_tiers, used = [], False
        for tier, routes in choosing.tiers(self.route_search.routes) if self.is_told else ():
            is_used = self.route_search.choice.is_usable and tier is self.route_search.choice.tier
            shown_tiers.append((tier, routes, "USED" if is_used else "NOT_REACHED" if used else "NOT_USABLE"))
            used = used or is_used
        return shown_tiers

    @property
    def locates(self) -> bool:
        """Whether section 4 was asked: the tier of LOCAL routes was reached."""
        return any(
            tier.reason is Reason.LOCAL_SERVICE and finding != "NOT_REACHED" for tier, _, finding in self.tiers()
        )


def searches(judged: JudgedQuestion) -> list[ShownSearch]:
    """Return the searches of a message: none if its dialog has expired, a second one if it came back."""
    verdict, decision = judged.verdict, judged.decision
    if verdict.decision is None:
        return []
    is_requested = verdict.requested_in is not None
    # What is requested after the message came back names the route that led it there.
    ends_first = is_requested and verdict.rerouted_from is None
    first = ShownSearch(1, decision.first, ends_first, _hangs_on_dialog(judged, decision.first))
    if decision.again is None or ends_first or first.is_undecided:
        return [first]
    return [first, ShownSearch(2, decision.again, is_requested, _hangs_on_dialog(judged, decision.again))]


def _hangs_on_dialog(judged: JudgedQuestion, route_search: RouteSearch) -> bool:
    return judged.is_undecided and route_search.pick is not None
