"""What stands in a table, as rows of plain Python: times aware and UTC, columns that the table lacks null."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from routing.importing.covered import Row
from routing.importing.keyed import ON, SCHEMAS, bounds_of, key_of
from routing.schemas import AnyKind, Kind, Schema
from routing.storage import arrow
from routing.storage.columns import Columns, Only, Table, is_frame, select_arrow, spelled
from routing.storage.inputs import condition_of
from routing.storage.times import moment_of


def read_rows(table: Table, schema: Schema, only: Only | None = None) -> list[Row]:
    """The rows of a table in the columns of a schema; of each column in ``only`` they have one of the values."""
    if is_frame(table):
        from routing.storage import frames, tables

        return _with_moments(
            frames.collect(frames.where_in(tables.with_columns_of(table, schema), only or {})), schema
        )
    there = [name for name in schema.names if name in spelled(table)]
    names = [spelled(table)[name] for name in there]
    return rows_of_arrow(select_arrow(table, names, condition_of(table, only or {})), schema)


def rows_of_arrow(rows: Any, schema: Schema) -> list[Row]:
    """The same of rows that Arrow has read."""
    names = spelled(rows)
    nulls = [None] * rows.num_rows
    values = {f.name: arrow.values_of(rows[names[f.name]], f.kind) if f.name in names else nulls for f in schema}
    return _with_moments(Columns(values), schema)


def _with_moments(columns: Columns, schema: Schema) -> list[Row]:
    values = dict(columns.values)
    for field in schema:
        if field.kind == Kind.TIMESTAMP:
            values[field.name] = [None if time is None else moment_of(time) for time in values[field.name]]
    return list(Columns(values).dicts())


def find_keys(table: Table, key: str, rows: Sequence[Row]) -> set[tuple[Any, ...]]:
    """Which of the keys of these rows stand in a table."""
    if not rows:
        return set()
    schema = key_columns(key)
    if is_frame(table):
        from routing.storage import frames, tables

        asked = frames.frame_of(table.sparkSession, rows, schema.optional())
        there = tables.with_columns_of(table, schema).join(asked, list(ON[key]), "left_semi")
        found = read_rows(there, schema)
    else:
        found = read_rows(table, schema, bounds_of(key, rows))
    return {key_of(key, row) for row in rows} & {key_of(key, row) for row in found}


def key_columns(key: str) -> Schema:
    """The columns of a table's key."""
    return Schema(tuple(field for field in SCHEMAS[key] if field.name in ON[key]))


def find_missing(table: Table, schema: Schema) -> list[str]:
    """The columns that a table lacks."""
    there = {name.lower() for name in (table.columns if is_frame(table) else table.schema.names)}
    return [name for name in schema.names if name not in there]


def find_faults(table: Table, schema: Schema) -> Iterator[str]:
    """The columns of a table that rows of a schema cannot be written to, a text each."""
    if is_frame(table):
        from routing.storage import tables

        yield from tables.cannot_hold(table.schema, schema)
        return
    fields: Any = table.schema
    kinds = {field.name.lower(): field.type for field in fields}
    for field in schema:
        kind = kinds.get(field.name)
        if kind is not None and not _holds(kind, field.kind):
            yield f"column {field.name} is {kind}, not {field.kind}"


def _holds(found: Any, wanted: AnyKind) -> bool:
    """Whether a column of Arrow takes every value of a kind, and gives it back."""
    import pyarrow

    if wanted in (Kind.INT, Kind.BIGINT):
        return found == pyarrow.int64() or (wanted == Kind.INT and found == pyarrow.int32())
    return arrow.is_accepted(found, wanted)
