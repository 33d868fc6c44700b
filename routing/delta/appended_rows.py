"""Read the message rows that were appended to a Delta table between two versions, and nothing else.

Of three detections (`append_detection`) the first that works is taken. By the table's name: its change data
feed, its row tracking, or its log where that can be read by path. A table that is given by path is read by its
log; where columns are mapped, by the other two. Not the stream source, which would need a checkpoint and a copy
of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol
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
    MessageVersion,
    TrackingDetection,
)
from routing.delta.commits import identity
from routing.delta.file_systems import as_pattern
from routing.delta.spark_tables import TableSnapshot
from routing.delta.table_details import detail
from routing.errors import InputError, RoutingError
from routing.sessions.existing_session import ExistingSession, condition

# Spark's conditions for files, or log entries of a version, that are not there any more.
_GONE = ("PATH_NOT_FOUND", "DELTA_VERSION_NOT_FOUND", "DELTA_VERSIONS_NOT_CONTIGUOUS", *GONE)


@dataclass(frozen=True)
class RecordedVersion:
    """The version of ``messages`` that a run recorded, with the identities of table and commit.

    Release 0.1.0 recorded the version alone.
    """

    version: int
    table_id: str | None = None
    identity: str | None = None


class _AppendDetection(Protocol):
    """A way to find new rows."""

    def look(self, spark: SparkSession, table: MessageVersion) -> ClosedDetection | None:
        """Return the reason why this detection cannot find new rows; None where it can."""

    def read(self, spark: SparkSession, table: MessageVersion, since: int) -> AppendedRows | ClosedDetection:
        """Return the new rows, or the reason why they cannot be found. Raises InputError, StorageError."""


_BY_NAME: tuple[_AppendDetection, ...] = (FeedDetection(), TrackingDetection(), LogDetection())
_BY_PATH: tuple[_AppendDetection, ...] = (LogDetection(), FeedDetection(), TrackingDetection())


def _detections(location: TableLocation) -> tuple[_AppendDetection, ...]:
    return _BY_NAME if location.is_name else _BY_PATH


def check_detectable(spark: SparkSession, messages: TableSnapshot) -> None:
    """Refuse, before a first run writes anything, a table in which the next run could not find new rows.

    Raises InputError with the property to set.
    """
    table = MessageVersion(messages, detail(spark, messages.location))
    closed = list[ClosedDetection]()
    for detection in _detections(table.location):
        refusal = detection.look(spark, table)
        if refusal is None:
            return
        closed.append(refusal)
    raise _refused(table, closed, is_first=True) from _cause(closed)


def read_appended(spark: SparkSession, messages: TableSnapshot, recorded: RecordedVersion) -> AppendedRows:
    """Return the rows that were appended after the recorded version, up to the snapshot's version.

    Raises InputError where this is another table or was restored, where a commit since then did something else
    than append rows or maintain files, where files are gone, or where no detection works; StorageError where the
    log is damaged.
    """
    location, since = messages.location, recorded.version
    table = MessageVersion(messages, detail(spark, location))
    if table.version < since or recorded.table_id not in (None, table.detail.table_id):
        raise InputError.full_run_needed(f"{str(location)!r} was made anew or put back since the last run")
    if recorded.identity is not None and identity(ExistingSession(spark), location, since) != recorded.identity:
        raise InputError.full_run_needed(
            f"version {since} of {str(location)!r} is not the one that the last run read: the table was put back,"
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


def _refused(table: MessageVersion, closed: Sequence[ClosedDetection], *, is_first: bool) -> InputError:
    """Return the error that no detection works; its hint is the property to set where the feed is off."""
    to_set = None if table.detail.is_on(FEED_PROPERTY) else FEED_PROPERTY
    return InputError.new_rows_unknown(
        table.place, [detection.why for detection in closed], to_set, is_first=is_first
    )


def _cause(closed: Sequence[ClosedDetection]) -> Exception | None:
    return next((detection.cause for detection in closed if detection.cause is not None), None)


@contextmanager
def files_of(
    table: TableSnapshot, refused: Callable[[str], RoutingError] = InputError.full_run_needed
) -> Iterator[None]:
    """Refuse within it a version of a table of which files are gone; ``messages``, if not told otherwise.

    ``refused`` makes the error of the sentence that says so.
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
    """Refuse a version of a table of which files are gone, before it is read (`files_of`).

    A name's version is found by reading it: a catalog may keep its paths to itself.
    """
    if table.location.is_name:
        return
    with files_of(table, refused):
        files = [as_pattern(unquote(file)) for file in table.read(spark).inputFiles()]
        if files:
            # The paths are looked up, the files are not read. Folders called key=value make no columns.
            _ = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(files).columns
