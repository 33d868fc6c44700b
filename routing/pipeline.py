"""Read → validate → keys → plan → resolve → write → record: the only room that knows the order of a run."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing import history, incremental, ledger, pending, schemas, tables, writing
from routing.compiling import Checked, Compiled, Options, checked, compiled, conformed, size_of_plan
from routing.config import Config, size_in_bytes
from routing.errors import ConfigError, InputError, StorageError
from routing.keeping import Keeper, held
from routing.ledger import LastRun
from routing.locking import only_run
from routing.release import release
from routing.stages import Stages
from routing.terms import DEFAULT_BROADCAST_LIMIT, MISSING_ROUTE_NAMESPACE
from routing.writing import Target, Written


@dataclass(frozen=True)
class Resolution:
    """What `resolve` returns: three DataFrames in the schemas of the output tables.

    They share a small routing plan that the session keeps until `unpersist`.
    """

    resolved_routes: DataFrame
    new_route_requests: DataFrame
    rejected_messages: DataFrame
    kept: Keeper = field(default_factory=Keeper)

    def unpersist(self) -> None:
        """Let go of what was kept for these frames; they can still be read, at the price of doing it again."""
        self.kept.release()


@dataclass(frozen=True)
class Run:
    """A finished run: its row of ``runs``, and notes for whoever watches."""

    row: dict[str, Any]
    notes: tuple[str, ...]


def resolve(
    spark: SparkSession,
    tables: Mapping[str, DataFrame],
    *,
    as_of: datetime | None = None,
    dialog_hash: str = "builtin",
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT,
    missing_route_namespace: str = MISSING_ROUTE_NAMESPACE,
    run_id: str | None = None,
) -> Resolution:
    """Resolve messages against route tables (rule book, all sections).

    ``tables`` maps the configuration's keys (routes, databases, services, instances, messages; dialogs and
    route_requests where there are any) to DataFrames with the columns of tables.md. The result's frames are
    lazy; validation and the pass for the routing keys run at once. ``as_of`` (UTC where it has no zone)
    decides all messages at one time. Raises InputError where a table breaks its contract.
    """
    known = checked(held(conformed(tables)))
    options = Options(
        run_id=run_id or new_run_id(),
        as_of=None if as_of is None else _utc(as_of),
        dialog_hash=dialog_hash,
        broadcast_limit=broadcast_limit,
        missing_route_namespace=missing_route_namespace,
    )
    with ExitStack() as on_failure:
        keeper = on_failure.enter_context(Keeper())
        job = compiled(known, options, keeper)
        _fit_plan(job)
        opened = job.opened()
        if opened is not None:
            opened = keeper.keep(opened)
        done = Resolution(job.resolved(opened), job.new_route_requests(opened), job.rejected(), keeper)
        on_failure.pop_all()
    return done


def run(
    spark: SparkSession,
    config: Config,
    *,
    run_id: str | None = None,
    now: datetime | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Run:
    """The main job, from tables to tables (commands.md); ``progress`` is told of each stage.

    Every pass reads each input at the one version that the run records; outputs are committed in the order
    requests, rejected, resolved, pending, runs. ``now`` (UTC where it has no zone; the clock if not given) is
    the time at which incremental mode tries delayed messages again. Raises ContractError before anything is
    written, StorageError after, and where another run is at work.
    """
    started = datetime.now(timezone.utc)
    is_full = config.resolve.mode == "full"
    if is_full and now is not None:
        raise ConfigError.now_without_retries()
    options = Options(
        run_id=run_id or new_run_id(),
        as_of=config.resolve.as_of,
        dialog_hash=config.resolve.dialog_hash,
        broadcast_limit=config.resolve.broadcast_limit,
        missing_route_namespace=config.missing_route_namespace,
    )
    clock = Stages(progress)
    for key, location in config.output.items():
        tables.check_writable(key, location)
    with only_run(config.output["runs"], options.run_id), Keeper() as keeper:
        with clock.stage("read"):
            # The release comes first: a newer one may have given any table another schema.
            last = ledger.last_run(spark, config.output["runs"], options.run_id)
            before = _versions(spark, config)
            inputs = tables.snapshots(spark, config.tables)
        work = _Work(spark, config, options, inputs, before, last, clock, keeper)
        moment = None if is_full else _utc(now or started)
        written = _full(work) if moment is None else _increment(work, moment)
        row = {
            "run_id": options.run_id,
            "mode": config.resolve.mode,
            "started_at": started,
            "finished_at": _after(last),
            "as_of": options.as_of,
            "now": moment,
            "input_versions": {key: snapshot.version for key, snapshot in inputs.items()},
            "output_versions": dict(written.versions),
            "rows_read": written.read,
            "rows_resolved": written.resolved,
            "rows_rejected": written.rejected,
            "outcome_counts": dict(written.outcomes),
            "reason_counts": dict(written.reasons),
            "dialog_hash": options.dialog_hash,
            "settings": config.as_json(),
            "stage_seconds": clock.seconds,
            "release": release(),
        }
        ledger.record(spark, config, row, last)
        resolved, runs = config.output["resolved_routes"], config.output["runs"]
        if moment is not None and resolved.is_name and runs.is_name:
            try:
                history.show_current_routes(spark, resolved, runs)
            except StorageError as error:
                # The run counts all the same.
                work.notes.append(str(error))
    return Run(row, tuple(work.notes))


def _after(last: LastRun | None) -> datetime:
    """The clock, but later than the run before: the order of runs must not depend on it."""
    now = datetime.now(timezone.utc)
    return now if last is None else max(now, last.finished_at + timedelta(microseconds=1))


@dataclass(frozen=True)
class _Work:
    """What the parts of a run share; ``before`` are the versions of the output tables at its start."""

    spark: SparkSession
    config: Config
    options: Options
    inputs: Mapping[str, tables.Snapshot]
    before: Mapping[str, int]
    last: LastRun | None
    clock: Stages
    keeper: Keeper
    notes: list[str] = field(default_factory=list)

    def checked(self, written: Written, before: Mapping[str, int]) -> Written:
        """What was written, if nobody else wrote meanwhile."""
        ledger.check_alone(self.spark, self.config, before, written.versions, self.options.run_id)
        return written


def _versions(spark: SparkSession, config: Config) -> dict[str, int]:
    """The versions of the output tables that exist. Raises OutputError where something else stands there."""
    found = {
        key: tables.check_output(spark, key, location, schemas.OUTPUTS[key])
        for key, location in config.output.items()
    }
    return {key: version for key, version in found.items() if version is not None}


def _full(work: _Work) -> Written:
    """Resolve every message, and replace the outputs."""
    with work.clock.stage("read"):
        frames = held(conformed({key: snapshot.read(work.spark) for key, snapshot in work.inputs.items()}))
    with work.clock.stage("validate"):
        known = checked(frames)
    target = Target(work.config, work.options.run_id, work.before, work.clock)
    return work.checked(_resolved(work, known, lambda job: writing.full(job, target)), work.before)


def _increment(work: _Work, now: datetime) -> Written:
    """Resolve what is new and what is delayed, and add to the outputs."""
    standing = None
    with work.clock.stage("read"):
        if work.last is not None:
            ledger.check_succession(work.config, work.last)
            standing, notes = ledger.recovered(work.spark, work.config, work.last, work.before)
            work.notes.extend(notes)
    before = {**work.before, **(standing or {})}
    stored = incremental.Stored(work.config, work.last, standing or {})
    step = incremental.read(work.spark, work.inputs, stored, now, work.clock, work.keeper)
    with work.clock.stage("validate"):
        known = checked(step.frames)
    work.notes.extend(step.notes)
    if step.is_idle and standing is not None:
        return Written(standing)
    target = Target(work.config, work.options.run_id, before, work.clock, standing)
    return work.checked(_resolved(work, known, lambda job: writing.increment(job, step, target)), before)


def _resolved(work: _Work, known: Checked, commit: Callable[[Compiled], Written]) -> Written:
    """Compile checked frames, and write what comes of it."""
    with work.clock.stage("keys"):
        job = compiled(known, work.options, work.keeper)
    try:
        with work.clock.stage("plan"):
            _fit_plan(job)
        return commit(job)
    finally:
        work.notes.extend(job.notes)


def _fit_plan(job: Compiled) -> None:
    """Decide whether the plan is broadcast; a larger one is joined by a shuffled hash join, and said so."""
    size, limit = size_of_plan(job.plan), size_in_bytes(job.options.broadcast_limit)
    job.broadcast_plan = size <= limit
    if not job.broadcast_plan:
        job.notes.append(
            f"the routing plan takes {size} bytes, over broadcast_limit:"
            " messages are shuffled to join it (shuffled hash join)"
        )


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def new_run_id() -> str:
    """A fresh run id."""
    return str(uuid.uuid4())


def read_run(spark: SparkSession, config: Config, run_id: str) -> Resolution:
    """One consistent set of outputs: what a run wrote, of the versions that it recorded.

    Raises InputError where no run of that id counts, or its versions have been vacuumed.
    """
    runs = tables.snapshots(spark, {"runs": config.output["runs"]})["runs"].read(spark)
    found = runs.where(F.col("run_id") == run_id).select("mode", "output_versions").collect()
    if not found:
        raise InputError(f"no run {run_id!r} is recorded in {config.output['runs']}", "look up its run_id there")
    versions = found[0]["output_versions"]
    names = ("resolved_routes", "new_route_requests", "rejected_messages")
    frames = {key: tables.Snapshot(config.output[key], versions[key]).read(spark) for key in names}
    if found[0]["mode"] != "full":
        # An incremental run adds to what earlier runs wrote.
        frames = {key: frame.where(F.col("run_id") == run_id) for key, frame in frames.items()}
    resolved, requested, rejected = (frames[key] for key in names)
    return Resolution(resolved, requested, rejected)


def current_routes(spark: SparkSession, config: Config) -> DataFrame:
    """The last row of each message in ``resolved_routes``: rows of unfinished runs and earlier attempts left out.

    Raises InputError where no run counts yet.
    """
    last = ledger.last_run(spark, config.output["runs"])
    if last is None:
        raise InputError(f"no run is recorded in {config.output['runs']}", "run sbroute resolve first")
    location = config.output["resolved_routes"]
    version = ledger.settled(spark, location, last.output_versions["resolved_routes"])
    return pending.last_rows(tables.Snapshot(location, version).read(spark))
