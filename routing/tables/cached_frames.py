"""Small frames that several passes read: computed once, and where they are really small, rows of the driver.

Planning the scan of a small table, which each pass would do anew, takes longer than reading it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

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

from routing.sessions.existing_session import find_setting, let_go, takes_persist
from routing.tables.frames import has_arrow

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class FrameLimits:
    """Limits of how much of a frame the driver, a client and a task hold in memory.

    The driver carries a frame of up to ``held_rows`` rows, of ``held_bytes`` bytes of text each: 80 MB at most.
    The client of a session that keeps nothing itself carries up to ``client_rows`` rows, of ``client_bytes``
    together; so does the driver of frames that others are made of. Serverless compute takes 128 MB of local data
    at a time.
    A task holds up to ``task_bytes`` of a join's side; more is sorted, which goes to disk where it must.
    """

    held_rows: int = 20_000
    held_bytes: int = 4_000
    client_rows: int = 200_000
    client_bytes: int = 32 * 1024**2
    task_bytes: int = 64 * 1024**2


FRAME_LIMITS = FrameLimits()
# Besides its texts a row is about so many bytes for each column.
_COLUMN = 8
_OF_ANY_SIZE = (StringType, BinaryType, ArrayType, MapType, StructType)
_IS_LONG = "_is_long"
# Python has no text of any bytes, and its times without a zone are told twice where clocks are set back.
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
    """Keeps frames that are read more than once, until `release`, or the end of a ``with`` block."""

    def __init__(self, limits: FrameLimits = FRAME_LIMITS) -> None:
        self.limits = limits
        self.frames: list[DataFrame] = []
        """What the session's block storage holds."""

    def __enter__(self) -> FrameCache:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.release()
        except Exception:
            # What ended the block may have ended the session; the block's own error says more.
            if error is None:
                raise

    def keep(self, small: DataFrame) -> DataFrame:
        """Compute a small frame once, now: the driver carries few rows, storage keeps more.

        Where the session keeps nothing its rows go by way of the client; very many are computed anew by each pass
        that reads them.
        """
        if not takes_persist(small.sparkSession):
            return self._carry_by_client(small).rows
        stored = self.store(small)
        return self._instead(stored, self.carry(stored)).rows

    def keep_sized(self, small: DataFrame, most_rows: int | None = None) -> CarriedFrame:
        """Return a frame of which other kept frames are made, computed once, now; and its size.

        A plan that is printed has all that a frame in storage was made of, each time that the frame is read. So
        more rows are carried by the driver here: up to ``client_rows``, of ``client_bytes`` together.
        ``most_rows``: it has no more rows than that; where these are few it is not stored before it is read, for
        what is stored is computed in as many tasks as a shuffle has partitions. Only one of long rows is computed
        twice then.
        """
        if most_rows is not None and most_rows <= self.limits.held_rows:
            few_rows = _carry(small, self._mark_long(small), most_rows)
            if few_rows.rows is not small:
                return self._read_by_workers_once(few_rows)
        if not takes_persist(small.sparkSession):
            return self._carry_by_client(small)
        stored = self.store(small)
        carried = self.carry(stored)
        if carried.rows is stored and _is_for_a_client(stored, self.limits):
            carried = _carry(stored, _without_long(stored, F.lit(False)), self.limits.client_rows)
        return self._instead(stored, carried)

    def hold(self, frame: DataFrame) -> DataFrame:
        """Read a frame once into the driver; one of many or long rows, or without Arrow, stays as it is."""
        return self.carry(frame).rows if has_arrow() else frame

    def carry(self, frame: DataFrame) -> CarriedFrame:
        """Read a frame of few and short rows into the driver; any other stays as it is."""
        # A limit that comes last takes no exchange where there is one part.
        return _carry(frame, self._mark_long(frame).limit(self.limits.held_rows + 1), self.limits.held_rows)

    def _mark_long(self, frame: DataFrame) -> DataFrame:
        return _without_long(frame, bytes_of_texts(frame.schema) > self.limits.held_bytes)

    def _carry_by_client(self, frame: DataFrame) -> CarriedFrame:
        are_many_bytes = _all_bytes(frame.schema) > self.limits.client_bytes
        marked = _without_long(frame.limit(self.limits.client_rows + 1), are_many_bytes)
        return _carry(frame, marked, self.limits.client_rows)

    def _instead(self, stored: DataFrame, carried: CarriedFrame) -> CarriedFrame:
        """Return the rows that the driver carries in place of a frame in storage, or that frame."""
        if carried.rows is stored:
            return carried
        read_once = self._read_by_workers_once(carried)
        self.frames.remove(stored)
        let_go(stored)
        return read_once

    def _read_by_workers_once(self, carried: CarriedFrame) -> CarriedFrame:
        """Return carried rows, stored if Python workers hand them over: what made them is in no later plan."""
        return carried if has_arrow() else carried._replace(rows=self.store(carried.rows))

    def store(self, frame: DataFrame) -> DataFrame:
        """Return a frame that many parts of one pass read: kept in storage, filled by the first of them.

        For tables that are too large to be rows of the driver. Where the session keeps nothing the frame as it is.
        """
        if not takes_persist(frame.sparkSession):
            return frame
        cached = frame.persist()
        self.frames.append(cached)
        return cached

    def release(self) -> None:
        """Release all frames; they can still be read, computed anew."""
        while self.frames:
            let_go(self.frames.pop())


