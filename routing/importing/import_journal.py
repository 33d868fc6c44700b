"""Convert the changes of an import into rows of the table ``unfinished_imports`` and back, in pure Python.

A row has a part of the rows of one table as one JSON object. ``table_id`` is their table and ``columns`` are its
column names. ``rows`` has a list of values for each row, with times as ISO 8601 in UTC. ``parts`` is the number of
all parts of the import, and the final ``digest`` is that of the part. Release 0.2.0 stored neither. Its imports
are completed if no part is duplicate or missing before another. Part 0 has no rows of a table. It has the
``files`` and ``instance`` of an import of events.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from routing.delta.counted_runs import newer_than, release
from routing.importing.history import TableChanges
from routing.importing.import_files import is_writable
from routing.schemas import TABLES, ArrayOf, ColumnKind, Schema
from routing.terms import JsonObject, TableRow

ORDER = (
    *("databases", "services", "instances", "routes", "dialogs", "queues", "endpoint_counts"),
    *("messages", "observed_routing", "imports"),
)
"""The order in which an import commits its tables: no message comes before the routes of its time."""
APPENDED = ("messages", "observed_routing")
"""The tables that rows are only added to."""
PUT, REMOVE = "put", "remove"
_PART = 2_000
_SOURCES = 0
_DIGEST = re.compile(r',"digest":"([0-9a-f]{64})"\}\Z')
_OF_DIGEST = ("import_id", "table_key", "action", "part", "release")


class UnfitError(ValueError):
    """A part that this release cannot write to the current tables. The text explains why."""


@dataclass(frozen=True)
class UnfinishedImport:
    """An import with rows in the journal, and its tables. It has no tables if it streams events.

    ``parts`` counts its rows by table, action and part. ``started_at`` is None if the journal does not have it.
    """

    import_id: str
    started_at: datetime | None
    releases: tuple[str, ...]
    parts: Mapping[tuple[Any, Any, Any], int]

    @property
    def table_keys(self) -> tuple[str, ...]:
        """The tables that it writes, in the order of writing."""
        return in_order({str(key) for key, _, part in self.parts if part != _SOURCES})

    @property
    def is_of_events(self) -> bool:
        """Return whether the import streams, so that the journal does not hold its rows."""
        return not self.table_keys


def list_unfinished(rows: Iterable[TableRow]) -> list[UnfinishedImport]:
    """Return the imports in the journal, the oldest first. Rows have the columns of `SMALL`."""
    rows_by_id: dict[str, list[TableRow]] = {}
    for row in rows:
        rows_by_id.setdefault(str(row["import_id"]), []).append(row)
    unfinished = [
        UnfinishedImport(
            import_id,
            min((row["started_at"] for row in import_rows if row["started_at"] is not None), default=None),
            tuple({str(row["release"]) for row in import_rows}),
            Counter((row["table_key"], row["action"], row["part"]) for row in import_rows),
        )
        for import_id, import_rows in rows_by_id.items()
    ]
    return sorted(unfinished, key=lambda entry: (entry.started_at is None, str(entry.started_at), entry.import_id))


def check_parts(unfinished: UnfinishedImport) -> None:
    """Raise UnfitError if the numbers of an import's parts show missing or duplicate parts."""
    counts = Counter[tuple[str, str]]()
    for (key, action, part), times in unfinished.parts.items():
        if key is None or action not in (PUT, REMOVE) or not isinstance(part, int):
            raise UnfitError(f"a part of tables.{key} lacks its number, its action or its table")
        if times > 1:
            raise UnfitError(f"part {part} of tables.{key} ({action}) is in the journal {times} times")
        counts[key, action] += 1
    for (key, action), count in counts.items():
        missing = next((n for n in range(1, count + 1) if (key, action, n) not in unfinished.parts), None)
        if missing is not None:
            raise UnfitError(f"part {missing} of tables.{key} ({action}) is missing")


def in_order(keys: Iterable[str]) -> tuple[str, ...]:
    """Return keys of tables in the order of writing. Keys that this release does not know come last."""
    return tuple(sorted(keys, key=lambda key: (ORDER.index(key) if key in ORDER else len(ORDER), key)))


