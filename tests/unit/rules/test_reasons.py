"""Each reason for the result of a message, with its texts: rule book, sections 0 to 5."""

from __future__ import annotations

from typing import Any

import pytest

from routing.rules.estate import EstateRoute
from routing.rules.requesting import InstanceRequests
from routing.rules.resolving import NO_DIALOG, DialogFacts
from routing.terms import Reason
from tests.unit.rules.by_rules import columns, resolve
from tests.unit.rules.made import ASKS, NOWHERE, OWN, B, C, D, instance, message, route

EAST, WEST = route("east", address="tcp://east:1"), route("west", address="TCP://West:1/")
MIRRORED = route("pair", "S", address="tcp://east:1", mirror="tcp://west:1")
LOCAL, BY_NAME, BACK = route("local"), route("named", address="TRANSPORT"), route("back", address=OWN)
ASK = route("ask", ASKS)
OFF = (("Orders", B, None), ("Parts", C, False), ("Reports", D, True))


def _of(
    outcome: str, reason: str, step: int | None, route_name: str | None = None, **further: Any
) -> dict[str, Any]:
    nothing = dict.fromkeys(
        ("broker_instance", "address", "mirror_address", "destination_database", "rerouted_from")
    )
    nothing |= {"alternative_routes": None}
    return {
        **nothing,
        "outcome": outcome,
        "reason": reason,
        "matching_step": step,
        "route_name": route_name,
    } | further


def _address_columns(one: EstateRoute) -> dict[str, Any]:
    return {"route_name": one.name, "address": one.address, "mirror_address": one.mirror_address}


