"""The decisions for a routing key, at every time and for every pick: rule book, sections 1 to 4."""

from __future__ import annotations

import pytest

from routing.rules.deciding import ConcerningRoutes, RoutingKey, scope_of
from routing.rules.estate import NameAddress
from routing.rules.matching import UNNAMED
from tests.unit.rules.made import (
    ASKS,
    NOWHERE,
    OWN,
    B,
    C,
    D,
    decide_at,
    instance,
    key_of,
    names,
    route,
    searches_of,
)

parametrize = pytest.mark.parametrize
EAST, WEST = route("east", address="tcp://east:1"), route("west", address="tcp://west:1")
BACK = route("back", address=OWN)


@parametrize(("database", "scope"), [(None, "msdb"), ("Orders", "Orders"), ("msdb", "msdb"), ("MSDB", "MSDB")])
def test_the_routing_table_that_is_searched(database: str | None, scope: str) -> None:
    assert scope_of(database) == scope


@parametrize(
    ("service", "named"),
    [("S", NameAddress.NONE), ("tcp://e:1/S", NameAddress.ELSEWHERE), (f"{OWN}/S", NameAddress.OWN)],
)
def test_the_key_of_a_message(service: str, named: NameAddress) -> None:
    key = RoutingKey.of_names(instance(), None, service, B, is_initiator=False)
    assert key == RoutingKey(None, service, B, False, named)


# Section 1, then the scope's broker, then the search: sender, broker, who began the dialog; msdb's broker.
@parametrize(
    ("database", "service", "broker", "is_initiator", "msdb_is_on", "expected"),
    [
        (None, "OrderService", B, False, True, "0 - None LOCAL_SERVICE"),
        (None, "OrderService", B, False, False, "0 - None LOCAL_SERVICE"),
        (None, "OrderService", C, False, True, "0 - None SERVICE_NOT_FOUND"),
        (None, "S", B, False, False, "0 - None SERVICE_NOT_FOUND"),
        (None, "OrderService", B, True, True, "5 - west FORWARDING_DISABLED"),
        (None, "OrderService", B, True, False, "- - None SCOPE_BROKER_DISABLED"),
        (None, "OrderService", NOWHERE, False, True, "5 - west FORWARDING_DISABLED"),
        (None, "OrderService", None, False, True, "5 - west FORWARDING_DISABLED"),
        (None, "OrderService", None, False, False, "- - None SCOPE_BROKER_DISABLED"),
        ("Orders", "OrderService", B, False, False, "5 - east NETWORK_ADDRESS"),
        ("Aged", "OrderService", B, False, True, "- - None SCOPE_BROKER_DISABLED"),
        ("Aged", "OrderService", B, True, True, "- - None SCOPE_BROKER_DISABLED"),
    ],
)
def test_checks_before_the_search(
    database: str | None, service: str, broker: str | None, is_initiator: bool, msdb_is_on: bool, expected: str
) -> None:
    hub = instance(
        {"Orders": [EAST], "msdb": [WEST], "Aged": [EAST]},
        [("Orders", B, None), ("Parts", C, True), ("Aged", D, False), ("msdb", None, msdb_is_on)],
    )
    decisions = decide_at(key_of(hub, database, service, broker, is_initiator=is_initiator), hub, 10)
    assert [searches_of(one) for one in decisions] == [expected]


# Step 6: a database that is listed holds the service; section 4 judges whose id it has.
@parametrize(
    ("service", "broker", "expected"),
    [
        ("PartService", C, "6 - None LOCAL_SERVICE"),
        ("PartService", B, "6 - None SERVICE_NOT_FOUND"),
        ("PartService", NOWHERE, "6 - None BROKER_INSTANCE_NOT_FOUND"),
        ("AgedService", D, "6 - None BROKER_DISABLED"),
        ("PartService", None, "7 - None NO_ROUTE"),
        ("S", C, "7 - None NO_ROUTE"),
        ("GoneService", C, "7 - None NO_ROUTE"),
    ],
)
def test_a_service_of_this_instance(service: str, broker: str | None, expected: str) -> None:
    hub = instance(
        databases=[("Orders", B, None), ("Parts", C, None), ("Aged", D, False)],
        services=[("Parts", "PartService"), ("Aged", "AgedService"), ("Gone", "GoneService")],
    )
    assert [searches_of(one) for one in decide_at(key_of(hub, "Orders", service, broker), hub, 10)] == [expected]


def test_each_id_that_may_be_picked_is_decided() -> None:
    hub = instance(
        {
            "Orders": [
                route("1", "S", C, OWN),
                route("2", "S", B, "tcp://b:1"),
                route("3", "S", C, "tcp://c:1"),
                route("4", "S", NOWHERE),
            ],
            "msdb": [route("one", "S", C, "tcp://m:1"), route("two", "S", D, "tcp://m:2")],
        },
        forwards=True,
    )
    decisions = decide_at(key_of(hub), hub, 10)
    assert [(searches_of(one), one.pick, names(one.first.alternatives)) for one in decisions] == [
        ("3 b 2 NETWORK_ADDRESS", B, []),
        # The picked id is the message's from here on: bound, it matches in step 1.
        ("3 c 1 NETWORK_ADDRESS > 1 - one NETWORK_ADDRESS", C, ["3"]),
        ("3 f 4 BROKER_INSTANCE_NOT_FOUND", NOWHERE, []),
    ]
    # In msdb alone: first no pick, then two.
    hub = instance({"Orders": [BACK], "msdb": [route("1", "S", C, "tcp://c:1"), route("2", "S", B, "tcp://b:1")]})
    decisions = decide_at(key_of(hub), hub, 10)
    assert [one.pick for one in decisions] == [B, C]
    assert [searches_of(one).partition(" > ")[2] for one in decisions] == [
        "3 b 2 FORWARDING_DISABLED",
        "3 c 1 FORWARDING_DISABLED",
    ]


