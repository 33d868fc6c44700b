"""The paths of all messages of Arrow's tables, followed in plain Python: rows of ``message_paths``, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from routing.plan.dialogs import KnownDialogs
from routing.plan.estate import NamedThings, network_of
from routing.plan.paths import MessagePaths
from routing.plan.planner import MOST_KEYS
from routing.plan.verdicts import JudgedRow, RowJudge
from routing.rules import text
from routing.rules.path_rows import PathRow
from routing.rules.resolving import bound_broker
from routing.schemas import MESSAGE_PATHS, Schema
from routing.tables.column_kinds import arrow_schema
from routing.tables.input_columns import read_messages, read_settings
from routing.tables.row_faults import refuse_faults
from routing.tables.table_columns import Table, TableColumns, check_given
from routing.tables.times import micros_of

if TYPE_CHECKING:
    import pyarrow

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
    found = [_path(paths, one, sender) for one, sender in zip(judged, senders, strict=True)]
    own: dict[str, Sequence[Any]] = {
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
    shared, schema = _shared(found), arrow_schema(MESSAGE_PATHS.optional())
    arrays = [
        shared[field.name] if field.name in shared else pyarrow.array(own[field.name], field.type)
        for field in schema
    ]
    return pyarrow.record_batch(arrays, schema=schema)


def _path(paths: MessagePaths, judged: JudgedRow, sender: str | None) -> PathRow:
    message, verdict = judged.message, judged.verdict
    if message is None or verdict is None:
        raise ValueError("a message that is set aside has no path")
    return paths.find(message, bound_broker(message, judged.dialog), sender, verdict)


def _shared(found: Sequence[PathRow]) -> dict[str, pyarrow.Array]:
    """Return the columns of paths, by name; Arrow gets each path once, however many messages have it."""
    import pyarrow

    distinct: dict[int, int] = {}
    rows: list[PathRow] = []
    places = []
    for row in found:
        place = distinct.get(id(row))
        if place is None:
            place = distinct[id(row)] = len(rows)
            rows.append(row)
        places.append(place)
    taken = pyarrow.array(places, pyarrow.int32())
    columns = zip(arrow_schema(_SHARED), zip(*(_plain(row) for row in rows), strict=True), strict=True)
    return {field.name: pyarrow.array(values, field.type).take(taken) for field, values in columns}


def _plain(row: PathRow) -> tuple[Any, ...]:
    """Return the values of `_SHARED`."""
    told = row._asdict() | {"hops": [hop._asdict() for hop in row.hops]}
    return tuple(told[name] for name in _SHARED.names)
