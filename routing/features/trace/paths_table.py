"""From local tables to ``output.message_paths`` without Spark: read and written by delta-rs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from routing.config import PATHS, Config, in_reading_order
from routing.delta import replaced_outputs
from routing.delta.local_tables import UnreadableTable
from routing.delta.opening import OpenedTable, TableOpener
from routing.errors import InputError
from routing.features.trace.arrow_trace import ArrowPaths
from routing.runs.paths_written import COMMAND, WrittenPaths, count_paths
from routing.runs.stages import Progress, Stages
from routing.schemas import MESSAGE_PATHS
from routing.tables.column_kinds import arrow_schema
from routing.tables.input_columns import MOST_MESSAGES
from routing.tables.table_columns import as_dataset, is_frame

if TYPE_CHECKING:
    import pyarrow


def write_paths(
    config: Config,
    opener: TableOpener,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
) -> WrittenPaths | UnreadableTable:
    """Follow all messages of a configuration, and replace ``output.message_paths`` in one commit.

    As `routing.runs.traced_paths.write_paths` does, with the same errors; or why that has to: a table is not
    read or
    written here, or there are more messages than `MOST_MESSAGES`.
    """
    config = config.placed(opener.placed)
    location = config.output_of(PATHS, COMMAND)
    moment, clock = config.resolve.as_of if as_of is None else as_of, Stages(progress)
    with clock.stage("read"):
        inputs = _open(config, opener)
        if isinstance(inputs, UnreadableTable):
            return inputs
        place = replaced_outputs.look_at(opener, PATHS, location, MESSAGE_PATHS)
        if isinstance(place.writer, UnreadableTable):
            return place.writer
    with clock.stage("judge"):
        paths = ArrowPaths.of({key: opened.rows for key, opened in inputs.items()}, moment)
    with clock.stage("write") as tally:
        versions = {key: opened.version for key, opened in inputs.items()}
        metadata = replaced_outputs.metadata_of(COMMAND, versions, moment)
        version = place.replace(_reader(paths), metadata)
        tally.rows = paths.counts.read - paths.counts.rejected
    with clock.stage("counts") as tally:
        stored, counts = opener.open_at(f"output.{PATHS}", location, version), paths.counts
        done = count_paths(stored, version, counts.read, counts.rejected)
        tally.rows = done.traced
    return done


def _open(config: Config, opener: TableOpener) -> dict[str, OpenedTable] | UnreadableTable:
    """Return the inputs, each at its newest version; or why Spark is to read them. Raises InputError."""
    inputs = {}
    for key in in_reading_order(config.tables):
        opened = opener.find(f"tables.{key}", config.tables[key])
        if opened is None:
            raise InputError.missing_table(key, str(config.tables[key]))
        if is_frame(opened.rows):
            return UnreadableTable(f"tables.{key} is read by Spark")
        inputs[key] = opened
    count = as_dataset(inputs["messages"].rows).count_rows()
    return UnreadableTable(f"there are {count:,} messages") if count > MOST_MESSAGES else inputs


def _reader(paths: ArrowPaths) -> pyarrow.RecordBatchReader:
    import pyarrow

    return pyarrow.RecordBatchReader.from_batches(arrow_schema(MESSAGE_PATHS.optional()), paths.batches())
