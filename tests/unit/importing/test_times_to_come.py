"""Times in the future are refused, rejected or noted. An older release may have stored one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing import cli
from routing.schemas import DATABASES, IMPORTS, ROUTES
from tests.exported import database, export, route, waiting, whole_shop
from tests.imports import KEYS, NOW, config_in, import_views, make_table, no_spark, place, rows_at
from tests.stored import OUTPUTS

if TYPE_CHECKING:
    from routing import Config
    from routing.importing.covered_rows import ImportResult

pytest.importorskip("deltalake")
HOUR = timedelta(hours=1)
MONTH = timedelta(days=30)
Run = Callable[..., str]
# A clock that goes wrong by a minute is none of these: a test takes less.
AHEAD, NEARLY = HOUR + timedelta(minutes=5), HOUR - timedelta(minutes=5)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs an import into tables below ``data``, or another command: all that it prints."""
    config = {
        "tables": {key: f"data/{key}" for key in KEYS},
        "output": {key: f"out/{key}" for key in OUTPUTS},
    }
    (tmp_path / "job.yaml").write_text(json.dumps(config), encoding="utf-8")

    def run(*arguments: str, status: int = 0) -> str:
        options = ("--config", str(tmp_path / "job.yaml")) if arguments[0] == "import" else ()
        assert cli.main([*arguments, *options]) == status
        out, err = capsys.readouterr()
        return " ".join(f"{out} {err}".split())

    return run


def from_now(delta: timedelta) -> str:
    return (datetime.now(timezone.utc) + delta).isoformat(timespec="seconds").replace("+00:00", "Z")


def write_script(folder: Path, after_now: timedelta) -> str:
    file = folder / "s.sql"
    file.write_text("CREATE ROUTE r WITH ADDRESS = 'LOCAL'", encoding="utf-8")
    at = (datetime.now(timezone.utc) + after_now).timestamp()
    os.utime(file, (at, at))
    return str(file)


def test_an_export_in_the_future_is_refused(tmp_path: Path, run: Run) -> None:
    routes = {"Orders": [route("AutoCreatedLocal")]}
    at = from_now(AHEAD)
    output = run("import", "catalog", str(export(tmp_path / "a", at=at, routes=routes)), status=2)
    assert f"routes.jsonl, row 1: exported_at is {at}, more than an hour from now" in output
    assert "--time-zone names the zone" in output
    assert not (tmp_path / "data").exists()
    run("import", "catalog", str(export(tmp_path / "b", at=from_now(NEARLY), routes=routes)))


