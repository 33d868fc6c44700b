"""The first lines of `check` in widths and colours, and its statements without the rest."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from routing.importing.tsql.script_reader import read_script
from routing.render.text import write_text
from routing.views.check.check_report import make_document
from routing.views.check.checking import check
from tests.check_texts import lines_to_run
from tests.exported import conversation, database, endpoint, route, waiting, whole_shop
from tests.golden_texts import assert_golden
from tests.pages import ROOT

REFUSED = "Connection attempt failed with error: '10061(No connection could be made.)'."
OWNER = "An exception occurred while enqueueing a message in the target queue. Error: 15517, State: 1."
BUSY = "Target queue is busy; message(s) queued for delivery."
NOW: dict[str, Any] = {"enqueue_time": "2026-01-05T17:59:00"}
CLIENTS = [f"SqlQueryNotificationService-{number}" for number in (1, 2)]
OFF = {"databases": [database("msdb", "d4d4d4d4", 4), database("Orders", "0d0d0d0d", is_enabled=0)]}


def many(service: str, number: int, **columns: Any) -> list[dict[str, Any]]:
    return [waiting(each, f"{service}{each}", **columns) for each in range(1, number + 1)]


# Messages, and views that replace SHOP's.
ANSWERS: dict[str, Any] = {
    "nothing waits": ([], {}),
    "one, all well": ([waiting(1, "//stock", **NOW)], {}),
    "all well": ([waiting(1, "//stock", **NOW), waiting(2, "//orders", **NOW)], {}),
    "one is stuck": ([waiting(1, "//nobody")], {}),
    "stuck for two reasons": (
        [waiting(1, "//nobody"), waiting(2, "//none"), waiting(3, "//none"), waiting(4, "//stock", **NOW)],
        {},
    ),
    "a connection fails": ([waiting(1, "//stock", transmission_status=REFUSED), waiting(2, "//stock", **NOW)], {}),
    "one is stuck and a connection fails": (
        [waiting(1, "//nobody"), waiting(2, "//stock", transmission_status=REFUSED)],
        {},
    ),
    "the owner of the database": (
        [waiting(1, "//orders", transmission_status=OWNER), waiting(2, "//orders", **NOW)],
        {},
    ),
    "a busy queue": ([waiting(1, "//orders", transmission_status=BUSY)], {}),
    "not acknowledged": ([waiting(1, "//stock"), waiting(2, "//stock", **NOW)], {}),
    "nothing is known": ([waiting(1, "//a"), waiting(2, "//b")], {"routes": None}),
    "a queue alone": (
        [waiting(1, "//a")],
        {"routes": None, "services": None, "databases": None, "service_broker_endpoints": None},
    ),
    "trouble, and nothing is known": ([waiting(1, "//a", transmission_status=OWNER)], {"routes": None}),
    "an expired dialog": (
        [waiting(1, "//stock")],
        {"conversation_endpoints": {"Orders": [endpoint(1, lifetime="2026-01-05T17:00:00")]}},
    ),
    "a broker that is off keeps all services": (many("//service/", 59), OFF),
    "a service each": (many("//service/", 59), {}),
}


def test_the_first_line_answers(tmp_path: Path) -> None:
    told = []
    for number, (name, (queue, views)) in enumerate(ANSWERS.items()):
        dialogs = views.get("conversation_endpoints", {}).get("Orders")
        done = check([str(whole_shop(tmp_path / str(number), queue, dialogs, **views))])
        first, blank, second = write_text(make_document(done), width=1_000).split("\n")[:3]
        assert blank == ""
        assert second.startswith(f"{len(queue):,} message")
        told.append(f"{name}: {first}\n")
    assert_golden("check_first_lines.txt", "".join(told))


def test_groups_with_one_cause_are_one_problem_with_a_table(tmp_path: Path) -> None:
    done = check([str(whole_shop(tmp_path, many("//service/", 40), **OFF))])
    text = write_text(make_document(done), width=120)
    head = "1. DELAYED, SCOPE_BROKER_DISABLED: 40 messages from 'SHOP', database 'Orders' to 40 services"
    assert f"\n{head}\n" in text
    assert "\n2. " not in text
    assert text.count("ALTER DATABASE [Orders] SET ENABLE_BROKER WITH NO_WAIT") == 1
    assert "and 30 more rows" in text
    assert "SQL Server reports nothing for 40 messages, " in text


def test_reports_of_sql_server_on_several_services_are_counted_together(tmp_path: Path) -> None:
    routes = {"Orders": [route("Any", None, "TCP://hub.example:4022")], "msdb": [route("L")]}
    queue = [waiting(number, f"//{number % 2}", transmission_status=REFUSED) for number in range(5)]
    text = write_text(make_document(check([str(whole_shop(tmp_path, queue, routes=routes))])), width=1_000)
    assert text.startswith("5 of 5 messages are stuck for 1 reason: ")
    assert "fails: 5 messages from 'SHOP', database 'Orders' to 2 services\n" in text
    assert f"  why: SQL Server reports for 5 messages: 9754, '{REFUSED}'\n" in text
    assert "\n2. " not in text


CREATE = "USE Orders;\nGO\nCREATE ROUTE R WITH SERVICE_NAME = N'{}', ADDRESS = N'{}';\n"
# Services of messages, and a script.
TRIALS = {
    "all are sent": (["//a", "//a", "//stock"], CREATE.format("//a", "TCP://a:1")),
    "some are sent": (["//a", "//b"], CREATE.format("//a", "TCP://a:1")),
    "it does not help": (["//a"], CREATE.format("//b", "TCP://a:1")),
    "nothing was stuck": (["//stock"], CREATE.format("//b", "TCP://a:1")),
    "it makes things worse": (["//stock", "//stock"], "USE Orders;\nGO\nDROP ROUTE ToStock;\n"),
    "it helps one and hurts another": (
        ["//a", "//stock"],
        f"{CREATE.format('//a', 'TCP://a:1')}GO\nDROP ROUTE ToStock;\n",
    ),
}


def test_changes_by_a_script_come_first(tmp_path: Path) -> None:
    told, file = [], tmp_path / "fix.sql"
    for place, (name, (services, script)) in enumerate(TRIALS.items()):
        file.write_text(script)
        queue = [waiting(number, service, **NOW) for number, service in enumerate(services)]
        folder = whole_shop(tmp_path / str(place), queue)
        done = check([str(folder)], then=[str(file)], instance="SHOP")
        first, _, second, *_ = write_text(make_document(done), width=1_000).split("\n")
        assert second.startswith("Then: ")
        told.append(f"{name}: {first}\n")
    assert_golden("check_with_a_script.txt", "".join(told))


EXAMPLES = ["conf/examples/exports", "conf/examples/scripts/hub.sql"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["check", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [40, 80, 120])
def test_only_lines_to_paste_are_wider_than_the_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    text = run(capsys, *EXAMPLES, "--width", str(width))
    assert_golden(f"check_width_{width}.txt", text)
    to_paste = ("    USE ", "    ALTER ROUTE ", "    -- ")
    assert [line for line in text.split("\n") if len(line) > width and not line.startswith(to_paste)] == []


def test_colours_are_never_in_statements(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    plain, coloured = run(capsys, *EXAMPLES), run(capsys, *EXAMPLES, "--color", "always")
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert "\x1b[1m6 of 8 messages are stuck for 2 reasons: 2 wait because a connection fails.\x1b[0m" in coloured
    assert "\n    USE [Orders];\n    ALTER ROUTE [ToBilling] WITH SERVICE_NAME = N'//billing';\n" in coloured
    assert "\x1b" not in run(capsys, *EXAMPLES, "--color", "always", "--format", "sql")


SQL = ("--format", "sql")


def test_printed_statements_run_unchanged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    text = run(capsys, *EXAMPLES, "--format", "sql")
    assert_golden("check_statements.txt", text)
    script = read_script(text, file="x", scripted_at=datetime(2026, 1, 5, tzinfo=timezone.utc), instance="SHOP")
    assert script.problems == ()
    assert [(type(one).__name__, one.database, one.name) for one in script.statements] == [
        ("AlterRoute", "Orders", "ToBilling")
    ]


def test_each_statement_occurs_once_and_declaring_batches_are_separate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = [waiting(number, name) for number, name in enumerate([*CLIENTS, *CLIENTS])]
    text = run(capsys, str(whole_shop(tmp_path, queue)), *SQL)
    assert text.count("DECLARE @handle uniqueidentifier;") == 2
    first, second, _ = text.split("\nGO\n")
    assert (CLIENTS[0] in first, CLIENTS[1] in second) == (True, True)
    assert text.count("\n:CONNECT SHOP\n") == 1
    script = read_script(text, file="x", scripted_at=datetime(2026, 1, 5, tzinfo=timezone.utc))
    assert script.problems == ()


@pytest.mark.parametrize(
    ("queue", "views"),
    [([], {}), ([waiting(1, "//stock", **NOW)], {}), ([waiting(1, "//a")], {"routes": None})],
    ids=["nothing waits", "all well", "nothing is known"],
)
def test_sql_without_statements_is_a_comment(
    queue: list[dict[str, Any]], views: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = run(capsys, str(whole_shop(tmp_path, queue, **views)), *SQL)
    assert text == "-- There is nothing to paste: no problem has a statement.\n"


def test_statements_for_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    routes = {"Orders": [route("A", "//A", "TCP://a:1"), route("B", "//B", "TCP://b:1")], "msdb": []}
    folder = whole_shop(tmp_path, [waiting(1, "//a"), waiting(2, "//b")], routes=routes)
    both = run(capsys, str(folder), "--format", "sql")
    assert (both.count("ALTER ROUTE [A]"), both.count("ALTER ROUTE [B]")) == (1, 1)
    one = run(capsys, str(folder), "--format", "sql", "--message", conversation(2))
    assert (one.count("ALTER ROUTE [A]"), one.count("ALTER ROUTE [B]")) == (0, 1)
    assert "\n-- Run this on 'SHOP'.\n-- DELAYED, NO_ROUTE: 1 message from 'SHOP', database 'Orders'" in one


def test_names_in_comments_are_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "$(x)\nDROP ROUTE r;\n${y}"
    routes = {"Orders": [route("L", f"{name}/", "TCP://a:1"), route("M", "//B", "TCP://b:1")], "msdb": []}
    text = run(capsys, str(whole_shop(tmp_path, [waiting(1, name), waiting(2, "//b")], routes=routes)), *SQL)
    assert lines_to_run(text) == ["USE [Orders];", "ALTER ROUTE [M] WITH SERVICE_NAME = N'//b';"]
    assert "$(" not in text
    assert "${" not in text
