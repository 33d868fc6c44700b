"""Runs by Spark, and reading what runs wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.config import Config
from routing.delta import local_disks, protocol, spark_tables
from routing.delta.ledger import DeltaTables
from routing.delta.opening import TableOpener
from routing.delta.run_by_id import new_run_id
from routing.errors import ConfigError, InputError
from routing.messages import openers, results
from routing.plan.options import ResolveOptions
from routing.runs.changing import telling_what_may_change
from routing.runs.counting import RunCounts
from routing.runs.done import Run
from routing.runs.full import run_full
from routing.runs.incremental import run_incremental
from routing.runs.message_frames import compile_tables
from routing.runs.run_work import RunWork
from routing.runs.running import run_by
from routing.runs.stages import Progress, UntimedStages
from routing.runs.work import SparkWork
from routing.sessions.holding import ExistingSession
from routing.tables.frame_cache import FrameCache, released_on_failure
from routing.tables.spark_forms import last_rows
from routing.tables.table_columns import Table
from routing.tables.times import as_utc
from routing.terms import DEFAULT_BROADCAST_LIMIT, LOCAL_ENGINE, MISSING_ROUTE_NAMESPACE, SPARK


@dataclass(frozen=True)
class Resolution:
    """What `resolve` returns: three DataFrames in the schemas of the output tables.

    They share a small routing plan that the session keeps until `unpersist`.
    """

    resolved_routes: DataFrame
    new_route_requests: DataFrame
    rejected_messages: DataFrame
    kept: FrameCache = field(default_factory=FrameCache)

    def unpersist(self) -> None:
        """Release the cached frames; these can still be read, computed anew."""
        self.kept.release()


def resolve(
    spark: SparkSession,
    tables: Mapping[str, Table],
    *,
    as_of: datetime | None = None,
    dialog_hash: str = "builtin",
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT,
    missing_route_namespace: str = MISSING_ROUTE_NAMESPACE,
    run_id: str | None = None,
) -> Resolution:
    """Resolve messages against route tables (rule book, all sections).

    ``tables`` maps the configuration's keys (routes, databases, services, instances, messages; dialogs and
    route_requests where there are any) to tables with the columns of tables.md: messages and dialogs are
    DataFrames, the others DataFrames, Arrow tables or datasets. The result's frames are lazy; validation and the
    pass for the routing keys run at once. ``as_of`` (UTC where it has no zone)
    decides all messages at one time. Raises InputError where a table breaks its contract.
    """
    options = ResolveOptions(
        run_id=run_id or new_run_id(),
        as_of=None if as_of is None else as_utc(as_of),
        dialog_hash=dialog_hash,
        broadcast_limit=broadcast_limit,
        missing_route_namespace=missing_route_namespace,
    )
    with released_on_failure() as keeper:
        job = compile_tables(tables, options, keeper, UntimedStages())
        return Resolution(
            results.resolved_routes(job),
            openers.new_route_requests(job),
            results.rejected_messages(job),
            keeper,
        )


def run(
    spark: SparkSession,
    config: Config,
    *,
    run_id: str | None = None,
    now: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
    tell: Callable[[str], None] = lambda text: None,
) -> Run:
    """Make a run of the main job, from tables to tables (commands.md).

    ``progress`` is told of each stage when it begins and when it has ended, ``tell`` by what each table is read.
    Every pass reads each input at the one version that the run records, or as it is where it has none; outputs
    that do not depend on each other are committed side by side, pending once the others are counted, runs last.
    ``now`` (UTC where it has no zone; the clock if not given) is the time at which incremental mode tries delayed
    messages again. Where a run of this id counts already, that one is returned and nothing is written: to try
    again is harmless. Raises ContractError before anything is written, StorageError after, and where another run
    is at work.
    """
    return run_with(TableOpener.of_session(spark, tell), config, run_id=run_id, now=now, progress=progress)


def run_with(
    opener: TableOpener,
    config: Config,
    *,
    run_id: str | None = None,
    now: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
    recording: Callable[[str], AbstractContextManager[None]] = lambda run_id: nullcontext(),
) -> Run:
    """Run as `run` does, in a session that may be starting meanwhile.

    To wait for it is a stage of its own. The run comes to count within ``recording``, which is given its id.
    """
    if config.resolve.engine == LOCAL_ENGINE:
        raise ConfigError.local_in_session()
    engine = SparkEngine(opener)
    return run_by(engine, config, run_id=run_id, now=now, progress=progress, recording=recording)


@dataclass(frozen=True)
class SparkEngine:
    """Runs by Spark, full and incremental."""

    opener: TableOpener
    name: str = SPARK

    def open_outputs(self, config: Config) -> DeltaTables:
        """Return the outputs of a job, as Spark commits to them."""
        return DeltaTables(self.opener, config)

    def run(self, base: RunWork, moment: datetime | None) -> RunCounts:
        """Resolve everything, or where there is a moment what is new and delayed; returns what was written."""
        with FrameCache() as keeper, telling_what_may_change(base.inputs):
            work = SparkWork(**vars(base), keeper=keeper)
            return run_full(work) if moment is None else run_incremental(work, moment)


def read_run(spark: SparkSession, config: Config, run_id: str) -> Resolution:
    """Read one consistent set of outputs: what a run wrote, of the versions that it recorded.

    Raises InputError where no run of that id counts, or its versions have been vacuumed.
    """
    config = local_disks.place_all(config, spark)
    runs = spark_tables.snapshots(ExistingSession(spark), {"runs": config.output["runs"]})["runs"].read(spark)
    found = runs.where(F.col("run_id") == run_id).select("mode", "output_versions").collect()
    if not found:
        raise InputError(f"no run {run_id!r} is recorded in {config.output['runs']}", "look up its run_id there")
    versions = found[0]["output_versions"]
    names = ("resolved_routes", "new_route_requests", "rejected_messages")
    frames = {key: spark_tables.TableSnapshot(config.output[key], versions[key]).read(spark) for key in names}
    if found[0]["mode"] != "full":
        # An incremental run adds to what earlier runs wrote.
        frames = {key: frame.where(F.col("run_id") == run_id) for key, frame in frames.items()}
    resolved, requested, rejected = (frames[key] for key in names)
    return Resolution(resolved, requested, rejected)


def current_routes(spark: SparkSession, config: Config) -> DataFrame:
    """Read the last row of each message in ``resolved_routes``, without unfinished runs and earlier attempts.

    Raises InputError where no run counts yet.
    """
    config = local_disks.place_all(config, spark)
    outputs = DeltaTables(TableOpener.of_session(spark), config)
    last = outputs.last_run()
    if last is None:
        raise InputError.nothing_recorded(str(config.output["runs"]))
    version = protocol.settle(outputs, "resolved_routes", last.output_versions["resolved_routes"])
    return last_rows(spark_tables.TableSnapshot(config.output["resolved_routes"], version).read(spark))
