"""What columns a table has, as texts, and what keeps it from being of a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routing.errors import OutputError
from routing.schemas import AnyKind, ColumnKind, Schema
from routing.tables.column_kinds import spark_name
from routing.tables.table_columns import Table, is_frame


def types_of(table: Table) -> dict[str, str]:
    """Return the types of a table's columns, by Spark's names for them."""
    if is_frame(table):
        return {field.name: field.dataType.simpleString() for field in table.schema}
    fields: Any = table.schema
    return {field.name: spark_name(field.type) for field in fields}


def check_shape(table: Table, key: str, location: str, schema: Schema) -> list[str]:
    """Refuse a table of another schema than that of output ``key``. Raises OutputError.

    Columns that may be null may be missing, as in a table of an older release: these are returned.
    """
    types = types_of(table)
    missing = lacks(types, schema)
    if missing is None:
        raise OutputError.other_schema(key, location, differences(types, schema))
    return missing


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
    return faults + [f"column {name} is unknown" for name in types if name not in wanted.names]
