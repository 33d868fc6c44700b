"""Comparing messages with Spark gives the same rows in the report as without it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from routing.cases.compared_tables import Against, Scripts, TableVersions
from routing.config import TableLocation
from routing.result_schemas import MESSAGE_CHANGES
from routing.tables.table_columns import is_frame
from routing.views.diff.diffing import Diff, diff
from tests.estate_rows import small_estate
from tests.frames import rows_in
from tests.stored import config_of, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = ("routes", "databases", "services", "instances", "route_requests")
VECTORS = "'delta.enableDeletionVectors' = 'true'"
AT = datetime.fromisoformat("2026-01-05T13:00:00+00:00")
SCRIPT = "USE Sales;\nDROP ROUTE Far;\nALTER DATABASE Store SET DISABLE_BROKER;\n"


def report_rows(done: Diff) -> dict[str, Any]:
    """Return all rows of the report, in a form that both engines share."""
    rows = {name: list(getattr(done, name)) for name in ("counts", "keys", "routes", "findings")}
    return {**rows, "compared": done.compared, "messages": counted(done.messages)}


def counted(messages: Any) -> Counter[tuple[Any, ...]]:
    """Count the equal rows of a table."""
    names = sorted(MESSAGE_CHANGES.names)
    return Counter(tuple(row[name] for name in names) for row in rows_in(messages))


@pytest.mark.long
def test_diff_uses_spark_for_messages_if_it_reads_dialogs(spark: SparkSession, tmp_path: Path) -> None:
    save_estate(small_estate(), tmp_path / "in")
    (tmp_path / "change.sql").write_text(SCRIPT, encoding="utf-8")
    config = config_of(tmp_path / "in", tmp_path / "out")
    changes: tuple[Against, ...] = (Scripts([str(tmp_path / "change.sql")], "hub"), TableVersions({"routes": 0}))
    local = [report_rows(diff(config, against, at=AT, with_messages=True)) for against in changes]
    spark.sql(f"ALTER TABLE delta.`{tmp_path / 'in' / 'dialogs'}` SET TBLPROPERTIES ({VECTORS})")
    for against, expected in zip(changes, local, strict=True):
        place = TableLocation(str(tmp_path / "changes"))
        done = diff(config, against, at=AT, with_messages=True, out=place, spark=spark)
        assert is_frame(done.messages)
        assert report_rows(done) == expected
        stored = spark.read.format("delta").load(str(place))
        assert counted(stored) == expected["messages"]
        assert sum(expected["messages"].values()) == 3
