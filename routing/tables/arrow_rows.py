"""Convert schemas and rows of plain Python to Arrow, and Arrow columns to plain values (tables.md)."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from routing.rules.text import UndecodedText, decode_utf8
from routing.rules.timeline import moment_of
from routing.schemas import AnyKind, ArrayOf, ColumnKind, MapOf, Schema
from routing.terms import ReadRow, TableRow

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession


class _NoPandas(MetaPathFinder):
    """An import finder that reports pandas as missing."""

    def find_spec(self, fullname: str, *_: Any) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def leave_pandas_out() -> None:
    """Import Arrow's datasets without pandas, which would take half a second if it is installed.

    Only commands do this, because nothing else runs in their process. pyarrow still imports pandas when it needs
    it.
    """
    if "pandas" in sys.modules or "pyspark" in sys.modules or find_spec("pyarrow") is None:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow.dataset  # noqa: F401
    finally:
        sys.meta_path.remove(finder)


def arrow_schema(schema: Schema) -> pyarrow.Schema:
    """Return a schema as an Arrow schema."""
    import pyarrow

    return pyarrow.schema([pyarrow.field(f.name, arrow_type(f.kind), f.nullable) for f in schema])


def arrow_type(kind: AnyKind) -> pyarrow.DataType:
    """Return a kind as an Arrow type. Times are microseconds in UTC."""
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


def table_of(rows: Iterable[ReadRow], schema: Schema) -> pyarrow.Table:
    """Convert rows of plain Python to an Arrow table of a schema. Missing keys become null.

    Times are aware, or microseconds since 1970.
    """
    import pyarrow

    rows = list(rows)
    kinds = arrow_schema(schema)
    arrays = [
        pyarrow.array([_entries(row.get(field.name), field.kind) for row in rows], kind.type)
        for field, kind in zip(schema, kinds, strict=True)
    ]
    return pyarrow.table(arrays, names=schema.names)


def _entries(value: Any, kind: AnyKind) -> Any:
    """Return a value as Arrow accepts it, with a map as a list of its entries."""
    return list(value.items()) if isinstance(kind, MapOf) and value is not None else value


def plain_type(kind: Any) -> Any:
    """Return the type to which the package converts a type, such as a plain string for every kind of text."""
    import pyarrow
    from pyarrow import types

    if types.is_large_string(kind) or types.is_string_view(kind):
        return pyarrow.string()
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if any(is_list(kind) for is_list in (types.is_list, types.is_large_list)):
        return pyarrow.list_(plain_type(kind.value_type))
    if types.is_map(kind):
        return pyarrow.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if types.is_struct(kind):
        return pyarrow.struct([field.with_type(plain_type(field.type)) for field in kind])
    return kind


def with_zones(rows: pyarrow.Table) -> pyarrow.Table:
    """Read the times of an Arrow table that have no zone as UTC."""
    import pyarrow

    def is_naive(kind: Any) -> bool:
        return bool(pyarrow.types.is_timestamp(kind)) and kind.tz is None

    aware = [f.with_type(pyarrow.timestamp("us", "UTC")) if is_naive(f.type) else f for f in rows.schema]
    return cast_table(rows, pyarrow.schema(aware))


def cast_table(rows: pyarrow.Table, schema: pyarrow.Schema) -> pyarrow.Table:
    """Convert the columns of a table to other types. A chunk that is too large for its type is split."""
    import pyarrow

    arrays = [
        rows.column(place)
        if rows.schema.field(place).type == field.type
        else pyarrow.chunked_array(
            [part for chunk in rows.column(place).chunks for part in _cast_parts(chunk, field.type)], field.type
        )
        for place, field in enumerate(schema)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def _cast_parts(values: Any, kind: Any) -> Iterator[Any]:
    import pyarrow

    try:
        # Arrow's functions misread a slice of large texts that was cast to texts. A copy is read correctly.
        yield pyarrow.concat_arrays([values, values[:0]]).cast(kind)
    except pyarrow.ArrowInvalid:
        # One array holds at most 2 GiB of plain texts.
        if len(values) < 2:
            raise
        for part in (values[: len(values) // 2], values[len(values) // 2 :]):
            yield from _cast_parts(part, kind)


def values_of(column: Any, wanted: AnyKind) -> list[Any]:
    """Convert an accepted column to plain values. Times become microseconds since 1970, in UTC without a zone."""
    if wanted == ColumnKind.TIMESTAMP:
        column = micros_in(column)
    if wanted == ColumnKind.STRING:
        return [text for chunk in column.chunks for text in _texts(chunk)]
    values = plain_values(column)
    return [None if value is None else dict(value) for value in values] if isinstance(wanted, MapOf) else values


def plain_values(column: Any) -> list[Any]:
    """Return the plain values of any column. Text that is not UTF-8, also in a list, is an `UndecodedText`."""
    import pyarrow

    values: list[Any]
    try:
        values = column.to_pylist()
    except UnicodeDecodeError:
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        values = column.cast(_as_bytes(column.type)).to_pylist()
        values = [[_decode(one) for one in v] if isinstance(v, list) else _decode(v) for v in values]
    return values


def _as_bytes(kind: Any) -> Any:
    """Return the type of the bytes of texts, or of a list of texts."""
    import pyarrow

    if pyarrow.types.is_list(kind):
        return pyarrow.list_(_as_bytes(kind.value_type))
    if pyarrow.types.is_large_list(kind):
        return pyarrow.large_list(_as_bytes(kind.value_type))
    if pyarrow.types.is_string_view(kind):
        return pyarrow.binary_view()
    return pyarrow.large_binary() if pyarrow.types.is_large_string(kind) else pyarrow.binary()


def _decode(data: bytes | None) -> str | None:
    return None if data is None else decode_utf8(data)


def find_undecodable(texts: Any) -> Any:
    """Return a mask of the texts that are not UTF-8, or None if all are UTF-8.

    Arrow validates the whole array at once, or only the distinct texts of a dictionary.
    """
    import pyarrow
    import pyarrow.compute as pc

    if pyarrow.types.is_dictionary(texts.type) and isinstance(texts, pyarrow.Array):
        words = find_undecodable(texts.dictionary)
        return None if words is None else pc.fill_null(words.take(texts.indices), fill_value=False)
    try:
        texts.validate(full=True)
    except pyarrow.ArrowInvalid:
        return pyarrow.array([isinstance(text, UndecodedText) for text in plain_values(texts)])
    return None


def with_readable_texts(rows: pyarrow.Table) -> pyarrow.Table:
    r"""Return rows with valid UTF-8 only: each undecodable byte is written as ``\xNN``."""
    import pyarrow

    for place, field in enumerate(rows.schema):
        if pyarrow.types.is_string(plain_type(field.type)) and find_undecodable(rows[field.name]) is not None:
            readable = pyarrow.array(plain_values(rows[field.name]), field.type)
            rows = rows.set_column(place, field, pyarrow.chunked_array([readable]))
    return rows


def micros_in(column: Any, kind: Any = None) -> Any:
    """Convert times to microseconds since 1970, in UTC without a zone. ``kind`` is the type of an expression."""
    import pyarrow

    zone = (kind or column.type).tz
    return column.cast(pyarrow.timestamp("us", zone), safe=False).cast(pyarrow.int64())


def _texts(chunk: Any) -> list[str | None]:
    """Return the texts of a chunk. Equal texts share one object, because names occur in many rows."""
    import pyarrow

    if pyarrow.types.is_string_view(chunk.type):
        chunk = chunk.cast(pyarrow.string())
    encoded = chunk.dictionary_encode()
    texts = [*plain_values(encoded.dictionary), None]
    return [texts[place] for place in encoded.indices.fill_null(len(texts) - 1).to_pylist()]


# Rows of plain Python that a function returns, with conversions to an Arrow table and to a DataFrame.


def with_moments(rows: Iterable[TableRow], names: Collection[str]) -> list[TableRow]:
    """Convert the named columns of rows from microseconds to aware times. Null stays null."""
    timed_rows = list(rows)
    for row in timed_rows:
        row.update({name: None if row[name] is None else moment_of(row[name]) for name in names})
    return timed_rows


@dataclass(frozen=True)
class SchemaRows:
    """Rows of a known schema. Times are aware, in UTC."""

    schema: Schema
    rows: tuple[ReadRow, ...]

    def __iter__(self) -> Iterator[ReadRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_arrow(self) -> pyarrow.Table:
        """Convert the rows to an Arrow table in their declared types."""
        return table_of(self.rows, self.schema)

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a DataFrame."""
        from routing.tables.frames import frame_of

        return frame_of(spark, self.rows, self.schema)
