"""Ranked candidates beside resolved routes: what is chosen of them is what a run resolves."""

from __future__ import annotations

import contextlib
import io
import random
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

import routing
from tests.frames import Tables, assert_same_frames, frames, load_cases, merged, moment, prefixed, rows_of
from tests.reference.estates import joined, random_estate
from tests.stored import STORE, message, small_estate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.core
ESTATES, MESSAGES, SEED = 12, 40, 20261125
AS_OF = datetime(2026, 1, 5, 10, 0, 0, tzinfo=timezone.utc)
KEY = ("instance_name", "message_id", "decided_at")
WITHOUT_A_CHOICE = "matching_step IS NULL OR matching_step IN (0, 4, 7)"


def _worked_cases(as_of: str | None) -> Tables:
    cases = [case["tables"] for case in load_cases() if case.get("as_of") == as_of]
    return merged([prefixed(tables, f"case{number}/") for number, tables in enumerate(cases)])


def _random_estates() -> Tables:
    rng = random.Random(SEED)
    return joined([random_estate(rng, MESSAGES, f"e{number}/") for number in range(ESTATES)])


ESTATES_OF: dict[str, tuple[Any, datetime | None]] = {
    **{
        f"worked cases as of {as_of or 'their own times'}": ((_worked_cases, as_of), moment(as_of))
        for as_of in dict.fromkeys(case.get("as_of") for case in load_cases())
    },
    "random estates": ((_random_estates,), None),
    "random estates at one time": ((_random_estates,), AS_OF),
}


@pytest.mark.parametrize("estates", ESTATES_OF)
def test_what_is_chosen_is_what_a_run_resolves(spark: SparkSession, estates: str) -> None:
    (make, *arguments), as_of = ESTATES_OF[estates]
    tables = frames(spark, make(*arguments))
    resolution = routing.resolve(spark, tables, as_of=as_of)
    ranked = routing.candidates(spark, tables, as_of=as_of)
    try:
        resolved = resolution.resolved_routes.persist()
        found = ranked.route_candidates.persist()
        _assert_chosen(found, resolved)
        _assert_alternatives(found, resolved)
        waiting = resolved.where("matching_step = 4").select(*KEY).distinct()
        assert_same_frames(found.where("matching_step = 4").select(*KEY).distinct(), waiting)
        rejected = resolution.rejected_messages.count()
        assert (ranked.read, ranked.rejected) == (rejected + resolved.count(), rejected)
    finally:
        ranked.unpersist()
        resolution.unpersist()


def _assert_chosen(candidates: DataFrame, resolved: DataFrame) -> None:
    from pyspark.sql import functions as F

    # Ids may be doubled, so rows are counted.
    columns = (*KEY, "matching_step", "route_name", "broker_instance", "address", "mirror_address")
    chosen = candidates.where("is_chosen").withColumns(
        {name: F.when(F.col("is_usable"), F.col(name)) for name in ("address", "mirror_address")}
    )
    expected = resolved.where(f"NOT ({WITHOUT_A_CHOICE})")
    _assert_same_rows(chosen.select(*columns), expected.select(*columns))


def _assert_alternatives(candidates: DataFrame, resolved: DataFrame) -> None:
    from pyspark.sql import functions as F

    alternatives = candidates.where("is_alternative").select(*KEY, "route_name", "address", "mirror_address")
    expected = resolved.select(*KEY, F.inline("alternative_routes"))
    # One that is read from the service's name is written in its route otherwise.
    _assert_same_rows(alternatives, expected)


def _assert_same_rows(found: DataFrame, expected: DataFrame) -> None:
    by = found.columns
    assert_same_frames(found.groupBy(*by).count(), expected.groupBy(*by).count())


def _plan_of(frame: DataFrame) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        frame.explain()
    return out.getvalue()


def test_the_plan_is_a_broadcast_join_and_a_window(spark: SparkSession) -> None:
    ranked = routing.candidates(spark, frames(spark, random_estate(random.Random(SEED), MESSAGES)))
    try:
        plan = _plan_of(ranked.route_candidates)
        assert "BroadcastHashJoin [candidate_list" in plan
        assert "row_number() windowspecdefinition(message_row" in plan
        if spark.version >= "4":
            # The function of the session is inlined: no Python worker.
            assert "Python" not in plan
    finally:
        ranked.unpersist()


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
