"""One select a table that brings an input frame to its declared columns (tables.md, 'Types that are accepted')."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from routing.errors import InputError
from routing.schemas import TABLES, AnyKind, ArrayOf, ColumnKind, Schema

_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_TEXTS = ("string", "char", "varchar")
_MICROSECONDS_A_DAY = 86_400_000_000


def conform(frame: DataFrame, key: str) -> DataFrame:
    """Return the declared columns of table ``key``, in order, in the types that the rules work with.

    Columns are matched without case, as Spark does. Extra ones are left out, missing optional ones are null.
    Integers come out as bigint, so that a value which does not fit its column is still there to be reported.
    Raises InputError naming every column that is missing or of a type that is not accepted.
    """
    schema = TABLES[key]
    faults = column_faults(frame.schema, key)
    if faults:
        raise InputError.wrong_columns(key, faults)
    types = _types_by_name(frame.schema)
    return frame.select(
        *(
            _convert(F.col(f"`{field.name}`"), types.get(field.name, NullType()), field.kind).alias(field.name)
            for field in schema
        )
    )


def _types_by_name(columns: StructType) -> dict[str, DataType]:
    """Return the types of columns by their names in lower case."""
    return {field.name.lower(): field.dataType for field in columns}


def in_shape(rows: DataFrame, shape: Schema, values: Mapping[str, Column] | None = None) -> DataFrame:
    """Select the columns of a schema in its types; ``values`` are the columns that are not there by name."""
    own_values = values or {}
    # Types as text: pyspark hands over any other form of them by way of JSON and the session, five calls for one.
    return rows.select(*(own_values.get(f.name, F.col(f.name)).cast(str(f.kind)).alias(f.name) for f in shape))


def no_rows(spark: SparkSession, shape: Schema) -> DataFrame:
    """Return an empty frame of a schema."""
    return in_shape(spark.range(0), shape, {name: F.lit(None) for name in shape.names})


def column_faults(columns: StructType, key: str) -> list[str]:
    """List the faults of a table's columns, a text each; empty where there are none."""
    types = _types_by_name(columns)
    faults = []
    for field in TABLES[key]:
        kind = types.get(field.name, NullType())
        if isinstance(kind, NullType):
            if not field.nullable:
                faults.append(f"required column {field.name} is missing")
        elif not _is_accepted(kind, field.kind):
            faults.append(f"column {field.name} is {kind.simpleString()}, not {field.kind}")
    return faults


def _is_accepted(actual: DataType, wanted: AnyKind) -> bool:
    if wanted in (ColumnKind.INT, ColumnKind.BIGINT):
        return isinstance(actual, _INTEGERS)
    if wanted == ColumnKind.STRING:
        return actual.typeName() in _TEXTS
    if wanted == ColumnKind.TIMESTAMP:
        return isinstance(actual, TimestampType | TimestampNTZType)
    if isinstance(wanted, ArrayOf):
        return isinstance(actual, ArrayType) and (
            isinstance(actual.elementType, NullType) or _is_accepted(actual.elementType, wanted.element)
        )
    return wanted == ColumnKind.BOOLEAN and isinstance(actual, BooleanType)


def _convert(column: Column, actual: DataType, wanted: AnyKind) -> Column:
    kind = str(ColumnKind.BIGINT if wanted == ColumnKind.INT else wanted)
    if isinstance(actual, NullType):
        return F.lit(None).cast(kind)
    if isinstance(actual, TimestampNTZType):
        return _as_utc(column)
    if wanted == ColumnKind.STRING:
        return _plain_text(column, actual)
    if isinstance(actual, ArrayType):
        return F.transform(column.cast(kind), lambda element: _plain_text(element, actual.elementType))
    return column.cast(kind)


def _plain_text(column: Column, kind: DataType) -> Column:
    """Return the text in the binary collation, whatever the column's own, so that names are compared exactly."""
    collation = getattr(kind, "collation", "UTF8_BINARY")
    if isinstance(kind, StringType) and collation != "UTF8_BINARY":
        return F.call_function("collate", column, F.lit("UTF8_BINARY"))
    return column.cast(StringType())


def _as_utc(time: Column) -> Column:
    """Return a time without zone as the UTC moment it names.

    Built from its parts: a cast would read it in the session's zone, and that need not be UTC.
    """
    days = F.datediff(F.to_date(time), F.lit("1970-01-01").cast("date")).cast("bigint")
    seconds = (F.hour(time) * 3600 + F.minute(time) * 60).cast("bigint") * 1_000_000
    micros = (F.date_part(F.lit("SECOND"), time) * 1_000_000).cast("bigint")
    return F.timestamp_micros(days * _MICROSECONDS_A_DAY + seconds + micros)
