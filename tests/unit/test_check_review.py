"""check as a stranger reads it: claims that it must not make, and counts that must add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routing.cli import main
from routing.views.check.checking import check
from tests.check_texts import UNWRAPPED
from tests.exported import GUID, conversation, database, endpoint, handle, route, waiting, whole_shop

ORDERS = GUID.format("0d0d0d0d")
"""The broker instance of Orders."""
USE = "USE Orders;\nGO\n"
BILL = "CREATE ROUTE B WITH SERVICE_NAME = '//bill', ADDRESS = 'LOCAL';"
ANY = "CREATE ROUTE L WITH ADDRESS = 'LOCAL';\nGO\n"


def printed(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> str:
    assert main(["check", str(folder), *UNWRAPPED, *options]) == 0
    return capsys.readouterr().out


def of_json(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> Any:
    return json.loads(printed(capsys, folder, "--format", "json", *options))


def shop_by_script(folder: Path, script: str, *queue: dict[str, Any], **views: Any) -> list[tuple[str, list[str]]]:
    """Return outcomes and gaps if the routes of Orders are known only from a script."""
    whole_shop(folder, queue, routes={"msdb": [route("AutoCreatedLocal")]}, **views)
    (folder / "SHOP" / "routes.sql").write_text(USE + script)
    results = sorted(check([str(folder)]).results, key=lambda result: result.row["enqueue_time"])
    return [(result.case.outcome, [gap.missing.name for gap in result.case.gaps]) for result in results]


def test_an_implied_route_is_not_one_of_a_script(tmp_path: Path) -> None:
    """Step 6 comes after all routes of the table. The script has only one of them."""
    dialogs = [endpoint(1, far_broker_instance=ORDERS)]
    other = "CREATE ROUTE S WITH SERVICE_NAME = '//stock', ADDRESS = 'TCP://hub:4022';"
    assert shop_by_script(tmp_path, other, waiting(1, "//orders"), dialogs=dialogs) == [
        ("NOT_KNOWN", ["ALL_ROUTES"])
    ]


@pytest.mark.parametrize(
    ("statement", "outcome"),
    [
        ("CREATE ROUTE B WITH SERVICE_NAME = '//bill', ADDRESS = 'TCP://h:4022';", ("SENT", [])),
        # Which address it has is not known, and so it is not in force.
        ("CREATE ROUTE B WITH SERVICE_NAME = '//bill', ADDRESS = '$(a)';", ("NOT_KNOWN", ["SOME_ROUTES"])),
        # There is a route B then, for nobody knows which service.
        ("ALTER ROUTE B WITH ADDRESS = 'TCP://h:4022';", ("NOT_KNOWN", ["SOME_ROUTES"])),
        # There is none then: SQL Server refuses the statement as well.
        ("DROP ROUTE B;", ("NOT_KNOWN", ["ALL_ROUTES"])),
        (f"{BILL}\nGO\nALTER ROUTE b WITH ADDRESS = 'TCP://h:4022';", ("SENT", [])),
    ],
    ids=["taken", "without a value", "of an unknown route", "dropping none", "of the script's own"],
)
def test_unknown_parts_of_a_script_leave_no_verdict(
    statement: str, outcome: tuple[str, list[str]], tmp_path: Path
) -> None:
    assert shop_by_script(tmp_path, f"{statement}\nGO\n{ANY}", waiting(1, "//bill")) == [outcome]


DATABASES = [database("msdb", "d4d4d4d4", 4), database("Orders", "0d0d0d0d")]


@pytest.mark.parametrize(
    ("views", "outcomes"),
    [
        # It may be for any service.
        (
            {"routes": {"Orders": [route("L"), route("B", "//bill", lifetime="?")], "msdb": [route("L")]}},
            [("NOT_KNOWN", ["UNREADABLE_ROUTE"]), ("NOT_KNOWN", ["UNREADABLE_ROUTE"])],
        ),
        # Nothing has come back to msdb.
        (
            {"routes": {"Orders": [route("L")], "msdb": [route("L"), route("B", "//bill", lifetime="?")]}},
            [("DELAYED", []), ("DELIVERED", [])],
        ),
        # It may hold the one service, and not take the other from Orders, the sender.
        (
            {"databases": [*DATABASES, database("Bills", "cccccccc", 6, "?")]},  # type: ignore[arg-type]
            [("NOT_KNOWN", ["UNREADABLE_DATABASE"]), ("DELIVERED", [])],
        ),
        # Of what stands there twice all is known.
        (
            {"routes": {"Orders": [route("L"), route("L")], "msdb": [route("L")]}},
            [("DELAYED", []), ("DELIVERED", [])],
        ),
    ],
    ids=["a route", "a route of msdb", "a database", "a route that stands there twice"],
)
def test_an_unreadable_row_may_decide_a_message(
    views: dict[str, Any], outcomes: list[tuple[str, list[str]]], tmp_path: Path
) -> None:
    whole_shop(tmp_path, [waiting(1, "//bill"), waiting(2, "//orders")], **views)
    results = sorted(check([str(tmp_path)]).results, key=lambda result: result.row["enqueue_time"])
    assert [
        (result.case.outcome, [gap.missing.name for gap in result.case.gaps]) for result in results
    ] == outcomes


def test_each_message_has_the_handle_of_its_conversation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With and without a conversation endpoint."""
    whole_shop(tmp_path, [waiting(1, "//stock"), waiting(2, "//stock")], dialogs=[endpoint(1)])
    messages = [one for group in of_json(capsys, tmp_path)["groups"] for one in group["messages"]]
    handles = {(one["conversation_handle"], one["conversation_id"]) for one in messages}
    assert handles == {(handle(1), conversation(1)), (handle(2), None)}


