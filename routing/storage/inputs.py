"""Tables as plain Python, whatever they are given as: DataFrames, Arrow tables or datasets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from routing.schemas import INPUTS, Kind, Schema
from routing.storage.columns import (
    Columns,
    Only,
    Table,
    check_arrow,
    is_frame,
    read_arrow,
    select_arrow,
    spelled,
)
from routing.storage.times import moment_of


def columns_of(table: Table, key: str, only: Only | None = None) -> Columns:
    """Input table ``key`` as columns; ``only`` are the values by column of which each row has one.

    Raises InputError naming every column that is missing or of a type that is not accepted (tables.md).
    """
    if is_frame(table):
        from routing.storage.conform import conform
        from routing.storage.frames import collect, where_in

        return collect(where_in(conform(table, key), only or {}))
    check_arrow(table, key)
    return read_arrow(table, INPUTS[key], _expression(table, only or {}))


def greatest(
    table: Table, schema: Schema, by: Sequence[str], limit: int | None = None, only: Only | None = None
) -> list[dict[str, Any]]:
    """The rows of a table that has a schema, those first that are the greatest by some of its columns.

    Columns that the table lacks are null; times are aware, in UTC. Most rows stay as they are stored: only as many
    as are asked for become objects of Python.
    """
    if is_frame(table):
        from pyspark.sql import functions as F

        from routing.storage.frames import rows_of, where_in

        frame = where_in(table.select(*(name for name in schema.names if name in table.columns)), only or {})
        frame = frame.orderBy(*(F.desc(name) for name in by))
        found = rows_of(frame if limit is None else frame.limit(limit))
        return [{name: row.get(name) for name in schema.names} for row in found]
    there = spelled(table)
    stored = select_arrow(
        table, [there[name] for name in schema.names if name in there], _expression(table, only or {})
    )
    stored = stored.sort_by([(there[name], "descending") for name in by]).slice(0, limit)
    return list(_timed(read_arrow(stored, schema), schema))


def _timed(columns: Columns, schema: Schema) -> Iterator[dict[str, Any]]:
    """The rows of columns, times as aware ones."""
    times = [field.name for field in schema if field.kind == Kind.TIMESTAMP]
    for row in columns.dicts():
        yield row | {name: None if row[name] is None else moment_of(row[name]) for name in times}


def _expression(table: Any, only: Only) -> Any:
    """The condition for Arrow that each row has one of some values in each of some columns; None for none."""
    import pyarrow
    import pyarrow.compute

    condition = None
    for name, values in only.items():
        field = spelled(table).get(name)
        if field is not None:
            wanted = pyarrow.array(list(values), table.schema.field(field).type)
            one = pyarrow.compute.field(field).isin(wanted)
            condition = one if condition is None else condition & one
    return condition
