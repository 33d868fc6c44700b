"""``sbroute lint --messages`` uses Spark for tables that only Spark can read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.linted import assert_lint_of_stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_lint_from_tables_that_only_spark_reads(
    spark: SparkSession, stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = shutil.copytree(stored, tmp_path / "in")
    spark.sql(
        f"ALTER TABLE delta.`{inputs / 'messages'}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    assert "resolved by Spark" in assert_lint_of_stored(inputs, tmp_path, capsys)
