"""Cache small frames that several passes read, and choose how Spark joins them.

A frame is computed once, and the driver holds the rows of a very small one. Otherwise each pass plans the scan
of the table again, which takes longer than reading it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from routing.config import size_in_bytes
from routing.run_context import RunContext
from routing.schemas import Schema
from routing.sessions.existing_session import find_setting, let_go, takes_persist
from routing.tables.frames import frame_of_tuples, has_arrow

if TYPE_CHECKING:
    import pyarrow

R = TypeVar("R")


@dataclass(frozen=True)
class FrameLimits:
    """How much of a frame the driver, a client and a task hold in memory.

    The driver holds a frame of up to ``held_rows`` rows with ``held_bytes`` bytes of text each, so 80 MB at most.
    If the session cannot cache frames, its client holds up to ``client_rows`` rows of ``client_bytes`` in total.
    The same limits apply to frames that other cached frames are made of. Serverless compute accepts 128 MB of
    local data at a time. A task holds up to ``task_bytes`` of a join's side. A larger side is sorted, on disk if
    needed.

    The driver decides up to ``driver_rows`` keys, with a configuration of up to as many rows. Above that, workers
    decide, and an instance with more than ``part_rows`` names or rows is split.
    """

    held_rows: int = 20_000
    held_bytes: int = 4_000
    client_rows: int = 200_000
    client_bytes: int = 32 * 1024**2
    task_bytes: int = 64 * 1024**2
    driver_rows: int = 300_000
    part_rows: int = 100_000


FRAME_LIMITS = FrameLimits()
# A row takes about this many bytes for each column, plus its texts.
_COLUMN = 8
_OF_ANY_SIZE = (StringType, BinaryType, ArrayType, MapType, StructType)
_IS_LONG = "_is_long"
# Python cannot hold arbitrary bytes as text, and local times occur twice when clocks are set back.
_Forms = Mapping[type[DataType], Callable[[Column], Column]]
_AS_PLAIN: _Forms = {
    StringType: lambda text: text.cast("binary"),
    TimestampType: lambda time: F.unix_micros(time),
}
_AS_READ: _Forms = {
    StringType: lambda text: text.cast("string"),
    TimestampType: lambda number: F.timestamp_micros(number),
}


class FrameCache:
    """Keeps frames that are read more than once, until `release` or the end of a ``with`` block."""

    def __init__(self, limits: FrameLimits = FRAME_LIMITS) -> None:
        self.limits = limits
        self.frames: list[DataFrame] = []
        """The frames in the session's block storage."""
        self._threads: list[ThreadPoolExecutor] = []

    def __enter__(self) -> FrameCache:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.release()
        except Exception:
            # The block's error may have ended the session, and it explains more than this one.
            if error is None:
                raise

    def keep(self, small: DataFrame, most_rows: int | None = None) -> DataFrame:
        """Compute a small frame once, now. The driver holds few rows, block storage holds more.

        If the session cannot cache frames, the client holds the rows. Each pass computes a frame again if it has
        too many rows for the client. ``most_rows`` is as in `keep_sized`.
        """
        return self._keep(small, most_rows).rows

    def keep_counted(self, small: DataFrame, most_rows: int | None = None) -> tuple[DataFrame, int]:
        """Compute a small frame as `keep` does, and return it with the number of its rows."""
        cached = self._keep(small, most_rows)
        return cached.rows, cached.rows.count() if cached.row_count is None else cached.row_count

    def keep_sized(self, small: DataFrame, most_rows: int | None = None) -> CarriedFrame:
        """Compute a frame that other cached frames are made of, once and now, and return it with its size.

        Spark's plan repeats the plan of a stored frame at each use. So the driver holds more rows here: up to
        ``client_rows`` of ``client_bytes`` in total.

        ``most_rows`` is an upper limit of the frame's rows. If it is small, the frame is read without storing it
        first, because storing takes a task for each shuffle partition. A frame with long rows is then computed
        twice.
        """
        return self._keep(small, most_rows, is_repeated=True)

    def _keep(self, small: DataFrame, most_rows: int | None, *, is_repeated: bool = False) -> CarriedFrame:
        few_rows = self._carry_few(small, most_rows)
        if few_rows is not None:
            return few_rows
        if not takes_persist(small.sparkSession):
            return self._carry_by_client(small)
        stored = self.store(small)
        carried = self.carry(stored)
        if is_repeated and carried.rows is stored and _is_for_a_client(stored, self.limits):
            carried = _carry(stored, _without_long(stored, F.lit(False)), self.limits.client_rows)
        return self._instead(stored, carried)

    def hold(self, frame: DataFrame) -> DataFrame:
        """Read a small frame into the driver. Return a large one unchanged, and any frame without Arrow."""
        return self.carry(frame).rows if has_arrow() else frame

    def carry(self, frame: DataFrame) -> CarriedFrame:
        """Read a frame of few and short rows into the driver, or return it unchanged."""
        # A limit as the last step of a plan needs no exchange for a single partition.
        return _carry(frame, self._mark_long(frame).limit(self.limits.held_rows + 1), self.limits.held_rows)

    def _carry_few(self, small: DataFrame, most_rows: int | None) -> CarriedFrame | None:
        """Read a frame into the driver if ``most_rows`` says that it has few rows, and none of them is long."""
        if most_rows is None or most_rows > self.limits.held_rows:
            return None
        few_rows = _carry(small, self._mark_long(small), most_rows)
        return None if few_rows.rows is small else self._read_by_workers_once(few_rows)

    def _mark_long(self, frame: DataFrame) -> DataFrame:
        return _without_long(frame, bytes_of_texts(frame.schema) > self.limits.held_bytes)

    def _carry_by_client(self, frame: DataFrame) -> CarriedFrame:
        are_many_bytes = _all_bytes(frame.schema) > self.limits.client_bytes
        marked = _without_long(frame.limit(self.limits.client_rows + 1), are_many_bytes)
        return _carry(frame, marked, self.limits.client_rows)

    def _instead(self, stored: DataFrame, carried: CarriedFrame) -> CarriedFrame:
        """Return the rows that the driver holds and drop the stored frame, or return the stored frame."""
        if carried.rows is stored:
            return carried
        read_once = self._read_by_workers_once(carried)
        self.frames.remove(stored)
        let_go(stored)
        return read_once

    def _read_by_workers_once(self, carried: CarriedFrame) -> CarriedFrame:
        """Store the driver's rows if Python workers would read them. Later plans then omit that step."""
        return carried if has_arrow() else carried._replace(rows=self.store(carried.rows))

    def store(self, frame: DataFrame) -> DataFrame:
        """Put a frame that is too large for the driver into block storage. The first reader fills it.

        If the session cannot cache frames, the frame is returned unchanged.
        """
        if not takes_persist(frame.sparkSession):
            return frame
        cached = frame.persist()
        self.frames.append(cached)
        return cached

    def frame_of(self, spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: Schema) -> DataFrame:
        """Convert tuples to a DataFrame, as `frame_of_tuples` does, and store many.

        Without Arrow, Python workers would read the rows in every job that uses them.
        """
        frame = frame_of_tuples(spark, rows, schema)
        return self.store(frame) if len(rows) > self.limits.held_rows or not has_arrow() else frame

    def start(self, spark: SparkSession, work: Callable[[], R]) -> Callable[[], R]:
        """Start work that uses this cache in another thread. Return a function that waits for its result.

        Before pyspark 4.0 threads cannot share a session, so the returned function does the work itself.
        """
        if not has_arrow():
            return work
        from pyspark import inheritable_thread_target

        thread = ThreadPoolExecutor(1)
        self._threads.append(thread)
        return thread.submit(inheritable_thread_target(spark)(work)).result

    def release(self) -> None:
        """Wait for started work, and release the cached frames.

        The frames stay readable, but Spark computes them again.
        """
        while self._threads:
            self._threads.pop().shutdown()
        while self.frames:
            let_go(self.frames.pop())