def test_a_bound_message_and_one_of_an_unknown_id() -> None:
    hub = instance({"Orders": [route("1", "S", C, "tcp://c:1"), route("2", "S", None, "tcp://any:1")]})
    expected_searches = {
        broker: [searches_of(one) for one in decide_at(key_of(hub, broker=broker), hub, 10)]
        for broker in (None, C, B, UNNAMED)
    }
    assert expected_searches == {
        None: ["2 - 2 NETWORK_ADDRESS"],
        C: ["1 - 1 NETWORK_ADDRESS"],
        B: ["2 - 2 NETWORK_ADDRESS"],
        UNNAMED: ["2 - 2 NETWORK_ADDRESS"],
    }


def test_an_unknown_service_name_may_have_an_address() -> None:
    hub = instance({"Orders": [route("t", address="TRANSPORT"), route("s", "S"), route("ask", ASKS)]})
    for named, expected in (
        (NameAddress.NONE, "5 - t TRANSPORT_ADDRESS_INVALID"),
        (NameAddress.ELSEWHERE, "5 - t TRANSPORT_ADDRESS"),
    ):
        (decision,) = decide_at(RoutingKey("Orders", None, None, True, named), hub, 10)
        assert (searches_of(decision), decision.first.asks) == (expected, True)
        assert decision.last.reads_address is (named is not NameAddress.NONE)


def test_a_search_reports_its_routes_and_address() -> None:
    hub = instance({"Orders": [route("m", "S", C, "tcp://a:1", "tcp://b:1"), route("n", "S", C, "tcp://a:1")]})
    (decision,) = decide_at(key_of(hub), hub, 10)
    leg = decision.first
    assert (leg.known_broker, leg.pick, leg.broker, leg.is_reply, leg.asks) == (C, C, None, False, False)
    assert (leg.route_name, leg.address, leg.mirror_address) == ("m", "tcp://a:1", "tcp://b:1")
    assert (names(leg.routes), leg.alternatives) == (["m", "n"], ())
    assert (decision.rerouted_from, decision.asks_again, decision.destination) == (None, False, None)


# Bounds of the routes by name; the intervals with what is decided in each.
@parametrize(
    ("routes", "arrivals", "expected"),
    [
        ([], [], [(None, None, "7 - None NO_ROUTE")]),
        (
            [("east", "S", "tcp://e:1", 3, 7)],
            [],
            [
                (None, 3, "7 - None NO_ROUTE"),
                (3, 7, "2 - east NETWORK_ADDRESS"),
                (7, None, "7 - None NO_ROUTE"),
            ],
        ),
        # What comes in a later step than a route that is always in force cuts no interval.
        (
            [("s", "S", "tcp://e:1", None, None), ("any", None, "tcp://e:2", 3, 7)],
            [],
            [(None, None, "2 - s NETWORK_ADDRESS")],
        ),
        # The routes of msdb count only where the message may come back.
        (
            [("s", "S", "tcp://e:1", None, None)],
            [("m", None, "tcp://e:2", 3, 7)],
            [(None, None, "2 - s NETWORK_ADDRESS")],
        ),
        (
            [("own", "S", OWN, None, 5)],
            [("m", "S", "tcp://e:2", 3, 7)],
            [
                (None, 3, "2 - own NETWORK_ADDRESS > 7 - None NO_ROUTE"),
                (3, 5, "2 - own NETWORK_ADDRESS > 2 - m FORWARDING_DISABLED"),
                (5, 7, "7 - None NO_ROUTE"),
                (7, None, "7 - None NO_ROUTE"),
            ],
        ),
    ],
)
def test_a_key_is_decided_by_the_routes_valid_at_its_time(
    routes: list[tuple[str, str | None, str, int | None, int | None]],
    arrivals: list[tuple[str, str | None, str, int | None, int | None]],
    expected: list[tuple[int | None, int | None, str]],
) -> None:
    decided = {
        database: [
            route(name, service, None, address, None, start, end) for name, service, address, start, end in some
        ]
        for database, some in (("Orders", routes), ("msdb", arrivals))
    }
    hub = instance(decided)
    key = key_of(hub)
    assert [
        (one.valid_from, one.valid_to, *map(searches_of, one.choices))
        for one in ConcerningRoutes.of(key, hub).decide_all()
    ] == expected
    # And the same at one time: each bound is its interval's own.
    for start, end, searches in expected:
        for t in (start, None if end is None else end - 1):
            if t is not None:
                assert [searches_of(one) for one in decide_at(key, hub, t)] == [searches]
