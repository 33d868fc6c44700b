"""Which messages are set aside, and why, by Arrow: `rules.rejecting` for a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.engines.arrow.message_rows import MessageRows
from routing.plan.checked import Checked
from routing.rules.rejecting import INT_RANGE, REQUIRED, TEXTS
from routing.schemas import MESSAGES, REJECTED_MESSAGES, Kind
from routing.storage.arrow import find_undecodable, micros_in, with_readable_texts
from routing.storage.arrow_forms import is_guid
from routing.storage.encoded import Places
from routing.storage.kinds import arrow_schema, arrow_type
from routing.terms import Rejection

if TYPE_CHECKING:
    import pyarrow

_ROWS_AT_ONCE = 1 << 18
_AS_READ = {Kind.INT: Kind.BIGINT}


@dataclass(frozen=True)
class RejectedRows:
    """The messages of a run that are set aside."""

    messages: MessageRows
    checked: Checked
    run_id: str

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield the rows of ``rejected_messages``, batch by batch."""
        import pyarrow
        import pyarrow.compute as pc

        rows = self.messages
        columns = {name: rows.column(name) for name in rows.shape if name in MESSAGES.names}
        instances = Places([(name,) for name in self.checked.instances])
        known = ((name, other) for name, one in self.checked.instances.items() for other in one.databases)
        databases = Places(list(known))
        shape = arrow_schema(REJECTED_MESSAGES.optional())
        for batch in rows.scan(columns, (), _ROWS_AT_ONCE):
            table = _as_read(batch)
            codes, bits = _find_codes(table, instances, databases)
            places = pc.indices_nonzero(bits)
            if len(places):
                found = with_readable_texts(table.take(places))
                found = found.append_column("reasons", _reasons_of(codes, bits.take(places)))
                run_id = pyarrow.repeat(pyarrow.scalar(self.run_id), len(found))
                yield found.append_column("run_id", run_id).cast(shape)


def _as_read(batch: pyarrow.RecordBatch) -> pyarrow.Table:
    """Return the declared columns of messages, those that are not there as nulls; integers as they came."""
    import pyarrow

    columns = {}
    for field in MESSAGES:
        kind = arrow_type(_AS_READ.get(field.kind, field.kind) if isinstance(field.kind, Kind) else field.kind)
        there = batch[field.name] if field.name in batch.schema.names else pyarrow.nulls(len(batch), kind)
        if field.kind == Kind.TIMESTAMP:
            columns[field.name] = micros_in(there).view(kind)
        else:
            columns[field.name] = there.cast(kind)
    return pyarrow.table(columns)


def _find_codes(rows: pyarrow.Table, instances: Places, databases: Places) -> tuple[list[str], pyarrow.Array]:
    """Return the codes of a batch, in the order of tables.md, and for each row a bit for each that applies."""
    import pyarrow
    import pyarrow.compute as pc

    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    undecodable = {name: mask for name in TEXTS if (mask := find_undecodable(columns[name])) is not None}
    no_rows = pyarrow.repeat(pyarrow.scalar(False), len(rows))
    is_instance = instances.find([columns["instance_name"]]).is_valid()
    is_database = databases.find([columns["instance_name"], columns["database_name"]]).is_valid()
    hops, (least, most) = columns["hops_remaining"], INT_RANGE
    names_instance, names_database, names_conversation = (
        pc.fill_null(pc.not_equal(columns[name], ""), fill_value=False)
        for name in ("instance_name", "database_name", "conversation_id")
    )
    guid = pc.fill_null(is_guid(columns["conversation_id"]), fill_value=False)
    masks: dict[str, Any] = {Rejection.missing(name): _is_missing(columns[name]) for name in REQUIRED}
    masks |= {Rejection.not_utf8(name): mask for name, mask in undecodable.items()}
    masks[Rejection.out_of_range("hops_remaining")] = pc.or_(pc.less(hops, least), pc.greater(hops, most))
    masks[str(Rejection.CONVERSATION_ID_NOT_A_GUID)] = pc.and_not(names_conversation, guid)
    masks[str(Rejection.UNKNOWN_INSTANCE)] = pc.and_not(names_instance, is_instance)
    masks[str(Rejection.UNKNOWN_DATABASE)] = pc.and_not(pc.and_(names_database, is_instance), is_database)
    bits: Any = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), len(rows))
    for place, mask in enumerate(masks.values()):
        applies = pc.coalesce(mask, no_rows).cast("int32")
        bits = pc.bit_wise_or(bits, pc.shift_left(applies, pyarrow.scalar(place, pyarrow.int32())))
    return list(masks), bits


def _is_missing(column: pyarrow.Array) -> pyarrow.Array:
    import pyarrow
    import pyarrow.compute as pc

    if pyarrow.types.is_string(column.type):
        return pc.fill_null(pc.equal(column, ""), fill_value=True)
    return column.is_null()


def _reasons_of(codes: list[str], bits: pyarrow.Array) -> pyarrow.Array:
    """Return the codes of rows; few combinations of them are different."""
    import pyarrow

    coded = bits.dictionary_encode()
    lists = [
        [code for place, code in enumerate(codes) if found >> place & 1] for found in coded.dictionary.to_pylist()
    ]
    return pyarrow.array(lists, pyarrow.list_(pyarrow.string())).take(coded.indices)
