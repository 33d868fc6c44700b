"""Run with Spark, and read the results of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, reduce
from html import escape
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.arguments import checked
from routing.config import Config, ConfigError
from routing.config.instance_patterns import find_overlaps
from routing.delta import file_systems, protocol, spark_tables
from routing.delta.counted_runs import new_run_id
from routing.delta.ledger import DeltaTables
from routing.delta.opening import TableOpener
from routing.delta.table_log import TableLog
from routing.errors import InputError, first_sentence
from routing.messages import openers, results
from routing.messages.compiling import compile_tables
from routing.rules.timeline import as_utc
from routing.run_context import Progress, ResolveOptions, RunContext
from routing.runs import spark_runs
from routing.runs.running import Run, RunEngine, run_by
from routing.schemas import NEW_ROUTE_REQUESTS, REJECTED_MESSAGES, RESOLVED_ROUTES
from routing.sessions.existing_session import ExistingSession
from routing.tables.cached_frames import FRAME_LIMITS, FrameCache, FrameLimits, released_on_failure
from routing.tables.spark_forms import as_declared, last_rows
from routing.tables.table_columns import Table
from routing.terms import DEFAULT_BROADCAST_LIMIT, LOCAL_ENGINE, MISSING_ROUTE_NAMESPACE, REJECTED, SPARK, Outcome

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Resolution:
    """Hold the result of `resolve`: DataFrames in the schemas of the output tables (tables.md).

    They share a small routing plan that the session keeps until `unpersist`, or until the end of a ``with`` block.
    `resolve` declares columns that are never null as not nullable. Stored tables declare all columns as nullable.

    Args:
        resolved_routes: a row for each message that is not rejected.
        new_route_requests: the requests for routes that messages open (rule book, section 5).
        rejected_messages: rows that cannot be resolved, with reasons.
        frame_cache: the frames that the session keeps.
        messages: the number of messages read.
        most_counted: the number of messages above which a notebook shows no summary by itself.

    Example:
        >>> with routing.resolve(spark, tables) as resolution:
        ...     resolution.summary().first()
        Row(outcome='DELIVERED', reason='LOCAL_SERVICE', messages=2)
    """

    resolved_routes: DataFrame
    new_route_requests: DataFrame
    rejected_messages: DataFrame
    frame_cache: FrameCache = field(default_factory=FrameCache)
    messages: int | None = None
    most_counted: int = 1_000_000

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.unpersist()

    def unpersist(self) -> None:
        """Release the cached frames. They stay readable, but Spark computes them again."""
        self.frame_cache.release()

    def summary(self) -> DataFrame:
        """Count messages by outcome and reason: columns ``outcome``, ``reason`` and ``messages``.

        Rejected messages have outcome REJECTED and their rejection reasons, so that the counts add up to the
        messages read. Rows are in the order of `Outcome`, rejected ones last, and the most messages first.
        """
        rejected = self.rejected_messages.select(
            F.lit(REJECTED).alias("outcome"), F.array_join("reasons", ", ").alias("reason")
        )
        resolved = self.resolved_routes.select("outcome", "reason")
        counts = [
            rows.groupBy("outcome", "reason").agg(F.count(F.lit(1)).alias("messages"))
            for rows in (resolved, rejected)
        ]
        words = F.array(*(F.lit(str(word)) for word in (*Outcome, REJECTED)))
        place = F.call_function("array_position", words, F.col("outcome"))
        return counts[0].unionByName(counts[1]).orderBy(place, F.desc("messages"), "reason")

    def _repr_html_(self) -> str:
        """Return the summary for a notebook.

        For many messages, return only their number, because counting them by outcome takes a pass over all.
        """
        if self.messages is not None and self.messages > self.most_counted:
            return (
                f"<p>{self.messages:,} messages. <code>summary()</code> counts them by outcome and reason, in one"
                " pass over all messages.</p>"
            )
        try:
            rows = self.summary().collect()
        except Exception as error:  # noqa: BLE001
            # A notebook shows an object even if its session has stopped.
            return f"<p>The messages cannot be counted: {escape(first_sentence(error))}</p>"
        head = "".join(f"<th>{name}</th>" for name in ("outcome", "reason", "messages"))
        body = "".join(
            f"<tr><td>{escape(row.outcome)}</td><td>{escape(row.reason)}</td><td>{row.messages:,}</td></tr>"
            for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@checked
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

    The frames of the result are lazy. Validation and the pass for the routing keys run immediately.

    Args:
        spark: the session of the tables.
        tables: tables by configuration key with the columns of tables.md: ``routes``, ``databases``, ``services``,
            ``instances``, ``messages`` and, where there are any, ``dialogs`` and ``route_requests``. Messages and
            dialogs are DataFrames of Spark. The others may also be tables of Arrow, or frames of pandas or Polars.
        as_of: the one time at which all messages are decided (UTC without a zone); by default each at its own.
        dialog_hash: how step 3 hashes dialogs (section 6): builtin, or udf for a Python UDF.
        broadcast_limit: the size above which plans and dialogs are joined without a broadcast, such as 512MB.
        missing_route_namespace: the namespace of the event that asks for a route (section 5).
        run_id: the id that the rows have; by default a new one.

    Returns:
        The three outputs as DataFrames.

    Raises:
        InputError: a table is missing or breaks its contract.

    Example:
        >>> done = routing.resolve(spark, tables, run_id="first")
        >>> done.resolved_routes.where("message_id = 'm3'").select("outcome", "route_name").first()
        Row(outcome='SENT', route_name='Far')
    """
    options = ResolveOptions(
        run_id=run_id or new_run_id(),
        as_of=None if as_of is None else as_utc(as_of),
        dialog_hash=dialog_hash,
        broadcast_limit=broadcast_limit,
        missing_route_namespace=missing_route_namespace,
    )
    return resolve_with(tables, RunContext(options))


