"""Combining the tables' rows with an import's, and the order of imports."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from routing.errors import InputError
from routing.importing import import_order
from routing.importing.covered_rows import Unit
from routing.importing.history import TableChanges, instance_rows, present_changes, route_changes
from routing.importing.spelling import NameSpelling
from tests import estate_rows

Row = dict[str, Any]
MONDAY, TUESDAY, WEDNESDAY = (datetime(2026, 1, day, tzinfo=timezone.utc) for day in (5, 6, 7))
SHOP = ("hub", "Shop")


def route(name: str, address: str = "LOCAL", **columns: Any) -> Row:
    other = dict.fromkeys(("broker_instance", "lifetime", "mirror_address"))
    return estate_rows.route(name, None, address, database_name="Shop", **{**other, **columns})


def version(name: str, address: str, begins: datetime | None, ends: datetime | None = None) -> Row:
    return {**route(name, address), "valid_from": begins, "valid_to": ends}


def put(changes: TableChanges) -> list[tuple[Any, ...]]:
    return [(row["name"], row["address"], row["valid_from"], row["valid_to"]) for row in changes.put]


def test_a_first_import_is_valid_from_the_beginning() -> None:
    changes = route_changes([], [route("a")], {SHOP: MONDAY}, {"hub"})
    assert put(changes) == [("a", "LOCAL", None, None)]
    assert changes.counts == {"added": 1}


def test_a_snapshot_closes_opens_and_keeps_versions_of_routes() -> None:
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


def test_another_import_of_the_same_time_replaces_rows() -> None:
    stored = [version("a", "tcp://a:1", MONDAY), version("b", "LOCAL", MONDAY), version("c", "LOCAL", None)]
    changes = route_changes(stored, [route("a", "tcp://b:1")], {SHOP: MONDAY})
    assert put(changes) == [("a", "tcp://b:1", MONDAY, None), ("c", "LOCAL", None, MONDAY)]
    assert [row["name"] for row in changes.remove] == ["b"]


def test_a_database_that_is_not_covered_stays_unchanged() -> None:
    offline = {**version("a", "LOCAL", None), "database_name": "Offline"}
    assert not route_changes([offline], [], {SHOP: MONDAY})


def test_a_row_that_could_not_be_read_is_not_closed() -> None:
    stored = [version("odd", "LOCAL", None), version("gone", "LOCAL", None)]
    changes = route_changes(stored, [], {SHOP: MONDAY}, is_doubtful=lambda row: row["name"] == "odd")
    assert put(changes) == [("gone", "LOCAL", None, MONDAY)]


def test_a_new_version_ends_at_a_planned_one() -> None:
    stored = [version("a", "tcp://later:1", WEDNESDAY)]
    assert put(route_changes(stored, [route("a")], {SHOP: MONDAY})) == [("a", "LOCAL", MONDAY, WEDNESDAY)]


def test_exported_rows_replace_the_covered_rows() -> None:
    stored = [{"name": "a", "x": 1}, {"name": "b", "x": 1}, {"name": "c", "x": 1}, {"name": "other", "x": 1}]
    wanted = [{"name": "a", "x": 1}, {"name": "b", "x": 2}, {"name": "d", "x": 1}]
    changes = present_changes(stored, wanted, ["name"], lambda row: row["name"] != "other")
    assert changes.put == [{"name": "b", "x": 2}, {"name": "d", "x": 1}]
    assert changes.remove == [{"name": "c", "x": 1}]
    assert changes.counts == {"unchanged": 1, "changed": 1, "added": 1, "removed": 1}


def test_unknown_facts_keep_the_stored_values_of_an_instance() -> None:
    stored = [{"instance_name": "hub", "is_message_forwarding_enabled": True, "addresses": ["tcp://a:1"]}]
    unknown = {"is_message_forwarding_enabled": None, "addresses": None}
    wanted = [{"instance_name": name, **unknown} for name in ("hub", "new")]
    assert instance_rows(stored, wanted) == [stored[0], {"instance_name": "new", **unknown}]


def imported(
    view_or_file: str,
    at: datetime,
    database: str | None = "Shop",
    *,
    instance: str = "hub",
    kind: str | None = None,
    digest: str | None = None,
) -> Row:
    """Return a row of ``imports``. A row of an older release has no kind and digest."""
    return {
        "instance_name": instance,
        "database_name": database,
        "view_or_file": view_or_file,
        "exported_at": at,
        "imported_at": at,
        "kind": kind,
        "content_digest": digest,
    }


@pytest.mark.parametrize(
    ("last", "new"),
    [
        pytest.param([("routes", TUESDAY)], {"view_or_file": "routes"}, id="a-view-after-itself"),
        pytest.param([("change.sql", TUESDAY)], {"view_or_file": "routes"}, id="a-view-after-a-script"),
        pytest.param([("routes", TUESDAY)], {"view_or_file": "change.sql"}, id="a-script-after-a-view"),
        pytest.param([("other.sql", TUESDAY)], {"view_or_file": "change.sql"}, id="a-script-after-another"),
        pytest.param(
            [("s.sql", WEDNESDAY), ("s.sql", MONDAY)],
            {"view_or_file": "routes"},
            id="of-several-the-newest-counts",
        ),
        pytest.param(
            [("databases", TUESDAY, None)],
            {"view_or_file": "change.sql", "database": None},
            id="a-script-of-the-instance",
        ),
        pytest.param([("transmission_queue", TUESDAY)], {"view_or_file": "transmission_queue"}, id="a-queue"),
        pytest.param(
            [("routes", TUESDAY)],
            {"view_or_file": "services", "kind": "SCRIPT"},
            id="a-script-called-like-another-view",
        ),
    ],
)
def test_older_exports_than_the_last_import_are_refused(last: list[Any], new: dict[str, Any]) -> None:
    stored = [imported(*values) for values in last]
    with pytest.raises(InputError, match="older than an earlier import, 1 part: ") as caught:
        import_order.refuse_older(stored, [imported(at=MONDAY, **new)])
    assert caught.value.exit_code == 2
    import_order.refuse_older(stored, [imported(at=WEDNESDAY, **new)])


@pytest.mark.parametrize(
    ("last", "new"),
    [
        pytest.param(imported("services", TUESDAY), imported("routes", MONDAY), id="another-view"),
        pytest.param(imported("routes", TUESDAY), imported("routes", MONDAY, "Other"), id="of-another-database"),
        pytest.param(
            imported("routes", TUESDAY), imported("routes", MONDAY, instance="spoke"), id="of-another-instance"
        ),
        pytest.param(
            imported("change.sql", TUESDAY), imported("conversation_endpoints", MONDAY), id="a-view-of-no-script"
        ),
        pytest.param(
            imported("routes", TUESDAY, None, kind="SCRIPT"),
            imported("routes", MONDAY, None, kind="VIEW"),
            id="a-script-of-the-instance-called-routes",
        ),
        pytest.param(
            imported("databases", TUESDAY, kind="VIEW"),
            imported("databases", MONDAY, kind="SCRIPT"),
            id="a-script-of-a-database-called-databases",
        ),
    ],
)
def test_exports_of_other_objects_are_never_refused_as_older(last: Row, new: Row) -> None:
    import_order.refuse_older([last], [new])


def digest(view: str, unit: Unit) -> str:
    return f"{view} of {unit[1]}"


def test_only_the_last_import_of_a_view_is_recorded() -> None:
    imports = [
        imported("routes", MONDAY, kind="VIEW", digest="routes of Shop"),
        imported("services", TUESDAY, kind="VIEW", digest="services of Shop"),
        imported("conversation_endpoints", TUESDAY, kind="VIEW", digest="something else"),
        imported("transmission_queue", TUESDAY),
        imported("transmission_queue", MONDAY, "Other"),
        imported("a.sql", MONDAY, kind="SCRIPT", digest="a"),
    ]
    names = ("routes", "services", "conversation_endpoints", "transmission_queue")
    units: dict[str, dict[Unit, datetime]] = {
        **{name: {SHOP: TUESDAY} for name in names},
        "databases": {("hub", None): TUESDAY},
    }
    rows = import_order.rows_of_views(units, WEDNESDAY, digest)
    assert {row["imported_at"] for row in rows} == {WEDNESDAY}
    changes = import_order.imports_changes(imports, rows)
    put = [(row["view_or_file"], row["exported_at"], row["kind"], row["content_digest"]) for row in changes.put]
    assert put == [
        ("routes", TUESDAY, "VIEW", "routes of Shop"),
        ("conversation_endpoints", TUESDAY, "VIEW", "conversation_endpoints of Shop"),
        ("databases", TUESDAY, "VIEW", "databases of None"),
    ]
    assert changes.remove == [imports[0], imports[2]]


def test_every_import_of_a_script_is_recorded() -> None:
    imports = [imported("a.sql", MONDAY, kind="SCRIPT", digest="a"), imported("a.sql", MONDAY)]
    rows = import_order.rows_of_script("a.sql", [SHOP, ("hub", None)], TUESDAY, WEDNESDAY, "b")
    changes = import_order.imports_changes(imports, rows)
    assert (changes.put, changes.remove) == (rows, [])
    assert rows == [
        {**imported("a.sql", TUESDAY, name, kind="SCRIPT", digest="b"), "imported_at": WEDNESDAY}
        for name in (None, "Shop")
    ]


@pytest.mark.parametrize(
    ("known", "is_known"),
    [
        pytest.param(imported("a.sql", MONDAY, kind="SCRIPT", digest="a"), True, id="the-same"),
        pytest.param(imported("a.sql", MONDAY), True, id="of-an-older-release-by-name-and-time"),
        pytest.param(imported("a.sql", MONDAY, kind="SCRIPT", digest="b"), False, id="another-content"),
        pytest.param(imported("a.sql", TUESDAY, kind="SCRIPT", digest="a"), False, id="another-time"),
        pytest.param(imported("b.sql", MONDAY, kind="SCRIPT", digest="a"), False, id="another-name"),
        pytest.param(imported("a.sql", MONDAY, "B", kind="SCRIPT", digest="a"), False, id="another-database"),
    ],
)
def test_scripts_imported_before_are_recognized(known: Row, is_known: bool) -> None:
    assert import_order.is_known([known], [imported("a.sql", MONDAY, kind="SCRIPT", digest="a")]) is is_known


def test_a_script_may_have_the_name_of_a_view() -> None:
    for import_row in (imported("routes", MONDAY), imported("routes", MONDAY, kind="VIEW", digest="a")):
        assert not import_order.is_known([import_row], [imported("routes", MONDAY, kind="SCRIPT", digest="a")])


def test_instances_without_imported_routes_are_found() -> None:
    imports = [imported("services", MONDAY), {**imported("a.sql", MONDAY), "instance_name": "spoke"}]
    assert import_order.find_first(imports, ["hub", "spoke"], []) == ({"hub"}, set())


@pytest.mark.parametrize(
    ("imports", "with_routes", "expected"),
    [
        pytest.param([], [], ({"hub"}, set()), id="nothing is known"),
        pytest.param([], ["hub"], (set(), {"hub"}), id="routes whose imports are lost"),
        pytest.param([], ["spoke"], ({"hub"}, set()), id="another instance's routes"),
        pytest.param([imported("routes", MONDAY)], ["hub"], (set(), set()), id="routes were imported"),
        pytest.param(
            [imported("databases", MONDAY)], ["hub"], (set(), {"hub"}), id="only databases were imported"
        ),
        pytest.param(
            [{**imported("a.sql", MONDAY), "database_name": None}],
            ["hub"],
            ({"hub"}, set()),
            id="a script may have made them",
        ),
        pytest.param([imported("a.sql", MONDAY)], ["hub"], (set(), set()), id="a script of routes"),
    ],
)
def test_the_first_import_of_routes(
    imports: list[dict[str, Any]], with_routes: list[str], expected: tuple[set[str], set[str]]
) -> None:
    assert import_order.find_first(imports, ["hub"], with_routes) == expected


def test_names_are_spelled_as_in_the_tables() -> None:
    names = NameSpelling(["Hub"], [("Hub", "Shop"), ("Hub", "SHOP"), ("Hub", "Stock")])
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
