"""Hold small tables as columns of plain Python, and read Arrow tables and datasets into them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, Union
from weakref import WeakSet

from routing.errors import ContractError, InputError
from routing.rules.text import UndecodedText
from routing.rules.timeline import micros_of
from routing.schemas import TABLES, AnyKind, ArrayOf, ColumnKind, MapOf, Schema
from routing.tables import arrow_rows
from routing.terms import ReadRow, TableRow

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset
    from pyspark.sql import DataFrame

Table = Union["DataFrame", "pyarrow.Table", "pyarrow.dataset.Dataset"]
"""A table: a DataFrame of a classic session or of Spark Connect, an Arrow table, or files that Arrow reads."""
Only = Mapping[str, Collection[Any]]
"""A filter: the allowed values by column."""
Filter = Mapping[str, "Collection[Any] | None"]
"""The same, with None for a column that must be null. A value never equals null."""
ALL: Filter = MappingProxyType({})
COUNT = "count"
"""The column with the number of rows of a group."""
T = TypeVar("T")
FILE = "__filename"
"""Arrow's name for a column of every dataset, with the file of a row."""


@dataclass(frozen=True)
class TableColumns:
    """The declared columns of a table by name. Times are microseconds since 1970, in UTC."""

    values: Mapping[str, Sequence[Any]]

    @classmethod
    def of_rows(cls, rows: Collection[ReadRow], schema: Schema) -> TableColumns:
        """Convert rows of plain Python, with aware times, to the columns of a schema. Missing ones are null."""
        return cls({field.name: _column_of(rows, field.name, field.kind) for field in schema})

    def __len__(self) -> int:
        return len(next(iter(self.values.values()), ()))

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Return a tuple of the values of some columns for each row."""
        return zip(*(self.values[name] for name in names), strict=True)

    def where(self, name: str) -> TableColumns:
        """Return the rows whose value in a column is true or a number other than zero."""
        return self.take([place for place, value in enumerate(self.values[name]) if value])

    def naming(self, name: str, wanted: Collection[Any]) -> TableColumns:
        """Return the rows whose column has one of the wanted values."""
        return self.take([place for place, value in enumerate(self.values[name]) if value in wanted])

    def without(self, name: str, unwanted: Collection[Any]) -> TableColumns:
        """Leave out the rows whose column has an unwanted value."""
        return self.take([place for place, value in enumerate(self.values[name]) if value not in unwanted])

    def undecoded(self) -> Iterator[tuple[str, int, UndecodedText]]:
        """Yield the column, the row's place and the text of each value that is not UTF-8.

        Only the first such text of a list is yielded.
        """
        for name, values in self.values.items():
            kinds = set(map(type, values))
            if UndecodedText in kinds:
                yield from ((name, place, v) for place, v in enumerate(values) if isinstance(v, UndecodedText))
            elif list in kinds:
                for place, value in enumerate(values):
                    bad = [one for one in value or () if isinstance(one, UndecodedText)]
                    yield from ((name, place, one) for one in bad[:1])

    def take(self, places: Sequence[int]) -> TableColumns:
        """Return the rows at some places."""
        return TableColumns({name: [values[place] for place in places] for name, values in self.values.items()})

    def dicts(self) -> Iterator[TableRow]:
        """Yield the rows as dictionaries."""
        names = list(self.values)
        return (dict(zip(names, row, strict=True)) for row in self.rows(*names))


def joined(first: TableColumns, *others: TableColumns) -> TableColumns:
    """Concatenate the rows of several parts of one table."""
    return TableColumns(
        {
            name: [*values, *(v for one in others for v in one.values[name])]
            for name, values in first.values.items()
        }
    )


def _column_of(rows: Iterable[ReadRow], name: str, kind: AnyKind) -> list[Any]:
    values = [row.get(name) for row in rows]
    if kind != ColumnKind.TIMESTAMP:
        return values
    micros = {value: None if value is None else micros_of(value) for value in set(values)}
    return list(map(micros.__getitem__, values))


def columns_in(rows: pyarrow.Table, schema: Schema, names: Mapping[str, str]) -> TableColumns:
    """Convert an Arrow table to the columns of a schema. ``names`` has their names in it. Others are null."""
    present = {f.name: arrow_rows.values_of(rows[names[f.name]], f.kind) for f in schema if f.name in names}
    return TableColumns({name: present.get(name) or [None] * rows.num_rows for name in schema.names})


def is_frame(table: Table) -> TypeGuard[DataFrame]:
    """Return whether a table is a DataFrame of Spark, classic or through Spark Connect."""
    return hasattr(table, "sparkSession")


def by_engine(tables: Mapping[str, Table], *, spark: Callable[[], T], arrow: Callable[[], T]) -> T:
    """Call the function of the engine that the tables belong to, and return its result.

    Raises ContractError if some are DataFrames and others are Arrow tables.
    """
    kinds = {is_frame(table) for table in tables.values()}
    if len(kinds) > 1:
        raise ContractError(
            f"{', '.join(tables)} are not of one kind", "give DataFrames for all of them, or tables of Arrow"
        )
    return spark() if kinds == {True} else arrow()


def spell(table: Any) -> dict[str, str]:
    """Return the columns of an Arrow table by their names in lower case, to match them without case."""
    return {name.lower(): name for name in table.schema.names}


_SPARK_NAMES = {
    "bool": "boolean",
    "date32[day]": "date",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "binary_view": "binary",
    "int8": "tinyint",
    "large_binary": "binary",
    "null": "void",
}
# By Spark's names. A text may have a length or a collation.
_ACCEPTED = {
    ColumnKind.INT: re.compile(r"tinyint|smallint|int|bigint"),
    ColumnKind.BIGINT: re.compile(r"tinyint|smallint|int|bigint"),
    ColumnKind.DOUBLE: re.compile(r"halffloat|float|double"),
    ColumnKind.BOOLEAN: re.compile(r"boolean"),
    ColumnKind.TIMESTAMP: re.compile(r"timestamp(?:_ntz)?"),
    ColumnKind.STRING: re.compile(r"string(?: collate \w+)?|(?:var)?char\(\d+\)"),
}


def types_of(table: Table) -> dict[str, str]:
    """Return the types of a table's columns, under Spark's names."""
    if is_frame(table):
        return {field.name: field.dataType.simpleString() for field in table.schema}
    fields: Any = table.schema
    return {field.name: _spark_name(arrow_rows.plain_type(field.type)) for field in fields}


def _spark_name(kind: pyarrow.DataType) -> str:
    """Return Spark's name for a plain Arrow type, or Arrow's name if Spark has none."""
    from pyarrow import types

    if types.is_map(kind):
        return f"map<{_spark_name(kind.key_type)},{_spark_name(kind.item_type)}>"
    if types.is_list(kind):
        return f"array<{_spark_name(kind.value_type)}>"
    if types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{_spark_name(field.type)}' for field in kind)}>"
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _SPARK_NAMES.get(str(kind), str(kind))


def _is_accepted(actual: str, wanted: AnyKind) -> bool:
    """Return whether a column accepts a type, given by Spark's name (tables.md)."""
    if isinstance(wanted, ColumnKind):
        return _ACCEPTED[wanted].fullmatch(actual) is not None
    if isinstance(wanted, ArrayOf):
        element = actual.removeprefix("array<").removesuffix(">")
        return actual.startswith("array<") and (element == "void" or _is_accepted(element, wanted.element))
    return isinstance(wanted, MapOf) and actual.startswith("map<")


