"""Imports into local tables without Spark: one estate through several imports, each looked at when it is done."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from routing.errors import InputError
from tests.imports import (
    FIRST_VIEWS,
    KEYS,
    KNOWN_DIALOGS,
    LATER_VIEWS,
    MONDAY,
    NOW,
    ROUTES,
    SCRIPT,
    SHOP_ID,
    THEIR_ROUTE,
    TUESDAY,
    UTC,
    WEDNESDAY,
    config_in,
    dialog,
    exports,
    import_script,
    import_views,
    locations_of,
    make_table,
    newest,
    no_spark,
    rows_at,
)
from tests.stored import written

if TYPE_CHECKING:
    from routing import Config
    from routing.importing.covered_rows import ImportResult

pytest.importorskip("deltalake")


class Step(NamedTuple):
    """The output of an import, with the tables' versions and rows after it."""

    done: ImportResult
    versions: dict[str, int | None]
    tables: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return config_in(tmp_path_factory.mktemp("imported"))


@pytest.fixture(scope="module")
def steps(config: Config, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Step]:
    """Several imports one after another. Each test checks one of them."""
    from routing.schemas import DIALOGS, Schema
    from routing.schemas import ROUTES as ROUTES_SCHEMA

    folder = tmp_path_factory.mktemp("exports")
    locations = locations_of(config)
    make_table(locations["dialogs"], KNOWN_DIALOGS, DIALOGS)
    # Somebody's table without history and with a column of their own.
    make_table(locations["routes"], [THEIR_ROUTE], Schema(ROUTES_SCHEMA.fields[:8]), note="keep")
    steps: dict[str, Step] = {}

    def look(name: str, done: ImportResult) -> None:
        snapshot = newest(config)
        tables = {key: rows_at(locations[key]) for key, version in snapshot.items() if version is not None}
        steps[name] = Step(done, snapshot, tables)

    first = exports(folder / "first", MONDAY, **FIRST_VIEWS)
    files = written(Path(config.file).parent)
    look("dry run", import_views(no_spark(), config, first, dry_run=True))
    assert written(Path(config.file).parent) == files
    look("first", import_views(no_spark(), config, first))
    look("again", import_views(no_spark(), config, first))
    later = exports(folder / "later", TUESDAY, **LATER_VIEWS)
    look("later", import_views(no_spark(), config, later))
    for name in ("script", "script again"):
        look(name, import_script(no_spark(), config, folder / "change.sql", SCRIPT))
    return steps


def versions(step: Step) -> set[tuple[Any, ...]]:
    columns = ("name", "address", "valid_from", "valid_to")
    return {tuple(row[name] for name in columns) for row in routes(step)}


def routes(step: Step) -> list[dict[str, Any]]:
    """Those of the imported instance."""
    return [row for row in step.tables["routes"] if row["instance_name"] == "HUB"]


STOCK_EXPIRES = datetime(2030, 1, 1, microsecond=123456, tzinfo=UTC)
FIRST = {
    ("AutoCreatedLocal", "LOCAL", None, None),
    ("ToStock", "TCP://stock:4022", None, None),
    ("Doomed", "TCP://doomed:4022", None, None),
}
LATER = {
    ("AutoCreatedLocal", "LOCAL", None, None),
    ("ToStock", "TCP://stock:4022", None, TUESDAY),
    ("ToStock", "TCP://new:4022", TUESDAY, None),
    ("Doomed", "TCP://doomed:4022", None, TUESDAY),
}


def test_a_dry_run_writes_nothing_and_says_the_same(steps: dict[str, Step]) -> None:
    tried, done = steps["dry run"], steps["first"]
    there = {key for key, version in tried.versions.items() if version is not None}
    assert (there, tried.versions["dialogs"], tried.versions["routes"]) == ({"dialogs", "routes"}, 0, 0)
    assert tried.done.written == done.done.written
    assert tried.done.rows_read == done.done.rows_read
    # The first names its file.
    assert tried.done.notes[1:] == done.done.notes[1:]


def test_the_first_import(steps: dict[str, Step]) -> None:
    tables = steps["first"].tables
    assert versions(steps["first"]) == FIRST
    assert {row["lifetime"] for row in routes(steps["first"])} == {None, STOCK_EXPIRES}
    assert {(row["instance_name"], row["database_name"]) for row in routes(steps["first"])} == {("HUB", "Shop")}
    assert [
        (row["name"], row["service_broker_guid"]) for row in tables["databases"] if row["is_broker_enabled"]
    ] == [("Shop", SHOP_ID)]
    assert tables["services"] == [{"instance_name": "HUB", "database_name": "Shop", "name": "//shop"}]
    assert tables["instances"] == [
        {"instance_name": "HUB", "is_message_forwarding_enabled": True, "addresses": ["tcp://HUBBOX:4022"]}
    ]
    assert sorted(row["message_id"] for row in tables["messages"]) == [
        f"{dialog(1)}:I:0:Shop",
        f"{dialog(1)}:I:1:Shop",
    ]
    assert {row["enqueue_time"] for row in tables["messages"]} == {
        datetime(2026, 1, 5, 11, 0, 0, 500000, tzinfo=UTC),
        datetime(2026, 1, 5, 11, 0, 1, tzinfo=UTC),
    }
    assert {row["error_number"] for row in tables["observed_routing"]} == {9793, None}
    assert {(row["view_or_file"], row["database_name"], row["exported_at"]) for row in tables["imports"]} == {
        ("databases", None, MONDAY),
        ("service_broker_endpoints", None, MONDAY),
        *(
            (view, "Shop", MONDAY)
            for view in ("routes", "services", "conversation_endpoints", "transmission_queue")
        ),
    }
    assert {row["imported_at"] for row in tables["imports"]} == {NOW}


