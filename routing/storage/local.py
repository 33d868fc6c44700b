"""Local Delta tables without a JVM, by delta-rs (`deltalake`): what it reads and writes rightly, and nothing else.

Tables of reader version 1 are read, by way of Arrow's datasets, where their files lie in their folder. Whatever a
later version brings (deletion vectors, column mapping, further types) is left out there without a word, or is an
error; and delta-rs's own readers give wrong times for the years 1 and 9999 in files that Spark wrote. For the same
reason nothing is written here but whole rows: its MERGE, UPDATE and DELETE would read by those readers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routing.config import Location
from routing.schemas import Field, Schema
from routing.storage.commits import is_local
from routing.storage.kinds import arrow_schema

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset
    from deltalake import DeltaTable

# A writer version with table features, checks, generated columns or a change feed is a later one.
_READER, _WRITER = 1, 2
# It takes paths for URLs: by some it opens another folder, by others the process ends.
_MISTAKEN = re.compile(r"[\x00-\x1f\x7f%\[\]\\^|]|/\.\.(?:/|\Z)")
# A path in a log that is not one inside the table's folder.
_ELSEWHERE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_APPEND_ONLY = "delta.appendOnly"
# The property of a field that Spark keeps the length of texts in, and how a fixed one is told there.
_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
_FIXED = re.compile(r"(?<!var)char\(")


@dataclass(frozen=True)
class Unfit:
    """Why a table is not read by delta-rs."""

    why: str


def find_log(location: Location) -> Path | None:
    """The log of a Delta table that stands at a local path on this machine's disk; None where none does."""
    log = Path(location.text, "_delta_log")
    return log if is_local(location) and log.is_dir() else None


def look_at_path(location: Location) -> Unfit | None:
    """Why delta-rs takes no table that stands, or is to stand, at a local path; None where it does."""
    if find_spec("deltalake") is None or find_spec("pyarrow") is None:
        return Unfit("deltalake is not installed")
    return Unfit("its path is one that deltalake mistakes") if _MISTAKEN.search(location.text) else None


def open_local(location: Location, version: int | None = None) -> DeltaTable | Unfit:
    """A table with a log on this disk, at a version or the newest, or why delta-rs does not read it rightly."""
    unfit = look_at_path(location)
    if unfit is not None:
        return unfit
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        table = DeltaTable(location.text, version=version)
    except DeltaError:
        # Spark says what is wrong with it, if anything is.
        return Unfit("deltalake cannot open it")
    return _look_at_reading(table) or table


def _look_at_reading(table: DeltaTable) -> Unfit | None:
    """Why delta-rs does not read an open table rightly; None where it does."""
    import pyarrow

    reader = table.protocol().min_reader_version
    if reader != _READER:
        return Unfit(f"its reader version is {reader}")
    # In the files these texts are as they came; Spark fills them up as it reads them.
    if any(_FIXED.search(str(field["metadata"].get(_LENGTH, ""))) for field in _fields_of(table)):
        return Unfit("a column has texts of a fixed length, which are filled up with blanks")
    # Those of a shallow clone are another table's.
    paths = pyarrow.table(table.get_add_actions())["path"].to_pylist()
    return Unfit("files of it lie elsewhere") if any(map(_ELSEWHERE.match, paths)) else None


def find_id(location: Location) -> str | None:
    """The id of a table with a log on this disk, which is another one for a table made anew; None: ask Spark."""
    if find_log(location) is None or look_at_path(location) is not None:
        return None
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return str(DeltaTable(location.text).metadata().id)
    except DeltaError:
        return None


def dataset_of(folder: str, table: DeltaTable) -> pyarrow.dataset.Dataset:
    """The rows of an open table, read when they are asked for; times of Spark's files are microseconds."""
    from pyarrow.dataset import ParquetReadOptions
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    options: Any = ParquetReadOptions(coerce_int96_timestamp_unit="us")
    # By the file system that delta-rs brings, written in Python, every third process aborts as it ends
    # (delta-rs issue 2184).
    files = SubTreeFileSystem(folder, LocalFileSystem())
    return table.to_pyarrow_dataset(filesystem=files, parquet_read_options=options)


