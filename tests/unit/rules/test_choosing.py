"""The choice among matching routes, and the result of the message: rule book, section 3."""

from __future__ import annotations

import pytest

from routing.rules import choosing
from routing.rules.choosing import TIERS, ChoiceEnd, ChoiceSituation, TierChoice
from routing.rules.estate import IMPLIED_LOCAL, NameAddress
from routing.rules.locating import DestinationLocation
from routing.terms import Outcome, Reason
from tests.unit.rules.made import OWN, names, route

parametrize = pytest.mark.parametrize
TIER = {tier.letter: tier for tier in TIERS}
HERE, NOT_HERE = DestinationLocation("Orders", None), DestinationLocation(None, Reason.SERVICE_NOT_FOUND)
INVALID = Reason.TRANSPORT_ADDRESS_INVALID
# By their letters: mirrored, local, network, transport, one outside the grammar.
ROUTES = {
    "A": route("A", address="tcp://east:1", mirror="tcp://west:1"),
    "B": route("B", address=" local/"),
    "C": route("C", address="tcp://East:1/"),
    "D": route("D", address="Transport"),
    "x": route("x", address="nowhere"),
    "implied": IMPLIED_LOCAL,
}


def situation(
    location: DestinationLocation = HERE,
    name_address: NameAddress = NameAddress.ELSEWHERE,
    *,
    is_from_network: bool = False,
    is_forwarding: bool = True,
) -> ChoiceSituation:
    return ChoiceSituation(
        location, name_address, frozenset({OWN, "tcp://east:1"}), is_from_network, is_forwarding
    )


@parametrize(
    ("name", "held_by"),
    [("A", "AC"), ("B", "B"), ("C", "C"), ("D", "D"), ("x", ""), ("implied", "B")],
)
def test_which_tiers_hold_a_route(name: str, held_by: str) -> None:
    assert "".join(tier.letter for tier in TIERS if tier.holds(ROUTES[name])) == held_by
    first = choosing.tier_of(ROUTES[name])
    assert (None if first is None else first.letter) == (held_by[0] if held_by else None)


@parametrize(
    ("location", "name_address", "why_not"),
    [
        (HERE, NameAddress.ELSEWHERE, [None, None, None, None]),
        (HERE, NameAddress.OWN, [None, None, None, None]),
        (HERE, NameAddress.NONE, [None, None, None, INVALID]),
        (NOT_HERE, NameAddress.ELSEWHERE, [None, Reason.SERVICE_NOT_FOUND, None, None]),
        (
            DestinationLocation(None, Reason.BROKER_DISABLED),
            NameAddress.NONE,
            [None, Reason.BROKER_DISABLED, None, INVALID],
        ),
    ],
)
def test_why_a_tier_cannot_be_used(
    location: DestinationLocation, name_address: NameAddress, why_not: list[Reason | None]
) -> None:
    assert [tier.why_not(situation(location, name_address)) for tier in TIERS] == why_not


# Never for mirrored routes and LOCAL; by address; by the service's name.
@parametrize(
    ("letter", "address", "mirror", "name_address", "expected"),
    [
        ("A", "tcp://hub:4022", "tcp://hub:4022", NameAddress.OWN, False),
        ("B", "LOCAL", None, NameAddress.OWN, False),
        ("C", " TCP://Hub:4022/", None, NameAddress.NONE, True),
        ("C", "tcp://hub:4023", None, NameAddress.OWN, False),
        ("C", "tcp://hub", None, NameAddress.OWN, False),
        ("D", "TRANSPORT", None, NameAddress.OWN, True),
        ("D", "TRANSPORT", None, NameAddress.ELSEWHERE, False),
        ("D", "TRANSPORT", None, NameAddress.NONE, False),
    ],
)
def test_which_route_leads_back(
    letter: str, address: str, mirror: str | None, name_address: NameAddress, expected: bool
) -> None:
    one = route(address=address, mirror=mirror)
    assert TIER[letter].is_own(one, situation(name_address=name_address)) is expected


