"""The facts that distinguish keys. Keys with equal signatures share their decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from routing.rules.deciding import RoutingKey, signature
from routing.rules.estate import EstateRoute, NameAddress, SqlInstance
from tests.unit.rules.made import ASKS, NOWHERE, OWN, B, C, D, decide_at, instance, key_of, route, searches_of

# A route counts as the object that it is: both sides of a row have these.
FAR, ANY, ASK = route("far", address="tcp://far:1"), route("any"), route("ask", ASKS)
HOME, READ = route("home", address=OWN), route("read", address="TRANSPORT")
NAMED, LOCAL = route("named", "S", address="tcp://s:1"), route("local", "S")
TO_B, TO_D = route("toB", "S", B, "tcp://b:1"), route("toD", "S", D)
ORDERS, PARTS = ("Orders", B, None), ("Parts", C, None)
HELD_TWICE = [("Orders", "S"), ("Parts", "S")]
SENT, LEFT = "5 - far NETWORK_ADDRESS", "2 - named NETWORK_ADDRESS"
RETURNS = "5 - home NETWORK_ADDRESS"

Asked = tuple[RoutingKey, SqlInstance]


def key_and_instance(
    routes: Mapping[str, Iterable[EstateRoute]],
    database: str | None = "Orders",
    service: str = "S",
    broker: str | None = None,
    *,
    is_initiator: bool = True,
    name: NameAddress | None = None,
    **made: Any,
) -> Asked:
    """Return a key and its instance. ``name`` is an address in an otherwise unknown service name."""
    hub = instance(routes, **made)
    key = key_of(hub, database, service, broker, is_initiator=is_initiator)
    return (key if name is None else key._replace(service=None, name_address=name)), hub


def decided(one: Asked) -> list[str]:
    """Return the paths of a key, each with its final database."""
    return [f"{searches_of(decision)} {decision.destination or ''}".rstrip() for decision in decide_at(*one, 10)]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (key_and_instance({"Orders": [FAR]}), key_and_instance({"Parts": [FAR]}, "Parts"), [SENT]),
        (key_and_instance({"Orders": [FAR]}), key_and_instance({"Orders": [FAR]}, addresses=None), [SENT]),
        (key_and_instance({"Orders": [FAR]}), key_and_instance({"Orders": [FAR]}, service="T"), [SENT]),
        (
            key_and_instance({"Orders": [NAMED]}),
            key_and_instance({"Orders": [NAMED]}, databases=[("Orders", D, None)]),
            [LEFT],
        ),
        (
            key_and_instance({"Orders": [NAMED]}),
            key_and_instance({"Orders": [NAMED]}, services=[("Orders", "T")]),
            [LEFT],
        ),
        (
            key_and_instance({"Orders": [FAR, TO_B]}, broker=NOWHERE, databases=[PARTS]),
            key_and_instance({"Orders": [FAR, TO_B]}, broker=D, databases=[PARTS], is_initiator=False),
            [SENT],
        ),
        (
            key_and_instance({"Orders": [FAR, TO_D]}, broker=B),
            key_and_instance({"Orders": [FAR, TO_D]}, service="T", broker=B),
            [SENT],
        ),
        (
            key_and_instance({}, name=NameAddress.NONE),
            key_and_instance({}, "Parts", name=NameAddress.NONE),
            ["7 - None NO_ROUTE"],
        ),
    ],
)
def test_irrelevant_facts_do_not_separate_keys(one: Asked, other: Asked, expected: list[str]) -> None:
    assert signature(*one) == signature(*other)
    assert decided(one) == decided(other) == expected


@pytest.mark.parametrize(
    ("one", "expected", "other", "otherwise"),
    [
        # Routes: those that name the service, others of the scope, and both in msdb after coming back.
        (key_and_instance({"Orders": [NAMED]}), [LEFT], key_and_instance({"Orders": []}), ["7 - None NO_ROUTE"]),
        (
            key_and_instance({"Orders": [FAR]}),
            [SENT],
            key_and_instance({"Orders": [ANY]}),
            ["5 - any SERVICE_NOT_FOUND"],
        ),
        (key_and_instance({"Orders": [ASK, FAR]}), [SENT], key_and_instance({"Orders": [FAR]}), [SENT]),
        (
            key_and_instance({"Orders": [HOME], "msdb": [NAMED]}),
            [f"{RETURNS} > 2 - named FORWARDING_DISABLED"],
            key_and_instance({"Orders": [HOME], "msdb": []}),
            [f"{RETURNS} > 7 - None NO_ROUTE"],
        ),
        (
            key_and_instance({"Orders": [HOME], "msdb": [FAR]}),
            [f"{RETURNS} > 5 - far FORWARDING_DISABLED"],
            key_and_instance({"Orders": [HOME], "msdb": []}),
            [f"{RETURNS} > 7 - None NO_ROUTE"],
        ),
        # What routes have to do with the instance: its addresses, and its broker instances.
        (
            key_and_instance({"Orders": [HOME], "msdb": []}),
            [f"{RETURNS} > 7 - None NO_ROUTE"],
            key_and_instance({"Orders": [HOME], "msdb": []}, addresses=["tcp://other:1"]),
            [RETURNS],
        ),
        (
            key_and_instance({"Orders": [TO_D]}),
            ["3 d toD BROKER_INSTANCE_NOT_FOUND"],
            key_and_instance({"Orders": [TO_D]}, databases=[ORDERS, ("Parts", D, None)]),
            ["3 d toD SERVICE_NOT_FOUND"],
        ),
        (
            key_and_instance({"Orders": [HOME], "msdb": [TO_D]}),
            [f"{RETURNS} > 3 d toD BROKER_INSTANCE_NOT_FOUND"],
            key_and_instance({"Orders": [HOME], "msdb": [TO_D]}, databases=[ORDERS, ("Parts", D, None)]),
            [f"{RETURNS} > 3 d toD SERVICE_NOT_FOUND"],
        ),
        # The instance: which brokers are off, and whether it forwards.
        (
            key_and_instance({"Orders": [FAR]}),
            [SENT],
            key_and_instance({"Orders": [FAR]}, databases=[("Orders", B, False)]),
            ["- - None SCOPE_BROKER_DISABLED"],
        ),
        (
            key_and_instance({"Orders": [HOME], "msdb": []}),
            [f"{RETURNS} > 7 - None NO_ROUTE"],
            key_and_instance({"Orders": [HOME], "msdb": []}, databases=[("msdb", None, False)]),
            [f"{RETURNS} > - - None SCOPE_BROKER_DISABLED"],
        ),
        (
            key_and_instance({"msdb": [FAR]}, None),
            ["5 - far FORWARDING_DISABLED"],
            key_and_instance({"msdb": [FAR]}, None, forwards=True),
            [SENT],
        ),
        # Who holds the service, and whether the sender is one of them.
        (
            key_and_instance({"Orders": [LOCAL]}, services=[("Parts", "S")]),
            ["2 - local LOCAL_SERVICE Parts"],
            key_and_instance({"Orders": [LOCAL]}),
            ["2 - local SERVICE_NOT_FOUND"],
        ),
        (
            key_and_instance({"Orders": [LOCAL]}, services=HELD_TWICE),
            ["2 - local LOCAL_SERVICE Orders"],
            key_and_instance({"Parts": [LOCAL]}, "Parts", services=HELD_TWICE),
            ["2 - local LOCAL_SERVICE Parts"],
        ),
        # The message: its name, its broker instance, its role, and whether it has been sent or has arrived.
        (
            key_and_instance({"Orders": [READ]}, name=NameAddress.NONE),
            ["5 - read TRANSPORT_ADDRESS_INVALID"],
            key_and_instance({"Orders": [READ]}, name=NameAddress.ELSEWHERE),
            ["5 - read TRANSPORT_ADDRESS"],
        ),
        (
            key_and_instance({"Orders": [FAR, TO_B]}),
            ["3 b toB NETWORK_ADDRESS"],
            key_and_instance({"Orders": [FAR, TO_B]}, broker=NOWHERE),
            [SENT],
        ),
        (
            key_and_instance({}, "Orders", "OrderService", B),
            ["6 - None LOCAL_SERVICE Orders"],
            key_and_instance({}, "Orders", "OrderService"),
            ["7 - None NO_ROUTE"],
        ),
        (
            key_and_instance({}, None, "OrderService", B),
            ["6 - None LOCAL_SERVICE Orders"],
            key_and_instance({}, None, "OrderService", B, is_initiator=False),
            ["0 - None LOCAL_SERVICE Orders"],
        ),
        (
            key_and_instance({"msdb": [FAR]}, "msdb"),
            [SENT],
            key_and_instance({"msdb": [FAR]}, None),
            ["5 - far FORWARDING_DISABLED"],
        ),
        # Where step 4 is met: in msdb, or in the database of a sender.
        (
            key_and_instance({"msdb": [ASK, FAR]}, "msdb"),
            [SENT],
            key_and_instance({"msdb": [ASK, FAR], "Orders": [ASK, FAR]}),
            [SENT],
        ),
    ],
)
def test_relevant_facts_separate_keys(one: Asked, expected: list[str], other: Asked, otherwise: list[str]) -> None:
    assert signature(*one) != signature(*other)
    assert (decided(one), decided(other)) == (expected, otherwise)
