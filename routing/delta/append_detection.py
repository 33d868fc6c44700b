"""Find the rows that a table gained and lost, by its change data feed or by its log.

A detection works if the table has the necessary data for all versions in question, and this session may read it.
It then returns the rows, or refuses a commit that is neither an append nor a delete, unless any change is allowed.
Otherwise it returns the reason, and the other detection is tried (`appended_rows`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import NullType, StructField, StructType

from routing.config import TableLocation
from routing.delta.file_systems import as_pattern, normalize
from routing.delta.log_changes import DELETES, LoggedFile, find_changed_files, removes_rows
from routing.delta.spark_tables import TableSnapshot
from routing.delta.table_details import TableDetail, has_column_mapping
from routing.delta.table_log import TableLog
from routing.errors import HistoryGap, InputError, StorageError, first_sentence
from routing.schemas import MESSAGES, ColumnKind, Field, Schema
from routing.sessions.existing_session import condition
from routing.tables.cached_frames import small_side
from routing.tables.frames import frame_of_tuples
from routing.tables.spark_forms import is_utf8

# These operations add files whose rows are not appended rows.
_NO_APPENDS = ("RESTORE", "CLONE")
_UNKNOWN = "unknown operation"


@dataclass(frozen=True)
class AppendedRows:
    """Appended rows as a frame. ``count`` is their number, or None if only reading them would show it.

    ``removed`` is None if no commit deleted rows. Otherwise each of its rows cancels one equal appended row. The
    remaining appended rows are new, and the remaining removed rows were deleted.
    """

    rows: DataFrame
    count: int | None
    removed: DataFrame | None = None


@dataclass(frozen=True)
class ClosedDetection:
    """Why a detection does not work on a table, as in ``its change data feed is off``."""

    why: str
    cause: Exception | None = None


@dataclass(frozen=True)
class TableVersion:
    """A table at the version that a run reads, its log, and the columns of its contract.

    With ``any_change``, commits may also update, replace or merge rows.
    """

    snapshot: TableSnapshot
    log: TableLog
    schema: Schema = MESSAGES
    any_change: bool = False

    @property
    def detail(self) -> TableDetail:
        """The details of the table, from DESCRIBE DETAIL."""
        return self.log.detail

    @property
    def version(self) -> int:
        """The version that is read."""
        return self.snapshot.version

    @property
    def location(self) -> TableLocation:
        """The table's location from the configuration."""
        return self.snapshot.location

    @property
    def place(self) -> str:
        """The location as text for messages."""
        return str(self.location)

    def versions_after(self, since: int) -> range:
        """Return the versions after one, up to the version that is read."""
        return range(since + 1, self.version + 1)

    def no_rows(self, spark: SparkSession) -> AppendedRows:
        """Return no new rows, as an empty frame."""
        return AppendedRows(self.contract_columns(self.snapshot.read(spark)).where(F.lit(False)), 0)

    def contract_columns(self, rows: DataFrame) -> DataFrame:
        """Select the columns of the contract, so that no other column can cause an error."""
        return rows.select(*(name for name in rows.columns if name.lower() in self.schema.names))

    def texts_of(self, rows: DataFrame) -> list[str]:
        """Return the names of the contract's text columns in a frame."""
        texts = {field.name for field in self.schema if field.kind == ColumnKind.STRING}
        return [name for name in rows.columns if name.lower() in texts]


def brings_files_back(operation: str) -> bool:
    """Return whether a commit of this operation may add old rows to a table."""
    return operation in _NO_APPENDS


# The change data feed.


_REPLACEMENT = "\ufffd"
FEED_PROPERTY = "delta.enableChangeDataFeed"
_ADDING, _REMOVING = ("insert", "update_postimage"), ("delete", "update_preimage")
_NOT_KEPT = ("DELTA_MISSING_CHANGE_DATA", "DELTA_CHANGE_TABLE_FEED_DISABLED")
_OTHER_COLUMNS = (
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
)
# Spark's error conditions for a missing file. The last one is from Spark 3.5.
GONE = (
    "FAILED_READ_FILE.FILE_NOT_EXIST",
    "FAILED_READ_FILE.DBR_FILE_NOT_EXIST",
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
    "DELTA_FILE_NOT_FOUND_DETAILED",
    "_LEGACY_ERROR_TEMP_2055",
)


