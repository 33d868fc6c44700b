"""The plan law: between the scan of the messages and the result no Exchange, no Sort and no Python node."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.run_context import ResolveOptions, RunContext
from routing.runs.pipeline import resolve_with
from routing.tables.cached_frames import FrameLimits
from tests.estate_rows import SALES, message, small_estate
from tests.frames import arrow_of, frame_of, frames, rows_in, rows_of
from tests.plans import (
    EXCHANGE,
    PYTHON,
    broadcast_tables,
    columns_read,
    join_keys,
    main_paths,
    paths_to_kept,
)
from tests.random_estates import assert_same
from tests.reference.estates import draw_estates, joined
from tests.reference.resolver import resolve as reference
from tests.stored import store

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from routing.runs.pipeline import Resolution
    from routing.tables.table_columns import Table

SORTS = ("Sort", "TakeOrderedAndProject", "SortMergeJoin", "SortAggregate", "Window")
GARBAGE = 20_000
# With these limits, frames are planned and kept as for a large configuration, and not held as rows.
AS_IF_LARGE = FrameLimits(held_rows=-1, client_rows=-1)


@pytest.fixture(scope="module")
def tables() -> dict[str, list[dict[str, Any]]]:
    """Return estates that use every rule."""
    return joined(draw_estates(random.Random(11), 2, 25))


@pytest.fixture(scope="module")
def messages(
    spark: SparkSession, tables: dict[str, list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Store the messages as a separate Delta table, so that a plan shows reading them."""
    folder = tmp_path_factory.mktemp("law") / "messages"
    return store(frames(spark, {"messages": tables["messages"]})["messages"], folder)


def resolved(
    spark: SparkSession,
    tables: dict[str, list[dict[str, Any]]],
    messages: Path,
    limits: FrameLimits = AS_IF_LARGE,
    route_requests: Table | None = None,
    **options: str,
) -> Resolution:
    input_tables: dict[str, Table] = {**frames(spark, tables)}
    input_tables["messages"] = spark.read.format("delta").load(str(messages))
    if route_requests is not None:
        input_tables["route_requests"] = route_requests
    return resolve_with(input_tables, RunContext(ResolveOptions("law", **options)), limits)  # type: ignore[arg-type]


def main_path(frame: DataFrame, messages: Path) -> list[str]:
    """Return the only path of the messages through the plan."""
    found = main_paths(frame, str(messages))
    assert len(found) == 1, found
    return found[0]


def breaches(path: list[str], but: tuple[str, ...] = ()) -> list[str]:
    banned = (*SORTS, *PYTHON)
    return [n for n in path if n not in but and (n in banned or EXCHANGE in n or "ShuffleQueryStage" in n)]


def assert_as_expected(rows: list[dict[str, Any]], tables: dict[str, list[dict[str, Any]]]) -> None:
    expected = reference(tables, as_of=None, run_id="law")
    assert_same(rows, expected.resolved_routes, "resolved_routes")


@pytest.mark.long
def test_adaptive_execution(
    spark: SparkSession, tables: dict[str, list[dict[str, Any]]], messages: Path, jobs: list[Any]
) -> None:
    """Many requests on record change no plan."""
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    done = resolved(spark, tables, messages, route_requests=_many_requests(tables, 2_000))
    try:
        planned = main_path(done.resolved_routes, messages)
        # This computes the frame, so that its plan is final afterwards.
        assert_as_expected(rows_in(done.resolved_routes.toArrow()), tables)
        final = main_path(done.resolved_routes, messages)
        assert planned[0] == final[0] == "AdaptiveSparkPlan"
        assert breaches(planned) == breaches(final) == []
        assert final.count("BroadcastHashJoin") >= 3
        # Each join of the messages has one number as its key.
        keys = join_keys(done.resolved_routes, str(messages))
        assert len(keys) == final.count("BroadcastHashJoin")
        # Timelines have their own number, and all other keys are hashes.
        assert sorted(keys) == [("bigint",)] * (len(keys) - 1) + [("int",)]
        assert jobs[0].source.context.notes == []
        # The plan and the openers of requests, which come from the messages, fit.
        assert broadcast_tables(done.resolved_routes, [str(messages)]) == {str(messages)}
        _assert_other_passes_are_hash_aggregates([jobs[0].source.keys(), *done.frame_cache.frames], messages)
        _assert_only_what_decides_is_read([jobs[0].source.keys(), *done.frame_cache.frames], done, messages)
    finally:
        done.unpersist()


