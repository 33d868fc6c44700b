"""Columns that somebody has added to outputs stay through Spark's runs, full and incremental."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
import pytest
from deltalake import DeltaTable

import routing
from routing.errors import OutputError
from routing.runs.spark_outputs import write_candidates
from routing.schemas import OUTPUTS
from routing.tables.arrow_rows import arrow_schema
from tests.estate_rows import small_estate
from tests.stored import config_of, save_estate
from tests.unit.test_added_columns import ADDED, add_column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

KEYS = (
    "resolved_routes",
    "new_route_requests",
    "rejected_messages",
    "runs",
    "pending_messages",
    "route_candidates",
)
NOT_NULL = "column required is unknown and NOT NULL"


def config_in(folder: Path, mode: str) -> Config:
    """A configuration over the stored estate, with every output that is tested."""
    more = (f"output.{key}={folder}/out/{key}" for key in ("pending_messages", "route_candidates"))
    return config_of(folder / "in", folder / "out", f"resolve.mode={mode}", *more)


def test_added_columns_stay_through_runs_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    save_estate(small_estate(), tmp_path / "in")
    full, incremental = config_in(tmp_path, "full"), config_in(tmp_path, "incremental")
    routing.run(spark, incremental)
    write_candidates(spark, full)
    for key in KEYS:
        add_column(tmp_path / "out" / key)
    for config in (incremental, full, incremental):
        done = routing.run(spark, config)
        for key in KEYS[:5]:
            note = f"output.{key}: rows of this run have NULL in added columns: {ADDED.name}"
            assert done.notes.count(note) == 1, (key, done.notes)
    assert (
        write_candidates(spark, full).notes[-1].startswith("output.route_candidates: rows of this run have NULL")
    )
    for key in KEYS:
        rows = DeltaTable(tmp_path / "out" / key).to_pyarrow_dataset().to_table()
        assert rows[ADDED.name].null_count == len(rows), key
    assert DeltaTable(tmp_path / "out" / "resolved_routes").to_pyarrow_dataset().count_rows() > 0


def test_a_required_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    save_estate(small_estate(), tmp_path / "in")
    config = config_in(tmp_path, "full")
    table = tmp_path / "out" / "rejected_messages"
    fields = [
        *arrow_schema(OUTPUTS["rejected_messages"].optional()),
        pyarrow.field("required", pyarrow.int32(), False),
    ]
    DeltaTable.create(str(table), pyarrow.schema(fields))
    with pytest.raises(OutputError, match=NOT_NULL):
        routing.run(spark, config)
