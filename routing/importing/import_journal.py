"""Convert what an import is about to write into rows of the table ``unfinished_imports``, and back; plain Python.

A row holds a part of the rows of one table as one JSON object: ``table_id`` is the table that they are for,
``columns`` their names, ``rows`` a list of values each; times are ISO 8601 in UTC. Part 0 has no rows of a table,
but says what an import of events reads: ``files`` and ``instance``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from routing.delta.counted_runs import newer_than, release
from routing.importing.history import TableChanges
from routing.schemas import TABLES, ArrayOf, ColumnKind, Schema
from routing.terms import TableRow

ORDER = (
    *("databases", "services", "instances", "routes", "dialogs"),
    *("messages", "observed_routing", "imports"),
)
"""The order in which an import commits its tables: no message comes before the routes of its time."""
APPENDED = ("messages", "observed_routing")
"""The tables that rows are only added to."""
PUT, REMOVE = "put", "remove"
_PART = 2_000
_SOURCES = 0


class UnfitError(ValueError):
    """A part that this release cannot write to the tables as they are; the text says why."""


@dataclass(frozen=True)
class UnfinishedImport:
    """An import whose rows stand in the journal, and the tables that it writes; none where it streams events."""

    import_id: str
    started_at: datetime
    releases: tuple[str, ...]
    table_keys: tuple[str, ...]

    @property
    def is_of_events(self) -> bool:
        """Return whether the import streams, so that the journal does not hold its rows."""
        return not self.table_keys


def list_unfinished(rows: Iterable[TableRow]) -> list[UnfinishedImport]:
    """Return the imports of which the journal has rows, in the columns of `SMALL`, the oldest first."""
    parts: dict[tuple[datetime, str], list[TableRow]] = {}
    for row in rows:
        parts.setdefault((row["started_at"], row["import_id"]), []).append(row)
    return [
        UnfinishedImport(
            import_id,
            started_at,
            tuple({row["release"] for row in part_rows}),
            in_order({row["table_key"] for row in part_rows if row["part"] != _SOURCES}),
        )
        for (started_at, import_id), part_rows in sorted(parts.items(), key=lambda item: item[0])
    ]


def in_order(keys: Iterable[str]) -> tuple[str, ...]:
    """Return keys of tables in the order of writing; those that this release does not know last."""
    return tuple(sorted(keys, key=lambda key: (ORDER.index(key) if key in ORDER else len(ORDER), key)))


def encode_changes(
    import_id: str, started_at: datetime, changes: Mapping[str, TableChanges], table_ids: Mapping[str, str | None]
) -> Iterator[TableRow]:
    """Return the journal's rows for what an import changes, made one at a time; each has some rows of a table.

    ``table_ids`` are those of the changed tables, None for one that is still to be made.
    """
    import_columns = {"import_id": import_id, "started_at": started_at, "release": release()}
    for key, change in changes.items():
        for action, rows in ((PUT, change.put), (REMOVE, change.remove)):
            for part, text in enumerate(_encode_parts(key, rows, table_ids[key]), _SOURCES + 1):
                yield {**import_columns, "table_key": key, "action": action, "part": part, "rows": text}


def encode_sources(import_id: str, started_at: datetime, key: str, sources: Mapping[str, object]) -> TableRow:
    """Return the journal's one row for an import that streams from sources to a table."""
    import_columns = {"import_id": import_id, "started_at": started_at, "release": release()}
    return {
        **import_columns,
        "table_key": key,
        "action": PUT,
        "part": _SOURCES,
        "rows": json.dumps(sources, sort_keys=True),
    }


def is_of_sources(row: TableRow, sources: Mapping[str, object]) -> bool:
    """Return whether a row of the journal is that of an import which streams from these sources."""
    return bool(row["part"] == _SOURCES and row["rows"] == json.dumps(sources, sort_keys=True))


