"""Rule book, section 3: which of the matching routes is used, and what becomes of the message."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from routing.rules.estate import AddressKind, EstateRoute, NameAddress
from routing.rules.locating import DestinationLocation
from routing.terms import Outcome, Reason


class ChoiceSituation(NamedTuple):
    """The facts beside its routes that a choice depends on."""

    location: DestinationLocation
    name_address: NameAddress
    own_addresses: frozenset[str]
    is_from_network: bool
    is_forwarding: bool


def has_mirror(route: EstateRoute) -> bool:
    """Return whether the route has a mirror address (tier A)."""
    return route.mirror_address is not None


def is_local(route: EstateRoute) -> bool:
    """Return whether the route's address is LOCAL (tier B)."""
    return route.kind is AddressKind.LOCAL


def is_network(route: EstateRoute) -> bool:
    """Return whether the route has a network address (tier C)."""
    return route.kind is AddressKind.NETWORK


def is_transport(route: EstateRoute) -> bool:
    """Return whether the address is read from the service's name (tier D)."""
    return route.kind is AddressKind.TRANSPORT


def always(situation: ChoiceSituation) -> Reason | None:
    """Return None: an address of the route's own can always be used."""
    return None


def unless_located(situation: ChoiceSituation) -> Reason | None:
    """Return the reason why LOCAL cannot be used: no database of this instance takes the message."""
    return situation.location.reason


def unless_named(situation: ChoiceSituation) -> Reason | None:
    """Return the reason why TRANSPORT cannot be used: the service's name holds no address."""
    return Reason.TRANSPORT_ADDRESS_INVALID if situation.name_address is NameAddress.NONE else None


def never(route: EstateRoute, situation: ChoiceSituation) -> bool:
    """Return False: mirrored routes and LOCAL do not lead back to this very instance."""
    return False


def has_own_address(route: EstateRoute, situation: ChoiceSituation) -> bool:
    """Return True if the route's address is one of the instance's own."""
    return route.compared in situation.own_addresses


def has_own_name(route: EstateRoute, situation: ChoiceSituation) -> bool:
    """Return True if the address in the service's name is one of the instance's own."""
    return situation.name_address is NameAddress.OWN


@dataclass(frozen=True)
class RouteTier:
    """One tier: the routes it holds, why it cannot be used (None where it can), and what is said where it is.

    ``is_own``: whether a route leads back to this very instance.
    """

    letter: str
    holds: Callable[[EstateRoute], bool]
    why_not: Callable[[ChoiceSituation], Reason | None]
    reason: Reason
    is_own: Callable[[EstateRoute, ChoiceSituation], bool]


# The order of the tiers, here and nowhere else. A route stands in the first that holds it.
TIERS = (
    RouteTier("A", has_mirror, always, Reason.MIRROR_ADDRESS, never),
    RouteTier("B", is_local, unless_located, Reason.LOCAL_SERVICE, never),
    RouteTier("C", is_network, always, Reason.NETWORK_ADDRESS, has_own_address),
    RouteTier("D", is_transport, unless_named, Reason.TRANSPORT_ADDRESS, has_own_name),
)


def tier_of(route: EstateRoute) -> RouteTier | None:
    """Return the tier in which a route stands; None for an address outside the grammar, which no tier holds."""
    for tier in TIERS:
        if tier.holds(route):
            return tier
    return None


def place_of(tier: RouteTier) -> int:
    """Return the place of a tier in their order."""
    return TIERS.index(tier)


class TierChoice(NamedTuple):
    """The tier that is used, with its routes by name.

    Where none can be used ``why_not`` says why, and tier and routes are those of the first that could not; both
    are empty where no tier holds a route.
    """

    tier: RouteTier | None
    routes: tuple[EstateRoute, ...]
    why_not: Reason | None

    @property
    def is_usable(self) -> bool:
        """Whether there is a way."""
        return self.tier is not None and self.why_not is None


def identity_of(route: EstateRoute) -> Hashable:
    """Return the columns in which equal routes of a step agree: broker instance and addresses.

    Their service name is the same already.
    """
    return route.broker, route.compared, route.compared_mirror


def distinct_routes(matches: Sequence[EstateRoute]) -> list[EstateRoute]:
    """Return the first by name of the routes that are one (`identity_of`), for each."""
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
    """Return the tiers that hold any of the routes, in their order, with these."""
    routes_by_letter: dict[str, list[EstateRoute]] = {}
    for route in routes:
        tier = tier_of(route)
        if tier is not None:
            routes_by_letter.setdefault(tier.letter, []).append(route)
    return [(tier, tuple(routes_by_letter[tier.letter])) for tier in TIERS if tier.letter in routes_by_letter]


class ChoiceEnd(NamedTuple):
    """The outcome and reason of a choice.

    ``is_own``: the reported route leads back to this very instance. ``counts_hops``: HOP_LIMIT where none remain.
    """

    outcome: Outcome
    reason: Reason
    is_own: bool = False
    counts_hops: bool = False


def end_of(choice: TierChoice, situation: ChoiceSituation) -> ChoiceEnd:
    """Return the outcome and reason of a choice; one without a route has none (section 2.7)."""
    tier = choice.tier
    if tier is None:
        return ChoiceEnd(Outcome.DELAYED, Reason.NO_ROUTE)
    if choice.why_not is not None:
        # D4: what cannot be sent on is DELAYED here; what has arrived is dropped.
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
