"""From local tables to ``output.message_paths`` without Spark: read and written by delta-rs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from routing.analysis.trace.by_arrow import Paths
from routing.config import PATHS, Config, in_reading_order
from routing.errors import InputError
from routing.runs.paths_written import COMMAND, Written, count_paths
from routing.runs.stages import Progress, Stages
from routing.schemas import MESSAGE_PATHS
from routing.storage import replaced
from routing.storage.columns import as_dataset, is_frame
from routing.storage.inputs import MOST_MESSAGES
from routing.storage.kinds import arrow_schema
from routing.storage.local import Unfit
from routing.storage.opening import Opened, Opener

if TYPE_CHECKING:
    import pyarrow


def write_paths(
    config: Config,
    opener: Opener,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
) -> Written | Unfit:
    """Follow all messages of a configuration, and replace ``output.message_paths`` in one commit.

    As `routing.runs.tracing.write_paths` does, with the same errors; or why that has to: a table is not read or
    written here, or there are more messages than `MOST_MESSAGES`.
    """
    config = config.placed(opener.placed)
    location = config.output_of(PATHS, COMMAND)
    moment, clock = config.resolve.as_of if as_of is None else as_of, Stages(progress)
    with clock.stage("read"):
        inputs = _open(config, opener)
        if isinstance(inputs, Unfit):
            return inputs
        place = replaced.look_at(opener, PATHS, location, MESSAGE_PATHS)
        if isinstance(place.writer, Unfit):
            return place.writer
    with clock.stage("judge"):
        paths = Paths.of({key: opened.rows for key, opened in inputs.items()}, moment)
    with clock.stage("write") as tally:
        versions = {key: opened.version for key, opened in inputs.items()}
        mark = replaced.metadata_of(COMMAND, versions, moment)
        version = place.replace(_reader(paths), mark)
        tally.rows = paths.counts.read - paths.counts.rejected
    with clock.stage("counts") as tally:
        stored, counts = opener.open_at(f"output.{PATHS}", location, version), paths.counts
        done = count_paths(stored, version, counts.read, counts.rejected)
        tally.rows = done.traced
    return done


def _open(config: Config, opener: Opener) -> dict[str, Opened] | Unfit:
    """The inputs, each at its newest version; or why Spark is to read them. Raises InputError."""
    inputs = {}
    for key in in_reading_order(config.tables):
        found = opener.find(f"tables.{key}", config.tables[key])
        if found is None:
            raise InputError.missing_table(key, str(config.tables[key]))
        if is_frame(found.rows):
            return Unfit(f"tables.{key} is read by Spark")
        inputs[key] = found
    count = as_dataset(inputs["messages"].rows).count_rows()
    return Unfit(f"there are {count:,} messages") if count > MOST_MESSAGES else inputs


def _reader(paths: Paths) -> pyarrow.RecordBatchReader:
    import pyarrow

    return pyarrow.RecordBatchReader.from_batches(arrow_schema(MESSAGE_PATHS.optional()), paths.batches())
