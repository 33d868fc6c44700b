"""``sbroute check``: its output, its exit codes, and that it needs only this package and sqlglot."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from tests.check_texts import UNWRAPPED
from tests.exported import conversation, endpoint, handle, route, waiting, whole_shop
from tests.golden_texts import assert_golden
from tests.pages import ROOT
from tests.without import SPARK, without

EXAMPLES = ("conf/examples/exports", "conf/examples/scripts/hub.sql")
FIX = ("--then", "conf/examples/scripts/shop-fix.sql")
ASKED = "SQL/ServiceBroker/BrokerConfiguration"
BILLING = "c0000001-5555-4000-8000-000000000001"


@pytest.fixture(autouse=True)
def _in_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """Return the command's output, or its error."""
    assert cli.main(["check", *arguments]) == status
    out, err = capsys.readouterr()
    return out if status in (0, 1) else err


def shop(folder: Path, *queue: dict[str, Any], **views: Any) -> str:
    return str(whole_shop(folder, list(queue), **views))


def test_output_of_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    output = run(capsys, *EXAMPLES, *FIX)
    assert_golden("check_examples.txt", output)


def test_all_also_lists_messages_on_their_way(capsys: pytest.CaptureFixture[str]) -> None:
    line = "SQL Server reports no trouble about 2 messages on the way (--all lists them)."
    assert line in run(capsys, *EXAMPLES, *UNWRAPPED)
    line = run(capsys, *EXAMPLES, "--all", *UNWRAPPED)
    assert "message 'c0000007-5555-4000-8000-000000000001:T:0:StockA'" in line


