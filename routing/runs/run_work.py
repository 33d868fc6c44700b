"""The inputs of a run by either engine, and the counts of the rows that it wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from routing.config import Config
from routing.delta.counted_runs import EarlierRun
from routing.delta.import_times import newest_after, taken_as_now
from routing.delta.ledger import JobTables
from routing.delta.opening import TableOpener
from routing.delta.protocol import RunStart
from routing.delta.spark_tables import Input
from routing.engines.traffic_tables import count_by, open_traffic
from routing.errors import RoutingError, join_bounded
from routing.plan.checked_inputs import CheckedTables, Quarantine
from routing.rules.timeline import moment_of
from routing.run_context import ResolveOptions, RunContext, StageClock
from routing.tables.read_rows import count_by_files
from routing.tables.table_columns import COUNT, Filter, Table
from routing.terms import Outcome, Reason, Rejection, Word


class InternalError(RoutingError):
    """The counts of a run do not agree, which is a bug in this program."""

    @classmethod
    def counts(cls, read: int, resolved: int, unchanged: int, rejected: int) -> InternalError:
        """Report that the rows read are not the sum of the rows resolved, unchanged and rejected."""
        return cls(
            f"{read} messages were read, but {resolved} resolved, {unchanged} unchanged and {rejected} rejected;"
            " the run is not recorded"
        )

    @classmethod
    def pending(cls, delayed: int, stored: int) -> InternalError:
        """Report that ``pending_messages`` does not have as many messages as the run delayed."""
        return cls(f"{delayed} messages were delayed, but pending_messages has {stored}; the run is not recorded")

    @classmethod
    def delayed(cls, left: int, present: int, version: int) -> InternalError:
        """Report that a full run delayed messages that are not among its input."""
        return cls(f"{left} messages were delayed, but {present} are in version {version} of tables.messages")

    @classmethod
    def candidates(cls, expected: int, stored: int) -> InternalError:
        """Report that candidates of messages were lost or doubled while they were written."""
        return cls(f"the messages have {expected} candidates, but {stored} rows were written")

    @classmethod
    def paths(cls, read: int, traced: int, rejected: int) -> InternalError:
        """Report that the rows read are not the rows traced plus the rows rejected."""
        return cls(f"{read} messages were read, but {traced} traced and {rejected} rejected")


@dataclass(frozen=True)
class RunInputs:
    """The inputs of a run, each at one version, and its outputs from earlier runs.

    ``newest`` has the last import times of tables without a history, by instance. ``moment`` is the time for
    retrying delayed messages, or None for a full run. ``earlier`` is the last run of this mode. ``unfinished`` has
    notes on unfinished imports. With ``erases``, rows of deleted messages are deleted from the outputs.
    """

    context: RunContext
    outputs: JobTables
    start: RunStart
    inputs: Mapping[str, Input]
    newest: Mapping[str, int]
    moment: datetime | None
    earlier: EarlierRun | None
    unfinished: tuple[str, ...]
    erases: bool = False

    @property
    def options(self) -> ResolveOptions:
        """The options for resolving messages."""
        return self.context.options

    @property
    def clock(self) -> StageClock:
        """The clock of the run's stages."""
        return self.context.clock

    @property
    def notes(self) -> list[str]:
        """The notes of the run, which grow until it ends."""
        return self.context.notes

    @property
    def opener(self) -> TableOpener:
        """The opener of the run's tables."""
        return self.outputs.opener

    @property
    def config(self) -> Config:
        """The configuration of the run."""
        return self.outputs.config

    @property
    def quarantines(self) -> bool:
        """Whether a faulty row excludes only its instance from the run."""
        return self.config.resolve.quarantines

    def is_empty(self, key: str) -> bool:
        """Return whether an output exists without rows. False if Spark reads it."""
        version = self.start.versions.get(key)
        if version is None or key in self.outputs.lacking:
            return False
        return count_by_files(self.open_output(key, version)) == 0

    def count_written(self, key: str, version: int, *names: str) -> Counter[tuple[Any, ...]]:
        """Count the rows of this run that are stored in an output, by the values of some columns."""
        return count_by(self.open_output(key, version), names, self._of_this_run)

    def earliest_decided(self, version: int) -> dict[str, int]:
        """Return the time of this run's first decision by instance (microseconds)."""
        stored = open_traffic(self.open_output("resolved_routes", version))
        groups = stored.groups(("instance_name",), least=("decided_at",), only=self._of_this_run).rows()
        return dict(groups.rows("instance_name", "min_decided_at"))

    @property
    def _of_this_run(self) -> Filter:
        return {"run_id": [self.options.run_id]}

    def open_output(self, key: str, version: int) -> Table:
        """Open an output at a version."""
        return self.opener.open_at(f"output.{key}", self.config.output[key], version)


