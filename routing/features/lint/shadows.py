"""Routes that no message can take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from routing.features.lint.balanced_routes import BalancedService, doubled_routes
from routing.features.lint.lint_estate import LintEstate
from routing.features.lint.lint_finding import LintFinding, finding
from routing.features.lint.probing import ProbeAnswers
from routing.features.lint.refused import catches_all
from routing.rules.choosing import tier_of


def shadowed_routes(
    estate: LintEstate, given: ProbeAnswers, balanced: Iterable[BalancedService]
) -> Iterator[LintFinding]:
    """Find SBR027: another route takes every message that a route matches.

    Left alone: routes that match in no step, have no address that can be used, stand twice among balanced ones,
    or whose database's broker is off (findings of their own), and the LOCAL route for any service, which waits
    for services still to come.
    """
    doubled = {(one.instance_name, one.database_name, one.object) for one in doubled_routes(balanced)}
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
            is_told = (*said.place, route.name) in doubled
            if is_usable and not is_told and (said.place, route.name) not in used:
                yield finding("SBR027", said.place, route.name, "every message that it matches takes %s", other)
