"""Create, with Spark, the outputs that commands other than ``resolve`` write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.arguments import checked
from routing.config import CANDIDATES, PATHS, Config
from routing.delta import file_systems, ledger, spark_tables
from routing.delta.counted_runs import leave_out_missing
from routing.delta.opening import TableOpener
from routing.engines.spark.worker_passes import message_paths
from routing.engines.traffic_tables import count_by
from routing.messages.candidate_ranks import MESSAGE_ROW, route_candidates
from routing.messages.compiling import compile_tables
from routing.messages.dialog_hash import FUNCTION
from routing.plan.candidate_lists import MOST_CANDIDATES, CandidateLists
from routing.rules.timeline import as_utc
from routing.run_context import Progress, ResolveOptions, RunContext, StageClock
from routing.runs.run_tables import open_inputs, telling_what_may_change
from routing.runs.run_work import TRACE_ALL, InternalError, WrittenPaths, count_paths
from routing.schemas import MESSAGE_PATHS, ROUTE_CANDIDATES, Schema
from routing.sessions.python_workers import prepare_workers
from routing.tables.cached_frames import FRAME_LIMITS, FrameCache, FrameLimits, released_on_failure
from routing.tables.given_tables import take_tables
from routing.tables.table_columns import Table
from routing.terms import DEFAULT_BROADCAST_LIMIT

# Rows about all messages of given tables: a lazy frame.


@dataclass(frozen=True)
class MessageFrame:
    """Rows about all messages that were ``read`` and not ``rejected``, as a lazy frame.

    ``notes`` lists joins without a broadcast, and may grow until the frame has been read. The session keeps a
    small plan until `unpersist`.
    """

    rows: DataFrame
    read: int
    rejected: int
    notes: list[str] = field(default_factory=list)
    frame_cache: FrameCache = field(default_factory=FrameCache)

    def unpersist(self) -> None:
        """Release the cached frames. The frame stays readable, but Spark computes it again."""
        self.frame_cache.release()


@dataclass(frozen=True)
class StoredOutput:
    """The created rows, the version of the table that has them, and notes on the rows and the table."""

    frame: MessageFrame
    version: int
    contents: Table
    clock: StageClock
    table_notes: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on joins, which are complete once the rows are written, and those on the table."""
        return (*self.frame.notes, *self.table_notes)


def replace_output(
    spark: SparkSession,
    config: Config,
    key: str,
    schema: Schema,
    make: Callable[[Mapping[str, Table], RunContext], MessageFrame],
    *,
    command: str,
    as_of: datetime | None,
    progress: Callable[[Progress], None],
    on_note: Callable[[str], None],
) -> StoredOutput:
    """Replace an output in one commit by the rows that ``make`` creates from the tables of a configuration.

    Each input is read at one version, or at none if it has no versions. The commit's user metadata names these.
    ``as_of`` replaces the configuration's. ``progress`` is called at the start and end of each stage, and
    ``on_note`` with a note on how each table is read. Raises ConfigError if the output is not configured,
    OutputError if its location has another table, InputError and StorageError.
    """
    opener = TableOpener.of_session(spark, on_note)
    config = leave_out_missing(opener, file_systems.place_all(config, spark))
    location = config.output_of(key, command)
    clock = StageClock(progress)
    moment = config.resolve.as_of if as_of is None else as_of
    with clock.stage("read"):
        place = ledger.open_output(opener, config, key, schema)
        inputs = spark_tables.snapshots(opener, config.tables)
    versions = {key: snapshot.version for key, snapshot in inputs.items()}
    metadata = ledger.metadata_of(command, versions, moment)
    with FrameCache() as frame_cache, telling_what_may_change(inputs):
        opened = {**open_inputs(opener, inputs, frame_cache), "messages": inputs["messages"].read(spark)}
        # The rows have no run id.
        resolve = config.resolve
        options = ResolveOptions("", moment and as_utc(moment), resolve.dialog_hash, resolve.broadcast_limit)
        frame = make(opened, RunContext(options, clock))
        try:
            with clock.stage("write"):
                version = place.replace_by_spark(spark, frame.rows, metadata)
        finally:
            frame.unpersist()
        contents = opener.open_at(f"output.{key}", location, version)
    return StoredOutput(frame, version, contents, clock, place.notes)


# All routes that messages could take, ranked by Spark: as a frame, or in ``output.route_candidates``.


CANDIDATES_COMMAND = "candidates"