def test_the_option_of_exports_is_read_on_its_clock(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "routes.csv"
    file.write_text("instance_name,database_name,name,address\nHUB,Shop,r,LOCAL\n", encoding="utf-8")
    local = (datetime.now(timezone.utc) + timedelta(hours=3)).replace(tzinfo=None).isoformat(timespec="seconds")
    assert "a time is in the future" in run("import", "catalog", str(file), "--exported-at", local, status=2)
    run("import", "catalog", str(file), "--exported-at", local, "--time-zone", "+03:00")


def test_scripts_in_the_future_are_refused(tmp_path: Path, run: Run) -> None:
    tsql = ("import", "tsql", "--instance", "HUB", "--database", "Shop")
    ahead = write_script(tmp_path, AHEAD)
    output = run(*tsql, ahead, status=2)
    assert f"{ahead}: its time is" in output
    assert "--scripted-at sets the time, in the zone of --time-zone" in output
    assert not (tmp_path / "data").exists()
    local = (datetime.now(timezone.utc) + timedelta(hours=3)).replace(tzinfo=None).isoformat(timespec="seconds")
    assert "a time is in the future" in run(*tsql, ahead, "--scripted-at", local, status=2)
    run(*tsql, ahead, "--scripted-at", local, "--time-zone", "+03:00")
    [row] = rows_at(place(tmp_path, "imports"))
    assert abs(row["exported_at"] - datetime.now(timezone.utc)) < timedelta(minutes=5)


def test_a_file_less_than_an_hour_ahead_is_accepted(tmp_path: Path, run: Run) -> None:
    run("import", "tsql", "--instance", "HUB", "--database", "Shop", write_script(tmp_path, NEARLY))


def test_an_event_in_the_future_is_rejected(tmp_path: Path, run: Run) -> None:
    def event(at: str) -> str:
        fields = {
            "conversation_id": "6b1f0b9a-6a0e-4a52-9c7b-0d6f6d9a0001",
            "route_type": "1",
            "is_initiator": "1",
        }
        data = "".join(f"<data name='{name}'><value>{value}</value></data>" for name, value in fields.items())
        return f"<event name='broker_message_classify' timestamp='{at}'>{data}</event>"

    late = from_now(AHEAD)
    file = tmp_path / "events.xml"
    file.write_text("<E>" + "".join(map(event, (late, from_now(NEARLY)))) + "</E>", encoding="utf-8")
    output = run("import", "events", str(file), "--instance", "HUB")
    assert f"its timestamp is {late}, more than an hour from now" in output
    assert len(rows_at(place(tmp_path, "observed_routing"))) == 1


@pytest.mark.parametrize("command", ["check", "lint"])
def test_check_and_lint_note_future_times(tmp_path: Path, run: Run, command: str) -> None:
    files = whole_shop(tmp_path / "ahead", [waiting(1, "//stock")])
    for file in files.rglob("*.jsonl"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("2026-01-05T18:00:00Z", from_now(AHEAD)), encoding="utf-8")
    script = write_script(files / "SHOP", AHEAD)
    # Wide enough for the paths, which else are broken.
    whole = ["--verbose", "--width", "1000"]
    output = run(command, str(files), "--database", "Orders", "--instance", "SHOP", *whole)
    assert "routes.jsonl, row 1: exported_at is" in output
    assert "more than an hour from now (--time-zone)" in output
    assert f"{script}: its time is" in output
    on_time = whole_shop(tmp_path / "on time", [waiting(1, "//stock")])
    assert "from now" not in run(command, str(on_time))


# What an older release stored: an export of SHOP that its clock dated a month ahead.
LATER = NOW + MONTH
BEFORE, IMPORTED = NOW - MONTH, NOW - MONTH / 2


def stored_route(name: str, address: str, begins: datetime | None, ends: datetime | None) -> dict[str, Any]:
    return {
        **dict.fromkeys(ROUTES.names),
        "instance_name": "SHOP",
        "database_name": "Orders",
        "name": name,
        "address": address,
        "valid_from": begins,
        "valid_to": ends,
    }


def imported(view: str, at: datetime, name: str | None = "Orders") -> dict[str, Any]:
    row = {"instance_name": "SHOP", "database_name": name, "view_or_file": view, "exported_at": at}
    return {**row, "imported_at": IMPORTED}


STORED = [
    stored_route("Kept", "LOCAL", None, None),
    stored_route("Changed", "TCP://old:1", None, LATER),
    stored_route("Changed", "TCP://new:1", LATER, None),
    stored_route("Gone", "TCP://gone:1", BEFORE, LATER),
    stored_route("Twice", "TCP://one:1", LATER - MONTH / 2, LATER),
    stored_route("Twice", "TCP://two:1", LATER, None),
    stored_route("Past", "TCP://past:1", None, BEFORE),
]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    tables = [{"instance_name": "SHOP", "name": "Orders", "service_broker_guid": "0d0d0d0d"}]
    make_table(place(tmp_path, "databases"), tables, DATABASES)
    make_table(place(tmp_path, "routes"), STORED, ROUTES)
    return config_in(tmp_path)


def export_routes(folder: Path, at: datetime, *routes: tuple[str, str]) -> list[str]:
    rows = {"Orders": [route(name, address=address) for name, address in routes]}
    return [str(export(folder, at=at.isoformat(), routes=rows))]


def routes_in(folder: Path) -> set[tuple[Any, ...]]:
    names = ("name", "address", "valid_from", "valid_to")
    return {tuple(row[name] for name in names) for row in rows_at(place(folder, "routes"))}


def imports_in(folder: Path) -> set[tuple[str, str | None, datetime]]:
    names = ("view_or_file", "database_name", "exported_at")
    return {tuple(row[name] for name in names) for row in rows_at(place(folder, "imports"))}


AS_BEFORE = {
    ("Kept", "LOCAL", None, None),
    ("Changed", "TCP://old:1", None, None),
    ("Gone", "TCP://gone:1", BEFORE, None),
    ("Past", "TCP://past:1", None, BEFORE),
}
TAKEN_BACK = (
    "SHOP: an earlier import had a time in the future; of its versions of routes 3 are removed, and 2"
    " that it closed are open again"
)


def test_the_next_export_replaces_rows_of_a_future_import(config: Config, tmp_path: Path) -> None:
    make_table(place(tmp_path, "imports"), [imported("routes", LATER)], IMPORTS)
    sources = export_routes(tmp_path / "a", NOW, ("Kept", "LOCAL"), ("Changed", "TCP://new:1"))
    done = import_views(no_spark(), config, sources)
    assert TAKEN_BACK in done.notes
    assert done.written["routes"] == {"changed": 1, "closed": 1, "unchanged": 1, "removed": 3}
    assert routes_in(tmp_path) == {
        ("Kept", "LOCAL", None, None),
        ("Changed", "TCP://old:1", None, NOW),
        ("Changed", "TCP://new:1", NOW, None),
        ("Gone", "TCP://gone:1", BEFORE, NOW),
        ("Past", "TCP://past:1", None, BEFORE),
    }
    assert imports_in(tmp_path) == {("routes", "Orders", NOW)}
    again = import_views(no_spark(), config, sources)
    assert (again.written["routes"], TAKEN_BACK in again.notes) == ({"unchanged": 2}, False)


def test_the_next_import_of_another_view_replaces_a_future_import(config: Config, tmp_path: Path) -> None:
    ahead = [imported("routes", LATER), imported("services", LATER), imported("databases", BEFORE, None)]
    make_table(place(tmp_path, "imports"), ahead, IMPORTS)
    sources = [str(export(tmp_path / "a", at=NOW.isoformat(), databases=[database("Orders", "0d0d0d0d")]))]
    done = import_views(no_spark(), config, sources)
    assert TAKEN_BACK in done.notes
    assert routes_in(tmp_path) == AS_BEFORE
    assert imports_in(tmp_path) == {
        ("routes", "Orders", IMPORTED),
        ("services", "Orders", IMPORTED),
        ("databases", None, NOW),
    }
    # It is known that routes were imported before.
    sources = export_routes(tmp_path / "b", NOW, *((row[0], row[1]) for row in AS_BEFORE), ("New", "LOCAL"))
    done = import_views(no_spark(), config, sources)
    assert not [note for note in done.notes if "the first" in note]
    assert ("New", "LOCAL", NOW, None) in routes_in(tmp_path)


def test_a_queue_keeps_the_time_that_its_observations_have(config: Config, tmp_path: Path) -> None:
    ahead = [imported("transmission_queue", LATER), imported("conversation_endpoints", LATER)]
    make_table(place(tmp_path, "imports"), ahead, IMPORTS)
    import_views(no_spark(), config, export_routes(tmp_path / "a", NOW, ("Kept", "LOCAL")))
    assert imports_in(tmp_path) == {
        ("transmission_queue", "Orders", LATER),
        ("conversation_endpoints", "Orders", IMPORTED),
        ("routes", "Orders", NOW),
    }


def import_text(config: Config, text: str, at: datetime) -> ImportResult:
    from routing.importing.from_tsql import import_scripts
    from routing.importing.tsql.script_reader import read_script

    script = read_script(text, file="s.sql", instance="SHOP", database="Orders", scripted_at=at)
    return import_scripts(no_spark(), config, [script], instance="SHOP", now=NOW)


def test_the_next_script_replaces_a_future_import(config: Config, tmp_path: Path) -> None:
    """The next script applies to the previous state, and so does a script of the same time."""
    make_table(place(tmp_path, "imports"), [imported("routes", BEFORE), imported("x.sql", LATER)], IMPORTS)
    done = import_text(config, "ALTER ROUTE Changed WITH ADDRESS = 'TCP://newest:1'\nDROP ROUTE Gone", NOW)
    assert (done.notes, done.rejected) == ([TAKEN_BACK], [])
    assert done.written["routes"] == {"changed": 1, "closed": 1, "unchanged": 1, "removed": 3}
    assert routes_in(tmp_path) == {
        ("Kept", "LOCAL", None, None),
        ("Changed", "TCP://old:1", None, NOW),
        ("Changed", "TCP://newest:1", NOW, None),
        ("Gone", "TCP://gone:1", BEFORE, NOW),
        ("Past", "TCP://past:1", None, BEFORE),
    }
    assert imports_in(tmp_path) == {
        ("routes", "Orders", BEFORE),
        ("x.sql", "Orders", IMPORTED),
        ("s.sql", "Orders", NOW),
    }


def test_a_repeated_script_replaces_the_time_of_a_future_import(config: Config, tmp_path: Path) -> None:
    make_table(place(tmp_path, "imports"), [imported("s.sql", BEFORE), imported("x.sql", LATER)], IMPORTS)
    done = import_text(config, "DROP ROUTE Gone", BEFORE)
    assert done.notes == [TAKEN_BACK, "s.sql: it was already imported, so it is skipped"]
    assert routes_in(tmp_path) == AS_BEFORE
    assert imports_in(tmp_path) == {("s.sql", "Orders", BEFORE), ("x.sql", "Orders", IMPORTED)}


def test_an_export_older_than_a_replaced_import_is_accepted(config: Config, tmp_path: Path) -> None:
    """It was exported before, and is not older: not even once more."""
    make_table(place(tmp_path, "imports"), [imported("x.sql", LATER)], IMPORTS)
    at = IMPORTED - HOUR
    sources = export_routes(tmp_path / "a", at, ("Kept", "LOCAL"), ("Changed", "TCP://old:1"))
    for changed in ({"closed": 1, "removed": 3, "unchanged": 2}, {"unchanged": 2}):
        assert import_views(no_spark(), config, sources).written["routes"] == changed
        assert imports_in(tmp_path) == {("routes", "Orders", at), ("x.sql", "Orders", at)}


@pytest.mark.parametrize(
    "imports",
    [
        pytest.param([imported("routes", BEFORE)], id="no-import-ahead"),
        pytest.param([{**imported("routes", LATER), "instance_name": "OTHER"}], id="another-instance's"),
        pytest.param([imported("routes", NOW + HOUR)], id="an-hour-at-most"),
    ],
)
def test_planned_routes_stay(config: Config, tmp_path: Path, imports: list[dict[str, Any]]) -> None:
    make_table(place(tmp_path, "imports"), imports, IMPORTS)
    at = max(NOW, *(row["exported_at"] for row in imports if row["instance_name"] == "SHOP"), NOW)
    sources = export_routes(
        tmp_path / "a", at, ("Kept", "LOCAL"), ("Changed", "TCP://old:1"), ("Gone", "TCP://gone:1")
    )
    before = routes_in(tmp_path)
    import_views(no_spark(), config, sources)
    assert routes_in(tmp_path) == before


def test_an_import_with_a_future_time_is_not_newer(config: Config, tmp_path: Path) -> None:
    """The next import replaces a future time in any view."""
    make_table(place(tmp_path, "imports"), [imported("services", LATER)], IMPORTS)
    sources = [str(export(tmp_path / "a", at=NOW.isoformat(), services={"Orders": [{"name": "//orders"}]}))]
    assert import_views(no_spark(), config, sources).written["services"] == {"added": 1}
    assert imports_in(tmp_path) == {("services", "Orders", NOW)}
