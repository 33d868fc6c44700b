"""The facts other than messages, as rows are read: rule book, sections 0 and 3."""

from __future__ import annotations

import pytest

from routing.rules import estate
from routing.rules.estate import AddressKind, Database, EstateRoute, NameAddress
from tests.unit.rules.made import B, C, instance, names, route

parametrize = pytest.mark.parametrize


def test_a_route_of_a_row() -> None:
    assert route("n", "S", " {BBBBBBBB-0000-4000-8000-000000000000} ", " Local/", None, 3, 9, 7) == EstateRoute(
        "n", "S", B, 3, 7, " Local/", None, AddressKind.LOCAL
    )
    assert route("n", "", "", "tcp://East:1", "") == EstateRoute(
        "n", None, None, None, None, "tcp://East:1", None, AddressKind.NETWORK
    )
    mirrored = route("n", None, None, " TCP://East:1/", "tcp://West:1//")
    assert (mirrored.address, mirrored.mirror_address) == (" TCP://East:1/", "tcp://West:1//")
    assert (mirrored.compared, mirrored.compared_mirror) == ("tcp://east:1", "tcp://west:1")
    assert not mirrored.is_implied
    assert route().compared_mirror is None
    for address in (None, "LOCAL"):
        implied = EstateRoute.implied(address)
        assert (implied.is_implied, implied.kind, implied.address) == (True, AddressKind.LOCAL, address)
    assert EstateRoute.implied(None).compared is None


# Section 0: valid_from <= t < valid_to, either may be null, and lifetime null or t < lifetime.
@parametrize(
    ("valid_from", "valid_to", "lifetime", "times", "is_ever_live"),
    [
        (None, None, None, {-5: True, 0: True, 9: True}, True),
        (3, None, None, {2: False, 3: True, 9: True}, True),
        (None, 7, None, {0: True, 6: True, 7: False}, True),
        (None, None, 7, {6: True, 7: False}, True),
        (3, 7, None, {2: False, 3: True, 6: True, 7: False}, True),
        (3, 9, 7, {6: True, 7: False, 8: False}, True),
        (3, 7, 9, {6: True, 7: False, 8: False}, True),
        (0, 1, None, {-1: False, 0: True, 1: False}, True),
        (None, 0, None, {-1: True, 0: False}, True),
        (3, 3, None, {2: False, 3: False}, False),
        (7, 3, None, {3: False, 5: False, 7: False}, False),
        (5, None, 5, {4: False, 5: False}, False),
    ],
)
def test_when_a_route_is_in_force(
    valid_from: int | None, valid_to: int | None, lifetime: int | None, times: dict[int, bool], is_ever_live: bool
) -> None:
    one = route(valid_from=valid_from, valid_to=valid_to, lifetime=lifetime)
    assert {t: one.is_live(t) for t in times} == times
    assert one.is_ever_live is is_ever_live


@parametrize(
    ("address", "kind"),
    [
        (None, None),
        ("", None),
        ("LOCAL", AddressKind.LOCAL),
        (" local/ ", AddressKind.LOCAL),
        ("Transport", AddressKind.TRANSPORT),
        ("TCP://east:4022", AddressKind.NETWORK),
        ("tcp://east", AddressKind.NETWORK),
        ("east", None),
    ],
)
def test_the_kind_of_an_address(address: str | None, kind: AddressKind | None) -> None:
    assert estate.kind_of(address) is kind


@parametrize(
    ("guid", "is_enabled", "read"),
    [
        (None, None, Database("d", None, True)),
        ("00000000-0000-0000-0000-000000000000", True, Database("d", None, True)),
        (B.upper(), True, Database("d", B, True)),
        (f"{{{B}}}", False, Database("d", B, False)),
    ],
)
def test_a_database_of_a_row(guid: str | None, is_enabled: bool | None, read: Database) -> None:
    assert Database.of_row("d", guid, is_enabled) == read


