"""Spark finds the paths of the worked cases, and in random networks the same paths as the tests' own resolver."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.rules.timeline import as_utc
from routing.run_context import ResolveOptions, RunContext
from routing.runs.spark_outputs import TracedPaths, trace_all, trace_with
from tests.frames import Tables, frames, load_trace_cases, merged, moment, prefixed, rows_of
from tests.plans import broadcast_tables, columns_read, join_keys
from tests.random_estates import AS_OF, assert_same, assert_traces, networks, own_rows, with_own_hosts
from tests.reference.paths import path_rows
from tests.spark.test_plan_law import AS_IF_LARGE, breaches, main_path
from tests.stored import store
from tests.unit.test_trace_growth import chain, circle, circle_with_mirrors, circles_that_meet, tables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.core
Row = dict[str, Any]
CASES = load_trace_cases()
GARBAGE = 5_000
_HOP = {"step": "matching_step", "route": "route_name"}
_END = {"end": "outcome", "instance_name": "final_instance_name", "database": "final_database_name"}
_BACK = {"end": "return_outcome", "instance_name": "return_instance_name", "database": "return_database_name"}


def _of_its_own(case: Any, prefix: str) -> Any:
    """Rename the instances of a case, so that all cases fit in one job."""
    if isinstance(case, list):
        return [_of_its_own(item, prefix) for item in case]
    if not isinstance(case, dict):
        return case
    named = {"instance": "instance_name"}
    found = {named.get(key, key): _of_its_own(item, prefix) for key, item in case.items()}
    if isinstance(found.get("instance_name"), str):
        found["instance_name"] = prefix + found["instance_name"]
    return found


def _message_of(case: Row, number: int) -> Row:
    ask = case["ask"]
    return {
        "message_id": f"m{number}",
        "is_initiator": True,
        "enqueue_time": case["at"],
        "database_name": ask["database"],
        "to_service_name": ask["service"],
        "from_service_name": ask["from_service"],
        **{name: ask.get(name) for name in ("instance_name", "conversation_id", "hops_remaining")},
    }


def test_worked_cases(spark: SparkSession) -> None:
    prefixes = [f"case{number}." for number in range(len(CASES))]
    cases: list[Row] = [
        with_own_hosts(_of_its_own(case, own), own) for case, own in zip(CASES, prefixes, strict=True)
    ]
    tables = merged([case["tables"] for case in cases])
    tables["messages"] = [_message_of(case, number) for number, case in enumerate(cases)]
    found = trace_all(spark, frames(spark, tables))
    rows = {row["message_id"]: row for row in rows_of(found.message_paths)}
    found.unpersist()
    assert (found.read, found.traced, found.rejected, len(rows)) == (len(CASES), len(CASES), 0, len(CASES))
    for number, case in enumerate(cases):
        row, first = rows[f"m{number}"], case["ways"][0]
        want = {name: first.get(key) for key, name in _END.items()}
        want |= {"reason": first.get("reason"), "final_address": first.get("address")}
        want["hops"] = [{_HOP.get(key, key): value for key, value in hop.items()} for hop in first["hops"]]
        want |= {name: case[name] for name in ("ways_agree", "multiple_targets")}
        want["decided_at"] = moment(case["at"])
        if "back" in case:
            back = case["back"][0]
            want |= {name: back.get(key) for key, name in {**_BACK, "reason": "return_reason"}.items()}
        assert {name: row[name] for name in want} == want, case["case"]
    assert sum("back" in case for case in CASES) == 3


@pytest.fixture(scope="module")
def tables() -> Tables:
    """Return networks in which messages have every ending."""
    return networks()


@pytest.fixture
def stored(spark: SparkSession, tables: Tables, tmp_path: Path) -> Path:
    """Store the networks' messages as a Delta table, so that a plan shows where it is read."""
    return store(frames(spark, {"messages": tables["messages"]})["messages"], tmp_path / "messages")


def _with_stored(spark: SparkSession, tables: Tables, stored: Path) -> dict[str, Any]:
    return {**frames(spark, tables), "messages": spark.read.format("delta").load(str(stored))}


def _assert_as_followed(found: TracedPaths, as_of: datetime | None) -> None:
    assert_traces(lambda *_: rows_of(found.message_paths), as_of)
    assert (found.read, found.traced) == (len(networks()["messages"]), len(own_rows(as_of)))
    assert found.rejected == found.read - found.traced > 0


@pytest.mark.long
@pytest.mark.classic
@pytest.mark.usefixtures("planned_once")
def test_random_networks_under_the_plan_law(spark: SparkSession, tables: Tables, stored: Path) -> None:
    """The plan has no Exchange, no Sort and one Python node between the scan of the messages and the result."""
    input_tables = _with_stored(spark, tables, stored)
    found = trace_with(input_tables, RunContext(ResolveOptions("")), AS_IF_LARGE)
    try:
        frame = found.message_paths
        path = main_path(frame, stored)
        assert breaches(path, but=("MapInArrow", "PythonMapInArrow")) == []
        assert sum(node.endswith("MapInArrow") for node in path) == 1
        # Each join of the messages has one number as its key: a hash, or the number of a timeline.
        keys = join_keys(frame, str(stored))
        assert len(keys) == path.count("BroadcastHashJoin") >= 5
        assert sorted(keys) == [("bigint",)] * (len(keys) - 1) + [("int",)]
        assert broadcast_tables(frame, [str(stored)]) == {str(stored)}
        assert columns_read(frame, str(stored)) >= {"hops_remaining", "from_service_name"}
        _assert_as_followed(found, None)
        assert found.notes == []
    finally:
        found.unpersist()


@pytest.mark.classic
@pytest.mark.long
@pytest.mark.usefixtures("planned_once")
def test_paths_over_the_limit_and_at_one_time_equal_single_traces(
    spark: SparkSession, tables: Tables, stored: Path
) -> None:
    input_tables = _with_stored(spark, tables, stored)
    traced = trace_all(spark, input_tables, as_of=AS_OF, broadcast_limit="1B")
    # Few messages would be kept, and a plan that reads kept rows shows no scan.
    options = ResolveOptions("", as_of=as_utc(AS_OF), broadcast_limit="1B")
    found = trace_with(input_tables, RunContext(options), AS_IF_LARGE)
    try:
        _assert_as_followed(traced, AS_OF)
        assert "ShuffledHashJoin" in main_path(found.message_paths, stored)
        assert broadcast_tables(found.message_paths, [str(stored)]) == set()
        assert any("the routing plan takes" in note for note in found.notes)
    finally:
        traced.unpersist()
        found.unpersist()


def test_forwarders_in_chains_and_circles(spark: SparkSession) -> None:
    """Messages have few hops left, many hops left, or no limit."""
    shapes = (circle, chain, circles_that_meet, circle_with_mirrors)
    drawn = [prefixed(tables_of(shape(8)), f"{shape.__name__}.") for shape in shapes]
    tables = merged([with_own_hosts(own, shape.__name__) for own, shape in zip(drawn, shapes, strict=True)])
    for number, row in enumerate(tables["messages"]):
        row["message_id"] = f"m{number}"
    found = trace_all(spark, frames(spark, tables))
    assert_same(rows_of(found.message_paths), path_rows(tables), "message_paths")
    found.unpersist()
