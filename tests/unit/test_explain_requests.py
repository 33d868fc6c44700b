"""Which other messages an explanation looks at, for one of them may have asked for a route before (section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from routing.cases.questions import DescribedMessage
from routing.schemas import INPUTS
from routing.tables.table_columns import TableColumns
from routing.views.explain.explaining import Explanation, explain
from tests import estate_rows
from tests.estate_rows import (
    ASK,
    conversation,
    database,
    endpoint,
    instance,
    message,
    route,
    service,
    small_estate,
)
from tests.frames import Tables, arrow, moment
from tests.unit.explained_rows import KnownRows, columns_of_rows

Row = dict[str, Any]


def at(hour: int, number: int, **columns: Any) -> Row:
    return message(number, "//nowhere", enqueue_time=f"2026-01-05T{hour:02}:00:00Z", **columns)


def estate(*messages: Row, record: list[Row] | None = None) -> Tables:
    return {**small_estate(), "messages": list(messages), "route_requests": record or []}


def request(message_id: str, hour: int, ended: int | None = None) -> Row:
    end = None if ended is None else f"2026-01-05T{ended:02}:00:00Z"
    requested_at = f"2026-01-05T{hour:02}:00:00Z"
    return estate_rows.request("//nowhere", message_id=message_id, requested_at=requested_at, ended_at=end)


def step_and_requests(answer: Explanation) -> tuple[Any, list[tuple[str, str]]]:
    """The verdict's step, and the requests that are shown."""
    [verdict] = answer.verdict
    shown = [(row["finding"], row["name"]) for row in answer.steps if row["item"] == "REQUEST"]
    return verdict["matching_step"], shown


def test_other_messages_are_only_read_for_requests() -> None:
    known_rows = KnownRows(small_estate())
    for number, name in ((1, "//stock"), (2, "//stock"), (3, "//far")):
        known_rows.explain(message(number, name))
    expired = at(12, 9)
    tables = small_estate()
    tables["dialogs"].append({**tables["dialogs"][0], "conversation_id": expired["conversation_id"].lower()})
    tables["dialogs"][-1]["lifetime"] = expired["enqueue_time"]
    assert known_rows.asked == 0
    known_rows = KnownRows(tables)
    assert step_and_requests(known_rows.explain(expired)) == (None, [])
    assert known_rows.asked == 0
    assert step_and_requests(known_rows.explain(at(12, 10))) == (4, [])
    assert known_rows.asked == 1