def test_the_same_import_twice_changes_nothing(steps: dict[str, Step]) -> None:
    assert steps["again"].versions == steps["first"].versions
    counts = steps["again"].done.written.values()
    assert {kind for kinds in counts for kind, count in kinds.items() if count} == {"unchanged"}


def test_a_snapshot_is_a_new_version(steps: dict[str, Step]) -> None:
    assert versions(steps["later"]) == LATER
    assert steps["later"].done.written["routes"] == {"unchanged": 1, "changed": 1, "closed": 1}
    # What this export does not cover stays.
    for key in ("databases", "services", "instances", "dialogs"):
        assert steps["later"].versions[key] == steps["first"].versions[key]


def test_messages_stay_unchanged_and_are_observed_again(steps: dict[str, Step]) -> None:
    tables = steps["later"].tables
    assert {row["observed_at"] for row in tables["messages"]} == {MONDAY}
    assert [row["observed_at"] for row in tables["observed_routing"]].count(TUESDAY) == 2
    assert len(tables["observed_routing"]) == 4


def test_a_script_is_a_change(steps: dict[str, Step]) -> None:
    step = steps["script"]
    assert versions(step) == {
        *(LATER - {("ToStock", "TCP://new:4022", TUESDAY, None)}),
        ("ToStock", "TCP://new:4022", TUESDAY, WEDNESDAY),
        ("ToStock", "TCP://elsewhere:4022", WEDNESDAY, None),
        ("Billing", "TCP://billing:4022", WEDNESDAY, None),
    }
    (billing,) = (row for row in step.tables["routes"] if row["name"] == "Billing")
    assert billing["lifetime"] == datetime(2026, 1, 7, 13, tzinfo=UTC)
    assert {(row["name"], row["is_broker_enabled"]) for row in step.tables["databases"]} == {
        ("Shop", False),
        ("Offline", False),
    }
    assert step.done.rows_read == {"change.sql": (4, 1, 0)}
    assert [text.partition(", ")[2] for text in step.done.rejected] == [
        "line 5: DROP ROUTE 'Nonsense': the database 'Shop' has no such route (SQL Server's error 15151)"
    ]
    assert step.versions["services"] == steps["first"].versions["services"]


def test_the_same_script_twice_changes_nothing(steps: dict[str, Step]) -> None:
    assert steps["script again"].versions == steps["script"].versions
    assert [note.partition(": ")[2] for note in steps["script again"].done.notes] == [
        "it was already imported, so it is skipped"
    ]


def test_older_exports_are_refused_without_writing(config: Config, steps: dict[str, Step], tmp_path: Path) -> None:
    before = newest(config)
    # The script of Wednesday speaks of the same routes.
    old = exports(tmp_path / "old", TUESDAY, routes=ROUTES, services="name\n//new\n")
    with pytest.raises(InputError, match="older than an earlier import, 2 parts") as caught:
        import_views(no_spark(), config, old)
    assert caught.value.exit_code == 2
    assert before == newest(config)
    assert None not in before.values()


def test_an_acknowledgement_whose_time_is_known_stays(steps: dict[str, Step]) -> None:
    columns = ("database_name", "far_broker_instance", "acknowledged_at", "acknowledged_broker_instance")
    acknowledged = {
        (row["conversation_id"], row["database_name"]): tuple(row[name] for name in columns[1:])
        for row in steps["first"].tables["dialogs"]
        if row["acknowledged_at"] is not None
    }
    assert acknowledged == {
        (dialog(2), "Shop"): (None, MONDAY, "id-2"),
        (dialog(3), "Shop"): (None, MONDAY, "Id-3"),
        (dialog(4), "Offline"): (None, MONDAY, None),
    }


def test_an_existing_table_keeps_its_rows(steps: dict[str, Step]) -> None:
    rows = [row for row in steps["script"].tables["routes"] if row["instance_name"] == "OTHER"]
    assert [(row["name"], row["note"], row["valid_from"], row["valid_to"]) for row in rows] == [
        ("theirs", "keep", None, None)
    ]


def test_each_import_is_one_commit_a_table(steps: dict[str, Step]) -> None:
    """The first import also creates tables and adds columns. An import without changes has no commit."""
    made = dict.fromkeys(KEYS, 1)
    assert steps["first"].versions == {**made, "routes": 2, "dialogs": 1}
    changed = {"routes": 3, "observed_routing": 2, "imports": 2}
    assert steps["later"].versions == {**steps["first"].versions, **changed}
    changed = {"routes": 4, "databases": 2, "imports": 3}
    assert steps["script"].versions == {**steps["later"].versions, **changed}
