"""Commands without Spark read and continue the tables that releases wrote (`tests.store_release`)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from tests.store_release import STORED_BY_0_2_0, STORED_BY_0_3_0

pytest.importorskip("deltalake")


# Release 0.2.0 did not store whose a request is, so that its next run found no route.
THIRD_MESSAGE = {STORED_BY_0_2_0.name: "NO_ROUTE", STORED_BY_0_3_0.name: "ROUTE_REQUESTED"}


@pytest.fixture(params=(STORED_BY_0_2_0, STORED_BY_0_3_0), ids=lambda stored: stored.name)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    stored: Path = request.param
    return Path(shutil.copytree(stored, tmp_path / stored.name))


def _json(capsys: pytest.CaptureFixture[str], folder: Path, *line: str) -> Any:
    assert cli.main([*line, "--config", str(folder / "job.yaml"), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def _message(number: int, folder: Path) -> str:
    """Return the id of a message. Those that release 0.2.0 imported end before the database."""
    database = "" if folder.name == STORED_BY_0_2_0.name else ":Orders"
    return f"c000000{number}-0000-4000-8000-000000000000:I:0{database}"


def test_runs_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The third one was killed before it counted."""
    listed = _json(capsys, folder, "runs")["runs"]
    assert [(row["run_id"], row["mode"], row["rows_read"]) for row in listed] == [
        ("second", "incremental", 5),
        ("first", "full", 4),
    ]


def test_messages_of_counted_runs_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = _json(capsys, folder, "messages", "--now", "2026-01-07T00:00:00Z")["messages"]
    assert {(row["message_id"], row["reason"]) for row in listed} == {
        (_message(1, folder), "LOCAL_SERVICE"),
        (_message(2, folder), "MIRROR_ADDRESS"),
        (_message(3, folder), THIRD_MESSAGE[folder.name]),
        (_message(4, folder), "NO_ROUTE"),
        (_message(5, folder), "NETWORK_ADDRESS"),
        (_message(6, folder), "NO_ROUTE"),
    }


def test_a_message_is_explained(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the route that the imported script changed, from its time on."""
    verdict = _json(capsys, folder, "explain", "--message-id", _message(5, folder))["verdict"]
    assert (verdict["outcome"], verdict["address"]) == ("SENT", "TCP://new.example:4022")


def test_the_configuration_is_linted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    findings = _json(capsys, folder, "lint")["findings"]
    assert ("SBR003", "Far") in {(finding["code"], finding["object"]) for finding in findings}


def test_imports_continue_over_a_stored_release(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exported = folder / "exported"
    script = ["--instance", "SHOP", "--scripted-at", "2026-01-06T09:00:00Z"]
    for kind, source, *more in (
        ("catalog", "wednesday"),
        ("events", "events.jsonl"),
        ("tsql", "tuesday.sql", *script),
    ):
        again = _json(capsys, folder, "import", kind, str(exported / source), *more)["written"]
        assert {name for counts in again.values() for name in counts} <= {"unchanged"}, source
    written = _json(capsys, folder, "import", "catalog", str(exported / "thursday"))["written"]
    assert written["messages"] == {"added": 1, "unchanged": 1}
    assert written["dialogs"] == {"added": 1, "removed": 3, "unchanged": 1}
    assert written["observed_routing"] == {"added": 2}