def resolve_with(
    tables: Mapping[str, Table], context: RunContext, limits: FrameLimits = FRAME_LIMITS
) -> Resolution:
    """Resolve as `resolve` does, with the shared context of a run and limits for frames in the driver."""
    with released_on_failure(limits) as frame_cache:
        plan = compile_tables(tables, context, frame_cache)
        return Resolution(
            as_declared(results.resolved_routes(plan), RESOLVED_ROUTES),
            as_declared(openers.new_route_requests(plan), NEW_ROUTE_REQUESTS),
            as_declared(results.rejected_messages(plan), REJECTED_MESSAGES),
            frame_cache,
            plan.counts.rows_read,
        )


@checked
def run(
    spark: SparkSession,
    config: Config,
    *,
    run_id: str | None = None,
    now: datetime | None = None,
    erase: bool = False,
    progress: Callable[[Progress], None] = lambda stage: None,
    on_note: Callable[[str], None] = lambda text: None,
) -> Run:
    """Run the main job once, from tables to tables (commands.md).

    Every pass reads each input at the one version that the run records. If a run with this id is already recorded,
    it is returned and nothing is written. So a retry is harmless.

    Args:
        spark: the session.
        config: the configuration.
        run_id: the id of the run; by default a new one.
        now: the time at which incremental mode tries delayed messages again (UTC without a zone); by default now.
        erase: in incremental mode, also delete the rows of messages that were deleted from ``messages``.
        progress: called with each stage when it begins and when it has ended.
        on_note: called with a note on each table that is read otherwise than usual.

    Returns:
        The run, with its row of ``runs``.

    Raises:
        ContractError: an option or table breaks the contract; nothing was written.
        StorageError: a read or write failed, or another run is at work.

    Example:
        >>> done = routing.run(spark, routing.load_config("job.yaml"), run_id="night")
        >>> done.row["rows_read"], done.row["rows_resolved"], done.row["rows_rejected"]
        (7, 5, 2)
    """
    if config.resolve.engine == LOCAL_ENGINE:
        raise ConfigError.local_in_session()
    engine = spark_engine(TableOpener.of_session(spark, on_note))
    return run_by(engine, config, run_id=run_id, now=now, erase=erase, progress=progress)


