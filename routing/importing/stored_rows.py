"""Find stored rows of a table, and add or replace rows for an import.

delta-rs writes a table if it supports its features, otherwise Spark does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.config import TableLocation
from routing.delta import commits
from routing.delta.local_tables import LocalTable, write_new
from routing.importing.covered_rows import FOLDED, ON, bounds_of, key_of
from routing.importing.history import TableChanges
from routing.run_context import reporting_failures
from routing.schemas import MESSAGES, TABLES, ColumnKind, Field, Schema
from routing.tables.arrow_forms import fold_texts
from routing.tables.arrow_rows import arrow_schema, table_of
from routing.tables.read_rows import read_rows, rows_of_arrow
from routing.tables.table_columns import Table, by_engine, select_arrow, spell, types_of
from routing.terms import TableRow

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset
    from pyspark.sql import DataFrame, SparkSession

# Keys and columns of the tables that an import writes.


def find_keys(table: Table, key: str, rows: Sequence[TableRow]) -> set[tuple[Any, ...]]:
    """Return the keys of these rows that are in a table."""
    if not rows:
        return set()
    schema = key_columns(key)
    matching_rows = by_engine(
        {key: table},
        spark=lambda: find_in_frame(table, schema, rows),
        arrow=lambda: read_rows(table, schema, only=bounds_of(key, rows)),
    )
    return {key_of(key, row) for row in rows} & {key_of(key, row) for row in matching_rows}


def find_in_frame(frame: Any, key: Schema, rows: Sequence[TableRow]) -> list[TableRow]:
    """Return the keys, columns of a schema, of those rows of a DataFrame that some rows have too."""
    from routing.tables.frames import frame_of, with_columns_of

    rows_to_find = frame_of(frame.sparkSession, rows, key.optional())
    return read_rows(with_columns_of(frame, key).join(rows_to_find, list(key.names), "left_semi"), key)


def key_columns(key: str) -> Schema:
    """Return the columns of a table's key."""
    return TABLES[key].only(*ON[key])


def find_missing(table: Table, schema: Schema) -> list[str]:
    """Return the columns that a table lacks."""
    stored_names = {name.lower() for name in types_of(table)}
    return [name for name in schema.names if name not in stored_names]


# Which messages of an import are stored, and under which ids: the rows are matched by Arrow or by Spark.
# A message is identified by instance, database, conversation, role and number (tables.md), not by its id: rows of
# older releases and of other sources have ids of other forms.


_ID, _PLACE = "message_id", "place"
_KNOWN_BY = MESSAGES.optional().only(*ON["messages"])
_READ = Schema((*_KNOWN_BY, Field(_ID, ColumnKind.STRING)))
_CONVERSATION, _DATABASE = "conversation_id", "database_name"


def find_message_ids(table: Table, rows: Sequence[TableRow]) -> list[str | None]:
    """Return the stored id of the message for each row, or None if it is not stored.

    ``rows`` are of ``messages`` or ``observed_routing``. No database equals an empty name. The first id counts if
    several stored messages are equal. A row without role or number belongs to no message.
    """
    ids: list[str | None] = [None] * len(rows)
    if rows:
        matches = by_engine(
            {"messages": table},
            spark=lambda: _find_in_spark(table, rows),
            arrow=lambda: _find_in_arrow(table, rows),
        )
        for place, message_id in matches:
            ids[place] = message_id
    return ids


def with_stored_ids(rows: Sequence[TableRow], ids: Sequence[str | None]) -> list[TableRow]:
    """Return observations with the ids of their stored messages. Others keep their own id."""
    return [
        row if stored_id is None else {**row, "message_id": stored_id}
        for row, stored_id in zip(rows, ids, strict=True)
    ]


