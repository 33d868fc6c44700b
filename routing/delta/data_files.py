"""Write Parquet files for a table, part by part and with statistics.

``write_deltalake`` would take an eighth more processor time over three million rows. After a failure it would
leave its files, and an error in the code that creates the rows would look like one of delta-rs. It would also open
the table before the rows are created, so that maintenance in between would fail the run.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from routing.terms import JsonObject

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import FileMetaData, ParquetWriter

# Up to this number of bytes, the dictionary of a part is written as a dictionary.
_DICTIONARY_BYTES = 16 * 1024**2
# The number of characters of a text in Delta's statistics.
_CHARACTERS = 32
_LAST_CHARACTER = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class DataFile:
    """A written file: its name in the table's folder, and its entry in Delta's log.

    ``modified_at`` is in milliseconds since 1970, and ``statistics`` are JSON.
    """

    name: str
    rows: int
    size: int
    modified_at: int
    statistics: str


@dataclass
class DataFileWriter:
    """Writes one file with a row group for each part. Without any part there is no file.

    The log gets the minimum and maximum of the ``measured`` columns.
    """

    folder: Path
    measured: Collection[str]
    name: str = field(default_factory=lambda: f"part-00000-{uuid.uuid4()}-c000.zstd.parquet")
    _writer: ParquetWriter | None = None

    def add(self, rows: pyarrow.Table) -> None:
        """Write some rows. Dictionary columns are written as dictionaries, and all parts have the same types."""
        from pyarrow.parquet import ParquetWriter

        if self._writer is None:
            names = [name for one in rows.schema for name in _dictionaries_in(one.name, one.type)]
            self._writer = ParquetWriter(
                self.folder / self.name,
                rows.schema,
                compression="zstd",
                use_dictionary=names,
                write_statistics=list(self.measured),
                dictionary_pagesize_limit=_DICTIONARY_BYTES,
                # Readers must find texts, not the dictionaries from which they were written.
                store_schema=False,
            )
        self._writer.write_table(rows, row_group_size=len(rows))

    def close(self) -> DataFile | None:
        """Finish the file, or return None if nothing was written."""
        if self._writer is None:
            return None
        self._writer.close()
        from pyarrow.parquet import read_metadata

        file = self.folder / self.name
        file_status, file_metadata = file.stat(), read_metadata(file)
        statistics = statistics_of(file_metadata, self.measured)
        return DataFile(
            self.name,
            file_metadata.num_rows,
            file_status.st_size,
            file_status.st_mtime_ns // 1_000_000,
            statistics,
        )

    def remove(self) -> None:
        """Delete the file."""
        if self._writer is not None:
            # On a full disk, closing the file fails too.
            with suppress(OSError):
                self._writer.close()
            (self.folder / self.name).unlink(missing_ok=True)


@dataclass
class DataFiles:
    """The files of one commit. As a context manager, it removes them if its block fails."""

    folder: Path
    measured: Collection[str] = ()
    written: list[DataFile] = field(default_factory=list)
    _writers: list[DataFileWriter] = field(default_factory=list)

    def open(self) -> DataFileWriter:
        """Open one more file."""
        self._writers.append(DataFileWriter(self.folder, self.measured))
        return self._writers[-1]

    def close(self) -> None:
        """Finish all files, and list them in ``written``."""
        self.written = [file for writer in self._writers if (file := writer.close()) is not None]

    def remove(self) -> None:
        """Remove all files from the folder."""
        for writer in self._writers:
            writer.remove()

    def __enter__(self) -> DataFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.remove()


class RowSource(Protocol):
    """Rows that are created while they are written."""

    def write_to(self, files: DataFiles) -> None:
        """Write all rows to files of a table's folder."""


def _dictionaries_in(name: str, kind: Any) -> Iterator[str]:
    """Yield Parquet's names of the dictionary columns in a type, including nested ones."""
    from pyarrow import types

    if types.is_dictionary(kind):
        yield name
    elif types.is_list(kind):
        yield from _dictionaries_in(f"{name}.list.element", kind.value_type)
    elif types.is_struct(kind):
        for one in kind:
            yield from _dictionaries_in(f"{name}.{one.name}", one.type)


def statistics_of(file_metadata: FileMetaData, names: Collection[str]) -> str:
    """Return the statistics of a file for Delta's log, without columns whose limits are unknown."""
    statistics: JsonObject = {
        "numRecords": file_metadata.num_rows,
        "minValues": {},
        "maxValues": {},
        "nullCount": {},
    }
    for place in range(file_metadata.num_columns):
        column = file_metadata.schema.column(place)
        if column.path not in names:
            continue
        groups = [
            file_metadata.row_group(number).column(place).statistics
            for number in range(file_metadata.num_row_groups)
        ]
        limits = _limits_of(groups, column.logical_type.type)
        if limits is not None:
            statistics["minValues"][column.path], statistics["maxValues"][column.path] = limits
            statistics["nullCount"][column.path] = sum(group.null_count for group in groups)
    return json.dumps(statistics)


def _limits_of(groups: list[Any], kind: str) -> tuple[str, str] | None:
    """Return the minimum and maximum of a column as JSON texts, or None if they are unknown."""
    if not groups or not all(group is not None and group.has_min_max for group in groups):
        return None
    least, most = min(group.min_raw for group in groups), max(group.max_raw for group in groups)
    try:
        if kind == "STRING":
            first, last = least.decode()[:_CHARACTERS], most.decode()
            # The last text may be cut, but not be less than the greatest value.
            return first, last if len(last) <= _CHARACTERS else last[:_CHARACTERS] + _LAST_CHARACTER * 2
        # Whole milliseconds, the last one rounded up.
        return _time_text(least // 1000), _time_text(-(-most // 1000))
    except (UnicodeDecodeError, OverflowError):
        return None


def _time_text(millis: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=millis)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
