"""Lists of messages from local tables without Spark: the matches, their order and their number."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from routing.cases.questions import QuestionError
from routing.engines.traffic_tables import open_traffic
from routing.result_schemas import LISTED_MESSAGES
from routing.schemas import IMPORTS as IMPORTS_SCHEMA
from routing.schemas import OBSERVED_ROUTING, RESOLVED_ROUTES
from routing.views.messages.message_filter import MessageFilter, ask, select
from routing.views.messages.message_list import MessageList, list_messages
from tests.frames import arrow_of
from tests.listed_messages import (
    IMPORTS,
    MONDAY,
    OBSERVED,
    RESOLVED,
    TUESDAY,
    Row,
    exported,
    in_files,
    list_plainly,
    random_rows,
    resolved,
)

pytest.importorskip("deltalake")
NOW = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)


def tables(**rows: Sequence[Row]) -> dict[str, Any]:
    schemas = {
        "resolved_routes": RESOLVED_ROUTES,
        "observed_routing": OBSERVED_ROUTING,
        "imports": IMPORTS_SCHEMA,
    }
    return {key: arrow_of(list(found), schemas[key]) for key, found in rows.items()}


def listed(asked: MessageFilter | None = None, **rows: Sequence[Row]) -> MessageList:
    rows_by_table = {"resolved_routes": RESOLVED, "observed_routing": OBSERVED, "imports": IMPORTS, **rows}
    return list_messages(tables(**rows_by_table), asked or ask(), now=NOW)


def ids(done: MessageList) -> list[str]:
    return [str(row["message_id"]) for row in done.messages]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        # Those that are delayed, then those that arrived or were sent, each the oldest first.
        ({}, ["o1", "a3", "a7", "a5", "a2", "a4", "a1", "a2"]),
        ({"oldest": True}, ["o1", "a4", "a3", "a7", "a5", "a1", "a2", "a2"]),
        ({"oldest": True, "limit": 3}, ["o1", "a4", "a3"]),
        ({"limit": 6}, ["o1", "a3", "a7", "a5", "a2", "a4"]),
        ({"limit": 1}, ["o1"]),
        ({"outcomes": ["delayed"]}, ["o1", "a3", "a7", "a5", "a2"]),
        ({"outcomes": ["DELAYED", "SENT"], "limit": 2}, ["o1", "a3"]),
        ({"outcomes": ["SENT", "DELIVERED"]}, ["a4", "a1", "a2"]),
        ({"reasons": ["NO_ROUTE"]}, ["o1", "a3", "a7", "a5"]),
        ({"instances": ["SPOKE"]}, ["a2"]),
        ({"services": ["//billing"]}, ["a4"]),
        ({"services": ["//BILLING"]}, []),
        ({"waiting": True}, ["a3", "a7", "a2", "a4"]),
        ({"waiting": True, "reasons": ["NO_ROUTE"]}, ["a3", "a7"]),
        ({"waiting": True, "oldest": True, "limit": 2}, ["a4", "a3"]),
        ({"waiting": True, "instances": ["SPOKE"]}, []),
    ],
)
def test_each_filter_lists_its_messages(asked: dict[str, Any], found: list[str]) -> None:
    assert ids(listed(ask(**asked))) == found


def test_delayed_come_first_then_dropped() -> None:
    """Age and the names of other outcomes do not matter."""
    verdicts = ("SENT NETWORK_ADDRESS", "DROPPED ROUTING_LOOP", "DELIVERED LOCAL_SERVICE", "DELAYED NO_ROUTE")
    rows = [
        resolved(f"{verdict[:4]}-{hour}".lower(), "//a", f"{hour:02d}:00:00", verdict)
        for place, verdict in enumerate(verdicts)
        for hour in (place + 4, place)
    ]
    for limit, stuck in ((20, 8), (3, 3), (2, 2)):
        done = listed(ask(limit=limit), resolved_routes=rows)
        wanted = ["dela-3", "dela-7", "drop-1", "drop-5", "sent-0", "deli-2", "sent-4", "deli-6"]
        assert ids(done) == wanted[:stuck]
        # The oldest that is stuck was dropped at one, whether it is listed or not.
        assert done.oldest_stuck == 11 * 3600


def test_counts_are_of_all_that_match() -> None:
    done = listed(ask(limit=6))
    assert done.total == 8
    assert [tuple(row.values()) for row in done.counts] == [
        ("DELAYED", "NO_ROUTE", 4),
        ("DELIVERED", "LOCAL_SERVICE", 2),
        ("DELAYED", "BROKER_DISABLED", 1),
        ("SENT", "NETWORK_ADDRESS", 1),
    ]
    assert [tuple(row.values()) for row in done.groups] == [
        ("HUB", "//billing", "NETWORK_ADDRESS", "SENT", 1),
        ("HUB", "//stock", "BROKER_DISABLED", "DELAYED", 1),
        ("HUB", "//stock", "NO_ROUTE", "DELAYED", 4),
    ]
    first = listed(ask(oldest=True, limit=1))
    assert [tuple(row.values()) for row in first.groups] == [("HUB", "//stock", "NO_ROUTE", "DELAYED", 4)]


def test_messages_are_listed_with_their_status() -> None:
    done = {(row["instance_name"], row["message_id"]): dict(row) for row in listed().messages}
    assert list(done["HUB", "a3"]) == LISTED_MESSAGES.names
    found_statuses = {
        key: [row[name] for name in ("status_number", "agreement", "is_waiting")] for key, row in done.items()
    }
    assert found_statuses == {
        ("HUB", "a1"): [None, None, False],
        ("HUB", "a2"): [9791, "CONTRADICTS", True],
        ("HUB", "a3"): [9793, "AGREES", True],
        ("HUB", "a4"): [None, "SAYS_NOTHING", True],
        ("HUB", "a5"): [9793, "AGREES", False],
        ("HUB", "a7"): [None, "SAYS_NOTHING", True],
        ("HUB", "o1"): [9793, "AGREES", False],
        ("SPOKE", "a2"): [None, None, False],
    }
    assert done["HUB", "a4"]["agreement_why"] == "Not tried yet, or sent and not acknowledged."
    assert done["HUB", "a7"]["agreement_why"] == "A text that this project does not know."
    assert done["HUB", "a7"]["status_text"] == "Etwas ging schief."
    assert done["HUB", "a3"]["status_observed_at"] == datetime(2026, 1, 6, 12, 0, 0, 654321, timezone.utc)
    assert [done["HUB", name]["age_seconds"] for name in ("a3", "a5")] == [14_400, 14_399]
    assert done["HUB", "a4"]["route_name"] == "ToBilling"


def test_an_event_that_is_newer_than_the_status() -> None:
    """Only events of the same conversation and role count. Waiting messages come from the newest export."""
    told = {
        "source": "CLASSIFY_EVENT",
        "is_initiator": True,
        "is_from_network": False,
        "next_hop": "tcp://far:4022",
    }
    event = {**OBSERVED[1], **told, "message_id": None, "status_text": None, "error_number": None}
    event |= {"outcome": "SENT", "conversation_id": RESOLVED[6]["conversation_id"].lower()}
    event |= {"observed_at": "2026-01-06T13:00:00Z"}
    others = [{**event, "is_initiator": False}, {**event, "to_service_name": "//other"}]
    assert RESOLVED[6]["message_id"] == "a3"
    for rows, expected in (
        ([*OBSERVED, event, *others], ["CLASSIFY_EVENT", "SENT", None, "tcp://far:4022", "CONTRADICTS", True]),
        ([*OBSERVED, *others], ["TRANSMISSION_QUEUE", None, 9793, None, "AGREES", True]),
    ):
        done = {row["message_id"]: row for row in listed(observed_routing=rows).messages}
        names = ("status_source", "status_outcome", "status_number", "status_next_hop", "agreement", "is_waiting")
        assert [done["a3"][name] for name in names] == expected


def test_a_status_in_the_future_is_not_the_newest() -> None:
    """Release 0.2.0 stored it. Waiting messages come from the newest export that is not in the future."""
    [its] = [row for row in OBSERVED if row["message_id"] == "a3" and row["error_number"] == 9793]
    ahead = {**its, "observed_at": "2026-03-01T12:00:00Z", "error_number": 9791}
    stored = tables(resolved_routes=RESOLVED, observed_routing=[*OBSERVED, ahead], imports=IMPORTS)
    for clock, number, waits in ((None, 9791, False), (datetime(2026, 1, 7, tzinfo=timezone.utc), 9793, True)):
        done = {row["message_id"]: row for row in list_messages(stored, ask(), now=NOW, clock=clock).messages}
        assert (done["a3"]["status_number"], done["a3"]["is_waiting"]) == (number, waits)


def test_arrived_messages_are_judged_by_routes_of_msdb() -> None:
    arrived = {**RESOLVED[0], "database_name": None, "reason": "SCOPE_BROKER_DISABLED"}
    sent = {**arrived, "database_name": "Shop"}
    observations = [{**OBSERVED[0], "message_id": "a1", "error_number": 9789, "status_text": "off"}]
    compared = [
        [row["agreement"] for row in listed(resolved_routes=[one], observed_routing=observations).messages]
        for one in (sent, {**sent, "rerouted_from": "Own"})
    ]
    assert compared == [["CONTRADICTS"], ["AGREES"]]
    of_network = [{**observations[0], "database_name": None}]
    [row] = listed(resolved_routes=[arrived], observed_routing=of_network).messages
    assert row["agreement"] == "AGREES"


def test_the_handle_is_shown_if_the_table_has_it() -> None:
    handles = [{**row, "conversation_handle": f"h{place}"} for place, row in enumerate(OBSERVED)]
    stored = tables(resolved_routes=RESOLVED, observed_routing=handles)
    done = list_messages(stored, ask(reasons=["NO_ROUTE"]), now=NOW)
    assert [row["conversation_handle"] for row in done.messages] == ["h7", "h1", "h5", "h3"]
    stored["observed_routing"] = stored["observed_routing"].drop_columns(["conversation_handle"])
    of_older_tables = list_messages(stored, ask(reasons=["NO_ROUTE"]), now=NOW)
    assert [row["conversation_handle"] for row in of_older_tables.messages] == [None] * 4
    # Without imports nobody knows what waits.
    assert {row["is_waiting"] for row in done.messages} == {None}


def test_messages_waiting_in_the_newest_export() -> None:
    waiting = ask(waiting=True)
    done = listed(waiting)
    # a2, a3, a4, a7 and n1, which no run has decided.
    assert (done.queued_messages, done.exported, done.total) == (5, True, 4)
    twice = [exported("Shop", at) for at in (MONDAY, TUESDAY, MONDAY)]
    assert ids(listed(waiting, imports=twice)) == ["a3", "a7", "a2", "a4"]
    # A microsecond later there was an export that held nothing.
    later = listed(waiting, imports=[exported("Shop", "2026-01-06T12:00:00.654322Z")])
    assert (later.queued_messages, later.exported, later.total) == (0, True, 0)
    never = listed(waiting, imports=[exported("Shop", "2026-01-06T12:00:00.654321Z", "routes")])
    assert (never.queued_messages, never.exported, never.total) == (0, False, 0)
    assert listed(waiting, observed_routing=[]).queued_messages == 0
    assert listed().queued_messages is None


def test_messages_are_listed_without_other_tables() -> None:
    done = list_messages(tables(resolved_routes=RESOLVED), ask(), now=NOW)
    assert len(done.messages) == 8
    assert {row["agreement"] for row in done.messages} == {None}
    assert done.messages.to_arrow().column_names == LISTED_MESSAGES.names
    empty = list_messages(tables(resolved_routes=[]), ask(), now=NOW)
    assert (empty.total, len(empty.messages), len(empty.groups)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({"outcomes": ["DELAID"]}, "there is no outcome 'DELAID' (did you mean DELAYED?)"),
        ({"reasons": ["no route"]}, "there is no reason 'no route' (did you mean NO_ROUTE?)"),
        ({"outcomes": ["x"]}, "there is no outcome 'x' (known are DELIVERED, SENT, FORWARDED, DELAYED, DROPPED)"),
        (
            {"services": ["\udcff"]},
            "--service holds bytes that are not text in this terminal's encoding (write it in UTF-8)",
        ),
    ],
)
def test_invalid_filters_are_refused(question: dict[str, Any], expected: str) -> None:
    with pytest.raises(QuestionError) as fault:
        ask(**question)
    assert str(fault.value) == expected


_CHOICES: list[dict[str, list[str]]] = [
    {},
    {"outcome": ["DELAYED"]},
    {"reason": ["NETWORK_ADDRESS", "BROKER_DISABLED"]},
    {"instance_name": ["hub"], "outcome": ["SENT", "DELAYED"]},
    {"to_service_name": ["//é", "//a"], "instance_name": ["HUB", "SPOKE"]},
]
_OPTIONS = {
    "outcome": "outcomes",
    "reason": "reasons",
    "instance_name": "instances",
    "to_service_name": "services",
}


@pytest.mark.parametrize("seed", [0, 1, 5], ids=["40 rows", "3 rows", "200 rows"])
def test_random_messages_against_plain_python(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    rows = random_rows(chance, chance.choice((3, 40, 200)))
    for form in (arrow_of(rows, RESOLVED_ROUTES), in_files(rows, tmp_path / "resolved", chance.randrange(1, 4))):
        for only in _CHOICES:
            for limit in (1, 7, 30, 1_000):
                oldest = chance.random() < 0.5
                options: dict[str, Any] = {_OPTIONS[name]: values for name, values in only.items()}
                asked = ask(oldest=oldest, limit=limit, **options)
                found = select(open_traffic(form), asked, None)
                wanted = list_plainly(rows, only, oldest=oldest, limit=limit)
                names = ("instance_name", "message_id", "reason", "database_name")
                assert [tuple(row[name] for name in names) for row in found.rows] == wanted["ids"]
                counts = {(row["outcome"], row["reason"]): row["messages"] for row in found.counts}
                assert Counter(counts) == wanted["counts"]
                assert [tuple(row.values()) for row in found.groups] == wanted["groups"]
