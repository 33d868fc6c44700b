"""Which keys and columns stand in a table that an import writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from routing.importing.keyed import ON, bounds_of, key_of
from routing.schemas import TABLES, Schema
from routing.tables.read_rows import read_rows
from routing.tables.table_columns import Table, is_frame
from routing.terms import TableRow


def find_keys(table: Table, key: str, rows: Sequence[TableRow]) -> set[tuple[Any, ...]]:
    """Return the keys of these rows that are in a table."""
    if not rows:
        return set()
    schema = key_columns(key)
    if is_frame(table):
        from routing.tables import frames

        asked = frames.frame_of(table.sparkSession, rows, schema.optional())
        there = frames.with_columns_of(table, schema).join(asked, list(ON[key]), "left_semi")
        matching_rows = read_rows(there, schema)
    else:
        matching_rows = read_rows(table, schema, only=bounds_of(key, rows))
    return {key_of(key, row) for row in rows} & {key_of(key, row) for row in matching_rows}


def key_columns(key: str) -> Schema:
    """Return the columns of a table's key."""
    return Schema(tuple(field for field in TABLES[key] if field.name in ON[key]))


def find_missing(table: Table, schema: Schema) -> list[str]:
    """Return the columns that a table lacks."""
    there = {name.lower() for name in (table.columns if is_frame(table) else table.schema.names)}
    return [name for name in schema.names if name not in there]
