"""The counts of a table of paths that was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from routing.engines.traffic_tables import count_by
from routing.errors import InternalError
from routing.tables.table_columns import Table

COMMAND = "trace --all"


@dataclass(frozen=True)
class WrittenPaths:
    """The version of the table, how many messages by how they end, and notes."""

    version: int
    read: int
    rejected: int
    outcomes: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def traced(self) -> int:
        """How many messages have a path."""
        return sum(self.outcomes.values())


def count_paths(paths: Table, version: int, read: int, rejected: int, notes: Iterable[str] = ()) -> WrittenPaths:
    """Count the stored paths. Raises InternalError where the counts do not add up."""
    outcome_counts = sorted(count_by(paths, ["outcome"]).items())
    done = WrittenPaths(
        version, read, rejected, {str(outcome): count for (outcome,), count in outcome_counts}, tuple(notes)
    )
    if done.traced + done.rejected != done.read:
        raise InternalError.paths(done.read, done.traced, done.rejected)
    return done