def _find_in_arrow(table: Any, rows: Sequence[TableRow]) -> Iterable[tuple[int, str]]:
    import pyarrow
    from pyarrow import compute

    names = spell(table)
    rows_to_find = _compare(table_of(rows, _KNOWN_BY)).append_column(_PLACE, pyarrow.array(range(len(rows))))
    # Compared while files are read, so that no more comes to memory than may be meant.
    instance, conversation = (compute.field(names[name]) for name in ("instance_name", _CONVERSATION))
    may_be_meant = instance.isin(_values_in(rows_to_find["instance_name"]))
    may_be_meant &= fold_texts(conversation).isin(_values_in(rows_to_find[_CONVERSATION]))
    read = select_arrow(table, [names[name] for name in _READ.names if name in names], may_be_meant)
    stored_names = spell(read)
    stored = pyarrow.table(
        {
            name: read[stored_names[name]].cast(kind.type)
            if name in stored_names
            else pyarrow.nulls(len(read), kind.type)
            for name, kind in zip(_READ.names, arrow_schema(_READ), strict=True)
        }
    )
    stored = _compare(stored).group_by(_KNOWN_BY.names).aggregate([(_ID, "min")])
    matches = rows_to_find.join(stored, _KNOWN_BY.names, join_type="inner")
    return zip(matches[_PLACE].to_pylist(), matches[f"{_ID}_min"].to_pylist(), strict=True)


def _compare(rows: pyarrow.Table) -> pyarrow.Table:
    """Return rows with normalized conversations and databases."""
    from pyarrow import compute

    for name, values in (
        (_CONVERSATION, fold_texts(rows[_CONVERSATION])),
        (_DATABASE, compute.fill_null(rows[_DATABASE], "")),
    ):
        rows = rows.set_column(rows.column_names.index(name), name, values)
    return rows


