"""What is told of a table of paths that was written, in its commit and to whoever asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from routing.errors import InternalError
from routing.storage.columns import Table
from routing.storage.inputs import count_by
from routing.storage.releases import release

COMMAND = "trace --all"


@dataclass(frozen=True)
class Written:
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


def mark_of(versions: Mapping[str, int | None], as_of: datetime | None) -> str:
    """What the commit says of itself, as one line of JSON."""
    told = {"command": COMMAND, "release": release(), "as_of": as_of and as_of.isoformat()}
    return json.dumps({**told, "input_versions": dict(versions)}, sort_keys=True)


def count_paths(paths: Table, version: int, read: int, rejected: int, notes: Iterable[str] = ()) -> Written:
    """What was written, its stored rows counted. Raises InternalError where the counts do not add up."""
    found = sorted(count_by(paths, ["outcome"]).items())
    done = Written(version, read, rejected, {str(outcome): count for (outcome,), count in found}, tuple(notes))
    if done.traced + done.rejected != done.read:
        raise InternalError.paths(done.read, done.traced, done.rejected)
    return done
