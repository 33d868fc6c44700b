"""Read messages with Arrow, and compute values of single rows while the files are read."""

from __future__ import annotations

import operator
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from routing.rules.rejecting import DECODED
from routing.rules.timeline import micros_of
from routing.tables.arrow_forms import is_guid, is_int
from routing.tables.arrow_rows import find_undecodable, micros_in
from routing.tables.encoded_texts import encoded, is_one_of, split_words
from routing.tables.table_columns import Table, as_dataset, shape_of

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset


# The scanner of a dataset decodes several complete row groups at a time. In a table of 100 million messages each
# has millions of rows. Row groups with more rows than this are decoded batch by batch.
_MOST_IN_GROUP = 1 << 20
# Bytes of a column that are read from a file at a time.
_BUFFER = 1 << 20
# Columns with few distinct texts. Numbering saves nothing for ids that differ in every row.
NUMBERED = ("instance_name", "database_name", "to_service_name", "to_broker_instance", "from_service_name")


B = TypeVar("B")


def read_ahead(parts: Iterable[Iterator[B]], most: int) -> Iterator[B]:
    """Yield all batches of several parts. Up to ``most`` threads read one part each, one batch ahead.

    An error while reading a part is raised here.
    """
    waiting = iter(parts)
    with ThreadPoolExecutor(most, thread_name_prefix="parts") as pool:
        coming = deque((part, pool.submit(next, part, None)) for part in islice(waiting, most))
        while coming:
            part, first = coming.popleft()
            batch = first.result()
            following = next(waiting, None) if batch is None else part
            if following is not None:
                coming.append((following, pool.submit(next, following, None)))
            if batch is not None:
                yield batch


