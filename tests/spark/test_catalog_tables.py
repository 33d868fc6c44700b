"""Runs over tables of a catalog execute few statements about metadata, and create tables with the right layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing.config import TableLocation
from routing.schemas import TABLES
from routing.tables import sql_statements
from tests.estate_rows import small_estate
from tests.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

INPUTS = ("instances", "databases", "services", "routes", "messages")
OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "pending_messages", "runs")
COLUMNS = ("enqueue_time", "instance_name")
CLUSTERED = f"output.cluster_by={','.join(COLUMNS)}"
STATISTICS = {
    "resolved_routes": "enqueue_time,instance_name,decided_at,run_id",
    "rejected_messages": "enqueue_time,instance_name",
    "pending_messages": "enqueue_time,instance_name",
    "new_route_requests": None,
    "runs": None,
}
# The limits leave a margin, because Delta reads its log in separate jobs.
MOST_JOBS_IDLE, MOST_JOBS_WRITTEN = 33, 57
# None of these is delayed, so a run without new messages has nothing to do.
MESSAGES = small_estate()["messages"][:3]


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[str]:
    """Create a schema with the small estate's tables, and drop it afterwards."""
    spark.sql("CREATE SCHEMA named")
    for key, rows in {**small_estate(), "messages": MESSAGES}.items():
        if key in INPUTS:
            frame_of(spark, rows, TABLES[key]).coalesce(1).write.format("delta").saveAsTable(f"named.{key}")
    spark.sql("ALTER TABLE named.messages SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    yield "named"
    spark.sql("DROP SCHEMA named CASCADE")


def _config(catalog: str, *overrides: str) -> Config:
    lines = ["tables:", *(f"  {key}: {catalog}.{key}" for key in INPUTS)]
    lines += ["output:", *(f"  {key}: {catalog}.out_{key}" for key in OUTPUTS)]
    return routing.load_config("named.yaml", ["resolve.mode=incremental", *overrides], text="\n".join(lines))


@contextmanager
def _counting(spark: SparkSession) -> Iterator[Counter[str]]:
    """Count the statements about metadata by their first two words, and Spark's jobs."""
    counted, sql = Counter[str](), type(spark).sql
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()

    def counting(self: Any, text: str, *arguments: Any, **named: Any) -> Any:
        if text.startswith(("DESCRIBE", "SHOW")):
            counted[" ".join(text.split()[:2])] += 1
        return sql(self, text, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(spark), "sql", counting)
        yield counted
    counted["jobs"] = scheduler.numTotalJobs() - before


def _layout(spark: SparkSession, location: TableLocation) -> tuple[tuple[str, ...], str | None]:
    """Return the columns by which a table is clustered, and those with statistics."""
    [row] = sql_statements.describe_detail(spark, location).collect()
    return tuple(row["clusteringColumns"]), row["properties"].get("delta.dataSkippingStatsColumns")


@pytest.mark.classic
def test_a_run_executes_few_statements(spark: SparkSession, catalog: str) -> None:
    """Five inputs and five outputs take 13 statements, and three more for each output that is written."""
    config = _config(catalog)
    routing.run(spark, config, run_id="first")
    # The first run recorded its row before `runs` had an id.
    routing.run(spark, config, run_id="second")
    for key in OUTPUTS:
        assert _layout(spark, config.output[key]) == ((), STATISTICS[key]), key
    with _counting(spark) as idle:
        assert routing.run(spark, config, run_id="idle").row["rows_read"] == 0
    assert idle == {"DESCRIBE HISTORY": 11, "DESCRIBE DETAIL": 1, "DESCRIBE TABLE": 1, "jobs": idle["jobs"]}
    new = frame_of(
        spark, [{**row, "message_id": f"new {row['message_id']}"} for row in MESSAGES], TABLES["messages"]
    )
    new.coalesce(1).write.format("delta").mode("append").saveAsTable(f"{catalog}.messages")
    with _counting(spark) as written:
        assert routing.run(spark, config, run_id="written").row["rows_resolved"] == len(MESSAGES)
    # One output is written, and the view is replaced.
    assert written == {"DESCRIBE HISTORY": 14, "DESCRIBE DETAIL": 1, "DESCRIBE TABLE": 2, "jobs": written["jobs"]}
    assert idle["jobs"] <= MOST_JOBS_IDLE
    assert written["jobs"] <= MOST_JOBS_WRITTEN


def _clustered(catalog: str, folder: Path, by: str, *overrides: str) -> Config:
    """Return a job with outputs by path or by name, and only ``resolved_routes`` clustered."""
    places = [] if by == "name" else [f"output.{key}={folder / key}" for key in OUTPUTS]
    return _config(catalog, *places, *overrides)


@pytest.mark.parametrize("by", ["path", pytest.param("name", marks=pytest.mark.long)])
def test_a_new_table_is_clustered_and_stays_so(spark: SparkSession, catalog: str, tmp_path: Path, by: str) -> None:
    """A full run keeps the layout by its only commit."""
    job = _clustered(catalog, tmp_path, by, CLUSTERED)
    location = job.output["resolved_routes"]
    routing.run(spark, job, run_id="first")
    assert _layout(spark, location) == (COLUMNS, STATISTICS["resolved_routes"])
    routing.run(spark, _clustered(catalog, tmp_path, by, CLUSTERED, "resolve.mode=full"), run_id="full")
    assert _layout(spark, location) == (COLUMNS, STATISTICS["resolved_routes"])
    operations = [row["operation"] for row in sql_statements.describe_history(spark, location, 5)]
    assert operations == ["WRITE", "WRITE", "CREATE TABLE"]
    assert routing.run(spark, job, run_id="idle").row["rows_resolved"] == 0
    assert routing.current_routes(spark, job).count() == len(MESSAGES)


@pytest.mark.long
@pytest.mark.parametrize("by", ["path", "name"])
def test_the_next_full_run_clusters_a_table(spark: SparkSession, catalog: str, tmp_path: Path, by: str) -> None:
    """A column for clustering gets statistics."""
    plain = _clustered(catalog, tmp_path, by)
    location = plain.output["resolved_routes"]
    routing.run(spark, plain, run_id="plain")
    assert _layout(spark, location) == ((), STATISTICS["resolved_routes"])
    layout = "output.cluster_by=decided_at,reason"
    routing.run(spark, _clustered(catalog, tmp_path, by, layout, "resolve.mode=full"), run_id="clustered")
    assert _layout(spark, location) == (("decided_at", "reason"), f"{STATISTICS['resolved_routes']},reason")