@parametrize(
    ("routes", "expected"),
    [
        ([], []),
        ([("a", "LOCAL", None), ("b", " local/", None)], ["a"]),
        ([("a", "tcp://e:1", None), ("b", "TCP://E:1/", None), ("c", "tcp://f:1", None)], ["a", "c"]),
        ([("a", "tcp://e:1", "tcp://m:1"), ("b", "tcp://e:1", None)], ["a", "b"]),
        ([("a", "tcp://e:1", "tcp://m:1"), ("b", "tcp://e:1", "TCP://M:1/ ")], ["a"]),
        ([("a", "tcp://e:1", "tcp://m:1"), ("b", "tcp://f:1", "tcp://m:1")], ["a", "b"]),
        ([("a", "tcp://\u00c9:1", None), ("b", "tcp://\u00e9:1", None)], ["a", "b"]),
    ],
)
def test_equal_routes_are_merged(routes: list[tuple[str, str, str | None]], expected: list[str]) -> None:
    merged = [route(name, address=address, mirror=mirror) for name, address, mirror in routes]
    assert names(choosing.distinct_routes(merged)) == expected


# Routes by letter; where LOCAL, or TRANSPORT, cannot be used; the tier, its routes, and why it cannot be used.
@parametrize(
    ("routes", "location", "name_address", "expected"),
    [
        ("", HERE, NameAddress.ELSEWHERE, (None, [], None)),
        ("x", HERE, NameAddress.ELSEWHERE, (None, [], None)),
        ("DCBA", HERE, NameAddress.ELSEWHERE, ("A", ["A"], None)),
        ("DCB", HERE, NameAddress.ELSEWHERE, ("B", ["B"], None)),
        ("DC", HERE, NameAddress.ELSEWHERE, ("C", ["C"], None)),
        ("D", HERE, NameAddress.ELSEWHERE, ("D", ["D"], None)),
        ("DCBA", NOT_HERE, NameAddress.NONE, ("A", ["A"], None)),
        ("DCB", NOT_HERE, NameAddress.NONE, ("C", ["C"], None)),
        ("DB", NOT_HERE, NameAddress.ELSEWHERE, ("D", ["D"], None)),
        ("DB", NOT_HERE, NameAddress.NONE, ("B", ["B"], Reason.SERVICE_NOT_FOUND)),
        ("B", NOT_HERE, NameAddress.ELSEWHERE, ("B", ["B"], Reason.SERVICE_NOT_FOUND)),
        ("DC", NOT_HERE, NameAddress.NONE, ("C", ["C"], None)),
        ("D", HERE, NameAddress.NONE, ("D", ["D"], INVALID)),
        ("xD", HERE, NameAddress.NONE, ("D", ["D"], INVALID)),
    ],
)
def test_the_first_usable_tier(
    routes: str,
    location: DestinationLocation,
    name_address: NameAddress,
    expected: tuple[str | None, list[str], Reason | None],
) -> None:
    choice = choosing.choose([ROUTES[letter] for letter in routes], situation(location, name_address))
    letter = None if choice.tier is None else choice.tier.letter
    assert (letter, names(choice.routes), choice.why_not) == expected
    assert choice.is_usable is (expected[0] is not None and expected[2] is None)


def test_routes_of_a_tier_are_sorted_by_name() -> None:
    routes = [route("a", address="tcp://f:1"), ROUTES["D"], route("b", address="tcp://e:1"), ROUTES["B"]]
    assert [(tier.letter, names(held)) for tier, held in choosing.tiers(routes)] == [
        ("B", ["B"]),
        ("C", ["a", "b"]),
        ("D", ["D"]),
    ]
    assert names(choosing.choose(routes, situation(NOT_HERE)).routes) == ["a", "b"]


def test_the_order_of_the_tiers() -> None:
    assert [(tier.letter, str(tier.reason)) for tier in TIERS] == [
        ("A", "MIRROR_ADDRESS"),
        ("B", "LOCAL_SERVICE"),
        ("C", "NETWORK_ADDRESS"),
        ("D", "TRANSPORT_ADDRESS"),
    ]


