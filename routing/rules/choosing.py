"""Rule book, section 3: choose one of the matching routes, and find the outcome."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from routing.rules.estate import AddressKind, EstateRoute, NameAddress
from routing.rules.locating import DestinationLocation
from routing.terms import Outcome, Reason


class ChoiceSituation(NamedTuple):
    """The facts that a choice depends on, apart from the routes."""

    location: DestinationLocation
    name_address: NameAddress
    own_addresses: frozenset[str]
    is_from_network: bool
    is_forwarding: bool


def has_mirror(route: EstateRoute) -> bool:
    """Return True if the route has a mirror address (tier A)."""
    return route.mirror_address is not None


def is_local(route: EstateRoute) -> bool:
    """Return True if the route's address is LOCAL (tier B)."""
    return route.kind is AddressKind.LOCAL


def is_network(route: EstateRoute) -> bool:
    """Return True if the route has a network address (tier C)."""
    return route.kind is AddressKind.NETWORK


def is_transport(route: EstateRoute) -> bool:
    """Return True if the address comes from the service name (tier D)."""
    return route.kind is AddressKind.TRANSPORT


def always(situation: ChoiceSituation) -> Reason | None:
    """Return None, because the route's own address can always be used."""
    return None


def unless_located(situation: ChoiceSituation) -> Reason | None:
    """Return the reason why no database of this instance takes the message, or None."""
    return situation.location.reason


def unless_named(situation: ChoiceSituation) -> Reason | None:
    """Return a reason if the service name has no address, or None."""
    return Reason.TRANSPORT_ADDRESS_INVALID if situation.name_address is NameAddress.NONE else None


def never(route: EstateRoute, situation: ChoiceSituation) -> bool:
    """Return False, because mirrored routes and LOCAL never lead back to this instance."""
    return False


def has_own_address(route: EstateRoute, situation: ChoiceSituation) -> bool:
    """Return True if the route's address is one of the instance's own."""
    return route.compared in situation.own_addresses


def has_own_name(route: EstateRoute, situation: ChoiceSituation) -> bool:
    """Return True if the address in the service's name is one of the instance's own."""
    return situation.name_address is NameAddress.OWN


@dataclass(frozen=True)
class RouteTier:
    """One tier of routes.

    ``holds`` selects its routes. ``why_not`` returns None if the tier can be used, otherwise the reason.
    ``reason`` is that of messages that use it. ``is_own`` returns True if a route leads back to this instance.
    """

    letter: str
    holds: Callable[[EstateRoute], bool]
    why_not: Callable[[ChoiceSituation], Reason | None]
    reason: Reason
    is_own: Callable[[EstateRoute, ChoiceSituation], bool]


# The order of the tiers is defined only here. A route belongs to the first tier that includes it.
TIERS = (
    RouteTier("A", has_mirror, always, Reason.MIRROR_ADDRESS, never),
    RouteTier("B", is_local, unless_located, Reason.LOCAL_SERVICE, never),
    RouteTier("C", is_network, always, Reason.NETWORK_ADDRESS, has_own_address),
    RouteTier("D", is_transport, unless_named, Reason.TRANSPORT_ADDRESS, has_own_name),
)


def tier_of(route: EstateRoute) -> RouteTier | None:
    """Return the tier of a route, or None for an address outside the grammar."""
    for tier in TIERS:
        if tier.holds(route):
            return tier
    return None


def place_of(tier: RouteTier) -> int:
    """Return the place of a tier in their order."""
    return TIERS.index(tier)


class TierChoice(NamedTuple):
    """The chosen tier with its routes by name.

    If no tier can be used, ``why_not`` has the reason, and tier and routes are those of the first tier that holds
    any. Both are empty if no tier holds a route.
    """

    tier: RouteTier | None
    routes: tuple[EstateRoute, ...]
    why_not: Reason | None

    @property
    def is_usable(self) -> bool:
        """True if the tier can be used."""
        return self.tier is not None and self.why_not is None


def identity_of(route: EstateRoute) -> Hashable:
    """Return the values that are equal in equal routes of a step: broker instance and addresses.

    Their service names are equal anyway.
    """
    return route.broker, route.compared, route.compared_mirror


def distinct_routes(matches: Sequence[EstateRoute]) -> list[EstateRoute]:
    """Return the first route by name of each group of equal routes (`identity_of`)."""
    if len(matches) < 2:
        return list(matches)
    first_by_identity: dict[Hashable, EstateRoute] = {}
    for route in matches:
        first_by_identity.setdefault(identity_of(route), route)
    return list(first_by_identity.values())


def choose(routes: Sequence[EstateRoute], situation: ChoiceSituation) -> TierChoice:
    """Choose the first usable tier of distinct routes, which are in the order of their names."""
    unusable: TierChoice | None = None
    for tier, tier_routes in tiers(routes):
        why_not = tier.why_not(situation)
        if why_not is None:
            return TierChoice(tier, tier_routes, None)
        unusable = unusable or TierChoice(tier, tier_routes, why_not)
    return unusable or TierChoice(None, (), None)


def tiers(routes: Sequence[EstateRoute]) -> list[tuple[RouteTier, tuple[EstateRoute, ...]]]:
    """Return the tiers that hold any of the routes, in order, with these routes."""
    routes_by_letter: dict[str, list[EstateRoute]] = {}
    for route in routes:
        tier = tier_of(route)
        if tier is not None:
            routes_by_letter.setdefault(tier.letter, []).append(route)
    return [(tier, tuple(routes_by_letter[tier.letter])) for tier in TIERS if tier.letter in routes_by_letter]


class ChoiceEnd(NamedTuple):
    """The outcome and reason of a choice.

    ``is_own``: the reported route leads back to this instance. ``counts_hops``: HOP_LIMIT if no hop remains.
    """

    outcome: Outcome
    reason: Reason
    is_own: bool = False
    counts_hops: bool = False


def end_of(choice: TierChoice, situation: ChoiceSituation) -> ChoiceEnd:
    """Return the outcome and reason of a choice. Without a route it is NO_ROUTE (section 2.7)."""
    tier = choice.tier
    if tier is None:
        return ChoiceEnd(Outcome.DELAYED, Reason.NO_ROUTE)
    if choice.why_not is not None:
        # D4: a message that cannot be sent is DELAYED here, and an arrived one is DROPPED.
        return ChoiceEnd(Outcome.DROPPED if situation.is_from_network else Outcome.DELAYED, choice.why_not)
    if tier.reason is Reason.LOCAL_SERVICE:
        return ChoiceEnd(Outcome.DELIVERED, tier.reason)
    is_own = tier.is_own(choice.routes[0], situation)
    if not situation.is_from_network:
        return ChoiceEnd(Outcome.SENT, tier.reason, is_own)
    if not situation.is_forwarding:
        return ChoiceEnd(Outcome.DROPPED, Reason.FORWARDING_DISABLED, is_own)
    if is_own:
        return ChoiceEnd(Outcome.DROPPED, Reason.ROUTING_LOOP, is_own, counts_hops=True)
    return ChoiceEnd(Outcome.FORWARDED, tier.reason, counts_hops=True)
