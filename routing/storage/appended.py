"""The message rows that were appended to a Delta table between two versions, and nothing else.

Delta's log names the files of each commit; only these files are read. Not the stream source, which would need a
checkpoint and a copy of the rows, nor the change data feed, which the table would have had to keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import NullType, StructType

from routing.errors import InputError, StorageError, condition
from routing.schemas import INPUTS
from routing.storage.commits import identity
from routing.storage.details import detail
from routing.storage.tables import Snapshot

_LOG = """
commitInfo struct<operation: string>,
add struct<path: string, dataChange: boolean, stats: string, deletionVector: struct<storageType: string>>,
remove struct<path: string, dataChange: boolean>,
damaged string
"""
# These bring files back or in that are no appended rows.
_NO_APPENDS = ("RESTORE", "CLONE")
# How Spark says that files, or what the log has of a version, are not there any more.
_GONE = ("PATH_NOT_FOUND", "DELTA_VERSION_NOT_FOUND", "DELTA_VERSIONS_NOT_CONTIGUOUS")


@dataclass(frozen=True)
class Appended:
    """Appended rows as a frame; ``count`` is their number, None where the log does not tell."""

    rows: DataFrame
    count: int | None


@dataclass(frozen=True)
class Known:
    """What a run recorded of ``messages``: the version that it read, and what tells table and commit from others.

    Release 0.1.0 recorded the version alone.
    """

    version: int
    table_id: str | None = None
    identity: str | None = None


def read_appended(spark: SparkSession, messages: Snapshot, known: Known) -> Appended:
    """The rows that came in after the version that is known, up to the snapshot's version.

    Raises InputError where this is another table or was put back, where anything else than an append, or
    maintenance that leaves the rows as they are, happened in between, or its files are gone; StorageError where
    the log is damaged.
    """
    location, since = messages.location, known.version
    told = detail(spark, location)
    if messages.version < since or known.table_id not in (None, told.table_id):
        raise InputError.full_run_needed(f"{str(location)!r} was made anew or put back since the last run")
    if known.identity is not None and identity(spark, location, since) != known.identity:
        raise InputError.full_run_needed(
            f"version {since} of {str(location)!r} is not the one that the last run read: the table was put back,"
            " or its log has been cleaned up"
        )
    if messages.version == since:
        return Appended(_no_rows(spark, messages), 0)
    if told.column_mapping != "none":
        raise InputError.full_run_needed(
            f"{str(location)!r} has column mapping, so its files cannot be read alone"
        )
    log = _log(spark, told.root, range(since + 1, messages.version + 1), str(location))
    check_appends(log, str(location))
    added = {row["add"]["path"]: row["records"] for row in log if row["add"] and row["add"]["dataChange"]}
    if not added:
        return Appended(_no_rows(spark, messages), 0)
    gone = {row["remove"]["path"] for row in log if row["remove"]}
    counts = [None if records is None else int(records) for records in added.values()]
    numbers = [count for count in counts if count is not None]
    rows = _read(spark, messages, told.root, added, bool(gone.intersection(added)))
    return Appended(rows, sum(numbers) if len(numbers) == len(counts) else None)


def _no_rows(spark: SparkSession, messages: Snapshot) -> DataFrame:
    return messages.read(spark).where(F.lit(False))


def _log(spark: SparkSession, root: str, versions: Sequence[int], location: str) -> list[Row]:
    """The actions of these commits that concern files, each with its version and operation.

    One commit each, none left out. Raises InputError, StorageError.
    """
    from pyspark.errors import AnalysisException

    files = [_escape(f"{root}/_delta_log/{version:020d}.json") for version in versions]
    try:
        actions = spark.read.schema(_LOG).option("columnNameOfCorruptRecord", "damaged").json(files)
        found = (
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
    except AnalysisException as error:
        raise InputError.full_run_needed(
            f"the log of {location!r} since the last run has been cleaned up, or cannot be read by path"
        ) from error
    for row in found:
        if row["is_damaged"]:
            raise StorageError.damaged_log(location, int(row["version"]))
    if {int(row["version"]) for row in found} != set(versions):
        raise InputError.full_run_needed(f"the log of {location!r} since the last run has gaps")
    return found


def check_appends(log: Iterable[Any], location: str) -> None:
    """Refuse a log of anything but appends and maintenance. Raises InputError with the first such version."""
    operations = {row["version"]: row["operation"] for row in log if row["operation"] is not None}
    for row in sorted(log, key=lambda row: int(row["version"])):
        operation = operations.get(row["version"]) or "unknown operation"
        removes = row["remove"] is not None and row["remove"]["dataChange"]
        hides = row["add"] is not None and row["add"]["dataChange"] and row["add"]["deletionVector"] is not None
        if removes or hides or operation in _NO_APPENDS:
            raise InputError.not_append_only(location, int(row["version"]), operation)


def _read(spark: SparkSession, messages: Snapshot, root: str, paths: Iterable[str], replaced: bool) -> DataFrame:
    from pyspark.errors import AnalysisException

    # Only the columns of the contract, so that an odd type elsewhere is nobody's trouble; Delta writes no void.
    wanted = [
        field
        for field in messages.read(spark).schema
        if field.name.lower() in INPUTS["messages"].names and not isinstance(field.dataType, NullType)
    ]
    files = [_escape(_absolute(root, path)) for path in paths]
    try:
        rows = spark.read.schema(StructType(wanted)).option("basePath", root).parquet(*files)
        # On Spark Connect nothing is looked up before the schema is asked for.
        _ = rows.columns
    except AnalysisException as error:
        if replaced:
            raise InputError.full_run_needed(
                f"files that were appended to {str(messages.location)!r} since the last run have been vacuumed"
            ) from error
        raise
    return rows


def check_files(spark: SparkSession, messages: Snapshot) -> None:
    """Refuse a version of ``messages`` of which files are gone. Raises InputError."""
    from pyspark.errors import AnalysisException

    try:
        files = [_escape(unquote(file)) for file in messages.read(spark).inputFiles()]
        if files:
            # The paths are looked up, the files are not read.
            _ = spark.read.format("binaryFile").load(files).columns
    except AnalysisException as error:
        if condition(error) not in _GONE:
            raise
        raise InputError.full_run_needed(
            f"files of version {messages.version} of {str(messages.location)!r}, which the last run read,"
            " have been vacuumed"
        ) from error


def _absolute(root: str, path: str) -> str:
    """A path as the log writes it: encoded like a URI, and relative unless it says otherwise."""
    if re.match(r"\A([A-Za-z][A-Za-z0-9+.-]*:|/)", path):
        return unquote(path)
    return f"{root}/{unquote(path)}"


def _escape(path: str) -> str:
    """A path that Spark takes as it is: its readers expand patterns in paths."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", path)
