"""Appended message rows by the table's change data feed: its rows of the versions in question, by its name.

Only what was committed in these versions is read, whatever is stored. The feed tells inserts from all else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from routing.delta.append_detection import (
    AppendedRows,
    ClosedDetection,
    MessageVersion,
    brings_files_back,
    columns_of_messages,
    history_after,
    operation_of,
)
from routing.errors import InputError, condition
from routing.schemas import MESSAGES, ColumnKind
from routing.tables.spark_forms import is_utf8

_REPLACEMENT = "\ufffd"
PROPERTY = "delta.enableChangeDataFeed"
_NOT_KEPT = ("DELTA_MISSING_CHANGE_DATA", "DELTA_CHANGE_TABLE_FEED_DISABLED")
_OTHER_COLUMNS = (
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
)
# How Spark says that a file is gone which it reads; the last is Spark 3.5's.
GONE = (
    "FAILED_READ_FILE.FILE_NOT_EXIST",
    "FAILED_READ_FILE.DBR_FILE_NOT_EXIST",
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
    "DELTA_FILE_NOT_FOUND_DETAILED",
    "_LEGACY_ERROR_TEMP_2055",
)


def look(spark: SparkSession, table: MessageVersion) -> ClosedDetection | None:
    """Return the reason why the change data feed will not tell new rows; None where it will."""
    return None if table.detail.is_on(PROPERTY) else ClosedDetection("its change data feed is off")


def read(spark: SparkSession, table: MessageVersion, since: int) -> AppendedRows | ClosedDetection:
    """Return the rows that came in after a version.

    Raises InputError where anything else than an append happened since, or files of the feed are gone.
    """
    off = look(spark, table)
    if off is not None:
        return off
    history = history_after(spark, table, since)
    done = {version: operation_of(history.get(version)) for version in table.versions_after(since)}
    for version, operation in done.items():
        if brings_files_back(operation):
            raise InputError.not_append_only(table.place, version, operation)
    changes = table.snapshot.read_changes(spark, since)
    change_counts = _count(changes, table, since)
    if isinstance(change_counts, ClosedDetection):
        return change_counts
    for row in change_counts:
        if row["kind"] != "insert":
            raise InputError.not_append_only(table.place, row["version"], done[row["version"]])
    if any(row["is_replaced"] for row in change_counts) and _holds_undecodable(spark, table):
        return ClosedDetection(
            "its change data feed puts other characters in the place of bytes that are no UTF-8"
        )
    count = sum(int(row["rows"]) for row in change_counts)
    return AppendedRows(columns_of_messages(changes), count) if count else table.no_rows(spark)


def _count(changes: DataFrame, table: MessageVersion, since: int) -> Sequence[Row] | ClosedDetection:
    """Count the rows of each kind that each commit brought, the first version first.

    ``is_replaced``: a text of them holds the character that stands in the place of bytes that are no UTF-8.
    """
    replaced = (F.col(name).contains(_REPLACEMENT) for name in _texts_of(changes))
    is_replaced = F.max(reduce(Column.__or__, (F.coalesce(one, F.lit(False)) for one in replaced)))
    kinds = changes.groupBy(F.col("_commit_version").alias("version"), F.col("_change_type").alias("kind"))
    try:
        rows = kinds.agg(F.count(F.lit(1)).alias("rows"), is_replaced.alias("is_replaced")).collect()
        return sorted(rows, key=lambda row: int(row["version"]))
    except Exception as error:
        error_condition = condition(error)
        if error_condition in _NOT_KEPT:
            return ClosedDetection(f"its change data feed was not on in every version after {since}", error)
        if error_condition in _OTHER_COLUMNS:
            return ClosedDetection(
                f"its change data feed does not reach over the change of columns after {since}", error
            )
        if error_condition in GONE:
            raise InputError.full_run_needed(
                f"files that were appended to {table.place!r} since the last run have been vacuumed"
            ) from error
        raise


def _texts_of(messages: DataFrame) -> list[str]:
    """Return the columns of messages that hold text."""
    texts = {field.name for field in MESSAGES if field.kind == ColumnKind.STRING}
    return [name for name in messages.columns if name.lower() in texts]


def _holds_undecodable(spark: SparkSession, table: MessageVersion) -> bool:
    """Return whether any text of the table is no UTF-8."""
    rows = table.snapshot.read(spark)
    bad = (F.when(~is_utf8(F.col(name)), name) for name in _texts_of(rows))
    return bool(rows.where(F.coalesce(*bad).isNotNull()).limit(1).count())
