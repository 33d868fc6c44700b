"""All messages of Arrow's tables, judged in plain Python: worked cases, batches, and what is read."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from typing import Any

import pytest

from routing.errors import InputError
from routing.schemas import DIALOGS, INPUTS, MESSAGES
from tests.frames import Tables, arrow, arrow_of, load_cases, moment
from tests.random_estates import AS_OF, SEED, Row, assert_decided
from tests.reference.estates import joined, random_estate
from tests.reference.resolver import resolve as reference
from tests.unit.judged_messages import (
    JudgedRow,
    decide_by_planner,
    judge_messages,
    judge_of,
    read_messages,
    resolved_rows,
)
from tests.unit.rules.by_rules import micros


def _estates(count: int) -> Tables:
    rng = random.Random(SEED)
    return joined([random_estate(rng, 60, f"e{number}/") for number in range(count)])


@pytest.mark.parametrize("as_of", [None, AS_OF], ids=["own time", "as_of"])
def test_batches_of_one_row_are_judged_like_one_batch(as_of: datetime | None) -> None:
    tables = _estates(10)
    assert judge_messages(tables, as_of, size=1) == judge_messages(tables, as_of)


def test_what_is_forgotten_is_decided_again() -> None:
    tables = _estates(20)
    assert_decided(decide_by_planner(tables, None, most_keys=3), reference(tables, None), is_whole=False)


CASES = load_cases()


@pytest.mark.parametrize("case", CASES, ids=[f"{case['file']}: {case['case']}" for case in CASES])
def test_worked_case(case: dict[str, Any]) -> None:
    tables, expected = case["tables"], case["expect"]
    judged = judge_messages(tables, moment(case.get("as_of")))
    rows = list(zip(tables["messages"], judged, strict=True))
    assert sorted(row["message_id"] for row, found in rows if found.rejections) == sorted(
        expected.get("rejected_messages", [])
    )
    resolved = {row["message_id"]: row for row in resolved_rows(judged)}
    for row in expected["resolved_routes"]:
        mine = resolved[row["message_id"]]
        told = {name: moment(value) for name, value in row.items() if name in mine}
        assert {name: mine[name] for name in told} == told
    if "new_route_requests" in expected:
        opened = {
            (found.message.t, found.message.message_id) for found in judged if _opens(found) if found.message
        }
        wanted = {
            (micros(moment(row["requested_at"])), row["message_id"]) for row in expected["new_route_requests"]
        }
        assert opened == wanted


def _opens(judged: JudgedRow) -> bool:
    return judged.verdict is not None and judged.verdict.opens_request


_NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
_A, _B = (f"{digit * 8}-0000-4000-8000-{digit * 12}" for digit in "ab")
_ASKED = "SQL/ServiceBroker/BrokerConfiguration"


def _message(message_id: str, **more: Any) -> Row:
    return {
        "message_id": message_id,
        "conversation_id": _A,
        "is_initiator": True,
        "enqueue_time": _NOON,
        "instance_name": "hub",
        "database_name": "app",
        "to_service_name": "//far",
        **more,
    }


def _route(name: str, **more: Any) -> Row:
    return {"instance_name": "hub", "database_name": "app", "name": name, "address": "LOCAL", **more}


def _estate(routes: list[Row], messages: list[Row], **more: list[Row]) -> Tables:
    return {
        "instances": [{"instance_name": "hub"}],
        "databases": [{"instance_name": "hub", "name": "app", "service_broker_guid": _A}],
        "services": [],
        "routes": routes,
        "messages": messages,
        **more,
    }


def test_messages_that_ask_may_come_in_any_order() -> None:
    """The earliest asks, wherever it stands, and rows like it do; the others go on to step 5."""
    messages = [_message("m3", conversation_id=_B), *map(_message, ("m1", "m2", "m1"))]
    messages[2]["conversation_id"] = _B
    routes = [_route("asked", remote_service_name=_ASKED), _route("any")]
    for size in (1, 3, None):
        judged = judge_messages(_estate(routes, messages), None, size)
        assert [found.verdict.reason for found in judged if found.verdict] == [
            *("SERVICE_NOT_FOUND", "ROUTE_REQUESTED", "SERVICE_NOT_FOUND", "ROUTE_REQUESTED")
        ]


def test_equal_verdicts_are_one_object() -> None:
    judged = judge_messages(
        _estate([_route("any")], [_message("m1"), _message("m2"), _message("m3", hops_remaining=0)]), None
    )
    first, second, third = (found.verdict for found in judged)
    assert first is second
    assert first == third


def test_ids_that_nothing_has_are_decided_once() -> None:
    routes = [
        _route("own", remote_service_name="//far", address="tcp://hub:1"),
        _route("msdb", database_name="msdb"),
    ]
    tables = _estate(routes, [_message("m1", to_broker_instance=_B), _message("m2", to_broker_instance="else")])
    tables["instances"][0]["addresses"] = ["tcp://hub:1"]
    first, second = (found.verdict for found in judge_messages(tables, None))
    assert first is not None
    assert second is not None
    assert (first.broker_instance, second.broker_instance) == (_B, "else")
    assert first.decision is second.decision
    assert first.rerouted_from == second.rerouted_from == "own"


def test_what_may_ask_must_be_settled_first() -> None:
    tables = _estate([_route("asked", remote_service_name=_ASKED)], [_message("m1")])
    arrow_tables = arrow(tables)
    judge = judge_of(arrow_tables, None)
    assert judge.may_ask
    [batch] = read_messages(arrow_tables["messages"])
    with pytest.raises(ValueError, match="find_openers has to see them"):
        judge.judge(batch)
    judge.find_openers([batch])
    assert [found.verdict.requested_in for found in judge.judge(batch) if found.verdict] == ["app"]


def test_where_nothing_asks_messages_are_read_once() -> None:
    arrow_tables = arrow(_estate([_route("any")], [_message("m1")]))
    judge = judge_of(arrow_tables, None)
    judge.find_openers(iter(lambda: pytest.fail("messages are read"), None))
    assert len(judge.judge(next(read_messages(arrow_tables["messages"])))) == 1


def _dialog(conversation: str | None, **more: Any) -> Row:
    ends = {"instance_name": "hub", "database_name": "app", "is_initiator": True}
    return {**ends, "conversation_id": conversation, **more}


@pytest.mark.parametrize(
    ("dialogs", "fault"),
    [
        ([_dialog(_A), _dialog(_A.upper(), far_broker_instance=_B)], "2 rows have this key"),
        ([_dialog(None)], "conversation_id is missing"),
        ([_dialog(_A, is_initiator=None), _dialog(_A)], "is_initiator is missing"),
    ],
)
def test_a_dialog_at_fault_is_refused(dialogs: list[Row], fault: str) -> None:
    arrow_tables = arrow(_estate([], []))
    with pytest.raises(InputError, match=fault):
        judge_of(arrow_tables, _dialogs(dialogs))


def _dialogs(rows: list[Row]) -> Any:
    return arrow_of(rows, DIALOGS)


def test_messages_without_optional_columns() -> None:
    """Columns that may be missing are, and so is whatever a dialog could say."""
    arrow_tables = arrow(_estate([_route("any")], [_message("m1", database_name=None)]))
    optional = [field.name for field in MESSAGES if field.nullable]
    [batch] = read_messages(arrow_tables["messages"].drop_columns(optional))
    dialogs = _dialogs([_dialog(_A)]).select(["instance_name", "database_name", "conversation_id", "is_initiator"])
    judge = judge_of(arrow_tables, dialogs)
    assert [found.verdict.reason for found in judge.judge(batch) if found.verdict] == ["NO_ROUTE"]


def test_only_some_messages_are_read() -> None:
    messages = arrow_of([_message("m1"), _message("m2", instance_name="rim"), _message("m3")], INPUTS["messages"])
    assert [
        ids for batch in read_messages(messages, {"instance_name": ["hub"]}) for ids in batch.rows("message_id")
    ] == [
        ("m1",),
        ("m3",),
    ]
