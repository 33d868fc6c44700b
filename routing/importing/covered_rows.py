"""Hold the rows of an import for the tables, the parts of the tables that it covers, and its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from routing.rules.text import fold
from routing.schemas import KEYS, TABLES, ColumnKind
from routing.tables.table_columns import Only
from routing.terms import ReadRow, TableRow

if TYPE_CHECKING:
    from routing.importing.tsql.script_statements import StatementProblem

Unit = tuple[str, str | None]
"""An instance and one of its databases, or None for objects of the instance itself."""

Doubt = tuple[str | None, str | None, str | None]
"""The likely instance, database and name of a rejected row, without case. Unknown parts are None."""


@dataclass
class CoveredRows:
    """Rows by table, and the covered units with their times for each exported view or script.

    Names have the spelling of the tables. None in a column of ``instances`` keeps the stored value.
    ``queue`` are the rows of transmission queues, each in the place of its message. ``without_endpoint`` are those
    without a conversation endpoint in the export.
    """

    rows: dict[str, list[TableRow]] = field(default_factory=dict)
    units: dict[str, dict[Unit, datetime]] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    rejected_of: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    doubts: dict[str, set[Doubt]] = field(default_factory=dict)
    queue: list[TableRow] = field(default_factory=list)
    without_endpoint: list[TableRow] = field(default_factory=list)

    def add(self, table: str, row: TableRow) -> None:
        """Add a row to a table."""
        self.rows.setdefault(table, []).append(row)

    def reject(self, view: str, row: ReadRow, why: str) -> None:
        """Leave a row out, and note its place and the reason."""
        name = row.get("name")
        name_text = f" ({name[:100]})" if isinstance(name, str) else ""
        self.rejected.append(f"{row['place']}: {why}{name_text}")
        self.rejected_of[view] += 1
        names = (row.get("instance_name"), row.get("database_name"), row.get("name"))
        folded = [name.casefold() if isinstance(name, str) else None for name in names]
        self.doubts.setdefault(view, set()).add((folded[0], folded[1], folded[2]))

    def is_doubtful(self, view: str, row: ReadRow) -> bool:
        """Return True if a row of a table may be a rejected one. The import does not change such rows."""
        doubts = self.doubts.get(view, set())
        columns = ("instance_name", "database_name", "name")
        instance, database, name = (str(row.get(column)).casefold() for column in columns)
        return any(doubt in doubts for doubt in product((None, instance), (None, database), (None, name)))

    @property
    def instances(self) -> list[str]:
        """All instances that are covered."""
        return sorted({instance for units in self.units.values() for instance, _ in units})


def unit_of(row: ReadRow) -> Unit:
    """Return the instance of a row and its database, or None for objects of the instance itself."""
    return row["instance_name"], row.get("database_name")


def list_some(names: Collection[str]) -> str:
    """Write the first ten names in their order, and count the others."""
    shown = ", ".join(sorted(names)[:10])
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown


def line_order(sentence: str) -> tuple[str, int]:
    """Return the sort key of sentences about rejected rows: file and row."""
    file, _, row_and_fault = sentence.partition(", row ")
    number = row_and_fault.partition(":")[0]
    return file, int(number) if number.isdecimal() else 0


# What came of an import.


@dataclass
class ImportResult:
    """The result of an import or of a dry run (``is_dry_run``).

    ``rows_read`` counts the read, rejected and skipped rows of views or statements of scripts, as ``counted``
    names them. ``written`` has the rows of each table by ``kinds``. ``rejected`` and ``notes`` are sentences.
    ``problems`` are the details behind those on scripts. ``files_skipped`` counts the files of folders without
    data to import.
    """

    kinds: ClassVar = ("added", "changed", "closed", "removed", "unchanged")
    is_dry_run: bool
    counted: Literal["rows", "statements"] = "rows"
    rows_read: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    written: dict[str, Counter[str]] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[StatementProblem] = field(default_factory=list)
    files_read: int = 0
    files_skipped: int = 0

    def count_written(self, table: str, counts: Mapping[str, int]) -> None:
        """Record the counts of rows written into a table."""
        self.written[table] = Counter(counts)

    def as_json(self) -> dict[str, object]:
        """Convert the result to plain values."""
        return {
            "dry_run": self.is_dry_run,
            "read": {
                name: {self.counted: count, "rejected": rejected, "left_out": left_out}
                for name, (count, rejected, left_out) in self.rows_read.items()
            },
            "written": {
                table: {kind: counts[kind] for kind in self.kinds if counts[kind]}
                for table, counts in self.written.items()
            },
            "rejected": self.rejected,
            "notes": self.notes,
        }


# The tables that an import writes: their columns and keys.


ON = {
    **KEYS,
    "messages": (
        *("instance_name", "database_name", "conversation_id", "is_initiator"),
        "message_sequence_number",
    ),
    "observed_routing": ("instance_name", "database_name", "message_id", "observed_at", "source"),
    "imports": ("instance_name", "database_name", "view_or_file", "exported_at", "content_digest"),
    "queues": ("instance_name", "database_name", "schema_name", "name"),
    "endpoint_counts": (
        *("instance_name", "database_name", "state"),
        *("service_name", "far_service", "is_initiator"),
    ),
}
EVENT_KEY = ("instance_name", "event_hash")
"""The key of events in ``observed_routing``, where rows of queues have another one."""
FOLDED = {"dialogs": ("conversation_id",), "messages": ("conversation_id",)}
"""Columns of a key that are compared without case."""


def name_message(row: TableRow) -> str:
    """Return the id of an imported message: conversation, role, number and sending database.

    Two databases of an instance may each have an endpoint of one conversation in one role (tables.md).
    """
    role = "I" if row["is_initiator"] else "T"
    parts = (row["conversation_id"], role, row["message_sequence_number"], row["database_name"])
    if None not in parts:
        return f"{parts[0]}:{role}:{parts[2]}:{parts[3]}"
    return ":".join(str(part) for part in parts if part is not None)


def key_of(table: str, row: TableRow) -> tuple[Any, ...]:
    """Return the key of a row of a table."""
    folded = FOLDED.get(table, ())
    values = ((name, row.get(name)) for name in ON[table])
    return tuple(fold(value) if name in folded and value is not None else value for name, value in values)


def bounds_of(table: str, rows: Iterable[TableRow]) -> Only:
    """Return the possible values of rows with one of these keys, by column.

    Only texts with exact comparison count, because the statistics of a file round times.
    """
    rows = list(rows)
    kinds = {field.name: field.kind for field in TABLES[table]}
    names = (n for n in ON[table] if kinds[n] == ColumnKind.STRING and n not in FOLDED.get(table, ()))
    values = {name: {row.get(name) for row in rows} for name in names}
    return {name: column_values for name, column_values in values.items() if None not in column_values}
