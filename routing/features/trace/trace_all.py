"""Follow every message of a configuration: local tables without Spark, all others by Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from routing.config import Config
from routing.delta.local_tables import UnreadableTable
from routing.delta.opening import TableOpener
from routing.features.trace import paths_table
from routing.runs.paths_written import WrittenPaths
from routing.runs.stages import Progress


def write_all(
    config: Config,
    opener: TableOpener,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
) -> WrittenPaths:
    """Replace ``output.message_paths`` by the paths of all messages, whichever way their tables are read.

    Arguments and errors are those of `routing.runs.traced_paths.write_paths`, which does it where this cannot.
    """
    written = paths_table.write_paths(config, opener, as_of=as_of, progress=progress)
    if not isinstance(written, UnreadableTable):
        opener.tell("messages are followed without Spark")
        return written
    spark = opener.start_for("messages", "followed", written)
    from routing.runs.traced_paths import write_paths

    return write_paths(spark, config, as_of=as_of, progress=progress, tell=opener.tell)