@dataclass(frozen=True)
class ChosenRows:
    """A filter: each row must match one of the ``selections``, which list values of text columns."""

    selections: Sequence[Mapping[str, Collection[str]]]

    def mask(self, batch: pyarrow.RecordBatch) -> pyarrow.Array:
        """Return a mask of the matching rows of a batch with these columns."""
        import pyarrow
        import pyarrow.compute as pc

        masks = [
            pc.fill_null(reduce(pc.and_, (has_one(batch[name]) for name, has_one in tests.items())), False)
            for tests in self._tests
        ]
        return reduce(pc.or_, masks, pyarrow.repeat(pyarrow.scalar(False), len(batch)))

    def filter(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Return the matching rows of a batch with these columns."""
        return batch.filter(self.mask(batch))

    @cached_property
    def _tests(self) -> list[dict[str, Callable[[pyarrow.Array], pyarrow.Array]]]:
        return [{name: is_one_of(values) for name, values in selection.items()} for selection in self.selections]


@dataclass(frozen=True)
class MessageRows:
    """The original messages, with the names of their columns.

    ``at`` is the time of all decisions in microseconds, or None for each message's own time. Row groups with more
    than ``most_in_group`` rows are decoded batch by batch. ``chosen`` selects rows, and None selects all.
    """

    rows: pyarrow.dataset.Dataset
    shape: Mapping[str, str]
    at: int | None
    most_in_group: int = _MOST_IN_GROUP
    chosen: ChosenRows | None = None

    @classmethod
    def of(cls, messages: Table, as_of: datetime | None) -> MessageRows:
        """Open an Arrow table of messages. Raises InputError if a column is missing or has a wrong type."""
        at = None if as_of is None else micros_of(as_of)
        return cls(as_dataset(messages), shape_of(messages, "messages"), at)

    def scan(
        self, columns: Mapping[str, pyarrow.compute.Expression], numbered: Collection[str], size: int
    ) -> Iterator[pyarrow.RecordBatch]:
        """Read expressions batch by batch, with the ``numbered`` columns as numbers of texts."""
        rows = encoded(self.rows, [self.shape[name] for name in numbered if name in self.shape])
        names = list(self.shape.values())
        if _has_large_groups(rows, names, self.most_in_group):
            parts = (_stream(rows, file, names, columns, size) for file in rows.get_fragments())
            batches = read_ahead(parts, max((os.cpu_count() or 1) // 2, 1))
        else:
            scanner = rows.scanner(dict(columns), batch_size=size, batch_readahead=4, fragment_readahead=2)
            batches = scanner.to_batches()
        chosen = batches if self.chosen is None else map(self.chosen.filter, batches)
        return (batch for batch in chosen if len(batch))

    def column(self, name: str) -> Any:
        """Return a column as an expression."""
        import pyarrow.compute as pc

        return pc.field(self.shape[name])

    def is_sound(self) -> Any:
        """Return a mask of the rows that are valid apart from instance, database, service and encoding."""
        import pyarrow.compute as pc

        needed = [self.column("message_id") != ""]
        needed += [self.column(name).is_valid() for name in ("is_initiator", "enqueue_time")]
        needed.append(is_guid(self.column("conversation_id")))
        if "hops_remaining" in self.shape:
            hops = self.column("hops_remaining").cast("int64")
            needed.append(hops.is_null() | is_int(hops))
        return pc.coalesce(reduce(operator.and_, needed), pc.scalar(False))

    def time(self) -> Any:
        """Return the time at which a row is decided, in microseconds."""
        import pyarrow.compute as pc

        if self.at is not None:
            return pc.scalar(self.at)
        return pc.coalesce(*(self.micros(name) for name in ("observed_at", "enqueue_time") if name in self.shape))

    def micros(self, name: str) -> Any:
        """Return a column of times in microseconds."""
        return micros_in(self.column(name), self.rows.schema.field(self.shape[name]).type)


def texts_of(rows: pyarrow.RecordBatch, name: str) -> pyarrow.Array:
    """Return a text column, or nulls if messages lack it."""
    import pyarrow

    return rows[name] if name in rows.schema.names else pyarrow.nulls(len(rows), pyarrow.string())


def numbers_of(rows: pyarrow.RecordBatch, name: str) -> pyarrow.Array:
    """Return a column of numbers, or nulls if messages lack it."""
    import pyarrow

    return rows[name] if name in rows.schema.names else pyarrow.nulls(len(rows), pyarrow.int64())


def _has_large_groups(rows: Any, names: Collection[str], most: int) -> bool:
    """Return whether a dataset has a row group of more rows, and every file has all columns.

    Only the dataset's scanner can read columns that are not in the files, such as partition columns.
    """
    from pyarrow.dataset import FileSystemDataset, ParquetFileFormat

    if not isinstance(rows, FileSystemDataset) or not isinstance(rows.format, ParquetFileFormat):
        return False
    files = list(rows.get_fragments())
    is_large = any(group.num_rows > most for file in files for group in file.row_groups)
    return is_large and all(set(names) <= set(file.physical_schema.names) for file in files)


def _stream(
    rows: pyarrow.dataset.FileSystemDataset,
    file: Any,
    names: list[str],
    columns: Mapping[str, pyarrow.compute.Expression],
    size: int,
) -> Iterator[pyarrow.RecordBatch]:
    """Read expressions of the rows in a file, ``size`` rows at a time.

    One scanner computes them for the whole file, because an expression with a set of values builds a lookup table
    for each scanner.
    """
    import pyarrow
    from pyarrow.dataset import Scanner
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
        parts = (
            part
            for batch in opened.iter_batches(size, columns=names)
            for part in pyarrow.table(batch).select(names).cast(kinds).to_batches()
        )
        scanner = Scanner.from_batches(
            parts, schema=kinds, columns=dict(columns), batch_size=size, batch_readahead=1, use_threads=False
        )
        yield from scanner.to_batches()


def find_sound(batch: pyarrow.RecordBatch) -> pyarrow.Array:
    """Return a mask of the valid rows, which also have a service and UTF-8 in the texts of `rejecting.DECODED`."""
    import pyarrow.compute as pc

    # Distinct names are compared, because a column may not hold the long names of all rows.
    services, places = split_words(batch["to_service_name"])
    has_service = pc.fill_null(pc.not_equal(services, "").take(places), fill_value=False)
    sound = pc.and_(batch["sound"], has_service)
    for name in DECODED:
        undecodable = find_undecodable(batch[name]) if name in batch.schema.names else None
        if undecodable is not None:
            sound = pc.and_not(sound, undecodable)
    return sound
