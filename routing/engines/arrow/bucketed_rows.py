"""Put rows into buckets by the hash of a text, in temporary files where there are many: each fits into memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zlib import crc32

from routing.tables.arrow_forms import fold_texts, hash_dialog_ids, is_guid

if TYPE_CHECKING:
    import pyarrow

# So many files are open at a time at most.
_MOST_BUCKETS = 256


@dataclass
class BucketedRows:
    """Rows of one kind, in buckets: written first, then read bucket by bucket, as often as they are asked for."""

    folder: Path | None
    name: str
    count: int
    _tables: dict[int, list[pyarrow.Table]] = field(default_factory=dict)
    _writers: dict[int, Any] = field(default_factory=dict)

    def add(self, rows: pyarrow.Table, by: str) -> None:
        """Add rows, each to the bucket of its text in a column."""
        import pyarrow.compute as pc

        if self.count == 1:
            self.add_to(0, rows)
            return
        buckets = find_buckets(rows[by].combine_chunks(), self.count)
        ordered = rows.take(pc.sort_indices(buckets))
        start = 0
        counts = sorted((one["values"], one["counts"]) for one in pc.value_counts(buckets).to_pylist())
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
        """Return the rows of a bucket; None where it has none."""
        import pyarrow

        if self.folder is None:
            tables = self._tables.get(bucket)
            return None if tables is None else pyarrow.concat_tables(tables)
        path = self._path(bucket)
        if not path.exists():
            return None
        with pyarrow.OSFile(str(path)) as file:
            return pyarrow.ipc.open_file(file).read_all()

    def _path(self, bucket: int) -> Path:
        if self.folder is None:
            raise ValueError("the rows are kept in memory")
        return self.folder / f"{self.name}-{bucket}.arrow"


@dataclass(frozen=True)
class RowBuckets:
    """As many buckets for several kinds of rows; in files of a temporary folder, or in memory if it is one."""

    count: int
    folder: Path | None

    def open(self, name: str) -> BucketedRows:
        """Begin rows of a kind."""
        return BucketedRows(self.folder, name, self.count)


@contextmanager
def open_buckets(rows: int, rows_of_one: int) -> Iterator[RowBuckets]:
    """Yield buckets for so many rows, which take their files away at the end, whatever ends the block."""
    count = min(-(-rows // rows_of_one), _MOST_BUCKETS)
    if count <= 1:
        yield RowBuckets(1, None)
        return
    with TemporaryDirectory(prefix="sbroute-") as folder:
        yield RowBuckets(count, Path(folder))


def find_buckets(texts: pyarrow.Array, count: int) -> pyarrow.Array:
    """Return the numbers of the buckets of texts: equal ones have the same, in whatever case."""
    import pyarrow
    import pyarrow.compute as pc

    folded = fold_texts(pc.fill_null(texts.cast(pyarrow.string()), ""))
    guids = is_guid(folded)
    hashed = pc.bit_wise_and(hash_dialog_ids(folded.filter(guids)), 2**31 - 1).cast("int32")
    if len(hashed) < len(folded):
        others = folded.filter(pc.invert(guids)).cast(pyarrow.binary()).to_pylist()
        of_others = pyarrow.array([crc32(one) & (2**31 - 1) for one in others], pyarrow.int32())
        zeros = pyarrow.repeat(pyarrow.scalar(0, pyarrow.int32()), len(folded))
        hashed = pc.replace_with_mask(pc.replace_with_mask(zeros, guids, hashed), pc.invert(guids), of_others)
    quotient = pc.multiply(pc.divide(hashed, count), count)
    return pc.subtract(hashed, quotient).cast("int32")
