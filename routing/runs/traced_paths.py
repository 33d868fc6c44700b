"""The paths of all messages, by Spark: as a frame of given tables, or from tables to ``output.message_paths``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from routing.config import PATHS, Config
from routing.messages.message_paths import message_paths
from routing.messages.path_keying import OF_ESTATE
from routing.plan.options import ResolveOptions
from routing.runs.message_frames import MessageFrame, compile_tables
from routing.runs.paths_written import COMMAND, WrittenPaths, count_paths
from routing.runs.replaced_output import OutputTable, replace_output
from routing.runs.stages import Progress, Stages
from routing.schemas import MESSAGE_PATHS
from routing.tables.frame_cache import released_on_failure
from routing.tables.table_columns import Table
from routing.tables.times import as_utc
from routing.terms import DEFAULT_BROADCAST_LIMIT


@dataclass(frozen=True)
class TracedPaths(MessageFrame):
    """The paths of all messages, in the columns of ``message_paths``, and how many there are."""

    @property
    def message_paths(self) -> DataFrame:
        """The paths, a row for each message that is not rejected."""
        return self.rows

    @property
    def traced(self) -> int:
        """How many messages have a path."""
        return self.read - self.rejected


def trace_all(
    spark: SparkSession,
    tables: Mapping[str, Table],
    *,
    as_of: datetime | None = None,
    dialog_hash: str = "builtin",
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT,
    clock: Stages | None = None,
) -> TracedPaths:
    """Follow all messages to where they end, and the replies to them.

    Validation, the pass for the keys and the paths of the keys run at once.

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
        InputError: a table is missing or breaks its contract.

    Example:
        >>> traced = routing.trace_all(spark, tables)
        >>> traced.traced, traced.rejected
        (5, 2)
    """
    # No row of the paths names a run.
    options = ResolveOptions("", None if as_of is None else as_utc(as_of), dialog_hash, broadcast_limit)
    with released_on_failure() as keeper:
        job = compile_tables(tables, options, keeper, clock or Stages(lambda stage: None), keying=OF_ESTATE)
        counts = job.counted.counts
        paths = message_paths(job)
        return TracedPaths(paths, counts.rows_read, counts.rows_read - counts.rows_valid, job.notes, keeper)


def write_paths(
    spark: SparkSession,
    config: Config,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
    tell: Callable[[str], None] = lambda text: None,
) -> WrittenPaths:
    """Follow all messages of a configuration, and replace ``output.message_paths`` by their paths in one commit.

    Each input is read at one version, or as it is where it has none; the commit's user metadata names these.
    ``as_of`` in place of the configuration's; ``progress`` is called with each stage when it begins and when it
    has ended, ``tell`` by what each table is read. Raises ConfigError where the output is not configured,
    OutputError where another table stands there, InputError, StorageError, and InternalError where the counts do
    not add up.
    """
    stored = replace_output(
        spark,
        config,
        OutputTable(PATHS, MESSAGE_PATHS, COMMAND),
        lambda inputs: trace_all(
            spark,
            inputs.tables,
            as_of=inputs.as_of,
            dialog_hash=config.resolve.dialog_hash,
            broadcast_limit=config.resolve.broadcast_limit,
            clock=inputs.clock,
        ),
        as_of=as_of,
        progress=progress,
        tell=tell,
    )
    traced = stored.frame
    with stored.clock.stage("counts") as tally:
        done = count_paths(stored.contents, stored.version, traced.read, traced.rejected, traced.notes)
        tally.rows = done.traced
    return done
