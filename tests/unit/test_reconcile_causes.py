"""The most likely causes for hand-made groups, and causes that must not be named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from routing.rules.network import EstateNetwork
from routing.rules.reconciling import PairClass
from routing.terms import Outcome, Reason
from routing.views.reconcile.cause_search import CauseSearch, is_near
from routing.views.reconcile.episodes import EpisodeGroup, GroupAnswers, MismatchCause
from tests.unit.rules.made import B, C, instance, route

STOCK, STORE, MOVED, SLIP = (f"tcp://{name}:4022" for name in ("stock", "store", "moved", "slip"))
MINUTE = 60_000_000
ROUTES = {
    "Orders": [
        route("Stock", "//stock", address=STOCK, valid_from=1),
        route("East", "//even", B, STOCK),
        route("West", "//even", C, STORE),
        route("Slip", "//Stocks", address=SLIP),
    ]
}
HUB = instance(ROUTES, services=[("Orders", "//held"), ("Orders", "//Heldd")])
NETWORK = EstateNetwork({"hub": HUB})


def group(
    kind: PairClass,
    since: int,
    until: int,
    *,
    service: str = "//stock",
    seen: Outcome | None = Outcome.SENT,
    hop: str | None = None,
    number: int | None = None,
    broker: str | None = None,
    route_name: str | None = "Stock",
    **rest: Any,
) -> EpisodeGroup:
    """Return episodes of Orders on hub that a route was predicted to send. Times are minutes."""
    answers = GroupAnswers(
        "hub", "Orders", service, kind, "CLASSIFY_EVENT", seen, number, hop, broker,
        Outcome.SENT, Reason.NETWORK_ADDRESS, route_name, STOCK,
    )  # fmt: skip
    return EpisodeGroup(1, 0, since * MINUTE, until * MINUTE, answers._replace(**rest))


RIGHT, WRONG = PairClass.CONFIRMED, PairClass.CONTRADICTED


def searched(groups: Sequence[EpisodeGroup]) -> dict[GroupAnswers, MismatchCause]:
    """Return the causes found for groups."""
    search = CauseSearch(NETWORK)
    search.note(groups)
    return search.find_causes(groups)


def causes(*groups: EpisodeGroup) -> list[tuple[str, str] | None]:
    """The kind and sentence of each contradicted group, in their order."""
    causes_by_answers = searched(groups)
    found_causes = [
        causes_by_answers.get(one.answers)
        for one in groups
        if one.answers.kind not in (RIGHT, PairClass.COMPATIBLE)
    ]
    return [None if cause is None else (str(cause.kind), cause.text) for cause in found_causes]


def kinds(*groups: EpisodeGroup) -> list[str | None]:
    return [None if cause is None else cause[0] for cause in causes(*groups)]


def test_a_route_that_changed() -> None:
    [cause] = causes(group(RIGHT, 0, 10, hop=STOCK), group(WRONG, 12, 20, hop=MOVED))
    expected = (
        "route 'Stock' changed between 1970-01-01T00:10:00Z and 1970-01-01T00:12:00Z: messages of database"
        " 'Orders' for service '//stock' on instance 'hub' were SENT to 'tcp://stock:4022', as the tables say, and"
        " then SENT to 'tcp://moved:4022'; import its routes again"
    )
    assert cause == ("ROUTE_CHANGED", expected)


def test_a_route_that_was_restored_did_not_change() -> None:
    again = group(PairClass.COMPATIBLE, 11, 30, hop=STOCK)
    assert kinds(group(RIGHT, 0, 10, hop=STOCK), again, group(WRONG, 12, 20, hop=MOVED)) == ["ROUTE_NOT_IN_TABLES"]


def test_a_route_that_was_dropped() -> None:
    gone: dict[str, Any] = {"seen": Outcome.DELAYED, "number": 9793}
    assert kinds(group(RIGHT, 0, 10, hop=STOCK), group(WRONG, 11, 20, **gone)) == ["ROUTE_CHANGED"]
    # Never right: nothing tells that there was one.
    assert kinds(group(WRONG, 11, 20, **gone)) == [None]


def test_the_changed_one_of_balanced_routes_is_named() -> None:
    even: dict[str, Any] = {"service": "//even"}
    [cause] = causes(
        group(RIGHT, 0, 30, hop=STOCK, broker=B, route_name="East", **even),
        group(RIGHT, 0, 9, hop=STORE, broker=C, route_name="West", **even),
        # By another hash it is East that is predicted.
        group(WRONG, 12, 30, hop=MOVED, broker=C, route_name="East", **even),
        group(RIGHT, 0, 9, hop=STORE, broker=C, route_name="East", **even),
    )
    assert cause is not None
    assert cause[1].startswith("route 'West' changed between 1970-01-01T00:09:00Z and 1970-01-01T00:12:00Z")


def test_a_route_that_is_not_in_the_tables() -> None:
    far = "tcp://nowhere-in-the-tables:4022"
    [cause] = causes(group(RIGHT, 0, 30, hop=STOCK), group(WRONG, 0, 30, hop=far))
    expected = (
        f"a route to '{far}' is in force and not in the tables: messages of database 'Orders' for service"
        f" '//stock' on instance 'hub' were SENT to '{far}', where the tables say SENT (NETWORK_ADDRESS); import"
        " the routes of 'Orders' again"
    )
    assert cause == ("ROUTE_NOT_IN_TABLES", expected)
    # Sent where a route of the tables sends it, which does not match now.
    assert kinds(group(WRONG, 0, 30, hop=STOCK)) == [None]
    # A LOCAL route that leads nowhere is a route.
    assert kinds(group(WRONG, 0, 30, seen=Outcome.DELAYED, number=9796)) == ["ROUTE_NOT_IN_TABLES"]
    assert kinds(group(WRONG, 0, 30, seen=Outcome.DELAYED, number=9791)) == [None]
    # What was right may have gone the same way, for all that is told of it.
    assert kinds(group(RIGHT, 0, 10), group(WRONG, 11, 30, hop=far)) == ["ROUTE_NOT_IN_TABLES"]


def test_a_misspelled_name_is_the_cause() -> None:
    [cause] = causes(group(WRONG, 0, 30, hop=SLIP, route_name=None))
    assert cause is not None
    assert cause[0] == "NEAR_NAME"
    assert "route 'Slip' names the service '//Stocks'" in cause[1]
    # Another way than that of the route, and a name that others use.
    assert kinds(group(WRONG, 0, 30, hop=STORE, route_name=None)) == ["ROUTE_NOT_IN_TABLES"]
    in_use = group(RIGHT, 0, 30, service="//Stocks", hop=SLIP)
    assert kinds(in_use, group(WRONG, 0, 30, hop=SLIP, route_name=None)) == ["ROUTE_NOT_IN_TABLES"]
    observation: dict[str, Any] = {"service": "//held", "seen": Outcome.DELIVERED, "route_name": None}
    assert kinds(group(WRONG, 0, 30, **observation)) == ["NEAR_NAME"]


def test_names_missing_in_the_tables_are_causes() -> None:
    nothing: dict[str, Any] = {"outcome": None, "reason": None, "route_name": None, "address": None}
    for name, codes, expected in (
        ({"instance": "depot"}, ("UNKNOWN_INSTANCE",), "INSTANCE_NOT_IMPORTED"),
        ({"instance": "HUB"}, ("UNKNOWN_INSTANCE",), "NEAR_NAME"),
        ({"database": "Archive"}, ("UNKNOWN_DATABASE",), "DATABASE_NOT_IMPORTED"),
        ({"database": "Order"}, ("UNKNOWN_DATABASE",), "NEAR_NAME"),
        ({}, ("MISSING_TO_SERVICE_NAME",), None),
    ):
        rest: dict[str, Any] = {**nothing, **name, "rejections": codes}
        assert kinds(group(PairClass.NOT_PREDICTED, 0, 1, **rest)) == [expected], codes


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Orders", "Orders", False),
        ("Orders", "orders", True),
        ("Orders", " Orders/", True),
        ("Orders", "Order", True),
        ("Orders", "Ordders", True),
        ("Orders", "Ordesr", True),
        ("Orders", "Oxders", True),
        ("Orders", "Oxdexs", False),
        ("Orders", "Stock", False),
        ("Orders1", "Orders2", False),
        ("Orders1", "Orders12", False),
        ("Or1", "Ora", False),
        ("", "a", False),
    ],
)
def test_names_that_are_nearly_the_same(one: str, other: str, expected: bool) -> None:
    assert (is_near(one, other), is_near(other, one)) == (expected, expected)
