"""The commits of a run: each output table once, in order, with counts from the passes that write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Observation, Row
from pyspark.sql import functions as F

from routing import faultpoints, incremental, tables
from routing.compiling import Compiled
from routing.config import Config
from routing.errors import InternalError
from routing.incremental import Increment
from routing.stages import Stages
from routing.terms import Outcome, Reason


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
    """Where a run writes, and how.

    ``before`` are the versions of all output tables at its start. ``standing`` are those of the tables that hold
    what the runs so far left, to which rows are added; None: each table is replaced as a whole.
    """

    config: Config
    run_id: str
    before: Mapping[str, int]
    clock: Stages
    standing: Mapping[str, int] | None = None

    @property
    def adds(self) -> bool:
        """Whether rows are added to what stands there."""
        return self.standing is not None

    def commit(self, key: str, rows: DataFrame, tally: list[Column], *, adds: bool) -> tuple[int, Row]:
        """Commit rows to a table; returns its version and the tally, from the pass that writes them.

        A catalog's command hides what its inner query observed, so there the tally is read from the new version.
        """
        location, put = self.config.output[key], tables.append if adds else tables.overwrite
        faultpoints.reached(f"before {key}")
        if location.is_name:
            version = self._not_before(key, put(rows, key, location, self.run_id))
            stored = tables.Snapshot(location, version).read(rows.sparkSession)
            counts = stored.where(F.col("run_id") == self.run_id).agg(*tally).collect()[0]
        else:
            observed = Observation(f"{key}-{self.run_id}")
            written = put(rows.observe(observed, *tally), key, location, self.run_id)
            version, counts = self._not_before(key, written), Row(**observed.get)
        faultpoints.reached(f"after {key}")
        return version, counts

    def _not_before(self, key: str, version: int | None) -> int:
        """The version as this run leaves it: where it changed nothing the one before.

        An unfinished run of the same id may have left commits that are no longer in force.
        """
        return max(-1 if version is None else version, self.before.get(key, 0))


def full(job: Compiled, target: Target) -> Written:
    """Commit the outputs of a full run. Raises StorageError, InternalError."""
    opened = _opened(job, target)
    versions, tallies = {}, {}
    for key, rows, tally in (
        ("new_route_requests", job.new_route_requests(opened), _tallies()[:1]),
        ("rejected_messages", job.rejected(), _tallies()[:1]),
        ("resolved_routes", job.resolved(opened), _tallies()),
    ):
        with target.clock.stage(key):
            versions[key], tallies[key] = target.commit(key, rows, tally, adds=False)
    return _checked(versions, tallies["resolved_routes"], int(tallies["rejected_messages"]["rows"]), job.rows_read)


def increment(job: Compiled, step: Increment, target: Target) -> Written:
    """Commit the outputs of an incremental run. Raises StorageError, InternalError."""
    opened = _opened(job, target)
    versions, rejected = dict(target.standing or {}), 0
    run_id, clock = target.run_id, target.clock
    # Where nothing is to be added, a table that stands there is left alone.
    if opened is not None or not target.adds:
        with clock.stage("new_route_requests"):
            rows = incremental.not_on_record(job.new_route_requests(opened), step)
            versions["new_route_requests"], _ = target.commit(
                "new_route_requests", rows, _tallies()[:1], adds=target.adds
            )
    if job.rows_rejected or step.duplicate_count or not target.adds:
        with clock.stage("rejected_messages"):
            rows = incremental.rejected(job.rejected(), step, run_id)
            versions["rejected_messages"], tally = target.commit(
                "rejected_messages", rows, _tallies()[:1], adds=target.adds
            )
            rejected = int(tally["rows"])
    with clock.stage("resolved_routes"):
        rows = job.resolved(opened, attempt=F.col("attempt"))
        versions["resolved_routes"], tally = target.commit("resolved_routes", rows, _tallies(), adds=target.adds)
    done = _checked(versions, tally, rejected, job.rows_read + step.duplicate_count)
    delayed = done.outcomes.get(str(Outcome.DELAYED), 0)
    if delayed or step.tried_again is not None or "pending_messages" not in versions:
        with clock.stage("pending_messages"):
            location = target.config.output["resolved_routes"]
            resolved = tables.Snapshot(location, versions["resolved_routes"]).read(job.messages.sparkSession)
            mine = resolved.where(F.col("run_id") == run_id)
            rows = incremental.still_pending(step, mine, run_id, delayed, target.config)
            versions["pending_messages"], _ = target.commit("pending_messages", rows, _tallies()[:1], adds=False)
    return done


def _opened(job: Compiled, target: Target) -> DataFrame | None:
    opened = job.opened()
    if opened is None:
        return None
    with target.clock.stage("requests"):
        return job.keep(opened)


def _checked(versions: Mapping[str, int], tally: Row, rejected: int, read: int) -> Written:
    """The counts of a run, which must agree. Raises InternalError."""
    done = Written(
        versions,
        read,
        int(tally["rows"]),
        rejected,
        {str(o): int(tally[f"outcome_{o}"]) for o in Outcome if tally[f"outcome_{o}"]},
        {str(r): int(tally[f"reason_{r}"]) for r in Reason if tally[f"reason_{r}"]},
    )
    decided = sum(done.outcomes.values()), sum(done.reasons.values())
    if done.resolved + rejected != read or decided != (done.resolved, done.resolved):
        raise InternalError.counts(read, min(decided), rejected)
    return done


def _tallies() -> list[Column]:
    """Aggregates that count rows, first all, then by outcome and by reason."""
    by_outcome = [F.count(F.when(F.col("outcome") == str(o), 1)).alias(f"outcome_{o}") for o in Outcome]
    by_reason = [F.count(F.when(F.col("reason") == str(r), 1)).alias(f"reason_{r}") for r in Reason]
    return [F.count(F.lit(1)).alias("rows"), *by_outcome, *by_reason]
