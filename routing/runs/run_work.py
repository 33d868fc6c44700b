"""The means of a run by either engine: its options, its stages, its inputs and its outputs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import floor
from typing import Any, NamedTuple

from routing.config import Config
from routing.delta.import_times import newest_after, taken_as_now
from routing.delta.ledger import JobTables
from routing.delta.opening import TableOpener
from routing.delta.protocol import RunStart
from routing.delta.spark_tables import Input
from routing.engines.traffic_tables import count_by, open_traffic
from routing.errors import RoutingError, StorageError, first_sentence
from routing.plan.checked_inputs import ResolveOptions
from routing.tables.read_rows import count_by_files
from routing.tables.table_columns import Filter, Table
from routing.terms import JsonObject, Outcome, Reason, Word


class InternalError(RoutingError):
    """The run's own accounts do not agree, which is a fault of this program."""

    @classmethod
    def counts(cls, read: int, resolved: int, rejected: int) -> InternalError:
        """Say that the rows read are not the rows resolved plus the rows rejected."""
        return cls(
            f"{read} messages were read, but {resolved} resolved and {rejected} rejected; the run is not recorded"
        )

    @classmethod
    def pending(cls, delayed: int, stored: int) -> InternalError:
        """Say that the messages to be tried again are not those of ``pending_messages``."""
        return cls(
            f"{delayed} messages were left delayed, but pending_messages holds {stored}; the run is not recorded"
        )

    @classmethod
    def delayed(cls, left: int, present: int, version: int) -> InternalError:
        """Say that messages which a full run left delayed are not among those that it read."""
        return cls(f"{left} messages were left delayed, but {present} are in version {version} of tables.messages")

    @classmethod
    def candidates(cls, expected: int, stored: int) -> InternalError:
        """Say that candidates of messages were lost or doubled on their way into the table."""
        return cls(f"the messages have {expected} candidates, but {stored} rows were written")

    @classmethod
    def paths(cls, read: int, traced: int, rejected: int) -> InternalError:
        """Say that the rows read are not the rows traced plus the rows rejected."""
        return cls(f"{read} messages were read, but {traced} traced and {rejected} rejected")


# The seconds of a run's stages, and what becomes of Spark's errors in them.


@dataclass(frozen=True)
class Progress:
    """A stage that begins; once it has ended, with its seconds, and how many rows it was about, where known."""

    stage: str
    seconds: float | None = None
    rows: int | None = None

    def __str__(self) -> str:
        return self.stage if self.seconds is None else f"{self.stage}: {self.seconds:.1f} s"

    def fields(self) -> JsonObject:
        """Return the progress for programs, seconds in whole milliseconds; without unknown values."""
        seconds = None if self.seconds is None else round(self.seconds, 3)
        values = {"stage": self.stage, "seconds": seconds, "rows": self.rows}
        return {name: value for name, value in values.items() if value is not None}


@dataclass
class StageTally:
    """The number of rows of a stage, which the stage sets before it ends."""

    rows: int | None = None


class UntimedStages:
    """The stages of what nobody times; errors stay as they are."""

    @contextmanager
    def stage(self, name: str) -> Iterator[StageTally]:
        """Run the block without timing it."""
        yield StageTally()


