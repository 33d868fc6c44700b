"""Read rows of DataFrames, Arrow tables and datasets, and compare their columns with a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

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

T = TypeVar("T")

# Input tables as columns of plain Python.


def columns_of(table: Table, key: str) -> TableColumns:
    """Read the rows of table ``key`` as columns.

    Raises InputError naming every column that is missing or has a type that is not accepted (tables.md).
    """
    if is_frame(table):
        from routing.tables.frames import collect
        from routing.tables.spark_forms import conform

        return collect(conform(table, key))
    return read_arrow(table, key)


def read_each(tables: Mapping[str, Table], read: Callable[[str], T]) -> dict[str, T]:
    """Read each table with a function and return the results by key. Spark tables are read at the same time."""
    spark = next((table.sparkSession for table in tables.values() if is_frame(table)), None)
    if spark is None:
        return {key: read(key) for key in tables}
    from routing.tables.frames import run_concurrently

    return dict(zip(tables, run_concurrently(spark, read, list(tables)), strict=True))


def read_settings(tables: Mapping[str, Table]) -> dict[str, TableColumns]:
    """Return the tables of `schemas.SETTINGS` that are present, as columns. Raises InputError as `columns_of`."""
    settings = {key: tables[key] for key in SETTINGS if key in tables}
    return read_each(settings, lambda key: columns_of(settings[key], key))


def read_few_settings(tables: Mapping[str, Table], most: int) -> dict[str, TableColumns] | None:
    """Return the same as `read_settings`, or None if the tables have more than ``most`` rows. Needs Arrow."""
    settings = {key: tables[key] for key in SETTINGS if key in tables}
    if sum(count_by_files(table) or 0 for table in settings.values()) > most:
        return None

    def read(key: str) -> TableColumns | None:
        table = settings[key]
        if not is_frame(table):
            return columns_of(table, key)
        from routing.tables.frames import collect_few
        from routing.tables.spark_forms import conform

        return collect_few(conform(table, key), most)

    columns = {key: rows for key, rows in read_each(settings, read).items() if rows is not None}
    return columns if len(columns) == len(settings) and sum(map(len, columns.values())) <= most else None


def count_by_files(table: Table) -> int | None:
    """Return the number of rows from the statistics of a table's files, or None for a Spark table."""
    return None if is_frame(table) else as_dataset(table).count_rows()


def condition_of(table: Any, only: Only) -> Any:
    """Return Arrow's condition that each column has one of its values, or None if ``only`` is empty.

    Null equals nothing, as in SQL, so no row matches a missing column.
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
    """Read rows of a table in the columns of a schema. Missing columns are null, and times are aware, in UTC.

    With ``last_by``, rows are sorted by these columns, descending. Only ``limit`` rows become Python objects.
    """
    if is_frame(table):
        return _read_frame(table, schema, last_by, limit, only or {})
    names = {name: spelling for name, spelling in spell(table).items() if name in schema.names}
    rows = select_arrow(table, list(names.values()), condition_of(table, only or {}))
    if last_by:
        rows = rows.sort_by([(names[name], "descending") for name in last_by])
    return rows_of_arrow(rows.slice(0, limit), schema)


def rows_of_arrow(rows: pyarrow.Table, schema: Schema) -> list[TableRow]:
    """Convert an Arrow table to plain rows in the columns of a schema."""
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


# Comparing a table's columns with a schema.


@dataclass(frozen=True)
class TableShape:
    """The nullable columns that only an output table or only its schema has.

    ``missing`` has columns of the schema that an older release did not write. ``added`` has columns that a user
    added.
    """

    missing: list[str]
    added: list[str]

    def note(self, setting: str) -> str | None:
        """Return a note on added columns, or None without any."""
        names = ", ".join(self.added)
        return f"{setting}: rows of this run have NULL in added columns: {names}" if self.added else None


def check_shape(table: Table, setting: str, location: str, schema: Schema) -> TableShape:
    """Return the nullable columns in which a table differs from a schema. Raises OutputError for others.

    ``setting`` names the location, such as ``output.runs``. A column that differs only in case is refused too.
    """
    types = types_of(table)
    required = {field.name for field in table.schema if not field.nullable}
    added = [name for name in types if name.lower() not in schema.names and name not in required]
    missing = lacks({name: kind for name, kind in types.items() if name not in added}, schema)
    if missing is None:
        faults = differences({name: kind for name, kind in types.items() if name not in added}, schema)
        # Unknown nullable columns are allowed, so each of these is NOT NULL.
        faults = [f"{fault} and NOT NULL" if fault.endswith(" is unknown") else fault for fault in faults]
        raise OutputError.other_schema(setting, location, faults)
    return TableShape(missing, added)


def lacks(types: Mapping[str, str], wanted: Schema) -> list[str] | None:
    """List the nullable columns that a table lacks, or return None if it differs in any other way."""
    missing = [field for field in wanted if field.nullable and field.name not in types]
    rest = Schema(tuple(field for field in wanted if field not in missing))
    return None if differences(types, rest) else [field.name for field in missing]


def cannot_hold(stored_types: Mapping[str, str], wanted: Schema) -> list[str]:
    """Describe each column of a table that cannot store the values of a schema."""
    types = {name.lower(): kind for name, kind in stored_types.items()}
    return [
        f"column {field.name} is {types[field.name]}, not {field.kind}"
        for field in wanted
        if field.name in types and not _holds(types[field.name], field.kind)
    ]


def _holds(types: str, wanted: AnyKind) -> bool:
    """Return whether a column can store every value of a kind without change."""
    if wanted == ColumnKind.STRING:
        return types == str(wanted) or types.startswith(("char(", "varchar("))
    return types == str(wanted) or (wanted == ColumnKind.INT and types == str(ColumnKind.BIGINT))


def differences(types: Mapping[str, str], wanted: Schema) -> list[str]:
    """Describe each difference between a table's columns and a schema."""
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
