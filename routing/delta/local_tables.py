"""Read and write local Delta tables with delta-rs (`deltalake`), without a JVM, if it handles them correctly.

Tables of reader version 1 are read through Arrow datasets if their files are in their folder. delta-rs silently
ignores features of later versions (deletion vectors, column mapping, further types), or fails. Its own readers
give wrong times for the years 1 and 9999 in files of Spark. For the same reason only complete rows are written
here, because its MERGE, UPDATE and DELETE would use those readers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from routing.config import TableLocation
from routing.delta.commits import has_commits
from routing.delta.data_files import DataFile, DataFiles, RowSource
from routing.schemas import Field, Schema
from routing.tables.arrow_rows import arrow_schema
from routing.tables.table_columns import as_dataset
from routing.terms import JsonObject

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset
    from deltalake import DeltaTable

# Table features, checks, generated columns and change data feeds need a later writer version.
_READER, _WRITER = 1, 2
# delta-rs reads a path as a URL. For these paths it opens another folder, or the process ends.
_MISTAKEN = re.compile(r"[\x00-\x1f\x7f%\[\]\\^|]|/\.\.(?:/|\Z)")
# A path in a log that is not inside the table's folder.
_ELSEWHERE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_APPEND_ONLY = "delta.appendOnly"
# How Arrow writes a bound that is null.
_NULL_BOUND = "= null["
# The number of tries to commit while other writers commit too.
_TRIES = 20
# The property of a field in which Spark stores the length of texts, and how it writes a fixed length.
_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
_FIXED = re.compile(r"(?<!var)char\(")


@dataclass(frozen=True)
class UnreadableTable:
    """The reason why delta-rs does not read or write a table."""

    why: str


def look_at_path(location: TableLocation) -> UnreadableTable | None:
    """Return the reason why delta-rs cannot use a table at a local path, or None if it can."""
    if find_spec("deltalake") is None or find_spec("pyarrow") is None:
        return UnreadableTable("deltalake is not installed")
    return UnreadableTable("its path is one that deltalake mistakes") if _MISTAKEN.search(location.text) else None


def open_local(location: TableLocation, version: int | None = None) -> DeltaTable | UnreadableTable:
    """Open a table on this disk at a version or the newest, or return the reason why delta-rs cannot."""
    unfit = look_at_path(location)
    if unfit is not None:
        return unfit
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        table = DeltaTable(location.text, version=version)
    except DeltaError:
        # Spark then reads the table or reports what is wrong with it.
        return UnreadableTable("deltalake cannot open it")
    return _look_at_reading(table) or table


def _look_at_reading(table: DeltaTable) -> UnreadableTable | None:
    """Return the reason why delta-rs would read an open table incorrectly, or None if it reads it correctly."""
    import pyarrow

    reader = table.protocol().min_reader_version
    if reader != _READER:
        return UnreadableTable(f"its reader version is {reader}")
    # The files may have shorter texts, which Spark pads while it reads them.
    if any(_FIXED.search(str(field["metadata"].get(_LENGTH, ""))) for field in _fields_of(table)):
        return UnreadableTable("a column has texts of a fixed length, which are filled up with blanks")
    # The files of a shallow clone belong to another table.
    paths = pyarrow.table(table.get_add_actions())["path"].to_pylist()
    return UnreadableTable("files of it lie elsewhere") if any(map(_ELSEWHERE.match, paths)) else None


def find_id(location: TableLocation) -> str | None:
    """Return the id of a table on this disk, or None if only Spark can read it. A recreated table has a new id."""
    if not has_commits(location) or look_at_path(location) is not None:
        return None
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return str(DeltaTable(location.text).metadata().id)
    except DeltaError:
        return None


def dataset_of(folder: str, table: DeltaTable) -> pyarrow.dataset.Dataset:
    """Return the rows of an open table without reading them yet. Times in files of Spark are microseconds."""
    from pyarrow.dataset import ParquetReadOptions
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    options: Any = ParquetReadOptions(coerce_int96_timestamp_unit="us")
    # With the Python file system of delta-rs, every third process aborts when it ends (delta-rs issue 2184).
    files = SubTreeFileSystem(folder, LocalFileSystem())
    rows = table.to_pyarrow_dataset(filesystem=files, parquet_read_options=options)
    return as_dataset(_without_null_bounds(rows, table))


def _without_null_bounds(rows: Any, table: DeltaTable) -> pyarrow.dataset.Dataset:
    """Return a dataset without misleading statistics.

    The log may have only the minimum or the maximum of a column, for example for invalid UTF-8. delta-rs then
    makes Arrow treat all values as less than null, so that no condition selects any row of the file.
    """
    from pyarrow.dataset import FileSystemDataset

    files = list(rows.get_fragments())
    doubtful = [_NULL_BOUND in str(file.partition_expression) for file in files]
    if not any(doubtful):
        return rows
    partitions = _partitions_of(table)
    safe = [
        rows.format.make_fragment(file.path, rows.filesystem, partitions[file.path]) if is_doubtful else file
        for file, is_doubtful in zip(files, doubtful, strict=True)
    ]
    return FileSystemDataset(safe, rows.schema, rows.format, rows.filesystem)


def _partitions_of(table: DeltaTable) -> JsonObject:
    """Return the partition values of each file as a condition for Arrow."""
    import pyarrow
    import pyarrow.compute as pc

    names, conditions = table.metadata().partition_columns, {}
    for row in pyarrow.table(table.get_add_actions(flatten=True)).to_pylist():
        condition = pc.scalar(True)
        for name in names:
            value = row[f"partition.{name}"]
            condition &= pc.field(name).is_null() if value is None else pc.field(name) == value
        # The log writes paths as URLs.
        conditions[unquote(row["path"])] = condition
    return conditions


def write_new(location: TableLocation, rows: pyarrow.Table | pyarrow.RecordBatchReader) -> LocalTable:
    """Create a table of these rows in one commit. Raises DeltaError if a table exists."""
    from deltalake import write_deltalake

    write_deltalake(location.text, rows, mode="error", commit_properties=_only_next())
    return open_to_write(location)


def look_at_writing(folder: str, table: DeltaTable) -> LocalTable | UnreadableTable:
    """Return a table of reader version 1 for delta-rs to write, or the reason why it cannot write it correctly.

    Supported features are listed here. Spark writes tables with others, such as further writer versions,
    partitions, and columns with more than a comment, such as checks and lengths.
    """
    protocol, metadata = table.protocol(), table.metadata()
    if protocol.min_writer_version > _WRITER or protocol.writer_features:
        return UnreadableTable(f"its writer version is {protocol.min_writer_version}")
    if metadata.partition_columns:
        return UnreadableTable("it is partitioned")
    if metadata.configuration.get(_APPEND_ONLY, "false").lower() != "false":
        return UnreadableTable(f"it has the property {_APPEND_ONLY}")
    if any(field["type"] == "void" or set(field["metadata"]) - {"comment"} for field in _fields_of(table)):
        return UnreadableTable("a column has more than a name and a type")
    return LocalTable(folder, table)


def _fields_of(table: DeltaTable) -> Iterator[JsonObject]:
    """Return every field of a table, including nested ones, as its log writes it."""
    return _fields(json.loads(table.schema().to_json()))


def _fields(schema: object) -> Iterator[JsonObject]:
    """Yield every field in a schema, or in a part of one."""
    if isinstance(schema, dict):
        if "metadata" in schema:
            yield schema
        for part in schema.values():
            yield from _fields(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _fields(part)


@dataclass(frozen=True)
class LocalTable:
    """A table that delta-rs writes. Each write is one commit, right after the known version."""

    folder: str
    table: DeltaTable

    @classmethod
    def make(
        cls,
        location: TableLocation,
        schema: Schema,
        *,
        properties: Mapping[str, str] | None = None,
    ) -> LocalTable:
        """Create an empty table of reader version 1, with these properties and without table features."""
        from deltalake import DeltaTable

        created = DeltaTable.create(
            location.text,
            arrow_schema(schema),
            configuration=properties,
            commit_properties=_only_next(),
        )
        return cls(location.text, created)

    def holds_the_same(self, version: int) -> bool:
        """Return True if the table has the same files and columns as at an earlier version."""
        from deltalake import DeltaTable

        before = DeltaTable(self.folder, version=version)
        return _paths(before) == _paths(self.table) and before.schema() == self.table.schema()

    def is_empty(self) -> bool:
        """Return True if the table has no files with rows."""
        return not _paths(self.table) or self.rows().count_rows() == 0

    def restore(self, version: int, metadata: str) -> None:
        """Restore the table to an earlier version, in one commit."""
        self.table.restore(version, commit_properties=_only_next(metadata))

    def replace_rows(
        self, rows: RowSource, schema: Schema, measured: Collection[str] = (), metadata: str | None = None
    ) -> LocalTable:
        """Replace all rows in one commit, and return the table at its new version.

        The new rows are created while they are written. The log gets the minimum and maximum of the ``measured``
        columns.
        """
        from deltalake import DeltaTable

        with DataFiles(Path(self.folder), measured) as files:
            rows.write_to(files)
            files.close()
        self.commit_files(files, schema, adds=False, metadata=metadata)
        return LocalTable(self.folder, DeltaTable(self.folder, version=self.version + 1))

    def commit_files(self, files: DataFiles, schema: Schema, *, adds: bool, metadata: str | None) -> None:
        """Append closed files to the table, or replace all its files by them.

        If the commit fails, the files are removed again. The table keeps its columns and comments, and gets the
        missing columns of the schema.
        """
        try:
            self._commit_files(files.written, schema, adds=adds, metadata=metadata)
        except Exception:
            # delta-rs may fail after a successful commit.
            if not self._may_be_in_log(files.written):
                files.remove()
            raise

    def _may_be_in_log(self, files: Sequence[DataFile]) -> bool:
        """Return True if the commit after the known version names one of the files, or is damaged."""
        log = Path(self.folder, "_delta_log", f"{self.version + 1:020d}.json")
        if not log.exists():
            return False
        text = log.read_text(encoding="utf-8", errors="replace").rstrip()
        return any(file.name in text for file in files) or not text.endswith("}")

    def _commit_files(
        self, files: Sequence[DataFile], schema: Schema, *, adds: bool, metadata: str | None
    ) -> None:
        from deltalake import Schema as DeltaSchema
        from deltalake.transaction import AddAction

        actions = [
            AddAction(file.name, file.size, {}, file.modified_at, data_change=True, stats=file.statistics)
            for file in files
        ]
        own_fields = self.table.schema().fields
        names = {field.name for field in own_fields}
        wanted = DeltaSchema.from_arrow(arrow_schema(schema.optional())).fields
        shape = DeltaSchema([*own_fields, *(field for field in wanted if field.name not in names)])
        self.table.create_write_transaction(
            actions, "append" if adds else "overwrite", shape, commit_properties=_only_next(metadata)
        )

    def rows(self) -> pyarrow.dataset.Dataset:
        """Return the rows of the known version."""
        return dataset_of(self.folder, self.table)

    @property
    def version(self) -> int:
        """The known version, which is the newest that this object opened or wrote."""
        return int(self.table.version())

    def add_columns(self, fields: Iterable[Field]) -> None:
        """Add nullable columns to the table."""
        from deltalake import Schema as DeltaSchema

        added = DeltaSchema.from_arrow(arrow_schema(Schema(tuple(fields)).optional())).fields
        self.table.alter.add_columns(added, commit_properties=_only_next())

    def commit(self, rows: pyarrow.Table | pyarrow.RecordBatchReader, *, adds: bool) -> None:
        """Append rows to the table or replace all its rows."""
        from deltalake import write_deltalake

        mode = "append" if adds else "overwrite"
        write_deltalake(self.table, rows, mode=mode, commit_properties=_only_next())


def open_to_write(location: TableLocation) -> LocalTable:
    """Open the newest version of a table that `look_at_writing` accepted. Raises DeltaError."""
    from deltalake import DeltaTable

    return LocalTable(location.text, DeltaTable(location.text))


def append_once(location: TableLocation, rows: pyarrow.Table, metadata: str, order: str, turn: int) -> bool:
    """Append rows to a table, which gains the columns that it lacks, or create it with them.

    Returns False and adds nothing if a commit of this ``order`` already has this turn or a later one. If two
    writers try at once, one succeeds and the other checks the turn again. Raises CommitFailedError after 20 tries.
    """
    from deltalake import DeltaTable, Transaction, write_deltalake
    from deltalake.exceptions import CommitFailedError

    for _ in range(_TRIES):
        table = DeltaTable(location.text) if has_commits(location) else None
        had = None if table is None else table.transaction_version(order)
        if had is not None and had >= turn:
            return False
        try:
            write_deltalake(
                location.text if table is None else table,
                rows,
                mode="error" if table is None else "append",
                schema_mode=None if table is None else "merge",
                commit_properties=_only_next(metadata, [Transaction(order, turn)]),
            )
        except CommitFailedError:
            continue
        return True
    raise CommitFailedError(f"{_TRIES} times another writer committed in between")


def _paths(table: DeltaTable) -> set[str]:
    import pyarrow

    return set(pyarrow.table(table.get_add_actions())["path"].to_pylist())


def _only_next(metadata: str | None = None, transactions: list[Any] | None = None) -> Any:
    """Return properties that make a commit fail after another writer's, which delta-rs would otherwise retry."""
    from deltalake import CommitProperties

    custom_metadata = None if metadata is None else {"userMetadata": metadata}
    return CommitProperties(custom_metadata=custom_metadata, max_commit_retries=0, app_transactions=transactions)
