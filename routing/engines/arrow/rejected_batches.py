"""Which messages are set aside, and why, by Arrow: `rules.rejecting` for a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.engines.arrow.message_keys import find_sound
from routing.engines.arrow.message_rows import NUMBERED, MessageRows, texts_of
from routing.plan.checked import CheckedInputs
from routing.schemas import MESSAGES, REJECTED_MESSAGES, ColumnKind
from routing.tables.arrow_forms import find_codes
from routing.tables.arrow_rows import micros_in, with_readable_texts
from routing.tables.column_kinds import arrow_schema, arrow_type
from routing.tables.encoded_texts import TextPlaces

if TYPE_CHECKING:
    import pyarrow

_ROWS_AT_ONCE = 1 << 18
_AS_READ = {ColumnKind.INT: ColumnKind.BIGINT}


@dataclass(frozen=True)
class RejectedRows:
    """The messages of a run that are set aside."""

    messages: MessageRows
    checked: CheckedInputs
    run_id: str

    def tables(self) -> Iterator[pyarrow.Table]:
        """Yield the rows of ``rejected_messages``, batch by batch."""
        import pyarrow
        import pyarrow.compute as pc

        rows = self.messages
        columns = {name: rows.column(name) for name in rows.shape if name in MESSAGES.names}
        columns["sound"] = rows.is_sound()
        instances = TextPlaces([(name,) for name in self.checked.instances])
        known_databases = (
            (name, other) for name, one in self.checked.instances.items() for other in one.databases
        )
        databases = TextPlaces(list(known_databases))
        shape = arrow_schema(REJECTED_MESSAGES.optional())
        for batch in rows.scan(columns, NUMBERED, _ROWS_AT_ONCE):
            names = [batch["instance_name"], texts_of(batch, "database_name")]
            is_instance, is_database = instances.find(names[:1]).is_valid(), databases.find(names).is_valid()
            # The texts of messages that are resolved, which may be long, are not spelled out.
            doubtful = pc.invert(pc.and_(find_sound(batch), pc.and_(is_instance, is_database)))
            table = _as_read(batch.filter(doubtful))
            codes = find_codes(table, is_instance.filter(doubtful), is_database.filter(doubtful))
            bits = _as_bits(codes, len(table))
            places = pc.indices_nonzero(bits)
            if len(places):
                rejected = with_readable_texts(table.take(places))
                rejected = rejected.append_column("reasons", _reasons_of(list(codes), bits.take(places)))
                run_id = pyarrow.repeat(pyarrow.scalar(self.run_id), len(rejected))
                yield rejected.append_column("run_id", run_id).cast(shape)


def _as_read(batch: pyarrow.RecordBatch) -> pyarrow.Table:
    """Return the declared columns of messages, those that are not there as nulls; integers as they came."""
    import pyarrow

    columns = {}
    for field in MESSAGES:
        kind = arrow_type(
            _AS_READ.get(field.kind, field.kind) if isinstance(field.kind, ColumnKind) else field.kind
        )
        there = batch[field.name] if field.name in batch.schema.names else pyarrow.nulls(len(batch), kind)
        if field.kind == ColumnKind.TIMESTAMP:
            columns[field.name] = micros_in(there).view(kind)
        else:
            columns[field.name] = there.cast(kind)
    return pyarrow.table(columns)


def _as_bits(codes: Mapping[str, pyarrow.Array], rows: int) -> pyarrow.Array:
    """Return of each row a bit for each code that applies."""
    import pyarrow
    import pyarrow.compute as pc

    bits: Any = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), rows)
    for place, applies in enumerate(codes.values()):
        bit = pc.shift_left(applies.cast("int32"), pyarrow.scalar(place, pyarrow.int32()))
        bits = pc.bit_wise_or(bits, bit)
    return bits


def _reasons_of(codes: list[str], bits: pyarrow.Array) -> pyarrow.Array:
    """Return the codes of rows; few combinations of them are different."""
    import pyarrow

    coded = bits.dictionary_encode()
    lists = [
        [code for place, code in enumerate(codes) if row_bits >> place & 1]
        for row_bits in coded.dictionary.to_pylist()
    ]
    return pyarrow.array(lists, pyarrow.list_(pyarrow.string())).take(coded.indices)