def shape_of(table: Table, key: str) -> dict[str, str]:
    """Return the declared columns of ``key`` that a table has, mapped to their names in it, ignoring case.

    Raises InputError naming every column that is missing or has a type that is not accepted (tables.md).
    """
    types, faults, shape = types_of(table), [], {}
    spelled = {name.lower(): name for name in types}
    for field in TABLES[key]:
        kind = types[spelled[field.name]] if field.name in spelled else "void"
        if kind == "void":
            faults += [] if field.nullable else [f"required column {field.name} is missing"]
        elif _is_accepted(kind, field.kind):
            shape[field.name] = spelled[field.name]
        else:
            faults.append(f"column {field.name} is {kind}, not {field.kind}")
    if faults:
        raise InputError.wrong_columns(key, faults)
    return shape


def read_arrow(table: Any, key: str, condition: Any = None) -> TableColumns:
    """Return the rows of Arrow table ``key`` that meet a condition. Raises InputError as `shape_of` does."""
    shape = shape_of(table, key)
    return columns_in(select_arrow(table, list(shape.values()), condition), TABLES[key], shape)


def select_arrow(table: Any, names: Sequence[str], condition: Any = None) -> pyarrow.Table:
    """Select some columns of an Arrow table, and the rows that meet a condition."""
    return as_dataset(table).to_table(columns=list(names), filter=condition)


def rows_where(rows: Any, mask: Any) -> Any:
    """Return the rows of an Arrow table, or the values of a column, where a mask is true."""
    import pyarrow.compute

    # pyarrow 25, the newest for Python 3.10, crashes on a mask of no chunks.
    chunks = getattr(mask, "num_chunks", 1)
    return rows.take(pyarrow.compute.indices_nonzero(mask)) if chunks else rows.slice(0, 0)