# Count the stored rows of a run. The counts must add up before the run is recorded.


@dataclass(frozen=True)
class RunResult:
    """The columns of a run's row in ``runs`` that its work determines (tables.md).

    Unchanged messages were tried again and have the decision of their last row. ``rows_erased`` is None without
    ``erase``. ``rows_quarantined`` and ``quarantined_instances`` are None if faulty rows stop a run.
    """

    output_versions: Mapping[str, int]
    rows_read: int = 0
    rows_resolved: int = 0
    rows_rejected: int = 0
    rows_unchanged: int = 0
    next_due_at: datetime | None = None
    input_digests: Mapping[str, str] | None = None
    outcome_counts: Mapping[str, int] = field(default_factory=dict)
    reason_counts: Mapping[str, int] = field(default_factory=dict)
    rows_erased: int | None = None
    rows_quarantined: int | None = None
    quarantined_instances: Sequence[str] | None = None


class ResolvedGroup(NamedTuple):
    """The outcome, reason and database that resolved messages have in common."""

    outcome: str
    reason: str
    database: str | None


Groups = Counter[ResolvedGroup]
"""The number of resolved messages in each group."""


def count_resolved(run: RunInputs, versions: Mapping[str, int]) -> Groups:
    """Count the stored rows of a run's resolved messages.

    Reading narrow columns takes a fraction of the time of counting the rows while they are written.
    """
    names = ("outcome", "reason", "database_name")
    counts = run.count_written("resolved_routes", versions["resolved_routes"], *names)
    return Counter({ResolvedGroup(*group): rows for group, rows in counts.items()})


def count_rows(
    run: RunInputs,
    versions: Mapping[str, int],
    groups: Groups,
    written: Iterable[str],
    read: int,
    unchanged: int = 0,
) -> RunResult:
    """Return the counts of a run, which must agree. Raises StorageError, InternalError.

    ``groups`` is the result of `count_resolved`, and ``written`` has the outputs that the run wrote. If decisions
    are older than the newest import, the run gets the note of `taken_as_now`.
    """
    rejected: Counter[tuple[Any, ...]] = Counter()
    if "rejected_messages" in written:
        rejected = run.count_written("rejected_messages", versions["rejected_messages"], "run_id")
    done = RunResult(
        versions,
        read,
        groups.total(),
        rejected.total(),
        unchanged,
        outcome_counts=_sums(((group.outcome, rows) for group, rows in groups.items()), Outcome),
        reason_counts=_sums(((group.reason, rows) for group, rows in groups.items()), Reason),
    )
    resolved = done.rows_resolved
    decided = sum(done.outcome_counts.values()), sum(done.reason_counts.values())
    if resolved + unchanged + done.rows_rejected != read or decided != (resolved, resolved):
        raise InternalError.counts(read, min(decided), unchanged, done.rows_rejected)
    run.notes.extend(_taken_as_now(run, versions["resolved_routes"]))
    return done


def count_quarantined(run: RunInputs, done: RunResult, quarantine: Quarantine) -> RunResult:
    """Add to the counts of a full run its stored rejected messages of instances in quarantine."""
    rejected = Counter[tuple[Any, ...]]()
    if quarantine.instances:
        version = done.output_versions["rejected_messages"]
        rejected = run.count_written("rejected_messages", version, "instance_name")
    return with_quarantine(run, done, quarantine, sum(rejected[name,] for name in quarantine.instances))


def with_quarantine(run: RunInputs, done: RunResult, quarantine: Quarantine, count: int) -> RunResult:
    """Add the instances in quarantine to the counts of a run, and the number of their messages."""
    if not (run.quarantines or count):
        return done
    return replace(done, rows_quarantined=count, quarantined_instances=sorted(quarantine.instances))


class PendingCounts(NamedTuple):
    """The numbers of stored rows of ``pending_messages``, and when the first is due.

    ``decided`` counts rows that this run decided. ``withheld`` counts new rows of this run whose instance is in
    quarantine, and ``older`` the rows of earlier runs. ``quarantined`` counts all rows of instances in quarantine.
    """

    decided: int
    withheld: int
    older: int
    quarantined: int
    next_due_at: datetime | None

    @property
    def unchanged(self) -> int:
        """The delayed messages without a new row in ``resolved_routes``."""
        return self.withheld + self.older


