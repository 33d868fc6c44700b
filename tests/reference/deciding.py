"""The decision on one message (rule book, 1 to 4)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from .instances import MSDB
from .messages import Message
from .requests import Asked, End, Moment
from .routes import (
    LOCAL,
    MIRROR,
    NETWORK,
    TRANSPORT,
    Match,
    Route,
    Scope,
    match_named,
    match_open,
    tiers_of,
)
from .text import address_key, service_address

_ADDRESS_REASONS = {
    MIRROR: "MIRROR_ADDRESS",
    NETWORK: "NETWORK_ADDRESS",
    TRANSPORT: "TRANSPORT_ADDRESS",
}
_NO_ROUTES = Scope()


@dataclass(frozen=True)
class Decision:
    """The decision on a message. `tier` of the reported route is not a column of the table."""

    outcome: str
    reason: str
    broker: str | None
    step: int | None = None
    tier: str | None = None
    route_name: str | None = None
    address: str | None = None
    mirror_address: str | None = None
    destination: str | None = None
    alternatives: list[dict[str, Any]] | None = None
    rerouted_from: str | None = None
    own_address: bool = field(default=False)
    """True if the message is sent to one of the instance's own addresses, to be routed again."""


class Book(Protocol):
    """The requests that may stop a message."""

    def stops(self, asked: Asked, moment: Moment, end: End) -> bool:
        """Return whether a message waits: it opens a request, or its conversation waits for a pending one."""


def decide(message: Message, requests: Book) -> Decision:
    """Decide on a message. A message to its own instance is routed again as an arrival."""
    return searches(message, requests)[-1]


def searches(message: Message, requests: Book) -> list[Decision]:
    """List the result of each search: in the scope itself, and in msdb for a message to its own instance."""
    if message.dialog_expired:
        return [Decision("DROPPED", "DIALOG_EXPIRED", message.broker)]
    first = _route(message, message.broker, message.database, requests)
    if not first.own_address:
        return [first]
    second = _route(message, first.broker, None, requests)
    return [first, replace(second, rerouted_from=first.route_name)]


def _route(message: Message, broker: str | None, sender: str | None, requests: Book) -> Decision:
    """Route a message once: from its sending database, or from the network if that is None."""
    instance = message.instance
    if sender is None and not message.is_initiator and broker is not None and broker in instance.broker_ids:
        return _reply(message, broker)
    database = MSDB if sender is None else sender
    if not instance.broker_enabled(database):
        return Decision("DELAYED", "SCOPE_BROKER_DISABLED", broker)
    scope = instance.scopes.get(database, _NO_ROUTES)
    match = match_named(scope, message.service, broker, message.at, message.conversation_id)
    if match is None and scope.asks_for_routes(message.at):
        asked = (instance.name, database, message.service)
        moment, end = (message.at, message.message_id), (message.conversation_id, message.is_initiator)
        if requests.stops(asked, moment, end):
            return Decision("DELAYED", "ROUTE_REQUESTED", broker, step=4)
    match = match or match_open(scope, broker, message.at)
    if match is not None:
        return _choose(message, match, sender)
    if broker is not None and message.service in instance.holding:
        return _deliver(message, Match(6, [], broker), None, sender)
    return Decision("DELAYED", "NO_ROUTE", broker, step=7)


def _reply(message: Message, broker: str) -> Decision:
    """Deliver a target's reply without searching routes (section 1)."""
    destination, reason = message.instance.locate(message.service, broker, None)
    outcome = "DROPPED" if destination is None else "DELIVERED"
    return Decision(outcome, reason, broker, step=0, destination=destination)


def _choose(message: Message, match: Match, sender: str | None) -> Decision:
    """Choose the first usable tier of the matches (section 3)."""
    tiers = tiers_of(match.routes)
    if MIRROR in tiers:
        return _transmit(message, match, tiers[MIRROR], sender)
    undelivered = None
    if LOCAL in tiers:
        delivery = _deliver(message, match, tiers[LOCAL][0], sender)
        if delivery.outcome == "DELIVERED":
            return delivery
        undelivered = delivery
    if NETWORK in tiers:
        return _transmit(message, match, tiers[NETWORK], sender)
    if TRANSPORT in tiers and service_address(message.service) is not None:
        return _transmit(message, match, tiers[TRANSPORT], sender)
    if undelivered is not None:
        return undelivered
    return Decision(
        _unusable(sender),
        "TRANSPORT_ADDRESS_INVALID",
        match.broker,
        step=match.step,
        tier=TRANSPORT,
        route_name=tiers[TRANSPORT][0].name,
    )


def _unusable(sender: str | None) -> str:
    """Return the outcome if no tier is usable (D4)."""
    return "DROPPED" if sender is None else "DELAYED"


def _deliver(message: Message, match: Match, route: Route | None, sender: str | None) -> Decision:
    """Deliver through a LOCAL route, or by step 6 without a route."""
    destination, reason = message.instance.locate(message.service, match.broker, sender)
    delivered = destination is not None
    written = "LOCAL" if route is None else route.address
    return Decision(
        "DELIVERED" if delivered else _unusable(sender),
        reason,
        match.broker,
        step=match.step,
        tier=LOCAL,
        route_name=None if route is None else route.name,
        address=written if delivered else None,
        destination=destination,
    )


def _transmit(message: Message, match: Match, tier: list[Route], sender: str | None) -> Decision:
    """Hand a message to the transport with the first route of a tier and its alternatives."""
    route = tier[0]
    address: str | None = route.address
    if route.tier == TRANSPORT:
        address = service_address(message.service)
    assert address is not None
    instance = message.instance
    # A mirrored route never counts as an address of the instance itself.
    is_own = route.tier != MIRROR and address_key(address) in instance.own_addresses
    outcome, reason = "SENT", _ADDRESS_REASONS[route.tier]
    if sender is None:
        outcome = "FORWARDED"
        if not instance.forwards:
            outcome, reason = "DROPPED", "FORWARDING_DISABLED"
        elif message.hops is not None and message.hops <= 0:
            outcome, reason = "DROPPED", "HOP_LIMIT"
        elif is_own:
            outcome, reason = "DROPPED", "ROUTING_LOOP"
    others = [
        {
            "route_name": other.name,
            "address": other.address,
            "mirror_address": other.mirror_address,
        }
        for other in tier[1:]
    ]
    return Decision(
        outcome,
        reason,
        match.broker,
        step=match.step,
        tier=route.tier,
        route_name=route.name,
        address=address,
        mirror_address=route.mirror_address,
        alternatives=others or None,
        own_address=is_own and sender is not None,
    )
