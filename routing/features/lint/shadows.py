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
    estate: LintEstate, probe_answers: ProbeAnswers, balanced: Iterable[BalancedService]
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
    for verdict in probe_answers.routes:
        place, (_, _, service, broker) = verdict.place, verdict.asked
        for search in verdict.searches:
            used |= {(place, route.name) for route in (search.reported, *search.alternatives) if route is not None}
            name = search.route_name
            if name is not None and service is not None:
                question = (place, service, broker)
                winners[question] = min(name, winners.get(question, name))
    for selector, routes in probe_answers.contested.items():
        if not estate.instances[selector.instance].is_enabled(selector.database):
            continue
        other = winners.get((selector.place, selector.service, selector.broker), "another route for any service")
        for route in routes:
            is_usable = tier_of(route) is not None and not catches_all(route)
            is_told = (*selector.place, route.name) in doubled
            if is_usable and not is_told and (selector.place, route.name) not in used:
                yield finding(
                    "SBR027", selector.place, route.name, "every message that it matches takes %s", other
                )
