"""Small tables as plain Python: columns in, from a DataFrame or from Arrow, and rows out, as either of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard, Union

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DataType, StringType, StructType, TimestampType

from routing.errors import InputError
from routing.rules.estate import Instance, Route, estate_of
from routing.schemas import INPUTS
from routing.storage import keeping
from routing.storage.conform import conform

if TYPE_CHECKING:
    import pyarrow

Table = Union[DataFrame, "pyarrow.Table"]
Only = Mapping[str, Collection[Any]]
_ROUTE = ("name", "remote_service_name", "broker_instance", "address", "mirror_address")
_BOUNDS = ("valid_from", "valid_to", "lifetime")


@dataclass(frozen=True)
class Columns:
    """A table's columns by name, in its declared columns; times are microseconds since 1970 in UTC."""

    values: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.values.values()), ()))

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """The values of some columns, a tuple for each row."""
        return zip(*(self.values[name] for name in names), strict=True)

    def where(self, name: str) -> Columns:
        """The rows whose value in a column is true, or a number that is not zero."""
        return self.take([place for place, value in enumerate(self.values[name]) if value])

    def take(self, places: Sequence[int]) -> Columns:
        """The rows in these places."""
        return Columns({name: [values[place] for place in places] for name, values in self.values.items()})

    def dicts(self) -> Iterator[dict[str, Any]]:
        """Whole rows."""
        names = list(self.values)
        return (dict(zip(names, row, strict=True)) for row in self.rows(*names))


def columns_of(table: Table, key: str, only: Only | None = None) -> Columns:
    """Input table ``key`` as columns; ``only`` are the values by column of which each row has one.

    Raises InputError naming every column that is missing or of a type that is not accepted (tables.md).
    """
    if is_frame(table):
        return _of_frame(conform(table, key), only or {})
    return _of_arrow(table, key, only or {})


def is_frame(table: Table) -> TypeGuard[DataFrame]:
    """Whether a table is Spark's, of a classic session or of Spark Connect, and not Arrow's."""
    return isinstance(table, DataFrame) or hasattr(table, "sparkSession")


def collect(frame: DataFrame) -> Columns:
    """The rows of a small frame as columns, by Arrow where it is known."""
    return _of_frame(frame, {})


def _of_frame(frame: DataFrame, only: Only) -> Columns:
    for name, values in only.items():
        frame = frame.where(F.col(name).isin(list(values)))
    frame = keeping.times_as_numbers(frame)
    if keeping.has_arrow():
        table = frame.toArrow()
        return Columns({name: table[name].to_pylist() for name in table.column_names})
    rows = frame.collect()
    return Columns({name: [row[place] for row in rows] for place, name in enumerate(frame.columns)})


def _of_arrow(table: Any, key: str, only: Only) -> Columns:
    import pyarrow
    import pyarrow.compute

    for name, values in only.items():
        if name in table.column_names:
            wanted = pyarrow.array(list(values), table.schema.field(name).type)
            table = rows_where(table, pyarrow.compute.is_in(table[name], value_set=wanted, skip_nulls=True))
    faults, found = [], {}
    for field in INPUTS[key]:
        kind = table.schema.field(field.name).type if field.name in table.column_names else pyarrow.null()
        if pyarrow.types.is_null(kind):
            if not field.nullable:
                faults.append(f"required column {field.name} is missing")
            found[field.name] = [None] * table.num_rows
        elif not _is_accepted(kind, field.dataType):
            faults.append(f"column {field.name} is {kind}, not {field.dataType.simpleString()}")
        else:
            found[field.name] = _values(table[field.name], field.dataType)
    if faults:
        raise InputError.wrong_columns(key, faults)
    return Columns(found)


def rows_where(table: pyarrow.Table, mask: pyarrow.ChunkedArray) -> pyarrow.Table:
    """The rows of an Arrow table for which a mask is true."""
    import pyarrow.compute

    return table.take(pyarrow.compute.indices_nonzero(mask))


def _is_accepted(kind: Any, wanted: DataType) -> bool:
    from pyarrow import types

    if isinstance(wanted, ArrayType):
        is_list = types.is_list(kind) or types.is_large_list(kind)
        return is_list and (types.is_null(kind.value_type) or _is_accepted(kind.value_type, wanted.elementType))
    if isinstance(wanted, StringType):
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
    if isinstance(wanted, TimestampType):
        return bool(types.is_timestamp(kind))
    if isinstance(wanted, BooleanType):
        return bool(types.is_boolean(kind))
    return bool(types.is_signed_integer(kind))


def _values(column: Any, wanted: DataType) -> list[Any]:
    """Plain values; a time without a zone is UTC."""
    import pyarrow

    if isinstance(wanted, TimestampType):
        column = column.cast(pyarrow.timestamp("us", column.type.tz), safe=False).cast(pyarrow.int64())
    values: list[Any] = column.to_pylist()
    return values


def instances_of(tables: Mapping[str, Columns]) -> dict[str, Instance]:
    """Instances as the rules see them, from columns of instances, databases and, if given, services and routes."""
    routes, services = tables.get("routes"), tables.get("services")
    return estate_of(
        tables["instances"].rows("instance_name", "is_message_forwarding_enabled", "addresses"),
        tables["databases"].rows("instance_name", "name", "service_broker_guid", "is_broker_enabled"),
        () if services is None else services.rows("instance_name", "database_name", "name"),
        () if routes is None else routes_of(routes),
    )


def routes_of(routes: Columns) -> Iterator[tuple[str, str, Route]]:
    """The routes of columns, each with its instance and database."""
    for instance, database, *row in routes.rows("instance_name", "database_name", *_ROUTE, *_BOUNDS):
        yield instance, database, Route.of_row(*row)


@dataclass(frozen=True)
class Rows:
    """Rows of a known schema; times are aware, in UTC."""

    schema: StructType
    rows: tuple[Mapping[str, Any], ...]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_arrow(self) -> pyarrow.Table:
        """The rows as an Arrow table."""
        return keeping.arrow_of(self.rows, self.schema)

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """The rows as a DataFrame."""
        return keeping.frame_of(spark, self.rows, self.schema)
