"""The commits of a run: each output table once, in order, with counts of what was stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from routing.errors import InternalError
from routing.messages.compiling import Job
from routing.runs import incremental
from routing.runs.incremental import Increment
from routing.runs.stages import Stages
from routing.storage import protocol, tables
from routing.storage.joining import Side
from routing.storage.keeping import all_of
from routing.storage.ledger import DeltaTables
from routing.storage.protocol import Start
from routing.terms import Outcome, Reason, Word


@dataclass(frozen=True)
class Written:
    """What a run wrote: versions by key, and counts of its rows."""

    versions: Mapping[str, int]
    read: int = 0
    resolved: int = 0
    rejected: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """Where a run writes, and how: what it began with, and whether it adds rows to what stands there."""

    outputs: DeltaTables
    start: Start
    clock: Stages
    adds: bool

    @property
    def run_id(self) -> str:
        """The run that writes."""
        return self.start.run.run_id

    @property
    def standing(self) -> dict[str, int]:
        """The versions of the tables to which rows are added; none where each is replaced as a whole."""
        last = self.start.last
        if last is None or not self.adds:
            return {}
        return {key: self.start.versions[key] for key in last.output_versions}

    def commit(self, key: str, rows: DataFrame, *, adds: bool) -> tuple[int, DataFrame]:
        """Commit rows to a table; returns its version, and the rows of this run as they are stored."""
        version = protocol.commit(self.outputs, self.start, key, rows, adds=adds)
        stored = tables.Snapshot(self.outputs.config.output[key], version).read(rows.sparkSession)
        return version, stored.where(F.col("run_id") == self.run_id) if adds else stored


def full(job: Job, target: Target) -> Written:
    """Commit the outputs of a full run. Raises StorageError, InternalError."""
    opened = _open_requests(job, target)
    versions, stored = {}, {}
    for key, rows in (
        ("new_route_requests", job.new_route_requests(opened)),
        ("rejected_messages", job.rejected_messages()),
        ("resolved_routes", job.resolved_routes(opened)),
    ):
        with target.clock.stage(key):
            versions[key], stored[key] = target.commit(key, rows, adds=False)
    resolved, rejected = stored["resolved_routes"], stored["rejected_messages"]
    return _count(versions, resolved, rejected, job.counted.rows_read, target.clock)


def increment(job: Job, step: Increment, target: Target) -> Written:
    """Commit the outputs of an incremental run. Raises StorageError, InternalError."""
    opened = _open_requests(job, target)
    versions, rejected = target.standing, None
    run_id, clock = target.run_id, target.clock
    # Where nothing is to be added, a table that stands there is left alone.
    if opened is not None or not target.adds:
        with clock.stage("new_route_requests"):
            rows = incremental.not_on_record(job.new_route_requests(opened), step, job.broadcasts)
            versions["new_route_requests"], _ = target.commit("new_route_requests", rows, adds=target.adds)
    if job.counted.rows_rejected or step.duplicate_count or not target.adds:
        with clock.stage("rejected_messages"):
            rows = incremental.combine_rejected(job.rejected_messages(), step, run_id, job.broadcasts)
            versions["rejected_messages"], rejected = target.commit("rejected_messages", rows, adds=target.adds)
    with clock.stage("resolved_routes"):
        rows = job.resolved_routes(opened, attempt=F.col("attempt"))
        versions["resolved_routes"], mine = target.commit("resolved_routes", rows, adds=target.adds)
    done = _count(versions, mine, rejected, job.counted.rows_read + step.duplicate_count, clock)
    delayed = done.outcomes.get(str(Outcome.DELAYED), 0)
    if delayed or step.tried_again is not None or "pending_messages" not in versions:
        with clock.stage("pending_messages"):
            rows = incremental.still_pending(step, mine, run_id, delayed, job.broadcasts)
            versions["pending_messages"], _ = target.commit("pending_messages", rows, adds=False)
    return done


def _open_requests(job: Job, target: Target) -> Side | None:
    if not job.may_ask:
        return None
    with target.clock.stage("requests"):
        return job.open_requests()


def _count(
    versions: Mapping[str, int], resolved: DataFrame, rejected: DataFrame | None, read: int, clock: Stages
) -> Written:
    """The counts of a run, which must agree. Raises StorageError, InternalError.

    ``resolved`` and ``rejected`` are the run's rows as they are stored, None where none were written: to read two
    narrow columns takes a fraction of the time that counting the rows on their way takes.
    """
    grouped = resolved.groupBy("outcome", "reason").agg(F.count(F.lit(1)).alias("rows"))
    with clock.stage("counts"):
        groups, set_aside = all_of(
            resolved.sparkSession, grouped.collect, lambda: 0 if rejected is None else rejected.count()
        )
    done = Written(
        versions,
        read,
        sum(group["rows"] for group in groups),
        set_aside,
        _sums(groups, "outcome", Outcome),
        _sums(groups, "reason", Reason),
    )
    decided = sum(done.outcomes.values()), sum(done.reasons.values())
    if done.resolved + set_aside != read or decided != (done.resolved, done.resolved):
        raise InternalError.counts(read, min(decided), set_aside)
    return done


def _sums(groups: list[Row], column: str, words: Iterable[Word]) -> dict[str, int]:
    """Rows by the words of a column; a value that is none of them counts nowhere."""
    sums = {str(word): sum(group["rows"] for group in groups if group[column] == str(word)) for word in words}
    return {word: rows for word, rows in sums.items() if rows}