# A choice: the tier's letter and why it cannot be used; arrived, forwarding, the route is its own address.
@parametrize(
    ("letter", "why_not", "arrived", "forwards", "own", "expected"),
    [
        (None, None, False, True, False, ChoiceEnd(Outcome.DELAYED, Reason.NO_ROUTE)),
        # D9: what arrived is DELAYED as well.
        (None, None, True, False, False, ChoiceEnd(Outcome.DELAYED, Reason.NO_ROUTE)),
        # D4.
        ("B", Reason.SERVICE_NOT_FOUND, False, True, False, ChoiceEnd(Outcome.DELAYED, Reason.SERVICE_NOT_FOUND)),
        ("B", Reason.SERVICE_NOT_FOUND, True, True, False, ChoiceEnd(Outcome.DROPPED, Reason.SERVICE_NOT_FOUND)),
        ("D", INVALID, False, True, True, ChoiceEnd(Outcome.DELAYED, INVALID)),
        ("D", INVALID, True, False, True, ChoiceEnd(Outcome.DROPPED, INVALID)),
        ("B", None, False, False, True, ChoiceEnd(Outcome.DELIVERED, Reason.LOCAL_SERVICE)),
        ("B", None, True, False, True, ChoiceEnd(Outcome.DELIVERED, Reason.LOCAL_SERVICE)),
        ("A", None, False, False, True, ChoiceEnd(Outcome.SENT, Reason.MIRROR_ADDRESS)),
        ("C", None, False, False, False, ChoiceEnd(Outcome.SENT, Reason.NETWORK_ADDRESS)),
        ("C", None, False, False, True, ChoiceEnd(Outcome.SENT, Reason.NETWORK_ADDRESS, is_own=True)),
        ("D", None, False, False, False, ChoiceEnd(Outcome.SENT, Reason.TRANSPORT_ADDRESS)),
        ("D", None, False, True, True, ChoiceEnd(Outcome.SENT, Reason.TRANSPORT_ADDRESS, is_own=True)),
        ("A", None, True, False, True, ChoiceEnd(Outcome.DROPPED, Reason.FORWARDING_DISABLED)),
        ("C", None, True, False, False, ChoiceEnd(Outcome.DROPPED, Reason.FORWARDING_DISABLED)),
        ("C", None, True, False, True, ChoiceEnd(Outcome.DROPPED, Reason.FORWARDING_DISABLED, is_own=True)),
        ("D", None, True, False, False, ChoiceEnd(Outcome.DROPPED, Reason.FORWARDING_DISABLED)),
        ("A", None, True, True, True, ChoiceEnd(Outcome.FORWARDED, Reason.MIRROR_ADDRESS, counts_hops=True)),
        ("C", None, True, True, False, ChoiceEnd(Outcome.FORWARDED, Reason.NETWORK_ADDRESS, counts_hops=True)),
        ("D", None, True, True, False, ChoiceEnd(Outcome.FORWARDED, Reason.TRANSPORT_ADDRESS, counts_hops=True)),
        (
            "C",
            None,
            True,
            True,
            True,
            ChoiceEnd(Outcome.DROPPED, Reason.ROUTING_LOOP, is_own=True, counts_hops=True),
        ),
        (
            "D",
            None,
            True,
            True,
            True,
            ChoiceEnd(Outcome.DROPPED, Reason.ROUTING_LOOP, is_own=True, counts_hops=True),
        ),
    ],
)
def test_the_verdict_of_a_chosen_tier(
    letter: str | None, why_not: Reason | None, arrived: bool, forwards: bool, own: bool, expected: ChoiceEnd
) -> None:
    address = {"B": "LOCAL", "D": "TRANSPORT"}.get(letter or "", OWN if own else "tcp://west:1")
    routes = () if letter is None else (route("1", address=address), route("2", address=OWN))
    choice = TierChoice(None if letter is None else TIER[letter], routes, why_not)
    named = NameAddress.OWN if own else NameAddress.ELSEWHERE
    at = situation(name_address=named, is_from_network=arrived, is_forwarding=forwards)
    assert choosing.end_of(choice, at) == expected
