"""Routes that no message can take, and open routes that two instances answer."""

from __future__ import annotations

from collections.abc import Iterator

from routing.analysis.lint.estate import Estate
from routing.analysis.lint.finding import Found, finding, list_names
from routing.analysis.lint.hazards import Hazards
from routing.analysis.lint.probing import Answers, addresses_of
from routing.analysis.lint.refused import catches_all
from routing.analysis.lint.walks import Choice
from routing.rules.choosing import tier_of
from routing.terms import MatchingStep


def shadowed_routes(estate: Estate, given: Answers) -> Iterator[Found]:
    """SBR027: whatever message a route matches takes another one.

    Left alone: routes that match in no step, have no address that can be used, or whose database's broker is
    off (findings of their own), and the LOCAL route for any service, which waits for services still to come.
    """
    used: set[tuple[tuple[str, str], str | None]] = set()
    # Of a route's own question (its service and its id) the first answer by name.
    winners: dict[tuple[tuple[str, str], str | None, str | None], str] = {}
    for verdict in given.routes:
        place, (_, _, service, broker) = verdict.place, verdict.asked
        for leg in verdict.legs:
            used |= {(place, route.name) for route in (leg.reported, *leg.alternatives) if route is not None}
            name = leg.route_name
            if name is not None and service is not None:
                own = (place, service, broker)
                winners[own] = min(name, winners.get(own, name))
    for said, routes in given.contested.items():
        if not estate.instances[said.instance].is_enabled(said.database):
            continue
        other = winners.get((said.place, said.service, said.broker), "another route for any service")
        for route in routes:
            is_usable = tier_of(route) is not None and not catches_all(route)
            if is_usable and (said.place, route.name) not in used:
                yield finding("SBR027", said.place, route.name, "every message that it matches takes %s", other)


def open_to_several(estate: Estate, given: Answers, proved: Hazards) -> Iterator[Found]:
    """SBR018: routes without broker id that the transport may use in turn lead to several holders.

    Only places that the tables know can be judged; gateways do not hold the service and are no hazard. What is
    proved of the same scope and service is an error of its own, and no warning besides.
    """
    for verdict in given.routes:
        service = verdict.asked.service
        if Choice(*verdict.place, service or "") in proved:
            continue
        for leg in verdict.legs:
            if leg.step is not MatchingStep.SERVICE or not leg.alternatives:
                continue
            places = (place for address in addresses_of(leg, service) for place in estate.places.get(address, ()))
            targets = {place.name for place in places if place.holders_of(service)}
            if len(targets) > 1:
                said = "it and others without broker id lead to '%s' at %s"
                yield finding("SBR018", verdict.place, leg.route_name, said, service, list_names(targets))
