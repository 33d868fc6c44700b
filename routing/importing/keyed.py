"""The tables that an import writes: their columns and keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from routing.rules.text import fold
from routing.schemas import KEYS, TABLES, ColumnKind
from routing.tables.table_columns import Only
from routing.terms import TableRow

ON = {
    **KEYS,
    "messages": (
        *("instance_name", "database_name", "conversation_id", "is_initiator"),
        "message_sequence_number",
    ),
    "observed_routing": ("instance_name", "database_name", "message_id", "observed_at", "source"),
    "imports": ("instance_name", "database_name", "view_or_file", "exported_at", "content_digest"),
}
EVENT_KEY = ("instance_name", "event_hash")
"""The key of what events tell in ``observed_routing``, where rows of queues have theirs."""
FOLDED = {"dialogs": ("conversation_id",), "messages": ("conversation_id",)}
"""Columns of a key that are compared without case."""


def name_message(row: TableRow) -> str:
    """Return the id of an imported message: conversation, role, number, and the database that sent it, if any.

    Two databases of an instance may each have an endpoint of one conversation in one role (tables.md).
    """
    role = "I" if row["is_initiator"] else "T"
    parts = (row["conversation_id"], role, row["message_sequence_number"], row["database_name"])
    return ":".join(str(part) for part in parts if part is not None)


def key_of(table: str, row: TableRow) -> tuple[Any, ...]:
    """Return the key of a row of a table."""
    folded = FOLDED.get(table, ())
    values = ((name, row.get(name)) for name in ON[table])
    return tuple(fold(value) if name in folded and value is not None else value for name, value in values)


def bounds_of(table: str, rows: Iterable[TableRow]) -> Only:
    """Return the values that rows with one of these keys can have, by column.

    Only of texts that are compared as they are: the statistics of a file round times.
    """
    rows = list(rows)
    kinds = {field.name: field.kind for field in TABLES[table]}
    names = (n for n in ON[table] if kinds[n] == ColumnKind.STRING and n not in FOLDED.get(table, ()))
    values = {name: {row.get(name) for row in rows} for name in names}
    return {name: column_values for name, column_values in values.items() if None not in column_values}
