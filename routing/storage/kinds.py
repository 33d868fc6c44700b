"""The kinds of `schemas` as the types of Spark and of Arrow; each is imported where it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.schemas import AnyKind, ArrayOf, Kind, MapOf, Schema

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import DataType, StructType


def spark_schema(schema: Schema) -> StructType:
    """A schema as Spark's."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, spark_type(field.kind), field.nullable) for field in schema])


def spark_type(kind: AnyKind) -> DataType:
    """A kind as Spark's type."""
    from pyspark.sql import types

    if isinstance(kind, ArrayOf):
        return types.ArrayType(spark_type(kind.element))
    if isinstance(kind, MapOf):
        return types.MapType(spark_type(kind.key), spark_type(kind.value))
    if isinstance(kind, Schema):
        return spark_schema(kind)
    of: dict[Kind, DataType] = {
        Kind.STRING: types.StringType(),
        Kind.INT: types.IntegerType(),
        Kind.BIGINT: types.LongType(),
        Kind.DOUBLE: types.DoubleType(),
        Kind.BOOLEAN: types.BooleanType(),
        Kind.TIMESTAMP: types.TimestampType(),
    }
    return of[kind]


def arrow_schema(schema: Schema) -> pyarrow.Schema:
    """A schema as Arrow's."""
    import pyarrow

    return pyarrow.schema([pyarrow.field(f.name, arrow_type(f.kind), f.nullable) for f in schema])


def arrow_type(kind: AnyKind) -> pyarrow.DataType:
    """A kind as Arrow's type; times are microseconds in UTC."""
    import pyarrow

    if isinstance(kind, ArrayOf):
        return pyarrow.list_(arrow_type(kind.element))
    if isinstance(kind, MapOf):
        return pyarrow.map_(arrow_type(kind.key), arrow_type(kind.value))
    if isinstance(kind, Schema):
        return pyarrow.struct([pyarrow.field(field.name, arrow_type(field.kind)) for field in kind])
    of: dict[Kind, Any] = {
        Kind.STRING: pyarrow.string(),
        Kind.INT: pyarrow.int32(),
        Kind.BIGINT: pyarrow.int64(),
        Kind.DOUBLE: pyarrow.float64(),
        Kind.BOOLEAN: pyarrow.bool_(),
        Kind.TIMESTAMP: pyarrow.timestamp("us", "UTC"),
    }
    return of[kind]
