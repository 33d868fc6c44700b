"""Ranked candidates beside resolved routes: what is chosen of them is what a run resolves."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

import routing
from tests.estate_rows import STORE, message, small_estate
from tests.frames import (
    Tables,
    assert_same_frames,
    frames,
    load_cases,
    merged,
    moment,
    prefixed,
    rows_of,
    with_moments,
)
from tests.plans import printed_plan
from tests.reference.estates import draw_estates, joined, random_estate
from tests.reference.resolver import resolve as reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.core
ESTATES, MESSAGES, SEED = 12, 40, 20261125
AS_OF = datetime(2026, 1, 5, 10, 0, 0, tzinfo=timezone.utc)
KEY = ("instance_name", "message_id", "decided_at")
ROUTE = ("route_name", "address", "mirror_address")
CHOICE = (*KEY, "matching_step", "broker_instance", *ROUTE)
# A message that is expired, waits for a route that it asked for, or finds none.
WITHOUT_A_CHOICE = (None, 0, 4, 7)
Row = dict[str, Any]


def _estates(*, at_one_time: bool) -> Tables:
    """Return the worked cases, those of one time moved to `AS_OF`, beside random estates."""
    cases = [case for case in load_cases() if ("as_of" in case) is at_one_time]
    of_cases = [prefixed(_moved(case), f"case{number}/") for number, case in enumerate(cases)]
    return merged([*of_cases, joined(draw_estates(random.Random(SEED), ESTATES, MESSAGES))])


def _moved(case: Row) -> Tables:
    """Return the tables of a case, moved in time so that what is decided at its own time is decided at `AS_OF`."""
    tables: Tables = case["tables"]
    if "as_of" not in case:
        return tables
    by = AS_OF - moment(case["as_of"])
    return {
        key: [{name: _later(value, by) for name, value in row.items()} for row in rows]
        for key, rows in tables.items()
    }


def _later(value: Any, by: timedelta) -> Any:
    at = moment(value)
    return at + by if isinstance(at, datetime) else value


@pytest.mark.parametrize(
    "as_of", [pytest.param(None, id="own times"), pytest.param(AS_OF, id="one time", marks=pytest.mark.long)]
)
def test_what_is_chosen_is_what_a_run_resolves(spark: SparkSession, as_of: datetime | None) -> None:
    rows = _estates(at_one_time=as_of is not None)
    # The tests' own resolver, to which runs are held.
    resolved, rejected = _resolve(rows, as_of)
    ranked = routing.candidates(spark, frames(spark, rows), as_of=as_of)
    try:
        found = rows_of(ranked.route_candidates)
        _assert_chosen(found, resolved)
        _assert_alternatives(found, resolved)
        waiting = [{_of(row, KEY) for row in rows if row["matching_step"] == 4} for rows in (found, resolved)]
        assert waiting[0] == waiting[1] != set()
        assert (ranked.read, ranked.rejected) == (rejected + len(resolved), rejected)
    finally:
        ranked.unpersist()


def _resolve(tables: Tables, as_of: datetime | None) -> tuple[list[Row], int]:
    """Return the rows that a run resolves, and how many it rejects."""
    done = reference(with_moments(tables), as_of=as_of)
    return done.resolved_routes, len(done.rejected_messages)


def _of(row: Row, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _assert_chosen(candidates: list[Row], resolved: list[Row]) -> None:
    # The address of a route that cannot be used is what it says; a run resolves none.
    unusable = dict.fromkeys(("address", "mirror_address"))
    chosen = [row if row["is_usable"] else {**row, **unusable} for row in candidates if row["is_chosen"]]
    expected = [row for row in resolved if row["matching_step"] not in WITHOUT_A_CHOICE]
    # Ids may be doubled, so rows are counted.
    assert Counter(_of(row, CHOICE) for row in chosen) == Counter(_of(row, CHOICE) for row in expected)
    assert chosen


def _assert_alternatives(candidates: list[Row], resolved: list[Row]) -> None:
    alternatives = Counter(_of(row, (*KEY, *ROUTE)) for row in candidates if row["is_alternative"])
    # One that is read from the service's name is written in its route otherwise.
    assert alternatives == Counter(
        (*_of(row, KEY), *_of(route, ROUTE)) for row in resolved for route in row["alternative_routes"] or ()
    )
    assert alternatives


def test_the_plan_is_a_broadcast_join_and_a_window(spark: SparkSession) -> None:
    ranked = routing.candidates(spark, frames(spark, random_estate(random.Random(SEED), MESSAGES)))
    try:
        plan = printed_plan(ranked.route_candidates)
        assert "BroadcastHashJoin [candidate_list" in plan
        assert "row_number() windowspecdefinition(message_row" in plan
        if spark.version >= "4":
            # The function of the session is inlined: no Python worker.
            assert "Python" not in plan
    finally:
        ranked.unpersist()


@pytest.mark.usefixtures("interpreted")
def test_rows_of_one_id_are_two_messages(spark: SparkSession) -> None:
    estate = small_estate()
    twice = [message(1, "//stock", to_broker_instance=STORE), message(1, "//far")]
    ranked = routing.candidates(spark, frames(spark, {**estate, "messages": twice}))
    try:
        rows = rows_of(ranked.route_candidates.where("is_chosen"))
        found = sorted((row["message_id"], row["candidate_rank"], row["route_name"]) for row in rows)
        assert found == [("m1", 1, "Far"), ("m1", 1, "Store")]
    finally:
        ranked.unpersist()


@pytest.mark.usefixtures("interpreted")
def test_over_the_limit_candidates_are_joined_without_a_broadcast(spark: SparkSession) -> None:
    tables = frames(spark, small_estate())
    ranked, within = routing.candidates(spark, tables, broadcast_limit="1B"), routing.candidates(spark, tables)
    try:
        assert [note for note in ranked.notes if note.startswith("the candidates of all keys are over")]
        assert within.notes == []
        assert_same_frames(ranked.route_candidates, within.route_candidates)
    finally:
        ranked.unpersist()
        within.unpersist()
