"""The notes of commands on an unfinished import, and the order in which they open tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.half_imports import FIRST, SECOND, conversation, ended_after, estate, route, traffic
from tests.hooks import Killed
from tests.imports import KEYS, no_spark
from tests.stored import OUTPUTS

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("deltalake")
NOTE = (
    "the import that began at 2026-01-06T12:00:00Z is not finished: databases, dialogs, imports, messages,"
    " observed_routing, routes may hold a part of it, and the next import completes it"
)
MESSAGE = f"{conversation(1)}:I:0:Shop"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export that was imported, and one that was ended after the first table."""
    folder = tmp_path_factory.mktemp("half")
    estate(FIRST, route("stock", "stock"), **traffic(1, 2))(no_spark(), folder)
    with ended_after(1), pytest.raises(Killed):
        estate(SECOND, route("billing", "billing"), other_databases="", **traffic(1, 2, 3))(no_spark(), folder)
    content = {
        "tables": {key: f"data/{key}" for key in KEYS},
        "output": {key: f"out/{key}" for key in (*OUTPUTS, "message_paths", "reconciliation")},
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    (folder / "s.sql").write_text("CREATE ROUTE r WITH ADDRESS = 'TCP://r:1'", encoding="utf-8")
    return folder


COMMANDS = {
    "explain": ["explain", "--message-id", MESSAGE],
    "lint": ["lint"],
    "trace": ["trace", "--message-id", MESSAGE],
    "trace --all": ["trace", "--all"],
    "diff": ["diff", "--against-time", "2026-01-09"],
    "diff with a script": ["diff", "--with-script", "s.sql", "--instance", "HUB", "--database", "Shop"],
    "reconcile": ["reconcile"],
}


def run(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    from routing import cli

    code = cli.main([*arguments, "--config", str(folder / "job.yaml")])
    return (code, *capsys.readouterr())


@pytest.mark.parametrize("name", COMMANDS)
def test_unfinished_imports_are_noted_in_text_and_json(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code, _, err = run(COMMANDS[name], folder, capsys)
    assert code == 0
    assert f"note: {NOTE}" in " ".join(err.split())
    code, out, _ = run([*COMMANDS[name], "--format", "json"], folder, capsys)
    assert code == 0
    assert json.loads(out)["notes"] == [NOTE]


def test_finished_imports_have_no_note(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    whole = tmp_path / "whole"
    shutil.copytree(folder, whole)
    estate(SECOND, route("billing", "billing"), other_databases="", **traffic(1, 2, 3))(no_spark(), whole)
    code, out, err = run(["lint", "--format", "json"], whole, capsys)
    assert (code, "notes" in json.loads(out), "not finished" in err) == (0, False, False)


def test_without_imports_there_is_no_note(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(["lint", "--format", "json", "--set", "tables.imports=null"], folder, capsys)
    assert "notes" not in json.loads(out)
    assert "not finished" not in err


def test_a_configured_journal_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = "--set", "tables.unfinished_imports=data/imports_unfinished"
    _, out, _ = run(["lint", "--format", "json", *place], folder, capsys)
    assert json.loads(out)["notes"] == [NOTE]


@pytest.mark.parametrize("name", COMMANDS)
def test_messages_are_opened_before_the_tables_that_decide_them(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table that an import commits last is opened first, so that no message is newer than the routes."""
    from routing.delta.opening import TableOpener

    opened: list[str] = []
    find: Callable[..., Any] = TableOpener.find

    def noted(self: TableOpener, key: str, *arguments: Any) -> Any:
        opened.append(key.removeprefix("tables."))
        return find(self, key, *arguments)

    monkeypatch.setattr(TableOpener, "find", noted)
    monkeypatch.chdir(folder)
    run(COMMANDS[name], folder, capsys)
    first = list(dict.fromkeys(key for key in opened if key in KEYS and key != "imports"))
    late = [key for key in ("observed_routing", "messages", "dialogs") if key in first]
    if name.startswith("diff"):
        # Messages are compared with themselves; dialogs are read with the settings of both sides.
        late = ["messages"]
    assert first[: len(late)] == late if name != "lint" else "messages" not in first


def test_an_unreadable_journal_is_ignored(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from routing.delta.opening import TableOpener
    from routing.errors import StorageError

    find: Callable[..., Any] = TableOpener.find

    def refuse(self: TableOpener, key: str, *arguments: Any) -> Any:
        if key == "tables.unfinished_imports":
            raise StorageError.failed("looking for a table", "no permission")
        return find(self, key, *arguments)

    monkeypatch.setattr(TableOpener, "find", refuse)
    code, out, _ = run(["lint", "--format", "json"], folder, capsys)
    assert code == 0
    [note] = json.loads(out)["notes"]
    assert note.startswith("whether an import is not finished cannot be told: the run failed while looking for")
