"""Messages as Arrow reads them: what stands in a row alone, computed while the files are read."""

from __future__ import annotations

import operator
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from routing.engines.arrow.parallel import read_ahead
from routing.tables.arrow_forms import fold_texts, is_guid, is_int
from routing.tables.arrow_rows import micros_in
from routing.tables.encoded_texts import encoded
from routing.tables.table_columns import Table, as_dataset, shape_of
from routing.tables.times import micros_of

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset


# The scanner of a dataset decodes a file's groups of rows as a whole, several at a time: of a table of 100 million
# messages each has millions of rows. Those of more rows than this are decoded batch by batch.
_MOST_IN_GROUP = 1 << 20
# So many bytes of a column are read from a file at a time.
_BUFFER = 1 << 20
# Texts that most rows have in common with others; an id of its own in every row would only grow by a number.
NUMBERED = ("instance_name", "database_name", "to_service_name", "to_broker_instance", "from_service_name")


@dataclass(frozen=True)
class MessageRows:
    """Messages as they are given, with the names of their columns there.

    ``at``: the time as of which all are decided, in microseconds; None for their own. ``most_in_group``: groups of
    rows in files that have more rows are not decoded as a whole.
    """

    rows: pyarrow.dataset.Dataset
    shape: Mapping[str, str]
    at: int | None
    most_in_group: int = _MOST_IN_GROUP

    @classmethod
    def of(cls, messages: Table, as_of: datetime | None) -> MessageRows:
        """Return the messages of a table of Arrow's. Raises InputError where its columns are not theirs."""
        at = None if as_of is None else micros_of(as_of)
        return cls(as_dataset(messages), shape_of(messages, "messages"), at)

    def scan(
        self, columns: Mapping[str, Any], numbered: Collection[str], size: int
    ) -> Iterator[pyarrow.RecordBatch]:
        """Read some expressions, batch by batch; the ``numbered`` columns as numbers of texts."""
        rows = encoded(self.rows, [self.shape[name] for name in numbered if name in self.shape])
        names = list(self.shape.values())
        if _has_large_groups(rows, names, self.most_in_group):
            parts = (_stream(rows, file, names, columns, size) for file in rows.get_fragments())
            return read_ahead(parts, max((os.cpu_count() or 1) // 2, 1))
        scanner = rows.scanner(dict(columns), batch_size=size, batch_readahead=4, fragment_readahead=2)
        return (batch for batch in scanner.to_batches() if len(batch))

    def column(self, name: str) -> Any:
        """Return a column as an expression."""
        import pyarrow.compute as pc

        return pc.field(self.shape[name])

    def is_sound(self) -> Any:
        """Return a mask of rows with all required columns but a service, whatever their instance and database."""
        import pyarrow.compute as pc

        needed = [self.column("message_id") != ""]
        needed += [self.column(name).is_valid() for name in ("is_initiator", "enqueue_time")]
        needed.append(is_guid(self.column("conversation_id")))
        if "hops_remaining" in self.shape:
            hops = self.column("hops_remaining").cast("int64")
            needed.append(hops.is_null() | is_int(hops))
        return pc.coalesce(reduce(operator.and_, needed), pc.scalar(False))

    def is_folded(self) -> Any:
        """Return a mask of conversation ids that are GUIDs in their compared form."""
        import pyarrow.compute as pc

        conversation_ids = self.column("conversation_id")
        return pc.coalesce(fold_texts(conversation_ids) == conversation_ids, pc.scalar(False))

    def time(self) -> Any:
        """Return the time of a row's decision, in microseconds."""
        import pyarrow.compute as pc

        if self.at is not None:
            return pc.scalar(self.at)
        return pc.coalesce(*(self.micros(name) for name in ("observed_at", "enqueue_time") if name in self.shape))

    def micros(self, name: str) -> Any:
        """Return a column of times in microseconds."""
        return micros_in(self.column(name), self.rows.schema.field(self.shape[name]).type)


def texts_of(rows: pyarrow.RecordBatch, name: str) -> pyarrow.Array:
    """Return a column of texts; one that messages lack is null."""
    import pyarrow

    return rows[name] if name in rows.schema.names else pyarrow.nulls(len(rows), pyarrow.string())


def _has_large_groups(rows: Any, names: Collection[str], most: int) -> bool:
    """Return True if a file of a dataset has a group of more rows, and every file has all of the columns.

    Of what is in no file, such as the columns of partitions, the dataset's own scanner knows.
    """
    from pyarrow.dataset import FileSystemDataset, ParquetFileFormat

    if not isinstance(rows, FileSystemDataset) or not isinstance(rows.format, ParquetFileFormat):
        return False
    files = list(rows.get_fragments())
    is_large = any(group.num_rows > most for file in files for group in file.row_groups)
    return is_large and all(set(names) <= set(file.physical_schema.names) for file in files)


def _stream(
    rows: pyarrow.dataset.FileSystemDataset, file: Any, names: list[str], columns: Mapping[str, Any], size: int
) -> Iterator[pyarrow.RecordBatch]:
    """Read expressions of the rows in a file of a dataset, so many rows at a time."""
    import pyarrow
    from pyarrow.dataset import dataset
    from pyarrow.parquet import ParquetFile

    options = rows.format.read_options
    kinds = pyarrow.schema([rows.schema.field(name) for name in names])
    with ParquetFile(
        rows.filesystem.open_input_file(file.path),
        read_dictionary=list(options.dictionary_columns),
        coerce_int96_timestamp_unit=options.coerce_int96_timestamp_unit,
        buffer_size=_BUFFER,
        pre_buffer=False,
    ) as opened:
        for batch in opened.iter_batches(size, columns=names):
            part = dataset(pyarrow.table(batch).select(names).cast(kinds))
            yield from part.scanner(dict(columns), batch_size=size, use_threads=False).to_batches()