class FeedDetection:
    """Finds new rows by the table's change data feed.

    Only the commits of the versions in question are read. The feed separates inserts from all other changes.
    """

    def find_obstacle(self, spark: SparkSession, table: TableVersion) -> ClosedDetection | None:
        """Return the reason why the change data feed cannot find new rows, or None if it can."""
        return None if table.detail.is_on(FEED_PROPERTY) else ClosedDetection("its change data feed is off")

    def read(self, spark: SparkSession, table: TableVersion, since: int) -> AppendedRows | ClosedDetection:
        """Return the rows that were added after a version.

        Raises InputError for a commit that is neither an append nor a delete, and if files of the feed or commits
        of the log are missing.
        """
        off = self.find_obstacle(spark, table)
        if off is not None:
            return off
        try:
            history = dict(table.log.infos_after(since))
        except HistoryGap as gap:
            raise InputError.full_run_needed(gap.message) from gap
        done = {
            version: str(history.get(version, {}).get("operation") or _UNKNOWN)
            for version in table.versions_after(since)
        }
        for version, operation in done.items():
            if brings_files_back(operation):
                raise InputError.not_append_only(table.place, version, operation)
        changes = table.snapshot.read_changes(spark, since)
        change_counts = _count_changes(changes, table, since)
        if isinstance(change_counts, ClosedDetection):
            return change_counts
        for row in change_counts:
            operation = done[row["version"]]
            is_allowed = row["kind"] == "insert" or (row["kind"] == "delete" and operation in DELETES)
            if not (is_allowed or table.any_change):
                raise InputError.not_append_only(table.place, row["version"], operation)
        if any(row["is_replaced"] for row in change_counts) and _holds_undecodable(spark, table):
            return ClosedDetection(
                "its change data feed puts other characters in the place of bytes that are no UTF-8"
            )
        if any(row["kind"] != "insert" for row in change_counts):
            added, removed = (
                table.contract_columns(changes.where(F.col("_change_type").isin(*kinds)))
                for kinds in (_ADDING, _REMOVING)
            )
            return AppendedRows(added, None, removed)
        count = sum(int(row["rows"]) for row in change_counts)
        return AppendedRows(table.contract_columns(changes), count) if count else table.no_rows(spark)


def _count_changes(changes: DataFrame, table: TableVersion, since: int) -> Sequence[Row] | ClosedDetection:
    """Count the rows of each kind in each commit, in the order of versions.

    ``is_replaced`` is true if a text has the character that replaces invalid UTF-8.
    """
    replaced = (F.col(name).contains(_REPLACEMENT) for name in table.texts_of(changes))
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
            raise _vacuumed(table) from error
        raise


def _vacuumed(table: TableVersion) -> InputError:
    """Return the error for vacuumed files that a detection needs."""
    return InputError.full_run_needed(
        f"files that were appended to {table.place!r} or removed from it since the last run have been vacuumed"
    )


def _holds_undecodable(spark: SparkSession, table: TableVersion) -> bool:
    """Return whether any text of the table is invalid UTF-8."""
    rows = table.snapshot.read(spark)
    bad = (F.when(~is_utf8(F.col(name)), name) for name in table.texts_of(rows))
    return bool(rows.where(F.coalesce(*bad).isNotNull()).limit(1).count())


# Delta's log.


_LOG = """
commitInfo struct<operation: string>,
add struct<path: string, partitionValues: map<string, string>, dataChange: boolean, stats: string,
    deletionVector: struct<storageType: string, pathOrInlineDv: string, offset: int>>,
remove struct<path: string, partitionValues: map<string, string>, dataChange: boolean,
    deletionVector: struct<storageType: string, pathOrInlineDv: string, offset: int>>,
metaData struct<configuration: map<string, string>>,
damaged string
"""
_NO_FILE = "PATH_NOT_FOUND"
_UNMAPPED = "REMOVE COLUMN MAPPING"
# Helper columns: the path of a row's file, and whether its partition values are known.
_FILE, _KNOWN = "_sbroute_file", "_sbroute_known"
_NO_VALUES = "Spark names a file of new messages in another way than before: its partition values are unknown"