def count_pending(run: RunInputs, version: int) -> PendingCounts:
    """Count the rows of ``pending_messages`` at a version."""
    stored = open_traffic(run.open_output("pending_messages", version))
    groups = stored.groups(("run_id", "last_reason"), least=("due_at",)).rows()
    counts, due = Counter[tuple[bool, bool]](), list[int]()
    for run_id, reason, count, first in groups.rows("run_id", "last_reason", COUNT, "min_due_at"):
        counts[run_id == run.options.run_id, reason == Rejection.INSTANCE_QUARANTINED] += count
        due += [] if first is None else [first]
    return PendingCounts(
        decided=counts[True, False],
        withheld=counts[True, True],
        older=counts[False, False] + counts[False, True],
        quarantined=counts[True, True] + counts[False, True],
        next_due_at=moment_of(min(due)) if due else None,
    )


def check_pending(counts: PendingCounts, groups: Groups) -> None:
    """Check that ``pending_messages`` has every message that this run left delayed.

    A message that is missing there would never be tried again. Both are counted in the stored tables, ``groups``
    by `count_resolved`. Raises InternalError.
    """
    from routing.messages import pending

    delayed = sum(rows for group, rows in groups.items() if pending.tries_again(group.outcome, group.database))
    if counts.decided != delayed:
        raise InternalError.pending(delayed, counts.decided)


def _taken_as_now(run: RunInputs, version: int) -> Iterator[str]:
    """Yield the note on decisions before the newest import of tables without a history, if there are any."""
    if run.newest:
        decided = run.earliest_decided(version)
        after = {name: newest_after(run.newest, name, t) for name, t in decided.items()}
        late = {name: at for name, at in after.items() if at is not None}
        if late:
            yield taken_as_now(late)


def _sums(counts: Iterable[tuple[str, int]], words: Iterable[Word]) -> dict[str, int]:
    """Sum rows by their words, in the order of ``words``. Other values are ignored."""
    sums = Counter[str]()
    for word, rows in counts:
        sums[word] += rows
    return {str(word): sums[str(word)] for word in words if sums[str(word)]}


def note_quarantine(run: RunInputs, checked: CheckedTables | None) -> None:
    """Note the instances in quarantine, and the first faults.

    ``checked`` is None if nothing has changed since the last run.
    """
    if checked is None:
        last = run.start.last
        if last is not None and last.quarantined_instances:
            names = join_bounded(last.quarantined_instances, "instance")
            run.notes.append(f"nothing has changed: still in quarantine are the messages of {names}")
    elif checked.quarantine.instances:
        names = join_bounded(sorted(checked.quarantine.instances), "instance")
        faults = join_bounded(checked.quarantine.first_faults, "faulty row", checked.quarantine.fault_count)
        run.notes.append(f"in quarantine are the messages of {names}, because there are {faults}")


def note_unended_requests(notes: list[str], count: int) -> None:
    """Note how many requests on record have no ended_at, if any."""
    if count:
        have = "request on record has" if count == 1 else "requests on record have"
        waits = "until then, no new request is sent for the same service, and its messages wait"
        notes.append(f"{count:,} route {have} no ended_at: {waits}")


# Count the stored rows of a table of paths.


TRACE_ALL = "trace --all"
"""The command that writes this table."""


@dataclass(frozen=True)
class WrittenPaths:
    """The version of the table, the number of messages by end, and notes.

    ``ends`` counts joint endings (`PathEnd`), and ``outcomes`` the endings of the first paths.
    """

    version: int
    read: int
    rejected: int
    outcomes: Mapping[str, int]
    ends: Mapping[str, int]
    notes: tuple[str, ...] = ()

    @property
    def traced(self) -> int:
        """The number of messages with a path."""
        return sum(self.outcomes.values())


def count_paths(paths: Table, version: int, read: int, rejected: int, notes: Iterable[str] = ()) -> WrittenPaths:
    """Count the stored paths. Raises InternalError if the counts do not add up."""
    outcomes: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for (outcome, end), count in sorted(count_by(paths, ["outcome", "joint_ending"]).items()):
        outcomes[str(outcome)] += count
        ends[str(end)] += count
    done = WrittenPaths(version, read, rejected, dict(outcomes), dict(sorted(ends.items())), tuple(notes))
    if done.traced + done.rejected != done.read:
        raise InternalError.paths(done.read, done.traced, done.rejected)
    return done
