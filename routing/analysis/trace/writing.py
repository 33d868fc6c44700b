"""From local tables to ``output.message_paths`` without Spark: read and written by delta-rs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from routing.analysis.bulk.reading import MOST_MESSAGES
from routing.analysis.trace.by_arrow import Paths
from routing.config import PATHS, Config, Location
from routing.errors import ConfigError, InputError, StorageError, first_sentence
from routing.runs.paths_written import Written, count_paths, mark_of
from routing.runs.stages import Progress, Stages
from routing.schemas import MESSAGE_PATHS
from routing.storage.columns import as_dataset, is_frame
from routing.storage.kinds import arrow_schema
from routing.storage.local import LocalTable, Unfit
from routing.storage.opening import Opened, Opener
from routing.storage.places import check_vacant, check_writable
from routing.storage.shapes import check_shape, lacks, types_of


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
    location = config.beside.get(PATHS)
    if location is None:
        raise ConfigError.no_paths(config.file)
    check_writable(PATHS, location)
    moment, clock = config.resolve.as_of if as_of is None else as_of, Stages(progress)
    with clock.stage("read"):
        inputs = _open(config, opener)
        if isinstance(inputs, Unfit):
            return inputs
        place = _open_output(opener, location)
        if isinstance(place, Unfit):
            return place
    with clock.stage("judge"):
        paths = Paths.of({key: opened.rows for key, opened in inputs.items()}, moment)
    with clock.stage("write") as tally:
        mark = mark_of({key: opened.version for key, opened in inputs.items()}, moment)
        version = _replace(place, location, paths, mark)
        tally.rows = paths.counts.read - paths.counts.rejected
    with clock.stage("counts") as tally:
        stored, counts = opener.open_at(f"output.{PATHS}", location, version), paths.counts
        done = count_paths(stored, version, counts.read, counts.rejected)
        tally.rows = done.traced
    return done


def _open(config: Config, opener: Opener) -> dict[str, Opened] | Unfit:
    """The inputs, each at its newest version; or why Spark is to read them. Raises InputError."""
    inputs = {}
    for key, location in config.tables.items():
        found = opener.find(f"tables.{key}", location)
        if found is None:
            raise InputError.missing_table(key, str(location))
        if is_frame(found.rows):
            return Unfit(f"tables.{key} is read by Spark")
        inputs[key] = found
    count = as_dataset(inputs["messages"].rows).count_rows()
    return Unfit(f"there are {count:,} messages") if count > MOST_MESSAGES else inputs


def _open_output(opener: Opener, location: Location) -> LocalTable | Unfit | None:
    """The table to be replaced, or why Spark writes it; None where it is to be made. Raises OutputError."""
    found = opener.find(f"output.{PATHS}", location)
    if found is None:
        check_vacant(PATHS, location)
        return opener.open_to_write(location, None)
    check_shape(found.rows, PATHS, str(location), MESSAGE_PATHS)
    return opener.open_to_write(location, found.version)


def _replace(place: LocalTable | None, location: Location, paths: Paths, mark: str) -> int:
    """Replace the table, and say which version that made. Raises StorageError."""
    import pyarrow

    schema = arrow_schema(MESSAGE_PATHS.optional())
    rows = pyarrow.RecordBatchReader.from_batches(schema, paths.batches())
    try:
        stored = LocalTable.make(location, MESSAGE_PATHS.optional()) if place is None else place
        missing = lacks(types_of(stored.rows()), MESSAGE_PATHS) or ()
        if missing:
            stored.add_columns(field for field in MESSAGE_PATHS if field.name in missing)
        stored.commit(rows, adds=False, metadata=mark)
    except Exception as error:
        raise StorageError.failed(f"writing output.{PATHS} to {location}", first_sentence(error)) from error
    return stored.version