@dataclass(frozen=True)
class RankedCandidates(MessageFrame):
    """Hold the result of `candidates`: every route that a message could take.

    Args:
        rows: a lazy DataFrame in the columns of ``route_candidates``; a message has as many rows as the rules
            find candidates, perhaps none.
        read: the number of messages read.
        rejected: the number of messages that are not resolved.
        notes: sentences on joins without a broadcast; more may come until the frame has been read.
        frame_cache: the frames that the session keeps until `unpersist`.

    Example:
        >>> ranked = routing.candidates(spark, tables)
        >>> ranked.read, ranked.rejected
        (7, 2)
    """

    @property
    def route_candidates(self) -> DataFrame:
        """The candidates, ranked within each message."""
        return self.rows


@checked
def candidates(
    spark: SparkSession,
    tables: Mapping[str, Table],
    *,
    as_of: datetime | None = None,
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT,
    clock: StageClock | None = None,
) -> RankedCandidates:
    """Rank every route that a message could take: a broadcast join and a window over each message.

    Args:
        spark: the session of the tables.
        tables: as `resolve` takes them.
        as_of: the one time at which all messages are decided (UTC without a zone); by default each at its own.
        broadcast_limit: the size above which candidates, plans and dialogs are joined without a broadcast.
        clock: hears of the stages.

    Returns:
        The candidates; validation and the pass for the keys run at once, the rest when the frame is read.

    Raises:
        InputError: a table is missing or breaks its contract.

    Example:
        >>> ranked = routing.candidates(spark, tables).route_candidates
        >>> ranked.where("message_id = 'm3'").select("candidate_rank", "route_name").first()
        Row(candidate_rank=1, route_name='Far')
    """
    options = ResolveOptions("", None if as_of is None else as_utc(as_of), broadcast_limit=broadcast_limit)
    return _rank(tables, RunContext(options, clock or StageClock()))


def _rank(tables: Mapping[str, Table], context: RunContext) -> RankedCandidates:
    """Rank as `candidates` does, with the context of a run."""
    context = replace(context, options=replace(context.options, dialog_hash=FUNCTION))
    lists = CandidateLists()
    with released_on_failure() as frame_cache:
        plan = compile_tables(
            tables,
            context,
            frame_cache,
            more_columns=lambda: {MESSAGE_ROW: F.monotonically_increasing_id()},
            is_exact=True,
            decide=lists.decide_keys,
        )
        read, valid = plan.counts.rows_read, plan.counts.rows_valid
        return RankedCandidates(route_candidates(plan, lists), read, read - valid, context.notes, frame_cache)


@dataclass(frozen=True)
class CandidateCount:
    """The number of candidates in a step and a tier, with the chosen ones and the alternatives."""

    matching_step: int
    tier: str | None
    candidates: int = 0
    chosen: int = 0
    alternatives: int = 0


@dataclass(frozen=True)
class WrittenCandidates:
    """The version of the table and the counts of its rows.

    ``by_step`` counts candidates by matching step and tier, in their order. Of the ``read`` messages, ``ranked``
    have candidates and ``rejected`` were rejected.
    """

    version: int
    read: int
    rejected: int
    ranked: int
    by_step: Sequence[CandidateCount]
    notes: tuple[str, ...] = ()


def write_candidates(
    spark: SparkSession,
    config: Config,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
    on_note: Callable[[str], None] = lambda text: None,
) -> WrittenCandidates:
    """Rank the candidates of all messages of a configuration into ``output.route_candidates``, in one commit.

    Arguments and errors are those of `replace_output`. Raises InternalError if the counts do not add up.
    """
    stored = replace_output(
        spark,
        config,
        CANDIDATES,
        ROUTE_CANDIDATES,
        _rank,
        command=CANDIDATES_COMMAND,
        as_of=as_of,
        progress=progress,
        on_note=on_note,
    )
    ranked = stored.frame
    with stored.clock.stage("counts") as tally:
        counts = count_by(stored.contents, ["matching_step", "tier", "is_chosen", "is_alternative"])
        # Each message with candidates has one of rank 1, which has their number.
        firsts = count_by(stored.contents, ["candidates_total"], {"candidate_rank": [1]})
        expected = sum(min(total, MOST_CANDIDATES) * messages for (total,), messages in firsts.items())
        if counts.total() != expected:
            raise InternalError.candidates(expected, counts.total())
        tally.rows = expected
    return WrittenCandidates(
        stored.version,
        ranked.read,
        ranked.rejected,
        firsts.total(),
        _count_steps(counts),
        stored.notes,
    )


