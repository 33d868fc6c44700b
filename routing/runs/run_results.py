"""The result of a run, which was made now or when it was tried before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from routing.config import Config
from routing.delta.counted_runs import EarlierRun, find_earlier_run, find_recorded, say_recorded
from routing.delta.job_outputs import LastRun
from routing.delta.opening import TableOpener
from routing.engines.traffic_tables import count_by
from routing.errors import InternalError, StorageError
from routing.tables.table_columns import Table
from routing.terms import TableRow


@dataclass(frozen=True)
class Run:
    """Hold a finished run: its row of ``runs``, and its notes.

    Args:
        row: the row of table ``runs`` (tables.md).
        notes: sentences for the person who watches the run.
        was_recorded: whether a run of this id counted already, so that nothing was done.
        unfinished: the notes on imports that were not finished when the run read its inputs.
        earlier: the last run of the same mode before it; None for the first.

    Example:
        >>> done = routing.resolve_local(routing.load_config("job.yaml"), run_id="second")
        >>> done.row["rows_resolved"], done.was_recorded
        (5, False)
    """

    row: TableRow
    notes: tuple[str, ...]
    was_recorded: bool = False
    unfinished: tuple[str, ...] = ()
    earlier: EarlierRun | None = None


def find_done(opener: TableOpener, config: Config, run_id: str, now: datetime | None) -> Run | None:
    """Return the run that counts under an id; None where none does. Raises as `find_recorded` does."""
    row = find_recorded(opener, config, run_id, now)
    if row is None:
        return None
    earlier = find_earlier_run(opener, config, row["mode"], before=row["finished_at"])
    return Run(row, (say_recorded(row),), was_recorded=True, earlier=earlier)


def done_before(opener: TableOpener, config: Config, run_id: str, now: datetime | None) -> Run:
    """Return the run that was found to count under an id. Raises RunError where its settings were others."""
    done = find_done(opener, config, run_id, now)
    if done is None:
        raise StorageError.overtaken("runs", str(config.output["runs"]))
    return done


def find_run_before(opener: TableOpener, config: Config, last: LastRun | None) -> EarlierRun | None:
    """Return the last run of the configured mode, None where there is none; ``last`` is that of any mode."""
    mode = config.resolve.mode
    if last is None:
        return None
    if last.mode == mode:
        return EarlierRun(last.run_id, last.finished_at, last.outcome_counts)
    return find_earlier_run(opener, config, mode)


# The counts of a table of paths that was written.


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
