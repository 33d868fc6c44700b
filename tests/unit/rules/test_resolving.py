"""One message with its own facts: rule book, sections 0, 3 and 5."""

from __future__ import annotations

import pytest

from routing.rules.estate import SqlInstance
from routing.rules.requesting import InstanceRequests, RouteRequest
from routing.rules.resolving import NO_DIALOG, DialogFacts, bound_broker
from tests.unit.rules.by_rules import resolve
from tests.unit.rules.made import ASKS, DIALOGS, OWN, B, C, D, instance, message, route

parametrize = pytest.mark.parametrize
ACKNOWLEDGED = DialogFacts(far_broker=C, acknowledged_broker=D, acknowledged_at=10)


# Decided at 10.
@parametrize(
    ("dialog", "acknowledged", "is_expired"),
    [
        (NO_DIALOG, None, False),
        (DialogFacts(acknowledged_broker=D), None, False),
        (DialogFacts(acknowledged_at=5), None, False),
        (DialogFacts(acknowledged_broker=D, acknowledged_at=9), D, False),
        (DialogFacts(acknowledged_broker=D, acknowledged_at=10), D, False),
        (DialogFacts(acknowledged_broker=D, acknowledged_at=11), None, False),
        (DialogFacts(lifetime=9), None, True),
        (DialogFacts(lifetime=10), None, True),
        (DialogFacts(lifetime=11), None, False),
    ],
)
def test_acknowledgement_and_expiry_of_a_dialog(
    dialog: DialogFacts, acknowledged: str | None, is_expired: bool
) -> None:
    assert (dialog.acknowledged(10), dialog.is_expired(10)) == (acknowledged, is_expired)


@parametrize(
    ("own", "dialog", "expected"),
    [
        (None, NO_DIALOG, None),
        (B, NO_DIALOG, B),
        (B, ACKNOWLEDGED, B),
        (None, ACKNOWLEDGED, D),
        (None, DialogFacts(C, D, 11), C),
        (None, DialogFacts(C, None, 9), C),
        (None, DialogFacts(None, D, None), None),
        (None, DialogFacts(C), C),
    ],
)
def test_the_broker_that_a_message_is_bound_to(own: str | None, dialog: DialogFacts, expected: str | None) -> None:
    assert bound_broker(message(broker=own), dialog) == expected


EAST, BACK, ASK = route("east", address="tcp://east:1"), route("back", address=OWN), route("ask", ASKS)


# Where hops are left, one more is none; null is no limit; only what is forwarded uses one.
@parametrize(
    ("database", "hops", "reason"),
    [
        (None, None, "NETWORK_ADDRESS"),
        (None, 1, "NETWORK_ADDRESS"),
        (None, 0, "HOP_LIMIT"),
        (None, -3, "HOP_LIMIT"),
        ("Orders", None, "NETWORK_ADDRESS"),
        ("Orders", 0, "NETWORK_ADDRESS"),
        # Came back: no hop is used, and they are tested as they stand.
        ("Parts", 1, "NETWORK_ADDRESS"),
        ("Parts", 0, "HOP_LIMIT"),
    ],
)
def test_the_hops_that_remain(database: str | None, hops: int | None, reason: str) -> None:
    hub = instance({"Orders": [EAST], "Parts": [BACK], "msdb": [EAST]}, forwards=True)
    assert resolve(message(database=database, hops=hops), NO_DIALOG, hub, InstanceRequests()).reason == reason


def test_a_dialog_gets_one_of_several_ids() -> None:
    """The dialogs' hashes modulo 2 are 0, 1, 1, 0. A second route for an id changes no share."""
    routes = [route("1", "S", C, "tcp://c:1"), route("2", "S", B, "tcp://b:1"), route("3", "S", C, "tcp://c:2")]
    hub = instance({"Orders": routes})
    verdicts = [resolve(message(conversation_id=d), NO_DIALOG, hub, InstanceRequests()) for d in DIALOGS]
    assert [(v.broker_instance, v.route_name, len(v.alternative_routes)) for v in verdicts] == [
        (B, "2", 0),
        (C, "1", 1),
        (C, "1", 1),
        (B, "2", 0),
    ]
    assert {v.matching_step for v in verdicts} == {3}


def _asking(
    hub: SqlInstance, requests: InstanceRequests, database: str | None = "Orders"
) -> tuple[str, str | None]:
    verdict = resolve(message(database=database), NO_DIALOG, hub, requests)
    return str(verdict.reason), verdict.requested_in


def test_where_a_message_asks_for_a_route() -> None:
    asked = ("ROUTE_REQUESTED", "Orders")
    hub = instance({"Orders": [ASK, EAST], "msdb": [ASK, EAST]}, forwards=True)
    assert _asking(hub, InstanceRequests()) == asked
    assert _asking(hub, InstanceRequests(), None) == ("ROUTE_REQUESTED", "msdb")
    pending = InstanceRequests.on_record([("Orders", "S", RouteRequest(9, "x"))])
    # D2: where one is pending, the search goes on.
    assert _asking(hub, pending) == ("NETWORK_ADDRESS", None)
    assert _asking(hub, pending, None) == ("ROUTE_REQUESTED", "msdb")


def test_a_message_that_came_back_asks_in_msdb() -> None:
    hub = instance({"Orders": [ASK, BACK], "msdb": [ASK, EAST]}, forwards=True)
    assert _asking(hub, InstanceRequests()) == ("ROUTE_REQUESTED", "Orders")
    here = ("Orders", "S", RouteRequest(9, "x"))
    assert _asking(hub, InstanceRequests.on_record([here])) == ("ROUTE_REQUESTED", "msdb")
    both = InstanceRequests.on_record([here, ("msdb", "S", RouteRequest(9, "x"))])
    assert _asking(hub, both) == ("NETWORK_ADDRESS", None)


def test_an_expired_dialog_opens_no_request() -> None:
    requests = InstanceRequests()
    hub = instance({"Orders": [ASK]})
    assert resolve(message(message_id="a"), DialogFacts(lifetime=3), hub, requests).requested_in is None
    assert resolve(message(message_id="b"), NO_DIALOG, hub, requests).requested_in == "Orders"
