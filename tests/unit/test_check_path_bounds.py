"""The cost of following depends on distinct decisions and paths, not on the number of waiting messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routing.cases.message_cases import decide_all
from routing.cases.path_following import follow_results
from routing.cli import main
from routing.rules.deciding import ConcerningRoutes
from routing.views.check.checking import Check, check
from tests.check_texts import UNWRAPPED
from tests.exported import GUID, endpoint, waiting
from tests.unit.test_check_paths import BACK, HOME, OLD, STOCK, Server, hub, shop, stock, to

SERVICES = 30


def write(folder: Path, messages: int, hubs: int = 1, **ends: Any) -> Path:
    """Messages of as many dialogs to 30 services of STOCK, by a forwarder or by several at each of two hops."""
    names = [f"//s{number}" for number in range(SERVICES)]
    queue = [waiting(number, names[number % SERVICES], from_service_name="//orders") for number in range(messages)]
    dialogs = [endpoint(number, **ends) for number in range(messages)]
    leading = [to(f"R{number}", name, "hub0") for number, name in enumerate(names)]
    more = {"transmission_queue": {"Orders": queue}, "conversation_endpoints": {"Orders": dialogs}}
    shop(*leading).write(folder, "SHOP", **more)
    gates = [to(f"G{number}", None, f"gate{number}") for number in range(hubs)]
    for number in range(hubs):
        hub(*gates, HOME).write(folder, f"HUB{number}")
        hub(*(to(f"S{each}", None, f"last{each}") for each in range(hubs)), HOME).write(folder, f"GATE{number}")
        hub(to("S", None, "stock"), HOME).write(folder, f"LAST{number}")
    stock(BACK, services=names).write(folder, "STOCK")
    return folder


def counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Check, int]:
    """A check, and how many decisions were made for it."""
    made = []
    decide = ConcerningRoutes.decide

    def count(self: ConcerningRoutes, t: int) -> Any:
        made.append(self.key)
        return decide(self, t)

    with monkeypatch.context() as patched:
        patched.setattr(ConcerningRoutes, "decide", count)
        done = check([str(folder)])
        assert done.groups
    return done, len(made)


def test_decisions_do_not_grow_with_the_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, of_few = counted(write(tmp_path / "few", 60), monkeypatch)
    many, of_many = counted(write(tmp_path / "many", 900), monkeypatch)
    assert (len(few.results), len(many.results)) == (60, 900)
    assert {result.case.end for result in (*few.results, *many.results)} == {"DELIVERED"}
    # The sender and four hops for each service, and what leads the acknowledgement of all back.
    assert of_few == of_many
    assert of_few < 6 * SERVICES


def test_at_most_100_paths_of_a_group_with_unknown_ids_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each dialog of a queue may be bound to a different id. check follows 100 paths of the group."""
    folder = write(tmp_path, 10)
    queue = [waiting(number, "//s0") for number in range(600)]
    ends = [endpoint(number, far_broker_instance=GUID.format(f"{number + 1:08x}")) for number in range(600)]
    more = {"transmission_queue": {"Orders": queue}, "conversation_endpoints": {"Orders": ends}}
    shop(to("R", "//s0", "hub0")).write(folder, "SHOP", **more)
    done, _ = counted(folder, monkeypatch)
    followed = [
        result for result in done.results if result.case.path is not None and result.case.path.forward_paths
    ]
    cut = [
        result for result in done.results if result.case.path is not None and not result.case.path.forward_paths
    ]
    assert (len(followed), len(cut)) == (100, 500)
    assert {result.case.end for result in cut} == {"NOT_KNOWN"}
    assert all(result.case.path is not None and result.case.path.is_cut for result in cut)


