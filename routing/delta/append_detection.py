"""What the ways of finding appended message rows have in common (`by_feed`, `by_tracking`, `by_log`).

A way is open where the table keeps what it needs for all versions in question, and this session may read that.
One that is open tells the rows, or refuses what happened to them; one that is closed says why, and the next is
tried.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.config import TableLocation
from routing.delta import commits
from routing.delta.commits import CommitInfo
from routing.delta.spark_tables import TableSnapshot
from routing.delta.table_details import TableDetail
from routing.errors import HistoryGap, InputError
from routing.schemas import INPUTS
from routing.sessions.session_settings import ExistingSession

# These bring files back or in that are no appended rows.
_NO_APPENDS = ("RESTORE", "CLONE")


@dataclass(frozen=True)
class AppendedRows:
    """Appended rows as a frame; ``count`` is their number, None where it cannot be told without reading them.

    ``files`` are the paths, within the table's folder, of those that hold them and nothing else, where known.
    """

    rows: DataFrame
    count: int | None
    files: frozenset[str] | None = None


@dataclass(frozen=True)
class ClosedDetection:
    """A way that is not open: ``why`` goes on from the table's name, as in ``its change data feed is off``."""

    why: str
    cause: Exception | None = None


@dataclass(frozen=True)
class MessageVersion:
    """The table ``messages`` at the version that a run reads, and what it says of itself."""

    snapshot: TableSnapshot
    detail: TableDetail

    @property
    def version(self) -> int:
        """The version that is read."""
        return self.snapshot.version

    @property
    def location(self) -> TableLocation:
        """Where the table is, as the configuration has it."""
        return self.snapshot.location

    @property
    def place(self) -> str:
        """The same for sentences."""
        return str(self.location)

    def versions_after(self, since: int) -> range:
        """Return the versions that came in after one."""
        return range(since + 1, self.version + 1)

    def no_rows(self, spark: SparkSession) -> AppendedRows:
        """Return no new rows, as an empty frame."""
        return AppendedRows(self.snapshot.read(spark).where(F.lit(False)), 0)


def history_after(spark: SparkSession, table: MessageVersion, since: int) -> dict[int, CommitInfo]:
    """Return the commit info of each commit after a version, up to the newest.

    Raises InputError where one is gone.
    """
    try:
        return dict(commits.commit_infos_after(ExistingSession(spark), table.location, since))
    except HistoryGap as gap:
        raise InputError.full_run_needed(gap.message) from gap


def operation_of(commit_info: CommitInfo | None) -> str:
    """Return the operation of a commit, by Delta's name."""
    return str((commit_info or {}).get("operation") or "unknown operation")


def brings_files_back(operation: str) -> bool:
    """Return True if what a commit of this operation adds to a table need not be new."""
    return operation in _NO_APPENDS


def columns_of_messages(rows: DataFrame) -> DataFrame:
    """Return the columns that messages have by contract, as far as they are there: others are nobody's trouble."""
    wanted = INPUTS["messages"].names
    return rows.select(*(name for name in rows.columns if name.lower() in wanted))
