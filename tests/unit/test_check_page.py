"""The page of a check: messages by result, gaps, and the effects of scripts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from routing.document import LabelledFact, SqlStatement
from routing.views.check.check_report import as_report
from routing.views.check.checking import check
from routing.views.page.facts import EstateInstance, MessageFlow, Report, RouteChange, WordCount
from routing.views.page.report_page import render
from tests.exported import endpoint, export, route, waiting, whole_shop

# 2026-01-05T12:00:00Z and 18:00:00Z.
NOON, EVENING = 1_767_614_400_000_000, 1_767_636_000_000_000
MINUTE = 60_000_000
QUEUE = [waiting(3, "//stock"), waiting(1, "//mine"), waiting(2, "//mine"), waiting(5, "//orders")]
MINE = "USE Orders;\nGO\nCREATE ROUTE Mine WITH SERVICE_NAME = '//mine', ADDRESS = 'TCP://mine:4022';\nGO\n"


def report(folder: Path, *then: str) -> Report:
    return as_report(check([str(folder)], then=then, instance="SHOP"))


def counts(found: object) -> dict[str, tuple[int, int]]:
    assert isinstance(found, list)
    assert all(isinstance(one, WordCount) for one in found)
    return {one.word: (one.before, one.now) for one in found}


def test_messages_are_counted_by_sender_service_and_result(tmp_path: Path) -> None:
    shown = report(whole_shop(tmp_path, QUEUE))
    nowhere = ("AutoCreatedLocal", None, None)
    assert shown.flows == (
        MessageFlow(
            *("SHOP", "Orders", "//mine", "DELAYED", "SERVICE_NOT_FOUND", *nowhere, 2, NOON + MINUTE),
            *("DELAYED", None, "SHOP"),
        ),
        MessageFlow(
            *("SHOP", "Orders", "//stock", "SENT", "NETWORK_ADDRESS", "ToStock", "TCP://hub.example:4022", None),
            messages=1,
            oldest=NOON + 3 * MINUTE,
            # Nobody knows who listens at the address.
            ending="NOT_KNOWN",
        ),
        MessageFlow(
            *("SHOP", "Orders", "//orders", "DELIVERED", "LOCAL_SERVICE", "AutoCreatedLocal", "LOCAL", "Orders"),
            messages=1,
            oldest=NOON + 5 * MINUTE,
            ending="DELIVERED",
            ending_instance="SHOP",
        ),
    )
    assert shown.outcomes == {"DELAYED": 2, "DELIVERED": 1, "SENT": 1}
    assert shown.endings == {"DELAYED": 2, "DELIVERED": 1, "NOT_KNOWN": 1}
    assert shown.made_at == EVENING
    assert shown.places == (EstateInstance("SHOP", ("tcp://SHOP:4022",), ("Orders", "msdb")),)
    assert (shown.series, shown.balances, shown.coverage, shown.changes) == (None, None, None, None)
    assert shown.answer is not None
    assert shown.answer.startswith("2 of 4 messages are stuck ")
    assert shown.headline.startswith("4 messages in the transmission queues as of 2026-01-05T18:00:00Z: ")


def test_a_message_without_a_verdict_names_the_needed_exports(tmp_path: Path) -> None:
    folder = whole_shop(tmp_path, QUEUE, [endpoint(1), endpoint(2), endpoint(5)], routes=None)
    shown = report(export(folder, "HUB", transmission_queue={"Hub": []}))
    assert shown.outcomes == {"NOT_KNOWN": 4}
    unknown = (None, None, None, None)
    asked = MessageFlow("SHOP", "Orders", "//mine", "NOT_KNOWN", *unknown, 2, NOON + MINUTE, "NOT_KNOWN")
    assert asked in shown.flows
    assert "'SHOP', database 'Orders': its routes are not known; export sys.routes" in shown.not_known
    assert "'HUB': only the name of the instance is known; export sys.databases" in shown.not_known
    assert EstateInstance("HUB", (), ()) in shown.places


def test_unreadable_rows_are_reported(tmp_path: Path) -> None:
    shown = report(whole_shop(tmp_path, [*QUEUE, waiting(6, "//stock", enqueue_time="yesterday")]))
    [told] = [sentence for sentence in shown.not_known if sentence.startswith("rejected: ")]
    assert "yesterday" in told
    [note] = [sentence for sentence in shown.not_known if sentence.startswith("note: ")]
    assert "4 messages have a blank transmission_status" in note


def test_messages_of_a_failing_connection_end_there(tmp_path: Path) -> None:
    refused = "Connection attempt failed with error: '10061'."
    queue = [waiting(1, "//stock", transmission_status=refused), waiting(2, "//stock")]
    shown = report(whole_shop(tmp_path, queue))
    assert shown.endings == {"CONNECTION_FAILS": 2}
    assert shown.problems is not None
    assert [one.ending for one in shown.problems] == ["CONNECTION_FAILS"]


def test_problems_are_those_that_check_prints_each_with_its_statement(tmp_path: Path) -> None:
    orders = {"msdb": [route("AutoCreatedLocal")], "Orders": [route("ToMine", "//Mine", "TCP://mine:4022")]}
    refused = "Connection attempt failed with error: '10061'."
    queue = [waiting(1, "//mine"), waiting(2, "//mine"), waiting(3, "//orders")]
    orders["Orders"].append(route("ToStock", "//stock", "TCP://hub.example:4022"))
    shown = report(
        whole_shop(tmp_path, [*queue, waiting(4, "//stock", transmission_status=refused)], routes=orders)
    )
    assert shown.problems is not None
    mine, local, trouble = shown.problems
    assert mine.title == "1. DELAYED, NO_ROUTE: 2 messages from 'SHOP', database 'Orders' to service '//mine'"
    assert [one.label for one in mine.blocks if isinstance(one, LabelledFact)][:2] == ["the oldest waits", "why"]
    assert [one.text for one in mine.blocks if isinstance(one, SqlStatement)] == [
        "USE [Orders];\nALTER ROUTE [ToMine] WITH SERVICE_NAME = N'//mine';"
    ]
    assert mine.evidence
    assert "'//orders'" in local.title
    [mended] = [one.text for one in trouble.blocks if isinstance(one, SqlStatement)]
    assert mended.endswith("\n-- ALTER ENDPOINT [<endpoint>] STATE = STARTED;")


def test_findings_are_all_that_lint_has(tmp_path: Path) -> None:
    shown = report(whole_shop(tmp_path, QUEUE))
    assert shown.findings is not None
    assert ("SBR036", "info", "SHOP", "msdb", "AutoCreatedLocal") in [
        (row["code"], row["severity"], row["instance_name"], row["database_name"], row["object"])
        for row in shown.findings
    ]


def test_the_page_has_statements_as_text_and_each_table_that_its_script_fills(tmp_path: Path) -> None:
    queue = [*QUEUE, waiting(7, "//br<b>ken")]
    page = render(report(whole_shop(tmp_path, queue)))
    script = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert script is not None
    filled = json.loads(script[1])["cells"]["tables"]
    assert len(filled) > 2
    assert "<pre>" in page
    assert "//br&lt;b&gt;ken" in page
    assert "<b>ken" not in page
    assert [name for name in filled if f'<table id="{name}"' not in page] == []


@pytest.fixture
def tried(tmp_path: Path) -> Report:
    file = tmp_path / "fix.sql"
    file.write_text(MINE)
    no_service = "The target service could not be found."
    told = [{**row, "transmission_status": no_service} for row in QUEUE if row["to_service_name"] == "//mine"]
    rest = [row for row in QUEUE if row["to_service_name"] != "//mine"]
    return report(whole_shop(tmp_path / "shop", [*told, *rest]), str(file))


def test_with_a_script_to_try_the_page_shows_its_results(tried: Report) -> None:
    assert tried.outcomes == {"SENT": 3, "DELIVERED": 1}
    assert ("Mine", 2) in [(flow.route, flow.messages) for flow in tried.flows]
    assert "1 DELIVERED, 3 SENT; with " in tried.headline
    assert tried.answer is not None
    assert tried.answer.startswith("With fix.sql: 2 of 2 stuck messages would be sent. Then: ")
    assert tried.headline.startswith("4 messages in ")
    assert tried.headline.endswith("fix.sql applied")
    assert tried.problems is not None
    # What waited for a service is mended; what was sent before is not acknowledged still.
    assert not any("DELAYED" in one.title for one in tried.problems)


def test_changes_by_a_script_are_shown_beside_the_old_results(tried: Report) -> None:
    changes = tried.changes
    assert changes is not None
    assert (changes.run_id, changes.finished_at) == (None, None)
    assert counts(changes.outcomes) == {"DELAYED": (2, 0), "DELIVERED": (1, 1), "NOT_KNOWN": (1, 3)}
    assert counts(changes.reasons) == {
        "LOCAL_SERVICE": (1, 1),
        "NETWORK_ADDRESS": (1, 3),
        "SERVICE_NOT_FOUND": (2, 0),
    }
    expected = "service //mine, address TCP://mine:4022"
    assert changes.routes == (RouteChange("SHOP", "Orders", "Mine", "ADDED", expected),)
