"""`check` and `lint` on exports as people bring them, such as grids without instance and time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing.cases.exported_files import FileOptions
from routing.errors import ContractError
from routing.importing.catalog import StandIns, read_export
from routing.lint.file_linting import lint_files
from routing.views.check.check_json import as_object
from routing.views.check.checking import check

UTC = timezone.utc
WRITTEN = datetime(2026, 1, 5, 18, tzinfo=UTC)
HANDLE = "a1b2c3d4-0001-4000-8000-00000000000f"


def grid(*lines: str) -> str:
    """Return a copied grid, with tabs between the words."""
    return "".join("\t".join(line.split(" ")) + "\n" for line in lines)


OF_QUEUE = "conversation_handle to_service_name to_broker_instance from_service_name enqueue_time"
OF_ROUTES = "name remote_service_name broker_instance lifetime address mirror_address"
LOCAL = "AutoCreatedLocal NULL NULL NULL LOCAL NULL"
QUEUE = grid(
    f"{OF_QUEUE} message_sequence_number transmission_status",
    f"{HANDLE} //billing NULL //orders 2026-01-05T14:03:22 0 ",
)
ROUTES = grid(OF_ROUTES, LOCAL)
NAMED = grid(f"instance_name {OF_ROUTES}", f"SHOP {LOCAL}")
DATABASES = grid(
    "name database_id service_broker_guid is_broker_enabled", f"msdb 4 {HANDLE} 1", f"Orders 5 {HANDLE} 1"
)


def write(folder: Path, files: Mapping[str, str], at: datetime = WRITTEN) -> Path:
    """Write files that were last changed at a time."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (at.timestamp(), at.timestamp()))
    return folder


def units(files: Mapping[str, str], folder: Path, **options: Any) -> dict[str, set[tuple[str, str | None]]]:
    """Return the instance and database of each view."""
    evidence = check([str(write(folder, files))], **options).evidence
    return {view: set(theirs) for view, theirs in evidence.views.units.items()}


UNNAMED = "(not named)"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            {"queue.txt": QUEUE, "Results.txt": ROUTES},
            {"transmission_queue": {("case", UNNAMED)}, "routes": {("case", UNNAMED)}},
            id="one folder",
        ),
        pytest.param(
            {"queue.txt": f"Server: Shop\n{QUEUE}", "Results.txt": f"Server: STOCK,1433\n{ROUTES}"},
            {"transmission_queue": {("Shop", UNNAMED)}, "routes": {("STOCK", UNNAMED)}},
            id="lines with servers",
        ),
        pytest.param(
            {"SHOP/queue.txt": f"Server: a.b\n{QUEUE}", "SHOP/routes.txt": f"Server: a.b\n{ROUTES}"},
            {"transmission_queue": {("SHOP", UNNAMED)}, "routes": {("SHOP", UNNAMED)}},
            id="lines with one server",
        ),
        pytest.param(
            {"SHOP/queue.txt": QUEUE, "SHOP/routes.txt": ROUTES, "STOCK/routes.txt": ROUTES},
            {"transmission_queue": {("SHOP", UNNAMED)}, "routes": {("SHOP", UNNAMED), ("STOCK", UNNAMED)}},
            id="a folder for each instance",
        ),
        pytest.param(
            {"SHOP/queue.txt": QUEUE, "SHOP/routes.txt": ROUTES},
            {"transmission_queue": {("SHOP", UNNAMED)}, "routes": {("SHOP", UNNAMED)}},
            id="one folder within",
        ),
        pytest.param(
            {"queue.txt": QUEUE, "routes.txt": NAMED},
            {"transmission_queue": {("SHOP", UNNAMED)}, "routes": {("SHOP", UNNAMED)}},
            id="an export beside it names the instance",
        ),
        pytest.param(
            {"queue.txt": QUEUE, "routes.txt": ROUTES, "databases.txt": DATABASES},
            {
                "transmission_queue": {("case", "Orders")},
                "routes": {("case", "Orders")},
                "databases": {("case", None)},
            },
            id="the only database of sys.databases",
        ),
        pytest.param(
            {"queue.txt": QUEUE, "routes.txt": ROUTES, "msdb routes.txt": ROUTES},
            {"transmission_queue": {("case", UNNAMED)}, "routes": {("case", UNNAMED), ("case", "msdb")}},
            id="a file's name names msdb",
        ),
        pytest.param(
            {
                "Orders/queue.txt": QUEUE,
                "Orders/routes.txt": ROUTES,
                "msdb/routes.txt": ROUTES,
                "databases.csv": DATABASES,
            },
            {
                "transmission_queue": {("case", "Orders")},
                "routes": {("case", "Orders"), ("case", "msdb")},
                "databases": {("case", None)},
            },
            id="folders that are named like databases",
        ),
        pytest.param(
            {
                "HUB/A/queue.txt": QUEUE,
                "HUB/A/routes.txt": ROUTES,
                "HUB/B/routes.txt": ROUTES,
                "HUB2/routes.txt": ROUTES,
            },
            {
                "transmission_queue": {("HUB", "A")},
                "routes": {("HUB", "A"), ("HUB", "B"), ("HUB2", UNNAMED)},
            },
            id="folders of databases in folders of instances",
        ),
    ],
)
def test_the_instance_of_an_export_is_found(
    tmp_path: Path, files: dict[str, str], expected: dict[str, set[tuple[str, str | None]]]
) -> None:
    assert units(files, tmp_path / "case") == expected


