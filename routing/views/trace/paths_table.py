"""Write ``output.message_paths``: by delta-rs from local tables, by Spark from all others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from routing.config import PATHS, Config
from routing.delta import ledger
from routing.delta.counted_runs import leave_out_missing
from routing.delta.local_tables import UnreadableTable
from routing.delta.opening import TableOpener, find_reason_for_spark
from routing.engines.arrow.traced_batches import ArrowPaths
from routing.run_context import Progress, StageClock
from routing.runs.run_work import TRACE_ALL, WrittenPaths, count_paths
from routing.schemas import MESSAGE_PATHS, TRAFFIC


def write_path_table(
    config: Config,
    opener: TableOpener,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
) -> WrittenPaths | UnreadableTable:
    """Follow all messages of a configuration, and replace ``output.message_paths`` in one commit.

    It does the same as `routing.runs.spark_outputs.write_paths`, with the same errors. If it cannot read or write
    a table here, it returns the reason, and Spark is needed.
    """
    config = leave_out_missing(opener, config.placed(opener.placed))
    config.output_of(PATHS, TRACE_ALL)
    moment, clock = config.resolve.as_of if as_of is None else as_of, StageClock(progress)
    with clock.stage("read"):
        inputs = opener.require_all(config.tables)
        place = ledger.open_output(opener, config, PATHS, MESSAGE_PATHS)
        why = find_reason_for_spark({key: inputs[key] for key in TRAFFIC if key in inputs}, place.writer)
        if why is not None:
            return why
    with clock.stage("judge"):
        paths = ArrowPaths.of({key: opened.rows for key, opened in inputs.items()}, moment)
    with clock.stage("write") as tally:
        versions = {key: opened.version for key, opened in inputs.items()}
        stored = place.replace(paths, ledger.metadata_of(TRACE_ALL, versions, moment))
        tally.rows = paths.traced
    with clock.stage("counts") as tally:
        done = count_paths(stored.rows(), stored.version, paths.read, paths.read - paths.traced, place.notes)
        tally.rows = done.traced
    return done


def write_all(
    config: Config,
    opener: TableOpener,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
) -> WrittenPaths:
    """Replace ``output.message_paths`` by the paths of all messages, with either engine.

    Arguments and errors are those of `routing.runs.spark_outputs.write_paths`, which does it if this cannot.
    """
    written = write_path_table(config, opener, as_of=as_of, progress=progress)
    if not isinstance(written, UnreadableTable):
        opener.on_note("messages are followed without Spark")
        return written
    spark = opener.start_for("messages", "followed", written)
    from routing.runs.spark_outputs import write_paths

    return write_paths(spark, config, as_of=as_of, progress=progress, on_note=opener.on_note)