CASES: dict[str, tuple[Tables, Row, tuple[Any, list[tuple[str, str]]]]] = {
    "the first asks": (estate(at(12, 1), at(13, 2)), at(12, 1), (4, [])),
    "the second finds that it has asked": (estate(at(12, 1), at(13, 2)), at(13, 2), (7, [("OPEN", "m1")])),
    "at one time the lesser id asks": (estate(at(12, 10), at(12, 9)), at(12, 9), (7, [("OPEN", "m10")])),
    "what cannot be judged does not ask": (
        estate(at(12, 1, conversation_id="no guid"), at(12, 2, database_name="Nowhere"), at(13, 3)),
        at(13, 3),
        (4, []),
    ),
    "another instance and another database have their own": (
        estate(at(12, 1, instance_name="spoke"), at(12, 2, database_name="Stock"), at(13, 3)),
        at(13, 3),
        (4, []),
    ),
    "a request on record is pending until it ends": (
        estate(at(12, 1), record=[request("m0", 11, 13)]),
        at(12, 1),
        (7, [("ENDED", "m0")]),
    ),
    "what a later message asks once that has ended is shown": (
        estate(at(12, 1), at(14, 3), at(13, 2), record=[request("m0", 11, 13)]),
        at(12, 1),
        (7, [("OPEN", "m2"), ("ENDED", "m0")]),
    ),
    "its own request on record is opened again": (
        estate(at(12, 1), record=[request("m1", 12, 13)]),
        at(12, 1),
        (4, []),
    ),
    "the newest come first, 20 of them": (
        estate(at(23, 1), record=[request(f"r{n:02}", n // 2, 20) for n in range(30)]),
        at(23, 1),
        (4, [("ENDED", f"r{n:02}") for n in range(29, 9, -1)]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_earlier_requests_are_explained(name: str) -> None:
    tables, row, expected = CASES[name]
    assert step_and_requests(KnownRows(tables).explain(row)) == expected


def test_reading_stops_when_the_answer_is_certain() -> None:
    rows = [at(hour, hour) for hour in range(24)]
    read = []

    def one_by_one(instance: str, service: str) -> Iterator[Mapping[str, TableColumns]]:
        for row in rows:
            read.append(row["message_id"])
            yield {"messages": columns_of_rows([row], INPUTS["messages"])}

    known_rows = KnownRows(estate())
    known_rows.known = replace(known_rows.known, chunks=one_by_one)
    assert step_and_requests(known_rows.explain(rows[20])) == (7, [("OPEN", "m0")])
    assert read == ["m0", "m1"]


def test_a_dialog_decides_whether_an_earlier_message_asks() -> None:
    tables = estate(at(12, 1), at(13, 2))
    lower = conversation(1).lower()
    tables["dialogs"] = [endpoint(1, conversation_id=lower, lifetime="2026-01-05T12:00:00Z")]
    assert step_and_requests(KnownRows(tables).explain(at(13, 2))) == (4, [])


@pytest.mark.parametrize("lacking", ["conversation_id", "is_initiator"])
def test_faults_of_other_dialogs_are_ignored(lacking: str) -> None:
    """A run refuses the table. An explanation reads only the dialogs that it needs."""
    tables = estate(at(12, 1), at(13, 2))
    ended = endpoint(1, conversation_id=conversation(1).lower(), lifetime="2026-01-05T12:00:00Z")
    tables["dialogs"] = [{**ended, lacking: None}]
    assert step_and_requests(KnownRows(tables).explain(at(13, 2))) == (7, [("OPEN", "m1")])


def asking(address: str, *, held_by: str | None = None, scope: str = "Sales", **spoke: Any) -> Tables:
    """Return an estate in which hub asks by an address. `spoke` gets the request and may forward it to `far`."""
    tables, there = small_estate(), {"instance_name": "spoke"}
    on = spoke.get("forwards_to")
    forwards = {"hub": True, "spoke": spoke.get("forwarding", True)}
    tables["instances"] = [
        instance(name, f"tcp://{name}:4022", is_message_forwarding_enabled=is_on)
        for name, is_on in forwards.items()
    ]
    tables["databases"] += [
        database("Desk", "d0000000-0000-4000-8000-000000000000", **there),
        database("msdb", "e0000000-0000-4000-8000-000000000000"),
    ]
    if held_by is not None:
        name, _, holder = held_by.partition(".")
        tables["services"].append(service(holder, ASK, instance_name=name))
    tables["routes"] = [
        route("Ask", ASK, address, database_name=scope),
        route("On", ASK if on else None, on or "LOCAL", **there, database_name="msdb"),
    ]
    return tables


PATHS: dict[str, tuple[Tables, list[tuple[Any, ...]]]] = {
    "nobody here holds the service": (
        asking("LOCAL"),
        [("hub", "Sales", 2, "Ask", "DELAYED"), ("hub", None, "DELAYED")],
    ),
    "a database here holds it": (
        asking("LOCAL", held_by="hub.Stock"),
        [("hub", "Sales", 2, "Ask", "DELIVERED"), ("hub", "Stock", "DELIVERED")],
    ),
    "the instance at the address holds it": (
        asking("tcp://spoke:4022", held_by="spoke.Desk"),
        [
            ("hub", "Sales", 2, "Ask", "SENT"),
            ("spoke", "msdb", 5, "On", "DELIVERED"),
            ("spoke", "Desk", "DELIVERED"),
        ],
    ),
    "the instance at the address lacks it": (
        asking("tcp://spoke:4022"),
        [("hub", "Sales", 2, "Ask", "SENT"), ("spoke", "msdb", 5, "On", "DROPPED"), ("spoke", None, "DROPPED")],
    ),
    "nobody known has the address": (
        asking("tcp://far:4022"),
        [("hub", "Sales", 2, "Ask", "SENT"), (None, None, "LEFT_ESTATE")],
    ),
    "a gate of which nothing tells whether it forwards": (
        asking("tcp://spoke:4022", forwarding=None, forwards_to="tcp://far:4022"),
        [
            ("hub", "Sales", 2, "Ask", "SENT"),
            ("spoke", "msdb", 2, "On", "DROPPED"),
            ("spoke", None, "FORWARDING_NOT_KNOWN"),
        ],
    ),
    "msdb asks where the message came back to its own instance": (
        asking("tcp://spoke:4022", held_by="spoke.Desk", scope="msdb"),
        [
            ("hub", "msdb", 2, "Ask", "SENT"),
            ("spoke", "msdb", 5, "On", "DELIVERED"),
            ("spoke", "Desk", "DELIVERED"),
        ],
    ),
}


def shown_path(answer: Explanation) -> list[tuple[Any, ...]]:
    return [
        (row["instance_name"], row["database_name"], row["step"], row["name"], row["finding"])
        if row["item"] == "REQUEST_HOP"
        else (row["instance_name"], row["database_name"], row["finding"])
        for row in answer.steps
        if row["item"] in ("REQUEST_HOP", "REQUEST_END")
    ]


@pytest.mark.parametrize("name", PATHS)
def test_the_path_of_the_request_is_shown(name: str) -> None:
    tables, expected = PATHS[name]
    database = None if "came back" in name else "Sales"
    answer = KnownRows(tables).explain(at(12, 1, database_name=database))
    assert shown_path(answer) == expected
    [head] = [row for row in answer.steps if row["item"] == "REQUEST_PATH"]
    asker = "msdb" if database is None else database
    assert (head["instance_name"], head["database_name"], head["service_name"]) == ("hub", asker, ASK)
    assert (head["finding"] == "LOST") == (expected[-1][-1] in ("DELAYED", "DROPPED"))


def test_a_conversation_that_waits_shows_the_request_of_its_first_message() -> None:
    tables = asking("LOCAL")
    first = at(12, 1)
    second = at(13, 2, conversation_id=first["conversation_id"])
    tables["messages"] = [first, second]
    answer = KnownRows(tables).explain(second)
    assert step_and_requests(answer) == (4, [("OPEN", "m1")])
    assert shown_path(answer) == PATHS["nobody here holds the service"][1]


def test_without_an_own_request_no_path_of_it_is_shown() -> None:
    tables = asking("LOCAL")
    tables["route_requests"] = [request("m0", 11)]
    assert shown_path(KnownRows(tables).explain(at(12, 1))) == []


def test_at_most_twenty_paths_are_listed() -> None:
    tables = asking("tcp://far:4022")
    [ask] = [row for row in tables["routes"] if row["name"] == "Ask"]
    tables["routes"] += [{**ask, "name": f"Ask{n:02}", "address": f"tcp://far{n}:4022"} for n in range(24)]
    shown = shown_path(KnownRows(tables).explain(at(12, 1)))
    assert [row for row in shown if row[-1] == "LEFT_ESTATE"] == [(None, None, "LEFT_ESTATE")] * 20
    assert shown[-1] == (None, None, "TOO_MANY_WAYS")


def test_other_instances_are_read_only_for_requests() -> None:
    """A faulty row of another instance does not prevent an explanation. That instance counts as unknown."""
    question = DescribedMessage("hub", "Sales", "//nowhere", moment("2026-01-05T12:00:00Z"))
    tables = asking("tcp://spoke:4022", held_by="spoke.Desk")
    tables["messages"] = []
    expected = PATHS["the instance at the address holds it"][1]
    assert shown_path(explain(arrow(tables), question)) == expected
    tables["routes"].append({**tables["routes"][-1], "name": "Bad", "address": "no address"})
    assert shown_path(explain(arrow(tables), question)) == [expected[0], ("spoke", None, "NOT_KNOWN")]
