"""Rows of a table as it is stored, whatever it is opened as: DataFrames, Arrow tables or datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from routing.schemas import ColumnKind, Schema
from routing.tables.input_columns import condition_of
from routing.tables.table_columns import Only, Table, columns_in, is_frame, select_arrow, spell
from routing.tables.times import with_moments
from routing.terms import TableRow

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame


def read_rows(
    table: Table,
    schema: Schema,
    *,
    last_by: Sequence[str] = (),
    limit: int | None = None,
    only: Only | None = None,
) -> list[TableRow]:
    """Read rows of a table in the columns of a schema; missing ones are null, times are aware, UTC.

    With ``last_by``, the greatest by these columns come first. Only as many as ``limit`` become objects of Python.
    """
    if is_frame(table):
        return _read_frame(table, schema, last_by, limit, only or {})
    names = {name: there for name, there in spell(table).items() if name in schema.names}
    rows = select_arrow(table, list(names.values()), condition_of(table, only or {}))
    if last_by:
        rows = rows.sort_by([(names[name], "descending") for name in last_by])
    return rows_of_arrow(rows.slice(0, limit), schema)


def rows_of_arrow(rows: pyarrow.Table, schema: Schema) -> list[TableRow]:
    """Convert Arrow's rows to plain ones in the columns of a schema."""
    times = [field.name for field in schema if field.kind == ColumnKind.TIMESTAMP]
    return with_moments(columns_in(rows, schema, spell(rows)).dicts(), times)


def _read_frame(
    frame: DataFrame, schema: Schema, last_by: Sequence[str], limit: int | None, only: Only
) -> list[TableRow]:
    from pyspark.sql import functions as F

    from routing.tables.frames import rows_of, where_in, with_columns_of

    rows = where_in(with_columns_of(frame, schema), only)
    if last_by:
        rows = rows.orderBy(*(F.desc(name) for name in last_by))
    return rows_of(rows if limit is None else rows.limit(limit))
