"""What stands in the tables and what an import says, put together; and the order of imports."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from routing.errors import InputError
from routing.importing import order
from routing.importing.covered import Unit
from routing.importing.history import Changes, instance_rows, present_changes, route_changes
from routing.importing.spelling import Spelling

Row = dict[str, Any]
MONDAY, TUESDAY, WEDNESDAY = (datetime(2026, 1, day, tzinfo=timezone.utc) for day in (5, 6, 7))
SHOP = ("hub", "Shop")


def route(name: str, address: str = "LOCAL", **columns: Any) -> Row:
    row = {"instance_name": "hub", "database_name": "Shop", "name": name, "address": address}
    other = dict.fromkeys(("remote_service_name", "broker_instance", "lifetime", "mirror_address"))
    return {**row, **other, **columns}


def version(name: str, address: str, begins: datetime | None, ends: datetime | None = None) -> Row:
    return {**route(name, address), "valid_from": begins, "valid_to": ends}


def put(changes: Changes) -> list[tuple[Any, ...]]:
    return [(row["name"], row["address"], row["valid_from"], row["valid_to"]) for row in changes.put]


def test_a_first_import_stands_since_ever() -> None:
    changes = route_changes([], [route("a")], {SHOP: MONDAY}, {"hub"})
    assert put(changes) == [("a", "LOCAL", None, None)]
    assert changes.counts == {"added": 1}


def test_a_snapshot_closes_opens_and_leaves_alone() -> None:
    stored = [
        version("same", "LOCAL", None),
        version("changed", "tcp://a:1", None),
        version("gone", "LOCAL", MONDAY),
        version("long gone", "LOCAL", None, MONDAY),
    ]
    wanted = [route("same"), route("changed", "tcp://b:1"), route("new")]
    changes = route_changes(stored, wanted, {SHOP: TUESDAY})
    assert put(changes) == [
        ("changed", "tcp://a:1", None, TUESDAY),
        ("changed", "tcp://b:1", TUESDAY, None),
        ("new", "LOCAL", TUESDAY, None),
        ("gone", "LOCAL", MONDAY, TUESDAY),
    ]
    assert changes.remove == []
    assert changes.counts == {"unchanged": 1, "changed": 1, "added": 1, "closed": 1}


def test_a_route_that_comes_back_is_a_new_version() -> None:
    stored = [version("a", "LOCAL", None, MONDAY)]
    assert put(route_changes(stored, [route("a")], {SHOP: TUESDAY}, {"hub"})) == [("a", "LOCAL", TUESDAY, None)]


def test_the_same_import_twice_changes_nothing() -> None:
    stored = [version("a", "LOCAL", MONDAY), version("b", "LOCAL", None, MONDAY)]
    changes = route_changes(stored, [route("a", remote_service_name="")], {SHOP: MONDAY})
    assert not changes
    assert changes.counts == {"unchanged": 1}


def test_what_the_same_moment_said_otherwise_is_replaced() -> None:
    stored = [version("a", "tcp://a:1", MONDAY), version("b", "LOCAL", MONDAY), version("c", "LOCAL", None)]
    changes = route_changes(stored, [route("a", "tcp://b:1")], {SHOP: MONDAY})
    assert put(changes) == [("a", "tcp://b:1", MONDAY, None), ("c", "LOCAL", None, MONDAY)]
    assert [row["name"] for row in changes.remove] == ["b"]


def test_a_database_that_is_not_covered_is_left_alone() -> None:
    offline = {**version("a", "LOCAL", None), "database_name": "Offline"}
    assert not route_changes([offline], [], {SHOP: MONDAY})


def test_a_row_that_could_not_be_read_is_not_closed() -> None:
    stored = [version("odd", "LOCAL", None), version("gone", "LOCAL", None)]
    changes = route_changes(stored, [], {SHOP: MONDAY}, is_doubtful=lambda row: row["name"] == "odd")
    assert put(changes) == [("gone", "LOCAL", None, MONDAY)]


def test_a_version_that_is_to_come_ends_the_new_one() -> None:
    stored = [version("a", "tcp://later:1", WEDNESDAY)]
    assert put(route_changes(stored, [route("a")], {SHOP: MONDAY})) == [("a", "LOCAL", MONDAY, WEDNESDAY)]


def test_what_is_present_replaces_the_covered_rows() -> None:
    stored = [{"name": "a", "x": 1}, {"name": "b", "x": 1}, {"name": "c", "x": 1}, {"name": "other", "x": 1}]
    wanted = [{"name": "a", "x": 1}, {"name": "b", "x": 2}, {"name": "d", "x": 1}]
    changes = present_changes(stored, wanted, ["name"], lambda row: row["name"] != "other")
    assert changes.put == [{"name": "b", "x": 2}, {"name": "d", "x": 1}]
    assert changes.remove == [{"name": "c", "x": 1}]
    assert changes.counts == {"unchanged": 1, "changed": 1, "added": 1, "removed": 1}


def test_what_is_not_known_of_an_instance_stays() -> None:
    stored = [{"instance_name": "hub", "is_message_forwarding_enabled": True, "addresses": ["tcp://a:1"]}]
    unknown = {"is_message_forwarding_enabled": None, "addresses": None}
    wanted = [{"instance_name": name, **unknown} for name in ("hub", "new")]
    assert instance_rows(stored, wanted) == [stored[0], {"instance_name": "new", **unknown}]


def imported(view_or_file: str, at: datetime, database: str | None = "Shop") -> Row:
    return {
        "instance_name": "hub",
        "database_name": database,
        "view_or_file": view_or_file,
        "exported_at": at,
        "imported_at": at,
    }


@pytest.mark.parametrize(
    ("last", "name", "unit"),
    [
        (imported("routes", TUESDAY), "routes", SHOP),
        (imported("change.sql", TUESDAY), "routes", SHOP),
        (imported("routes", TUESDAY), "change.sql", SHOP),
        (imported("other.sql", TUESDAY), "change.sql", SHOP),
        (imported("databases", TUESDAY, None), "change.sql", ("hub", None)),
        (imported("transmission_queue", TUESDAY), "transmission_queue", SHOP),
    ],
)
def test_what_is_older_than_the_last_import_is_refused(last: Row, name: str, unit: tuple[str, str | None]) -> None:
    with pytest.raises(InputError, match="older than what was imported before, 1 part: ") as caught:
        order.refuse_older([last], {name: {unit: MONDAY}})
    assert caught.value.exit_code == 2
    order.refuse_older([last], {name: {unit: TUESDAY}})


@pytest.mark.parametrize(
    ("last", "name", "unit"),
    [
        (imported("services", TUESDAY), "routes", SHOP),
        (imported("routes", TUESDAY), "routes", ("hub", "Other")),
        (imported("routes", TUESDAY), "routes", ("spoke", "Shop")),
        (imported("change.sql", TUESDAY), "conversation_endpoints", SHOP),
    ],
)
def test_what_speaks_of_something_else_is_not_older(last: Row, name: str, unit: tuple[str, str | None]) -> None:
    order.refuse_older([last], {name: {unit: MONDAY}})


def test_the_last_import_of_each_is_recorded() -> None:
    known = [imported("routes", MONDAY), imported("services", TUESDAY)]
    units: dict[str, dict[Unit, datetime]] = {
        "routes": {SHOP: TUESDAY},
        "services": {SHOP: TUESDAY},
        "databases": {("hub", None): TUESDAY},
    }
    rows = order.newer_rows(known, units, WEDNESDAY)
    assert [(row["view_or_file"], row["database_name"], row["exported_at"]) for row in rows] == [
        ("routes", "Shop", TUESDAY),
        ("databases", None, TUESDAY),
    ]
    assert {row["imported_at"] for row in rows} == {WEDNESDAY}


def test_a_script_is_known_by_its_name_and_time() -> None:
    known = [imported("a.sql", MONDAY)]
    assert order.is_known(known, "a.sql", {SHOP: MONDAY})
    assert not order.is_known(known, "a.sql", {SHOP: TUESDAY})
    assert not order.is_known(known, "b.sql", {SHOP: MONDAY})


def test_whose_routes_were_never_imported() -> None:
    known = [imported("services", MONDAY), {**imported("a.sql", MONDAY), "instance_name": "spoke"}]
    assert order.find_without_routes(known, ["hub", "spoke"]) == {"hub"}


def test_spelling() -> None:
    names = Spelling(["Hub"], [("Hub", "Shop"), ("Hub", "SHOP"), ("Hub", "Stock")])
    assert names.instance("HUB") == "Hub"
    assert names.instance("Spoke") == "Spoke"
    assert names.instance("spoke") == "Spoke"
    assert [names.database("hub", name) for name in ("SHOP", "Shop", "shop", "STOCK", "new", "NEW")] == [
        "SHOP",
        "Shop",
        "Shop",
        "Stock",
        "new",
        "new",
    ]
