"""Split rows into buckets that fit into memory, by the hash of texts, in temporary files if there are many."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from zlib import crc32

from routing.tables.arrow_forms import fold_texts, hash_dialog_ids, is_guid

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

# The limit of open files.
_MOST_BUCKETS = 256
# Hashes of texts are below this number.
_HASHES = 2**31


@dataclass
class BucketedRows:
    """Rows of one kind in buckets. All rows are written before buckets are read, any number of times."""

    folder: Path | None
    name: str
    count: int
    _tables: dict[int, list[pyarrow.Table]] = field(default_factory=dict)
    _writers: dict[int, Any] = field(default_factory=dict)

    def add(self, rows: pyarrow.Table, *by: str) -> None:
        """Add each row to the bucket of its texts in some columns."""
        import pyarrow.compute as pc

        if self.count == 1:
            self.add_to(0, rows)
            return
        buckets = find_buckets([rows[name].combine_chunks() for name in by], self.count)
        ordered = rows.take(pc.sort_indices(buckets))
        start = 0
        counts = sorted((bucket["values"], bucket["counts"]) for bucket in pc.value_counts(buckets).to_pylist())
        for bucket, length in counts:
            self.add_to(bucket, ordered.slice(start, length))
            start += length

    def add_to(self, bucket: int, rows: pyarrow.Table) -> None:
        """Add rows to a bucket."""
        from pyarrow.ipc import IpcWriteOptions, new_file

        if self.folder is None:
            self._tables.setdefault(bucket, []).append(rows)
            return
        writer = self._writers.get(bucket)
        if writer is None:
            options = IpcWriteOptions(compression="lz4")
            writer = self._writers[bucket] = new_file(self._path(bucket), rows.schema, options=options)
        writer.write_table(rows.combine_chunks())

    def close(self) -> None:
        """Finish writing."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def read(self, bucket: int) -> pyarrow.Table | None:
        """Return the rows of a bucket, or None if it is empty."""
        import pyarrow

        tables = list(self._read_added(bucket))
        return pyarrow.concat_tables(tables) if tables else None

    def read_parts(self, bucket: int, rows: int = 1) -> Iterator[pyarrow.Table]:
        """Yield the rows of a bucket in their order, at least ``rows`` at a time except the last."""
        return join_small(self._read_added(bucket), rows)

    def _read_added(self, bucket: int) -> Iterator[pyarrow.Table]:
        """Yield the tables that were added to a bucket."""
        import pyarrow

        if self.folder is None:
            yield from self._tables.get(bucket, ())
            return
        path = self._path(bucket)
        if not path.exists():
            return
        with pyarrow.OSFile(str(path)) as file:
            reader = pyarrow.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                yield pyarrow.Table.from_batches([reader.get_batch(number)])

    def _path(self, bucket: int) -> Path:
        if self.folder is None:
            raise ValueError("the rows are kept in memory")
        return self.folder / f"{self.name}-{bucket}.arrow"


def join_small(tables: Iterable[pyarrow.Table], rows: int, size: int | None = None) -> Iterator[pyarrow.Table]:
    """Concatenate consecutive tables until they have ``rows`` rows or ``size`` bytes, apart from the last."""
    import pyarrow

    waiting: list[pyarrow.Table] = []
    waiting_rows = waiting_bytes = 0
    for table in tables:
        waiting.append(table)
        waiting_rows += len(table)
        waiting_bytes += table.nbytes
        if waiting_rows >= rows or (size is not None and waiting_bytes >= size):
            yield pyarrow.concat_tables(waiting)
            waiting.clear()
            waiting_rows = waiting_bytes = 0
    if waiting:
        yield pyarrow.concat_tables(waiting)


@dataclass
class BucketObjects(Generic[T]):
    """One Python object for each bucket, in the same folder as the rows or in memory."""

    folder: Path | None
    name: str
    _objects: dict[int, T] = field(default_factory=dict)

    def store(self, bucket: int, value: T) -> None:
        """Keep the object of a bucket."""
        path = self._path(bucket)
        if path is None:
            self._objects[bucket] = value
            return
        with path.open("wb") as file:
            pickle.dump(value, file, pickle.HIGHEST_PROTOCOL)

    def load(self, bucket: int) -> T | None:
        """Return the object of a bucket, or None without one."""
        path = self._path(bucket)
        if path is None or not path.exists():
            return self._objects.get(bucket)
        with path.open("rb") as file:
            value: T = pickle.load(file)
        return value

    def _path(self, bucket: int) -> Path | None:
        """Return the file of a bucket, or None if objects are in memory."""
        return None if self.folder is None else self.folder / f"{self.name}-{bucket}.pickle"


@dataclass(frozen=True)
class RowBuckets:
    """The same number of buckets for several kinds of rows, in a temporary folder, or in memory for one bucket."""

    count: int
    folder: Path | None

    def open(self, name: str) -> BucketedRows:
        """Create empty buckets for rows of a kind."""
        return BucketedRows(self.folder, name, self.count)

    def open_objects(self, name: str) -> BucketObjects[Any]:
        """Create a store for one object of each bucket."""
        return BucketObjects(self.folder, name)


@contextmanager
def open_buckets(rows: int, rows_of_one: int) -> Iterator[RowBuckets]:
    """Yield buckets for a number of rows, and delete their files at the end of the block."""
    count = min(-(-rows // rows_of_one), _MOST_BUCKETS)
    if count <= 1:
        yield RowBuckets(1, None)
        return
    with TemporaryDirectory(prefix="sbroute-") as folder:
        yield RowBuckets(count, Path(folder))


def find_buckets(columns: Sequence[pyarrow.Array], count: int) -> pyarrow.Array:
    """Return the bucket number of each row. Rows with texts that are equal except in case get the same."""
    import pyarrow.compute as pc

    hashed = reduce(lambda total, hashes: pc.add(pc.multiply(total, 31), hashes), map(_hash_texts, columns))
    quotient = pc.multiply(pc.divide(hashed, count), count)
    return pc.subtract(hashed, quotient).cast("int32")


def _hash_texts(texts: pyarrow.Array) -> pyarrow.Array:
    """Return the hash of each text: the dialog-ID hash for a GUID, or a checksum of its bytes."""
    import pyarrow
    import pyarrow.compute as pc

    folded = fold_texts(pc.fill_null(texts.cast(pyarrow.string()), ""))
    guids = is_guid(folded)
    hashed = pc.bit_wise_and(hash_dialog_ids(folded.filter(guids)), _HASHES - 1).cast("int64")
    if len(hashed) == len(folded):
        return hashed
    other_texts = folded.filter(pc.invert(guids)).cast(pyarrow.binary()).dictionary_encode()
    of_words = pyarrow.array(
        [crc32(text) & (_HASHES - 1) for text in other_texts.dictionary.to_pylist()], pyarrow.int64()
    )
    zeros = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int64()), len(folded))
    all_guids = pc.replace_with_mask(zeros, guids, hashed)
    return pc.replace_with_mask(all_guids, pc.invert(guids), of_words.take(other_texts.indices))
