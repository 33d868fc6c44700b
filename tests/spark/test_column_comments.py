"""Tables of a catalog have comments on all columns, even after they were replaced."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import routing
from routing.config import TableLocation
from routing.delta.ledger import open_replaced
from routing.delta.opening import TableOpener
from routing.importing.stored_rows import SparkWriter
from routing.result_schemas import MESSAGE_CHANGES
from routing.tables.column_comments import comments_of
from tests.estate_rows import small_estate
from tests.frames import frame_of
from tests.stored import OUTPUTS, config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """Create a schema of the catalog."""
    spark.sql("CREATE SCHEMA commented")
    yield "commented"
    spark.sql("DROP SCHEMA commented CASCADE")


def _comments(spark: SparkSession, table: str) -> dict[str, str]:
    return {field.name: field.metadata["comment"] for field in spark.table(table).schema}


@pytest.mark.long
def test_tables_that_runs_imports_and_diff_create(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    outputs = [f"output.{key}={schema}.{key}" for key in OUTPUTS]
    config = config_of(save_estate(small_estate(), tmp_path / "in"), tmp_path / "out", *outputs)
    for run_id in ("first", "second"):
        assert routing.run(spark, config, run_id=run_id).row["rows_resolved"] > 0
    SparkWriter("routes", TableLocation(f"{schema}.routes", is_name=True), spark).make()
    changes = TableLocation(f"{schema}.message_changes", is_name=True)
    columns = MESSAGE_CHANGES.optional()
    for _ in range(2):
        opener = TableOpener.of_session(spark)
        place = open_replaced(opener, "message_changes", "--out", changes, MESSAGE_CHANGES, "diff")
        # The second write changes nothing, so that Delta makes no commit.
        assert place.replace_by_spark(spark, frame_of(spark, [], columns), "diff") == (place.version or 0)
    for key in (*OUTPUTS, "routes", "message_changes"):
        assert _comments(spark, f"{schema}.{key}") == comments_of(key)