@contextmanager
def released_on_failure(limits: FrameLimits = FRAME_LIMITS) -> Iterator[FrameCache]:
    """Yield a cache that outlives the block, unless the block fails."""
    with ExitStack() as on_failure:
        yield on_failure.enter_context(FrameCache(limits))
        on_failure.pop_all()


class CarriedFrame(NamedTuple):
    """A frame, and the bytes of its values where the driver carries them, None where it does not.

    ``values`` are its rows as Arrow, where the driver carries them so.
    """

    rows: DataFrame
    size: int | None
    values: pyarrow.Table | None = None


def _carry(frame: DataFrame, marked: DataFrame, most: int) -> CarriedFrame:
    """Read a frame into this process and give it back; one of more rows, or of long ones, stays as it is.

    ``marked`` are its first rows, as `_without_long` marks them.
    """
    spark = frame.sparkSession
    if has_arrow():
        table = marked.toArrow()
        is_small = table.num_rows <= most and True not in table[_IS_LONG].to_pylist()
        if not is_small:
            return CarriedFrame(frame, None)
        values = table.select(frame.columns)
        return CarriedFrame(_as_rows(spark, values, frame.schema), values.nbytes, values)
    plain = marked.select(_IS_LONG, *_columns_as(frame.schema, _AS_PLAIN))
    rows = [tuple(row) for row in plain.collect()]
    if len(rows) > most or any(is_long for is_long, *_ in rows):
        return CarriedFrame(frame, None)
    plain_values = [row[1:] for row in rows]
    plain_rows = spark.createDataFrame(plain_values, StructType(_nullable(plain.schema).fields[1:]))
    return CarriedFrame(plain_rows.select(*_columns_as(frame.schema, _AS_READ)), _bytes_of(plain_values))


def _columns_as(schema: StructType, forms: _Forms) -> Iterator[Column]:
    return (_in_form(F.col(field.name), field.dataType, forms).alias(field.name) for field in schema)


def _in_form(value: Column, kind: DataType, forms: _Forms) -> Column:
    """Return a value of a type, each text and time of it in another form."""
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda one: _in_form(one, kind.elementType, forms))
    if isinstance(kind, StructType):
        fields = (_in_form(value[field.name], field.dataType, forms).alias(field.name) for field in kind)
        return F.when(value.isNotNull(), F.struct(*fields))
    form = forms.get(type(kind))
    return value if form is None else form(value)


def _bytes_of(value: Any) -> int:
    """Return about how many bytes rows of plain Python take."""
    if isinstance(value, bytes | bytearray):
        return len(value)
    return sum(map(_bytes_of, value)) if isinstance(value, list | tuple) else _COLUMN


def _without_long(rows: DataFrame, is_long: Column) -> DataFrame:
    """Mark long rows, and make them all null: a name may have a million characters."""
    marked = rows.select(is_long.alias(_IS_LONG), "*")
    return marked.select(_IS_LONG, *(F.when(~F.col(_IS_LONG), _loose(f)).alias(f.name) for f in rows.schema))


def _is_for_a_client(stored: DataFrame, limits: FrameLimits) -> bool:
    """Return True if a client may carry a frame that is in storage: few enough rows and bytes."""
    size = F.coalesce(F.sum(_bytes_of_row(stored.schema)), F.lit(0))
    is_small = (F.count(F.lit(1)) <= limits.client_rows) & (size <= limits.client_bytes)
    [row] = stored.agg(is_small).collect()
    return bool(row[0])


def _all_bytes(schema: StructType) -> Column:
    """Return the bytes of all rows together, which each of them says."""
    # One partition for all: without any Spark warns of its size.
    return F.sum(_bytes_of_row(schema)).over(Window.partitionBy(F.lit(0)))


def _bytes_of_row(schema: StructType) -> Column:
    return bytes_of_texts(schema) + F.lit(_COLUMN * len(schema))


def bytes_of_texts(schema: StructType) -> Column:
    """Return the bytes of those columns of a row that may be of any size."""
    lengths = [
        F.coalesce(F.octet_length(_as_text(field.name, field.dataType)), F.lit(0)).cast("bigint")
        for field in schema
        if isinstance(field.dataType, _OF_ANY_SIZE)
    ]
    return reduce(Column.__add__, lengths, F.lit(0).cast("bigint"))