@pytest.mark.long
def test_messages_do_not_pass_through_python_workers(
    spark: SparkSession, tables: dict[str, list[dict[str, Any]]], messages: Path
) -> None:
    """If workers decide, they get only the names in messages. A broadcast joins messages with these."""
    done = resolved(spark, tables, messages, replace(AS_IF_LARGE, driver_rows=0))
    try:
        assert breaches(main_path(done.resolved_routes, messages)) == []
        assert_as_expected(rows_of(done.resolved_routes), tables)
    finally:
        done.unpersist()


def _assert_other_passes_are_hash_aggregates(found: list[DataFrame], messages: Path) -> None:
    """Assert that other passes neither sort nor exchange messages, but only partial sums."""
    keys, *other_keys = found
    paths = [path for frame in other_keys for path in paths_to_kept(frame, str(messages))]
    assert paths
    for path in [*main_paths(keys, str(messages)), *paths]:
        assert breaches(path, but=tuple(n for n in path if EXCHANGE in n or "QueryStage" in n)) == []
        first = max(n for n, name in enumerate(path) if name in ("Exchange", "ShuffleExchange"))
        assert any(name.endswith("HashAggregate") for name in path[first + 1 :]), path


def _assert_only_what_decides_is_read(passes: list[DataFrame], done: Resolution, messages: Path) -> None:
    """Assert that columns for people are not read before the decision on rejections."""
    read = [columns_read(frame, str(messages)) for frame in [*passes, done.resolved_routes]]
    assert read[0] >= {"to_service_name", "conversation_id"}
    assert read[-1] >= {"message_id", "hops_remaining"}
    assert "from_service_name" not in read[0]
    assert "from_service_name" in columns_read(done.rejected_messages, str(messages))


@pytest.mark.long
def test_a_million_requests_on_record_change_no_plan(
    spark: SparkSession, tables: dict[str, list[dict[str, Any]]], messages: Path, jobs: list[Any]
) -> None:
    done = resolved(spark, tables, messages, route_requests=_many_requests(tables, 1_000_000))
    try:
        assert breaches(main_path(done.resolved_routes, messages)) == []
        assert jobs[0].source.context.notes == []
        assert_as_expected(rows_of(done.resolved_routes), tables)
    finally:
        done.unpersist()


def _many_requests(tables: dict[str, list[dict[str, Any]]], count: int) -> pyarrow.Table:
    """Return the requests of the tables, and ``count`` others, half of them for one service of the messages."""
    import pyarrow

    from routing.schemas import ROUTE_REQUESTS

    [own, *_] = [
        row for row in tables["messages"] if row["instance_name"] == tables["databases"][0]["instance_name"]
    ]
    like = arrow_of([_ended_long_ago(own)] * 2, ROUTE_REQUESTS).take(pyarrow.array(n % 2 for n in range(count)))
    places = [f"{n:08x}-0000-4000-8000-000000000000" for n in range(count)]
    services = [own["to_service_name"] if n % 2 else f"//service/{n}" for n in range(count)]
    many = {"message_id": places, "conversation_id": places, "service_name": services}
    for name, values in many.items():
        like = like.set_column(like.column_names.index(name), name, pyarrow.array(values, pyarrow.string()))
    return pyarrow.concat_tables([arrow_of(tables["route_requests"], ROUTE_REQUESTS), like])


def _ended_long_ago(message: dict[str, Any]) -> dict[str, Any]:
    """Return a request on record that no message of the tables finds pending."""
    return {
        "instance_name": message["instance_name"],
        "database_name": "msdb",
        "service_name": message["to_service_name"],
        "requested_at": "2020-01-05T10:00:00Z",
        "message_id": "m",
        "ended_at": "2020-01-05T11:00:00Z",
        "is_initiator": True,
    }


@pytest.mark.long
@pytest.mark.usefixtures("planned_once")
def test_without_adaptive_execution_and_with_the_udf(
    spark: SparkSession, tables: dict[str, list[dict[str, Any]]], messages: Path
) -> None:
    done = resolved(spark, tables, messages)
    assert breaches(main_path(done.resolved_routes, messages)) == []
    done.unpersist()
    done = resolved(spark, tables, messages, dialog_hash="udf")
    try:
        path = main_path(done.resolved_routes, messages)
        assert breaches(path) == ["ArrowEvalPython"]
        assert_as_expected(rows_of(done.resolved_routes), tables)
    finally:
        done.unpersist()