def spark_engine(opener: TableOpener, limits: FrameLimits = FRAME_LIMITS) -> RunEngine:
    """Return the engine that resolves and writes by Spark, in any mode.

    The session of ``opener`` starts as a separate stage when it is needed.
    """
    return RunEngine(SPARK, opener, DeltaTables, partial(spark_runs.resolve, limits=limits))


@checked
def read_run(spark: SparkSession, config: Config, run_id: str) -> Resolution:
    """Read the outputs of one run, at the versions that it recorded.

    Args:
        spark: the session.
        config: the configuration of the run.
        run_id: the id of a run that counts.

    Returns:
        The outputs as DataFrames; of an incremental run its own rows.

    Raises:
        InputError: no run of that id counts, or its versions have been vacuumed.

    Example:
        >>> done = routing.read_run(spark, routing.load_config("job.yaml"), "first")
        >>> done.resolved_routes.count()
        5
    """
    config = file_systems.place_all(config, spark)
    runs = spark_tables.snapshots(ExistingSession(spark), {"runs": config.output["runs"]})["runs"].read(spark)
    recorded_rows = runs.where(F.col("run_id") == run_id).select("mode", "output_versions", "rows_read").collect()
    if not recorded_rows:
        raise InputError(f"no run {run_id!r} is recorded in {config.output['runs']}", "look up its run_id there")
    versions = recorded_rows[0]["output_versions"]
    names = ("resolved_routes", "new_route_requests", "rejected_messages")
    frames = {key: spark_tables.TableSnapshot(config.output[key], versions[key]).read(spark) for key in names}
    if recorded_rows[0]["mode"] != "full":
        # An incremental run adds to the rows of earlier runs.
        frames = {key: frame.where(F.col("run_id") == run_id) for key, frame in frames.items()}
    resolved, requested, rejected = (frames[key] for key in names)
    return Resolution(resolved, requested, rejected, messages=recorded_rows[0]["rows_read"])


@checked
def current_routes(spark: SparkSession, config: Config, *others: Config) -> DataFrame:
    """Read the last row of each message in ``resolved_routes``, without unfinished runs and earlier attempts.

    Args:
        spark: the session.
        config: the configuration.
        others: the configurations of more jobs, which resolve other instances (``resolve.instances``).

    Returns:
        The rows of all jobs as a DataFrame.

    Raises:
        ConfigError: the instances of two jobs overlap.
        InputError: no run of a job counts yet.

    Example:
        >>> routing.current_routes(spark, routing.load_config("job.yaml")).count()
        5
    """
    check_apart([config, *others])
    frames = [_current_routes(spark, each) for each in (config, *others)]
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)


def check_apart(configs: Sequence[Config]) -> None:
    """Raise ConfigError if the instances of two jobs overlap."""
    faults = [*find_overlaps([(config.file, config.resolve.instances or ()) for config in configs])]
    if faults:
        raise ConfigError.overlapping_jobs(faults)


def _current_routes(spark: SparkSession, config: Config) -> DataFrame:
    config = file_systems.place_all(config, spark)
    outputs = DeltaTables(TableOpener.of_session(spark), config)
    _, last = outputs.last_run()
    if last is None:
        raise InputError.nothing_recorded(str(config.output["runs"]))
    location, recorded = config.output["resolved_routes"], last.output_versions["resolved_routes"]
    version = protocol.settled_version(TableLog(outputs, location), "resolved_routes", recorded)
    return last_rows(spark_tables.TableSnapshot(location, version).read(spark))
