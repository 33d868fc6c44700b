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
    found = types_of(table)
    missing = lacks(found, schema)
    if missing is None:
        raise OutputError.other_schema(key, location, differences(found, schema))
    return missing


def lacks(found: Mapping[str, str], wanted: Schema) -> list[str] | None:
    """List the nullable columns that alone keep a table from a schema; None where more does."""
    missing = [field for field in wanted if field.nullable and field.name not in found]
    rest = Schema(tuple(field for field in wanted if field not in missing))
    return None if differences(found, rest) else [field.name for field in missing]


def cannot_hold(found: Mapping[str, str], wanted: Schema) -> list[str]:
    """List the columns of a table that rows of a schema cannot be written to, a text each."""
    types = {name.lower(): kind for name, kind in found.items()}
    return [
        f"column {field.name} is {types[field.name]}, not {field.kind}"
        for field in wanted
        if field.name in types and not _holds(types[field.name], field.kind)
    ]


def _holds(found: str, wanted: AnyKind) -> bool:
    """Return True if a column takes every value of a kind, and gives it back."""
    if wanted == ColumnKind.STRING:
        return found == str(wanted) or found.startswith(("char(", "varchar("))
    return found == str(wanted) or (wanted == ColumnKind.INT and found == str(ColumnKind.BIGINT))


def differences(found: Mapping[str, str], wanted: Schema) -> list[str]:
    """List the differences between a table's schema and another, a text each."""
    faults = [
        f"column {field.name} is {found.get(field.name, 'missing')}, not {field.kind}"
        for field in wanted
        if found.get(field.name) != str(field.kind)
    ]
    return faults + [f"column {name} is unknown" for name in found if name not in wanted.names]