def test_html_writes_a_page_and_prints_the_answer(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("what stood there")
    assert cli.main(["check", *EXAMPLES, *FIX, "--html", str(page), "--fail-on", "delayed"]) == 0
    out, err = capsys.readouterr()
    assert_golden("check_examples.txt", out)
    assert f"the page is '{page}'" in err
    page_text = page.read_text(encoding="utf-8").replace("<wbr>", "")
    for words in (
        "With shop-fix.sql: 4 of 6 stuck messages would be sent.",
        "8 SENT; with conf/examples/scripts/shop-fix.sql applied",
        "What the scripts change",
        "//billing",
    ):
        assert words in page_text


@pytest.mark.parametrize(
    ("file", "why"),
    [("nowhere/page.html", "there is no such folder"), (".", "it is"), ("page.html/x", "there is no such folder")],
)
def test_a_page_that_cannot_be_written_is_refused_before_anything_is_read(
    file: str, why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    output = run(capsys, "no-such-exports", "--html", str(tmp_path / file), status=2)
    assert f"cannot be written: {why}" in output


def test_a_page_reports_missing_packages_at_once(tmp_path: Path) -> None:
    done = without(("jinja2",), "check", "no-such-exports", "--html", str(tmp_path / "page.html"))
    assert done.returncode == 2
    assert "the Python package jinja2 is missing (in a clone: pip install '.[report]')" in done.stderr


def test_the_packages_of_the_page_are_needed_only_for_it() -> None:
    done = without((*SPARK, "jinja2", "altair", "vl_convert", "pyarrow"), "check", *EXAMPLES)
    assert (done.returncode, done.stderr) == (0, "9 files read, 0 skipped, 0 rows refused\n")


KEYS = (
    "read",
    "notes",
    "not_known",
    "refused",
    "decided_at",
    "refused_messages",
    "unread_queues",
    "messages",
    "outcomes",
    "ends",
    "groups",
    "troubles",
    "findings",
    "other_findings",
    "then",
)


def keys_of(value: Any) -> Iterator[str]:
    """Return every key of an object and its nested objects, except for names from the data."""
    if isinstance(value, list):
        for each in value:
            yield from keys_of(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from (
                ()
                if key in ("rows", "decided_at", "outcomes", "ends", "agreements", "other_findings")
                else keys_of(each)
            )


def test_times_have_one_form_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    times = r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d[^\"]*"
    for options in (FIX, ("--message", BILLING), ("--at", "2026-01-05T17:00:00")):
        printed = run(capsys, *EXAMPLES, *options, "--format", "json")
        shown_times = re.findall(rf'"({times})"', printed)
        assert len(shown_times) > 3
        assert [text for text in shown_times if not re.fullmatch(r"[\d-]+T[\d:.]+Z", text)] == []
        assert "+00:00" not in printed


def test_one_object_whose_keys_are_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = json.loads(run(capsys, *EXAMPLES, *FIX, "--format", "json"))
    assert tuple(done) == KEYS
    assert done["outcomes"] == {"SENT": 8}
    assert done["then"]["before"]["outcomes"] == {"SENT": 4, "DELAYED": 4}
    assert sum(len(group["messages"]) for group in done["groups"]) == done["messages"] == 8
    assert [(change["effect"], change["count"]) for change in done["then"]["changes"]] == [("mended", 4)]
    unknown = json.loads(run(capsys, shop(tmp_path, waiting(1, "//a"), routes=None), "--format", "json"))
    page = (ROOT / "docs/reference/json.md").read_text(encoding="utf-8")
    names = {*keys_of(done), *keys_of(unknown)}
    findings = {"code", "severity", "object", "message", "error_number"}
    assert [name for name in sorted(names - findings) if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    "asked",
    [
        f"{BILLING}:I:0:Orders",
        f"{BILLING}:I:0:ORDERS",
        f"{BILLING}:I:0",
        BILLING,
        BILLING.upper(),
        "{e0000001-5555-4000-8000-000000000002}",
    ],
)
def test_one_message_by_any_of_its_ids(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = run(capsys, *EXAMPLES, "--message", asked, *UNWRAPPED)
    assert output.startswith(f"Message '{BILLING}:I:0:Orders' is stuck, like 3 other messages: DELAYED, ")
    assert f"message '{BILLING}:I:0:Orders' sent from 'Orders'" in output
    assert "DELAYED, SERVICE_NOT_FOUND, route 'AutoCreatedLocal' (SQL Server's number: 9796)" in output
    [explained] = json.loads(run(capsys, *EXAMPLES, "--message", asked, "--format", "json"))["explained"]
    assert explained["verdict"]["message_id"] == f"{BILLING}:I:0:Orders"


def test_one_message_without_a_verdict_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shop(tmp_path, waiting(1, "//a"), routes=None)
    text = run(capsys, folder, "--message", conversation(1), *UNWRAPPED)
    assert text.startswith(f"Message '{conversation(1)}:I:0:Orders' waits; ")
    for part in ("NOT_KNOWN, from 'SHOP'", "waiting: 5 h 59 min, since 2026-01-05T12:01:00Z", "export sys.routes"):
        assert part in text
    answer = json.loads(run(capsys, folder, "--message", handle(1), "--format", "json"))
    assert [gap["code"] for gap in answer["explained"][0]["not_known"]] == ["ROUTES"]


def test_both_endpoints_of_a_conversation_are_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = endpoint(2, conversation_id=conversation(1), is_initiator=0)
    folder = shop(
        tmp_path, waiting(1, "//a"), waiting(2, "//b"), waiting(2, "//b", 1), dialogs=[endpoint(1), target]
    )
    output = run(capsys, folder, "--message", conversation(1))
    assert f"message '{conversation(1)}:I:0:Orders'" in output
    assert f"message '{conversation(1)}:T:0:Orders'" in output
    assert f"{conversation(1)}:T:1" not in output
    assert f"{conversation(1)}:I:0" not in run(capsys, folder, "--message", handle(2))


@pytest.mark.parametrize(
    ("views", "codes", "expected"),
    [
        ({}, ["SBR043"], "and reaches no such service: the message waits forever"),
        ({"services": {"msdb": [], "Orders": [{"name": ASKED}]}}, [], "it arrives in database 'Orders' of 'SHOP'"),
        ({"services": None}, [], "on 'SHOP' the facts that decide its outcome are incomplete"),
    ],
    ids=["nobody holds the service", "Orders holds it", "services that were not exported"],
)
def test_the_path_of_a_request_for_a_route_is_shown(
    views: dict[str, Any], codes: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the messages that wait for it, and in the explanation of one of them."""
    asks = {"msdb": [route("AutoCreatedLocal")], "Orders": [route("Ask", ASKED)]}
    folder = shop(tmp_path, waiting(1, "//nobody"), **{"routes": asks, **views})
    [group] = json.loads(run(capsys, folder, "--format", "json"))["groups"]
    assert group["reason"] == "ROUTE_REQUESTED"
    assert [one["code"] for one in group["findings"]] == codes
    assert expected in run(capsys, folder, "--message", conversation(1), *UNWRAPPED)


DELAYED, SENT = ("//nobody",), ("//stock",)
LINTED = {
    "Orders": [
        route("AutoCreatedLocal"),
        route("Bad", "//stock", "TCP://a:1", mirror_address="TCP://a:1", broker_instance="X"),
    ]
}
# The queue, views, what to fail on, and the exit code.
FAILING = [
    (DELAYED, {}, ["delayed"], 1),
    (SENT, {}, ["delayed"], 0),
    (DELAYED, {}, ["dropped"], 0),
    (DELAYED, {}, ["dropped", "delayed"], 1),
    (DELAYED, {"routes": None}, ["delayed"], 0),
    (DELAYED, {"routes": None}, ["not-known"], 1),
    (SENT, {}, ["not-known", "error", "warning"], 0),
]


@pytest.mark.parametrize(("services", "views", "what", "status"), FAILING)
def test_fail_on_sets_the_exit_code(
    services: tuple[str, ...],
    views: dict[str, Any],
    what: list[str],
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = shop(tmp_path, *(waiting(number, service) for number, service in enumerate(services)), **views)
    run(capsys, folder, *(part for each in what for part in ("--fail-on", each)), status=status)


def test_findings_about_waiting_messages_count_for_fail_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A route of the message's service has an unknown broker instance, which is a warning about its messages."""
    pinned = {
        "Orders": [
            route("AutoCreatedLocal"),
            route("Pinned", "//nobody", "LOCAL", broker_instance="b9b9b9b9-0000-4000-8000-000000000009"),
        ]
    }
    folder = shop(tmp_path, waiting(1, "//nobody"), routes=pinned)
    output = run(capsys, folder, "--fail-on", "warning", *UNWRAPPED, status=1)
    assert re.search(r"^  - lint: SBR0\d\d warning, 'SHOP', 'Orders', 'Pinned': ", output, re.MULTILINE)
    run(capsys, folder, "--fail-on", "error", status=0)


def test_fail_on_counts_messages_after_the_tried_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fix = tmp_path / "fix.sql"
    fix.write_text("USE Orders;\nGO\nCREATE ROUTE R WITH SERVICE_NAME = N'//nobody', ADDRESS = N'TCP://a:1';\n")
    folder = shop(tmp_path / "shop", waiting(1, "//nobody"))
    arguments = (folder, "--fail-on", "delayed", "--instance", "SHOP")
    run(capsys, *arguments, status=1)
    run(capsys, *arguments, "--then", str(fix), status=0)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("nowhere",), "'nowhere' cannot be read: there is no such file"),
        (("nowhere.sql", "conf/examples/exports"), "'nowhere.sql' cannot be read: No such file or directory"),
        (
            ("conf/examples/scripts/hub.sql",),
            "there is no transmission queue in 1 path: 'conf/examples/scripts/hub.sql'",
        ),
        ((*EXAMPLES, "--message", "x"), "no message of the transmission queues has the id 'x'"),
        ((*EXAMPLES, "--address", "hub"), "--address 'hub' is not tcp://HOST[:PORT]"),
        ((*EXAMPLES, "--at", "noon"), "--at: "),
        ((*EXAMPLES, "-v", "name"), "-v takes NAME=VALUE, not 'name'"),
    ],
)
def test_questions_without_an_answer(
    arguments: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in run(capsys, *arguments, status=2)


def test_neither_java_nor_any_table_is_needed() -> None:
    done = without((*SPARK, "pandas", "pyarrow", "deltalake"), "check", *EXAMPLES, *FIX)
    assert done.returncode == 0, done.stderr
    assert "mended: 4 messages from 'SHOP'" in done.stdout


def test_a_few_thousand_rows_take_about_two_seconds(tmp_path: Path) -> None:
    """The limit is for a whole process on one of two busy cores. Alone it takes about one second."""
    queue = [waiting(number % 2_000, f"//service/{number % 300}", number // 2_000) for number in range(5_000)]
    routes = [
        route(f"R{number}", f"//service/{number}", f"TCP://host{number}:4022") for number in range(0, 300, 2)
    ]
    numbers = sorted({int(row["conversation_handle"][1:8]) for row in queue})
    folder = shop(
        tmp_path,
        *queue,
        dialogs=[endpoint(each) for each in numbers],
        routes={"msdb": [], "Orders": [route("AutoCreatedLocal"), *routes]},
    )
    begun = time.monotonic()
    done = without((*SPARK, "pyarrow"), "check", folder)
    seconds = time.monotonic() - begun
    assert "5,000 messages in the transmission queues" in done.stdout
    assert seconds < 10, seconds


def test_problems_beyond_the_limit_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shop(tmp_path, *(waiting(number, f"//service/{number}") for number in range(45)))
    output = run(capsys, folder)
    assert "\n20. DELAYED" in output
    assert "\n21. DELAYED" not in output
    assert "\nand 25 more problems with 25 messages (--verbose lists all)\n" in output
    assert "\n45. DELAYED" in run(capsys, folder, "--verbose")
    assert len(json.loads(run(capsys, folder, "--format", "json"))["groups"]) == 45


@pytest.mark.parametrize("command", ["check", "lint"])
def test_a_script_of_nothing_but_a_missing_file_says_so(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = "line 1: the file 'missing.sql' of :r is not read: No such file or directory"
    file = tmp_path / "main.sql"
    file.write_text(":r missing.sql\n", encoding="utf-8")
    folder = shop(tmp_path / "shop", waiting(1, "//nobody"))
    status = cli.main([command, folder, str(file), *(UNWRAPPED if command == "check" else [])])
    out, err = capsys.readouterr()
    assert (expected in out + err, status) == (True, 2 if command == "check" else 0)
    lying = tmp_path / "shop" / "main.sql"
    file.rename(lying)
    assert cli.main([command, folder, *(UNWRAPPED if command == "check" else [])]) == 0
    out, err = capsys.readouterr()
    assert f"main.sql: not read, no T-SQL statement is found in it, {expected}" in out + err
