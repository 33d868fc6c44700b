"""Scripts applied to an instance's rows: which rows of the tables change, and as of when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest

from routing.importing.covered_rows import ImportResult
from routing.importing.history import TableChanges, apply_changes
from routing.importing.script_rows import TimedScript, apply_all, apply_in_turn, changes_of, state_of
from routing.importing.spelling import NameSpelling
from routing.importing.tsql.script_reader import ReadScript, apply_script
from tests import estate_rows

Row = dict[str, Any]
ReadText = Callable[..., ReadScript]
AT = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
LATER = datetime(2026, 1, 6, 12, tzinfo=timezone.utc)
LATEST = datetime(2026, 1, 7, 12, tzinfo=timezone.utc)
GUID = "4c8c5a5c-1d3e-4b7a-9d5e-2f0a6b1c7d88"
ZEROS = "00000000-0000-0000-0000-000000000000"


def route(name: str, database: str = "Shop", ends: datetime | None = None) -> Row:
    empty = dict.fromkeys(("broker_instance", "lifetime", "mirror_address", "valid_from"))
    return estate_rows.route(name, None, "LOCAL", database_name=database, valid_to=ends, **empty)


def own() -> dict[str, list[Row]]:
    database_columns = {"database_id": 5, "is_broker_enabled": None}
    return {
        "routes": [route("a"), route("ended", ends=AT), route("b", "Stock")],
        "services": [estate_rows.service("Stock", "//stock")],
        "databases": [estate_rows.database(name, GUID, **database_columns) for name in ("Shop", "Stock")],
        "instances": [estate_rows.instance("hub", "tcp://hub:1", is_message_forwarding_enabled=True)],
    }


@pytest.fixture
def change(read: ReadText) -> Callable[[str], dict[str, TableChanges]]:
    """Applies a script in database shop, scripted a day later than the rows."""

    def changed(text: str) -> dict[str, TableChanges]:
        rows = own()
        script = read(text, database="shop", scripted_at=LATER)
        before = state_of(rows, LATER)
        after = apply_script(before, script).state
        return changes_of(rows, before, after, "hub", {("hub", "Shop"): AT, ("hub", None): LATER}, set())

    return changed


Change = Callable[[str], dict[str, TableChanges]]


def versions(changes: TableChanges) -> list[tuple[Any, ...]]:
    return [(r["database_name"], r["name"], r["valid_from"], r["valid_to"]) for r in changes.put]


def test_an_empty_script_changes_nothing(change: Change) -> None:
    assert not any(change("").values())


def test_a_route_can_be_created_after_one_of_that_name_ended(change: Change) -> None:
    changes = change("CREATE ROUTE ended WITH ADDRESS = 'LOCAL'")
    assert versions(changes["routes"]) == [("Shop", "ended", AT, None)]


def test_a_dropped_database_removes_its_routes_and_services(change: Change) -> None:
    changes = change("DROP DATABASE Stock")
    assert versions(changes["routes"]) == [("Stock", "b", None, LATER)]
    assert [row["name"] for row in changes["databases"].remove] == ["Stock"]
    assert [row["name"] for row in changes["services"].remove] == ["//stock"]


def test_a_renamed_database_keeps_its_routes_and_services(change: Change) -> None:
    changes = change("ALTER DATABASE Stock MODIFY NAME = Store")
    assert versions(changes["routes"]) == [("Store", "b", LATER, None), ("Stock", "b", None, LATER)]
    (row,) = changes["databases"].put
    assert (row["name"], row["database_id"], row["service_broker_guid"]) == ("Store", 5, GUID)
    assert [row["name"] for row in changes["databases"].remove] == ["Stock"]
    assert [row["database_name"] for row in changes["services"].put] == ["Store"]
    assert [row["database_name"] for row in changes["services"].remove] == ["Stock"]


def test_a_new_broker_id_is_unknown(change: Change) -> None:
    (row,) = change("ALTER DATABASE shop SET NEW_BROKER")["databases"].put
    assert (row["name"], row["database_id"], row["service_broker_guid"]) == ("Shop", 5, ZEROS)
    assert row["is_broker_enabled"] is True


def test_a_disabled_broker_keeps_its_id(change: Change) -> None:
    (row,) = change("ALTER DATABASE shop SET DISABLE_BROKER")["databases"].put
    assert (row["service_broker_guid"], row["is_broker_enabled"]) == (GUID, False)


def test_the_endpoint_forwards_and_the_addresses_stay(change: Change) -> None:
    text = "ALTER ENDPOINT e FOR SERVICE_BROKER (MESSAGE_FORWARDING = DISABLED)"
    (row,) = change(text)["instances"].put
    assert (row["is_message_forwarding_enabled"], row["addresses"]) == (False, ["tcp://hub:1"])


History = set[tuple[str, str, str, datetime | None, datetime | None]]
A, B = ("Shop", "a", "LOCAL", None), ("Stock", "b", "LOCAL", None, None)
CREATE, ALTER = "CREATE ROUTE {} WITH ADDRESS = 'LOCAL'", "ALTER ROUTE {} WITH ADDRESS = 'TRANSPORT'"


def apply(
    read: ReadText, *scripts: tuple[str, datetime], snapshot: bool = False, is_first: bool = False
) -> tuple[ImportResult, dict[str, TableChanges], History]:
    """Return the changes of scripts in database shop with their times, and the resulting history of routes."""
    done, rows = ImportResult(is_dry_run=False), own()
    spelling = NameSpelling([], [("hub", "Shop"), ("hub", "Stock")])
    timed = [
        TimedScript(read(text, database="shop", scripted_at=at, file=f"{place}/f.sql"), at, {("hub", "Shop")})
        for place, (text, at) in enumerate(scripts)
    ]
    changes = apply_in_turn(done, rows, timed, spelling, "hub", snapshot=snapshot, is_first=is_first, now=LATER)
    columns = ("database_name", "name", "address", "valid_from", "valid_to")
    after = apply_changes("routes", rows["routes"], changes["routes"])
    history = {tuple(row[name] for name in columns) for row in after if row["name"] != "ended"}
    return done, changes, history


@pytest.mark.parametrize(
    ("scripts", "options", "history", "counts"),
    [
        pytest.param([], {}, {(*A, None), B}, {}, id="none"),
        pytest.param(
            [(CREATE.format("c"), AT), (ALTER.format("c"), LATER)],
            {},
            {(*A, None), B, ("Shop", "c", "LOCAL", AT, LATER), ("Shop", "c", "TRANSPORT", LATER, None)},
            {"added": 1, "changed": 1, "unchanged": 1},
            id="each-of-its-own-time",
        ),
        pytest.param(
            [(CREATE.format("c"), AT), (ALTER.format("c"), AT)],
            {},
            {(*A, None), B, ("Shop", "c", "TRANSPORT", AT, None)},
            {"added": 1, "unchanged": 1},
            id="of-one-time-the-last-counts",
        ),
        pytest.param(
            [(CREATE.format("c"), AT), ("DROP ROUTE c", LATER), (CREATE.format("c"), LATEST)],
            {},
            {(*A, None), B, ("Shop", "c", "LOCAL", AT, LATER), ("Shop", "c", "LOCAL", LATEST, None)},
            {"added": 2, "unchanged": 1},
            id="there-and-gone-and-there-again",
        ),
        pytest.param(
            [("DROP ROUTE a", AT), (CREATE.format("a"), LATER)],
            {},
            {(*A, AT), B, ("Shop", "a", "LOCAL", LATER, None)},
            {"closed": 1, "added": 1},
            id="gone-and-there-again",
        ),
        pytest.param(
            [("DROP DATABASE Stock", AT), (CREATE.format("c"), LATER)],
            {},
            {(*A, None), (*B[:4], AT), ("Shop", "c", "LOCAL", LATER, None)},
            {"closed": 1, "added": 1, "unchanged": 1},
            id="a-database-is-dropped-at-the-time-of-its-script",
        ),
        pytest.param(
            [(CREATE.format("c"), AT), (CREATE.format("d"), AT), (CREATE.format("e"), LATER)],
            {"is_first": True},
            {
                *((*A, None), B, ("Shop", "c", "LOCAL", None, None), ("Shop", "d", "LOCAL", None, None)),
                ("Shop", "e", "LOCAL", LATER, None),
            },
            {"added": 3, "unchanged": 1},
            id="the-first-time-stands-since-ever",
        ),
        pytest.param(
            [(CREATE.format("c"), AT)],
            {"snapshot": True},
            {(*A, AT), B, ("Shop", "c", "LOCAL", AT, None)},
            {"added": 1, "closed": 1},
            id="a-snapshot-closes-the-rest",
        ),
        pytest.param(
            [(CREATE.format("a"), AT), (CREATE.format("c"), LATER)],
            {"snapshot": True},
            {(*A, None), B, ("Shop", "c", "LOCAL", LATER, None)},
            {"added": 1, "unchanged": 1},
            id="scripts-of-a-snapshot-say-all-together",
        ),
        pytest.param(
            [(CREATE.format("c"), AT), (CREATE.format("a"), LATER)],
            {"snapshot": True},
            {(*A, None), B, ("Shop", "c", "LOCAL", AT, None)},
            {"added": 1, "unchanged": 1},
            id="what-a-later-script-of-a-snapshot-says-was-never-gone",
        ),
        pytest.param(
            [(CREATE.format("c"), AT), (CREATE.format("d"), LATER)],
            {"snapshot": True},
            {(*A, LATER), B, ("Shop", "c", "LOCAL", AT, None), ("Shop", "d", "LOCAL", LATER, None)},
            {"added": 2, "closed": 1},
            id="the-rest-is-closed-by-the-last-that-speaks-of-the-database",
        ),
        pytest.param(
            [(CREATE.format("c"), AT), ("USE Stock; " + CREATE.format("b"), LATER)],
            {"snapshot": True},
            {(*A, AT), B, ("Shop", "c", "LOCAL", AT, None)},
            {"added": 1, "closed": 1},
            id="each-of-its-own-database",
        ),
    ],
)
def test_scripts_are_applied_in_turn(
    read: ReadText,
    scripts: list[tuple[str, datetime]],
    options: dict[str, bool],
    history: History,
    counts: dict[str, int],
) -> None:
    done, changes, final_state = apply(read, *scripts, **options)
    assert (final_state, done.rejected) == (history, [])
    assert dict(changes["routes"].counts) == counts


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_snapshot_needs_no_existing_routes(read: ReadText, snapshot: bool) -> None:
    text = "DROP ROUTE a\nCREATE ROUTE c WITH ADDRESS = 'LOCAL'\nDROP ROUTE ended"
    done, _, history = apply(read, (text, LATER), snapshot=snapshot)
    assert history == {(*A, LATER), B, ("Shop", "c", "LOCAL", LATER, None)}
    assert done.rows_read == {"f.sql": (3, 0 if snapshot else 1, 0)}
    assert len(done.rejected) == (0 if snapshot else 1)


def test_scripts_of_one_name_are_counted_apart(read: ReadText) -> None:
    done, _, _ = apply(read, ("DROP ROUTE a", AT), ("DROP ROUTE none", LATER))
    assert done.rows_read == {"f.sql": (1, 0, 0), "1/f.sql": (1, 1, 0)}


def test_a_script_knows_the_objects_of_earlier_ones(read: ReadText) -> None:
    """The endpoint's name too, which no table holds."""
    done, changes, _ = apply(
        read,
        ("ALTER ENDPOINT e FOR SERVICE_BROKER (MESSAGE_FORWARDING = DISABLED)", AT),
        ("CREATE DATABASE New", AT),
        ("DROP ENDPOINT e\nALTER DATABASE New SET DISABLE_BROKER", LATER),
    )
    assert done.rejected == []
    assert [(row["name"], row["is_broker_enabled"]) for row in changes["databases"].put] == [("New", False)]
    assert changes["databases"].counts == {"added": 1, "unchanged": 2}


