"""All methods that Spark generates for messages are short enough for Java's compiler."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from routing.messages import due_times, pending, results, validate
from routing.messages.compiling import compile_messages
from routing.messages.lookups import build_lookups
from routing.messages.route_plan import MessageSource
from routing.run_context import ResolveOptions, RunContext
from routing.runs.increment import NewMessages, changed_pending, still_pending
from routing.runs.pipeline import resolve_with
from routing.tables.cached_frames import FrameCache
from routing.tables.given_tables import take_tables
from routing.tables.spark_forms import conform
from routing.terms import BROKER_CONFIGURATION_SERVICE
from tests.frames import Tables, frames
from tests.reference.estates import draw_estates, joined
from tests.spark.test_plan_law import AS_IF_LARGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.classic
# In bytes. Java never compiles longer methods, and interprets them.
LIMIT = 8000
NOW = datetime(2026, 1, 6, tzinfo=UTC)
_GENERATOR = "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator"


def _everything() -> Tables:
    """Return estates with rejects, requests, route versions, ending dialogs and addresses in service names."""
    return joined(draw_estates(random.Random(11), 2, 25))


def _no_requests_and_no_addresses() -> Tables:
    """Return the same estates without the parts that make Spark start another method."""
    tables = _everything()
    tables["routes"] = [
        row
        for row in tables["routes"]
        if row.get("remote_service_name") != BROKER_CONFIGURATION_SERVICE
        and not row["address"].strip().upper().startswith("TRANSPORT")
    ]
    return tables


@pytest.mark.parametrize(
    ("estates", "in_use"),
    [
        pytest.param(_everything, (True,) * 4, id="everything"),
        pytest.param(
            _no_requests_and_no_addresses,
            (True, False, False, False),
            id="no requests and no addresses",
            marks=pytest.mark.long,
        ),
    ],
)
def test_no_method_is_too_long(
    spark: SparkSession,
    tmp_path: Path,
    jobs: list[Any],
    estates: Callable[[], Tables],
    in_use: tuple[bool, ...],
) -> None:
    inputs = frames(spark, estates())
    for key in ("messages", "dialogs"):
        # With Delta tables, Delta's queries of its log would have methods that are too long.
        inputs[key].write.parquet(str(tmp_path / key))
        inputs[key] = spark.read.parquet(str(tmp_path / key))
    with _reports_of_spark(spark) as reports:
        done = resolve_with(inputs, RunContext(ResolveOptions("size")), AS_IF_LARGE)
        try:
            uses, source = jobs[0].uses, jobs[0].source
            assert (uses.has_times, uses.reads_addresses, uses.asks, uses.asks_msdb) == in_use
            assert source.any_ends
            assert jobs[0].counts.rows_valid < jobs[0].counts.rows_read
            written = (done.resolved_routes, done.new_route_requests, done.rejected_messages)
            exact = replace(source, is_exact=True)
            built_frames = [*written, exact.keys(), source.dialogs.rows]
            for frame in built_frames:
                _compute(frame)
            longest = [max(_sizes(frame), default=0) for frame in (*built_frames, source.keys())]
            assert LIMIT / 2 < longest[0] <= LIMIT
            assert max(longest) <= LIMIT
        finally:
            done.unpersist()
    # The reports also cover other code for these passes: projections, keys of joins, aggregates.
    assert any("Code generated in" in line for line in reports)
    assert [line for line in reports if "too long" in line] == []


@pytest.mark.parametrize("ends", [False, pytest.param(True, marks=pytest.mark.long)])
def test_no_method_of_an_incremental_run_is_too_long(spark: SparkSession, tmp_path: Path, *, ends: bool) -> None:
    estates = _no_requests_and_no_addresses()
    if not ends:
        del estates["dialogs"]
    inputs = frames(spark, estates)
    inputs["messages"].write.parquet(str(tmp_path / "messages"))
    inputs["messages"] = spark.read.parquet(str(tmp_path / "messages"))
    context = RunContext(ResolveOptions("size"))
    with _reports_of_spark(spark) as reports, FrameCache(AS_IF_LARGE) as frame_cache:
        messages = conform(inputs["messages"], "messages")
        checked = validate.check(validate.read(take_tables(inputs, in_spark=True), frame_cache.limits))
        lookups = build_lookups(spark, checked, frame_cache, context)
        stored = messages.withColumns(
            {
                "attempt": F.lit(1),
                "last_decided_at": F.col("enqueue_time"),
                "run_id": F.lit("earlier"),
                "decision_digest": F.xxhash64("message_id"),
                "due_at": F.col("enqueue_time"),
                "may_ask": F.lit(False),
                "last_reason": F.col("to_service_name"),
            }
        )
        both = pending.try_first(messages).unionByName(pending.try_again(stored, NOW))
        step = NewMessages(both, messages, stored, None)
        plan = compile_messages(MessageSource(both, lookups, context), are_held=True)
        assert plan.source.any_ends is ends
        for frame in (
            results.resolved_routes(plan, has_attempts=True),
            changed_pending(plan, step, NOW),
            still_pending(plan, step, NOW),
        ):
            _compute(frame)
            assert 0 < max(_sizes(frame)) <= LIMIT
    assert [line for line in reports if "too long" in line] == []


def test_a_method_that_is_too_long_is_reported(spark: SparkSession) -> None:
    """The previous test depends on this."""
    values = (F.when(F.col("id") % n == 0, F.col("id") * n).otherwise(n) for n in range(2, 300))
    frame = spark.range(10).select(F.greatest(*values).alias("long"))
    with _reports_of_spark(spark) as reports:
        _compute(frame)
    assert max(_sizes(frame)) > LIMIT
    assert any("too long" in line for line in reports)


def test_code_for_a_run_does_not_contain_the_time_of_the_run(spark: SparkSession) -> None:
    now = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    micros = str(int(now.timestamp()) * 1_000_000)
    messages = spark.range(2).select(F.concat(F.lit("m"), F.col("id").cast("string")).alias("message_id"))
    constant = messages.select("message_id", F.lit(now).alias("time"))
    of_run = messages.select("message_id", due_times.time_of_run(now).alias("time"))
    assert micros in _code(constant)
    assert micros not in _code(of_run)
    assert of_run.collect() == constant.collect()


def _code(frame: DataFrame) -> str:
    """Return the code that Spark generates for a plan."""
    found = frame._jdf.queryExecution().debug().codegenToSeq()
    return "".join(found.apply(n)._2() for n in range(found.size()))


def _compute(frame: DataFrame) -> None:
    """Compute all rows by the plan that `_sizes` examines."""
    frame._jdf.queryExecution().toRdd().count()


def _sizes(frame: DataFrame) -> list[int]:
    """Return the bytes of the longest method in each stage of a plan for which Spark generates code."""
    found = frame._jdf.queryExecution().debug().codegenToSeq()
    return [found.apply(n)._3().maxMethodCodeSize() for n in range(found.size())]


@contextmanager
def _reports_of_spark(spark: SparkSession) -> Iterator[list[str]]:
    """Collect the log of Spark's code generator within a block, which generates code for all queries again."""
    jvm: Any = spark._jvm
    kind = jvm.java.lang.Class.forName(f"{_GENERATOR}$")
    cache = kind.getDeclaredField("cache")
    cache.setAccessible(True)
    cache.get(kind.getField("MODULE$").get(None)).invalidateAll()
    log4j, writer = jvm.org.apache.logging.log4j, jvm.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(None, None, writer, "told", False, False)
    appender.start()
    logger = log4j.core.config.LoggerConfig(_GENERATOR, log4j.Level.INFO, False)
    logger.addAppender(appender, log4j.Level.INFO, None)
    context = log4j.LogManager.getContext(False)
    context.getConfiguration().addLogger(_GENERATOR, logger)
    context.updateLoggers()
    reports: list[str] = []
    try:
        yield reports
    finally:
        context.getConfiguration().removeLogger(_GENERATOR)
        context.updateLoggers()
        reports.extend(str(writer).splitlines())
