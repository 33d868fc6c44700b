"""Ranked candidates equal resolved routes: the chosen ones are those of a run."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

import routing
from tests.estate_rows import STORE, message, small_estate
from tests.frames import (
    Tables,
    frames,
    load_cases,
    merged,
    moment,
    prefixed,
    rows_of,
    with_moments,
)
from tests.plans import printed_plan
from tests.random_estates import assert_same
from tests.reference.estates import draw_estates, joined
from tests.reference.resolver import resolve as reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.core, pytest.mark.matrix]
ESTATES, MESSAGES, SEED = 12, 40, 20261125
AS_OF = datetime(2026, 1, 5, 10, 0, 0, tzinfo=timezone.utc)
KEY = ("instance_name", "message_id", "decided_at")
ROUTE = ("route_name", "address", "mirror_address")
CHOICE = (*KEY, "matching_step", "broker_instance", *ROUTE)
# The steps without a chosen candidate: no search, a reply, a requested route, and no match.
WITHOUT_A_CHOICE = (None, 0, 4, 7)
Row = dict[str, Any]


SMALL, TWICE = prefixed(small_estate(), "small/"), "twice/"


def _estates(*, at_one_time: bool) -> Tables:
    """Return the worked cases with or without ``as_of``, random estates and two small ones.

    Cases with ``as_of`` are moved to `AS_OF`. One small estate has two messages with one id.
    """
    cases = [case for case in load_cases() if ("as_of" in case) is at_one_time]
    of_cases = [prefixed(_moved(case), f"case{number}/") for number, case in enumerate(cases)]
    messages = [message(1, "//stock", to_broker_instance=STORE), message(1, "//far")]
    twice = prefixed({**small_estate(), "messages": messages}, TWICE)
    return merged([*of_cases, joined(draw_estates(random.Random(SEED), ESTATES, MESSAGES)), SMALL, twice])


def _moved(case: Row) -> Tables:
    """Return the tables of a case with all times moved, so that its own time becomes `AS_OF`."""
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


@dataclass(frozen=True)
class Ranked:
    """Candidates of all estates at their own times, and their rows."""

    ranked: routing.RankedCandidates
    rows: list[Row]


@pytest.fixture(scope="module")
def ranked(spark: SparkSession) -> Iterator[Ranked]:
    ranked = routing.candidates(spark, frames(spark, _estates(at_one_time=False)))
    try:
        yield Ranked(ranked, rows_of(ranked.route_candidates))
    finally:
        ranked.unpersist()


def test_the_chosen_candidates_are_those_of_a_run(ranked: Ranked) -> None:
    _assert_chosen_as_resolved(ranked.ranked, ranked.rows, None)


@pytest.mark.long
def test_the_chosen_candidates_are_those_of_a_run_at_one_time(spark: SparkSession) -> None:
    ranked = routing.candidates(spark, frames(spark, _estates(at_one_time=True)), as_of=AS_OF)
    try:
        _assert_chosen_as_resolved(ranked, rows_of(ranked.route_candidates), AS_OF)
    finally:
        ranked.unpersist()


def _assert_chosen_as_resolved(ranked: routing.RankedCandidates, found: list[Row], as_of: datetime | None) -> None:
    # The tests' own resolver replaces a run here, because other tests compare runs with it.
    resolved, rejected = _resolve(_estates(at_one_time=as_of is not None), as_of)
    _assert_chosen(found, resolved)
    _assert_alternatives(found, resolved)
    waiting = [{_of(row, KEY) for row in rows if row["matching_step"] == 4} for rows in (found, resolved)]
    assert waiting[0] == waiting[1] != set()
    assert (ranked.read, ranked.rejected) == (rejected + len(resolved), rejected)


def _resolve(tables: Tables, as_of: datetime | None) -> tuple[list[Row], int]:
    """Return the rows that a run resolves, and how many it rejects."""
    done = reference(with_moments(tables), as_of=as_of)
    return done.resolved_routes, len(done.rejected_messages)


def _of(row: Row, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _assert_chosen(candidates: list[Row], resolved: list[Row]) -> None:
    # A candidate that cannot be used has the address of its route, but a resolved message has none.
    unusable = dict.fromkeys(("address", "mirror_address"))
    chosen = [row if row["is_usable"] else {**row, **unusable} for row in candidates if row["is_chosen"]]
    expected = [row for row in resolved if row["matching_step"] not in WITHOUT_A_CHOICE]
    # Ids may be duplicates, so rows are counted.
    assert Counter(_of(row, CHOICE) for row in chosen) == Counter(_of(row, CHOICE) for row in expected)
    assert chosen


def _assert_alternatives(candidates: list[Row], resolved: list[Row]) -> None:
    alternatives = Counter(_of(row, (*KEY, *ROUTE)) for row in candidates if row["is_alternative"])
    assert alternatives == Counter(
        (*_of(row, KEY), *_of(route, ROUTE)) for row in resolved for route in row["alternative_routes"] or ()
    )
    assert alternatives


def test_the_plan_is_a_broadcast_join_and_a_window(spark: SparkSession, ranked: Ranked) -> None:
    plan = printed_plan(ranked.ranked.route_candidates)
    assert "BroadcastHashJoin [candidate_list" in plan
    assert "row_number() windowspecdefinition(message_row" in plan
    if spark.version >= "4":
        # Spark 4 inlines the session's function, so no Python worker is needed.
        assert "Python" not in plan


def test_rows_of_one_id_are_two_messages(ranked: Ranked) -> None:
    rows = [row for row in ranked.rows if row["instance_name"].startswith(TWICE) and row["is_chosen"]]
    found = sorted((row["message_id"], row["candidate_rank"], row["route_name"]) for row in rows)
    assert found == [("m1", 1, "Far"), ("m1", 1, "Store")]


@pytest.mark.usefixtures("interpreted")
def test_over_the_limit_candidates_are_joined_without_a_broadcast(spark: SparkSession, ranked: Ranked) -> None:
    over = routing.candidates(spark, frames(spark, SMALL), broadcast_limit="1B")
    try:
        assert [note for note in over.notes if note.startswith("the candidates of all keys are over")]
        assert ranked.ranked.notes == []
        within = [row for row in ranked.rows if row["instance_name"] in ("small/hub", "small/spoke")]
        assert_same(rows_of(over.route_candidates), within, "route_candidates")
    finally:
        over.unpersist()
