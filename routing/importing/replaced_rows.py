"""A table's rows as Arrow streams them, with changed rows in their places; all others pass through as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from routing.importing.history import TableChanges
from routing.importing.keyed import bounds_of, key_of
from routing.importing.stored_rows import key_columns
from routing.schemas import TABLES, Schema
from routing.tables.arrow_rows import table_of
from routing.tables.column_kinds import arrow_schema
from routing.tables.read_rows import rows_of_arrow
from routing.tables.table_columns import spell
from routing.terms import TableRow

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

Key = tuple[Any, ...]


def stream_changed(table: pyarrow.dataset.Dataset, key: str, changes: TableChanges) -> pyarrow.RecordBatchReader:
    """Read all rows that a table is to have as a stream; columns that are not this import's keep values."""
    import pyarrow

    # What may not be null is looked at when it is written.
    schema = pyarrow.schema([field.with_nullable(True) for field in table.schema])
    return pyarrow.RecordBatchReader.from_batches(schema, _batches(table, schema, key, changes))


def stream_rows(schema: Schema, rows: Iterable[TableRow]) -> pyarrow.RecordBatchReader:
    """Return rows in the columns of a schema, one batch each: each of them is large."""
    import pyarrow

    kinds = arrow_schema(schema.optional())
    batches = (batch for row in rows for batch in table_of([row], schema).cast(kinds).to_batches())
    return pyarrow.RecordBatchReader.from_batches(kinds, batches)


def rows_to_add(schema: pyarrow.Schema, key: str, rows: Sequence[TableRow]) -> pyarrow.Table:
    """Build new rows in the columns of a table; null in those that are not this import's."""
    import pyarrow

    nulls = pyarrow.table([pyarrow.nulls(len(rows), field.type) for field in schema], schema=schema)
    return _put_values(nulls, key, rows)


def _batches(
    table: pyarrow.dataset.Dataset, schema: pyarrow.Schema, key: str, changes: TableChanges
) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows that stay, each part followed by replaced rows, and the new rows at the end."""
    import pyarrow

    put = {key_of(key, row): row for row in changes.put}
    touched = {**put, **{key_of(key, row): None for row in changes.remove}}
    bounds = bounds_of(key, [*changes.put, *changes.remove])
    replaced_keys: set[Key] = set()
    for batch in table.to_batches():
        part = pyarrow.Table.from_batches([batch]).cast(schema)
        places = _find_places(part, key, bounds, touched)
        if not places:
            yield from part.to_batches()
            continue
        replaced_keys.update(places.values())
        rest = sorted(set(range(part.num_rows)) - set(places))
        yield from part.take(pyarrow.array(rest, pyarrow.int64())).to_batches()
        replaced = {place: put[of] for place, of in places.items() if of in put}
        theirs = part.take(pyarrow.array(replaced, pyarrow.int64()))
        yield from _put_values(theirs, key, list(replaced.values())).to_batches()
    new = [row for of, row in put.items() if of not in replaced_keys]
    yield from rows_to_add(schema, key, new).to_batches()


def _find_places(
    part: pyarrow.Table, key: str, bounds: Mapping[str, Any], touched: Mapping[Key, Any]
) -> dict[int, Key]:
    """Return the keys of touched rows by place; only rows within the bounds become Python objects."""
    import pyarrow
    from pyarrow import compute

    names = spell(part)
    near = pyarrow.array([True] * part.num_rows)
    for name, values in bounds.items():
        column = part[names[name]]
        near = compute.and_(near, compute.is_in(column, value_set=pyarrow.array(list(values), column.type)))
    places = compute.indices_nonzero(near)
    columns = key_columns(key)
    rows = rows_of_arrow(
        part.select([names[name] for name in columns.names if name in names]).take(places), columns
    )
    keys = ((place, key_of(key, row)) for place, row in zip(places.to_pylist(), rows, strict=True))
    return {place: of for place, of in keys if of in touched}


def _put_values(part: pyarrow.Table, key: str, rows: Sequence[TableRow]) -> pyarrow.Table:
    """Replace this import's columns in rows of a table."""
    names, ours = spell(part), table_of(rows, TABLES[key])
    for name in ours.column_names:
        place = part.schema.get_field_index(names[name])
        field = part.schema.field(place)
        part = part.set_column(place, field, ours[name].cast(field.type))
    return part
