"""The rules decide every accepted message of the worked cases as its page says."""

from __future__ import annotations

from typing import Any

import pytest

from routing.rules.requesting import missing_route
from routing.terms import MISSING_ROUTE_NAMESPACE
from tests.frames import load_cases, moment, with_moments
from tests.unit.rules import by_rules
from tests.unit.rules.by_rules import Row, Tables

CASES = load_cases()


def _sound(case: dict[str, Any]) -> Tables:
    tables = with_moments(case["tables"])
    rejected = case["expect"].get("rejected_messages", ())
    return {**tables, "messages": [row for row in tables["messages"] if row["message_id"] not in rejected]}


@pytest.mark.parametrize("case", CASES, ids=[f"{case['file']}: {case['case']}" for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    tables, as_of = _sound(case), moment(case.get("as_of"))
    expected = with_moments({key: rows for key, rows in case["expect"].items() if key != "rejected_messages"})
    verdicts = by_rules.resolved(tables, as_of)
    resolved: dict[str, Row] = {}
    opened: dict[tuple[Any, str], Row] = {}
    for place, row in enumerate(tables["messages"]):
        verdict, decided_at = verdicts[place], by_rules.decided_at(row, as_of)
        resolved[row["message_id"]] = {**by_rules.columns(verdict), "decided_at": decided_at}
        if verdict.opens_request:
            opened[decided_at, row["message_id"]] = {
                "instance_name": row["instance_name"],
                "database_name": verdict.requested_in,
                "service_name": row["to_service_name"],
                "requested_at": decided_at,
                "message_id": row["message_id"],
                "conversation_id": row["conversation_id"].lower(),
                "is_initiator": row["is_initiator"],
                "body": missing_route(row["to_service_name"], MISSING_ROUTE_NAMESPACE),
            }
    assert len(expected["resolved_routes"]) > 0
    for row in expected["resolved_routes"]:
        decided = {name: row[name] for name in row if name in resolved[row["message_id"]]}
        assert {name: resolved[row["message_id"]][name] for name in decided} == decided
    if "new_route_requests" in expected:
        wanted = sorted(expected["new_route_requests"], key=_position)
        got = sorted(opened.values(), key=_position)
        assert [{name: row[name] for name in like} for row, like in zip(got, wanted, strict=True)] == wanted


def _position(request: Row) -> tuple[Any, str]:
    return request["requested_at"], request["message_id"]


def test_all_cases_are_read() -> None:
    assert len(CASES) >= 40
