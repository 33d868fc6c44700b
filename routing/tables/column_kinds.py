"""The kinds of `schemas` as the types of Spark and of Arrow; each is imported where it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.schemas import AnyKind, ArrayOf, ColumnKind, MapOf, Schema

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import DataType, StructType


def spark_schema(schema: Schema) -> StructType:
    """Return a schema as Spark's."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, spark_type(field.kind), field.nullable) for field in schema])


def spark_type(kind: AnyKind) -> DataType:
    """Return a kind as Spark's type."""
    from pyspark.sql import types

    if isinstance(kind, ArrayOf):
        return types.ArrayType(spark_type(kind.element))
    if isinstance(kind, MapOf):
        return types.MapType(spark_type(kind.key), spark_type(kind.value))
    if isinstance(kind, Schema):
        return spark_schema(kind)
    of: dict[ColumnKind, DataType] = {
        ColumnKind.STRING: types.StringType(),
        ColumnKind.INT: types.IntegerType(),
        ColumnKind.BIGINT: types.LongType(),
        ColumnKind.DOUBLE: types.DoubleType(),
        ColumnKind.BOOLEAN: types.BooleanType(),
        ColumnKind.TIMESTAMP: types.TimestampType(),
    }
    return of[kind]


def arrow_schema(schema: Schema) -> pyarrow.Schema:
    """Return a schema as Arrow's."""
    import pyarrow

    return pyarrow.schema([pyarrow.field(f.name, arrow_type(f.kind), f.nullable) for f in schema])


def arrow_type(kind: AnyKind) -> pyarrow.DataType:
    """Return a kind as Arrow's type; times are microseconds in UTC."""
    import pyarrow

    if isinstance(kind, ArrayOf):
        return pyarrow.list_(arrow_type(kind.element))
    if isinstance(kind, MapOf):
        return pyarrow.map_(arrow_type(kind.key), arrow_type(kind.value))
    if isinstance(kind, Schema):
        return pyarrow.struct([pyarrow.field(field.name, arrow_type(field.kind)) for field in kind])
    of: dict[ColumnKind, Any] = {
        ColumnKind.STRING: pyarrow.string(),
        ColumnKind.INT: pyarrow.int32(),
        ColumnKind.BIGINT: pyarrow.int64(),
        ColumnKind.DOUBLE: pyarrow.float64(),
        ColumnKind.BOOLEAN: pyarrow.bool_(),
        ColumnKind.TIMESTAMP: pyarrow.timestamp("us", "UTC"),
    }
    return of[kind]


_SPARK_NAMES = {
    "bool": "boolean",
    "date32[day]": "date",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "int8": "tinyint",
    "large_binary": "binary",
    "large_string": "string",
    "string_view": "string",
}


def spark_name(kind: pyarrow.DataType) -> str:
    """Return Spark's name for the Delta type of an Arrow type; Arrow's name where there is none."""
    from pyarrow import types

    if types.is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    if types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_name(field.type)}' for field in kind)}>"
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _SPARK_NAMES.get(str(kind), str(kind))
