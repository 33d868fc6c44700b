"""A run over a few messages makes a fixed number of Spark calls, which take most of its time."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing.demo import build
from routing.schemas import INPUTS, OUTPUTS
from routing.sessions.existing_session import count_tasks
from tests.spark.conftest import DemoRun, changed_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.classic
# These limits leave a margin, because the number of Delta's jobs depends on how many parts of the log it reads.
MOST_JOBS, MOST_CALLS = 64, 4_300
MOST_CALLS_OF_RESOLVE = 4_600
# A tenth of the defaults: 200 partitions of a shuffle, and 50 tasks of Delta each time that a query opens a table.
# Queries open a table eight times here.
MANY_PARTS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "20",
    "spark.databricks.delta.snapshotPartitions": "5",
}
MOST_JOBS_OF_MANY_PARTS, MOST_TASKS_OF_MANY_PARTS = 44, 78


def test_a_run_in_a_warm_session_has_few_jobs_and_calls(
    spark: SparkSession, demo: DemoRun, tmp_path: Path
) -> None:
    # The run follows the demo's run, in the same session and over the same outputs.
    shutil.copytree(demo.folder / "out", tmp_path / "out")
    outputs = [f"output.{key}={tmp_path / 'out' / key}" for key in OUTPUTS]
    config = routing.load_config(str(demo.folder / "demo.yaml"), outputs)
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    with _counting_calls() as commands:
        done = routing.run(spark, config)
    jobs = scheduler.numTotalJobs() - before
    assert done.row["rows_read"] > 12_000
    # Only calls of methods count. py4j decides when it looks up and releases Java objects.
    assert 20 < jobs <= MOST_JOBS
    assert 1_000 < commands["c"] <= MOST_CALLS
    # All work that takes time belongs to exactly one stage.
    whole = (done.row["finished_at"] - done.row["started_at"]).total_seconds()
    assert set(done.row["stage_seconds"]) == {
        *("read", "validate", "lookups", "keys", "plan", "requests", "write", "counts", "rejected")
    }
    assert 0.85 * whole < sum(done.row["stage_seconds"].values()) <= whole


@contextmanager
def _counting_calls() -> Iterator[Counter[str]]:
    """Count the calls from Python to the JVM by kind. ``c`` are calls of methods."""
    from py4j.java_gateway import GatewayClient

    commands, lock, send = Counter[str](), Lock(), GatewayClient.send_command

    def counting(self: Any, command: str, *arguments: Any, **named: Any) -> Any:
        with lock:
            commands[command[0]] += 1
        return send(self, command, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GatewayClient, "send_command", counting)
        yield commands


@contextmanager
def _counting_jobs(spark: SparkSession) -> Iterator[Counter[str]]:
    """Count jobs, and the tasks that they ran."""
    context, counted = spark.sparkContext._jsc.sc(), Counter[str]()
    first = context.dagScheduler().numTotalJobs()
    yield counted
    # Spark's status learns of the end of a task a moment after the caller gets the rows.
    context.listenerBus().waitUntilEmpty()
    jobs, tracker = range(first, context.dagScheduler().numTotalJobs()), spark.sparkContext.statusTracker()
    infos = [info for info in map(tracker.getJobInfo, jobs) if info is not None]
    stages = map(tracker.getStageInfo, {stage for info in infos for stage in info.stageIds})
    counted["jobs"] = len(jobs)
    counted["tasks"] = sum(stage.numCompletedTasks for stage in stages if stage is not None)


@pytest.mark.long
def test_a_second_resolve_in_a_session_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    """Each input is opened once, messages twice, and a small exchange takes as many tasks as it needs."""
    build.claim(tmp_path / "demo")
    build.write_tables(build.settings(tmp_path / "demo", ()), None)
    with changed_settings(spark, MANY_PARTS):
        tables = {key: spark.read.format("delta").load(str(tmp_path / "demo" / "data" / key)) for key in INPUTS}
        routing.resolve(spark, tables).unpersist()
        with _counting_jobs(spark) as counted:
            with _counting_calls() as commands:
                done = routing.resolve(spark, tables)
            for rows in (done.resolved_routes, done.new_route_requests, done.rejected_messages):
                assert rows.collect()
        done.unpersist()
    assert 500 < commands["c"] <= MOST_CALLS_OF_RESOLVE
    assert 20 < counted["jobs"] <= MOST_JOBS_OF_MANY_PARTS
    assert 60 < counted["tasks"] <= MOST_TASKS_OF_MANY_PARTS


def test_the_progress_of_a_slow_stage_is_shown(spark: SparkSession) -> None:
    """Two of four tasks run at the same time, observed by a thread that did not start them.

    They end at different times, because Spark's status shows only the first event within a tenth of a second.
    """
    slow = spark.range(0, 4, 1, 4).selectExpr("java_method('java.lang.Thread', 'sleep', 400L + id * 250L)")
    ask, told = count_tasks(spark), []
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(slow.collect)
        while not working.done():
            told.append(ask())
            time.sleep(0.05)
        assert len(working.result()) == 4
    seen = [tasks for tasks in told if tasks is not None]
    assert seen == sorted(seen)
    assert {known for _, known in seen} == {4}
    assert {done for done, _ in seen} & {1, 2, 3}
    until = time.monotonic() + 10
    # Spark's status learns of the end a moment after the caller gets the rows.
    while ask() is not None:
        assert time.monotonic() < until
