"""An optional input that does not exist is left out with a note, until a run has read it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from routing import cli
from tests.estate_rows import small_estate
from tests.stored import config_text, save_estate

pytest.importorskip("deltalake")
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "conf" / "examples"
MISSING = ("dialogs", "route_requests")
RESOLVE = "resolve --engine local"
COMMANDS = [
    RESOLVE,
    "lint",
    "lint --messages",
    "explain --message-id m1",
    "trace --message-id m1",
    "trace --all",
    "report --out page.html",
    "diff --with-script change.sql --instance hub",
    "diff --against job.yaml",
    "reconcile",
    "messages",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a job without its optional inputs."""
    tables = {key: rows for key, rows in small_estate().items() if key not in MISSING}
    save_estate({**tables, "observed_routing": []}, tmp_path / "in", files=1)
    missing = {key: tmp_path / "in" / key for key in MISSING}
    text = config_text(tmp_path / "in", tmp_path / "out", **missing)
    text = text.replace("output:", f"output:\n  message_paths: {tmp_path / 'out' / 'message_paths'}")
    (tmp_path / "job.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "change.sql").write_text("USE Sales\nGO\nDROP ROUTE Far\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str, capsys: pytest.CaptureFixture[str], config: str = "job.yaml") -> tuple[int, list[str]]:
    """Run a command and return its exit code and the notes and errors on optional tables."""
    capsys.readouterr()
    status = cli.main([*command.split(), "--config", config])
    lines = capsys.readouterr().err.splitlines()
    return status, [line for line in lines if "tables." in line]


def notes_on(folder: Path, *keys: str) -> list[str]:
    return [f"note: tables.{key}: no table at '{folder / 'in' / key}', so it is left out" for key in keys]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_notes_each_table_once(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command != RESOLVE:
        assert run(RESOLVE, capsys)[0] == 0
    status, notes = run(command, capsys)
    # `messages` reads what a run wrote, and none of these tables.
    assert (status, notes) == (0, [] if command == "messages" else notes_on(folder, *MISSING))


@pytest.mark.parametrize("command", COMMANDS[:6])
@pytest.mark.parametrize("what", ["an empty folder", "a folder of files", "a file"])
def test_an_existing_folder_without_a_table_is_an_error(
    what: str, command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder / "in" / "dialogs"
    if what == "a file":
        place.touch()
    else:
        place.mkdir()
        if what == "a folder of files":
            (place / "part.csv").touch()
    status, err = run(command, capsys)
    assert status == 2
    assert err[-1].startswith(f"sbroute: tables.dialogs: there is no Delta table at '{place}'")


def test_a_table_of_the_last_run_must_exist(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_estate({"dialogs": small_estate()["dialogs"]}, folder / "in", files=1)
    assert run(RESOLVE, capsys) == (0, notes_on(folder, "route_requests"))
    shutil.rmtree(folder / "in" / "dialogs")
    for command in COMMANDS[:6]:
        status, err = run(command, capsys)
        assert status == 2
        assert "tables.dialogs: run '" in err[-1]
        assert f"read this table, but it is missing at '{folder / 'in' / 'dialogs'}'" in err[-1]


def test_the_example_configuration_works_after_the_first_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "conf").mkdir()
    shutil.copy(ROOT / "conf" / "local.yaml", tmp_path / "conf" / "mine.yaml")
    monkeypatch.chdir(tmp_path)
    for command in (f"import catalog {EXAMPLES / 'exports'}", RESOLVE, "lint", "messages", "trace --all"):
        assert run(command, capsys, "conf/mine.yaml")[0] == 0, command
