"""Scripts applied to an instance's rows: which rows of the tables change, and as of when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest

from routing.importing.history import Changes
from routing.importing.result import Imported
from routing.importing.scripted import apply_all, changes_of, state_of
from routing.importing.spelling import Spelling
from routing.importing.tsql import Script, apply_script

Row = dict[str, Any]
ReadText = Callable[..., Script]
AT = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
LATER = datetime(2026, 1, 6, 12, tzinfo=timezone.utc)
GUID = "4c8c5a5c-1d3e-4b7a-9d5e-2f0a6b1c7d88"
ZEROS = "00000000-0000-0000-0000-000000000000"


def route(name: str, database: str = "Shop", ends: datetime | None = None) -> Row:
    empty = dict.fromkeys(("remote_service_name", "broker_instance", "lifetime", "mirror_address", "valid_from"))
    row = {"instance_name": "hub", "database_name": database, "name": name, "address": "LOCAL"}
    return {**row, **empty, "valid_to": ends}


def own() -> dict[str, list[Row]]:
    database = {"instance_name": "hub", "database_id": 5, "service_broker_guid": GUID, "is_broker_enabled": None}
    return {
        "routes": [route("a"), route("ended", ends=AT), route("b", "Stock")],
        "services": [{"instance_name": "hub", "database_name": "Stock", "name": "//stock"}],
        "databases": [{**database, "name": "Shop"}, {**database, "name": "Stock"}],
        "instances": [
            {"instance_name": "hub", "is_message_forwarding_enabled": True, "addresses": ["tcp://hub:1"]}
        ],
    }


@pytest.fixture
def change(read: ReadText) -> Callable[[str], dict[str, Changes]]:
    """Applies a script in database shop, scripted a day later than the rows."""

    def changed(text: str) -> dict[str, Changes]:
        rows = own()
        script = read(text, database="shop", scripted_at=LATER)
        before = state_of(rows, LATER)
        after = apply_script(before, script).state
        return changes_of(rows, before, after, "hub", {("hub", "Shop"): AT, ("hub", None): LATER}, set())

    return changed


Change = Callable[[str], dict[str, Changes]]


def versions(changes: Changes) -> list[tuple[Any, ...]]:
    return [(r["database_name"], r["name"], r["valid_from"], r["valid_to"]) for r in changes.put]


def test_nothing_changes_nothing(change: Change) -> None:
    assert not any(change("").values())


def test_what_has_ended_is_not_there(change: Change) -> None:
    changes = change("CREATE ROUTE ended WITH ADDRESS = 'LOCAL'")
    assert versions(changes["routes"]) == [("Shop", "ended", AT, None)]


def test_a_dropped_database_takes_everything_along(change: Change) -> None:
    changes = change("DROP DATABASE Stock")
    assert versions(changes["routes"]) == [("Stock", "b", None, LATER)]
    assert [row["name"] for row in changes["databases"].remove] == ["Stock"]
    assert [row["name"] for row in changes["services"].remove] == ["//stock"]


def test_a_renamed_database_takes_everything_along(change: Change) -> None:
    changes = change("ALTER DATABASE Stock MODIFY NAME = Store")
    assert versions(changes["routes"]) == [("Store", "b", LATER, None), ("Stock", "b", None, LATER)]
    (row,) = changes["databases"].put
    assert (row["name"], row["database_id"], row["service_broker_guid"]) == ("Store", 5, GUID)
    assert [row["name"] for row in changes["databases"].remove] == ["Stock"]
    assert [row["database_name"] for row in changes["services"].put] == ["Store"]
    assert [row["database_name"] for row in changes["services"].remove] == ["Stock"]


def test_a_new_broker_id_is_known_to_nobody(change: Change) -> None:
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


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_snapshot_says_all_routes_of_the_databases_it_speaks_of(read: ReadText, snapshot: bool) -> None:
    rows = own()
    script = read("DROP ROUTE a\nCREATE ROUTE c WITH ADDRESS = 'LOCAL'\nDROP ROUTE ended", database="shop")
    done, before = Imported(is_dry_run=False), state_of(rows, LATER)
    after = apply_all(done, before, [script], Spelling([], [("hub", "Shop"), ("hub", "Stock")]), "hub", snapshot)
    assert [(route.database_name, route.name) for route in after.routes] == [("Stock", "b"), ("Shop", "c")]
    # Of what a snapshot replaces nothing has to be there.
    assert done.rows_read == {"f.sql": (3, 0 if snapshot else 1, 0)}
    assert len(done.rejected) == (0 if snapshot else 1)


def test_rejections_and_notes_come_in_line_order(read: ReadText) -> None:
    """What reading finds and what applying finds, together."""
    rows, done = own(), Imported(is_dry_run=True)
    script = read(
        "DROP ROUTE none\nEXEC(@x)\nALTER DATABASE shop SET OFFLINE\nDROP ROUTE neither\nEXEC(@y)\n"
        "IF @x = 1 RETURN\nDROP ROUTE a",
        database="shop",
    )
    apply_all(done, state_of(rows, LATER), [script], Spelling([], [("hub", "Shop")]), "hub", False)
    assert [text.split(":")[0] for text in done.rejected] == [f"f.sql, line {line}" for line in (1, 2, 4, 5)]
    assert [text.split(":")[0] for text in done.notes] == [f"f.sql, line {line}" for line in (3, 7)]
    assert done.rows_read == {"f.sql": (6, 4, 0)}


def test_a_script_about_something_else_gets_a_note(read: ReadText) -> None:
    done = Imported(is_dry_run=True)
    script = read("CREATE TABLE t (a int)\nINSERT t VALUES (1)")
    apply_all(done, state_of(own(), LATER), [script], Spelling(), "hub", False)
    assert done.notes == ["f.sql: none of its 2 statements is about routing"]
    assert done.rows_read == {"f.sql": (0, 0, 0)}


def test_a_snapshot_closes_the_rest(read: ReadText) -> None:
    rows = own()
    script = read("CREATE ROUTE c WITH ADDRESS = 'LOCAL'", database="shop")
    before = state_of(rows, LATER)
    after = apply_all(Imported(False), before, [script], Spelling([], [("hub", "Shop")]), "hub", True)
    changes = changes_of(rows, before, after, "hub", {("hub", "Shop"): LATER}, set())
    assert versions(changes["routes"]) == [("Shop", "c", LATER, None), ("Shop", "a", None, LATER)]
