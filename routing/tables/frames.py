"""Convert schemas and rows of plain Python to Spark, and frames to rows, through Arrow if it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
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

from routing.rules.text import decode_utf8
from routing.schemas import AnyKind, ArrayOf, ColumnKind, Field, MapOf, Schema
from routing.tables.arrow_rows import arrow_schema, plain_values, table_of, with_moments
from routing.tables.table_columns import Filter, TableColumns
from routing.terms import ReadRow, TableRow

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")
R = TypeVar("R")
# The number of rows that are Python objects at the same time.
_PART = 50_000
_SPARK_TYPES: dict[ColumnKind, DataType] = {
    ColumnKind.STRING: StringType(),
    ColumnKind.INT: IntegerType(),
    ColumnKind.BIGINT: LongType(),
    ColumnKind.DOUBLE: DoubleType(),
    ColumnKind.BOOLEAN: BooleanType(),
    ColumnKind.TIMESTAMP: TimestampType(),
}


def spark_schema(schema: Schema) -> StructType:
    """Return a schema as a Spark schema."""
    return StructType([StructField(field.name, spark_type(field.kind), field.nullable) for field in schema])


def spark_type(kind: AnyKind) -> DataType:
    """Return a kind as a Spark type."""
    if isinstance(kind, ArrayOf):
        return ArrayType(spark_type(kind.element))
    if isinstance(kind, MapOf):
        return MapType(spark_type(kind.key), spark_type(kind.value))
    if isinstance(kind, Schema):
        return spark_schema(kind)
    return _SPARK_TYPES[kind]


def run_concurrently(spark: SparkSession, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Apply a function to all items at the same time and return the results in order.

    Spark spends most of a small query on planning, which uses only a part of a machine. Before pyspark 4.0 threads
    cannot share a session, so the items are processed one after another.
    """
    if not has_arrow() or len(items) < 2:
        return [work(item) for item in items]
    from pyspark import inheritable_thread_target

    # Each item needs its own target, because a target has a copy of this thread's properties.
    threads = [inheritable_thread_target(spark)(work) for _ in items]
    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(lambda thread, item: thread(item), threads, items))


def collect(frame: DataFrame) -> TableColumns:
    """Return the rows of a small frame as columns. Text that is not UTF-8 is an `UndecodedText`.

    Without Arrow texts are read as bytes, because pyspark replaces undecodable bytes.
    """
    frame = times_as_numbers(frame)
    if has_arrow():
        return _columns_of(frame.toArrow())
    rows = frame.select(*(_as_bytes(field).alias(field.name) for field in frame.schema)).collect()
    return TableColumns({name: [_decoded(row[place]) for row in rows] for place, name in enumerate(frame.columns)})


def collect_few(frame: DataFrame, most: int) -> TableColumns | None:
    """Return the rows of a frame as `collect` does, or None if it has more than ``most``. Needs Arrow."""
    table = times_as_numbers(frame).limit(most + 1).toArrow()
    return _columns_of(table) if table.num_rows <= most else None


def _columns_of(table: pyarrow.Table) -> TableColumns:
    return TableColumns({name: plain_values(table[name]) for name in table.column_names})


def _as_bytes(field: StructField) -> Column:
    """Return a column with its texts, or the texts of its lists, as bytes."""
    kind = field.dataType
    if isinstance(kind, StringType):
        return F.col(field.name).cast("binary")
    is_list = isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType)
    return F.col(field.name).cast("array<binary>") if is_list else F.col(field.name)


def _decoded(value: Any) -> Any:
    if isinstance(value, bytearray | bytes):
        return decode_utf8(bytes(value))
    return [_decoded(one) for one in value] if isinstance(value, list) else value


def where_in(frame: DataFrame, only: Filter) -> DataFrame:
    """Return the rows whose columns have one of the values in ``only``."""
    for name, values in only.items():
        column = F.col(name)
        frame = frame.where(column.isNull()) if values is None else frame.where(column.isin(list(values)))
    return frame


def with_columns_of(rows: DataFrame, schema: Schema) -> DataFrame:
    """Select the columns of a schema from a table, ignoring case. Missing columns are null."""
    present = {name.lower() for name in rows.columns}
    nulls = {field.name: F.lit(None).cast(str(field.kind)) for field in schema if field.name not in present}
    return rows.select(*(nulls.get(name, F.col(name)).alias(name) for name in schema.names))


def rows_of(frame: DataFrame) -> list[TableRow]:
    """Collect a small frame in its order. Times are aware and in UTC, in any time zone of session and machine."""
    times = _times_of(frame)
    return with_moments((row.asDict(recursive=True) for row in times_as_numbers(frame).collect()), times)


def times_as_numbers(frame: DataFrame) -> DataFrame:
    """Convert times to microseconds since 1970, because collected timestamps are in this machine's time zone."""
    times = _times_of(frame)
    return frame.withColumns({name: F.unix_micros(name) for name in times}) if times else frame


def _times_of(frame: DataFrame) -> list[str]:
    return [field.name for field in frame.schema if isinstance(field.dataType, TimestampType)]


def frame_of(spark: SparkSession, rows: Iterable[ReadRow], schema: Schema) -> DataFrame:
    """Convert rows of plain Python to a DataFrame of a schema. Missing keys become null, and times must be aware.

    The rows go through Arrow if pyspark supports it. Otherwise Python workers read them in every job that uses
    them.
    """
    rows = list(rows)
    if rows and has_arrow():
        return spark.createDataFrame(table_of(rows, schema), spark_schema(schema))
    return spark.createDataFrame(
        [tuple(row.get(field.name) for field in schema) for row in rows], spark_schema(schema)
    )


def frame_of_tuples(spark: SparkSession, rows: Iterable[tuple[Any, ...]], schema: Schema) -> DataFrame:
    """Convert tuples in the order of a schema to a DataFrame. Times are microseconds since 1970.

    Spark converts these numbers to times, so no time zone matters. Times inside other values are not converted.
    """
    times = [field.name for field in schema if field.kind == ColumnKind.TIMESTAMP]
    numbers = Schema(tuple(Field(f.name, ColumnKind.BIGINT, f.nullable) if f.name in times else f for f in schema))
    data: Any = _arrow_of(rows, numbers) if has_arrow() else list(rows)
    frame = spark.createDataFrame(data, spark_schema(numbers))
    return frame.withColumns({name: F.timestamp_micros(name) for name in times}) if times else frame


def _arrow_of(rows: Iterable[tuple[Any, ...]], schema: Schema) -> pyarrow.Table:
    """Convert rows to Arrow in parts, to limit the number of Python objects."""
    import pyarrow

    kinds = arrow_schema(schema)
    batches, rest = [], iter(rows)
    while part := list(islice(rest, _PART)):
        columns = zip(*part, strict=True)
        arrays = [pyarrow.array(column, kind.type) for column, kind in zip(columns, kinds, strict=True)]
        batches.append(pyarrow.record_batch(arrays, schema=kinds))
    # pyspark cannot find the type of a column without chunks.
    return pyarrow.Table.from_batches(batches, kinds) if batches else kinds.empty_table()


@cache
def has_arrow() -> bool:
    """Return whether Spark and Python exchange rows through Arrow, from pyspark 4.0 with the pyarrow it needs.

    Some platforms offer `toArrow` in 3.5 too, but not the functions that belong to it.
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
