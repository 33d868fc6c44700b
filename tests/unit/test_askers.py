"""The table of askers without Spark, and random ones: by the planner's columns, and by the local engine."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path

import pyarrow
import pytest

import routing
from routing.engines.arrow.asking_messages import find_last, sort_requests
from routing.rules.requesting import RouteRequest
from routing.schemas import INPUTS
from tests import askers
from tests.estate_rows import message, small_estate
from tests.frames import Tables, merged, prefixed
from tests.hooks import hooked, once
from tests.random_estates import RUN_ID, Decided, Decider, assert_same
from tests.reference.resolver import resolve as reference
from tests.stored import config_of, save_estate
from tests.unit.judged_messages import decide_by_planner
from tests.unit.test_local_engine import decide_locally


def decide_few_at_a_time(tables: Tables, as_of: datetime | None) -> Decided:
    """The rows of a run by the local engine, which reads five messages at a time."""
    return decide_locally(tables, as_of, rows_at_once=5)


@cache
def _decide(decider: Decider) -> Decided:
    """All cases in one run."""
    return decider(askers.estates(), None)


DECIDERS = {
    "planner": decide_by_planner,
    "local engine": decide_locally,
    "local engine, few at a time": decide_few_at_a_time,
}


@pytest.mark.parametrize("decider", DECIDERS.values(), ids=DECIDERS)
@pytest.mark.parametrize("number", range(len(askers.CASES)), ids=[case.name for case in askers.CASES])
def test_each_case_has_the_expected_waiting_messages_and_requests(
    decider: Callable[..., Decided], number: int
) -> None:
    decided, prefix = _decide(decider), f"{number}/"
    case = askers.CASES[number]
    assert askers.stops_of(decided.resolved_routes, prefix) == askers.expected_stops(case)
    assert askers.requests_of(decided.new_route_requests or [], prefix) == askers.expected_requests(case)


def _random_case(rng: random.Random, name: str) -> askers.Case:
    """Return a few messages, times, conversations and databases, so that nearly all of them interact."""
    whose = ("a+", "a-", "b+", "c+")
    record = []
    for _ in range(rng.randrange(5)):
        at = rng.randrange(8)
        ended = rng.choice((None, at + rng.randrange(6), at + rng.randrange(6)))
        of = rng.choice((*whose, (None, None)))
        record.append(
            askers.OnRecord(at, f"m{rng.randrange(6)}", of, ended, rng.choice(("Sales", "Parts", "msdb")))
        )
    messages = [
        askers.Asker(
            rng.randrange(10),
            f"m{rng.randrange(6)}",
            rng.choice(whose),
            "goes on",
            rng.choice(("Sales", "Parts", "Parts", "msdb", None)),
        )
        for _ in range(rng.randrange(1, 12))
    ]
    return askers.Case(name, record, messages, [])


@pytest.mark.parametrize("decider", [decide_locally, decide_few_at_a_time], ids=list(DECIDERS)[1:])
def test_random_asking_messages_agree_with_the_reference(decider: Decider) -> None:
    rng = random.Random(42)
    tables = merged([prefixed(askers.estate_of(_random_case(rng, str(n))), f"{n}/") for n in range(60)])
    decided = decider(tables, None)
    in_full = {
        key: [{field.name: row.get(field.name) for field in schema} for row in tables.get(key, [])]
        for key, schema in INPUTS.items()
    }
    expected = reference(in_full, None, run_id=RUN_ID)
    assert any(row["database_name"] == "msdb" for row in expected.new_route_requests)
    for key in ("resolved_routes", "new_route_requests"):
        assert_same(getattr(decided, key), getattr(expected, key), key)


@pytest.mark.parametrize("ended", [None, "2026-01-05T11:30:00Z"], ids=["none on record", "one that has ended"])
def test_many_asking_messages_take_little_memory(tmp_path: Path, ended: str | None) -> None:
    """The number of Python objects is limited with any requests on record."""
    few, many = (_peak_of(tmp_path / str(count), count, ended) for count in (100, 20_000))
    assert many < few + 1_000_000


def _peak_of(folder: Path, count: int, ended: str | None) -> int:
    """The most bytes that a run over so many messages has in Python at once."""
    estate = small_estate()
    estate["messages"] = [message(number, "//asked") for number in range(count)]
    if ended:
        request = {"service_name": "//asked", "requested_at": "2026-01-05T11:00:00Z", "ended_at": ended}
        estate["route_requests"] = [{**estate["route_requests"][0], **request}]
    config = config_of(save_estate(estate, folder / "in", files=1), folder / "out")
    tracemalloc.start()
    try:
        routing.resolve_local(config)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_requests_of_invented_services_leave_memory_once_they_are_written(tmp_path: Path) -> None:
    """Each message asks for its own service, and two more for another one. Only these two are compared later."""
    count, allocated = 20_000, list[int]()
    estate = small_estate()
    names = ["//asked", "//asked", *(f"//invented/{number}" for number in range(count))]
    estate["messages"] = [message(number, name) for number, name in enumerate(names)]
    config = config_of(save_estate(estate, tmp_path / "in", files=1), tmp_path / "out")
    before = pyarrow.total_allocated_bytes()
    with hooked(once("before resolved_routes", lambda: allocated.append(pyarrow.total_allocated_bytes()))):
        done = routing.resolve_local(config)
    assert done.row["reason_counts"]["ROUTE_REQUESTED"] == count + 1
    [at_once] = allocated
    assert at_once - before < 50 * count


@pytest.mark.parametrize("or_own", [False, True])
def test_the_last_request_before_a_message_is_found(or_own: bool) -> None:
    rng = random.Random(5)
    for sizes in ((), (0, 0), (1,), (3, 0, 20, 1), (64, 65)):
        groups = [[RouteRequest(rng.randrange(9), rng.choice("abcd")) for _ in range(size)] for size in sizes]
        requests = sort_requests(groups)
        asked = [(group, at, one) for group in range(len(sizes)) for at in range(10) for one in "abcde"]
        columns = list(zip(*asked, strict=True)) or [()] * 3
        kinds = (pyarrow.int32(), pyarrow.int64(), pyarrow.large_string())
        of_messages = [pyarrow.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        places = find_last(requests, *of_messages, or_own=or_own).to_pylist()
        rows = requests.to_pylist()
        for (group, at, message_id), place in zip(asked, places, strict=True):
            before = [
                (one.requested_at, one.message_id)
                for one in groups[group]
                if (one.requested_at, one.message_id) < (at, message_id)
                or (or_own and (one.requested_at, one.message_id) == (at, message_id))
            ]
            last = None if place is None else (rows[place]["at"], rows[place]["message_id"])
            assert last == max(before, default=None)
            assert place is None or rows[place]["group"] == group
