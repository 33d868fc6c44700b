"""What is decided for keys, as frames: a timeline for each key, whose rows messages are joined with.

Small, printable, testable without messages. Columns of a plan: those of its key, valid_from (inclusive) and
valid_to (exclusive), null where unbounded, and choices, an array of which the dialog-ID hash takes one; a row for
each key and interval of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.plan.rows import DecidedKeys, PlanUses
from routing.schemas import ArrayOf, ColumnKind, Field, Schema
from routing.tables.table_columns import TableColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from routing.tables import frames
    from routing.tables.frame_cache import FrameCache

# A key's size in memory beside its timeline's rows, roughly.
_OF_A_KEY = 300
TIMELINE = "timeline"
_NUMBER = Field(TIMELINE, ColumnKind.INT)
# The columns of a key that are no text.
_KINDS = {"key_kind": ColumnKind.INT, "key_role": ColumnKind.INT}


@dataclass(frozen=True)
class RoutingPlan:
    """A plan as frames, and its size in memory: bytes, roughly.

    ``rows`` have the columns of a plan. Of a large one they have a timeline in place of a key, since many keys may
    share one, and ``keys`` say which is whose: the columns of ``key`` and timeline, a row for each key.
    """

    key: tuple[str, ...]
    rows: DataFrame
    keys: DataFrame | None
    size: int
    uses: PlanUses


@dataclass(frozen=True)
class PreparedPlan:
    """A plan before there is a session, its rows as they are handed over; the rest as `RoutingPlan` has it."""

    key: tuple[str, ...]
    rows: frames.PreparedRows
    keys: frames.PreparedRows | None
    size: int
    uses: PlanUses

    def on(self, spark: SparkSession, keeper: FrameCache) -> RoutingPlan:
        """Return the plan in a session; what is too large to be rows of the driver goes to ``keeper``."""
        rows = self.rows.frame(spark)
        if self.keys is None:
            return RoutingPlan(self.key, rows, None, self.size, self.uses)
        return RoutingPlan(
            self.key, keeper.store(rows), keeper.store(self.keys.frame(spark)), self.size, self.uses
        )


def as_plan(keys: TableColumns, decided: DecidedKeys) -> PreparedPlan:
    """Write the decisions for ``keys`` as rows."""
    # Deciding does not need the package.
    from routing.tables import frame_cache, frames

    numbers, timelines = decided.numbers, decided.timelines
    of_key = [Field(name, _KINDS.get(name, ColumnKind.STRING)) for name in decided.key]
    of_times = [
        *(Field(name, ColumnKind.TIMESTAMP) for name in ("valid_from", "valid_to")),
        Field("choices", ArrayOf(decided.choice)),
    ]
    if sum(len(timelines[number].rows) for number in numbers) <= frame_cache.HELD_ROWS:
        size = sum(timelines[number].size for number in numbers)
        whole = frames.PreparedRows.of(_whole(keys, decided), Schema((*of_key, *of_times)))
        return PreparedPlan(decided.key, whole, None, size, decided.uses)
    size = _OF_A_KEY * len(numbers) + sum(timeline.size for timeline in timelines)
    numbered = ((*key, number) for key, number in zip(keys.rows(*decided.key), numbers, strict=True))
    named = frames.PreparedRows.of(numbered, Schema((*of_key, _NUMBER)))
    rows = ((number, *row) for number, timeline in enumerate(timelines) for row in timeline.rows)
    timed = frames.PreparedRows.of(rows, Schema((_NUMBER, *of_times)))
    return PreparedPlan(decided.key, timed, named, size, decided.uses)


def _whole(keys: TableColumns, decided: DecidedKeys) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a small plan."""
    for key, number in zip(keys.rows(*decided.key), decided.numbers, strict=True):
        for row in decided.timelines[number].rows:
            yield (*key, *row)
