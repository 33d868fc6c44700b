"""Rule book, section 3: which of the matching routes is used, and what becomes of the message.

A match is a struct(name, address, mirror_address, kind, same_address); matches come sorted by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column
from pyspark.sql import functions as F

from routing.terms import LOCAL_ADDRESS, NETWORK_KIND, TRANSPORT_ADDRESS, MatchingStep, Outcome, Reason


class Tier(str, Enum):
    """The tiers A to D, in their order."""

    MIRROR = "A"
    LOCAL = "B"
    NETWORK = "C"
    TRANSPORT = "D"


@dataclass(frozen=True)
class Situation:
    """What a choice depends on besides its routes; all Columns.

    step: matching step, 0 for a reply. destination, not_located: as `locating.locate` gives them.
    name_address: the address in the service name, null where it is to be read from the message's own name;
    is_name_own: it is the instance's own. own_addresses: array of comparable text. is_from_network,
    is_forwarding, is_scope_enabled: booleans.
    """

    step: Column
    destination: Column
    not_located: Column
    name_address: Column
    is_name_own: Column
    own_addresses: Column
    is_from_network: Column
    is_forwarding: Column
    is_scope_enabled: Column


@dataclass(frozen=True)
class Choice:
    """What was chosen: Columns of the plan's choices (see `plan.CHOICE` for their meaning)."""

    outcome: Column
    reason: Column
    route_name: Column
    address: Column
    mirror_address: Column
    alternative_routes: Column
    is_own: Column
    reads_address: Column
    counts_hops: Column


def distinct_routes(matches: Column) -> Column:
    """Routes equal in addresses are one; the first by name stands for it.

    Service name and broker instance are equal already: all matches of a step and a picked id share them.
    """

    def is_first(route: Column, position: Column) -> Column:
        earlier = F.slice(matches, F.lit(1), position)
        return ~F.exists(earlier, lambda other: other["same_address"] == route["same_address"])

    return F.filter(matches, is_first)


def _of_kind(matches: Column, kind: str) -> Column:
    return F.filter(matches, lambda route: route["kind"] == kind)


def usable_tier(matches: Column, is_located: Column, has_name_address: Column) -> Column:
    """The first tier with a usable route (a letter of `Tier`), null where there is none."""
    mirrored = F.exists(matches, lambda route: route["mirror_address"].isNotNull())
    local = F.exists(matches, lambda route: route["kind"] == LOCAL_ADDRESS) & is_located
    network = F.exists(matches, lambda route: route["kind"] == NETWORK_KIND)
    transport = F.exists(matches, lambda route: route["kind"] == TRANSPORT_ADDRESS) & has_name_address
    return (
        F.when(mirrored, Tier.MIRROR.value)
        .when(local, Tier.LOCAL.value)
        .when(network, Tier.NETWORK.value)
        .when(transport, Tier.TRANSPORT.value)
    )


def routes_of(tier: Column, matches: Column) -> Column:
    """The routes of a tier in name order; where no tier is usable, those that would have been used."""
    local, transport = _of_kind(matches, LOCAL_ADDRESS), _of_kind(matches, TRANSPORT_ADDRESS)
    return (
        F.when(tier == Tier.MIRROR.value, F.filter(matches, lambda r: r["mirror_address"].isNotNull()))
        .when((tier == Tier.LOCAL.value) | (tier.isNull() & (F.size(local) > 0)), local)
        .when(tier == Tier.NETWORK.value, _of_kind(matches, NETWORK_KIND))
        .when((tier == Tier.TRANSPORT.value) | (tier.isNull() & (F.size(transport) > 0)), transport)
    )


