"""What was read, view by view, for those who ask whether it was all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from routing.features.check.evidence import FileEvidence


@dataclass(frozen=True)
class ViewRead:
    """A view of one instance: of how many databases (0 for an instance's own), how many rows, how new."""

    view: str
    instance: str
    databases: int
    rows: int
    newest: datetime


def views_read(evidence: FileEvidence) -> Iterator[ViewRead]:
    """Yield every exported view of every instance."""
    for instance in evidence.instances:
        for view, units in evidence.units.items():
            theirs = {database: at for (name, database), at in units.items() if name == instance}
            if theirs:
                databases = sum(database is not None for database in theirs)
                rows = evidence.rows_of[view, instance]
                yield ViewRead(view, instance, databases, rows, max(theirs.values()))
