"""Rule book, section 2: match routes with a message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from routing.rules.estate import EstateRoute, RoutesByBroker, SqlInstance, by_name
from routing.terms import BROKER_CONFIGURATION_SERVICE, MatchingStep

UNNAMED = ""
"""A placeholder for a broker instance that no object of the instance has. It equals no other."""


class MatchKey(NamedTuple):
    """The facts of a message that the matching compares.

    ``service`` is None if no known object has the name. ``broker`` is None for an open message.
    """

    service: str | None
    broker: str | None


def names_service(message: MatchKey, route: EstateRoute) -> bool:
    """Return True if the route names the message's service, exactly."""
    return route.service is not None and route.service == message.service


def broker_instance(message: MatchKey, route: EstateRoute) -> bool:
    """Match in step 1: the route has the service and the broker instance of the bound message."""
    return names_service(message, route) and message.broker is not None and route.broker == message.broker


def service(message: MatchKey, route: EstateRoute) -> bool:
    """Match in step 2: the route has the service and no broker instance."""
    return names_service(message, route) and route.broker is None


def balanced(message: MatchKey, route: EstateRoute) -> bool:
    """Match in step 3: the message is open, and the route has the service and a broker instance."""
    return names_service(message, route) and route.broker is not None and message.broker is None


def route_request(message: MatchKey, route: EstateRoute) -> bool:
    """Match in step 4: the route leads to the BrokerConfiguration service."""
    return route.service == BROKER_CONFIGURATION_SERVICE


def any_service(message: MatchKey, route: EstateRoute) -> bool:
    """Match in step 5: the route has neither service nor broker instance (D3)."""
    return not route.is_implied and route.service is None and route.broker is None


def service_of_this_instance(message: MatchKey, route: EstateRoute) -> bool:
    """Match in step 6: a bound message to a service of this instance takes the implied LOCAL route."""
    return route.is_implied and message.broker is not None


@dataclass(frozen=True)
class SearchStep:
    """One step of the search with its published number."""

    number: MatchingStep
    matches: Callable[[MatchKey, EstateRoute], bool]


# The order of the steps is defined only here. A route belongs to the first step in which it matches.
STEPS = (
    SearchStep(MatchingStep.BROKER_INSTANCE, broker_instance),
    SearchStep(MatchingStep.SERVICE, service),
    SearchStep(MatchingStep.BALANCED, balanced),
    SearchStep(MatchingStep.ROUTE_REQUEST, route_request),
    SearchStep(MatchingStep.ANY_SERVICE, any_service),
    SearchStep(MatchingStep.SERVICE_OF_THIS_INSTANCE, service_of_this_instance),
)
_PLACE = {step.number: place for place, step in enumerate(STEPS)}


def step_of(message: MatchKey, route: EstateRoute) -> MatchingStep | None:
    """Return the first step in which a route matches a message, or None."""
    for step in STEPS:
        if step.matches(message, route):
            return step.number
    return None


def comes_before(step: MatchingStep, other: MatchingStep) -> bool:
    """Return True if one step comes before another. A reply comes first, the end (7) last."""
    return place_of(step) < place_of(other)


def place_of(step: MatchingStep) -> int:
    """Return the position of a step in the search. A reply comes first, no match last."""
    if step is MatchingStep.REPLY:
        return -1
    return _PLACE.get(step, len(STEPS))


class RouteMatch(NamedTuple):
    """The result of a search: the step that ends it, and its routes in order.

    If ``asks``, the search passed step 4 first. The result then applies only while a request is pending. Otherwise
    the message opens one (section 5).
    """

    step: MatchingStep
    routes: tuple[EstateRoute, ...]
    asks: bool


def search(message: MatchKey, routes: Iterable[EstateRoute]) -> RouteMatch:
    """Search valid routes, and the implied route to a service of this instance (steps 1 to 7)."""
    routes_by_step: dict[MatchingStep, list[EstateRoute]] = {}
    for route in routes:
        step = step_of(message, route)
        if step is not None:
            routes_by_step.setdefault(step, []).append(route)
    asks = False
    for step_ in STEPS:
        if step_.number not in routes_by_step:
            continue
        if step_.number is MatchingStep.ROUTE_REQUEST:
            asks = True
        else:
            return RouteMatch(step_.number, tuple(routes_by_step[step_.number]), asks)
    return RouteMatch(MatchingStep.NO_MATCH, (), asks)


def picks(match: RouteMatch) -> list[tuple[str | None, tuple[EstateRoute, ...]]]:
    """Return the distinct broker instances of step 3's matches, sorted, each with its routes.

    For any other step the result is a single None with all routes. The dialog-ID hash picks one entry (section 6).
    """
    if match.step is not MatchingStep.BALANCED:
        return [(None, match.routes)]
    routes_by_broker: dict[str, list[EstateRoute]] = {}
    for route in match.routes:
        if route.broker is not None:
            routes_by_broker.setdefault(route.broker, []).append(route)
    return [(broker, tuple(routes_by_broker[broker])) for broker in sorted(routes_by_broker)]


def required_broker(route: EstateRoute) -> str | None:
    """Return the broker instance that a bound message needs to match a route, or None for any.

    A route that matches an unknown broker instance matches every bound message.
    """
    matches_any = step_of(MatchKey(route.service, UNNAMED), route) is not None
    return None if matches_any else route.broker


def routes_naming(message: MatchKey, instance: SqlInstance, database: str) -> Sequence[EstateRoute]:
    """Return the routes of a database to a message's service that may match it, by name.

    An index avoids a scan if the service has very many broker instances.
    """
    routes = instance.naming(database, message.service)
    if message.broker is None:
        return routes
    if len(routes) < 2:
        return [route for route in routes if step_of(message, route) is not None]
    place = database, message.service
    if place not in instance.by_broker:
        instance.by_broker[place] = RoutesByBroker(routes, required_broker)
    return instance.by_broker[place].select(message.broker)


def routes_to_search(message: MatchKey, instance: SqlInstance, database: str) -> list[EstateRoute]:
    """Return the routes of a database that may match a message, by name.

    They have its service, no service, or the BrokerConfiguration service.
    """
    # `unnamed` already has the routes to the BrokerConfiguration service.
    named = () if message.service == BROKER_CONFIGURATION_SERVICE else routes_naming(message, instance, database)
    return sorted((*named, *instance.unnamed(database)), key=by_name)


def concerning(message: MatchKey, routes: Iterable[EstateRoute]) -> list[EstateRoute]:
    """Select the routes that can change a message's decision at any time.

    Routes that match in no step are left out. So are those in a later step than a route that is always valid.
    """
    stepped = [(route, step_of(message, route)) for route in routes]
    ending = [
        step
        for route, step in stepped
        if step not in (None, MatchingStep.ROUTE_REQUEST) and route.live_from is None and route.live_to is None
    ]
    last = min(map(place_of, ending), default=len(STEPS))
    return [route for route, step in stepped if step is not None and place_of(step) <= last]
