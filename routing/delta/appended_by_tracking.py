"""Appended message rows by row tracking: a table that has it on tells of each row in which commit it came in.

The history says by name what was done in between. It costs a look at every stored row, since Delta's reader skips
no files by that number; the change data feed reads new rows alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.delta.append_detection import (
    AppendedRows,
    ClosedDetection,
    MessageVersion,
    columns_of_messages,
    history_after,
    operation_of,
)
from routing.delta.commits import CommitInfo
from routing.delta.protocol import is_maintenance
from routing.errors import InputError

PROPERTY = "delta.enableRowTracking"
_BACKFILL = "ROW TRACKING BACKFILL"
# What may only add, by operation: the parameter that says so, and the metric that says how many rows.
_ADDS = {"WRITE": "mode", "STREAMING UPDATE": "outputMode"}


def look(spark: SparkSession, table: MessageVersion) -> ClosedDetection | None:
    """Return the reason why row tracking will not tell new rows; None where it will."""
    return None if table.detail.is_on(PROPERTY) else ClosedDetection("its row tracking is off")


def read(spark: SparkSession, table: MessageVersion, since: int) -> AppendedRows | ClosedDetection:
    """Return the rows that came in after a version.

    Raises InputError where anything else than an append, or maintenance that leaves the rows as they are,
    happened since, or the history does not tell, or tells of another number of rows.
    """
    off = look(spark, table)
    if off is not None:
        return off
    history = history_after(spark, table, since)
    counts = [
        count_appended(table.place, version, history.get(version, {})) for version in table.versions_after(since)
    ]
    # Rows get the number of the commit in which tracking began; while it was off they may have lost theirs.
    if any(switches(commit_info) for commit_info in history.values()):
        return ClosedDetection(f"its row tracking was not on in every version since {since}")
    if not any(count != 0 for count in counts):
        return table.no_rows(spark)
    rows = table.snapshot.read(spark).where(F.col("_metadata.row_commit_version") > since)
    return AppendedRows(columns_of_messages(rows), _count(rows, table, counts))


def _count(rows: DataFrame, table: MessageVersion, counts: Sequence[int | None]) -> int:
    """Count the rows. Raises InputError where the history, as far as it has numbers, has another number.

    Where the two disagree rows would be lost, or taken twice, without a word.
    """
    row_count = rows.count()
    expected = sum(count or 0 for count in counts)
    if row_count != expected and None not in counts:
        raise InputError.full_run_needed(
            f"of {table.place!r} row tracking tells {row_count} rows that came in since the last run,"
            f" history {expected}"
        )
    return row_count


def switches(commit_info: CommitInfo) -> bool:
    """Return True if a commit turns row tracking on or off, or begins it for rows that are there."""
    properties = str((commit_info.get("operationParameters") or {}).get("properties"))
    return operation_of(commit_info) == _BACKFILL or PROPERTY in properties


def count_appended(location: str, version: int, commit_info: CommitInfo) -> int | None:
    """Count the rows of an append, None where its commit does not say. Raises InputError for other commits."""
    operation = operation_of(commit_info)
    parameters, metrics = commit_info.get("operationParameters") or {}, commit_info.get("operationMetrics") or {}
    if is_maintenance(operation):
        return 0
    if operation == "COPY INTO" or (operation in _ADDS and parameters.get(_ADDS[operation]) == "Append"):
        return _number(metrics, "numOutputRows")
    # One that found nothing to change only adds.
    changed = (_number(metrics, "numTargetRowsUpdated"), _number(metrics, "numTargetRowsDeleted"))
    if operation == "MERGE" and changed == (0, 0):
        return _number(metrics, "numTargetRowsInserted")
    raise InputError.not_append_only(location, version, operation)


def _number(metrics: Mapping[str, Any], name: str) -> int | None:
    metric = metrics.get(name)
    return None if metric is None else int(metric)