def _as_text(name: str, kind: DataType) -> Column:
    return F.col(name) if isinstance(kind, (StringType, BinaryType)) else F.col(name).cast("string")


def _loose(column: StructField) -> Column:
    """Return a column of which every field may be null: Arrow takes no null struct of fields that may not."""
    value = F.col(column.name)
    is_nested = isinstance(column.dataType, StructType | ArrayType)
    return value.cast(_nullable(column.dataType).simpleString()) if is_nested else value


def _as_rows(spark: SparkSession, rows: Any, schema: StructType) -> DataFrame:
    """Convert an Arrow table to a DataFrame, all nullable: Arrow refuses a null struct of required fields."""
    return spark.createDataFrame(rows, _nullable(schema))


def _nullable(kind: Any) -> Any:
    """Return a type in which every field and element may be null."""
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _nullable(f.dataType), True, f.metadata) for f in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType), True)
    return kind


# How the smaller side of a join gets to the larger one; the only room that gives Spark a hint.
#
# What a configuration bounds is broadcast as it is (`small_side`). What messages make has no bound: it is
# measured, and above ``resolve.broadcast_limit`` it is not broadcast but shuffled, and the run says so
# (`BroadcastBudget`).


_BROADCAST, _HASH, _MERGE = "broadcast", "shuffle_hash", "merge"
_CALLED = {_HASH: "shuffled hash join", _MERGE: "sort-merge join"}
# What a row takes in a join's table besides its texts, roughly: for itself, and for each column.
_ROW, _BROADCAST_COLUMN = 100, 16


def small_side(rows: DataFrame) -> DataFrame:
    """Broadcast rows whose number the configuration, or a caller's question, bounds.

    Never what messages make.
    """
    return rows.hint(_BROADCAST)


@dataclass(frozen=True)
class JoinSide:
    """The smaller side of a join, and how it is joined."""

    rows: DataFrame
    how: str

    @property
    def fits(self) -> bool:
        """Whether it is broadcast; else both sides are shuffled."""
        return self.how == _BROADCAST

    def with_hint(self) -> DataFrame:
        """Return the rows with Spark's hint, which selects keep."""
        return self.rows.hint(self.how)


def side_of(rows: DataFrame, *, fits: bool) -> JoinSide:
    """Return a side whose size its caller knows; one that does not fit is no more than tasks can hold."""
    return JoinSide(rows, _BROADCAST if fits else _HASH)


@dataclass(frozen=True)
class BroadcastBudget:
    """The budget for broadcasts: up to ``limit`` bytes. ``notes`` tell the rest; a task holds ``task_bytes``."""

    limit: int
    notes: list[str] = field(default_factory=list)
    task_bytes: int = FRAME_LIMITS.task_bytes

    def join_side(self, what: str, rows: DataFrame, count: int | None = None) -> JoinSide:
        """Return a side of the size that its rows have, which are read for it; ``what`` names them in the notes.

        Where ``count``, the number of rows, tells enough they are not read.
        """
        least = (count or 0) * _broadcast_joins_bytes_of_row(rows.schema)
        if least > self.limit:
            # By how much is not known.
            return self._without(what, rows, f"at least {least} bytes", _MERGE)
        if count == 0:
            return JoinSide(rows, _BROADCAST)
        return self.of_size(what, rows, int(rows.agg(_size(rows.schema)).collect()[0][0]))

    def of_size(self, what: str, rows: DataFrame, size: int) -> JoinSide:
        """Return a side of a known size in bytes."""
        if size <= self.limit:
            return JoinSide(rows, _BROADCAST)
        part = size / _partitions(rows.sparkSession)
        return self._without(what, rows, f"{size} bytes", _HASH if part <= self.task_bytes else _MERGE)

    def _without(self, what: str, rows: DataFrame, size: str, how: str) -> JoinSide:
        self.notes.append(
            f"{what} are over broadcast_limit ({size}): both sides are shuffled to join them ({_CALLED[how]})"
        )
        return JoinSide(rows, how)


def _partitions(spark: SparkSession) -> int:
    """Return the number of a shuffle's parts; a platform that decides it later promises none."""
    parts = find_setting(spark, "spark.sql.shuffle.partitions") or ""
    return int(parts) if parts.isdigit() and int(parts) else 1


def _broadcast_joins_bytes_of_row(schema: StructType) -> int:
    return _ROW + _BROADCAST_COLUMN * len(schema)


def _size(schema: StructType) -> Column:
    """Return the bytes of all rows, an aggregate."""
    return F.count(F.lit(1)) * _broadcast_joins_bytes_of_row(schema) + F.coalesce(
        F.sum(bytes_of_texts(schema)), F.lit(0)
    )
