"""Read → validate → keys → plan → resolve → write → record: the only room that knows the order."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F

from routing import schemas, tables
from routing.compiling import Compiled, Options, check_rows, compiled, conformed, size_of_plan
from routing.config import Config, Location, size_in_bytes
from routing.errors import InputError, InternalError, RoutingError, StorageError, first_sentence
from routing.keeping import held
from routing.release import release
from routing.terms import DEFAULT_BROADCAST_LIMIT, MISSING_ROUTE_NAMESPACE, Outcome, Reason


@dataclass(frozen=True)
class Resolution:
    """What `resolve` returns: three DataFrames in the schemas of the output tables.

    They share a small routing plan that the session keeps until `unpersist`.
    """

    resolved_routes: DataFrame
    new_route_requests: DataFrame
    rejected_messages: DataFrame
    kept: tuple[DataFrame, ...] = ()

    def unpersist(self) -> None:
        """Let go of what was kept for these frames; they can still be read, at the price of doing it again."""
        for frame in self.kept:
            frame.unpersist()


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
    frames = held(conformed(tables))
    check_rows(frames)
    moment = as_of if as_of is None or as_of.tzinfo else as_of.replace(tzinfo=timezone.utc)
    options = Options(
        run_id=run_id or new_run_id(),
        as_of=moment,
        dialog_hash=dialog_hash,
        broadcast_limit=broadcast_limit,
        missing_route_namespace=missing_route_namespace,
    )
    job = compiled(spark, frames, options)
    _fit_plan(job)
    opened = job.opened()
    if opened is not None:
        opened = job.keep(opened)
    return Resolution(job.resolved(opened), job.new_route_requests(opened), job.rejected(), tuple(job.kept))


def run(
    spark: SparkSession,
    config: Config,
    *,
    run_id: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Run:
    """The main job, from tables to tables (commands.md); ``progress`` is told of each stage.

    Every pass reads each input at the one version that the run records; outputs are committed in the order
    requests, rejected, resolved, runs. Raises ContractError before anything is written, StorageError after.
    """
    started = datetime.now(timezone.utc)
    options = Options(
        run_id=run_id or new_run_id(),
        as_of=config.resolve.as_of,
        dialog_hash=config.resolve.dialog_hash,
        broadcast_limit=config.resolve.broadcast_limit,
        missing_route_namespace=config.missing_route_namespace,
    )
    clock = _Stages(progress)
    with clock.stage("read"):
        inputs = tables.snapshots(spark, config.tables)
        for key, location in config.output.items():
            tables.check_output(spark, key, location, schemas.OUTPUTS[key])
        frames = held(conformed({key: snapshot.read(spark) for key, snapshot in inputs.items()}))
    with clock.stage("validate"):
        check_rows(frames)
    with clock.stage("keys"):
        job = compiled(spark, frames, options)
    try:
        with clock.stage("plan"):
            _fit_plan(job)
        written, counts = _write(job, config, clock)
    finally:
        job.release()
    row = {
        "run_id": options.run_id,
        "mode": config.resolve.mode,
        "started_at": started,
        "finished_at": datetime.now(timezone.utc),
        "as_of": options.as_of,
        "now": None,
        "input_versions": {key: snapshot.version for key, snapshot in inputs.items()},
        "output_versions": written,
        "rows_read": job.rows_read,
        "rows_resolved": counts.resolved,
        "rows_rejected": counts.rejected,
        "outcome_counts": counts.outcomes,
        "reason_counts": counts.reasons,
        "dialog_hash": options.dialog_hash,
        "settings": config.as_json(),
        "stage_seconds": clock.seconds,
        "release": release(),
    }
    frame = spark.createDataFrame([Row(**row)], schemas.RUNS)
    tables.append(frame, "runs", config.output["runs"], options.run_id)
    return Run(row, tuple(job.notes))


def _fit_plan(job: Compiled) -> None:
    """Decide whether the plan is broadcast; a larger one is joined by a shuffled hash join, and said so."""
    size, limit = size_of_plan(job.plan), size_in_bytes(job.options.broadcast_limit)
    job.broadcast_plan = size <= limit
    if not job.broadcast_plan:
        job.notes.append(
            f"the routing plan takes {size} bytes, over broadcast_limit:"
            " messages are shuffled to join it (shuffled hash join)"
        )


@dataclass(frozen=True)
class _Counts:
    resolved: int
    rejected: int
    outcomes: dict[str, int]
    reasons: dict[str, int]


def _write(job: Compiled, config: Config, clock: _Stages) -> tuple[dict[str, int], _Counts]:
    """Commit the outputs in order; returns the versions written and the counts of the same passes."""
    run_id, written = job.options.run_id, {}
    opened = job.opened()
    if opened is not None:
        with clock.stage("requests"):
            opened = job.keep(opened)
    tallies: dict[str, Row] = {}
    for key, rows, aggregates in (
        ("new_route_requests", job.new_route_requests(opened), _tallies()[:1]),
        ("rejected_messages", job.rejected(), _tallies()[:1]),
        ("resolved_routes", job.resolved(opened), _tallies()),
    ):
        with clock.stage(key):
            written[key], tallies[key] = _overwritten(rows, key, config.output[key], run_id, aggregates)
    tally = tallies["resolved_routes"]
    counts = _Counts(
        resolved=int(tally["rows"]),
        rejected=int(tallies["rejected_messages"]["rows"]),
        outcomes={str(o): int(tally[f"outcome_{o}"]) for o in Outcome if tally[f"outcome_{o}"]},
        reasons={str(r): int(tally[f"reason_{r}"]) for r in Reason if tally[f"reason_{r}"]},
    )
    decided = sum(counts.outcomes.values()), sum(counts.reasons.values())
    if counts.resolved + counts.rejected != job.rows_read or decided != (counts.resolved, counts.resolved):
        raise InternalError.counts(job.rows_read, min(decided), counts.rejected)
    return written, counts


def _overwritten(
    rows: DataFrame, key: str, location: Location, run_id: str, tally: list[Column]
) -> tuple[int, Row]:
    """Replace an output table; returns its version and the tally of the rows, from the pass that writes them.

    A catalog's command hides what its inner query observed, so there the tally is read from the new version.
    """
    if location.is_name:
        version = tables.overwrite(rows, key, location, run_id)
        return version, tables.Snapshot(location, version).read(rows.sparkSession).agg(*tally).collect()[0]
    observed = Observation(f"{key}-{run_id}")
    version = tables.overwrite(rows.observe(observed, *tally), key, location, run_id)
    return version, Row(**observed.get)


def _tallies() -> list[Column]:
    """Aggregates that count rows, first all, then by outcome and by reason."""
    by_outcome = [F.count(F.when(F.col("outcome") == str(o), 1)).alias(f"outcome_{o}") for o in Outcome]
    by_reason = [F.count(F.when(F.col("reason") == str(r), 1)).alias(f"reason_{r}") for r in Reason]
    return [F.count(F.lit(1)).alias("rows"), *by_outcome, *by_reason]


def new_run_id() -> str:
    """A fresh run id."""
    return str(uuid.uuid4())


class _Stages:
    """Seconds per stage; an error of Spark inside a stage becomes a StorageError that names it."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        except RoutingError:
            raise
        except Exception as error:
            raise StorageError.failed(f"in stage {name}", first_sentence(error)) from error
        self.seconds[name] = round(time.monotonic() - begun, 3)
        self._progress(f"{name}: {self.seconds[name]:.1f} s")


def read_run(spark: SparkSession, config: Config, run_id: str) -> Resolution:
    """One consistent set of outputs: the versions that a run wrote.

    Raises InputError where no run of that id counts, or its versions have been vacuumed.
    """
    runs = tables.snapshots(spark, {"runs": config.output["runs"]})["runs"].read(spark)
    found = runs.where(F.col("run_id") == run_id).select("output_versions").collect()
    if not found:
        raise InputError(f"no run {run_id!r} is recorded in {config.output['runs']}", "look up its run_id there")
    versions = found[0]["output_versions"]
    resolved, requested, rejected = (
        tables.Snapshot(config.output[key], versions[key]).read(spark)
        for key in ("resolved_routes", "new_route_requests", "rejected_messages")
    )
    return Resolution(resolved, requested, rejected)