@contextmanager
def released_on_failure(limits: FrameLimits = FRAME_LIMITS) -> Iterator[FrameCache]:
    """Yield a cache that outlives the block, unless the block fails."""
    with ExitStack() as on_failure:
        yield on_failure.enter_context(FrameCache(limits))
        on_failure.pop_all()


class CarriedFrame(NamedTuple):
    """A frame with the bytes of its values and the number of its rows, or None if the driver does not hold them.

    ``values`` has the rows if the driver holds them as an Arrow table.
    """

    rows: DataFrame
    size: int | None
    values: pyarrow.Table | None = None
    row_count: int | None = None


def _carry(frame: DataFrame, marked: DataFrame, most: int) -> CarriedFrame:
    """Read a frame into this process, or return it unchanged if it has too many rows or long ones.

    ``marked`` has its first rows, as `_without_long` marks them.
    """
    spark = frame.sparkSession
    if has_arrow():
        table = marked.toArrow()
        is_small = table.num_rows <= most and True not in table[_IS_LONG].to_pylist()
        if not is_small:
            return CarriedFrame(frame, None)
        values = table.select(frame.columns)
        return CarriedFrame(_as_rows(spark, values, frame.schema), values.nbytes, values, values.num_rows)
    plain = marked.select(_IS_LONG, *_columns_as(frame.schema, _AS_PLAIN))
    rows = [tuple(row) for row in plain.collect()]
    if len(rows) > most or any(is_long for is_long, *_ in rows):
        return CarriedFrame(frame, None)
    plain_values = [row[1:] for row in rows]
    plain_rows = spark.createDataFrame(plain_values, StructType(_nullable(plain.schema).fields[1:]))
    carried = plain_rows.select(*_columns_as(frame.schema, _AS_READ))
    return CarriedFrame(carried, _bytes_of(plain_values), row_count=len(plain_values))


