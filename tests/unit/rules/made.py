"""Small estates for the truth tables. Missing columns have the simplest value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from routing.rules.deciding import ConcerningRoutes, Decision, RouteSearch, RoutingKey
from routing.rules.estate import Database, EstateRoute, SqlInstance, list_instances, with_services_and_routes
from routing.rules.resolving import RoutedMessage
from routing.rules.timeline import TimeInterval
from routing.terms import BROKER_CONFIGURATION_SERVICE

# Broker instances in their order; the last is nobody's.
B, C, D, NOWHERE = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "bcdf")
ASKS = BROKER_CONFIGURATION_SERVICE
OWN = "tcp://hub:4022"
# Their hashes are, by 5, 2 1 3 4; by 2, 0 1 1 0 (tests/reference has them in full).
DIALOGS = [f"6b1f0b9a-6a0e-4a52-9c7b-0d6f6d9a000{digit}" for digit in "1234"]


def route(
    name: str = "r",
    service: str | None = None,
    broker: str | None = None,
    address: str = "LOCAL",
    mirror: str | None = None,
    valid_from: int | None = None,
    valid_to: int | None = None,
    lifetime: int | None = None,
) -> EstateRoute:
    """A route of a row."""
    return EstateRoute.of_row(name, service, broker, address, mirror, valid_from, valid_to, lifetime)


def instance(
    routes: Mapping[str, Iterable[EstateRoute]] | None = None,
    databases: Iterable[tuple[str, str | None, bool | None]] = (("Orders", B, None), ("Parts", C, None)),
    services: Iterable[tuple[str, str]] = (("Orders", "OrderService"), ("Parts", "PartService")),
    *,
    forwards: bool | None = None,
    addresses: Iterable[str | None] | None = (OWN,),
) -> SqlInstance:
    """Return the instance ``hub`` with routes by database."""
    routes_of_hub = [("hub", database, one) for database, some in (routes or {}).items() for one in some]
    listed = [("hub", Database.of_row(*database)) for database in databases]
    hub = list_instances([("hub", forwards, addresses)], listed)
    return with_services_and_routes(hub, [("hub", *service) for service in services], routes_of_hub)["hub"]


def message(
    service: str = "S",
    database: str | None = "Orders",
    broker: str | None = None,
    *,
    is_initiator: bool = True,
    conversation_id: str | None = DIALOGS[0],
    t: int = 10,
    message_id: str = "m",
    hops: int | None = None,
) -> RoutedMessage:
    """A message of a new dialog, sent from Orders."""
    return RoutedMessage(message_id, conversation_id, is_initiator, t, "hub", database, service, broker, hops)


def names(routes: Iterable[EstateRoute]) -> list[str | None]:
    """The names of routes, in their order."""
    return [one.name for one in routes]


def key_of(
    hub: SqlInstance,
    database: str | None = "Orders",
    service: str = "S",
    broker: str | None = None,
    *,
    is_initiator: bool = True,
) -> RoutingKey:
    """The key of a message sent from Orders."""
    return RoutingKey.of_names(hub, database, service, broker, is_initiator=is_initiator)


def decide_at(key: RoutingKey, hub: SqlInstance, t: int) -> tuple[Decision, ...]:
    """Return the decisions of a key at one time, without sharing."""
    return ConcerningRoutes.of(key, hub).decide(t)


def decide_now(key: RoutingKey, hub: SqlInstance, t: int) -> TimeInterval[Decision]:
    """The same as the walk of one message asks for it."""
    return TimeInterval(None, None, decide_at(key, hub, t))


def _search_text(search: RouteSearch) -> str:
    """Step, pick's first letter, route and reason of a search."""
    step = "-" if search.step is None else str(int(search.step))
    return f"{step} {(search.pick or '-')[0]} {search.route_name} {search.end.reason}"


def searches_of(decision: Decision) -> str:
    """The searches of a decision."""
    return " > ".join(_search_text(search) for search in (decision.first, decision.second) if search is not None)
