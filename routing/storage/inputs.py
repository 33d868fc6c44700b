"""Input tables as columns of plain Python, whatever they are given as: DataFrames, Arrow tables or datasets."""

from __future__ import annotations

from typing import Any

from routing.storage.columns import Columns, Only, Table, is_frame, read_arrow, spelled


def columns_of(table: Table, key: str, only: Only | None = None) -> Columns:
    """Input table ``key`` as columns; ``only`` are the values by column of which each row has one.

    Raises InputError naming every column that is missing or of a type that is not accepted (tables.md).
    """
    if is_frame(table):
        from routing.storage.conform import conform
        from routing.storage.frames import collect, where_in

        return collect(where_in(conform(table, key), only or {}))
    return read_arrow(table, key, condition_for(table, only or {}))


def condition_for(table: Any, only: Only) -> Any:
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