def encode_changes(
    import_id: str, started_at: datetime, changes: Mapping[str, TableChanges], table_ids: Mapping[str, str | None]
) -> Iterator[TableRow]:
    """Yield the journal's rows for the changes of an import. Each has some rows of a table.

    ``table_ids`` are those of the changed tables, or None for a new table.
    """
    import_columns = {"import_id": import_id, "started_at": started_at, "release": release()}
    lists = [
        (key, *row) for key, change in changes.items() for row in ((PUT, change.put), (REMOVE, change.remove))
    ]
    part_count = sum(-(-len(rows) // _PART) for _, _, rows in lists)
    for key, action, rows in lists:
        for part, text in enumerate(_encode_parts(key, rows, table_ids[key], part_count), _SOURCES + 1):
            row = {**import_columns, "table_key": key, "action": action, "part": part}
            yield {**row, "rows": f'{text[:-1]},"digest":"{_digest(row, text[:-1])}"}}'}


def _digest(row: TableRow, text: str) -> str:
    """Return the digest of a part. ``text`` is the beginning of its JSON, with all rows."""
    return hashlib.sha256(json.dumps([*(row[name] for name in _OF_DIGEST), text]).encode()).hexdigest()


def encode_sources(import_id: str, started_at: datetime, key: str, sources: Mapping[str, object]) -> TableRow:
    """Return the journal's one row for an import that streams from sources to a table."""
    return {
        "import_id": import_id,
        "started_at": started_at,
        "release": release(),
        "table_key": key,
        "action": PUT,
        "part": _SOURCES,
        "rows": json.dumps(sources, sort_keys=True),
    }


def is_of_sources(row: TableRow, sources: Mapping[str, object]) -> bool:
    """Return whether a row of the journal belongs to an import that streams from these sources."""
    return bool(row["part"] == _SOURCES and row["rows"] == json.dumps(sources, sort_keys=True))


def _encode_parts(key: str, rows: Sequence[TableRow], table_id: str | None, part_count: int) -> Iterator[str]:
    fields = [(field.name, field.kind == ColumnKind.TIMESTAMP) for field in TABLES[key]]
    columns, remaining = [name for name, _ in fields], iter(rows)
    while part_rows := list(islice(remaining, _PART)):
        values = [[_encode_value(row.get(name), is_time) for name, is_time in fields] for row in part_rows]
        whole = {"table_id": table_id, "columns": columns, "rows": values, "parts": part_count}
        # Text that is not Unicode must fail here, before anything is written.
        yield json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _encode_value(value: Any, is_time: bool) -> Any:
    return value.isoformat() if is_time and value is not None else value


def check_release(unfinished: UnfinishedImport) -> None:
    """Raise UnfitError if a newer release has stored the import."""
    newer = newer_than(release(), unfinished.releases)
    if newer is not None:
        raise UnfitError(f"release {newer} stored it, which is newer than {release()}")


def decode_changes(
    unfinished: UnfinishedImport, key: str, parts: Iterable[TableRow], table_id: str | None
) -> TableChanges:
    """Decode an import's changes to a table from journal rows with verified numbers (`check_parts`).

    ``table_id`` is that of the existing table, or None. Raises UnfitError if the rows belong to another table or
    were altered.
    """
    changes = TableChanges()
    if key not in ORDER:
        raise UnfitError(f"this release does not write tables.{key}")
    for part in sorted(parts, key=lambda row: row["part"]):
        whole = _decode_part(unfinished, part)
        if whole["table_id"] is not None and whole["table_id"] != table_id:
            raise UnfitError(f"tables.{key} is not the table that the import began to write")
        target_rows = changes.put if part["action"] == PUT else changes.remove
        target_rows.extend(_decode_rows(key, whole["columns"], whole["rows"]))
    return changes


def _decode_part(unfinished: UnfinishedImport, part: TableRow) -> JsonObject:
    """Decode the JSON of a part, and check its digest and the number of parts. Raises UnfitError."""
    name = f"part {part['part']} of tables.{part['table_key']}"
    text = str(part["rows"])
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnfitError(f"{name} cannot be read") from error
    whole: JsonObject = loaded if isinstance(loaded, dict) else {}
    if "table_id" not in whole or not all(isinstance(whole.get(name), list) for name in ("columns", "rows")):
        raise UnfitError(f"{name} cannot be read")
    if "parts" not in whole and "digest" not in whole and newer_than("0.2.0", unfinished.releases) is None:
        return whole
    digest = _DIGEST.search(text)
    if digest is None or digest.group(1) != _digest(part, text[: digest.start()]):
        raise UnfitError(f"{name} differs from the stored import")
    if whole["parts"] != len(unfinished.parts):
        raise UnfitError(f"the journal has {len(unfinished.parts)} of its {whole['parts']} parts")
    return whole


def _decode_rows(key: str, columns: Sequence[Any], rows: Iterable[Sequence[Any]]) -> Iterator[TableRow]:
    schema = TABLES[key]
    kinds = {field.name: field for field in schema}
    unknown = [name for name in columns if not isinstance(name, str) or name not in kinds]
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
            raise UnfitError(f"a row of tables.{key} has an invalid {wrong[0]}")
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
        return isinstance(value, list) and all(_fits(element, kind.element, is_nullable=True) for element in value)
    if kind == ColumnKind.TIMESTAMP:
        return isinstance(value, datetime) and value.tzinfo is not None
    # JSON can name half of a character, which no table can hold.
    is_right = type(value) is _TYPES[kind] and is_writable(value)
    return is_right and (type(value) is not int or abs(value) < 1 << (31 if kind == ColumnKind.INT else 63))


SMALL = Schema(tuple(field for field in TABLES["unfinished_imports"] if field.name != "rows"))
"""The journal's columns without the rows of tables, which may be many."""
