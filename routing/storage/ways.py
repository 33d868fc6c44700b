"""What the ways of finding appended message rows have in common (`by_feed`, `by_tracking`, `by_log`).

A way is open where the table keeps what it needs for all versions in question, and this session may read that.
One that is open tells the rows, or refuses what happened to them; one that is closed says why, and the next is
tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.config import Location
from routing.errors import HistoryGap, InputError
from routing.schemas import INPUTS
from routing.sessions.holding import Held
from routing.storage import commits
from routing.storage.details import Detail
from routing.storage.tables import Snapshot

# These bring files back or in that are no appended rows.
_NO_APPENDS = ("RESTORE", "CLONE")


@dataclass(frozen=True)
class Appended:
    """Appended rows as a frame; ``count`` is their number, None where it cannot be told without reading them.

    ``files`` are the paths, within the table's folder, of those that hold them and nothing else, where known.
    """

    rows: DataFrame
    count: int | None
    files: frozenset[str] | None = None


@dataclass(frozen=True)
class Closed:
    """A way that is not open: ``why`` goes on from the table's name, as in ``its change data feed is off``."""

    why: str
    cause: Exception | None = None


@dataclass(frozen=True)
class Messages:
    """The table ``messages`` at the version that a run reads, and what it says of itself."""

    snapshot: Snapshot
    detail: Detail

    @property
    def version(self) -> int:
        """The version that is read."""
        return self.snapshot.version

    @property
    def location(self) -> Location:
        """Where the table is, as the configuration has it."""
        return self.snapshot.location

    @property
    def place(self) -> str:
        """The same for sentences."""
        return str(self.location)

    def versions_after(self, since: int) -> range:
        """The versions that came in after one."""
        return range(since + 1, self.version + 1)

    def no_rows(self, spark: SparkSession) -> Appended:
        """Nothing that is new."""
        return Appended(self.snapshot.read(spark).where(F.lit(False)), 0)


def history_after(spark: SparkSession, table: Messages, since: int) -> dict[int, Mapping[str, Any]]:
    """What each commit after a version says of itself, up to the newest. Raises InputError where one is gone."""
    try:
        return dict(commits.told_after(Held(spark), table.location, since))
    except HistoryGap as gap:
        raise InputError.full_run_needed(gap.message) from gap


def operation_of(told: Mapping[str, Any] | None) -> str:
    """What a commit did, by Delta's name."""
    return str((told or {}).get("operation") or "unknown operation")


def brings_files_back(operation: str) -> bool:
    """Whether what a commit of this operation adds to a table need not be new."""
    return operation in _NO_APPENDS


def columns_of_messages(rows: DataFrame) -> DataFrame:
    """The columns that messages have by contract, as far as they are there: others are nobody's trouble."""
    wanted = INPUTS["messages"].names
    return rows.select(*(name for name in rows.columns if name.lower() in wanted))
