"""Repeated `sbroute import tsql`: equal imports and the time of each script."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from routing.schemas import IMPORTS, Schema
from tests.imports import (
    KEYS,
    MONDAY,
    NOW,
    TUESDAY,
    UTC,
    WEDNESDAY,
    config_in,
    make_table,
    no_spark,
    place,
    rows_at,
)
from tests.stored import OUTPUTS

pytest.importorskip("deltalake")
CREATE = "CREATE ROUTE {} WITH ADDRESS = 'TCP://{}:4022'"
Import = Callable[..., dict[str, Any]]


@pytest.fixture
def bring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Import:
    """Runs `import tsql` for HUB and its database Shop: the result as JSON, with ``told``, its standard error."""
    tables = {key: f"data/{key}" for key in KEYS}
    config = {"tables": tables, "output": {key: f"out/{key}" for key in OUTPUTS}}
    (tmp_path / "job.yaml").write_text(json.dumps(config), encoding="utf-8")

    def run(*arguments: str, status: int = 0) -> dict[str, Any]:
        whose = ("--config", str(tmp_path / "job.yaml"), "--instance", "HUB", "--database", "Shop")
        assert cli.main(["import", "tsql", *whose, "--format", "json", *arguments]) == status
        out, err = capsys.readouterr()
        return {**(json.loads(out) if out else {}), "told": err}

    return run


def script(folder: Path, name: str, text: str, at: datetime = MONDAY) -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    os.utime(file, (at.timestamp(), at.timestamp()))
    return str(file)


def routes(folder: Path) -> set[tuple[Any, ...]]:
    columns = ("name", "address", "valid_from", "valid_to")
    return {tuple(row[name] for name in columns) for row in rows_at(place(folder, "routes"))}


def recorded(folder: Path) -> list[tuple[str, datetime]]:
    rows = rows_at(place(folder, "imports"))
    assert {row["kind"] for row in rows} == {"SCRIPT"}
    return sorted((row["view_or_file"], row["exported_at"]) for row in rows)


KNOWN = "it was already imported, so it is skipped"


def test_the_same_script_is_not_imported_twice(tmp_path: Path, bring: Import) -> None:
    file = script(tmp_path, "s.sql", CREATE.format("a", "a"))
    assert bring(file)["written"]["routes"] == {"added": 1}
    again = bring(file)
    assert again["written"]["routes"] == {}
    assert again["notes"] == [f"{file}: {KNOWN}"]
    assert recorded(tmp_path) == [("s.sql", MONDAY)]


INCLUDES = ":r part.sql\n"
VARIABLE = CREATE.format("a", "$(host)")


@pytest.mark.parametrize(
    ("first", "second", "first_options", "second_options"),
    [
        pytest.param(
            {"s.sql": CREATE.format("a", "a")},
            {"s.sql": CREATE.format("b", "b")},
            ["s.sql"],
            ["s.sql"],
            id="a-corrected-script",
        ),
        pytest.param(
            {"one/s.sql": CREATE.format("a", "a")},
            {"two/s.sql": CREATE.format("b", "b")},
            ["one/s.sql"],
            ["two/s.sql"],
            id="another-folder's",
        ),
        pytest.param(
            {"s.sql": INCLUDES, "part.sql": CREATE.format("a", "a")},
            {"part.sql": CREATE.format("b", "b")},
            ["s.sql"],
            ["s.sql"],
            id="a-corrected-file-of-r",
        ),
        pytest.param(
            {"s.sql": CREATE.format("$(name)", "b")},
            {},
            ["s.sql", "-v", "name=a"],
            ["s.sql", "-v", "name=b"],
            id="another-variable",
        ),
        pytest.param(
            {"s.sql": "USE Other\nGO\n" + CREATE.format("a", "a"), "t.sql": CREATE.format("b", "b")},
            {},
            ["s.sql"],
            ["t.sql"],
            id="another-name",
        ),
    ],
)
def test_another_script_of_the_same_time_is_imported(
    tmp_path: Path,
    bring: Import,
    first: dict[str, str],
    second: dict[str, str],
    first_options: list[str],
    second_options: list[str],
) -> None:
    at = ("--scripted-at", MONDAY.isoformat())
    for files, options in ((first, first_options), (second, second_options)):
        for name, text in files.items():
            script(tmp_path, name, text)
        file, *rest = options
        done = bring(str(tmp_path / file), *rest, *at)
        assert (done["written"]["routes"].get("added"), done["notes"], done["rejected"]) == (1, [], [])
        assert bring(str(tmp_path / file), *rest, *at)["notes"] == [f"{tmp_path / file}: {KNOWN}"]
    assert {row[0] for row in routes(tmp_path)} == {"a", "b"}


def test_a_script_is_imported_again_as_a_snapshot(tmp_path: Path, bring: Import) -> None:
    bring(script(tmp_path, "old.sql", CREATE.format("old", "old")))
    file = script(tmp_path, "s.sql", CREATE.format("a", "a"), TUESDAY)
    assert bring(file)["written"]["routes"] == {"added": 1, "unchanged": 1}
    assert bring(file, "--snapshot")["written"]["routes"] == {"closed": 1, "unchanged": 1}
    assert bring(file, "--snapshot")["notes"] == [f"{file}: {KNOWN}"]
    assert bring(file)["notes"] == [f"{file}: {KNOWN}"]
    assert ("old", "TCP://old:4022", None, TUESDAY) in routes(tmp_path)


def test_a_script_repeated_after_another_is_a_new_import(tmp_path: Path, bring: Import) -> None:
    there, gone = (
        script(tmp_path, f"{n}.sql", text) for n, text in (("a", CREATE.format("r", "r")), ("b", "DROP ROUTE r"))
    )
    for file, at in ((there, MONDAY), (gone, TUESDAY), (there, WEDNESDAY)):
        bring(file, "--scripted-at", at.isoformat())
    expected = {("r", "TCP://r:4022", None, TUESDAY), ("r", "TCP://r:4022", WEDNESDAY, None)}
    assert routes(tmp_path) == expected
    assert recorded(tmp_path) == [("a.sql", MONDAY), ("a.sql", WEDNESDAY), ("b.sql", TUESDAY)]
    # Each of the three is known from now on.
    for file, at in ((there, MONDAY), (gone, TUESDAY), (there, WEDNESDAY)):
        assert bring(file, "--scripted-at", at.isoformat())["notes"] == [f"{file}: {KNOWN}"]
    assert routes(tmp_path) == expected


def test_each_script_has_its_own_time(tmp_path: Path, bring: Import) -> None:
    first = script(tmp_path, "1.sql", CREATE.format("r", "one"), MONDAY)
    second = script(tmp_path, "2.sql", "ALTER ROUTE r WITH ADDRESS = 'TCP://two:4022'", TUESDAY)
    done = bring(first, second)
    assert done["written"]["routes"] == {"added": 1, "changed": 1}
    assert routes(tmp_path) == {("r", "TCP://one:4022", None, TUESDAY), ("r", "TCP://two:4022", TUESDAY, None)}
    assert recorded(tmp_path) == [("1.sql", MONDAY), ("2.sql", TUESDAY)]
    assert f"{first}: its time is 2026-01-05T12:00:00Z, the file's own (--scripted-at)" in done["told"]
    assert bring(first, second)["notes"] == [f"{file}: {KNOWN}" for file in (first, second)]


def test_an_earlier_time_becomes_that_of_the_script_before(tmp_path: Path, bring: Import) -> None:
    first = script(tmp_path, "1.sql", CREATE.format("r", "one"), TUESDAY)
    second = script(tmp_path, "2.sql", "ALTER ROUTE r WITH LIFETIME = 60, ADDRESS = 'TCP://two:4022'", MONDAY)
    third = script(tmp_path, "3.sql", CREATE.format("s", "s"), WEDNESDAY)
    done = bring(first, second, third)
    why = (
        "its own time, 2026-01-05T12:00:00Z, lies before that of the previous script, whose time is used,"
        " 2026-01-06T12:00:00Z (--scripted-at)"
    )
    assert done["notes"] == [f"{second}: {why}"]
    assert routes(tmp_path) == {("r", "TCP://two:4022", None, None), ("s", "TCP://s:4022", WEDNESDAY, None)}
    assert recorded(tmp_path) == [("1.sql", TUESDAY), ("2.sql", TUESDAY), ("3.sql", WEDNESDAY)]
    [lifetime] = {row["lifetime"] for row in rows_at(place(tmp_path, "routes"))} - {None}
    assert lifetime == datetime(2026, 1, 6, 12, 1, tzinfo=UTC)
    again = bring(first, second, third)["notes"]
    assert [note for note in again if KNOWN in note] == [f"{file}: {KNOWN}" for file in (first, second, third)]


def test_two_scripts_of_one_name_in_one_command(tmp_path: Path, bring: Import) -> None:
    files = [script(tmp_path, f"{name}/s.sql", CREATE.format(name, name)) for name in ("a", "b")]
    done = bring(*files)
    assert done["read"] == {
        "s.sql": {"statements": 1, "rejected": 0, "left_out": 0},
        files[1]: {"statements": 1, "rejected": 0, "left_out": 0},
    }
    assert {row[0] for row in routes(tmp_path)} == {"a", "b"}
    assert recorded(tmp_path) == [("s.sql", MONDAY), ("s.sql", MONDAY)]
    assert bring(*files)["notes"] == [f"{file}: {KNOWN}" for file in files]


def test_one_script_twice_in_one_command_is_imported_once(tmp_path: Path, bring: Import) -> None:
    file = script(tmp_path, "s.sql", CREATE.format("a", "a"))
    done = bring(file, file)
    assert (done["written"]["routes"], done["rejected"]) == ({"added": 1}, [])
    assert done["notes"] == [f"{file}: {KNOWN}"]


@pytest.mark.parametrize("name", ["routes", "databases", "transmission_queue"])
def test_a_script_named_like_a_view_is_a_script(tmp_path: Path, bring: Import, name: str) -> None:
    bring(script(tmp_path, name, CREATE.format("a", "a"), TUESDAY))
    older = script(tmp_path, "older.sql", "DROP ROUTE a", MONDAY)
    assert f"{name} of 2026-01-06T12:00:00Z was imported" in bring(older, status=2)["told"]
    # It was the first import of the instance's routes.
    bring(script(tmp_path, "later.sql", CREATE.format("b", "b"), WEDNESDAY))
    assert routes(tmp_path) == {("a", "TCP://a:4022", None, None), ("b", "TCP://b:4022", WEDNESDAY, None)}


def test_a_script_that_an_older_release_imported(tmp_path: Path, bring: Import) -> None:
    """It stored no digest: there the name and the time decide."""
    row = {
        "instance_name": "HUB",
        "database_name": "Shop",
        "view_or_file": "s.sql",
        "exported_at": MONDAY,
        "imported_at": TUESDAY,
    }
    make_table(place(tmp_path, "imports"), [row], Schema(IMPORTS.fields[:5]))
    file = script(tmp_path, "s.sql", CREATE.format("a", "a"))
    assert bring(file)["notes"] == [f"{file}: {KNOWN}"]
    assert rows_at(place(tmp_path, "imports")) == [row]
    assert bring(file, "--scripted-at", WEDNESDAY.isoformat())["written"]["routes"] == {"added": 1}
    imports = {(row["exported_at"], row["kind"]) for row in rows_at(place(tmp_path, "imports"))}
    assert imports == {(MONDAY, None), (WEDNESDAY, "SCRIPT")}


def test_no_value_of_a_variable_is_stored(tmp_path: Path, bring: Import) -> None:
    secret = "Pa55-word-of-a-login"
    text = "CREATE LOGIN x WITH PASSWORD = '$(password)'\nGO\n" + CREATE.format("a", "a")
    bring(script(tmp_path, "s.sql", text), "-v", f"password={secret}")
    stored = [file for file in (tmp_path / "data").rglob("*") if file.is_file()]
    assert stored
    assert not any(secret.encode() in file.read_bytes() for file in stored)
    assert {len(row["content_digest"]) for row in rows_at(place(tmp_path, "imports"))} == {64}


def test_times_of_scripts_read_separately_never_decrease(tmp_path: Path) -> None:
    """As the command reads them, which clamps their times while it reads."""
    from routing.importing.from_tsql import import_scripts
    from routing.importing.tsql.script_reader import read_script

    config = config_in(tmp_path)
    texts = {"1.sql": (CREATE.format("r", "one"), TUESDAY), "2.sql": (CREATE.format("s", "two"), MONDAY)}
    scripts = [
        read_script(text, file=name, instance="HUB", database="Shop", scripted_at=at)
        for name, (text, at) in texts.items()
    ]
    done = import_scripts(no_spark(), config, scripts, instance="HUB", now=NOW)
    assert [note.split(",")[0] for note in done.notes] == ["2.sql: its own time"]
    assert recorded(tmp_path) == [("1.sql", TUESDAY), ("2.sql", TUESDAY)]
