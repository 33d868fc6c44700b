"""Lint has the same findings for DataFrames and Arrow tables, and converts its rows for Spark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.frames import arrow, arrow_of, frame_of, frames, merged, rows_of
from tests.lint_drafts import NOW
from tests.lint_messages import RESOLVED
from tests.spark.test_faults import random_tables
from tests.unit.test_lint_findings import QUIET, all_estates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_frames_and_arrow_tables_are_linted_alike(spark: SparkSession) -> None:
    from routing.lint.linting import lint
    from routing.schemas import RESOLVED_ROUTES

    # Spark searches dialogs and requests for doubtful rows before the driver reads them.
    random = random_tables()
    tables = merged([all_estates(), {key: random[key] for key in ("dialogs", "route_requests")}])
    plain = lint(arrow(tables), now=NOW, suppress=QUIET, resolved=arrow_of(RESOLVED, RESOLVED_ROUTES))
    resolved = frame_of(spark, RESOLVED, RESOLVED_ROUTES)
    assert lint(frames(spark, tables), now=NOW, suppress=QUIET, resolved=resolved) == plain
    codes = Counter(row["code"] for row in plain.findings)
    assert codes["SBR010"] > 500
    assert codes["SBR038"] > 1
    assert rows_of(plain.findings.to_spark(spark)) == plain.findings.to_arrow().to_pylist() == list(plain.findings)
