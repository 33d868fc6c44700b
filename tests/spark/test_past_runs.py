"""Spark and delta-rs read equal rows from the table of runs that Spark wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.config import TableLocation
from routing.delta import counted_runs
from routing.delta.counted_runs import check_release
from routing.delta.local_tables import UnreadableTable, dataset_of, open_local
from routing.delta.opening import TableOpener
from routing.errors import OutputError
from routing.schemas import RUNS as SCHEMA
from routing.tables.table_columns import types_of
from routing.views import run_documents
from tests.frames import frame_of
from tests.stored import store
from tests.unit.test_runs_command import RUNS, recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_both_engines_give_equal_rows(spark: SparkSession, tmp_path: Path) -> None:
    edges = recorded(
        "edges",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
        as_of="0001-01-01T00:00:00.000001Z",
        now="9999-12-31T23:59:59Z",
        input_versions={},
        outcome_counts={"SENT": 2**62, "DELAYED": 0},
        stage_seconds={"read": 0.1, "keys": 1e-300, "plan": 1e300},
        table_ids={"runs": "an id"},
    )
    of_0_2_0 = frame_of(spark, RUNS, SCHEMA).drop("engine")
    folder = store(of_0_2_0, tmp_path / "runs")
    added = frame_of(spark, [edges], SCHEMA).write.format("delta").mode("append")
    added.option("mergeSchema", "true").save(str(folder))
    opened = open_local(TableLocation(str(folder)))
    assert not isinstance(opened, UnreadableTable)
    here, there = dataset_of(str(folder), opened), spark.read.format("delta").load(str(folder))
    assert types_of(here) == types_of(there) == {field.name: str(field.kind) for field in SCHEMA}
    for limit in (None, 2):
        assert run_documents.read_runs(here, limit) == run_documents.read_runs(there, limit)
    for row in [*RUNS, edges]:
        assert run_documents.find_run(here, row["run_id"], "") == run_documents.find_run(there, row["run_id"], "")
    [found] = run_documents.find_run(here, "edges", "")
    assert (found["started_at"].year, found["as_of"].microsecond, found["finished_at"].year) == (1, 1, 9999)
    assert [stage["seconds"] for stage in found["slow_stages"]] == [1e300, 0.1, 1e-300]
    assert found["outcome_counts"] == edges["outcome_counts"]


def test_a_newer_release_is_reported_before_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    frame = frame_of(spark, [*RUNS, {**RUNS[0], "release": "99.10.1"}], SCHEMA)
    store(frame.withColumn("column_of_tomorrow", F.lit(1)), tmp_path / "runs")
    with pytest.raises(OutputError, match=r"release '99.10.1'"):
        check_release(frame, "there")
    with pytest.raises(OutputError, match=r"release '99.10.1'"):
        counted_runs.last_run(TableOpener.of_session(spark), TableLocation(str(tmp_path / "runs")))
    check_release(frame.where("release < '9'"), "there")
