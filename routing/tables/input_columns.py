"""Input tables as columns of plain Python, whatever they are given as: DataFrames, Arrow tables or datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from routing.schemas import SETTINGS
from routing.tables.arrow_rows import plain_values
from routing.tables.table_columns import (
    Only,
    Table,
    TableColumns,
    as_dataset,
    is_frame,
    read_arrow,
    spell,
    stream_arrow,
)


def columns_of(table: Table, key: str, only: Only | None = None) -> TableColumns:
    """Read table ``key`` as columns; ``only`` are the values by column of which each row has one.

    Raises InputError naming every column that is missing or of a type that is not accepted (tables.md).
    """
    if is_frame(table):
        from routing.tables.frames import collect, where_in
        from routing.tables.spark_forms import conform

        return collect(where_in(conform(table, key), only or {}))
    return read_arrow(table, key, condition_of(table, only or {}))


def read_messages(messages: Table, only: Only | None = None) -> Iterator[TableColumns]:
    """Read all messages of an Arrow table or dataset, in the declared columns, in batches of 65,536 rows at most.

    ``only`` are the values by column of which each row has one. Raises InputError where a column that is needed
    is missing, or of a type that is not accepted.
    """
    return stream_arrow(messages, "messages", condition_of(messages, only or {}))


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


def earliest_by(table: Table, by: str, time: str, before: int, only: Only) -> dict[str, int]:
    """Return the earliest time by value of a column, among rows before a moment (microseconds).

    Files that hold no such row by the table's statistics are not read.
    """
    if is_frame(table):
        from pyspark.sql import functions as F

        from routing.tables.frames import where_in

        rows = where_in(table, only).where(F.col(time) < F.timestamp_micros(F.lit(before)))
        return dict(rows.groupBy(by).agg(F.unix_micros(F.min(time))).collect())
    import pyarrow
    import pyarrow.compute

    rows = as_dataset(table)
    kind = rows.schema.field(time).type
    is_before = pyarrow.compute.field(time) < pyarrow.scalar(before, pyarrow.timestamp("us", kind.tz)).cast(kind)
    wanted = condition_of(table, only)
    condition = is_before if wanted is None else wanted & is_before
    earliest: dict[str, int] = {}
    for batch in rows.scanner(columns=[by, time], filter=condition).to_batches():
        grouped = pyarrow.table(batch).group_by([by]).aggregate([(time, "min")])
        micros = grouped[f"{time}_min"].cast(pyarrow.timestamp("us", kind.tz)).cast(pyarrow.int64())
        for value, at in zip(plain_values(grouped[by]), micros.to_pylist(), strict=True):
            earliest[value] = min(at, earliest.get(value, at))
    return earliest


def condition_of(table: Any, only: Only) -> Any:
    """Return the condition for Arrow that each row has one of some values in each of some columns; None for none.

    Nothing is equal to null, as in SQL.
    """
    import pyarrow
    import pyarrow.compute

    condition, names = None, spell(table)
    for name, values in only.items():
        if name in names:
            kind, column = table.schema.field(names[name]).type, pyarrow.compute.field(names[name])
            kind = pyarrow.string() if pyarrow.types.is_string_view(kind) else kind
            wanted = pyarrow.array([value for value in values if value is not None], kind)
            # One value is sooner compared than looked up.
            one = column == wanted[0] if len(wanted) == 1 else column.isin(wanted)
            condition = one if condition is None else condition & one
    return condition