def test_options_come_before_the_folder(tmp_path: Path) -> None:
    files = {"a/queue.txt": QUEUE, "b/routes.txt": ROUTES}
    found_units = units(files, tmp_path, instance="HUB", database="Sales")
    assert found_units == {"transmission_queue": {("HUB", "Sales")}, "routes": {("HUB", "Sales")}}


def test_the_time_of_the_file_counts_with_a_note(tmp_path: Path) -> None:
    done = check([str(write(tmp_path / "case", {"queue.txt": QUEUE, "routes.txt": ROUTES}))])
    assert done.evidence.views.newest("case") == WRITTEN
    answer = as_object(done)
    assert answer["decided_at"] == {"case": "2026-01-05T18:00:00Z"}
    notes = "\n".join(answer["notes"])
    assert "there is no exported_at, so the file's time is used (--exported-at): 2 files: " in notes
    assert f"{tmp_path}/case/queue.txt: 2026-01-05T18:00:00Z" in notes
    assert "there is no instance_name, so 'case' is used (--instance): 2 files: " in notes
    assert "there is no database_name, so an unnamed one is used (--database): 2 files: " in notes


def test_given_options_prevent_notes_on_assumed_values(tmp_path: Path) -> None:
    folder = write(tmp_path, {"queue.txt": QUEUE})
    done = check([str(folder)], instance="HUB", database="Sales", exported_at=WRITTEN)
    assert [note for note in done.evidence.log.notes if "there is no " in note] == []


def test_two_files_of_one_view_are_noted(tmp_path: Path) -> None:
    folder = write(tmp_path / "case", {"queue 1.txt": QUEUE})
    write(folder, {"queue 2.txt": QUEUE.replace("-0001-", "-0002-")}, WRITTEN.replace(hour=19))
    done = check([str(folder)])
    assert (len(done.results), done.evidence.log.rows_left_out) == (1, {"transmission_queue": 1})
    note_start = "2 files of sys.transmission_queue of instance 'case' "
    assert any(note.startswith(note_start) for note in done.evidence.log.notes)


@pytest.mark.parametrize("name", ["cnt", "message_count", "(No column name)", "Anzahl", "Messages", "n", "adet"])
def test_a_queue_with_counts_is_refused(name: str, tmp_path: Path) -> None:
    counts = f"to_service_name,transmission_status,{name}\n//billing,,120\n"
    write(tmp_path, {"queue.csv": counts, "databases.txt": DATABASES})
    done = check([str(tmp_path)])
    assert (done.results, done.evidence.log.refused_messages) == ([], 1)
    assert "may count messages" in done.evidence.log.rejected[0]


def test_a_script_is_assigned_to_the_only_instance(tmp_path: Path) -> None:
    script = "USE Orders\nGO\nCREATE ROUTE r WITH SERVICE_NAME = '//billing', ADDRESS = 'TCP://far:4022'\n"
    write(
        tmp_path, {"exports/queue.txt": QUEUE, "scripts/r.sql": script, "then.sql": script.replace("r W", "s W")}
    )
    done = check([str(tmp_path / "exports"), str(tmp_path / "scripts")], then=[str(tmp_path / "then.sql")])
    assert [script.instance for script in done.evidence.log.scripts] == ["exports"]
    assert done.with_scripts is not None
    assert {row["name"] for row in done.with_scripts.evidence.rows["routes"]} == {"r", "s"}


