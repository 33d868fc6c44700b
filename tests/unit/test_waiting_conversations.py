"""A conversation that waits for a route waits as a whole (D10), by each command that decides messages."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

import routing
from routing.cases.compared_tables import TableVersions
from routing.cases.questions import DescribedMessage, Question, StoredMessage
from routing.engines.arrow.traced_batches import ArrowPaths
from routing.schemas import OBSERVED_ROUTING, ROUTE_REQUESTS
from routing.views.diff.diffing import diff
from routing.views.explain.explaining import explain
from routing.views.trace.tracing import trace
from tests import estate_rows
from tests.estate_rows import (
    ASK,
    STOCK,
    conversation,
    database,
    estate,
    instance,
    message,
    observation,
    route,
    service,
    small_estate,
)
from tests.frames import Tables, arrow, arrow_of, rows_in
from tests.stored import config_of, save_estate

Row = dict[str, Any]
NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
OWN, OTHER = conversation(1), conversation(2)


def request(
    where: str, for_service: str, whose: str | None, *, is_initiator: bool | None = True, **more: Any
) -> Row:
    """A request on record, made before noon."""
    columns = {"database_name": where, "conversation_id": whose, "is_initiator": is_initiator}
    return estate_rows.request(for_service, **columns, **more)


def asking(*messages: Row, record: list[Row]) -> Tables:
    """Return the small estate with messages for a service that Sales asks for.

    Without messages, a LOCAL route for any service replaces the question.
    """
    small = small_estate()
    routes = [*small["routes"], route("Any", None, "LOCAL")]
    return {**small, "routes": routes, "messages": list(messages), "route_requests": record}


# Requests on record for a service that Sales asks for, and the step of a message of conversation 1 at noon.
RECORDS: dict[str, tuple[list[Row], int]] = {
    "none": ([], 4),
    "its own": ([request("Sales", "//new", OWN)], 4),
    "its own, in lower case": ([request("Sales", "//new", OWN.lower())], 4),
    "another's": ([request("Sales", "//new", OTHER)], 5),
    "the other role's": ([request("Sales", "//new", OWN, is_initiator=False)], 5),
    "its own that has ended": ([request("Sales", "//new", OWN, ended_at="2026-01-05T12:00:00Z")], 4),
    "its own that has ended, and another's": (
        [
            request("Sales", "//new", OWN, ended_at="2026-01-05T12:00:00Z"),
            request("Sales", "//new", OTHER, message_id="m9"),
        ],
        5,
    ),
    "nobody's": ([request("Sales", "//new", None)], 5),
    "no GUID's": ([request("Sales", "//new", "{" + OWN + "}")], 5),
    "of no role": ([request("Sales", "//new", OWN, is_initiator=None)], 5),
    "its own in msdb": ([request("msdb", "//new", OWN)], 4),
}
_RECORDS = pytest.mark.parametrize(("record", "step"), RECORDS.values(), ids=RECORDS)


@_RECORDS
def test_explain(record: list[Row], step: int) -> None:
    tables = arrow(asking(message(1, "//new"), record=record))
    done = explain(tables, StoredMessage("m1", "hub"))
    [verdict] = done.verdict
    assert verdict["matching_step"] == step
    stops = [row["step"] for row in done.steps if row["item"] == "STEP" and row["finding"] == "MATCHED"]
    assert stops == [step]


@_RECORDS
def test_trace_of_a_message(record: list[Row], step: int) -> None:
    done = trace(arrow(asking(message(1, "//new"), record=record)), StoredMessage("m1", "hub"))
    assert [row["matching_step"] for row in done.hop_rows] == [step]


@_RECORDS
def test_trace_of_all_messages(record: list[Row], step: int) -> None:
    paths = ArrowPaths.of(arrow(asking(message(1, "//new"), record=record)), None)
    [row] = [row for batch in paths.tables() for row in batch.to_pylist()]
    assert [hop["matching_step"] for hop in row["hops"]] == [step]


@_RECORDS
def test_reconcile(record: list[Row], step: int) -> None:
    """An episode is of the conversation endpoint that it was observed of."""
    sent: Row = {"message_sequence_number": 1, "to_service_name": "//new", "to_broker_instance": ""}
    seen = observation(1, NOON, **sent, message_id=None)
    done = routing.reconcile(
        {**arrow(asking(record=record)), "observed_routing": arrow_of([seen], OBSERVED_ROUTING)}
    )
    [row] = rows_in(done.rows)
    assert row["matching_step"] == step


def _described(tables: Tables, conversation_id: str | None) -> list[int | None]:
    question: Question = DescribedMessage("hub", "Sales", "//new", NOON, conversation_id=conversation_id)
    arrow_tables = arrow(tables)
    [verdict] = explain(arrow_tables, question).verdict
    assert [row["matching_step"] for row in trace(arrow_tables, question).hop_rows] == [verdict["matching_step"]]
    return [verdict["matching_step"]]


def test_a_described_message_belongs_to_the_named_conversation() -> None:
    tables = asking(record=[request("Sales", "//new", OWN)])
    assert [_described(tables, whose) for whose in (OWN, OTHER, None)] == [[4], [5], [5]]


def test_a_described_message_waits_for_the_request_that_a_stored_one_opens() -> None:
    tables = asking(message(1, "//new", enqueue_time="2026-01-05T11:00:00Z"), record=[])
    assert [_described(tables, whose) for whose in (OWN, OTHER, None)] == [[4], [5], [5]]


def test_explain_names_the_message_that_has_asked() -> None:
    earlier = message(1, "//new", enqueue_time="2026-01-05T11:59:00Z")
    later = message(2, "//new", conversation_id=OWN)
    others = [
        request("Sales", "//new", OTHER, message_id=f"r{n:02}", ended_at="2026-01-05T11:30:00Z") for n in range(30)
    ]
    done = explain(arrow(asking(earlier, later, record=others)), StoredMessage("m2", "hub"))
    [step] = [row for row in done.steps if row["item"] == "STEP" and row["finding"] == "MATCHED"]
    requests = [(row["finding"], row["name"]) for row in done.steps if row["item"] == "REQUEST"]
    assert (step["step"], step["name"]) == (4, "m1")
    assert requests[:2] == [("OPEN", "m1"), ("ENDED", "r29")]
    assert len(requests) == 20


# Requests on record at the next instance and at the target, and how the message and its reply end.
ON_THE_WAY: dict[str, tuple[Row | None, str, str | None]] = {
    "none": (None, "DELAYED", None),
    "of another conversation, there": (request("msdb", "//stock", OTHER), "DELIVERED", "DELAYED"),
    "of the conversation, there": (request("msdb", "//stock", OWN), "DELAYED", None),
    "of the other role, there": (request("msdb", "//stock", OWN, is_initiator=False), "DELIVERED", "DELAYED"),
}


def _two_instances(*record: Row) -> Tables:
    """Return Sales on hub, which sends to spoke. There msdb and Stock ask for routes, or have one for all."""
    spoke = {"instance_name": "spoke"}
    return estate(
        instances=[instance(name, f"tcp://{name}:1") for name in ("hub", "spoke")],
        databases=[database(), database("Stock", STOCK, **spoke)],
        services=[service("Sales", "//sales"), service("Stock", "//stock", **spoke)],
        routes=[
            route("ToSpoke", "//stock", "tcp://spoke:1"),
            route("Back", None, "LOCAL", database_name="msdb"),
            *(route("Ask", ASK, "LOCAL", **spoke, database_name=name) for name in ("msdb", "Stock")),
            route("Any", None, "LOCAL", **spoke, database_name="msdb"),
            route("Any", None, "tcp://hub:1", **spoke, database_name="Stock"),
        ],
        messages=[message(1, "//stock", from_service_name="//sales")],
        route_requests=[{**row, **spoke} for row in record],
    )


def _path(tables: Tables) -> tuple[str, str | None]:
    """How the message of some tables ends, and the reply to it: alike by itself, and with all messages."""
    arrow_tables = arrow(tables)
    done = trace(arrow_tables, StoredMessage("m1", "hub"))
    [row] = [row for batch in ArrowPaths.of(arrow_tables, None).tables() for row in batch.to_pylist()]
    there, back = row["outcome"], row["return_outcome"]
    [path] = done.paths
    assert (path.there.ending, path.back_ending) == (there, back)
    return there, back


@pytest.mark.parametrize(("row", "there", "back"), ON_THE_WAY.values(), ids=ON_THE_WAY)
def test_requests_at_a_later_hop_delay_a_message(row: Row | None, there: str, back: str | None) -> None:
    assert _path(_two_instances(*([] if row is None else [row]))) == (there, back)


@pytest.mark.parametrize(
    ("whose", "is_initiator", "back"),
    [
        pytest.param(OWN, False, "DELAYED", id="the target's, who replies"),
        pytest.param(OWN, True, "DELIVERED", id="the initiator's"),
        pytest.param(OTHER, False, "DELIVERED", id="another conversation's"),
        pytest.param(None, None, "DELIVERED", id="nobody's"),
    ],
)
def test_requests_for_the_reply_delay_it(whose: str | None, is_initiator: bool | None, back: str) -> None:
    there = request("msdb", "//stock", OTHER)
    assert _path(_two_instances(there, request("Stock", "//sales", whose, is_initiator=is_initiator))) == (
        "DELIVERED",
        back,
    )


@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        (OWN, OTHER, ("ROUTE_REQUESTED", "SERVICE_NOT_FOUND")),
        (OTHER, OWN, ("SERVICE_NOT_FOUND", "ROUTE_REQUESTED")),
        (None, OWN, ("SERVICE_NOT_FOUND", "ROUTE_REQUESTED")),
        (OTHER, None, None),
        (OWN, OWN.lower(), None),
    ],
)
@pytest.mark.parametrize("requested_at", ["2026-01-05T11:00:00Z", "2026-01-05T12:00:00Z"])
def test_diff_attributes_requests(
    tmp_path: Path, before: str | None, after: str | None, reasons: tuple[str, str] | None, requested_at: str
) -> None:
    """The request was made before the time of the decision, or at it by a message that is before by its id."""
    sides = [[request("Sales", "//new", whose, requested_at=requested_at)] for whose in (before, after)]
    save_estate(asking(message(1, "//new"), record=[]), tmp_path / "in", 1)
    for rows in sides:
        write_deltalake(str(tmp_path / "in" / "route_requests"), arrow_of(rows, ROUTE_REQUESTS), mode="overwrite")
    done = diff(config_of(tmp_path / "in", tmp_path / "out"), TableVersions({"route_requests": 1}), at=NOON)
    found = [(row["reason_before"], row["reason_after"]) for row in done.keys]
    assert found == ([] if reasons is None else [reasons])


@pytest.mark.parametrize(
    ("record", "noted"),
    [
        pytest.param([], [], id="none on record"),
        pytest.param(
            [request("Sales", "//new", OWN, ended_at="2026-01-05T11:30:00Z")], [], id="one that has ended"
        ),
        pytest.param([request("Sales", "//new", None)] * 2, ["1 route request on record has"], id="one, twice"),
        pytest.param(
            [request("Sales", service, OWN) for service in ("//new", "//newer")],
            ["2 route requests on record have"],
            id="two",
        ),
    ],
)
def test_resolve_notes_requests_that_have_no_end(tmp_path: Path, record: list[Row], noted: list[str]) -> None:
    save_estate(asking(message(1, "//new"), record=record), tmp_path / "in", 1)
    notes = routing.resolve_local(config_of(tmp_path / "in", tmp_path / "out")).notes
    assert [note.partition(" no ended_at")[0] for note in notes if "ended_at" in note] == noted
