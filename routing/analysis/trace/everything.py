"""Follow every message of a configuration: local tables without Spark, all others by Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from routing.analysis.trace import writing
from routing.config import Config
from routing.runs.paths_written import Written
from routing.runs.stages import Progress
from routing.storage.local import Unfit
from routing.storage.opening import Opener


def write_all(
    config: Config,
    opener: Opener,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
) -> Written:
    """Replace ``output.message_paths`` by the paths of all messages, whichever way their tables are read.

    Arguments and errors are those of `routing.runs.tracing.write_paths`, which does it where this cannot.
    """
    found = writing.write_paths(config, opener, as_of=as_of, progress=progress)
    if not isinstance(found, Unfit):
        opener.tell("messages are followed without Spark")
        return found
    spark = opener.start_for("messages", "followed", found)
    from routing.runs.tracing import write_paths

    return write_paths(spark, config, as_of=as_of, progress=progress, tell=opener.tell)
