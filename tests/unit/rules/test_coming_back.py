"""A message with a route to its own instance is treated as an arrival: rule book, section 3."""

from __future__ import annotations

import pytest

from routing.rules.estate import EstateRoute
from tests.unit.rules.made import OWN, B, C, decide_at, instance, key_of, route, searches_of

parametrize = pytest.mark.parametrize
WEST, BACK = route("west", address="tcp://west:1"), route("back", address=OWN)


# An address of this very instance: routes of the database, those of msdb, what is decided.
@parametrize(
    ("routes", "arrivals", "service", "expected"),
    [
        ([BACK], [WEST], "S", "5 - back NETWORK_ADDRESS > 5 - west NETWORK_ADDRESS"),
        ([BACK], [BACK], "S", "5 - back NETWORK_ADDRESS > 5 - back ROUTING_LOOP"),
        ([BACK], [], "S", "5 - back NETWORK_ADDRESS > 7 - None NO_ROUTE"),
        ([BACK], [route("here")], "OrderService", "5 - back NETWORK_ADDRESS > 5 - here LOCAL_SERVICE"),
        # By the reported route alone: not its alternatives, and no mirrored one.
        ([route("a", address="tcp://a:1"), BACK], [WEST], "S", "5 - a NETWORK_ADDRESS"),
        (
            [BACK, route("c", address="tcp://c:1")],
            [WEST],
            "S",
            "5 - back NETWORK_ADDRESS > 5 - west NETWORK_ADDRESS",
        ),
        ([route("m", address=OWN, mirror=OWN)], [WEST], "S", "5 - m MIRROR_ADDRESS"),
        # By the address in the service's name; then nothing but the port tells a loopback name.
        (
            [route("t", address="TRANSPORT")],
            [WEST],
            "tcp://localhost:4022/S",
            "5 - t TRANSPORT_ADDRESS > 5 - west NETWORK_ADDRESS",
        ),
        ([route("t", address="TRANSPORT")], [WEST], "tcp://localhost:1/S", "5 - t TRANSPORT_ADDRESS"),
    ],
)
def test_returning_messages_are_decided_in_msdb(
    routes: list[EstateRoute],
    arrivals: list[EstateRoute],
    service: str,
    expected: str,
) -> None:
    hub = instance({"Orders": routes, "msdb": arrivals}, forwards=True)
    assert [searches_of(one) for one in decide_at(key_of(hub, service=service), hub, 10)] == [expected]


# Section 1 and the check of msdb's broker hold for it as well; nothing is the sender's any more.
@parametrize(
    ("service", "broker", "is_initiator", "msdb_is_on", "expected", "destination"),
    [
        ("Shared", C, False, False, "5 - back NETWORK_ADDRESS > 0 - None LOCAL_SERVICE", "Parts"),
        ("Shared", C, True, False, "5 - back NETWORK_ADDRESS > - - None SCOPE_BROKER_DISABLED", None),
        ("Shared", None, False, False, "5 - back NETWORK_ADDRESS > - - None SCOPE_BROKER_DISABLED", None),
        ("Shared", None, True, True, "5 - back NETWORK_ADDRESS > 5 - local LOCAL_SERVICE", "Orders"),
        ("S", None, True, True, "5 - back NETWORK_ADDRESS > 5 - local SERVICE_NOT_FOUND", None),
    ],
)
def test_a_returning_message_is_an_arrival(
    service: str, broker: str | None, is_initiator: bool, msdb_is_on: bool, expected: str, destination: str | None
) -> None:
    hub = instance(
        {"Parts": [BACK], "msdb": [route("local")]},
        [("Orders", B, None), ("Parts", C, None), ("msdb", None, msdb_is_on)],
        [("Orders", "Shared"), ("Parts", "Shared")],
    )
    (decision,) = decide_at(key_of(hub, "Parts", service, broker, is_initiator=is_initiator), hub, 10)
    assert (searches_of(decision), decision.destination, decision.rerouted_from) == (expected, destination, "back")
    assert decision.last is decision.second
    assert decision.last.is_from_network
    assert (decision.last.scope, decision.last.sender) == ("msdb", None)
