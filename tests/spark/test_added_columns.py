"""Columns that users add to outputs survive full and incremental runs by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
import pytest
from deltalake import DeltaTable

import routing
from routing.errors import OutputError
from routing.runs.spark_outputs import write_candidates
from routing.schemas import OUTPUTS, ROUTE_CANDIDATES
from routing.tables.arrow_rows import arrow_schema
from tests.estate_rows import small_estate
from tests.stored import config_of, save_estate
from tests.unit.test_added_columns import ADDED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADDED_TO = ("new_route_requests", "rejected_messages", "runs", "pending_messages", "route_candidates")
NULLS = "output.{}: rows of this run have NULL in added columns: comment"


@pytest.fixture
def named(spark: SparkSession) -> Iterator[str]:
    """Return a catalog name for resolved_routes, whose schema is removed afterwards."""
    spark.sql("CREATE SCHEMA added_columns")
    yield "spark_catalog.added_columns.resolved_routes"
    spark.sql("DROP SCHEMA added_columns CASCADE")


@pytest.mark.long
def test_added_columns_stay_through_runs_by_spark(spark: SparkSession, named: str, tmp_path: Path) -> None:
    """One output has a catalog name, and a RESTORE removes its column. Retrying a run writes nothing."""
    inputs, out = save_estate(small_estate(), tmp_path / "in", files=1), tmp_path / "out"
    for key in ADDED_TO:
        create(out / key, key, ADDED.name, nullable=True)
    outputs = [f"output.{key}={out / key}" for key in ADDED_TO] + [f"output.resolved_routes={named}"]
    full, incremental = (
        config_of(inputs, tmp_path / mode, f"resolve.mode={mode}", *outputs) for mode in ("full", "incremental")
    )
    first = routing.run(spark, full, run_id="first")
    assert all(first.notes.count(NULLS.format(key)) == 1 for key in ADDED_TO[:4]), first.notes
    spark.sql(f"ALTER TABLE {named} ADD COLUMNS ({ADDED.name} STRING)")
    recorded = first.row["output_versions"]["resolved_routes"]
    spark.sql(f"RESTORE TABLE {named} TO VERSION AS OF {recorded}")

    second = routing.run(spark, incremental, run_id="second")
    assert all(second.notes.count(NULLS.format(key)) == 1 for key in ADDED_TO[:4]), second.notes
    assert NULLS.format("resolved_routes") not in second.notes
    rows = spark.table(named)
    assert ADDED.name not in rows.columns
    assert second.row["rows_unchanged"] > 0
    assert routing.run(spark, incremental, run_id="second").row == second.row
    assert write_candidates(spark, full).notes[-1] == NULLS.format("route_candidates")
    for key in ADDED_TO:
        rows = DeltaTable(out / key).to_pyarrow_dataset().to_table()
        assert rows[ADDED.name].null_count == len(rows) > 0, key


def create(table: Path, key: str, name: str, *, nullable: bool) -> None:
    """Create an output with an additional column."""
    fields = [*arrow_schema({**OUTPUTS, "route_candidates": ROUTE_CANDIDATES}[key].optional())]
    DeltaTable.create(str(table), pyarrow.schema([*fields, pyarrow.field(name, pyarrow.string(), nullable)]))


def test_a_required_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    config = config_of(save_estate(small_estate(), tmp_path / "in", files=1), tmp_path / "out")
    create(tmp_path / "out" / "rejected_messages", "rejected_messages", "required", nullable=False)
    with pytest.raises(OutputError, match="column required is unknown and NOT NULL"):
        routing.run(spark, config)
