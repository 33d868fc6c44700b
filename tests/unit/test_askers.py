"""The table of askers without Spark: by the planner's columns, and by the local engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests import askers
from tests.random_estates import Decided, Decider
from tests.unit.judged_messages import decide_by_planner
from tests.unit.test_local_engine import decide_locally


@cache
def _decide(decider: Decider) -> Decided:
    """All cases in one run."""
    return decider(askers.estates(), None)


@pytest.mark.parametrize("decider", [decide_by_planner, decide_locally], ids=["planner", "local engine"])
@pytest.mark.parametrize("number", range(len(askers.CASES)), ids=[case.name for case in askers.CASES])
def test_a_case(decider: Callable[..., Decided], number: int) -> None:
    decided, prefix = _decide(decider), f"{number}/"
    case = askers.CASES[number]
    assert askers.stops_of(decided.resolved_routes, prefix) == askers.expected_stops(case)
    assert askers.requests_of(decided.new_route_requests, prefix) == askers.expected_requests(case)
