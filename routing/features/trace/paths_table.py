"""From local tables to ``output.message_paths`` without Spark: read and written by delta-rs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from routing.config import PATHS, Config, in_reading_order
from routing.delta import replaced_outputs
from routing.delta.local_tables import UnreadableTable
from routing.delta.opening import OpenedTable, TableOpener
from routing.errors import InputError
from routing.plan.checked_inputs import NamedThings, network_of
from routing.plan.paths import MessagePaths
from routing.plan.planner import MOST_KEYS
from routing.plan.verdicts import JudgedRow, KnownDialogs, RowJudge
from routing.rules import text
from routing.rules.pathing import PathRow
from routing.rules.resolving import bound_broker
from routing.runs.run_results import COMMAND, WrittenPaths, count_paths
from routing.runs.run_work import Progress, Stages
from routing.schemas import MESSAGE_PATHS, Schema
from routing.tables.column_kinds import arrow_schema
from routing.tables.input_columns import MOST_MESSAGES, read_messages, read_settings
from routing.tables.row_faults import refuse_faults
from routing.tables.table_columns import Table, TableColumns, as_dataset, check_given, is_frame
from routing.tables.times import micros_of

if TYPE_CHECKING:
    import pyarrow

# The paths of all messages of Arrow's tables, followed in plain Python: rows of ``message_paths``, in batches.


_SHARED = Schema(tuple(field for field in MESSAGE_PATHS if field.name in PathRow._fields))


@dataclass
class TracedCounts:
    """The numbers of messages read and rejected so far."""

    read: int = 0
    rejected: int = 0


@dataclass
class ArrowPaths:
    """The paths of all messages of Arrow's tables. ``counts`` grow as `batches` are taken."""

    messages: Table
    judge: RowJudge
    paths: MessagePaths
    counts: TracedCounts = field(default_factory=TracedCounts)

    @classmethod
    def of(cls, tables: Mapping[str, Table], as_of: datetime | None, *, most_keys: int = MOST_KEYS) -> ArrowPaths:
        """Prepare the paths of input tables; find which messages ask for routes. Raises InputError."""
        check_given(tables)
        settings = read_settings(tables)
        refuse_faults(settings)
        network, dialogs = network_of(settings), KnownDialogs.of_table(tables.get("dialogs"))
        judge = RowJudge(network, dialogs, None if as_of is None else micros_of(as_of), most_keys=most_keys)
        judge.find_openers(read_messages(tables["messages"]))
        named = NamedThings.of(settings, network.instances.values())
        return cls(tables["messages"], judge, MessagePaths(network, named, most_keys=most_keys))

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of ``message_paths``, in the order of the messages, without rejected ones."""
        for batch in read_messages(self.messages):
            judged = self.judge.judge(batch)
            self.counts.read += len(judged)
            sound = [place for place, one in enumerate(judged) if one.message is not None]
            self.counts.rejected += len(judged) - len(sound)
            if sound:
                yield _as_batch(batch.take(sound), [judged[place] for place in sound], self.paths)


def _as_batch(rows: TableColumns, judged: Sequence[JudgedRow], paths: MessagePaths) -> pyarrow.RecordBatch:
    """Build the rows of messages that are not rejected, with their paths."""
    import pyarrow

    messages = [one.message for one in judged if one.message is not None]
    senders = [text.empty_as_null(name) for name in rows.values["from_service_name"]]
    path_rows = [_path(paths, one, sender) for one, sender in zip(judged, senders, strict=True)]
    message_columns: dict[str, Sequence[Any]] = {
        **{name: rows.values[name] for name in ("message_sequence_number", "enqueue_time")},
        "message_id": [message.message_id for message in messages],
        "conversation_id": [message.conversation_id for message in messages],
        "is_initiator": [message.is_initiator for message in messages],
        "instance_name": [message.instance for message in messages],
        "database_name": [message.database for message in messages],
        "to_service_name": [message.service for message in messages],
        "from_service_name": senders,
        "decided_at": [message.t for message in messages],
    }
    shared, schema = _shared(path_rows), arrow_schema(MESSAGE_PATHS.optional())
    arrays = [
        shared[field.name] if field.name in shared else pyarrow.array(message_columns[field.name], field.type)
        for field in schema
    ]
    return pyarrow.record_batch(arrays, schema=schema)


def _path(paths: MessagePaths, judged: JudgedRow, sender: str | None) -> PathRow:
    message, verdict = judged.message, judged.verdict
    if message is None or verdict is None:
        raise ValueError("a message that is set aside has no path")
    return paths.find(message, bound_broker(message, judged.dialog), sender, verdict)


def _shared(path_rows: Sequence[PathRow]) -> dict[str, pyarrow.Array]:
    """Return the columns of paths, by name; Arrow gets each path once, however many messages have it."""
    import pyarrow

    distinct: dict[int, int] = {}
    rows: list[PathRow] = []
    places = []
    for row in path_rows:
        place = distinct.get(id(row))
        if place is None:
            place = distinct[id(row)] = len(rows)
            rows.append(row)
        places.append(place)
    row_places = pyarrow.array(places, pyarrow.int32())
    columns = zip(arrow_schema(_SHARED), zip(*(_plain(row) for row in rows), strict=True), strict=True)
    return {field.name: pyarrow.array(values, field.type).take(row_places) for field, values in columns}


def _plain(row: PathRow) -> tuple[Any, ...]:
    """Return the values of `_SHARED`."""
    values = row._asdict() | {"hops": [hop._asdict() for hop in row.hops]}
    return tuple(values[name] for name in _SHARED.names)


def write_path_table(
    config: Config,
    opener: TableOpener,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
) -> WrittenPaths | UnreadableTable:
    """Follow all messages of a configuration, and replace ``output.message_paths`` in one commit.

    As `routing.runs.spark_outputs.write_paths` does, with the same errors; or why that has to: a table is not
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


# Follow every message of a configuration: local tables without Spark, all others by Spark.


def write_all(
    config: Config,
    opener: TableOpener,
    *,
    as_of: datetime | None = None,
    progress: Callable[[Progress], None] = lambda stage: None,
) -> WrittenPaths:
    """Replace ``output.message_paths`` by the paths of all messages, whichever way their tables are read.

    Arguments and errors are those of `routing.runs.spark_outputs.write_paths`, which does it where this cannot.
    """
    written = write_path_table(config, opener, as_of=as_of, progress=progress)
    if not isinstance(written, UnreadableTable):
        opener.tell("messages are followed without Spark")
        return written
    spark = opener.start_for("messages", "followed", written)
    from routing.runs.spark_outputs import write_paths

    return write_paths(spark, config, as_of=as_of, progress=progress, tell=opener.tell)
