"""How the smaller side of a join gets to the larger one; the only room that gives Spark a hint.

What a configuration bounds is broadcast as it is (`small_side`). What messages make has no bound: it is measured,
and above ``resolve.broadcast_limit`` it is not broadcast but shuffled, and the run says so (`BroadcastBudget`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from routing.sessions.settings import find_setting
from routing.tables.frame_cache import bytes_of_texts

_BROADCAST, _HASH, _MERGE = "broadcast", "shuffle_hash", "merge"
_CALLED = {_HASH: "shuffled hash join", _MERGE: "sort-merge join"}
# What a row takes in a join's table besides its texts, roughly: for itself, and for each column.
_ROW, _COLUMN = 100, 16
# Up to this many bytes of a side a task holds in memory; more is sorted, which goes to disk where it must.
TASK_BYTES = 64 * 1024**2


def small_side(rows: DataFrame) -> DataFrame:
    """Broadcast rows whose number the configuration, or a caller's question, bounds.

    Never what messages make.
    """
    return rows.hint(_BROADCAST)


@dataclass(frozen=True)
class JoinSide:
    """The smaller side of a join, and how it is joined."""

    rows: DataFrame
    how: str

    @property
    def fits(self) -> bool:
        """Whether it is broadcast; else both sides are shuffled."""
        return self.how == _BROADCAST

    def with_hint(self) -> DataFrame:
        """Return the rows with Spark's hint, which selects keep."""
        return self.rows.hint(self.how)


def side_of(rows: DataFrame, *, fits: bool) -> JoinSide:
    """Return a side whose size its caller knows; one that does not fit is no more than tasks can hold."""
    return JoinSide(rows, _BROADCAST if fits else _HASH)


@dataclass(frozen=True)
class BroadcastBudget:
    """The budget for broadcasts: up to ``limit`` bytes. ``notes`` tell the rest; a task holds ``task_bytes``."""

    limit: int
    notes: list[str] = field(default_factory=list)
    task_bytes: int = TASK_BYTES

    def join_side(self, what: str, rows: DataFrame, count: int | None = None) -> JoinSide:
        """Return a side of the size that its rows have, which are read for it; ``what`` names them in the notes.

        Where ``count``, the number of rows, tells enough they are not read.
        """
        least = (count or 0) * _bytes_of_row(rows.schema)
        if least > self.limit:
            # By how much is not known.
            return self._without(what, rows, f"at least {least} bytes", _MERGE)
        if count == 0:
            return JoinSide(rows, _BROADCAST)
        return self.of_size(what, rows, int(rows.agg(_size(rows.schema)).collect()[0][0]))

    def of_size(self, what: str, rows: DataFrame, size: int) -> JoinSide:
        """Return a side of a known size in bytes."""
        if size <= self.limit:
            return JoinSide(rows, _BROADCAST)
        part = size / _partitions(rows.sparkSession)
        return self._without(what, rows, f"{size} bytes", _HASH if part <= self.task_bytes else _MERGE)

    def _without(self, what: str, rows: DataFrame, size: str, how: str) -> JoinSide:
        self.notes.append(
            f"{what} are over broadcast_limit ({size}): both sides are shuffled to join them ({_CALLED[how]})"
        )
        return JoinSide(rows, how)


def _partitions(spark: SparkSession) -> int:
    """Return the number of a shuffle's parts; a platform that decides it later promises none."""
    parts = find_setting(spark, "spark.sql.shuffle.partitions") or ""
    return int(parts) if parts.isdigit() and int(parts) else 1


def _bytes_of_row(schema: StructType) -> int:
    return _ROW + _COLUMN * len(schema)


def _size(schema: StructType) -> Column:
    """Return the bytes of all rows, an aggregate."""
    return F.count(F.lit(1)) * _bytes_of_row(schema) + F.coalesce(F.sum(bytes_of_texts(schema)), F.lit(0))