def test_unused_rows_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of five rows of the queue, one is older, one is unreadable and one is a duplicate. Two are messages."""
    queue = [
        waiting(1, "//stock"),
        waiting(2, "//stock"),
        waiting(2, "//stock"),
        waiting(3, "//stock", enqueue_time="?"),
    ]
    whole_shop(tmp_path, queue)
    whole_shop(tmp_path / "older", [waiting(4, "//stock")])
    for file in (tmp_path / "older" / "SHOP").iterdir():
        file.write_text(file.read_text().replace('"exported_at": "2026-01-05T18', '"exported_at": "2026-01-05T17'))
    output = printed(capsys, tmp_path)
    assert "- of 5 rows of transmission_queue: 2 rejected, 1 left out, because a newer export exists\n" in output
    assert "2 messages in the transmission queues" in output


def test_an_explained_message_notes_later_exports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole_shop(tmp_path, [waiting(1, "//stock")])
    early = ["--message", handle(1), "--at", "2026-01-05T17:00:00Z"]
    [note] = of_json(capsys, tmp_path, *early)["notes"]
    assert note.startswith("'SHOP': ")
    assert "exported at 2026-01-05T18:00:00Z" in note
    assert printed(capsys, tmp_path, *early).endswith(f"\nnote: {note}\n")
    assert of_json(capsys, tmp_path, "--message", handle(1))["notes"] == []


def test_a_remedy_for_part_of_a_group_is_not_given_to_all(tmp_path: Path) -> None:
    """A LOCAL route helps messages bound to Orders or to no id, but not to another id."""
    dialogs = [
        endpoint(1, far_broker_instance=ORDERS),
        endpoint(2, far_broker_instance=GUID.format("bbbbbbbb")),
        endpoint(3),
    ]
    queue = [waiting(number, "//orders") for number in (1, 2, 3)]
    routes = {"msdb": [], "Orders": [route("T", None, "TRANSPORT")]}
    statement = "CREATE ROUTE [Route to //orders] WITH SERVICE_NAME = N'//orders', ADDRESS = N'LOCAL';"
    fix = tmp_path / "fix.txt"
    fix.write_text(USE + statement)
    whole_shop(tmp_path / "all", queue, dialogs=dialogs, routes=routes)
    done = check([str(tmp_path / "all")], instance="SHOP", then=[str(fix)])
    helped, other = done.groups
    assert (len(helped.results), len(other.results)) == (2, 1)
    assert helped.remedy is not None
    assert helped.remedy.statement == f"USE [Orders];\n{statement}"
    assert dict(helped.brokers) == {None: 1, ORDERS: 1}
    assert other.remedy is not None
    assert not other.remedy.is_complete
    assert done.with_scripts is not None
    assert [result.case.outcome for result in done.with_scripts.results] == ["DELIVERED", "DELAYED", "DELIVERED"]


def test_messages_that_two_routes_led_back_are_two_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One route of msdb delivers both messages. Each group names the sender's route that led back."""
    stock = GUID.format("aaaaaaaa")
    led = [
        route("HomeA", "//x", "TCP://SHOP:4022", broker_instance=stock),
        route("HomeAny", "//x", "TCP://SHOP:4022"),
    ]
    whole_shop(
        tmp_path,
        [waiting(1, "//x"), waiting(2, "//x")],
        dialogs=[endpoint(1), endpoint(2, far_broker_instance=stock)],
        databases=[*DATABASES, database("Stock", "aaaaaaaa", 6)],
        services={"msdb": [], "Orders": [], "Stock": [{"name": "//x"}]},
        routes={"Orders": led, "msdb": [route("AutoCreatedLocal")], "Stock": []},
    )
    groups = of_json(capsys, tmp_path)["groups"]
    rows = [(one["outcome"], one["route_name"], one["rerouted_from"], one["count"]) for one in groups]
    assert sorted(rows) == [
        ("DELIVERED", "AutoCreatedLocal", "HomeA", 1),
        ("DELIVERED", "AutoCreatedLocal", "HomeAny", 1),
    ]


def test_one_remedy_for_open_and_bound_dialogs_is_one_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON and text list the differences within the group with counts."""
    ends = [endpoint(1), endpoint(2, far_broker_instance=ORDERS), endpoint(3, far_broker_instance=ORDERS)]
    routes = {"Orders": [route("T", None, "TRANSPORT")], "msdb": []}
    queue = [waiting(number, "//orders") for number in (1, 2, 3)]
    whole_shop(tmp_path, queue, dialogs=ends, routes=routes)
    [group] = of_json(capsys, tmp_path)["groups"]
    assert group["brokers"] == [{"broker_instance": None, "count": 1}, {"broker_instance": ORDERS, "count": 2}]
    assert group["steps"] == [{"matching_step": 5, "count": 3}]
    assert [each["count"] for each in group["remedies"]] == [3]
    assert f"  - step 5, route 'T'; bound to broker instance '{ORDERS}' (2); 1 to none\n" in printed(
        capsys, tmp_path
    )
