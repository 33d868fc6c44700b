"""What comes of a run, now or when it was tried before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from routing.config import Config
from routing.errors import StorageError
from routing.storage.opening import Opener
from routing.storage.recorded import find_recorded, say_recorded


@dataclass(frozen=True)
class Run:
    """A finished run: its row of ``runs``, and notes for whoever watches.

    ``was_recorded``: it counted already, and nothing was done. ``unfinished`` are those of the notes that are on
    imports which were not finished when it read its inputs.
    """

    row: dict[str, Any]
    notes: tuple[str, ...]
    was_recorded: bool = False
    unfinished: tuple[str, ...] = ()


def find_done(opener: Opener, config: Config, run_id: str, now: datetime | None) -> Run | None:
    """The run that counts under an id; None where none does. Raises RunError and OutputError (`find_recorded`)."""
    row = find_recorded(opener, config, run_id, now)
    return None if row is None else Run(row, (say_recorded(row),), was_recorded=True)


def done_before(opener: Opener, config: Config, run_id: str, now: datetime | None) -> Run:
    """The run that was found to count under an id. Raises RunError where it was told to do something else."""
    done = find_done(opener, config, run_id, now)
    if done is None:
        raise StorageError.overtaken("runs", str(config.output["runs"]))
    return done
