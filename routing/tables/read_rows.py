"""Read the rows of a table as it is stored, whatever it is opened as: DataFrames, Arrow tables or datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.errors import OutputError
from routing.schemas import SETTINGS, AnyKind, ColumnKind, Schema
from routing.tables.arrow_rows import with_moments
from routing.tables.dataset_rows import DatasetRows
from routing.tables.table_columns import (
    Only,
    Table,
    TableColumns,
    as_dataset,
    columns_in,
    is_frame,
    read_arrow,
    select_arrow,
    spell,
    types_of,
)
from routing.terms import TableRow

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

# Input tables as columns of plain Python, whatever they are given as: DataFrames, Arrow tables or datasets.


def columns_of(table: Table, key: str, only: Only | None = None) -> TableColumns:
    """Read table ``key`` as columns; ``only`` are the values by column of which each row has one.

    Raises InputError naming every column that is missing or of a type that is not accepted (tables.md).
    """
    if is_frame(table):
        from routing.tables.frames import collect, where_in
        from routing.tables.spark_forms import conform

        return collect(where_in(conform(table, key), only or {}))
    return read_arrow(table, key, condition_of(table, only or {}))


def read_each(tables: Mapping[str, Table], read: Callable[[str], TableColumns]) -> dict[str, TableColumns]:
    """Read each table with a function, at the same time where Spark reads one of them; return by key."""
    spark = next((table.sparkSession for table in tables.values() if is_frame(table)), None)
    if spark is None:
        return {key: read(key) for key in tables}
    from routing.tables.frames import at_once

    return dict(zip(tables, at_once(spark, read, list(tables)), strict=True))


def read_settings(tables: Mapping[str, Table]) -> dict[str, TableColumns]:
    """Return the tables of `schemas.SETTINGS` that are given, as columns.

    Raises InputError as `columns_of` does.
    """
    settings = {key: tables[key] for key in SETTINGS if key in tables}
    return read_each(settings, lambda key: columns_of(settings[key], key))


def count_by_files(table: Table) -> int | None:
    """Return how many rows a table has by what its files say; None for one of Spark, which would count them."""
    return None if is_frame(table) else as_dataset(table).count_rows()


def condition_of(table: Any, only: Only) -> Any:
    """Return the condition for Arrow that each row has one of some values in each of some columns; None for none.

    Nothing is equal to null, as in SQL, so that no row has a value of a column that is missing.
    """
    return DatasetRows(as_dataset(table), spell(table)).condition(only)


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


# What columns a table has, as texts, and what keeps it from being of a schema.


@dataclass(frozen=True)
class TableShape:
    """The columns that may be null and that a table and the schema of its output do not share.

    ``missing`` are the schema's, which an older release did not write; ``added`` are columns that somebody added.
    """

    missing: list[str]
    added: list[str]

    def note(self, key: str) -> str | None:
        """Return a note on added columns; None where there are none."""
        names = ", ".join(self.added)
        return f"output.{key}: rows of this run have NULL in added columns: {names}" if self.added else None


def check_shape(table: Table, key: str, location: str, schema: Schema) -> TableShape:
    """Refuse a table of another schema than that of output ``key``, and return how it differs. Raises OutputError.

    Columns that may be null may be missing or added, but not in another case.
    """
    types = types_of(table)
    required = {field.name for field in table.schema if not field.nullable}
    added = [name for name in types if name.lower() not in schema.names and name not in required]
    missing = lacks({name: kind for name, kind in types.items() if name not in added}, schema)
    if missing is None:
        faults = differences({name: kind for name, kind in types.items() if name not in added}, schema)
        # What may be null is no fault, so that an unknown column must have a value.
        faults = [f"{fault} and NOT NULL" if fault.endswith(" is unknown") else fault for fault in faults]
        raise OutputError.other_schema(key, location, faults)
    return TableShape(missing, added)


def lacks(types: Mapping[str, str], wanted: Schema) -> list[str] | None:
    """List the nullable columns that alone keep a table from a schema; None where more does."""
    missing = [field for field in wanted if field.nullable and field.name not in types]
    rest = Schema(tuple(field for field in wanted if field not in missing))
    return None if differences(types, rest) else [field.name for field in missing]


def cannot_hold(stored_types: Mapping[str, str], wanted: Schema) -> list[str]:
    """List the columns of a table that rows of a schema cannot be written to, a text each."""
    types = {name.lower(): kind for name, kind in stored_types.items()}
    return [
        f"column {field.name} is {types[field.name]}, not {field.kind}"
        for field in wanted
        if field.name in types and not _holds(types[field.name], field.kind)
    ]


def _holds(types: str, wanted: AnyKind) -> bool:
    """Return True if a column takes every value of a kind, and gives it back."""
    if wanted == ColumnKind.STRING:
        return types == str(wanted) or types.startswith(("char(", "varchar("))
    return types == str(wanted) or (wanted == ColumnKind.INT and types == str(ColumnKind.BIGINT))


def differences(types: Mapping[str, str], wanted: Schema) -> list[str]:
    """List the differences between a table's schema and another, a text each."""
    faults = [
        f"column {field.name} is {types.get(field.name, 'missing')}, not {field.kind}"
        for field in wanted
        if types.get(field.name) != str(field.kind)
    ]
    unknown = [name for name in types if name not in wanted.names]
    return faults + [
        f"column {name} differs from {name.lower()} only in case"
        if name.lower() in wanted.names
        else f"column {name} is unknown"
        for name in unknown
    ]