def _columns_as(schema: StructType, forms: _Forms) -> Iterator[Column]:
    return (_in_form(F.col(field.name), field.dataType, forms).alias(field.name) for field in schema)


def _in_form(value: Column, kind: DataType, forms: _Forms) -> Column:
    """Return a value with each of its texts and times converted."""
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda one: _in_form(one, kind.elementType, forms))
    if isinstance(kind, StructType):
        fields = (_in_form(value[field.name], field.dataType, forms).alias(field.name) for field in kind)
        return F.when(value.isNotNull(), F.struct(*fields))
    form = forms.get(type(kind))
    return value if form is None else form(value)


def _bytes_of(value: Any) -> int:
    """Estimate the bytes of rows of plain Python."""
    if isinstance(value, bytes | bytearray):
        return len(value)
    return sum(map(_bytes_of, value)) if isinstance(value, list | tuple) else _COLUMN


def _without_long(rows: DataFrame, is_long: Column) -> DataFrame:
    """Mark long rows and replace their values by null, since a name may have a million characters."""
    marked = rows.select(is_long.alias(_IS_LONG), "*")
    return marked.select(_IS_LONG, *(F.when(~F.col(_IS_LONG), _loose(f)).alias(f.name) for f in rows.schema))


def _is_for_a_client(stored: DataFrame, limits: FrameLimits) -> bool:
    """Return whether a client can hold the rows and bytes of a stored frame."""
    size = F.coalesce(F.sum(_bytes_of_row(stored.schema)), F.lit(0))
    is_small = (F.count(F.lit(1)) <= limits.client_rows) & (size <= limits.client_bytes)
    [row] = stored.agg(is_small).collect()
    return bool(row[0])


def _all_bytes(schema: StructType) -> Column:
    """Return a column with the bytes of all rows together."""
    # A window needs a partition, or Spark warns about its size.
    return F.sum(_bytes_of_row(schema)).over(Window.partitionBy(F.lit(0)))


def _bytes_of_row(schema: StructType) -> Column:
    return bytes_of_texts(schema) + F.lit(_COLUMN * len(schema))


def bytes_of_texts(schema: StructType) -> Column:
    """Return the bytes of a row's columns of variable size."""
    lengths = [
        F.coalesce(F.octet_length(_as_text(field.name, field.dataType)), F.lit(0)).cast("bigint")
        for field in schema
        if isinstance(field.dataType, _OF_ANY_SIZE)
    ]
    return reduce(Column.__add__, lengths, F.lit(0).cast("bigint"))


def _as_text(name: str, kind: DataType) -> Column:
    return F.col(name) if isinstance(kind, (StringType, BinaryType)) else F.col(name).cast("string")


def _loose(column: StructField) -> Column:
    """Make all fields of a column nullable, because Arrow refuses a null struct of required fields."""
    value = F.col(column.name)
    is_nested = isinstance(column.dataType, StructType | ArrayType)
    return value.cast(_nullable(column.dataType).simpleString()) if is_nested else value


def _as_rows(spark: SparkSession, rows: Any, schema: StructType) -> DataFrame:
    """Convert an Arrow table to a DataFrame of nullable fields, because Arrow refuses null structs otherwise."""
    return spark.createDataFrame(rows, _nullable(schema))


def _nullable(kind: Any) -> Any:
    """Return a type with nullable fields and elements."""
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _nullable(f.dataType), True, f.metadata) for f in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType), True)
    return kind


