"""Runs with alternating engines leave the same tables as runs with Spark only."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, write_deltalake

import routing
from routing.schemas import MESSAGES
from tests.crash.estate import FIRST, NEW, NOW, WRITTEN, Case, run_ids, state, tables, write_config
from tests.estate_rows import message
from tests.frames import arrow_of, with_moments
from tests.hooks import Killed, hooked, kill, once
from tests.imports import rows_at
from tests.random_estates import assert_same, without_marks
from tests.reference.increments import Increments
from tests.stored import save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATER = [message(21, "//far"), message(22, "//nowhere"), message(23, "//elsewhere-too")]
State = dict[str, list[dict[str, Any]]]


def _stored(folder: Path) -> Case:
    save_estate(tables(), folder / "in", files=1)
    return write_config(folder)


def _append(case: Case, rows: list[dict[str, Any]]) -> None:
    write_deltalake(str(case.folder / "in" / "messages"), arrow_of(rows, MESSAGES), mode="append")


def _full(spark: SparkSession, case: Case, run_id: str, *, locally: bool) -> None:
    config = case.config("resolve.mode=full")
    if locally:
        routing.resolve_local(config, run_id=run_id)
    else:
        routing.run(spark, config, run_id=run_id)


def _incremental(spark: SparkSession, case: Case, run_id: str, hours: int) -> None:
    routing.run(spark, case.config(), run_id=run_id, now=FIRST + timedelta(hours=hours))


def _killed(point: str, work: Callable[[], object]) -> None:
    with hooked(once(point, kill)), pytest.raises(Killed):
        work()


def test_an_incremental_run_follows_a_full_one_by_the_local_engine(spark: SparkSession, tmp_path: Path) -> None:
    """All rows equal the tests' own resolver for both batches of messages."""
    case = _stored(tmp_path / "case")
    _full(spark, case, "first", locally=True)
    _append(case, NEW)
    _incremental(spark, case, "second", 1)
    estate = with_moments({**tables(), "new": NEW})
    expected = Increments({key: rows for key, rows in estate.items() if key not in ("messages", "new")})
    expected.run(estate["messages"], FIRST, "first")
    expected.run(estate["new"], FIRST + timedelta(hours=1), "second")
    for key in WRITTEN:
        assert_same(without_marks(rows_at(case.config().output[key])), getattr(expected, key), key)
    assert run_ids(case) == ["first", "second"]


def _in_turn(spark: SparkSession, folder: Path, *, locally: bool, kills: bool) -> list[State]:
    """Run full, incremental and full with new messages between.

    Returns the states after the last two runs and one more.
    """
    case, states = _stored(folder), []
    if kills:
        _killed("after resolved_routes", lambda: _full(spark, case, "k1", locally=not locally))
        _killed("before runs", lambda: _full(spark, case, "k2", locally=locally))
    _full(spark, case, "first", locally=locally)
    _append(case, NEW)
    if kills:
        # Spark rolls back the rows of a full run that does not count, and the next run those of Spark.
        _killed("after rejected_messages", lambda: _full(spark, case, "k3", locally=locally))
        _killed("after resolved_routes", lambda: _incremental(spark, case, "k4", 1))
    _incremental(spark, case, "second", 1)
    states.append(state(case))
    _append(case, LATER)
    if kills:
        _killed("after resolved_routes", lambda: _incremental(spark, case, "k5", 2))
    _full(spark, case, "third", locally=locally)
    states.append(state(case))
    _incremental(spark, case, "fourth", 3)
    states.append(state(case))
    assert run_ids(case) == ["first", "second", "third", "fourth"]
    return states


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[State]:
    """Return the results of runs with Spark only."""
    return _in_turn(spark, tmp_path_factory.mktemp("spark") / "case", locally=False, kills=False)


@pytest.mark.long
@pytest.mark.parametrize("kills", [False, True], ids=["whole", "killed"])
def test_full_runs_by_the_local_engine(
    spark: SparkSession, by_spark: list[State], tmp_path: Path, kills: bool
) -> None:
    assert _in_turn(spark, tmp_path / "case", locally=True, kills=kills) == by_spark


@pytest.mark.long
def test_an_output_that_an_operator_restored(spark: SparkSession, tmp_path: Path) -> None:
    """An operator restores an earlier version than the local engine's run wrote. The next run brings that back."""
    case = _stored(tmp_path / "case")
    _full(spark, case, "first", locally=True)
    resolved = DeltaTable(case.folder / "out" / "resolved_routes")
    left = set(resolved.to_pyarrow_table(columns=["message_id"])["message_id"].to_pylist())
    _full(spark, case, "second", locally=True)
    resolved.update_incremental()
    resolved.restore(resolved.version() - 1)
    _append(case, NEW)
    _incremental(spark, case, "third", int((NOW - FIRST) / timedelta(hours=1)))
    found = state(case)["resolved_routes"]
    assert len(found) > len(left)
    assert {row["message_id"] for row in found} > left
    assert {row["run_id"] for row in found} == {"later"}


@pytest.mark.long
def test_comments_of_columns_stay(spark: SparkSession, tmp_path: Path) -> None:
    """Comments stay with either engine that replaces the rows of a table."""
    case = _stored(tmp_path / "case")
    _full(spark, case, "first", locally=True)
    outputs = [case.folder / "out" / key for key in ("resolved_routes", "new_route_requests", "rejected_messages")]
    for place in outputs:
        DeltaTable(place).alter.set_column_metadata("run_id", {"comment": "which run"})
    for number, locally in enumerate((False, True, False)):
        _full(spark, case, f"next {number}", locally=locally)
        for place in outputs:
            fields = json.loads(DeltaTable(place).schema().to_json())["fields"]
            assert [field["metadata"] for field in fields if field["metadata"]] == [{"comment": "which run"}]