def test_a_hundred_paths_of_one_message_are_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three rows of twelve forwarders give 144 paths to the target."""
    done = check([str(write(tmp_path, 1, hubs=12))])
    [result] = done.results
    assert result.case.path is not None
    assert (len(result.case.path.forward_paths), result.case.path.is_cut, result.case.end) == (
        100,
        True,
        "NOT_KNOWN",
    )
    assert main(["check", str(tmp_path), "--all", *UNWRAPPED]) == 0
    output = capsys.readouterr().out
    assert "there, by 100 or more paths that the transport may take; none fail:" in output
    assert "  and 97 more paths (--verbose lists all)" in output


def test_the_limit_of_followed_paths_can_be_lowered(tmp_path: Path) -> None:
    done = check([str(write(tmp_path, 1, hubs=3))])
    [result] = follow_results(done.estate, decide_all(done.estate), most_paths=4)
    assert result.case.path is not None
    assert (len(result.case.path.forward_paths), result.case.path.is_cut) == (4, True)


# What is followed, options, and the exit code.
LACKING = {"SHOP": shop(), "STOCK": stock(services=["//other"])}
NO_RETURN = {"SHOP": shop(), "STOCK": stock(to("Other", "//other", "shop"))}
ROUND = {
    "SHOP": shop(to("S", "//stock", "hub")),
    "HUB": hub(to("S", "//stock", "hub2")),
    "HUB2": hub(to("S", "//stock", "hub")),
}
NO_MATCH = {"SHOP": shop(), "STOCK": stock(msdb=[to("Other", "//other", "depot")])}
ARRIVING = {"SHOP": shop(), "STOCK": stock()}
LEAVING = {"SHOP": shop()}
EITHER = {
    "SHOP": shop(to("A", "//stock", "stock"), to("B", "//stock", "depot")),
    "STOCK": stock(msdb=[to("Other", "//other", "depot")]),
    "DEPOT": stock(services=["//other"]),
}
FAILING: list[tuple[str, dict[str, Server], dict[str, int]]] = [
    ("dropped at the target", LACKING, {"dropped": 1, "delayed": 0, "not-known": 0}),
    ("a loop counts as dropped", ROUND, {"dropped": 1, "delayed": 0, "not-known": 0}),
    ("no return path counts as delayed", NO_RETURN, {"dropped": 0, "delayed": 1, "not-known": 0}),
    ("delayed at the target", NO_MATCH, {"dropped": 0, "delayed": 1, "not-known": 0}),
    ("delayed by one route, dropped by the other", EITHER, {"dropped": 1, "delayed": 1, "not-known": 0}),
    ("arrives", ARRIVING, {"dropped": 0, "delayed": 0, "not-known": 0}),
    ("leaves what was exported", LEAVING, {"dropped": 0, "delayed": 0, "not-known": 0}),
]


def queued(folder: Path, servers: dict[str, Server], *messages: Any, ends: list[Any] | None = None) -> str:
    """Return the exports of servers. The first one has the messages."""
    queue = list(messages) or [waiting(1, "//stock", from_service_name="//orders")]
    numbers = {int(row["conversation_handle"][1:8]) for row in queue}
    of_first = {
        "transmission_queue": {"Orders": queue},
        "conversation_endpoints": {"Orders": ends or [endpoint(number) for number in sorted(numbers)]},
    }
    for number, (name, server) in enumerate(servers.items()):
        server.write(folder, name, **({} if number else of_first))
    return str(folder)


@pytest.mark.parametrize(("servers", "codes"), [case[1:] for case in FAILING], ids=[case[0] for case in FAILING])
def test_fail_on_counts_the_ends_of_paths(
    servers: dict[str, Server], codes: dict[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = queued(tmp_path, servers)
    assert {what: main(["check", folder, "--fail-on", what]) for what in codes} == codes
    capsys.readouterr()


# When the message was enqueued (its export is of 18:00), the next instance, and what is said of it.
TEN = "enqueued more than ten minutes before the export: sent and not acknowledged"
YOUNG = "not tried yet, or sent and not acknowledged"
BLANK = [
    ("eleven minutes, and it leaves what was exported", "17:49:00", LEAVING, f"1 message, {TEN}", True),
    ("eleven minutes, and every hop is right", "17:49:00", ARRIVING, f"1 message, {TEN}", True),
    ("eleven minutes, and it is dropped", "17:49:00", LACKING, f"1 message, {TEN}", True),
    ("ten minutes", "17:50:00", ARRIVING, f"1 message: {YOUNG}", False),
    ("a minute", "17:59:00", LEAVING, f"1 message: {YOUNG}", False),
]


@pytest.mark.parametrize(
    ("at", "servers", "words", "is_listed"), [case[1:] for case in BLANK], ids=[case[0] for case in BLANK]
)
def test_an_old_message_with_a_blank_status_is_listed(
    at: str,
    servers: dict[str, Server],
    words: str,
    is_listed: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    message = waiting(1, "//stock", from_service_name="//orders", enqueue_time=f"2026-01-05T{at}")
    folder = queued(tmp_path, servers, message)
    assert main(["check", folder, *UNWRAPPED]) == 0
    assert (f"SQL Server reports nothing for {words}" in capsys.readouterr().out) is is_listed
    assert main(["check", folder, "--all", *UNWRAPPED]) == 0
    assert f" SQL Server reports nothing for {words}\n" in capsys.readouterr().out


def test_correct_hops_lead_to_advice_on_the_target_queue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = queued(tmp_path, ARRIVING)
    assert main(["check", folder, "--format", "json"]) == 0
    [group] = json.loads(capsys.readouterr().out)["groups"]
    [remedy] = group["remedies"]
    assert (remedy["instance_name"], remedy["count"], group["unacknowledged"]) == ("STOCK", 1, 1)
    assert remedy["statement"].startswith("-- USE [Stock];\n-- SELECT SCHEMA_NAME(q.schema_id), q.name")
    assert "every hop is right, there and back" in remedy["advice"]


def test_messages_of_one_group_end_differently_by_their_broker_instance(tmp_path: Path) -> None:
    """A balanced service has one id from before a restore, and dialogs are bound to either id."""
    pinned = [to("A", "//stock", "stock", broker_instance=STOCK), to("B", "//stock", "stock", broker_instance=OLD)]
    ends = [endpoint(1, far_broker_instance=STOCK), endpoint(2, far_broker_instance=OLD)]
    queue = [waiting(number, "//stock", from_service_name="//orders") for number in (1, 2)]
    folder = queued(tmp_path, {"SHOP": shop(*pinned), "STOCK": stock()}, *queue, ends=ends)
    ended = [
        (one.first.row["conversation_id"][:8], one.first.case.end, len(one.results))
        for one in check([folder]).groups
    ]
    assert sorted(ended) == [("c0000001", "DELIVERED", 1), ("c0000002", "DROPPED", 1)]


def test_one_route_for_open_and_bound_dialogs_splits_where_they_end(tmp_path: Path) -> None:
    ends = [endpoint(1), endpoint(2, far_broker_instance=OLD), endpoint(3, far_broker_instance=STOCK)]
    queue = [waiting(number, "//stock", from_service_name="//orders") for number in (1, 2, 3)]
    groups = check([queued(tmp_path, ARRIVING, *queue, ends=ends)]).groups
    assert [(one.first.case.end, dict(one.brokers)) for one in groups] == [
        ("DROPPED", {OLD: 1}),
        ("DELIVERED", {None: 1, STOCK: 1}),
    ]


def test_a_route_for_any_service_of_the_machine_is_not_read_as_one_of_the_sender(tmp_path: Path) -> None:
    """Two instances have the same machine name and different ports."""
    servers = {
        "BOX": shop(to("ToStock", "//stock", "box:5022")),
        "BOX\\TWO": stock(to("Back", "//orders", "box:4022"), port=5022, machine="BOX"),
    }
    [result] = check([queued(tmp_path, servers)]).results
    assert (result.case.outcome, result.case.end) == ("SENT", "DELIVERED")


def test_the_last_hops_of_a_long_path_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chain = {f"H{number}": hub(to("S", "//stock", f"h{number + 1}")) for number in range(40)}
    folder = queued(tmp_path, {"SHOP": shop(to("S", "//stock", "h0")), **chain})
    assert main(["check", folder, *UNWRAPPED]) == 0
    output = capsys.readouterr().out
    assert "\n       21 hops before these\n    22. 'H20', 'msdb': " in output
    assert "    41. 'H39', 'msdb': step 2, route 'S', FORWARDED to 'TCP://h40:4022' (NETWORK_ADDRESS)\n" in output


# What fails of the paths that the transport may take, and what the head of the group says of it.
HEADS = [
    ("the only way", LACKING, ", but DROPPED at 'STOCK' (SERVICE_NOT_FOUND): "),
    (
        "one of two ways there",
        {
            "SHOP": shop(to("A", "//stock", "stock"), to("B", "//stock", "depot")),
            "STOCK": stock(),
            "DEPOT": stock(services=["//other"]),
        },
        ", but by 1 of 2 paths DROPPED at 'DEPOT' (SERVICE_NOT_FOUND): ",
    ),
    (
        "one of two ways back",
        {"SHOP": shop(), "STOCK": stock(BACK, to("Z", "//orders", "depot")), "DEPOT": stock(services=["//other"])},
        ", but by 1 of 2 paths no acknowledgement comes back from 'DEPOT' (",
    ),
]


@pytest.mark.parametrize(("servers", "words"), [case[1:] for case in HEADS], ids=[case[0] for case in HEADS])
def test_the_heading_counts_failing_paths(
    servers: dict[str, Server], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", queued(tmp_path, servers), *UNWRAPPED]) == 0
    assert f"\n1. SENT, NETWORK_ADDRESS{words}" in capsys.readouterr().out