def write_new(location: Location, rows: pyarrow.Table | pyarrow.RecordBatchReader) -> None:
    """Make a table of these rows, in one commit, where none stands. Raises DeltaError where one does."""
    from deltalake import write_deltalake

    write_deltalake(location.text, rows, mode="error", commit_properties=_only_next())


def look_at_writing(folder: str, table: DeltaTable) -> LocalTable | Unfit:
    """A table of reader version 1 as delta-rs writes it, or why it does not write it rightly.

    What is allowed is named, all else goes by Spark: further writer versions, partitions, and columns that have
    more than a comment, such as checks and lengths.
    """
    protocol, metadata = table.protocol(), table.metadata()
    if protocol.min_writer_version > _WRITER or protocol.writer_features:
        return Unfit(f"its writer version is {protocol.min_writer_version}")
    if metadata.partition_columns:
        return Unfit("it is partitioned")
    if metadata.configuration.get(_APPEND_ONLY, "false").lower() != "false":
        return Unfit(f"it has the property {_APPEND_ONLY}")
    if any(field["type"] == "void" or set(field["metadata"]) - {"comment"} for field in _fields_of(table)):
        return Unfit("a column has more than a name and a type")
    return LocalTable(folder, table)


def _fields_of(table: DeltaTable) -> Iterator[dict[str, Any]]:
    """Every field of a table, those of nested types too, as its log writes it."""
    return _fields(json.loads(table.schema().to_json()))


def _fields(schema: object) -> Iterator[dict[str, Any]]:
    """Every field in a schema, or in a part of one."""
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
    """A table that delta-rs writes. Each write is one commit, right after the version that is known of it."""

    folder: str
    table: DeltaTable

    @classmethod
    def make(cls, location: Location, schema: Schema) -> LocalTable:
        """Make an empty table of reader version 1, without table features."""
        from deltalake import DeltaTable

        made = DeltaTable.create(location.text, arrow_schema(schema), commit_properties=_only_next())
        return cls(location.text, made)

    @classmethod
    def make_of(cls, location: Location, rows: pyarrow.Table | pyarrow.RecordBatchReader) -> LocalTable:
        """Make a table of rows, in one commit, where none stands. Raises DeltaError where one does."""
        from deltalake import DeltaTable

        write_new(location, rows)
        return cls(location.text, DeltaTable(location.text))

    def rows(self) -> pyarrow.dataset.Dataset:
        """The rows of the version that is known."""
        return dataset_of(self.folder, self.table)

    @property
    def version(self) -> int:
        """The version that is known: the newest that was read or made here."""
        return int(self.table.version())

    def add_columns(self, fields: Iterable[Field]) -> None:
        """Give the table further columns, which may be null."""
        from deltalake import Schema as DeltaSchema

        added = DeltaSchema.from_arrow(arrow_schema(Schema(tuple(fields)).optional())).fields
        self.table.alter.add_columns(added, commit_properties=_only_next())

    def commit(
        self, rows: pyarrow.Table | pyarrow.RecordBatchReader, *, adds: bool, metadata: str | None = None
    ) -> None:
        """Add rows to the table, or replace all that it has by them; with the commit's user metadata, if any."""
        from deltalake import write_deltalake

        mode = "append" if adds else "overwrite"
        write_deltalake(self.table, rows, mode=mode, commit_properties=_only_next(metadata))


def _only_next(metadata: str | None = None) -> Any:
    """Have a commit fail where somebody else has made one: delta-rs would put it after that one otherwise."""
    from deltalake import CommitProperties

    told = None if metadata is None else {"userMetadata": metadata}
    return CommitProperties(custom_metadata=told, max_commit_retries=0)