class LogDetection:
    """Finds new rows by Delta's log, which names the data files of each commit.

    Only these files are read, by their paths. This works for tables given by path, and for names if this session
    may read their paths.
    """

    def find_obstacle(self, spark: SparkSession, table: TableVersion) -> ClosedDetection | None:
        """Return the reason why the log cannot find new rows, or None if it can."""
        if table.detail.has_column_mapping:
            return _closed_by_mapping()
        if table.location.is_name:
            actions = _read_log(spark, table, [table.version])
            return actions if isinstance(actions, ClosedDetection) else None
        return None

    def read(self, spark: SparkSession, table: TableVersion, since: int) -> AppendedRows | ClosedDetection:
        """Return the rows that were added after a version.

        Raises InputError for a commit that is neither an append, a delete nor maintenance, and if files are gone.
        Raises StorageError if the log is damaged.
        """
        if table.detail.has_column_mapping:
            return _closed_by_mapping()
        log = _read_log(spark, table, table.versions_after(since))
        if isinstance(log, ClosedDetection):
            return log
        if not table.any_change:
            check_appends(log, table.place)
        if any(_is_mapped(row) for row in log):
            return _closed_by_mapping()
        if any(removes_rows(row) for row in log):
            return _read_deletes(spark, table, since, log)
        appends = [row for row in log if row["add"] and row["add"]["dataChange"]]
        added = {row["add"]["path"]: row["records"] for row in appends}
        if not added:
            return table.no_rows(spark)
        removed_paths = {row["remove"]["path"] for row in log if row["remove"]}
        counts = [None if records is None else int(records) for records in added.values()]
        numbers = [count for count in counts if count is not None]
        partitions = {row["add"]["path"]: dict(row["add"]["partitionValues"] or {}) for row in appends}
        rows = _read_files(spark, table, partitions, may_be_vacuumed=bool(removed_paths.intersection(added)))
        return AppendedRows(rows, sum(numbers) if len(numbers) == len(counts) else None)


def _closed_by_mapping() -> ClosedDetection:
    return ClosedDetection("it has column mapping, so its files cannot be read without the table")


def _is_mapped(row: Row) -> bool:
    """Return True if files of a commit, or of one before it, may have other column names than the table."""
    configuration = (row["metaData"] and row["metaData"]["configuration"]) or {}
    return has_column_mapping(configuration) or row["operation"] == _UNMAPPED


def _read_log(spark: SparkSession, table: TableVersion, versions: Sequence[int]) -> list[Row] | ClosedDetection:
    """Return the actions on files and metadata of all these commits, each with its version and operation.

    Returns a closed detection if a catalog does not allow reading its log by path, or stores it elsewhere. Raises
    InputError if commits are missing, and StorageError if the log is damaged.
    """
    files = [as_pattern(f"{table.detail.root}/_delta_log/{version:020d}.json") for version in versions]
    try:
        actions = _actions(spark, files)
    except Exception as error:
        # Catalogs refuse with many different errors. The cause is reported only if no other detection works.
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
            F.col("metaData"),
            F.col("damaged").isNotNull().alias("is_damaged"),
        )
        .where("coalesce(operation, add.path, remove.path) IS NOT NULL OR metaData IS NOT NULL OR is_damaged")
        .collect()
    )


def check_appends(log: Iterable[Any], location: str) -> None:
    """Refuse commits other than appends, deletes and maintenance.

    Raises InputError with the first such version.
    """
    operations = {row["version"]: row["operation"] for row in log if row["operation"] is not None}
    for row in sorted(log, key=lambda row: int(row["version"])):
        operation = operations.get(row["version"]) or _UNKNOWN
        if (removes_rows(row) and operation not in DELETES) or brings_files_back(operation):
            raise InputError.not_append_only(location, int(row["version"]), operation)


def _read_deletes(
    spark: SparkSession, table: TableVersion, since: int, log: Sequence[Row]
) -> AppendedRows | ClosedDetection:
    """Return the rows that appends and deletes added and removed, by the feed if it has them, else by files.

    The difference between both versions is the rows of files that only the later one has, minus the rows of files
    that only the earlier one has.
    """
    fed = FeedDetection().read(spark, table, since)
    if isinstance(fed, AppendedRows):
        return fed
    changed = find_changed_files(log)
    if not changed.has_plain_names:
        return ClosedDetection("files with deletion vectors have names that Spark writes in another way")
    names = changed.names_for_delta
    before = TableSnapshot(table.location, since)
    return AppendedRows(
        _read_changed(spark, table, table.snapshot, changed.added, names),
        None,
        _read_changed(spark, table, before, changed.removed, names),
    )