@pytest.mark.usefixtures("planned_once")
# test_runs compares the rows and notes of a run over the limit.
@pytest.mark.long
@pytest.mark.parametrize(
    "held_by_tasks",
    [pytest.param(True, id="in memory"), pytest.param(False, id="sorted")],
)
def test_over_the_limit_rows_are_the_same_and_the_run_says_so(
    spark: SparkSession,
    tables: dict[str, list[dict[str, Any]]],
    messages: Path,
    jobs: list[Any],
    held_by_tasks: bool,
) -> None:
    limits = AS_IF_LARGE if held_by_tasks else replace(AS_IF_LARGE, task_bytes=0)
    done = resolved(spark, tables, messages, limits, broadcast_limit="1B")
    try:
        path = main_path(done.resolved_routes, messages)
        # All columns of messages are shuffled twice: by conversation for dialogs and waiting messages, and by
        # names for decisions. For the other joins only names, ids and times are shuffled.
        assert path.count("Exchange") == 2
        joins = ("ShuffledHashJoin", "SortMergeJoin")
        assert [path.count(name) for name in joins] == ([3, 0] if held_by_tasks else [0, 3])
        assert ("Sort" in path) is not held_by_tasks
        assert broadcast_tables(done.resolved_routes, [str(messages)]) == set()
        notes = jobs[0].source.context.notes
        parts = (
            "dialogs are",
            "the databases of the configuration are",
            "the services of the configuration are",
            "the broker instances of the configuration are",
            "the routing plan takes",
            "the names in messages are",
            "on record are",
            "open a route request in a database are",
            "by conversation in a database are",
            "open a route request are",
            "by conversation are",
            "that wait for a route are",
            "the databases in messages are",
        )
        assert [[part in note for part in parts].index(True) for note in notes] == [*range(13)], notes
        assert all("over broadcast_limit" in note for note in notes)
        in_memory = [note.endswith("(shuffled hash join)") for note in notes]
        assert in_memory == ([True] * 13 if held_by_tasks else [*[False] * 4, True, *[False] * 8])
        assert all(note.endswith(("(shuffled hash join)", "(sort-merge join)")) for note in notes)
        assert_as_expected(rows_of(done.resolved_routes), tables)
        expected = reference(tables, as_of=None, run_id="law").new_route_requests
        assert_same(rows_of(done.new_route_requests), expected, "new_route_requests")
        assert expected
    finally:
        done.unpersist()


@pytest.mark.usefixtures("planned_once")
@pytest.mark.long
@pytest.mark.parametrize(("limit", "shuffles"), [("10000B", 1), ("30000B", 0)], ids=["names too", "names fit"])
def test_only_the_plan_is_over_the_limit(
    spark: SparkSession, tables: dict[str, list[dict[str, Any]]], messages: Path, limit: str, shuffles: int
) -> None:
    """Messages are shuffled once to their names, and not at all if their distinct names fit."""
    done = resolved(spark, tables, messages, broadcast_limit=limit)
    try:
        path = main_path(done.resolved_routes, messages)
        assert path.count("Exchange") == path.count("ShuffledHashJoin") == shuffles
        assert_as_expected(rows_of(done.resolved_routes), tables)
    finally:
        done.unpersist()


@pytest.mark.usefixtures("planned_once")
def test_garbage_does_not_enlarge_the_plan(spark: SparkSession, jobs: list[Any]) -> None:
    from pyspark.sql import functions as F

    tables = small_estate()
    clean = frame_of(
        spark, [message(1, "//stock", to_broker_instance=SALES)], frames(spark, tables)["messages"].schema
    )
    number = F.col("id").cast("string")
    garbage = (
        spark.range(GARBAGE)
        .crossJoin(clean)
        .withColumns(
            {
                "message_id": number,
                "is_initiator": F.col("id") % 2 == 0,
                "database_name": F.when(F.col("id") % 3 > 0, F.col("database_name")),
                "to_service_name": F.when(
                    F.col("id") % 5 == 0, F.concat(F.lit("tcp://host"), number, F.lit(":1/x"))
                )
                .when(F.col("id") % 5 == 1, F.lit("//stock"))
                .otherwise(F.concat(F.lit("//garbage/"), number)),
                "to_broker_instance": F.when(F.col("id") % 7 > 0, F.concat(F.lit("id-"), number)),
            }
        )
    )
    done = resolve_with(
        {**frames(spark, tables), "messages": garbage.drop("id")}, RunContext(ResolveOptions("law")), AS_IF_LARGE
    )
    try:
        # At most two scopes, two roles, three services (a known one and two classes of unknown ones), and two
        # broker instances (none and an unknown one).
        assert jobs[0].counts.rows_read == GARBAGE
        assert jobs[0].source.keys().where("valid > 0").count() <= 2 * 2 * 3 * 2
        assert done.resolved_routes.count() == GARBAGE
        key_count = jobs[0].source.keys().where("valid > 0").count()
        assert jobs[0].decided.keys.count() == key_count
        assert jobs[0].decided.rows.count() <= key_count
    finally:
        done.unpersist()