# Join hints for Spark. No other module sets any.
#
# Rows that the caller limits are always broadcast (`small_side`). All others are measured. Above
# ``resolve.broadcast_limit`` both sides are shuffled, and the run notes it (`BroadcastBudget`).


_BROADCAST, _HASH, _MERGE = "broadcast", "shuffle_hash", "merge"
_CALLED = {_HASH: "shuffled hash join", _MERGE: "sort-merge join"}
# Rough bytes of a row in a join's table without its texts: for the row, and for each column.
_ROW, _BROADCAST_COLUMN = 100, 16
# The bigints of a bitmap of 512 KB, and the numbers of hashes for which it comes before a join.
_BITMAP_WORDS, _BITMAP_LEAST, _BITMAP_MOST = 2**16, 50_000, 1_000_000


def small_side(rows: DataFrame) -> DataFrame:
    """Broadcast rows whose number the caller limits, never rows of the configuration or of messages."""
    return rows.hint(_BROADCAST)


@dataclass(frozen=True)
class JoinSide:
    """The smaller side of a join and its join hint."""

    rows: DataFrame
    join_hint: str

    @property
    def fits(self) -> bool:
        """Whether the side is broadcast. Otherwise both sides are shuffled."""
        return self.join_hint == _BROADCAST

    def with_hint(self) -> DataFrame:
        """Return the rows with Spark's join hint. A later select keeps the hint."""
        return self.rows.hint(self.join_hint)

    def with_rows(self, rows: DataFrame) -> JoinSide:
        """Return other rows of the same size, to be joined in the same way."""
        return JoinSide(rows, self.join_hint)


def side_of(rows: DataFrame, *, fits: bool) -> JoinSide:
    """Return a side of known size. If it is not broadcast, its part of a shuffle must fit a task's memory."""
    return JoinSide(rows, _BROADCAST if fits else _HASH)


def look_up(
    messages: DataFrame,
    lookup: JoinSide,
    on: Sequence[str],
    when: Column | None = None,
    *,
    optional: Sequence[str] = (),
    by: str | None = None,
) -> DataFrame:
    """Join messages with the row of ``lookup`` that has the same values ``on``, by a left join.

    ``lookup`` has each value once, or once for each time of condition ``when``, so that the join keeps the number
    of messages. Null matches nothing. The key of the join is one 64-bit hash of the columns, and their equality is
    its condition, because Spark looks up a bigint much faster than several texts. The condition separates values
    with the same hash.

    ``optional`` has the columns that many messages lack. A message with null in one of these is not looked up. If
    ``lookup`` is not broadcast, such messages get a hash of their other values, because otherwise one task would
    get all of them.

    If ``lookup`` is not broadcast, messages are shuffled. With ``by``, one of the columns, they are shuffled only
    by this column, and not again for further lookups by it.
    """
    rows = lookup.with_hint()
    hashed = on if by is None or lookup.fits else [by]
    renamed = rows.select(
        F.xxhash64(*hashed).alias("_side_hash"),
        *(F.col(name).alias(f"_side_{name}" if name in on else name) for name in rows.columns),
    )
    of_message = F.xxhash64(*hashed)
    if optional and lookup.fits:
        of_message = F.when(_all(F.col(name).isNotNull() for name in optional), of_message)
    # Spark would use plain equalities as keys of the join.
    same = F.coalesce(_all(F.col(name) == F.col(f"_side_{name}") for name in on), F.lit(False))
    further = [] if when is None else [when]
    joined = messages.join(renamed, _all([of_message == F.col("_side_hash"), same, *further]), how="left")
    return joined.drop("_side_hash", *(f"_side_{name}" for name in on))


def select_by_hash(rows: DataFrame, hash_of: Column, hashes: JoinSide, count: int | None = None) -> DataFrame:
    """Select the rows whose 64-bit hash is among ``hashes`` (column ``hash``), by a semi-join.

    ``count`` is the number of hashes, if it is known. A table of very many hashes is larger than the cache of a
    processor, so each lookup takes long. A bitmap that fits into the cache then excludes most rows first.
    """
    columns = rows.columns
    rows = rows.select("*", hash_of.alias("_hash"))
    if hashes.fits and count is not None and _BITMAP_LEAST <= count <= _BITMAP_MOST:
        word, bit = _place_in_bitmap(F.col("_hash"))
        is_set = F.call_function("shiftright", F.get("bitmap", word), bit).bitwiseAND(1) == 1
        rows = rows.join(small_side(_make_bitmap(hashes.rows)), is_set, how="left_semi")
    selected = rows.join(hashes.with_hint(), F.col("_hash") == F.col("hash"), how="left_semi")
    return selected.select(*columns)