class Stages:
    """Seconds per stage; an error of Spark inside a stage becomes a StorageError that names it.

    ``progress`` is called with each stage twice, when it begins and when it has ended; of one that fails no end.
    The seconds of a stage within another are its own alone.
    """

    def __init__(self, progress: Callable[[Progress], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress
        # Of stages that have ended within the one that is under way.
        self._within = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[StageTally]:
        """Measure the block's time; a failure becomes StorageError."""
        self._progress(Progress(name))
        begun, tally = time.monotonic(), StageTally()
        before, self._within = self._within, 0.0
        try:
            yield tally
        except RoutingError:
            raise
        except Exception as error:
            raise StorageError.failed(f"in stage {name}", first_sentence(error)) from error
        seconds = time.monotonic() - begun
        self._add(name, seconds - self._within, tally.rows)
        self._within = before + seconds

    def _add(self, name: str, seconds: float, rows: int | None) -> None:
        """Count seconds for a stage, in whole milliseconds; one that is entered twice counts as one."""
        # Rounded up, the stages together would be longer than the run.
        self.seconds[name] = floor((self.seconds.get(name, 0.0) + seconds) * 1000) / 1000
        self._progress(Progress(name, seconds, rows))


@dataclass(frozen=True)
class RunWork:
    """A run.

    ``start`` is what the runs before it left, ``newest`` when what has no history was imported (`imported`), by
    instance; ``notes`` grow until it ends.
    """

    outputs: JobTables
    start: RunStart
    options: ResolveOptions
    inputs: Mapping[str, Input]
    newest: Mapping[str, int]
    clock: Stages
    opener: TableOpener
    notes: list[str]

    @property
    def config(self) -> Config:
        """What was asked for."""
        return self.outputs.config

    def is_empty(self, key: str) -> bool:
        """Return True if an output stands there and has no rows; False for one that Spark reads."""
        version = self.start.versions.get(key)
        if version is None or key in self.outputs.lacking:
            return False
        return count_by_files(self._written(key, version)) == 0

    def count_written(self, key: str, version: int, *names: str) -> Counter[tuple[Any, ...]]:
        """Count the rows of this run that are stored in an output, by the values of some columns."""
        return count_by(self._written(key, version), names, self._of_this_run)

    def earliest_decided(self, version: int) -> dict[str, int]:
        """Return the time of this run's first decision by instance (microseconds)."""
        stored = open_traffic(self._written("resolved_routes", version))
        groups = stored.groups(("instance_name",), least=("decided_at",), only=self._of_this_run).rows()
        return dict(groups.rows("instance_name", "min_decided_at"))

    @property
    def _of_this_run(self) -> Filter:
        return {"run_id": [self.options.run_id]}

    def _written(self, key: str, version: int) -> Table:
        """Open an output as it is stored."""
        return self.opener.open_at(f"output.{key}", self.config.output[key], version)


# The counts of a run, of its rows as they are stored; they must add up before it is recorded.


@dataclass(frozen=True)
class RunCounts:
    """The versions that a run wrote, by key, and counts of its rows."""

    versions: Mapping[str, int]
    read: int = 0
    resolved: int = 0
    rejected: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)


class ResolvedGroup(NamedTuple):
    """The outcome, reason and database that resolved messages have in common."""

    outcome: str
    reason: str
    database: str | None


Groups = Counter[ResolvedGroup]
"""How many resolved messages each group has."""


def count_resolved(work: RunWork, versions: Mapping[str, int]) -> Groups:
    """Count the stored rows of a run's resolved messages.

    To read narrow columns takes a fraction of the time that counting the rows on their way takes.
    """
    names = ("outcome", "reason", "database_name")
    counts = work.count_written("resolved_routes", versions["resolved_routes"], *names)
    return Counter({ResolvedGroup(*group): rows for group, rows in counts.items()})


def count_rows(
    work: RunWork, versions: Mapping[str, int], groups: Groups, written: Iterable[str], read: int
) -> RunCounts:
    """Return the counts of a run, which must agree. Raises StorageError, InternalError.

    ``groups`` as `count_resolved` has them; ``written`` are the outputs that the run wrote to. Where imports are
    on record, the run's notes get what `imported` says of decisions before them.
    """
    rejected: Counter[tuple[Any, ...]] = Counter()
    if "rejected_messages" in written:
        rejected = work.count_written("rejected_messages", versions["rejected_messages"], "run_id")
    done = RunCounts(
        versions,
        read,
        groups.total(),
        rejected.total(),
        _sums(((group.outcome, rows) for group, rows in groups.items()), Outcome),
        _sums(((group.reason, rows) for group, rows in groups.items()), Reason),
    )
    decided = sum(done.outcomes.values()), sum(done.reasons.values())
    if done.resolved + done.rejected != read or decided != (done.resolved, done.resolved):
        raise InternalError.counts(read, min(decided), done.rejected)
    work.notes.extend(_taken_as_now(work, versions["resolved_routes"]))
    return done


def check_pending(work: RunWork, versions: Mapping[str, int], groups: Groups) -> None:
    """Check that ``pending_messages`` holds every message that this run left delayed. Raises InternalError.

    Both are counted as they are stored, ``groups`` by `count_resolved`: what is missing there is never tried
    again. Raises InternalError.
    """
    from routing.messages import pending

    delayed = sum(rows for group, rows in groups.items() if pending.tries_again(group.outcome, group.database))
    stored = work.count_written("pending_messages", versions["pending_messages"], "run_id").total()
    if stored != delayed:
        raise InternalError.pending(delayed, stored)


def _taken_as_now(work: RunWork, version: int) -> Iterator[str]:
    """Return the note on decisions before the newest import of what has no history; none where all is newer."""
    if work.newest:
        decided = work.earliest_decided(version)
        after = {name: newest_after(work.newest, name, t) for name, t in decided.items()}
        late = {name: at for name, at in after.items() if at is not None}
        if late:
            yield taken_as_now(late)


def _sums(counts: Iterable[tuple[str, int]], words: Iterable[Word]) -> dict[str, int]:
    """Sum rows by their words, in the order of ``words``; other values count nowhere."""
    sums = Counter[str]()
    for word, rows in counts:
        sums[word] += rows
    return {str(word): sums[str(word)] for word in words if sums[str(word)]}


def note_unended_requests(work: RunWork, count: int) -> None:
    """Note how many requests on record have no ended_at, if any."""
    if count:
        have = "request on record has" if count == 1 else "requests on record have"
        waits = "until it is there, nothing asks again for the same service, and who asked for it waits"
        work.notes.append(f"{count:,} route {have} no ended_at: {waits}")


# The counts of a table of paths, of its rows as they are stored.


TRACE_ALL = "trace --all"
"""The command that writes it."""


@dataclass(frozen=True)
class WrittenPaths:
    """The version of the table, how many messages end where, and notes.

    ``ends`` counts joint endings (`PathEnd`), ``outcomes`` the endings of the first ways.
    """

    version: int
    read: int
    rejected: int
    outcomes: Mapping[str, int]
    ends: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def traced(self) -> int:
        """How many messages have a path."""
        return sum(self.outcomes.values())


def count_paths(paths: Table, version: int, read: int, rejected: int, notes: Iterable[str] = ()) -> WrittenPaths:
    """Count the stored paths. Raises InternalError where the counts do not add up."""
    outcomes: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for (outcome, end), count in sorted(count_by(paths, ["outcome", "joint_ending"]).items()):
        outcomes[str(outcome)] += count
        ends[str(end)] += count
    done = WrittenPaths(version, read, rejected, dict(outcomes), dict(sorted(ends.items())), tuple(notes))
    if done.traced + done.rejected != done.read:
        raise InternalError.paths(done.read, done.traced, done.rejected)
    return done
