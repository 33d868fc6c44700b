"""check, from folders of exports and scripts to results, groups and gaps."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing.cases.message_cases import MessageResult
from routing.errors import InputError
from routing.views.check.checking import Check, check
from tests.exported import AT, conversation, database, endpoint, export, handle, route, waiting, whole_shop

OTHER = "b9b9b9b9-0000-4000-8000-000000000000"
HERE = "TCP://shop:4022"


def checked(folder: Path, **options: Any) -> Check:
    return check([str(folder)], **options)


def end(result: MessageResult) -> tuple[str, str | None, str | None]:
    verdict = result.case.verdict
    return (
        (result.case.outcome, None, None)
        if verdict is None
        else (result.case.outcome, verdict.reason.value, verdict.route_name)
    )


def ends(done: Check) -> list[tuple[str, str | None, str | None]]:
    """Return the results of the messages in the order of their enqueue times."""
    return [end(result) for result in sorted(done.results, key=lambda result: result.row["enqueue_time"])]


def gaps(done: Check) -> list[tuple[str, str | None, str]]:
    return [(gap.instance, gap.database, gap.missing.name) for gap in done.gaps]


def needed(done: Check) -> list[tuple[str, str | None, str]]:
    """Return the missing exports of the one message."""
    [result] = done.results
    return [(gap.instance, gap.database, gap.missing.name) for gap in result.case.gaps]


def test_every_message_is_decided_as_of_the_newest_export(tmp_path: Path) -> None:
    queue = [waiting(1, "//stock"), waiting(2, "//nobody"), waiting(3, "//orders")]
    done = checked(whole_shop(tmp_path, queue))
    assert ends(done) == [
        ("SENT", "NETWORK_ADDRESS", "ToStock"),
        ("DELAYED", "SERVICE_NOT_FOUND", "AutoCreatedLocal"),
        ("DELIVERED", "LOCAL_SERVICE", "AutoCreatedLocal"),
    ]
    assert done.gaps == []
    assert dict(done.outcomes) == {"SENT": 1, "DELAYED": 1, "DELIVERED": 1}
    assert set(done.estate.times.values()) == {
        int(datetime.fromisoformat(AT.replace("Z", "+00:00")).timestamp()) * 10**6
    }


def test_a_lifetime_is_judged_at_the_given_time(tmp_path: Path) -> None:
    routes = {
        "msdb": [],
        "Orders": [route("AutoCreatedLocal"), route("R", "//stock", "TCP://a:1", lifetime="2026-01-05T17:00:00")],
    }
    folder = whole_shop(tmp_path, [waiting(1, "//stock")], routes=routes)
    before = datetime(2026, 1, 5, 16, tzinfo=timezone.utc)
    assert ends(checked(folder)) == [("DELAYED", "SERVICE_NOT_FOUND", "AutoCreatedLocal")]
    assert ends(checked(folder, at=before)) == [("SENT", "NETWORK_ADDRESS", "R")]


# What was left out of the export, the message's service, what becomes of it, what would be needed.
Needs = list[tuple[str, "str | None", str]]
LEFT_OUT: list[tuple[dict[str, Any], str, str, Needs]] = [
    ({"databases": None}, "//stock", "NOT_KNOWN", [("SHOP", None, "DATABASES")]),
    ({"databases": [database("msdb", "d4d4d4d4")]}, "//stock", "NOT_KNOWN", [("SHOP", "Orders", "NOT_LISTED")]),
    ({"routes": None}, "//stock", "NOT_KNOWN", [("SHOP", "Orders", "ROUTES")]),
    ({"routes": {"Orders": [route("R", "//stock", "TCP://a:1")]}}, "//stock", "SENT", []),
    ({"routes": {"Orders": [route("R", "//stock", HERE)]}}, "//stock", "NOT_KNOWN", [("SHOP", "msdb", "ROUTES")]),
    ({"services": None}, "//stock", "SENT", []),
    ({"services": None}, "//nobody", "NOT_KNOWN", [("SHOP", "Orders", "SERVICES")]),
    ({"services": {"Orders": [{"name": "//orders"}]}}, "//nobody", "DELAYED", []),
    ({"service_broker_endpoints": None}, "//stock", "SENT", []),
    (
        {"service_broker_endpoints": None, "routes": {"Orders": [route("R", "//stock", "tcp://shop.example:1")]}},
        "//stock",
        "NOT_KNOWN",
        [("SHOP", None, "ADDRESSES")],
    ),
    (
        {"service_broker_endpoints": None, "routes": {"Orders": [route("R", "//stock", "tcp://localhost:1")]}},
        "//stock",
        "NOT_KNOWN",
        [("SHOP", None, "ADDRESSES")],
    ),
    ({"conversation_endpoints": None}, "//stock", "NOT_KNOWN", [("SHOP", "Orders", "ENDPOINTS_OF_DIALOGS")]),
    (
        {"conversation_endpoints": {"Orders": []}},
        "//stock",
        "NOT_KNOWN",
        [("SHOP", "Orders", "ENDPOINT_OF_DIALOG")],
    ),
]


@pytest.mark.parametrize(("views", "service", "outcome", "needs"), LEFT_OUT)
def test_missing_relevant_exports_leave_no_verdict(
    views: dict[str, Any], service: str, outcome: str, needs: Needs, tmp_path: Path
) -> None:
    done = checked(whole_shop(tmp_path, [waiting(1, service)], **views))
    assert [result.case.outcome for result in done.results] == [outcome]
    assert needed(done) == needs
    # Whatever a message lacks is in the list of all that is not known; of one row nobody can say it beforehand.
    assert {gap for gap in needs if gap[2] not in ("NOT_LISTED", "ENDPOINT_OF_DIALOG", "ADDRESSES")} <= set(
        gaps(done)
    )


def test_an_expired_dialog_needs_no_routes(tmp_path: Path) -> None:
    dialogs = [endpoint(1, lifetime="2026-01-05T17:59:59")]
    done = checked(whole_shop(tmp_path, [waiting(1, "//stock")], dialogs, routes=None, services=None))
    assert ends(done) == [("DROPPED", "DIALOG_EXPIRED", None)]


def test_a_disabled_broker_needs_no_routes(tmp_path: Path) -> None:
    listed = [database("Orders", "0d0d0d0d", is_enabled=0)]
    done = checked(whole_shop(tmp_path, [waiting(1, "//stock")], databases=listed, routes=None))
    assert ends(done) == [("DELAYED", "SCOPE_BROKER_DISABLED", None)]


def test_another_database_whose_services_were_not_read_may_hold_the_service(tmp_path: Path) -> None:
    listed = [database("Orders", "0d0d0d0d"), database("Other", "b9b9b9b9", 6)]
    queue = [waiting(1, "//nobody"), waiting(2, "//nobody", to_broker_instance=OTHER)]
    queue += [waiting(3, "//nobody", to_broker_instance="0d0d0d0d-0000-4000-8000-000000000000")]
    done = checked(whole_shop(tmp_path, queue, databases=listed))
    # The third is bound to Orders, whose services are known.
    assert [outcome for outcome, _, _ in ends(done)] == ["NOT_KNOWN", "NOT_KNOWN", "DELAYED"]


def test_unknown_forwarding_gives_no_verdict(tmp_path: Path) -> None:
    routes = {"Orders": [route("Back", "//stock", HERE)], "msdb": [route("On", "//stock", "tcp://hub:1")]}
    with_endpoint = whole_shop(tmp_path / "known", [waiting(1, "//stock")], routes=routes)
    assert ends(checked(with_endpoint)) == [("DROPPED", "FORWARDING_DISABLED", "On")]
    unknown = whole_shop(tmp_path / "not", [waiting(1, "//stock")], routes=routes, service_broker_endpoints=None)
    done = checked(unknown, addresses=[HERE])
    assert needed(done) == [("SHOP", None, "FORWARDING")]
    assert ("SHOP", None, "FORWARDING") in gaps(done)


def test_an_instance_known_only_by_name_is_reported(tmp_path: Path) -> None:
    folder = export(whole_shop(tmp_path, [waiting(1, "//stock")]), "HUB", transmission_queue={"Hub": []})
    assert gaps(checked(folder)) == [("HUB", None, "NAME_ONLY")]


def test_messages_without_a_conversation_endpoint_are_counted_too(tmp_path: Path) -> None:
    queue = [
        waiting(1, "//stock", transmission_status="Target queue is busy; message(s) queued for delivery."),
        waiting(2, "//stock"),
    ]
    done = checked(whole_shop(tmp_path, queue, [endpoint(2)]))
    assert [(result.handle, result.case.outcome) for result in done.results] == [
        (handle(2), "SENT"),
        (handle(1), "NOT_KNOWN"),
    ]
    assert done.results[1].case.status_text.number == 9749


def test_one_message_requests_a_route_for_all(tmp_path: Path) -> None:
    asking = route("Ask", "SQL/ServiceBroker/BrokerConfiguration", "LOCAL")
    routes = {"msdb": [], "Orders": [route("AutoCreatedLocal"), asking]}
    done = checked(whole_shop(tmp_path, [waiting(1, "//new"), waiting(2, "//new")], routes=routes))
    assert [reason for _, reason, _ in ends(done)] == ["ROUTE_REQUESTED", "SERVICE_NOT_FOUND"]


def test_the_whole_conversation_waits_for_its_requested_route(tmp_path: Path) -> None:
    """All messages of a queue are decided at one time: the first by its id asks, and its conversation waits."""
    asking = route("Ask", "SQL/ServiceBroker/BrokerConfiguration", "LOCAL")
    routes = {"msdb": [], "Orders": [route("AutoCreatedLocal"), asking]}
    queue = [waiting(number, "//new", message_sequence_number=place) for number in (1, 2) for place in (0, 1)]
    done = checked(whole_shop(tmp_path, queue, routes=routes))
    reasons = [
        (result.handle, result.case.verdict.reason) for result in done.results if result.case.verdict is not None
    ]
    assert reasons == [
        *[(handle(1), "ROUTE_REQUESTED")] * 2,
        *[(handle(2), "SERVICE_NOT_FOUND")] * 2,
    ]


def test_paths_without_a_queue_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no transmission queue in"):
        checked(whole_shop(tmp_path, [], transmission_queue=None))


SCRIPT = "USE Orders;\nGO\nCREATE ROUTE Mine WITH SERVICE_NAME = N'//mine', ADDRESS = N'TCP://mine:4022';\n"


def script(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_a_script_is_in_force_where_its_subject_was_not_exported(tmp_path: Path) -> None:
    folder = whole_shop(tmp_path, [waiting(1, "//mine"), waiting(2, "//nobody")], routes=None)
    script(folder / "SHOP" / "routes.sql", SCRIPT)
    done = checked(folder)
    # What matches none of the scripted routes may match one that no script speaks of.
    assert [outcome for outcome, _, _ in ends(done)] == ["SENT", "NOT_KNOWN"]
    assert ("SHOP", "Orders", "ALL_ROUTES") in gaps(done)
    assert [(one.instance, one.statements, one.left_out) for one in done.evidence.log.scripts] == [("SHOP", 1, 0)]


def test_statements_on_exported_objects_are_skipped_and_listed(tmp_path: Path) -> None:
    folder = whole_shop(tmp_path, [waiting(1, "//mine")])
    text = SCRIPT + "CREATE SERVICE [//mine] ON QUEUE q;\nGO\nALTER DATABASE Orders SET DISABLE_BROKER;\n"
    script(folder / "SHOP" / "routes.sql", text)
    done = checked(folder)
    assert ends(done) == [("DELAYED", "SERVICE_NOT_FOUND", "AutoCreatedLocal")]
    assert [sentence.partition("routes.sql, ")[2] for sentence in done.evidence.log.left_out] == [
        "line 3: CREATE ROUTE 'Mine' (sys.routes was exported; check --then tries it)",
        "line 4: CREATE SERVICE '//mine' (sys.services was exported; check --then tries it)",
        "line 6: ALTER DATABASE 'Orders' (sys.databases was exported; check --then tries it)",
    ]
    # That is not to say that the script holds nothing.
    assert [note for note in done.evidence.log.notes if "routes.sql" in note] == []


# Where a script lies, its first line, and --instance → whose it is.
WHOSE = [
    ("SHOP/a.sql", "", None, "SHOP"),
    ("shop/deep/er/a.sql", "", None, "SHOP"),
    ("SRV$ONE/a.sql", "", None, "SRV\\ONE"),
    ("SRV_ONE/a.sql", "", None, "SRV\\ONE"),
    ("a.sql", "", "Elsewhere", "Elsewhere"),
    ("SHOP/a.sql", "", "Elsewhere", "SHOP"),
    ("SHOP/a.sql", ":CONNECT HUB -U sa", "Elsewhere", "HUB"),
    ("SHOP/a.sql", ":connect tcp:hub,1433", None, "hub"),
    ("SHOP/a.sql", ":CONNECT srv\\one", None, "SRV\\ONE"),
    ("SHOP/a.sql", ":CONNECT (local) -l 5", None, "SHOP"),
    ("SRV_ONE/a.sql", ':CONNECT ".\\one"', None, "SRV\\ONE"),
]


@pytest.mark.parametrize(("place", "first", "instance", "whose"), WHOSE)
def test_the_instance_of_a_script_is_found(
    place: str, first: str, instance: str | None, whose: str, tmp_path: Path
) -> None:
    export(whole_shop(tmp_path, []), "SRV\\ONE", databases=[database("D", "12121212")])
    script(tmp_path / place, f"{first}\n{SCRIPT}")
    assert [one.instance for one in checked(tmp_path, instance=instance).evidence.log.scripts] == [whose]


def test_a_server_similar_to_a_known_one_is_noted(tmp_path: Path) -> None:
    script(whole_shop(tmp_path, []) / "SHOP" / "a.sql", f":CONNECT SHOPP\n{SCRIPT}")
    notes = [note for note in checked(tmp_path).evidence.log.notes if ":connect" in note]
    assert notes == ["the server 'SHOPP' of :connect is unknown, did you mean 'SHOP'?"]


def test_a_script_without_an_instance_is_refused(tmp_path: Path) -> None:
    script(whole_shop(tmp_path, []) / "a.sql", SCRIPT)
    with pytest.raises(InputError, match="the instance of the script is unknown"):
        checked(tmp_path)


def test_a_script_for_two_servers_applies_to_both(tmp_path: Path) -> None:
    text = f":CONNECT A\n{SCRIPT}GO\n:CONNECT B\n{SCRIPT.replace('Mine', 'Theirs')}"
    script(whole_shop(tmp_path, []) / "a.sql", text)
    done = checked(tmp_path)
    routes = [(row["instance_name"], row["name"]) for row in done.evidence.rows["routes"]]
    assert [pair for pair in routes if pair[0] != "SHOP"] == [("A", "Mine"), ("B", "Theirs")]


def test_a_remedy_is_tried_at_the_same_time(tmp_path: Path) -> None:
    folder = whole_shop(tmp_path / "shop", [waiting(1, "//mine"), waiting(2, "//stock"), waiting(3, "//mine")])
    file = script(tmp_path / "fix.sql", SCRIPT + "DROP ROUTE Nothing;\n")
    done = checked(folder, then=[str(file)], instance="SHOP")
    assert done.with_scripts is not None
    assert done.trial is not None
    [change] = done.trial.changes
    assert change.effect == "mended"
    assert (change.before, change.after) == (
        ("DELAYED", "SERVICE_NOT_FOUND", "AutoCreatedLocal", None, "DELAYED", "SHOP"),
        ("SENT", "NETWORK_ADDRESS", "Mine", "TCP://mine:4022", "NOT_KNOWN", None),
    )
    assert [result.row["conversation_id"] for result in change.results] == [conversation(1), conversation(3)]
    assert done.trial.unchanged == 1
    assert len(done.with_scripts.evidence.log.rejected) == 1


def test_groups_that_need_action_come_first(tmp_path: Path) -> None:
    refused = "Connection attempt failed with error: '10061(actively refused it.)'."
    queue = [
        *(waiting(1, "//orders"), waiting(2, "//nobody"), waiting(3, "//Stock"), waiting(4, "//Stock")),
        *(waiting(5, "//stock"), waiting(6, "//stock", transmission_status=refused)),
    ]
    done = checked(whole_shop(tmp_path, queue, [*map(endpoint, range(1, 6))]))
    groups = [
        (group.first.case.outcome, group.first.row["to_service_name"], len(group.results)) for group in done.groups
    ]
    assert groups == [
        ("DELAYED", "//Stock", 2),
        ("DELAYED", "//nobody", 1),
        ("NOT_KNOWN", "//stock", 1),
        ("DELIVERED", "//orders", 1),
        ("SENT", "//stock", 1),
    ]
    all_known = checked(whole_shop(tmp_path, queue))
    first = all_known.groups[0]
    # What routes keep comes before what the transport does.
    assert [group.first.row["to_service_name"] for group in all_known.groups] == [
        *("//Stock", "//nobody", "//stock", "//orders")
    ]
    first = all_known.groups[2]
    assert (first.first.case.outcome, len(first.results), first.trouble and first.trouble.number) == (
        "SENT",
        2,
        9754,
    )
    assert [str(word) for word in first.agreements] == ["SAYS_NOTHING", "COMPATIBLE"]
    assert [group.needs_somebody for group in all_known.groups] == [True] * 4


def test_a_view_that_lacks_a_column_is_left_out_with_a_note(tmp_path: Path) -> None:
    """An incomplete view counts as missing. Messages of an incomplete queue are not known."""
    folder = whole_shop(tmp_path, [waiting(1, "//nobody")])
    short = folder / "short.csv"
    head = "view_name,instance_name,exported_at"
    short.write_text(f"{head},name,port\ntcp_endpoints,SHOP,2026-01-05T18:00:00Z,SSB,4022\n", encoding="utf-8")
    done = check([str(folder)])
    assert [group.first.case.outcome for group in done.groups] == ["DELAYED"]
    [note] = [note for note in done.evidence.log.notes if "short.csv" in note]
    assert "not read, as sys.tcp_endpoints it lacks endpoint_id" in note
    queue = f"{head},to_service_name\ntransmission_queue,SHOP,2026-01-05T18:00:00Z,//x\n"
    short.write_text(queue, encoding="utf-8")
    done = check([str(folder)])
    [refused] = [why for why in done.evidence.log.rejected if "short.csv" in why]
    assert "as sys.transmission_queue it lacks conversation_handle" in refused
    assert done.evidence.log.unread_queues == (str(short),)
