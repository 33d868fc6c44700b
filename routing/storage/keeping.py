"""Small frames that several passes read: computed once, and where they are really small, rows of the driver.

Planning the scan of a small table, which each pass would do anew, takes longer than reading it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, timezone
from functools import cache, reduce
from itertools import islice
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from routing.sessions import session

T = TypeVar("T")
R = TypeVar("R")
# Up to this many rows, of this many bytes of text each, a frame is carried by the driver: 80 MB at most.
HELD_ROWS, HELD_BYTES = 20_000, 4_000
# The same for the client of Spark Connect, where nothing can be kept elsewhere.
CLIENT_ROWS = 200_000
_OF_ANY_SIZE = (StringType, BinaryType, ArrayType, MapType, StructType)
_IS_LONG = "_is_long"
_PART = 50_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Keeper:
    """Keeps frames that are read more than once, until `release`, or the end of a ``with`` block."""

    def __init__(self) -> None:
        self.frames: list[DataFrame] = []
        """What the session's block storage holds."""

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def keep(self, small: DataFrame) -> DataFrame:
        """A small frame, computed once, now: few rows are carried by the driver, others are kept in storage.

        On Spark Connect, where nothing can be kept, its rows go by way of the client; very many are computed anew
        by each pass that reads them.
        """
        if session.is_connect(small.sparkSession):
            return _carry(small, CLIENT_ROWS)
        # Held rows are taken from the storage: to find out that there are too many must not mean to do it again.
        kept = self.cached(small)
        rows = hold(kept)
        if rows is not kept:
            self.frames.remove(kept)
            kept.unpersist()
        elif not has_arrow():
            kept.count()
        return rows

    def cached(self, frame: DataFrame) -> DataFrame:
        """A frame that many parts of one pass read: kept in storage, filled by the first of them.

        For tables that are too large to be rows of the driver. On Spark Connect the frame as it is.
        """
        if session.is_connect(frame.sparkSession):
            return frame
        kept = frame.persist()
        self.frames.append(kept)
        return kept

    def release(self) -> None:
        """Let go of everything; the frames can still be read, at the price of computing them anew."""
        while self.frames:
            self.frames.pop().unpersist()


@contextmanager
def released_on_failure() -> Iterator[Keeper]:
    """A keeper for what outlives the block: it keeps on after it, unless the block fails."""
    with ExitStack() as on_failure:
        yield on_failure.enter_context(Keeper())
        on_failure.pop_all()