def _make_bitmap(hashes: DataFrame) -> DataFrame:
    """Return one row with a bitmap of the hashes, an array of bigints."""
    word, bit = _place_in_bitmap(F.col("hash"))
    one = F.call_function("shiftleft", F.lit(1).cast("bigint"), bit)
    numbered = hashes.select(word.alias("word"), one.alias("bits"))
    words = numbered.groupBy("word").agg(F.bit_or("bits").alias("bits"))
    empty = hashes.sparkSession.range(0, _BITMAP_WORDS, 1, 1)
    bits = F.coalesce("bits", F.lit(0).cast("bigint")).alias("bits")
    all_words = empty.join(small_side(words), F.col("id") == F.col("word"), how="left").select("id", bits)
    in_order = F.array_sort(F.collect_list(F.struct("id", "bits")))
    return all_words.agg(F.transform(in_order, lambda each: each["bits"]).alias("bitmap"))


def _place_in_bitmap(hash_of: Column) -> tuple[Column, Column]:
    """Return the index of a hash's bigint in the bitmap, and the number of its bit."""
    word = hash_of.bitwiseAND(_BITMAP_WORDS - 1).cast("int")
    return word, F.shiftrightunsigned(hash_of, 58).cast("int")


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(Column.__and__, conditions)


@dataclass(frozen=True)
class BroadcastBudget:
    """The budget of ``limit`` bytes for a broadcast. ``notes`` has a note for each larger side.

    A task holds up to ``task_bytes`` of a join's side.
    """

    limit: int
    notes: list[str] = field(default_factory=list)
    task_bytes: int = FRAME_LIMITS.task_bytes

    @classmethod
    def of_run(cls, context: RunContext, limits: FrameLimits) -> BroadcastBudget:
        """Return the budget of a run's ``broadcast_limit``, such as ``512MB``. The run gets the notes."""
        return cls(size_in_bytes(context.options.broadcast_limit), context.notes, limits.task_bytes)

    def join_side(self, rows_name: str, rows: DataFrame, count: int | None = None) -> JoinSide:
        """Measure the rows and choose how to join them. ``rows_name`` names them in the notes.

        The rows are not read if ``count``, their number or an upper limit of it, is enough to decide.
        """
        least = (count or 0) * bytes_of_columns(rows.schema)
        if count is not None and not any(isinstance(column.dataType, _OF_ANY_SIZE) for column in rows.schema):
            return self.of_size(rows_name, rows, least)
        if least > self.limit:
            # The exact size is unknown.
            return self._without(rows_name, rows, f"at least {least} bytes", _MERGE)
        if count == 0:
            return JoinSide(rows, _BROADCAST)
        return self.of_size(rows_name, rows, int(rows.agg(bytes_of_rows(rows.schema)).collect()[0][0]))

    def of_size(self, rows_name: str, rows: DataFrame, size: int) -> JoinSide:
        """Choose how to join rows of a known size in bytes."""
        if size <= self.limit:
            return JoinSide(rows, _BROADCAST)
        part = size / _partitions(rows.sparkSession)
        return self._without(rows_name, rows, f"{size} bytes", _HASH if part <= self.task_bytes else _MERGE)

    def _without(self, rows_name: str, rows: DataFrame, size: str, join_hint: str) -> JoinSide:
        self.notes.append(
            f"{rows_name} are over broadcast_limit ({size}): both sides are shuffled to join them"
            f" ({_CALLED[join_hint]})"
        )
        return JoinSide(rows, join_hint)


def _partitions(spark: SparkSession) -> int:
    """Return the number of shuffle partitions, or 1 if the platform decides it later."""
    parts = find_setting(spark, "spark.sql.shuffle.partitions") or ""
    return int(parts) if parts.isdigit() and int(parts) else 1


def bytes_of_columns(schema: StructType) -> int:
    """Return the bytes of a row in a join's table without its texts."""
    return _ROW + _BROADCAST_COLUMN * len(schema)


def bytes_of_rows(schema: StructType) -> Column:
    """Return an aggregate: the bytes of all rows."""
    return F.count(F.lit(1)) * bytes_of_columns(schema) + F.coalesce(F.sum(bytes_of_texts(schema)), F.lit(0))