def test_an_instance_of_rows() -> None:
    orders, parts = Database("Orders", B, True), Database("Parts", None, False)
    sql_instance = instance(
        {"Orders": [route("z"), route("y"), route("s", "S"), route("never", valid_from=3, valid_to=3)]},
        [("Parts", "00000000-0000-0000-0000-000000000000", False), ("Orders", B, None)],
        [("Parts", "S"), ("Orders", "S"), ("Gone", "S"), ("Gone", "T")],
        forwards=True,
    )
    assert (sql_instance.name, sql_instance.is_forwarding) == ("hub", True)
    assert sql_instance.databases == {"Orders": orders, "Parts": parts}
    assert sql_instance.brokers == {B: [orders]}
    assert {service: names(some) for service, some in sql_instance.routes["Orders"].items()} == {
        None: ["y", "z"],
        "S": ["s"],
    }
    assert sql_instance.holders == {"S": (orders, parts)}
    assert {database: sql_instance.is_enabled(database) for database in ("Orders", "Parts", "Unlisted")} == {
        "Orders": True,
        "Parts": False,
        "Unlisted": True,
    }


def test_unlisted_rows_are_left_out() -> None:
    listed = estate.list_instances([("hub", None, None)], [("gone", estate.Database.of_row("Orders", B, None))])
    estate_read = estate.with_services_and_routes(listed, [("hub", "Orders", "S")], [("gone", "d", route())])
    assert list(estate_read) == ["hub"]
    assert estate_read["hub"] == estate.SqlInstance("hub", is_forwarding_known=False)


@parametrize(
    ("forwards", "is_forwarding", "is_known"),
    [(True, True, True), (False, False, True), (None, False, False)],
)
def test_forwarding_that_is_not_known_is_off(forwards: bool | None, is_forwarding: bool, is_known: bool) -> None:
    (sql_instance,) = estate.list_instances([("hub", forwards, None)], []).values()
    assert (sql_instance.is_forwarding, sql_instance.is_forwarding_known) == (is_forwarding, is_known)


@parametrize(
    ("database", "service", "names"),
    [("Orders", "S", ["one"]), ("Orders", "s", []), ("Orders", "T", []), ("Parts", "S", []), ("Orders", None, [])],
)
def test_the_routes_that_name_a_service(database: str, service: str | None, names: list[str]) -> None:
    routes = instance({"Orders": [route("one", "S"), route("any")]}).naming(database, service)
    assert [one.name for one in routes] == names


@parametrize(
    ("service", "holders"),
    [(None, []), ("S", ["Orders", "Parts", "orders"]), ("s", []), ("S ", []), ("T", ["Parts"])],
)
def test_the_holders_of_a_service(service: str | None, holders: list[str]) -> None:
    owner = instance(
        databases=[("orders", None, None), ("Parts", C, None), ("Orders", B, None)],
        services=[("orders", "S"), ("Parts", "S"), ("Parts", "T"), ("Orders", "S")],
    )
    assert [one.name for one in owner.holders_of(service)] == holders


def test_the_own_addresses_of_an_instance() -> None:
    loopback = ("tcp://localhost", "tcp://127.0.0.1", "tcp://[::1]", "tcp://.")
    assert estate.own_addresses(None) == frozenset()
    assert estate.own_addresses([None, ""]) == frozenset()
    # Without a port no loopback name is its own.
    assert estate.own_addresses([" TCP://Hub/ "]) == {"tcp://hub"}
    assert estate.own_addresses(["tcp://Hub:4022", "tcp://[::2]:05022"]) == {
        "tcp://hub:4022",
        "tcp://[::2]:05022",
        *(f"{host}:4022" for host in loopback),
        *(f"{host}:05022" for host in loopback),
    }


@parametrize(
    ("service", "named"),
    [
        ("", NameAddress.NONE),
        ("Billing", NameAddress.NONE),
        ("tcp://hub", NameAddress.NONE),
        ("tcp://east:4022/x", NameAddress.ELSEWHERE),
        ("TCP://Hub:4022/x", NameAddress.OWN),
        ("tcp://localhost:4022", NameAddress.OWN),
        ("tcp://localhost:4023", NameAddress.ELSEWHERE),
    ],
)
def test_the_address_that_a_service_name_holds(service: str, named: NameAddress) -> None:
    assert estate.address_of_name(service, instance().own_addresses) is named
