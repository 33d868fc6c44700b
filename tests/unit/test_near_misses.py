"""Routes and services that almost match a message: their differences and their order."""

from __future__ import annotations

import time

import pytest

from routing.cases.near_misses import NearMisses
from routing.rules.estate import Database, EstateRoute, SqlInstance, list_instances, with_services_and_routes
from tests.unit.rules.made import route

B, C, D = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "bcd")
NOW = 100
HUB, SHOP = "hub", "shop"
DATABASES = [
    (HUB, "Orders", B, True),
    (HUB, "Stock", C, True),
    (HUB, "msdb", None, True),
    (SHOP, "Parts", D, True),
]


def estate(
    routes: list[tuple[str, EstateRoute]], services: list[tuple[str, str, str]], off: str | None = None
) -> dict[str, SqlInstance]:
    databases = [(instance, Database.of_row(name, broker, name != off)) for instance, name, broker, _ in DATABASES]
    instances = list_instances([(HUB, False, []), (SHOP, False, [])], databases)
    return with_services_and_routes(instances, services, [(HUB, database, one) for database, one in routes])


# A route of the scope; the id that the message for service S is bound to; what the route differs in.
ROUTES = [
    (route("r", "S"), None, None),
    (route("r", "S", C), None, None),
    (route("r", "S", C), C, None),
    (route("r", "S"), C, None),
    (route("r", "T"), None, None),
    (route("r", None), None, None),
    (route("r", "s"), None, ("NAME_CASE",)),
    (route("r", " S"), None, ("NAME_BLANKS",)),
    (route("r", "S/"), None, ("NAME_SLASH",)),
    (route("r", "s /"), None, ("NAME_CASE", "NAME_BLANKS", "NAME_SLASH")),
    (route("r", "S", C), D, ("OTHER_BROKER_INSTANCE",)),
    (route("r", "s", C), D, ("NAME_CASE", "OTHER_BROKER_INSTANCE")),
    (route("r", "s", C), None, ("NAME_CASE",)),
    (route("r", "S", lifetime=NOW), None, ("EXPIRED",)),
    (route("r", "S", lifetime=NOW + 1), None, None),
    (route("r", "S", valid_from=NOW + 1), None, ("NOT_YET_VALID",)),
    (route("r", "S", valid_from=NOW), None, None),
    (route("r", "S", C, lifetime=NOW), D, ("OTHER_BROKER_INSTANCE", "EXPIRED")),
    (route("r", "s/", lifetime=NOW), None, ("NAME_CASE", "NAME_SLASH", "EXPIRED")),
]
# Who holds which service; the id that the message for S is bound to; whose broker is off; what is near.
SERVICES = [
    ([(HUB, "Stock", "S")], None, None, []),
    ([(HUB, "Stock", "S")], C, None, []),
    ([(HUB, "Stock", "T")], None, None, []),
    ([(HUB, "Stock", "s")], None, None, [(HUB, "Stock", "s", ("NAME_CASE",))]),
    ([(SHOP, "Parts", "S/")], None, None, [(SHOP, "Parts", "S/", ("NAME_SLASH",))]),
    ([(SHOP, "Parts", "s")], C, None, [(SHOP, "Parts", "s", ("NAME_CASE", "OTHER_BROKER_INSTANCE"))]),
    ([(HUB, "Stock", "S")], B, None, [(HUB, "Stock", "S", ("OTHER_BROKER_INSTANCE",))]),
    ([(SHOP, "Parts", "S")], B, None, [(SHOP, "Parts", "S", ("OTHER_BROKER_INSTANCE",))]),
    # The id is another holder's: nothing is old.
    ([(HUB, "Stock", "S"), (SHOP, "Parts", "S")], D, None, []),
    ([(HUB, "Stock", "S")], None, "Stock", [(HUB, "Stock", "S", ("BROKER_DISABLED",))]),
    ([(HUB, "Stock", "S")], C, "Stock", [(HUB, "Stock", "S", ("BROKER_DISABLED",))]),
    ([(HUB, "Stock", "S")], B, "Stock", [(HUB, "Stock", "S", ("OTHER_BROKER_INSTANCE",))]),
    # Whether a broker elsewhere is on, the messages learn there.
    ([(SHOP, "Parts", "S")], None, "Parts", []),
]


