"""Read the rows by which two versions of a Delta table differ: appended messages, or changes of any table.

The first of two detections that works is used (`append_detection`). For a table given by name, this is its change
data feed, or else its log if that can be read by path. For a table given by path, it is its log, or else its feed
if columns are mapped. The stream source is not used: it would need a checkpoint and a copy of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import unquote

from pyspark.sql import SparkSession

from routing.config import TableLocation
from routing.delta.append_detection import (
    FEED_PROPERTY,
    GONE,
    AppendedRows,
    ClosedDetection,
    FeedDetection,
    LogDetection,
    TableVersion,
)
from routing.delta.file_systems import as_pattern
from routing.delta.spark_tables import TableSnapshot
from routing.errors import InputError, RoutingError
from routing.schemas import Schema
from routing.sessions.existing_session import ExistingSession, condition

# Spark's error conditions for missing files, and for missing log entries of a version.
_GONE = ("PATH_NOT_FOUND", "DELTA_VERSION_NOT_FOUND", "DELTA_VERSIONS_NOT_CONTIGUOUS", *GONE)


_DETECTIONS = (FeedDetection(), LogDetection())


def _detections(location: TableLocation) -> tuple[FeedDetection | LogDetection, ...]:
    return _DETECTIONS if location.is_name else _DETECTIONS[::-1]


def check_detectable(spark: SparkSession, messages: TableSnapshot) -> None:
    """Refuse, before a first run writes anything, a table in which the next run could not find new rows.

    Raises InputError with the statement that turns the change data feed on.
    """
    table = TableVersion(messages, messages.open_log(ExistingSession(spark)))
    closed = list[ClosedDetection]()
    for detection in _detections(table.location):
        refusal = detection.find_obstacle(spark, table)
        if refusal is None:
            return
        closed.append(refusal)
    raise _refused(table, closed, is_first=True) from _cause(closed)


def read_appended(
    spark: SparkSession,
    messages: TableSnapshot,
    since: int,
    table_id: str | None = None,
    commit_identity: str | None = None,
) -> AppendedRows:
    """Return the rows that were appended or deleted after a version, up to the snapshot's version.

    ``table_id`` and ``commit_identity`` are the recorded values of the last run, or None. Raises InputError for
    another or a restored table, for other commits since then than appends, deletes and maintenance, for missing
    files, and if no detection works. Raises StorageError if the log is damaged.
    """
    table = TableVersion(messages, messages.open_log(ExistingSession(spark)))
    return _read_after(spark, table, since, table_id, commit_identity)


def read_changes(
    spark: SparkSession,
    snapshot: TableSnapshot,
    schema: Schema,
    since: int,
    table_id: str | None,
    commit_identity: str | None,
) -> AppendedRows | None:
    """Return the rows that any commits after a version added or removed, or None if they are unknown.

    ``schema`` has the columns of the contract. A row that moved to another file is in both frames.
    """
    log = snapshot.open_log(ExistingSession(spark))
    try:
        return _read_after(
            spark, TableVersion(snapshot, log, schema, any_change=True), since, table_id, commit_identity
        )
    except InputError:
        # The table was recreated or restored, its log or files are gone, or no detection works.
        return None


def _read_after(
    spark: SparkSession, table: TableVersion, since: int, table_id: str | None, commit_identity: str | None
) -> AppendedRows:
    location = table.location
    if table.version < since or table_id not in (None, table.detail.table_id):
        raise InputError.full_run_needed(f"{str(location)!r} was recreated or restored since the last run")
    if commit_identity is not None and not table.log.is_commit(since, commit_identity):
        raise InputError.full_run_needed(
            f"version {since} of {str(location)!r} is not the one that the last run read: the table was restored,"
            " or its log has been cleaned up"
        )
    if table.version == since:
        return table.no_rows(spark)
    closed = list[ClosedDetection]()
    for detection in _detections(location):
        detected = detection.read(spark, table, since)
        if isinstance(detected, AppendedRows):
            return detected
        closed.append(detected)
    raise _refused(table, closed, is_first=False) from _cause(closed)


def _refused(table: TableVersion, closed: Sequence[ClosedDetection], *, is_first: bool) -> InputError:
    """Return the error that no detection works. Its hint turns on the change data feed if it is off."""
    turn_on = f"ALTER TABLE {table.snapshot.name_in_sql} SET TBLPROPERTIES ('{FEED_PROPERTY}' = 'true')"
    return InputError.new_rows_unknown(
        table.place,
        [detection.why for detection in closed],
        None if table.detail.is_on(FEED_PROPERTY) else turn_on,
        is_first=is_first,
    )


def _cause(closed: Sequence[ClosedDetection]) -> Exception | None:
    return next((detection.cause for detection in closed if detection.cause is not None), None)


@contextmanager
def files_of(
    table: TableSnapshot, refused: Callable[[str], RoutingError] = InputError.full_run_needed
) -> Iterator[None]:
    """Report missing files of a table's version within the block.

    ``refused`` creates the error from the sentence on the files, by default the error for ``messages``.
    """
    try:
        yield
    except Exception as error:
        if condition(error) not in _GONE:
            raise
        raise refused(
            f"files of version {table.version} of {str(table.location)!r}, which this run needs,"
            " have been vacuumed"
        ) from error


def check_files(
    spark: SparkSession, table: TableSnapshot, refused: Callable[[str], RoutingError] = InputError.full_run_needed
) -> None:
    """Refuse a version of a table with missing files, before it is read (`files_of`).

    A table given by name is not checked until it is read, because a catalog may hide its paths.
    """
    if table.location.is_name:
        return
    with files_of(table, refused):
        files = [as_pattern(unquote(file)) for file in table.read(spark).inputFiles()]
        if files:
            # This looks up the paths without reading the files. Folder names like key=value do not become columns.
            _ = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(files).columns
