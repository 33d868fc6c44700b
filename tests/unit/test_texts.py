"""A result prints in a notebook as its command does, without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import routing
from routing import cli
from tests.estate_rows import small_estate
from tests.stored import config_of, config_text, save_estate
from tests.unit.test_messages_command import made

AT = datetime(2026, 1, 5, 13, tzinfo=timezone.utc)
IN_A_PIPE = 200
SCRIPT = "USE Sales; DROP ROUTE Far; DROP ROUTE Gone; ALTER ROUTE Store WITH ADDRESS = 'TCP://store.example:4022';"


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the small estate with a configuration and a script. Tests must not change it."""
    folder = tmp_path_factory.mktemp("estate")
    save_estate(small_estate(), folder)
    (folder / "config.yaml").write_text(config_text(folder, folder), encoding="utf-8")
    (folder / "change.sql").write_text(SCRIPT, encoding="utf-8")
    return folder


def _asked_by_hand(config: routing.Config, what: str, folder: Path) -> Any:
    asked: dict[str, Callable[[], Any]] = {
        "explain": lambda: routing.explain(config, routing.StoredMessage("m1")),
        "trace": lambda: routing.trace(config, routing.StoredMessage("m1")),
        "diff": lambda: routing.diff(config, routing.Scripts([str(folder / "change.sql")], "hub"), at=AT),
    }
    return asked[what]()


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("explain", ["--message-id", "m1"]),
        ("trace", ["--message-id", "m1"]),
        ("diff", ["--with-script", "change.sql", "--instance", "hub", "--at", "2026-01-05T13:00:00Z"]),
    ],
)
def test_a_result_prints_like_its_command(
    what: str, line: list[str], estate: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(estate)
    assert cli.main([what, "--config", "config.yaml", *line, "--width", str(IN_A_PIPE)]) == 0
    config = routing.load_config("config.yaml")
    told = routing.text_of(_asked_by_hand(config, what, estate), width=IN_A_PIPE)
    assert len(told.splitlines()) > 5
    assert [text.rstrip() for text in capsys.readouterr().out.splitlines()] == told.splitlines()


def test_messages_print_like_their_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path)
    file = str(tmp_path / "job.yaml")
    assert (
        cli.main(
            [
                "messages",
                "--config",
                file,
                "--reason",
                "NO_ROUTE",
                "--now",
                "2026-01-05T13:00:00Z",
                "--width",
                "200",
            ]
        )
        == 0
    )
    printed = [text.rstrip() for text in capsys.readouterr().out.splitlines()]
    config, asked = routing.load_config(file), routing.ask(reasons=["no_route"])
    listed = routing.list_messages(config, asked, now=AT)
    assert listed.total == 4
    assert routing.text_of(listed, width=IN_A_PIPE).splitlines() == printed


def test_a_table_fits_its_width(tmp_path: Path) -> None:
    made(tmp_path)
    listed = routing.list_messages(routing.load_config(str(tmp_path / "job.yaml")), routing.ask(), now=AT)
    tables = routing.text_of(listed, width=100).partition("\n\nWhat SQL Server said")[0]
    assert 80 < max(map(len, tables.splitlines())) <= 100
    # Nothing is lost: an id goes on in the next line.
    assert set(re.findall(r"(?<!\w)[ao]\d(?!\w)", tables)) == {"a1", "a2", "a3", "a4", "a5", "a7", "o1"}


def test_explain_takes_the_tables_of_both_sides_of_a_diff(estate: Path) -> None:
    config = config_of(estate, estate)
    script = """USE Sales;
        DROP ROUTE Far;
        CREATE ROUTE Far WITH SERVICE_NAME = '//far', ADDRESS = 'TCP://near.example:4022';"""
    done = routing.diff(config, routing.Scripts.of_text(script, "hub"), at=AT)
    question = routing.StoredMessage("m3", at=AT)
    tables = routing.open_tables(config)
    before, after = (
        routing.explain({**tables, **side.to_arrow()}, question) for side in (done.before, done.after)
    )
    ends = [(row["address"], row["reason"]) for told in (before, after) for row in told.verdict]
    assert ends == [("TCP://far.example:4022", "MIRROR_ADDRESS"), ("TCP://near.example:4022", "NETWORK_ADDRESS")]
    assert before == routing.explain(config, question)