def hold_small(frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Conformed inputs, those of a small configuration as rows that the driver holds.

    Messages and dialogs, which grow with the traffic, stay as they are.
    """
    small = hold_together({key: frame for key, frame in frames.items() if key not in ("messages", "dialogs")})
    return {key: small.get(key, frame) for key, frame in frames.items()}


def hold(frame: DataFrame) -> DataFrame:
    """A frame as rows that the driver holds, read once; one of many or long rows, or without Arrow, as it is."""
    return _carry(frame, HELD_ROWS) if has_arrow() else frame


def _carry(frame: DataFrame, most: int) -> DataFrame:
    """A frame as rows that this process has read and given back; one of more rows, or of long ones, as it is."""
    spark, first = frame.sparkSession, _without_long(frame.limit(most + 1))
    if has_arrow():
        table = first.toArrow()
        is_small = table.num_rows <= most and True not in table[_IS_LONG].to_pylist()
        return _as_rows(spark, table.select(frame.columns), frame.schema) if is_small else frame
    rows = first.collect()
    is_small = len(rows) <= most and not any(row[_IS_LONG] for row in rows)
    return spark.createDataFrame([tuple(row)[1:] for row in rows], frame.schema) if is_small else frame


def _without_long(rows: DataFrame) -> DataFrame:
    """Rows after a mark that tells the long ones, which are all null: a name may have a million characters."""
    marked = rows.select((bytes_of_texts(rows.schema) > HELD_BYTES).alias(_IS_LONG), "*")
    return marked.select(_IS_LONG, *(F.when(~F.col(_IS_LONG), _loose(f)).alias(f.name) for f in rows.schema))


def bytes_of_texts(schema: StructType) -> Column:
    """The bytes of those columns of a row that may be of any size."""
    lengths = [
        F.coalesce(F.octet_length(_as_text(field.name, field.dataType)), F.lit(0)).cast("bigint")
        for field in schema
        if isinstance(field.dataType, _OF_ANY_SIZE)
    ]
    return reduce(Column.__add__, lengths, F.lit(0).cast("bigint"))


def _as_text(name: str, kind: DataType) -> Column:
    return F.col(name) if isinstance(kind, (StringType, BinaryType)) else F.col(name).cast("string")


def _loose(column: StructField) -> Column:
    """A column of which every field may be null: Arrow takes no null struct of fields that may not."""
    found = F.col(column.name)
    is_nested = isinstance(column.dataType, StructType | ArrayType)
    return found.cast(nullable(column.dataType).simpleString()) if is_nested else found


def hold_together(frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Frames as `hold` makes them, all at once."""
    if not frames:
        return {}
    spark = next(iter(frames.values())).sparkSession
    return dict(zip(frames, at_once(spark, hold, list(frames.values())), strict=True))


def at_once(spark: SparkSession, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """What a function makes of each item, in their order, all at the same time.

    A small query keeps a fraction of a machine busy: most of its time is planning. One after the other where
    pyspark cannot hand its session to a thread (before 4.0).
    """
    if not has_arrow() or len(items) < 2:
        return [work(item) for item in items]
    from pyspark import inheritable_thread_target

    # One for each item: what they inherit is a copy of this thread's properties, which two must not share.
    threads = [inheritable_thread_target(spark)(work) for _ in items]
    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(lambda thread, item: thread(item), threads, items))


def all_of(spark: SparkSession, *parts: Callable[[], Any]) -> list[Any]:
    """What each of several functions returns, by `at_once`; of several errors the one of the first of them."""
    return at_once(spark, lambda part: part(), parts)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a small frame in its order, times aware and UTC whatever the zone of session and machine."""
    times = _times_of(frame)
    rows = [row.asDict(recursive=True) for row in times_as_numbers(frame).collect()]
    for row in rows:
        row.update({name: None if row[name] is None else moment_of(row[name]) for name in times})
    return rows


def times_as_numbers(frame: DataFrame) -> DataFrame:
    """A frame with its times as microseconds since 1970: a collected timestamp is in the zone of this machine."""
    times = _times_of(frame)
    return frame.withColumns({name: F.unix_micros(name) for name in times}) if times else frame


def _times_of(frame: DataFrame) -> list[str]:
    return [field.name for field in frame.schema if isinstance(field.dataType, TimestampType)]


def moment_of(micros: int) -> datetime:
    """Microseconds since 1970 as an aware UTC time, exact."""
    return _EPOCH + timedelta(microseconds=micros)


def micros_of(time: datetime) -> int:
    """The same the other way round; a time without a zone is UTC."""
    return ((time if time.tzinfo else time.replace(tzinfo=timezone.utc)) - _EPOCH) // timedelta(microseconds=1)


def _as_rows(spark: SparkSession, rows: Any, schema: StructType) -> DataFrame:
    """An Arrow table as a DataFrame; everything may be null, for Arrow refuses a null struct of other fields."""
    return spark.createDataFrame(rows, nullable(schema))


def frame_of(spark: SparkSession, rows: Iterable[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """Rows of plain Python as a DataFrame of a schema; keys left out are null, times must be aware.

    By way of Arrow where pyspark and the machine know it: rows handed over otherwise are read by Python
    workers, in every job that uses them.
    """
    rows = list(rows)
    if rows and has_arrow():
        return spark.createDataFrame(arrow_of(rows, schema), schema)
    return spark.createDataFrame([_as_tuple(row, schema) for row in rows], schema)


def frame_of_tuples(spark: SparkSession, rows: Iterable[tuple[Any, ...]], schema: StructType) -> DataFrame:
    """Rows of plain Python, in the order of a schema, as a DataFrame; times are not taken.

    Some at a time, so that many rows are not as a whole objects of Python.
    """
    if not has_arrow():
        return spark.createDataFrame(list(rows), schema)
    import pyarrow

    kinds = pyarrow.schema([pyarrow.field(field.name, _arrow(field.dataType)) for field in schema])
    batches, rest = [], iter(rows)
    while part := list(islice(rest, _PART)):
        columns = zip(*part, strict=True)
        arrays = [pyarrow.array(column, kind.type) for column, kind in zip(columns, kinds, strict=True)]
        batches.append(pyarrow.record_batch(arrays, schema=kinds))
    return spark.createDataFrame(pyarrow.Table.from_batches(batches, kinds), schema)


def _as_tuple(row: Mapping[str, Any], schema: StructType) -> tuple[Any, ...]:
    return tuple(row.get(field.name) for field in schema)


def arrow_of(rows: Iterable[Mapping[str, Any]], schema: StructType) -> Any:
    """Rows of plain Python as an Arrow table of a schema, as `frame_of` takes them."""
    import pyarrow

    rows = list(rows)
    arrays = [
        pyarrow.array([_entries(row.get(f.name), f.dataType) for row in rows], _arrow(f.dataType)) for f in schema
    ]
    return pyarrow.table(arrays, names=schema.names)


def _entries(value: Any, kind: DataType) -> Any:
    """A value as Arrow takes it: a map is a list of its entries."""
    return list(value.items()) if isinstance(kind, MapType) and value is not None else value


def _arrow(kind: DataType) -> Any:
    import pyarrow

    if isinstance(kind, ArrayType):
        return pyarrow.list_(_arrow(kind.elementType))
    if isinstance(kind, MapType):
        return pyarrow.map_(_arrow(kind.keyType), _arrow(kind.valueType))
    if isinstance(kind, StructType):
        return pyarrow.struct([pyarrow.field(field.name, _arrow(field.dataType)) for field in kind])
    types: dict[DataType, Any] = {
        StringType(): pyarrow.string(),
        BooleanType(): pyarrow.bool_(),
        IntegerType(): pyarrow.int32(),
        LongType(): pyarrow.int64(),
        DoubleType(): pyarrow.float64(),
        TimestampType(): pyarrow.timestamp("us", "UTC"),
    }
    return types[kind]


def nullable(kind: Any) -> Any:
    """A type in which every field and element may be null."""
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, nullable(f.dataType), True, f.metadata) for f in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(nullable(kind.elementType), True)
    return kind


@cache
def has_arrow() -> bool:
    """Whether rows can be taken and given back as they are: from pyspark 4.0, with the pyarrow that it needs.

    Platforms have brought `toArrow` to 3.5 as well, but not what goes with it.
    """
    from pyspark import __version__

    if int(__version__.split(".")[0]) < 4:
        return False
    from pyspark.sql.pandas.utils import require_minimum_pyarrow_version

    try:
        require_minimum_pyarrow_version()
    except ImportError:
        return False
    return True
