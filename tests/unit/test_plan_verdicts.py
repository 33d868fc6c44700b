"""Arrow's messages judged in plain Python: worked cases, batches and reading."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import pytest

from routing.errors import InputError
from routing.schemas import DIALOGS, MESSAGES
from tests.estate_rows import ASK, STORE, conversation, endpoint, estate, instance, message, route
from tests.frames import arrow, arrow_of, load_cases, moment
from tests.random_estates import AS_OF, Row, assert_few_agree, draw_few
from tests.unit.judged_messages import (
    JudgedRow,
    decide_by_planner,
    judge_messages,
    judge_of,
    read_messages,
    resolved_rows,
)
from tests.unit.rules.by_rules import micros


@pytest.mark.parametrize("as_of", [None, AS_OF], ids=["own time", "as_of"])
def test_batches_of_one_row_are_judged_like_one_batch(as_of: datetime | None) -> None:
    tables = draw_few(as_of).tables
    assert judge_messages(tables, as_of, size=1) == judge_messages(tables, as_of)


def test_forgotten_verdicts_are_decided_again() -> None:
    assert_few_agree(partial(decide_by_planner, most_keys=3), None)


CASES = load_cases()


@pytest.mark.parametrize("case", CASES, ids=[f"{case['file']}: {case['case']}" for case in CASES])
def test_worked_case(case: dict[str, Any]) -> None:
    tables, expected = case["tables"], case["expect"]
    judged = judge_messages(tables, moment(case.get("as_of")))
    rows = list(zip(tables["messages"], judged, strict=True))
    assert sorted(row["message_id"] for row, judgement in rows if judgement.rejections) == sorted(
        expected.get("rejected_messages", [])
    )
    resolved = {row["message_id"]: row for row in resolved_rows(judged)}
    for row in expected["resolved_routes"]:
        mine = resolved[row["message_id"]]
        told = {name: moment(value) for name, value in row.items() if name in mine}
        assert {name: mine[name] for name in told} == told
    if "new_route_requests" in expected:
        opened = {
            (judgement.message.t, judgement.message.message_id)
            for judgement in judged
            if _opens(judgement)
            if judgement.message
        }
        wanted = {
            (micros(moment(row["requested_at"])), row["message_id"]) for row in expected["new_route_requests"]
        }
        assert opened == wanted


def _opens(judged: JudgedRow) -> bool:
    return judged.verdict is not None and judged.verdict.opens_request


_ASKED, _ANY = route("asked", ASK, "LOCAL"), route("any", None, "LOCAL")


def _far(number: int, **columns: Any) -> Row:
    """A message for a service that nothing names."""
    return message(number, "//far", **columns)


def test_messages_that_ask_may_come_in_any_order() -> None:
    """The earliest message asks at any position, and so do its duplicates. The others continue with step 5."""
    of_another = {"conversation_id": conversation(2)}
    messages = [_far(3, **of_another), _far(1), _far(2, **of_another), _far(1)]
    for size in (1, 3, None):
        judged = judge_messages(estate(routes=[_ASKED, _ANY], messages=messages), None, size)
        assert [judgement.verdict.reason for judgement in judged if judgement.verdict] == [
            *("SERVICE_NOT_FOUND", "ROUTE_REQUESTED", "SERVICE_NOT_FOUND", "ROUTE_REQUESTED")
        ]


def test_equal_verdicts_are_one_object() -> None:
    judged = judge_messages(estate(routes=[_ANY], messages=[_far(1), _far(2), _far(3, hops_remaining=0)]), None)
    first, second, third = (judgement.verdict for judgement in judged)
    assert first is second
    assert first == third


def test_unknown_ids_are_decided_once() -> None:
    tables = estate(
        instances=[instance("hub", "tcp://hub:1")],
        routes=[route("own", "//far", "tcp://hub:1"), route("msdb", None, "LOCAL", database_name="msdb")],
        messages=[_far(1, to_broker_instance=STORE), _far(2, to_broker_instance="else")],
    )
    first, second = (judgement.verdict for judgement in judge_messages(tables, None))
    assert first is not None
    assert second is not None
    assert (first.broker_instance, second.broker_instance) == (STORE, "else")
    assert first.decision is second.decision
    assert first.rerouted_from == second.rerouted_from == "own"


def test_openers_are_found_before_messages_are_judged() -> None:
    arrow_tables = arrow(estate(routes=[_ASKED], messages=[_far(1)]))
    judge = judge_of(arrow_tables, None)
    assert judge.may_ask
    [batch] = read_messages(arrow_tables["messages"])
    with pytest.raises(ValueError, match="find_openers has to see them"):
        judge.judge(batch)
    judge.find_openers([batch])
    assert [judgement.verdict.requested_in for judgement in judge.judge(batch) if judgement.verdict] == ["Sales"]


def test_without_requests_messages_are_read_once() -> None:
    arrow_tables = arrow(estate(routes=[_ANY], messages=[_far(1)]))
    judge = judge_of(arrow_tables, None)
    judge.find_openers(iter(lambda: pytest.fail("messages are read"), None))
    assert len(judge.judge(next(read_messages(arrow_tables["messages"])))) == 1


@pytest.mark.parametrize(
    ("dialogs", "fault"),
    [
        (
            [endpoint(1), endpoint(1, conversation_id=conversation(1).lower(), far_broker_instance=STORE)],
            "2 rows have this key",
        ),
        ([endpoint(1, conversation_id=None)], "conversation_id is missing"),
        ([endpoint(1, is_initiator=None), endpoint(1)], "is_initiator is missing"),
    ],
)
def test_a_dialog_at_fault_is_refused(dialogs: list[Row], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        judge_of(arrow(estate()), arrow_of(dialogs, DIALOGS))


def test_messages_without_optional_columns() -> None:
    """Optional columns are missing, and so are the facts of dialogs."""
    arrow_tables = arrow(estate(routes=[_ANY], messages=[_far(1, database_name=None)]))
    optional = [field.name for field in MESSAGES if field.nullable]
    [batch] = read_messages(arrow_tables["messages"].drop_columns(optional))
    dialogs = arrow_of([endpoint(1)], DIALOGS).select(list(endpoint(1)))
    judge = judge_of(arrow_tables, dialogs)
    assert [judgement.verdict.reason for judgement in judge.judge(batch) if judgement.verdict] == ["NO_ROUTE"]


def test_only_some_messages_are_read() -> None:
    messages = arrow_of([_far(1), _far(2, instance_name="rim"), _far(3)], MESSAGES)
    assert [
        ids for batch in read_messages(messages, {"instance_name": ["hub"]}) for ids in batch.rows("message_id")
    ] == [
        ("m1",),
        ("m3",),
    ]
