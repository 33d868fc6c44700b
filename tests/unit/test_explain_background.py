"""The facts beside the path: the newest status, the known parts of the instance and their times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from routing.cases.background import MessageBackground, StatusText, find_gap, status_of
from routing.cases.observed_statuses import newest_of_rows
from routing.cases.questions import QuestionError
from routing.delta.import_times import newest_of
from routing.schemas import DATABASES, IMPORTS, INSTANCES, OBSERVED_ROUTING, ROUTES
from routing.tables.arrow_rows import with_moments
from routing.terms import Outcome
from tests.estate_rows import database, estate, instance, message, route
from tests.unit.explained_rows import KnownRows, columns_of_rows

Row = dict[str, Any]
QUEUE = {"source": "TRANSMISSION_QUEUE", "observed_at": "1970-01-01T00:00:05Z", "message_id": "m"}
DIALOG = "6b1f0b9a-6a0e-4a52-9c7b-0d6f6d9a0001"
MESSAGE = {
    "message_id": "m",
    "conversation_id": DIALOG.upper(),
    "is_initiator": True,
    "message_sequence_number": 3,
    "to_service_name": "S",
    "database_name": "d",
}
EVENT = {
    "source": "CLASSIFY_EVENT",
    "observed_at": "1970-01-01T00:00:05Z",
    "conversation_id": DIALOG,
    "is_initiator": True,
    "is_from_network": False,
    "outcome": "SENT",
}
SENT = StatusText(5_000_000, None, None, "CLASSIFY_EVENT", Outcome.SENT)
AT = 5_000_000

# Rows of one message, and the newest status among them.
STATUSES: list[tuple[list[Row], StatusText | None]] = [
    ([], None),
    ([{**QUEUE, "source": None}], None),
    ([{**QUEUE, "observed_at": None, "error_number": 9793}], None),
    ([QUEUE], StatusText(AT, None, None)),
    ([{**QUEUE, "status_text": ""}], StatusText(AT, None, None)),
    ([{**QUEUE, "status_text": " "}], StatusText(AT, None, " ")),
    ([{**QUEUE, "error_number": 0}], StatusText(AT, 0, None)),
    (
        [{**QUEUE, "error_number": 2}, {**QUEUE, "observed_at": "1970-01-01T00:00:04.999999Z", "error_number": 3}],
        StatusText(AT, 2, None),
    ),
    ([QUEUE, {**QUEUE, "status_text": "a"}], StatusText(AT, None, "a")),
    ([{**QUEUE, "error_number": 1, "status_text": "a"}, {**QUEUE, "status_text": "b"}], StatusText(AT, 1, "a")),
    ([{**QUEUE, "message_id": "n"}], None),
    # Of older imports a message of another database may have the same id.
    ([{**QUEUE, "database_name": "e"}], None),
    ([{**QUEUE, "database_name": "d"}], StatusText(AT, None, None)),
    # Events of the conversation: of this role, service and number, and this way in.
    ([EVENT], SENT),
    ([{**EVENT, "to_service_name": "S", "message_sequence_number": 3, "database_name": "d"}], SENT),
    ([{**EVENT, "next_hop": "tcp://h:1"}], replace(SENT, next_hop="tcp://h:1")),
    ([{**EVENT, "conversation_id": f"{DIALOG[:-1]}2"}], None),
    ([{**EVENT, "is_initiator": False}], None),
    ([{**EVENT, "is_initiator": None}], None),
    ([{**EVENT, "to_service_name": "T"}], None),
    ([{**EVENT, "message_sequence_number": 4}], None),
    ([{**EVENT, "database_name": "e"}], None),
    ([{**EVENT, "is_from_network": True}], None),
    ([{**EVENT, "source": "FORWARD_SENT", "is_from_network": None}], None),
    ([{**EVENT, "source": "SOMETHING"}], None),
    # The newer counts; of both at one time the one with a number.
    ([QUEUE, {**EVENT, "observed_at": "1970-01-01T00:00:06Z"}], replace(SENT, observed_at=6_000_000)),
    ([{**QUEUE, "error_number": 9793}, {**EVENT, "error_number": 9796}], StatusText(AT, 9793, None)),
    ([QUEUE, EVENT], SENT),
    (
        [{**EVENT, "next_hop": "tcp://a:1"}, {**EVENT, "next_hop": "tcp://b:1"}],
        replace(SENT, next_hop="tcp://b:1"),
    ),
]


def newest_status(rows: list[Row], latest: int | None = None) -> StatusText | None:
    """The newest status of the message among some rows."""
    newest = newest_of_rows(columns_of_rows(rows, OBSERVED_ROUTING).dicts(), MESSAGE, latest)
    return None if newest is None else status_of(newest)


@pytest.mark.parametrize(("rows", "status"), STATUSES)
def test_the_newest_status(rows: list[Row], status: StatusText | None) -> None:
    for in_order in (rows, rows[::-1]):
        assert newest_status(in_order) == status


@pytest.mark.parametrize(
    ("times", "newest"),
    [
        pytest.param((5, 9), 5, id="one that had not come is older than one that had"),
        pytest.param((5, 6), 6, id="the latest that may be"),
        pytest.param((8, 9), 9, id="of several that had not come the newest"),
        pytest.param((9,), 9, id="nothing else is stored"),
    ],
)
def test_the_newest_status_is_not_after_the_given_time_if_possible(times: tuple[int, ...], newest: int) -> None:
    rows = [{**QUEUE, "observed_at": f"1970-01-01T00:00:0{second}Z"} for second in times]
    status = newest_status(rows, latest=6_000_000)
    assert status == StatusText(newest * 1_000_000, None, None)


# The row of an instance, how many databases and routes are listed of it, and the gap.
GAPS: list[tuple[Row, int, int, str | None]] = [
    ({}, 0, 0, "ONLY_NAME"),
    ({"addresses": []}, 0, 0, "ONLY_NAME"),
    ({"addresses": [None, ""]}, 0, 0, "ONLY_NAME"),
    ({}, 0, 1, "ONLY_ROUTES"),
    ({}, 1, 0, None),
    ({"is_message_forwarding_enabled": False}, 0, 0, None),
    ({"is_message_forwarding_enabled": True}, 0, 1, None),
    ({"addresses": ["tcp://a:1"]}, 0, 0, None),
]


@pytest.mark.parametrize(("row", "databases", "routes", "gap"), GAPS)
def test_gaps_of_an_instance_are_found(row: Row, databases: int, routes: int, gap: str | None) -> None:
    near = {
        "instances": columns_of_rows([instance(**row)], INSTANCES),
        "databases": columns_of_rows([database()] * databases, DATABASES),
        "routes": columns_of_rows([route("r", None, "LOCAL")] * routes, ROUTES),
    }
    assert find_gap(near) == gap


def test_an_unlisted_instance_is_not_a_gap() -> None:
    none = {"instances": INSTANCES, "databases": DATABASES, "routes": ROUTES}
    assert find_gap({key: columns_of_rows([], schema) for key, schema in none.items()}) is None


# SQL Server's number and text, the reason of the verdict, whether msdb was searched, and the line beside it.
BESIDE: list[tuple[int | None, str | None, str, bool, tuple[str, str | None]]] = [
    (9793, "t", "NO_ROUTE", False, ("AGREES", None)),
    (9754, "t", "NETWORK_ADDRESS", False, ("COMPATIBLE", "Routed as predicted; the transport failed.")),
    (9793, None, "LOCAL_SERVICE", False, ("CONTRADICTS", "SQL Server itself routed it otherwise.")),
    (9789, None, "SCOPE_BROKER_DISABLED", True, ("AGREES", "The broker of msdb is off.")),
    (9789, None, "SCOPE_BROKER_DISABLED", False, ("CONTRADICTS", "SQL Server itself routed it otherwise.")),
    (None, "t", "NO_ROUTE", False, ("SAYS_NOTHING", "A text that this project does not know.")),
    (None, None, "NO_ROUTE", False, ("SAYS_NOTHING", "Not tried yet, or sent and not acknowledged.")),
]


@pytest.mark.parametrize(("number", "status", "reason", "in_msdb", "expected"), BESIDE)
def test_a_status_confirms_or_contradicts_the_verdict(
    number: int | None, status: str | None, reason: str, in_msdb: bool, expected: tuple[str, str | None]
) -> None:
    [line] = MessageBackground(status=StatusText(AT, number, status)).after_the_verdict(
        "DELAYED", reason, in_msdb=in_msdb
    )
    assert (line["item"], line["at"], line["error_number"], line["status_text"]) == ("STATUS", AT, number, status)
    assert (line["finding"], line["why"]) == expected


def test_without_a_verdict_or_a_status_nothing_is_compared() -> None:
    background = MessageBackground(status=StatusText(AT, 9793, "t"))
    assert background.after_the_verdict(None, None, in_msdb=False) == []
    assert MessageBackground().after_the_verdict("DELAYED", "NO_ROUTE", in_msdb=False) == []


# When what has no history was last imported, and the time of the line about it.
LATER: list[tuple[dict[str, int], int | None]] = [
    ({}, None),
    ({"hub": AT + 1}, AT + 1),
    ({"hub": AT}, None),
    ({"hub": AT - 1}, None),
    ({"spoke": AT + 1}, None),
]


@pytest.mark.parametrize(("newest", "at"), LATER)
def test_imports_after_the_decision_are_noted(newest: dict[str, int], at: int | None) -> None:
    lines = MessageBackground("ONLY_NAME", newest=newest).before_the_path("hub", AT)
    assert [(line["item"], line["name"]) for line in lines][-1] == ("INSTANCE", "hub")
    assert [(line["finding"], line["at"]) for line in lines[:-1]] == ([] if at is None else [("LATER", at)])


def test_views_with_a_history_are_not_listed_as_later_imports() -> None:
    rows = [
        {"instance_name": "hub", "view_or_file": view, "exported_at": f"1970-01-01T00:00:0{second}Z"}
        for view, second in (("databases", 5), ("fix.sql", 6), ("routes", 7), ("transmission_queue", 8))
    ]
    imports = with_moments(columns_of_rows(rows, IMPORTS).dicts(), ["exported_at", "imported_at"])
    assert newest_of(imports) == {"hub": AT + 1_000_000}


def arrived() -> KnownRows:
    """Return an instance with only one known route, which leads to another instance."""
    return KnownRows(estate(databases=[], routes=[route("Far", None, "tcp://far:4022", database_name="msdb")]))


def test_a_missing_database_list_is_a_gap() -> None:
    with pytest.raises(QuestionError) as caught:
        arrived().explain(message(1, "//far"))
    expected = "the message would be rejected: UNKNOWN_DATABASE (the databases, addresses and forwarding of"
    assert str(caught.value).startswith(
        f"{expected} instance 'hub' are not known; docs/reference/tables.md explains "
    )


def test_gaps_come_before_the_path() -> None:
    lines = list(arrived().explain(message(1, "//far", database_name=None)).steps)
    assert [line["item"] for line in lines][:5] == ["MESSAGE", "TIME", "BROKER_INSTANCE", "INSTANCE", "SCOPE"]
    assert (lines[3]["finding"], lines[3]["name"]) == ("ONLY_ROUTES", "hub")
    assert [line["finding"] for line in lines if line["item"] == "FORWARDING"] == ["NOT_KNOWN"]
    assert (lines[-1]["outcome"], lines[-1]["reason"]) == ("DROPPED", "FORWARDING_DISABLED")


@pytest.mark.parametrize(
    ("is_msdb_on", "reason", "expected"),
    [(False, "SCOPE_BROKER_DISABLED", "AGREES"), (True, "NO_ROUTE", "CONTRADICTS")],
)
def test_a_status_is_compared_with_the_search_that_decided(is_msdb_on: bool, reason: str, expected: str) -> None:
    """9789 says that the broker of msdb is off."""
    arriving = message(1, "//far", database_name=None)
    msdb = database("msdb", is_broker_enabled=is_msdb_on)
    observation = {**QUEUE, "instance_name": "hub", "message_id": "m1", "error_number": 9789}
    known_rows = KnownRows(estate(databases=[msdb], observed_routing=[observation]))
    *_, outcome, status = known_rows.explain(arriving).steps
    assert (outcome["reason"], status["item"], status["finding"]) == (reason, "STATUS", expected)