def choose(routes: Column, tier: Column, situation: Situation) -> Choice:
    """What the routes of a tier make of a message.

    ``routes`` are those of `routes_of`, null or empty where nothing matched; ``tier`` is `usable_tier`.
    """
    chosen = F.get(routes, F.lit(0))
    by_name = F.coalesce(tier == Tier.TRANSPORT.value, F.lit(False))
    by_network = F.coalesce(tier == Tier.NETWORK.value, F.lit(False))
    is_sent = by_name | by_network | F.coalesce(tier == Tier.MIRROR.value, F.lit(False))
    is_own_address = F.array_contains(situation.own_addresses, chosen["same_address"]["address"])
    is_own = (by_network & is_own_address) | (by_name & situation.is_name_own)
    address = F.when(by_name, situation.name_address).otherwise(chosen["address"])
    # All TRANSPORT routes of a step are one route, so that the rest of a tier has addresses of its own.
    rest = F.transform(
        F.slice(routes, F.lit(2), F.greatest(F.size(routes) - 1, F.lit(0))),
        lambda r: F.struct(
            r["name"].alias("route_name"),
            r["address"].alias("address"),
            r["mirror_address"].alias("mirror_address"),
        ),
    )
    step_6 = situation.step == int(MatchingStep.SERVICE_OF_THIS_INSTANCE)
    step_6_address = F.when(step_6 & situation.destination.isNotNull(), F.lit(LOCAL_ADDRESS))
    return Choice(
        outcome=_outcome(tier, is_sent, is_own, situation),
        reason=_reason(chosen, tier, is_sent, is_own, situation),
        route_name=chosen["name"],
        address=F.coalesce(F.when(tier.isNotNull(), address), step_6_address),
        mirror_address=F.when(tier.isNotNull(), chosen["mirror_address"]),
        alternative_routes=F.when(is_sent & (F.size(rest) > 0), rest),
        is_own=is_own,
        reads_address=by_name & situation.name_address.isNull(),
        counts_hops=is_sent & situation.is_from_network & situation.is_forwarding,
    )


def _is_delivered(tier: Column, situation: Situation) -> Column:
    """A LOCAL route or a rule like one leads to a database of this instance."""
    like_local = situation.step.isin(int(MatchingStep.REPLY), int(MatchingStep.SERVICE_OF_THIS_INSTANCE))
    return (F.coalesce(tier == Tier.LOCAL.value, F.lit(False)) | like_local) & situation.destination.isNotNull()


def _outcome(tier: Column, is_sent: Column, is_own: Column, situation: Situation) -> Column:
    from_network = situation.is_from_network
    forwards = from_network & situation.is_forwarding & ~is_own
    waits = ~situation.is_scope_enabled | (situation.step == int(MatchingStep.NO_MATCH))
    return (
        F.when(waits, str(Outcome.DELAYED))
        .when(_is_delivered(tier, situation), str(Outcome.DELIVERED))
        .when(~is_sent & from_network, str(Outcome.DROPPED))
        .when(~is_sent & ~from_network, str(Outcome.DELAYED))
        .when(~from_network, str(Outcome.SENT))
        .when(forwards, str(Outcome.FORWARDED))
        .when(from_network & ~forwards, str(Outcome.DROPPED))
    )


def _reason(chosen: Column, tier: Column, is_sent: Column, is_own: Column, situation: Situation) -> Column:
    from_network = situation.is_from_network
    no_transport = F.coalesce(chosen["kind"] == TRANSPORT_ADDRESS, F.lit(False))
    return (
        F.when(~situation.is_scope_enabled, str(Reason.SCOPE_BROKER_DISABLED))
        .when(situation.step == int(MatchingStep.NO_MATCH), str(Reason.NO_ROUTE))
        .when(_is_delivered(tier, situation), str(Reason.LOCAL_SERVICE))
        .when(~is_sent & no_transport, str(Reason.TRANSPORT_ADDRESS_INVALID))
        .when(~is_sent & ~no_transport, situation.not_located)
        .when(from_network & ~situation.is_forwarding, str(Reason.FORWARDING_DISABLED))
        .when(from_network & is_own, str(Reason.ROUTING_LOOP))
        .when(tier == Tier.MIRROR.value, str(Reason.MIRROR_ADDRESS))
        .when(tier == Tier.NETWORK.value, str(Reason.NETWORK_ADDRESS))
        .when(tier == Tier.TRANSPORT.value, str(Reason.TRANSPORT_ADDRESS))
    )