@pytest.mark.parametrize(("one", "broker", "expected"), ROUTES)
def test_a_near_route_has_its_differences(
    one: EstateRoute, broker: str | None, expected: tuple[str, ...] | None
) -> None:
    misses = NearMisses(estate([("Orders", one)], [])).find(HUB, "Orders", "S", broker, NOW)
    assert [miss.differences for miss in misses] == ([] if expected is None else [expected])
    for miss in misses:
        assert (miss.object_type, miss.instance, miss.database, miss.name) == ("route", HUB, "Orders", "r")
        assert (miss.service, miss.broker) == (one.service, one.broker)


@pytest.mark.parametrize(("services", "broker", "off", "expected"), SERVICES)
def test_a_near_service_has_its_differences(
    services: list[tuple[str, str, str]],
    broker: str | None,
    off: str | None,
    expected: list[tuple[str, str, str, tuple[str, ...]]],
) -> None:
    misses = NearMisses(estate([], services, off)).find(HUB, "Orders", "S", broker, NOW)
    assert [(miss.instance, miss.database, miss.service, miss.differences) for miss in misses] == expected
    ids = {name: each for _, name, each, _ in DATABASES}
    for miss in misses:
        assert (miss.object_type, miss.name, miss.broker) == ("service", miss.service, ids[miss.database])


def test_routes_come_first_then_services_of_the_own_instance() -> None:
    routes = [
        ("Orders", route("c", "s/")),
        ("Orders", route("b", "s")),
        ("Orders", route("a", "S", lifetime=NOW)),
        ("Stock", route("d", "s")),
        ("msdb", route("e", "s")),
    ]
    services = [(SHOP, "Parts", "s"), (HUB, "Stock", "s/"), (HUB, "msdb", "s")]
    misses = NearMisses(estate(routes, services)).find(HUB, "Orders", "S", None, NOW)
    assert [(miss.object_type, miss.database, miss.name) for miss in misses] == [
        ("route", "Orders", "a"),
        ("route", "Orders", "b"),
        ("route", "Orders", "c"),
        ("service", "msdb", "s"),
        ("service", "Stock", "s/"),
        ("service", "Parts", "s"),
    ]


def test_only_the_scope_is_searched() -> None:
    near = NearMisses(estate([("msdb", route("r", "s"))], []))
    assert near.find(HUB, "Orders", "S", None, NOW) == ()
    assert [miss.database for miss in near.find(HUB, "msdb", "S", None, NOW)] == ["msdb"]
    assert near.find("nowhere", "Orders", "S", None, NOW) == ()


def test_an_old_version_of_a_route_is_not_a_near_miss() -> None:
    versions = [
        ("Orders", route("r", "S", valid_to=NOW)),
        ("Orders", route("r", "T", valid_from=NOW)),
        ("Orders", route("gone", "S", valid_to=NOW)),
        ("Orders", route("gone", "S", valid_from=1, valid_to=50)),
    ]
    misses = NearMisses(estate(versions, [])).find(HUB, "Orders", "S", None, NOW)
    assert [(miss.name, miss.differences) for miss in misses] == [("gone", ("EXPIRED",))]


def test_only_near_names_are_compared() -> None:
    routes = [("Orders", route(f"r{number}", f"S{number}")) for number in range(20_000)]
    near = NearMisses(estate(routes, [(HUB, "Stock", f"S{number}") for number in range(20_000)]))
    near.find(HUB, "Orders", "s", None, NOW)
    started = time.process_time()
    for number in range(1_000):
        assert len(near.find(HUB, "Orders", f"s{number}", None, NOW)) == 2
    assert time.process_time() - started < 2