# Routes by database, what else is known of the instance, the message, its dialog, and what becomes of it.
_REASONS: dict[
    str, list[tuple[dict[str, list[EstateRoute]], dict[str, Any], dict[str, Any], DialogFacts, dict[str, Any]]]
] = {
    "LOCAL_SERVICE": [
        (
            {"Orders": [LOCAL]},
            {},
            {"service": "PartService"},
            NO_DIALOG,
            _of("DELIVERED", "LOCAL_SERVICE", 5, "local", address="LOCAL", destination_database="Parts"),
        ),
        # A reply from outside: no routes are searched, and the broker of msdb is not asked.
        (
            {"msdb": [EAST]},
            {"databases": [("Orders", B, None), ("msdb", D, False)]},
            {"service": "OrderService", "database": None, "broker": B, "is_initiator": False},
            NO_DIALOG,
            _of("DELIVERED", "LOCAL_SERVICE", 0, broker_instance=B, destination_database="Orders"),
        ),
        (
            {},
            {},
            {"service": "PartService", "broker": C},
            NO_DIALOG,
            _of("DELIVERED", "LOCAL_SERVICE", 6, address="LOCAL", broker_instance=C, destination_database="Parts"),
        ),
    ],
    "NETWORK_ADDRESS": [
        (
            {"Orders": [WEST, EAST]},
            {},
            {"hops": 0},
            NO_DIALOG,
            _of(
                "SENT",
                "NETWORK_ADDRESS",
                5,
                "east",
                address="tcp://east:1",
                alternative_routes=[_address_columns(WEST)],
            ),
        ),
        (
            {"Orders": [EAST], "msdb": [WEST]},
            {"forwards": True},
            {"database": None, "hops": 1},
            NO_DIALOG,
            _of("FORWARDED", "NETWORK_ADDRESS", 5, "west", address="TCP://West:1/"),
        ),
    ],
    "MIRROR_ADDRESS": [
        (
            {"Orders": [MIRRORED, LOCAL]},
            {},
            {},
            NO_DIALOG,
            _of("SENT", "MIRROR_ADDRESS", 2, "pair", address="tcp://east:1", mirror_address="tcp://west:1"),
        )
    ],
    "TRANSPORT_ADDRESS": [
        (
            {"Orders": [BY_NAME]},
            {},
            {"service": "TCP://East:1/S"},
            NO_DIALOG,
            _of("SENT", "TRANSPORT_ADDRESS", 5, "named", address="TCP://East:1"),
        )
    ],
    "ROUTE_REQUESTED": [
        (
            {"Orders": [ASK, EAST]},
            {},
            {"broker": C},
            NO_DIALOG,
            _of("DELAYED", "ROUTE_REQUESTED", 4, broker_instance=C),
        ),
        # D9: what arrived is DELAYED as well.
        ({"msdb": [ASK]}, {}, {"database": None}, NO_DIALOG, _of("DELAYED", "ROUTE_REQUESTED", 4)),
        # After it came back: the id that was picked, and the route that led it back.
        (
            {"Orders": [route("back", "S", D, OWN)], "msdb": [ASK]},
            {},
            {},
            NO_DIALOG,
            _of("DELAYED", "ROUTE_REQUESTED", 4, broker_instance=D, rerouted_from="back"),
        ),
    ],
    "NO_ROUTE": [
        ({}, {}, {}, NO_DIALOG, _of("DELAYED", "NO_ROUTE", 7)),
        ({"Orders": [LOCAL]}, {}, {"database": None}, NO_DIALOG, _of("DELAYED", "NO_ROUTE", 7)),
        # D3.
        (
            {"Orders": [route("r", None, B)]},
            {},
            {"broker": B},
            NO_DIALOG,
            _of("DELAYED", "NO_ROUTE", 7, broker_instance=B),
        ),
    ],
    "SERVICE_NOT_FOUND": [
        ({"Orders": [LOCAL]}, {}, {}, NO_DIALOG, _of("DELAYED", "SERVICE_NOT_FOUND", 5, "local")),
        # D4: what arrived is dropped.
        ({"msdb": [LOCAL]}, {}, {"database": None}, NO_DIALOG, _of("DROPPED", "SERVICE_NOT_FOUND", 5, "local")),
    ],
    "BROKER_INSTANCE_NOT_FOUND": [
        # D6: bound elsewhere, LOCAL cannot be used though the service is here.
        (
            {"Orders": [LOCAL]},
            {},
            {"service": "PartService", "broker": NOWHERE},
            NO_DIALOG,
            _of("DELAYED", "BROKER_INSTANCE_NOT_FOUND", 5, "local", broker_instance=NOWHERE),
        )
    ],
    "BROKER_DISABLED": [
        (
            {"Orders": [LOCAL]},
            {"databases": OFF},
            {"service": "PartService"},
            NO_DIALOG,
            _of("DELAYED", "BROKER_DISABLED", 5, "local"),
        ),
        (
            {},
            {"databases": OFF},
            {"service": "PartService", "database": None, "broker": C, "is_initiator": False},
            NO_DIALOG,
            _of("DROPPED", "BROKER_DISABLED", 0, broker_instance=C),
        ),
    ],
    "SCOPE_BROKER_DISABLED": [
        (
            {"Orders": [EAST], "Parts": [EAST]},
            {"databases": OFF},
            {"database": "Parts", "broker": C},
            NO_DIALOG,
            _of("DELAYED", "SCOPE_BROKER_DISABLED", None, broker_instance=C),
        ),
        (
            {"msdb": [EAST]},
            {"databases": [("msdb", B, False)], "forwards": True},
            {"database": None},
            NO_DIALOG,
            _of("DELAYED", "SCOPE_BROKER_DISABLED", None),
        ),
    ],
    "TRANSPORT_ADDRESS_INVALID": [
        ({"Orders": [BY_NAME]}, {}, {}, NO_DIALOG, _of("DELAYED", "TRANSPORT_ADDRESS_INVALID", 5, "named")),
        (
            {"msdb": [BY_NAME]},
            {},
            {"database": None},
            NO_DIALOG,
            _of("DROPPED", "TRANSPORT_ADDRESS_INVALID", 5, "named"),
        ),
    ],
    "FORWARDING_DISABLED": [
        (
            {"msdb": [EAST, WEST]},
            {},
            {"database": None, "hops": 0},
            NO_DIALOG,
            _of(
                *("DROPPED", "FORWARDING_DISABLED", 5, "east"),
                address="tcp://east:1",
                alternative_routes=[_address_columns(WEST)],
            ),
        )
    ],
    "HOP_LIMIT": [
        (
            {"msdb": [route("r", address=address)]},
            {"forwards": True},
            {"database": None, "hops": hops},
            NO_DIALOG,
            _of("DROPPED", "HOP_LIMIT", 5, "r", address=address),
        )
        for hops, address in ((0, "tcp://east:1"), (-1, OWN))
    ],
    "ROUTING_LOOP": [
        (
            {"msdb": [BACK]},
            {"forwards": True},
            {"database": None},
            NO_DIALOG,
            _of("DROPPED", "ROUTING_LOOP", 5, "back", address=OWN),
        ),
        (
            {"Orders": [route("again", address="tcp://localhost:4022")], "msdb": [BACK]},
            {"forwards": True},
            {"hops": 1},
            NO_DIALOG,
            _of("DROPPED", "ROUTING_LOOP", 5, "back", address=OWN, rerouted_from="again"),
        ),
    ],
    "DIALOG_EXPIRED": [
        # Before anything else: the check of the scope's broker, a request, a route.
        (
            {"Parts": [ASK, EAST]},
            {"databases": OFF},
            {"database": "Parts"},
            DialogFacts(far_broker=C, lifetime=10),
            _of("DROPPED", "DIALOG_EXPIRED", None, broker_instance=C),
        )
    ],
}


@pytest.mark.parametrize("reason", list(Reason), ids=str)
def test_each_reason(reason: Reason) -> None:
    for routes, known, said, dialog, expected in _REASONS[reason]:
        verdict = resolve(message(**said), dialog, instance(routes, **known), InstanceRequests())
        assert columns(verdict) == expected
