"""How a table is brought up to date: by delta-rs where it writes it rightly, else by Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from routing.config import TableLocation
from routing.delta import commits
from routing.delta.local_tables import LocalTable
from routing.errors import StorageError, first_sentence
from routing.importing.history import TableChanges
from routing.importing.keyed import FOLDED, ON
from routing.importing.replaced_rows import rows_to_add, stream_changed, stream_rows
from routing.importing.stored_rows import find_keys, find_missing
from routing.schemas import TABLES, ColumnKind, Field, Schema
from routing.terms import TableRow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableWriter(Protocol):
    """Writes one table, each time in one commit at most. What writes raises StorageError."""

    def find_newest(self) -> int | None:
        """Return the newest version of the table; None where there is none."""

    def make(self) -> None:
        """Create the table with its declared columns."""

    def add_columns(self) -> None:
        """Add the columns that the table lacks."""

    def put(self, changes: TableChanges) -> None:
        """Replace rows by key, add the others, and delete removed ones."""

    def add(self, rows: Sequence[TableRow], on: Sequence[str]) -> None:
        """Add rows, of which no key (columns ``on``) stands in the table."""

    def replace(self, rows: Iterable[TableRow]) -> None:
        """Replace all rows, in their declared columns; create the table if it is missing."""


@dataclass
class LocalWriter:
    """By delta-rs."""

    key: str
    location: TableLocation
    # None until it is made.
    stored: LocalTable | None

    def find_newest(self) -> int | None:
        """Return the newest version; None without a table."""
        return commits.newest_version(self.location)

    def make(self) -> None:
        """Create the table by delta-rs."""
        with _phrase_failures("creating", self.key, self.location):
            self.stored = LocalTable.make(self.location, TABLES[self.key])

    def add_columns(self) -> None:
        """Add the columns that the table lacks."""
        with _phrase_failures("creating", self.key, self.location):
            table, schema = self._require_table(), TABLES[self.key]
            missing = find_missing(table.rows(), schema)
            table.add_columns(field for field in schema if field.name in missing)

    def put(self, changes: TableChanges) -> None:
        """Replace rows by key; where the table has no such key the rows are appended."""
        with _phrase_failures("writing", self.key, self.location):
            table = self._require_table()
            current_rows = table.rows()
            if find_keys(current_rows, self.key, [*changes.put, *changes.remove]):
                table.commit(stream_changed(current_rows, self.key, changes), adds=False)
            elif changes.put:
                table.commit(rows_to_add(current_rows.schema, self.key, changes.put), adds=True)

    def add(self, rows: Sequence[TableRow], on: Sequence[str]) -> None:
        """Append rows by delta-rs."""
        with _phrase_failures("writing", self.key, self.location):
            table = self._require_table()
            table.commit(rows_to_add(table.rows().schema, self.key, rows), adds=True)

    def replace(self, rows: Iterable[TableRow]) -> None:
        """Replace all rows by delta-rs."""
        with _phrase_failures("writing", self.key, self.location):
            if self.stored is None:
                self.stored = LocalTable.make_of(self.location, stream_rows(TABLES[self.key], rows))
            else:
                self.stored.commit(stream_rows(TABLES[self.key], rows), adds=False)

    def _require_table(self) -> LocalTable:
        if self.stored is None:
            raise ValueError("the table is not there")
        return self.stored


@dataclass(frozen=True)
class SparkWriter:
    """By Spark, one MERGE each time."""

    key: str
    location: TableLocation
    spark: SparkSession

    def find_newest(self) -> int | None:
        """Return the newest version; None without a table."""
        from routing.delta import spark_tables

        return spark_tables.current_version(self, self.location)

    def make(self) -> None:
        """Create the table by Spark."""
        from routing.delta import spark_tables

        spark_tables.create_if_missing(self.spark, self.key, self.location, TABLES[self.key])

    def add_columns(self) -> None:
        """Add the columns that the table lacks."""
        self.make()

    def put(self, changes: TableChanges) -> None:
        """Merge changed rows into the table and delete removed ones."""
        from routing.delta.spark_tables import REMOVE

        flagged = [{**row, REMOVE: False} for row in changes.put] + [
            {**row, REMOVE: True} for row in changes.remove
        ]
        schema = Schema((*TABLES[self.key].optional(), Field(REMOVE, ColumnKind.BOOLEAN)))
        self._merge(flagged, schema, ON[self.key])

    def add(self, rows: Sequence[TableRow], on: Sequence[str]) -> None:
        """Add rows whose key the table lacks."""
        self._merge(rows, TABLES[self.key], on, insert_only=True)

    def replace(self, rows: Iterable[TableRow]) -> None:
        """Replace all rows by an overwrite of Spark's."""
        from routing.delta import spark_tables
        from routing.tables import frames

        frame = frames.frame_of(self.spark, rows, TABLES[self.key].optional())
        spark_tables.replace_rows(frame, self.key, self.location)

    def _merge(
        self, rows: Sequence[TableRow], schema: Schema, on: Sequence[str], *, insert_only: bool = False
    ) -> None:
        from routing.delta import spark_tables
        from routing.tables import frames

        frame = frames.frame_of(self.spark, rows, schema)
        folded = FOLDED.get(self.key, ())
        spark_tables.merge(frame, self.key, self.location, on, folded=folded, insert_only=insert_only)


@contextmanager
def _phrase_failures(doing: str, key: str, location: TableLocation) -> Iterator[None]:
    """Raise every failure inside as StorageError."""
    try:
        yield
    except Exception as error:
        what = "at" if doing == "creating" else "to"
        raise StorageError.failed(f"{doing} tables.{key} {what} {location}", first_sentence(error)) from error