def test_a_script_without_use_is_for_the_database_of_the_exports(tmp_path: Path) -> None:
    script = "CREATE ROUTE r WITH SERVICE_NAME = '//billing', ADDRESS = 'TCP://far:4022'\n"
    write(tmp_path, {"case/queue.txt": QUEUE, "case/r.sql": script, "then.sql": script.replace("E r", "E s")})
    done = check([str(tmp_path / "case")], then=[str(tmp_path / "then.sql")])
    assert done.with_scripts is not None
    for evidence, names in ((done.evidence, ["r"]), (done.with_scripts.evidence, ["r", "s"])):
        rows = evidence.rows["routes"]
        whose = [(row["instance_name"], row["database_name"], row["name"]) for row in rows]
        assert whose == [("case", UNNAMED, name) for name in names]


def test_no_statement_names_a_database_without_a_name(tmp_path: Path) -> None:
    status = "An exception occurred while enqueueing a message in the target queue. Error: 15517, State: 1."
    queue = QUEUE.replace("\t0\t\n", f"\t0\t{status}\n")
    assert queue != QUEUE
    [group] = check([str(write(tmp_path / "case", {"queue.txt": queue, "routes.txt": ROUTES}))]).groups
    assert any("owner" in advice.remedy.text for advice in group.advice)
    assert not any(UNNAMED in (advice.remedy.statement or "") for advice in group.advice)


def test_a_header_without_rows_is_an_empty_queue(tmp_path: Path) -> None:
    write(tmp_path / "case", {"transmission queue.txt": QUEUE.splitlines()[0] + "\n\n(0 rows affected)\n"})
    done = check([str(tmp_path / "case")])
    assert (done.evidence.instances, len(done.results)) == (["case"], 0)


def test_a_grid_without_headers_says_what_to_do(tmp_path: Path) -> None:
    write(tmp_path, {"grid.txt": "\t".join(["1", "2", "3"]) + "\n"})
    with pytest.raises(ContractError) as caught:
        check([str(tmp_path / "grid.txt")])
    assert "copy the grid with its headers, or name the file after its view" in str(caught.value)


def test_all_views_by_select_all_give_a_verdict(tmp_path: Path) -> None:
    """With all views, every message gets a verdict, even if the grids have no instance."""
    endpoints = grid(
        "conversation_handle conversation_id is_initiator service_contract_id conversation_group_id lifetime state"
        " far_service far_broker_instance",
        f"{HANDLE} {HANDLE} 1 65536 {HANDLE} 2094-01-01T00:00:00 CO //billing NULL",
    )
    files = {
        "transmission queue.txt": QUEUE,
        "conversation endpoints.txt": endpoints,
        "routes.txt": ROUTES,
        "routes msdb.txt": ROUTES,
        "Results.txt": DATABASES,
        "Results 2.txt": grid("name service_id principal_id service_queue_id", "//orders 65536 1 99"),
        "Results 3.txt": grid("name endpoint_id is_message_forwarding_enabled", "Broker 65536 0"),
    }
    [result] = check([str(write(tmp_path / "case", files))]).results
    assert result.case.verdict is not None
    assert (result.case.outcome, str(result.case.verdict.reason)) == ("DELAYED", "SERVICE_NOT_FOUND")


def test_import_still_needs_the_options(tmp_path: Path) -> None:
    folder = write(tmp_path, {"queue.txt": QUEUE})
    for stand_ins, option in (
        (StandIns(None, "Sales", WRITTEN), "--instance"),
        (StandIns("HUB", None, WRITTEN), "--database"),
        (StandIns("HUB", "Sales", None), "--exported-at"),
    ):
        with pytest.raises(ContractError) as caught:
            read_export([str(folder)], stand_ins)
        assert (caught.value.exit_code, f"give {option}" in str(caught.value)) == (2, True)


def test_lint_also_assumes_instance_and_time(tmp_path: Path) -> None:
    write(tmp_path / "case", {"routes.txt": ROUTES})
    done = lint_files([str(tmp_path / "case")], FileOptions(), now=WRITTEN)
    assert any("so 'case' is used (--instance)" in note for note in done.notes)