def _count_steps(counts: Mapping[tuple[Any, ...], int]) -> list[CandidateCount]:
    """Combine counts by step, tier, is_chosen and is_alternative into one for each step and tier."""
    counts_by_step: dict[tuple[int, str], CandidateCount] = {}
    for (step, tier, is_chosen, is_alternative), count in counts.items():
        one = counts_by_step.get((step, tier or ""), CandidateCount(step, tier))
        counts_by_step[step, tier or ""] = replace(
            one,
            candidates=one.candidates + count,
            chosen=one.chosen + count * is_chosen,
            alternatives=one.alternatives + count * is_alternative,
        )
    return [counts_by_step[place] for place in sorted(counts_by_step)]


# The paths of all messages, by Spark: as a frame of given tables, or from tables to ``output.message_paths``.


@dataclass(frozen=True)
class TracedPaths(MessageFrame):
    """The paths of all messages, in the columns of ``message_paths``, and the numbers of messages."""

    @property
    def message_paths(self) -> DataFrame:
        """The paths, a row for each message that is not rejected."""
        return self.rows

    @property
    def traced(self) -> int:
        """The number of messages with a path."""
        return self.read - self.rejected


@checked
def trace_all(
    spark: SparkSession,
    tables: Mapping[str, Table],
    *,
    as_of: datetime | None = None,
    dialog_hash: str = "builtin",
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT,
    clock: StageClock | None = None,
) -> TracedPaths:
    """Follow all messages to where they end, and the replies to them, in Python workers.

    Validation and the pass for the keys run at once, the rest when the frame is read.

    Args:
        spark: the session of the tables.
        tables: as `resolve` takes them.
        as_of: the one time at which all messages are decided (UTC without a zone); by default each at its own.
        dialog_hash: how step 3 hashes dialogs (rule book, section 6): builtin or udf.
        broadcast_limit: the size above which plans and dialogs are joined without a broadcast.
        clock: hears of the stages.

    Returns:
        The paths as a DataFrame in the columns of ``message_paths``, and the numbers of messages.

    Raises:
        EnvironmentFault: the session has no Python workers.
        InputError: a table is missing or breaks its contract.

    Example:
        >>> traced = routing.trace_all(spark, tables)
        >>> traced.traced, traced.rejected
        (5, 2)
    """
    taken_tables = take_tables(tables, in_spark=True)
    prepare_workers(spark)
    # The rows of the paths have no run id.
    options = ResolveOptions("", None if as_of is None else as_utc(as_of), dialog_hash, broadcast_limit)
    return trace_with(taken_tables, RunContext(options, clock or StageClock()))


def trace_with(
    tables: Mapping[str, Table], context: RunContext, limits: FrameLimits = FRAME_LIMITS
) -> TracedPaths:
    """Follow all messages as `trace_all` does, with the context of a run and limits for frames in the driver."""
    with released_on_failure(limits) as frame_cache:
        plan = compile_tables(tables, context, frame_cache, is_exact=True)
        read, valid = plan.counts.rows_read, plan.counts.rows_valid
        return TracedPaths(message_paths(plan), read, read - valid, context.notes, frame_cache)


def write_paths(
    spark: SparkSession,
    config: Config,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
    on_note: Callable[[str], None] = lambda text: None,
) -> WrittenPaths:
    """Follow all messages of a configuration, and replace ``output.message_paths`` by their paths in one commit.

    Each input is read at one version, or at none if it has no versions. The commit's user metadata names these.
    ``as_of`` replaces the configuration's. ``progress`` is called at the start and end of each stage, and
    ``on_note`` with a note on how each table is read. Raises ConfigError if the output is not configured,
    OutputError if its location has another table, EnvironmentFault if the session has no Python workers,
    InputError, StorageError, and InternalError if the counts do not add up.
    """
    prepare_workers(spark)
    stored = replace_output(
        spark,
        config,
        PATHS,
        MESSAGE_PATHS,
        trace_with,
        command=TRACE_ALL,
        as_of=as_of,
        progress=progress,
        on_note=on_note,
    )
    traced = stored.frame
    with stored.clock.stage("counts") as tally:
        done = count_paths(stored.contents, stored.version, traced.read, traced.rejected, stored.notes)
        tally.rows = done.traced
    return done
