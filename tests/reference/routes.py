"""Routes, the scope of their search, and the matching ones (rule book, 0 and 2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .dialog_hash import picked
from .text import address_key, broker_id, text_or_none
from .times import utc

BROKER_CONFIGURATION = "SQL/ServiceBroker/BrokerConfiguration"

MIRROR = "mirror"
LOCAL = "local"
NETWORK = "network"
TRANSPORT = "transport"


@dataclass(frozen=True)
class Route:
    """One version of one route."""

    name: str
    service: str | None
    broker: str | None
    address: str
    mirror_address: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    lifetime: datetime | None
    tier: str
    same_as: tuple[str, str | None]
    """The compared addresses. Matches of a step with equal values count as one route."""

    @classmethod
    def read(cls, row: dict[str, Any]) -> Route:
        """Read a routes row."""
        mirror = text_or_none(row.get("mirror_address"))
        address = row["address"]
        keyword = address_key(address)
        tier = keyword if keyword in (LOCAL, TRANSPORT) else NETWORK
        return cls(
            name=row["name"],
            service=text_or_none(row.get("remote_service_name")),
            broker=broker_id(row.get("broker_instance")),
            address=address,
            mirror_address=mirror,
            valid_from=utc(row.get("valid_from")),
            valid_to=utc(row.get("valid_to")),
            lifetime=utc(row.get("lifetime")),
            tier=MIRROR if mirror is not None else tier,
            same_as=(keyword, None if mirror is None else address_key(mirror)),
        )

    def in_force(self, at: datetime) -> bool:
        """Return whether the route counts at a time. It does not count at its end."""
        return (
            (self.valid_from is None or self.valid_from <= at)
            and (self.valid_to is None or at < self.valid_to)
            and (self.lifetime is None or at < self.lifetime)
        )


@dataclass
class Scope:
    """The routing table of one database."""

    naming: dict[str, list[Route]] = field(default_factory=dict)
    """Routes that name a service, by that name."""
    open: list[Route] = field(default_factory=list)
    """Routes with neither a service nor a broker instance."""

    def add(self, route: Route) -> None:
        """Add a route. A route with a broker instance but no service never matches (D3)."""
        if route.service is not None:
            self.naming.setdefault(route.service, []).append(route)
        elif route.broker is None:
            self.open.append(route)

    def asks_for_routes(self, at: datetime) -> bool:
        """Return whether a live route names the BrokerConfiguration service (step 4)."""
        return any(route.in_force(at) for route in self.naming.get(BROKER_CONFIGURATION, ()))


@dataclass(frozen=True)
class Match:
    """The matching step, its routes, and the id that the message is bound to afterwards."""

    step: int
    routes: list[Route]
    broker: str | None


def match_named(
    scope: Scope, service: str, broker: str | None, at: datetime, conversation_id: str
) -> Match | None:
    """Try steps 1 to 3, whose routes name the service."""
    naming = [route for route in scope.naming.get(service, ()) if route.in_force(at)]
    if not naming:
        return None
    if broker is not None:
        bound_routes = [route for route in naming if route.broker == broker]
        if bound_routes:
            return Match(1, bound_routes, broker)
    unbound = [route for route in naming if route.broker is None]
    if unbound:
        return Match(2, unbound, broker)
    if broker is None:
        ids = sorted({route.broker for route in naming if route.broker is not None})
        mine = picked(ids, conversation_id)
        return Match(3, [route for route in naming if route.broker == mine], mine)
    return None


def match_open(scope: Scope, broker: str | None, at: datetime) -> Match | None:
    """Try step 5, whose routes name neither a service nor a broker instance."""
    open_routes = [route for route in scope.open if route.in_force(at)]
    return Match(5, open_routes, broker) if open_routes else None


def tiers_of(routes: list[Route]) -> dict[str, list[Route]]:
    """Sort matches into tiers by name, with one route for equal ones.

    All matches of one step have the same service name and broker instance, so the addresses decide.
    """
    tiers: dict[str, list[Route]] = {}
    seen: set[tuple[str, str | None]] = set()
    for route in sorted(routes, key=lambda route: route.name):
        if route.same_as not in seen:
            seen.add(route.same_as)
            tiers.setdefault(route.tier, []).append(route)
    return tiers