def as_dataset(table: Any) -> pyarrow.dataset.Dataset:
    """Convert an Arrow table or dataset to a dataset with the types that the package uses.

    Files are not read yet, and filters still skip files.
    """
    import pyarrow.dataset as datasets

    if isinstance(table, datasets.FileSystemDataset):
        return _with_plain_files(table)
    schema = _plain_schema(table.schema)
    if isinstance(table, datasets.UnionDataset):
        return datasets.UnionDataset(schema, [_with_schema(as_dataset(one), schema) for one in table.children])
    if not hasattr(table, "scanner"):
        return datasets.dataset(arrow_rows.cast_table(table, schema))
    return table if schema == table.schema else datasets.dataset(arrow_rows.cast_table(table.to_table(), schema))


def _plain_schema(schema: pyarrow.Schema) -> pyarrow.Schema:
    import pyarrow

    return pyarrow.schema([field.with_type(arrow_rows.plain_type(field.type)) for field in schema])


def _with_schema(rows: Any, schema: pyarrow.Schema) -> Any:
    """Return a dataset with another schema. Missing columns are null."""
    import pyarrow.dataset as datasets

    if isinstance(rows, datasets.FileSystemDataset):
        return datasets.FileSystemDataset(list(rows.get_fragments()), schema, rows.format, rows.filesystem)
    return rows.replace_schema(schema)


# Datasets whose files are already examined, since each file takes a tenth of a millisecond.
_EXAMINED = WeakSet[Any]()


def _with_plain_files(rows: Any) -> pyarrow.dataset.Dataset:
    """Return a dataset of files in plain types, also inside its files.

    Arrow cannot compare a filter with the statistics of string views, which delta-rs writes. Its functions misread
    large strings that it has cast while reading. It reads both types correctly as dictionaries.
    """
    import pyarrow.dataset as datasets

    if rows in _EXAMINED:
        return rows
    schema, files, is_changed = _plain_schema(rows.schema), [], False
    for file in rows.get_fragments():
        unusual = _find_unusual(file, rows.filesystem) if isinstance(file, datasets.ParquetFileFragment) else []
        if unusual:
            parquet = with_dictionaries(file.format.read_options, unusual)
            files.append(parquet.make_fragment(file.path, rows.filesystem, file.partition_expression))
            is_changed = True
        else:
            files.append(file)
    if is_changed or schema != rows.schema:
        rows = datasets.FileSystemDataset(files, schema, rows.format, rows.filesystem)
    _EXAMINED.add(rows)
    return rows


def _find_unusual(file: Any, file_system: Any) -> list[str]:
    """Return the columns of a Parquet file that Arrow reads as views or as large strings or bytes.

    Only files with an Arrow schema have such columns. The file's footer shows quickly if it has one.
    """
    try:
        with file_system.open_input_file(file.path) as opened:
            size = opened.size()
            opened.seek(max(size - 8, 0))
            footer = int.from_bytes(opened.read(4), "little")
            opened.seek(max(size - 8 - footer, 0))
            if b"ARROW:schema" not in opened.read(footer):
                return []
    except OSError:
        # Reading the rows reports the error, unless a filter skips the file.
        return []
    unusual = {"string_view", "binary_view", "large_string", "large_binary"}
    return [field.name for field in file.physical_schema if str(field.type) in unusual]


def with_dictionaries(options: Any, names: Collection[str]) -> Any:
    """Return a Parquet format that also reads the named columns as dictionaries."""
    from pyarrow.dataset import ParquetFileFormat, ParquetReadOptions

    unit = options.coerce_int96_timestamp_unit
    columns = {*options.dictionary_columns, *names}
    return ParquetFileFormat(
        read_options=ParquetReadOptions(dictionary_columns=columns, coerce_int96_timestamp_unit=unit)
    )


def in_files(rows: pyarrow.dataset.Dataset, names: Collection[str]) -> pyarrow.dataset.Dataset:
    """Select some of a dataset's files. Return a dataset in memory unchanged."""
    return _of_files(rows, lambda: (file for file in rows.get_fragments() if file.path in names))


def in_files_with(rows: pyarrow.dataset.Dataset, condition: Any) -> pyarrow.dataset.Dataset:
    """Select the files that may have rows that meet a condition, by the statistics in the table's log."""
    return rows if condition is None else _of_files(rows, lambda: rows.get_fragments(condition))


def _of_files(rows: Any, choose: Callable[[], Iterable[Any]]) -> pyarrow.dataset.Dataset:
    """Return a dataset of the chosen files, or a dataset in memory unchanged."""
    import pyarrow.dataset

    if not hasattr(rows, "files"):
        return rows
    return pyarrow.dataset.FileSystemDataset(list(choose()), rows.schema, rows.format, rows.filesystem)
