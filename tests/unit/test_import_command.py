"""``sbroute import``: help texts, errors before a table is opened, and the script of queries."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from routing.commands import command_context, import_, shared_arguments
from routing.config import ConfigError
from routing.errors import ContractError
from tests.screens import Busy
from tests.stored import job_without_tables

SPRING = ("--exported-at", "2026-03-29T02:30", "--time-zone", "Europe/Berlin")
AUTUMN = "2026-10-25 02:30:00 occurred twice, and the earlier time 2026-10-25T00:30:00Z is used"


class Screen(Busy):
    """Stores a command's output."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[Any] = []
        self.notes: list[str] = []

    def result(self, what: Any) -> None:
        self.results.append(what)

    def note(self, text: str, level: str = "info") -> None:
        self.notes.append(text)


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    return cli._parser()


def run(parser: argparse.ArgumentParser, *arguments: str) -> Screen:
    screen = Screen()
    assert import_.run(parser.parse_args(["import", *arguments]), screen) == 0
    return screen


def refused(parser: argparse.ArgumentParser, *arguments: str) -> str:
    with pytest.raises(ContractError) as caught:
        run(parser, *arguments)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_the_queries_are_printed(parser: argparse.ArgumentParser) -> None:
    (script,) = run(parser, "queries").results
    assert script.startswith("-- Exports what")
    assert script.endswith("LEFT JOIN @errors AS e ON 1 = 1;")


def test_the_queries_leave_people_out_and_limit_endpoints(parser: argparse.ArgumentParser) -> None:
    (script,) = run(parser, "queries").results
    assert "SET @most = 1000000;" in script
    people = (
        "SUSER_SNAME(v.owner_sid), v.state_desc",
        "v.principal_name",
        "v.remote_user_name",
        "xp_readerrorlog 0",
    )
    assert [words for words in people if words not in script] == []
    (script,) = run(parser, "queries", "--no-people", "--most-endpoints", "5").results
    assert "SET @most = 5;" in script
    assert [words for words in people if words in script] == []


@pytest.fixture
def config(tmp_path: Path) -> str:
    return str(job_without_tables(tmp_path))


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def session(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(command_context, "session", session)


def test_arguments_refused_before_a_table_is_opened(
    parser: argparse.ArgumentParser, config: str, tmp_path: Path
) -> None:
    routes = tmp_path / "routes.csv"
    routes.write_text("name,address\nr,LOCAL\n", encoding="utf-8")
    script = tmp_path / "s.sql"
    script.write_text("", encoding="utf-8")
    for name, data in (
        ("prose.txt", b"We don't need\nthat route."),
        ("routes.tsv", b"name\taddress\nr\tLOCAL\n"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    ):
        (tmp_path / name).write_bytes(data)
    whose = ("--config", config, "--instance", "hub", "--database", "db")
    for arguments, why in (
        (("catalog", str(routes), *whose), "has no column exported_at (give --exported-at)"),
        (
            ("catalog", str(routes), *whose, "--exported-at", "noon"),
            "--exported-at: 'noon' is not an ISO 8601 time",
        ),
        (("catalog", str(routes), *whose, "--address", "hub"), "--address 'hub' is not tcp://HOST[:PORT]"),
        (("catalog", str(routes), *whose, "--date-format", "%d.%m.%Y"), "has 'Y', which has no meaning"),
        (
            ("catalog", str(routes), *whose, "--time-zone", "Berlin"),
            "'Berlin' is not a time zone, did you mean Europe/",
        ),
        (
            ("catalog", str(routes), *whose, *SPRING),
            "--exported-at: 2026-03-29 02:30:00 does not exist in Europe/Berlin",
        ),
        (("catalog", str(tmp_path / "no"), *whose), "there is no such file"),
        (("tsql", str(tmp_path / "no.sql"), *whose), "No such file"),
        (("tsql", str(script), *whose), "no T-SQL statement is found in"),
        (
            ("tsql", str(tmp_path / "prose.txt"), *whose),
            "(line 1: the line is prose, not T-SQL: remove the line",
        ),
        (("tsql", str(tmp_path / "routes.tsv"), *whose), "no T-SQL statement is found in"),
        (("tsql", str(tmp_path / "picture.png"), *whose), "cannot be read: it is not text"),
        (("tsql", str(script), *whose, "-v", "x"), "-v takes NAME=VALUE, not 'x'"),
        (("tsql", str(script), *whose, "--scripted-at", "noon"), "--scripted-at: 'noon'"),
    ):
        assert why in refused(parser, *arguments)


@pytest.mark.parametrize(
    ("text", "zone", "at", "notes"),
    [
        ("2026-07-05T14:00", "Europe/Berlin", "2026-07-05T12:00:00+00:00", []),
        ("2026-07-05T14:00Z", "Europe/Berlin", "2026-07-05T14:00:00+00:00", []),
        ("2026-07-05T14:00+01:00", None, "2026-07-05T13:00:00+00:00", []),
        (
            "2026-07-05T14:00",
            None,
            "2026-07-05T14:00:00+00:00",
            ["--exported-at '2026-07-05T14:00' has no time zone and is read as UTC (--time-zone)"],
        ),
        (
            "2026-10-25T02:30",
            "Europe/Berlin",
            "2026-10-25T00:30:00+00:00",
            [f"--exported-at: {AUTUMN}"],
        ),
    ],
)
def test_the_time_of_an_export_on_a_clock(text: str, zone: str | None, at: str, notes: list[str]) -> None:
    from routing.importing.catalog.cell_values import time_zone

    screen = Screen()
    moment = shared_arguments.moment_on_clock(
        text, "--exported-at", None if zone is None else time_zone(zone), screen
    )
    assert moment is not None
    assert (moment.isoformat(), screen.notes) == (at, notes)


def test_keys_that_import_needs(config: str) -> None:
    from routing import load_config
    from routing.importing.stored_tables import open_stored
    from tests.imports import no_spark

    with pytest.raises(ConfigError) as caught:
        open_stored(no_spark(), load_config(config), ["routes", "dialogs", "imports"])
    assert "2 faults: tables.dialogs is missing, which import writes; tables.imports is" in str(caught.value)


@pytest.mark.parametrize(
    "line", ["catalog there --config job.yaml", "tsql there --config job.yaml --instance hub"]
)
def test_without_the_package_of_its_extra(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As Python marks a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    assert cli.main(["import", *line.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == ("sbroute: the Python package sqlglot is missing (in a clone: pip install '.[import]')\n")
