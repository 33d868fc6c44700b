"""Appended message rows by the files of Delta's log, which name the data files of each commit.

Only these are read, by their paths: so it is the way of tables that are given by path, and of names whose paths
this session may read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import NullType, StructType

from routing.delta.append_detection import (
    AppendedRows,
    ClosedDetection,
    MessageVersion,
    brings_files_back,
    columns_of_messages,
)
from routing.delta.file_systems import as_pattern
from routing.errors import InputError, StorageError, condition, first_sentence

_LOG = """
commitInfo struct<operation: string>,
add struct<path: string, dataChange: boolean, stats: string, deletionVector: struct<storageType: string>>,
remove struct<path: string, dataChange: boolean>,
damaged string
"""
_NO_FILE = "PATH_NOT_FOUND"


def look(spark: SparkSession, table: MessageVersion) -> ClosedDetection | None:
    """Return the reason why the log will not tell new rows; None where it will."""
    if table.detail.has_column_mapping:
        return _closed_by_mapping()
    if table.location.is_name:
        actions = _log(spark, table, [table.version])
        return actions if isinstance(actions, ClosedDetection) else None
    return None


def read(spark: SparkSession, table: MessageVersion, since: int) -> AppendedRows | ClosedDetection:
    """Return the rows that came in after a version.

    Raises InputError where anything else than an append, or maintenance that leaves the rows as they are,
    happened since, or its files are gone; StorageError where the log is damaged.
    """
    if table.detail.has_column_mapping:
        return _closed_by_mapping()
    log = _log(spark, table, table.versions_after(since))
    if isinstance(log, ClosedDetection):
        return log
    check_appends(log, table.place)
    added = {row["add"]["path"]: row["records"] for row in log if row["add"] and row["add"]["dataChange"]}
    if not added:
        return table.no_rows(spark)
    gone = {row["remove"]["path"] for row in log if row["remove"]}
    counts = [None if records is None else int(records) for records in added.values()]
    numbers = [count for count in counts if count is not None]
    rows = _read(spark, table, added, bool(gone.intersection(added)))
    files = frozenset(map(unquote, added))
    return AppendedRows(rows, sum(numbers) if len(numbers) == len(counts) else None, files)


def _closed_by_mapping() -> ClosedDetection:
    return ClosedDetection("it has column mapping, so that its files cannot be read alone")


def _log(spark: SparkSession, table: MessageVersion, versions: Sequence[int]) -> list[Row] | ClosedDetection:
    """Return the actions of these commits that concern files, each with its version and operation.

    One commit each, none left out. Closed where a catalog does not let them be read by path, or keeps them
    elsewhere. Raises InputError, StorageError.
    """
    files = [as_pattern(f"{table.detail.root}/_delta_log/{version:020d}.json") for version in versions]
    try:
        actions = _actions(spark, files)
    except Exception as error:
        # Catalogs have many words for what they refuse; what it was is told where no other way is open.
        if table.location.is_name:
            return ClosedDetection(f"its log cannot be read by path: {first_sentence(error)}", error)
        if condition(error) != _NO_FILE:
            raise
        raise InputError.full_run_needed(
            f"the log of {table.place!r} since the last run has been cleaned up"
        ) from error
    for row in actions:
        if row["is_damaged"]:
            raise StorageError.damaged_log(table.place, int(row["version"]))
    if {int(row["version"]) for row in actions} != set(versions):
        raise InputError.full_run_needed(f"the log of {table.place!r} since the last run has gaps")
    return actions


def _actions(spark: SparkSession, files: list[str]) -> list[Row]:
    actions = spark.read.schema(_LOG).option("columnNameOfCorruptRecord", "damaged").json(files)
    return (
        actions.select(
            F.regexp_extract("_metadata.file_name", r"^(\d+)", 1).cast("bigint").alias("version"),
            F.col("commitInfo.operation").alias("operation"),
            F.col("add"),
            F.get_json_object("add.stats", "$.numRecords").cast("bigint").alias("records"),
            F.col("remove"),
            F.col("damaged").isNotNull().alias("is_damaged"),
        )
        .where("operation IS NOT NULL OR add IS NOT NULL OR remove IS NOT NULL OR is_damaged")
        .collect()
    )


def check_appends(log: Iterable[Any], location: str) -> None:
    """Refuse a log of anything but appends and maintenance. Raises InputError with the first such version."""
    operations = {row["version"]: row["operation"] for row in log if row["operation"] is not None}
    for row in sorted(log, key=lambda row: int(row["version"])):
        operation = operations.get(row["version"]) or "unknown operation"
        removes = row["remove"] is not None and row["remove"]["dataChange"]
        hides = row["add"] is not None and row["add"]["dataChange"] and row["add"]["deletionVector"] is not None
        if removes or hides or brings_files_back(operation):
            raise InputError.not_append_only(location, int(row["version"]), operation)


def _read(spark: SparkSession, table: MessageVersion, paths: Iterable[str], replaced: bool) -> DataFrame:
    # Only the columns of the contract, so that an odd type elsewhere is nobody's trouble; Delta writes no void.
    wanted = columns_of_messages(table.snapshot.read(spark)).schema
    kept_schema = StructType([field for field in wanted if not isinstance(field.dataType, NullType)])
    root = table.detail.root
    files = [as_pattern(_absolute(root, path)) for path in paths]
    try:
        rows = spark.read.schema(kept_schema).option("basePath", root).parquet(*files)
        # On Spark Connect nothing is looked up before the schema is asked for.
        _ = rows.columns
    except AnalysisException as error:
        if not replaced or condition(error) != _NO_FILE:
            raise
        raise InputError.full_run_needed(
            f"files that were appended to {table.place!r} since the last run have been vacuumed"
        ) from error
    return rows


def _absolute(root: str, path: str) -> str:
    """Return a path as the log writes it: encoded like a URI, and relative unless it says otherwise."""
    if re.match(r"\A([A-Za-z][A-Za-z0-9+.-]*:|/)", path):
        return unquote(path)
    return f"{root}/{unquote(path)}"