def _values_in(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    return column.unique().drop_null()


def _find_in_spark(table: DataFrame, rows: Sequence[TableRow]) -> Iterable[tuple[int, str]]:
    from pyspark.sql import functions as F

    from routing.tables.frames import frame_of, with_columns_of

    def compare(frame: DataFrame) -> DataFrame:
        return frame.withColumns(
            {_CONVERSATION: F.lower(_CONVERSATION), _DATABASE: F.coalesce(_DATABASE, F.lit(""))}
        )

    schema = Schema((*_KNOWN_BY, Field(_PLACE, ColumnKind.INT)))
    rows_to_find = frame_of(table.sparkSession, [{**row, _PLACE: place} for place, row in enumerate(rows)], schema)
    stored = compare(with_columns_of(table, _READ)).join(compare(rows_to_find), _KNOWN_BY.names, how="inner")
    return [(row[0], row[1]) for row in stored.groupBy(_PLACE).agg(F.min(_ID)).collect()]


# A table's rows as Arrow streams them, with changed rows in their places; all others pass through as they are.


Key = tuple[Any, ...]


def stream_changed(table: pyarrow.dataset.Dataset, key: str, changes: TableChanges) -> pyarrow.RecordBatchReader:
    """Stream all rows of a table after the changes. Columns outside this import keep their values."""
    import pyarrow

    # What may not be null is looked at when it is written.
    schema = pyarrow.schema([field.with_nullable(True) for field in table.schema])
    return pyarrow.RecordBatchReader.from_batches(schema, _batches(table, schema, key, changes))


def stream_rows(schema: Schema, rows: Iterable[TableRow]) -> pyarrow.RecordBatchReader:
    """Return rows in the columns of a schema, one batch each, because a row is large."""
    import pyarrow

    kinds = arrow_schema(schema.optional())
    batches = (batch for row in rows for batch in table_of([row], schema).cast(kinds).to_batches())
    return pyarrow.RecordBatchReader.from_batches(kinds, batches)


def rows_to_add(schema: pyarrow.Schema, key: str, rows: Sequence[TableRow]) -> pyarrow.Table:
    """Build new rows in the columns of a table, with null in columns outside this import."""
    import pyarrow

    nulls = pyarrow.table([pyarrow.nulls(len(rows), field.type) for field in schema], schema=schema)
    return _put_values(nulls, key, rows)


def _batches(
    table: pyarrow.dataset.Dataset, schema: pyarrow.Schema, key: str, changes: TableChanges
) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows that stay, each part followed by replaced rows, and the new rows at the end."""
    import pyarrow

    put = {key_of(key, row): row for row in changes.put}
    touched = {**put, **{key_of(key, row): None for row in changes.remove}}
    bounds = bounds_of(key, [*changes.put, *changes.remove])
    replaced_keys: set[Key] = set()
    for batch in table.to_batches():
        part = pyarrow.Table.from_batches([batch]).cast(schema)
        places = _find_places(part, key, bounds, touched)
        if not places:
            yield from part.to_batches()
            continue
        replaced_keys.update(places.values())
        kept_places = sorted(set(range(part.num_rows)) - set(places))
        yield from part.take(pyarrow.array(kept_places, pyarrow.int64())).to_batches()
        replaced = {place: put[of] for place, of in places.items() if of in put}
        replaced_rows = part.take(pyarrow.array(replaced, pyarrow.int64()))
        yield from _put_values(replaced_rows, key, list(replaced.values())).to_batches()
    new = [row for of, row in put.items() if of not in replaced_keys]
    yield from rows_to_add(schema, key, new).to_batches()


def _find_places(
    part: pyarrow.Table, key: str, bounds: Mapping[str, Iterable[object]], touched: Mapping[Key, Any]
) -> dict[int, Key]:
    """Return the keys of touched rows by position. Only rows within the bounds become Python objects."""
    import pyarrow
    from pyarrow import compute

    names = spell(part)
    near = pyarrow.array([True] * part.num_rows)
    for name, values in bounds.items():
        column = part[names[name]]
        near = compute.and_(near, compute.is_in(column, value_set=pyarrow.array(list(values), column.type)))
    places = compute.indices_nonzero(near)
    columns = key_columns(key)
    present = [names[name] for name in columns.names if name in names]
    rows = rows_of_arrow(part.select(present).take(places), columns)
    keys = ((place, key_of(key, row)) for place, row in zip(places.to_pylist(), rows, strict=True))
    return {place: of for place, of in keys if of in touched}


def _put_values(part: pyarrow.Table, key: str, rows: Sequence[TableRow]) -> pyarrow.Table:
    names, new_rows = spell(part), table_of(rows, TABLES[key])
    for name in new_rows.column_names:
        place = part.schema.get_field_index(names[name])
        field = part.schema.field(place)
        part = part.set_column(place, field, new_rows[name].cast(field.type))
    return part


@dataclass
class LocalWriter:
    """Writes one table by delta-rs, with at most one commit for each call. Write methods raise StorageError."""

    key: str
    location: TableLocation
    # None until it is made.
    stored: LocalTable | None

    def find_newest(self) -> int | None:
        """Return the newest version, or None without a table."""
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
        """Replace rows by key, and append rows with new keys."""
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
                self.stored = write_new(self.location, stream_rows(TABLES[self.key], rows))
            else:
                self.stored.commit(stream_rows(TABLES[self.key], rows), adds=False)

    def _require_table(self) -> LocalTable:
        if self.stored is None:
            raise ValueError("the table is not there")
        return self.stored


@dataclass(frozen=True)
class SparkWriter:
    """Writes one table by Spark, with the methods of `LocalWriter` and one MERGE each time."""

    key: str
    location: TableLocation
    spark: SparkSession

    def find_newest(self) -> int | None:
        """Return the newest version, or None without a table."""
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

        flagged = [{**row, REMOVE: False} for row in changes.put]
        flagged += [{**row, REMOVE: True} for row in changes.remove]
        schema = Schema((*TABLES[self.key].optional(), Field(REMOVE, ColumnKind.BOOLEAN)))
        self._merge(flagged, schema, ON[self.key])

    def add(self, rows: Sequence[TableRow], on: Sequence[str]) -> None:
        """Add rows with keys that the table lacks."""
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
        spark_tables.merge(frame, f"tables.{self.key}", self.location, on, folded=folded, insert_only=insert_only)


TableWriter = LocalWriter | SparkWriter


def _phrase_failures(doing: str, key: str, location: TableLocation) -> AbstractContextManager[None]:
    return reporting_failures(f"{doing} tables.{key} {'at' if doing == 'creating' else 'to'} {location}")