def _encode_parts(key: str, rows: Sequence[TableRow], table_id: str | None) -> Iterator[str]:
    fields = [(field.name, field.kind == ColumnKind.TIMESTAMP) for field in TABLES[key]]
    columns, remaining = [name for name, _ in fields], iter(rows)
    while some := list(islice(remaining, _PART)):
        values = [[_encode_value(row.get(name), is_time) for name, is_time in fields] for row in some]
        whole = {"table_id": table_id, "columns": columns, "rows": values}
        # What is no Unicode is to fail here, before anything is written.
        yield json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _encode_value(value: Any, is_time: bool) -> Any:
    return value.isoformat() if is_time and value is not None else value


def check_release(unfinished: UnfinishedImport) -> None:
    """Raise UnfitError where a newer release has stored the import."""
    newer = newer_than(release(), unfinished.releases)
    if newer is not None:
        raise UnfitError(f"release {newer} stored it, which is newer than {release()}")


def decode_changes(key: str, parts: Iterable[TableRow], table_id: str | None) -> TableChanges:
    """Decode an import's changes to a table from the journal's rows. Raises UnfitError.

    ``table_id`` is that of the table that stands there, None where none does. Raises UnfitError where the rows are
    for another one, or cannot be read.
    """
    changes = TableChanges()
    if key not in ORDER:
        raise UnfitError(f"this release writes no tables.{key}")
    for part in sorted(parts, key=lambda row: row["part"]):
        try:
            whole = json.loads(part["rows"])
            columns, rows, named = whole["columns"], whole["rows"], whole["table_id"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise UnfitError(f"part {part['part']} of tables.{key} cannot be read") from error
        if named is not None and named != table_id:
            raise UnfitError(f"tables.{key} is another table than the one that it began to write")
        if part["action"] not in (PUT, REMOVE):
            raise UnfitError(f"tables.{key} has an action that is neither put nor remove")
        target_rows = changes.put if part["action"] == PUT else changes.remove
        target_rows.extend(_decode_rows(key, columns, rows))
    return changes


def _decode_rows(key: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[TableRow]:
    schema = TABLES[key]
    kinds = {field.name: field for field in schema}
    unknown = [name for name in columns if name not in kinds]
    if unknown:
        raise UnfitError(f"tables.{key} has no column {unknown[0]}")
    times = [name for name in columns if kinds[name].kind == ColumnKind.TIMESTAMP]
    for values in rows:
        row: TableRow = dict.fromkeys(schema.names)
        try:
            row.update(zip(columns, values, strict=True))
            for name in times:
                row[name] = None if row[name] is None else datetime.fromisoformat(row[name])
        except (ValueError, TypeError) as error:
            raise UnfitError(f"a row of tables.{key} cannot be read") from error
        wrong = [field.name for field in schema if not _fits(row[field.name], field.kind, field.nullable)]
        if wrong:
            raise UnfitError(f"a row of tables.{key} has no fitting {wrong[0]}")
        yield row


_TYPES = {
    ColumnKind.STRING: str,
    ColumnKind.INT: int,
    ColumnKind.BIGINT: int,
    ColumnKind.BOOLEAN: bool,
    ColumnKind.TIMESTAMP: datetime,
}


def _fits(value: Any, kind: Any, is_nullable: bool) -> bool:
    if value is None:
        return is_nullable
    if isinstance(kind, ArrayOf):
        return isinstance(value, list) and all(_fits(one, kind.element, is_nullable=True) for one in value)
    if kind == ColumnKind.TIMESTAMP:
        return isinstance(value, datetime) and value.tzinfo is not None
    is_right = type(value) is _TYPES[kind]
    return is_right and (type(value) is not int or abs(value) < 1 << (31 if kind == ColumnKind.INT else 63))


SMALL = Schema(tuple(field for field in TABLES["unfinished_imports"] if field.name != "rows"))
"""The journal's columns without the rows of tables, which may be many."""
