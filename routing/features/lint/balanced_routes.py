"""Load-balancing routes: those that no open dialog reaches, and those that stand twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from routing.features.lint.lint_estate import LintEstate
from routing.features.lint.lint_finding import LintFinding, finding, list_names
from routing.rules.choosing import distinct_routes
from routing.rules.estate import EstateRoute
from routing.rules.matching import MatchKey, step_of
from routing.terms import MatchingStep


class BalancedService(NamedTuple):
    """A service that several broker ids share the open dialogs of, by the routes of a database.

    ``by_broker``: the balanced routes of each id, by name. ``open_routes``: those for the service without an id.
    """

    place: tuple[str, str]
    service: str
    by_broker: dict[str | None, list[EstateRoute]]
    open_routes: Sequence[EstateRoute]


def balanced_services(estate: LintEstate) -> list[BalancedService]:
    """Return the services that routes in force balance over two broker ids or more."""
    grouped: dict[tuple[str, str, str], dict[MatchingStep, list[EstateRoute]]] = {}
    for instance, database, route in estate.live_routes:
        if route.service is not None:
            step = step_of(MatchKey(route.service, None), route)
            if step is not None:
                by_step = grouped.setdefault((instance, database, route.service), {})
                by_step.setdefault(step, []).append(route)
    services = []
    for (instance, database, service), by_step in grouped.items():
        by_broker: dict[str | None, list[EstateRoute]] = {}
        for route in by_step.get(MatchingStep.BALANCED, ()):
            by_broker.setdefault(route.broker, []).append(route)
        if len(by_broker) > 1:
            open_routes = by_step.get(MatchingStep.SERVICE, ())
            services.append(BalancedService((instance, database), service, by_broker, open_routes))
    return services


def unbalanced_routes(balanced: Iterable[BalancedService]) -> Iterator[LintFinding]:
    """Find SBR017: an open message's search ends with a route without broker id, before ids are balanced.

    One finding for each such route.
    """
    for one in balanced:
        for route in one.open_routes:
            never = list_names(other.name or "" for routes in one.by_broker.values() for other in routes)
            sentence = "open dialogs to '%s' take it and never %s"
            yield finding("SBR017", one.place, route.name, sentence, one.service, never)


def doubled_routes(balanced: Iterable[BalancedService]) -> Iterator[LintFinding]:
    """Find SBR047: a balanced route equals another one, so its broker id gets no greater share (section 2.3)."""
    for one in balanced:
        for broker, routes in one.by_broker.items():
            distinct = distinct_routes(routes)
            for route in routes:
                [first] = [other for other in distinct if _is_same(other, route)]
                if first is not route:
                    sentence = "it is the same as %s: the share of broker id %s stays one of %s"
                    values = (first.name, broker, str(len(one.by_broker)))
                    yield finding("SBR047", one.place, route.name, sentence, *values)


def _is_same(route: EstateRoute, other: EstateRoute) -> bool:
    return len(distinct_routes([route, other])) == 1