def _read_changed(
    spark: SparkSession,
    table: TableVersion,
    snapshot: TableSnapshot,
    files: Sequence[LoggedFile],
    names: Collection[str],
) -> DataFrame:
    """Read changed files of one version by path, and the files with ``names`` through Delta.

    An unchanged file with such a name is read in both versions, so that its rows cancel.
    """
    by_path = {
        file.path: file.partition for file in files if file.name not in names and file.partition is not None
    }
    rows = table.no_rows(spark).rows
    if by_path:
        rows = rows.unionByName(_read_files(spark, table, by_path, may_be_vacuumed=True), allowMissingColumns=True)
    if names:
        # Delta reads the whole version for this, because it cannot skip files by name.
        named = snapshot.read(spark).where(F.col("_metadata.file_name").isin(*sorted(names)))
        rows = rows.unionByName(table.contract_columns(named), allowMissingColumns=True)
    return rows


def _read_files(
    spark: SparkSession,
    table: TableVersion,
    partitions: Mapping[str, Mapping[str, str | None]],
    *,
    may_be_vacuumed: bool,
) -> DataFrame:
    """Read data files by path. ``partitions`` has the partition values of each file from the log.

    Names of folders are not used, because Delta lets a writer encode or choose them freely.
    """
    # Read only the columns of the contract, so that no other type causes an error. Delta writes no void columns.
    wanted = table.contract_columns(table.snapshot.read(spark)).schema
    partition_columns = {name for values in partitions.values() for name in values}
    outside = [field for field in wanted if field.name in partition_columns]
    inside = [field for field in wanted if field not in outside and not isinstance(field.dataType, NullType)]
    files = {_absolute(table.detail.root, path): values for path, values in partitions.items()}
    try:
        # Without this option, Spark turns folder names like key=value into columns.
        reader = spark.read.schema(StructType(inside)).option("recursiveFileLookup", "true")
        rows = reader.parquet(*map(as_pattern, files))
        # Spark Connect looks up the files only when the schema is read.
        _ = rows.columns
    except AnalysisException as error:
        if not may_be_vacuumed or condition(error) != _NO_FILE:
            raise
        raise _vacuumed(table) from error
    return _with_partition_values(spark, rows, files, outside) if outside else rows


def _with_partition_values(
    spark: SparkSession,
    rows: DataFrame,
    files: Mapping[str, Mapping[str, str | None]],
    columns: Sequence[StructField],
) -> DataFrame:
    """Add the partition columns to the rows of files. Each file's values are texts, and an empty one is NULL."""
    by_path = {normalize(path): values for path, values in files.items()}
    values_by_uri = []
    for uri in rows.inputFiles():
        values = by_path[normalize(unquote(uri))]
        values_by_uri.append(
            (uri.partition(":")[2].lstrip("/"), *(values.get(column.name) or None for column in columns))
        )
    texts = Schema(tuple(Field(name, ColumnKind.STRING) for name in (_FILE, *(column.name for column in columns))))
    known_values = small_side(frame_of_tuples(spark, values_by_uri, texts).withColumn(_KNOWN, F.lit(True)))
    typed = {column.name: F.col(column.name).cast(column.dataType) for column in columns}
    # The join adds no rows, because known_values has one row for each file.
    joined = rows.withColumn(_FILE, _file_of_row()).join(known_values.withColumns(typed), _FILE, how="left")
    return joined.where(_has_values()).drop(_FILE, _KNOWN)


def _has_values() -> Column:
    """Return a condition that fails for unknown partition values, so that no row is misread or lost."""
    return F.when(F.col(_KNOWN), True).otherwise(F.raise_error(F.lit(_NO_VALUES)))


def _file_of_row() -> Column:
    """Return the file of a row without the URI's scheme, after which Spark writes one slash or three."""
    return F.regexp_extract("_metadata.file_path", r"^[^:]*:/*(.*)$", 1)


def _absolute(root: str, path: str) -> str:
    """Return the absolute, decoded path of a file that the log names by an encoded, mostly relative path."""
    if re.match(r"\A([A-Za-z][A-Za-z0-9+.-]*:|/)", path):
        return unquote(path)
    return f"{root}/{unquote(path)}"
