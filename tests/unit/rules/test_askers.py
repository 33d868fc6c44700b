"""The table of askers in plain Python, for single messages and against the tests' own resolver."""

from __future__ import annotations

import pytest

from routing.plan.checked_inputs import network_of
from routing.plan.verdicts import KnownDialogs
from routing.rules.timeline import moment_of
from routing.tables.read_rows import columns_of
from tests import askers
from tests.frames import arrow
from tests.reference.resolver import resolve as reference
from tests.unit.judged_messages import RowJudge, read_messages

_CASES = pytest.mark.parametrize("case", askers.CASES, ids=[case.name for case in askers.CASES])


@_CASES
def test_the_reference_resolves_each_case(case: askers.Case) -> None:
    resolution = reference(askers.estate_of(case))
    assert askers.stops_of(resolution.resolved_routes) == askers.expected_stops(case)
    assert askers.requests_of(resolution.new_route_requests) == askers.expected_requests(case)


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "the last first"])
@_CASES
def test_messages_judged_one_by_one_open_and_wait_as_expected(case: askers.Case, order: int) -> None:
    tables = askers.estate_of(case)
    tables["messages"] = tables["messages"][::order]
    arrow_tables = arrow(tables)
    settings = {key: columns_of(table, key) for key, table in arrow_tables.items() if key != "messages"}
    judge = RowJudge(network_of(settings), KnownDialogs({}), None)
    judge.find_openers(read_messages(arrow_tables["messages"]))
    judged = [judged for batch in read_messages(arrow_tables["messages"]) for judged in judge.judge(batch)]
    stops = sorted(
        (
            moment_of(judgement.message.t),
            judgement.message.message_id,
            *judgement.message.endpoint,
            judgement.verdict.requested_in,
        )
        for judgement in judged
        if judgement.message and judgement.message.endpoint and judgement.verdict
    )
    assert stops == askers.expected_stops(case)
    opened = judge.messages.requests["hub"].all_opened()
    requests = [
        (database, moment_of(request.requested_at), request.message_id, *request.endpoint)
        for database, service, request in opened
        if request.endpoint and service == askers.SERVICE
    ]
    assert sorted(requests) == askers.expected_requests(case)
    assert {
        judgement.message.message_id
        for judgement in judged
        if judgement.message and judgement.verdict and judgement.verdict.opens_request
    } == {one.message_id for one in case.opened}