def test_rejections_and_notes_come_in_line_order(read: ReadText) -> None:
    """Problems found while reading and while applying are merged."""
    rows, done = own(), ImportResult(is_dry_run=True)
    script = read(
        "DROP ROUTE none DECLARE @x char, @y char\nEXEC(@x)\n"
        "ALTER DATABASE shop SET OFFLINE\nDROP ROUTE neither\nEXEC(@y)\n"
        "IF @x = 1 RETURN\nDROP ROUTE a",
        database="shop",
    )
    apply_all(done, state_of(rows, LATER), [script])
    assert [text.split(":")[0] for text in done.rejected] == [f"f.sql, line {line}" for line in (1, 2, 4, 5)]
    assert [text.split(":")[0] for text in done.notes] == [f"f.sql, line {line}" for line in (3, 7)]
    assert done.rows_read == {"f.sql": (6, 4, 0)}


def test_a_script_about_something_else_gets_a_note(read: ReadText) -> None:
    done = ImportResult(is_dry_run=True)
    script = read("CREATE TABLE t (a int)\nINSERT t VALUES (1)")
    apply_all(done, state_of(own(), LATER), [script])
    assert done.notes == ["f.sql: none of its 2 statements is about routing"]
    assert done.rows_read == {"f.sql": (0, 0, 0)}
