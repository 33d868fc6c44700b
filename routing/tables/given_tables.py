"""Accept a caller's tables by key: DataFrames of Spark, Arrow tables, or frames that Arrow can read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from routing.errors import InputError, describe_value, first_sentence, join_bounded, unknown_key
from routing.schemas import INPUTS, OPTIONAL_INPUTS, OUTPUTS, TABLES, TRAFFIC, AnyKind, ArrayOf, ColumnKind
from routing.tables.table_columns import Table, is_frame

if TYPE_CHECKING:
    import pyarrow

_COLUMNS = {**TABLES, **OUTPUTS}
_KNOWN = (*TABLES, "resolved_routes", "reconciliation")
_NUMBERS = (ColumnKind.INT, ColumnKind.BIGINT)


def take_tables(
    tables: Mapping[str, Table], wanted: Iterable[str] = INPUTS, *, in_spark: bool = False
) -> dict[str, Table]:
    """Check a caller's tables, and convert those of pandas, Polars and others to Arrow tables.

    Optional tables in ``wanted`` may be missing. With ``in_spark``, messages must be a Spark DataFrame, and
    dialogs one or an Arrow table. Raises InputError if a key is unknown or missing, or if a value is not a table.
    """
    if not isinstance(tables, Mapping):
        raise InputError(
            f"the tables are {describe_value(tables)}, not tables by their keys", 'such as {"routes": routes, …}'
        )
    faults = [unknown_key(str(key), _KNOWN) for key in tables if key not in _KNOWN]
    if faults:
        raise InputError(
            f"the tables have {join_bounded(faults, 'fault')}", "docs/reference/tables.md has the keys"
        )
    missing = [key for key in wanted if key not in tables and key not in OPTIONAL_INPUTS]
    if missing:
        raise InputError(f"input tables are missing: {', '.join(missing)}", "give a table for each")
    return {key: _take(key, table, in_spark=in_spark and key in TRAFFIC) for key, table in tables.items()}


def _take(key: str, table: Any, *, in_spark: bool) -> Table:
    if is_frame(table):
        return table
    is_arrow = _is_arrow(table)
    if in_spark and not (is_arrow and key in OPTIONAL_INPUTS):
        raise InputError(
            f"table {key} is {describe_value(table)}, not a DataFrame of Spark",
            "spark.createDataFrame makes one of a frame in memory",
        )
    if is_arrow:
        arrow_table: Table = table
        return arrow_table
    if not hasattr(table, "__arrow_c_stream__"):
        raise InputError(
            f"table {key} is {describe_value(table)}, not a table",
            "give a DataFrame of Spark, pandas or Polars, or a table of Arrow",
        )
    return _read_frame(key, table)


def _is_arrow(table: Any) -> bool:
    """Return whether a table is an Arrow table or dataset, without importing pyarrow for it."""
    import sys

    arrow, dataset = sys.modules.get("pyarrow"), sys.modules.get("pyarrow.dataset")
    return (arrow is not None and isinstance(table, arrow.Table)) or (
        dataset is not None and isinstance(table, dataset.Dataset)
    )


def _read_frame(key: str, frame: Any) -> pyarrow.Table:
    """Convert a frame of pandas, Polars or others to Arrow, in accepted types (tables.md). Raises InputError."""
    try:
        import pyarrow
    except ImportError as error:
        raise InputError(f"table {key}: pyarrow is not installed", "pip install pyarrow") from error
    kinds = {field.name: field.kind for field in _COLUMNS[key]} if key in _COLUMNS else {}
    try:
        rows = pyarrow.table(frame)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"table {key}: Arrow cannot read {describe_value(frame)}: {first_sentence(error)}",
            "give each column values of one type",
        ) from error
    faults: list[str] = []
    columns = {name: _plain(rows[name], name, kinds.get(name.lower()), faults) for name in rows.column_names}
    if faults:
        raise InputError.wrong_columns(key, faults)
    return pyarrow.table(columns)


def _plain(column: Any, name: str, kind: AnyKind | None, faults: list[str]) -> Any:
    """Convert a column to a type that its kind accepts, or add a fault if its values do not allow it."""
    import pyarrow
    from pyarrow import types

    if kind is None:
        return column
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_floating(column.type) and column.null_count == len(column):
        # pandas stores a column without values as floats.
        return pyarrow.nulls(len(column))
    if types.is_large_string(column.type) or types.is_string_view(column.type):
        return column.cast(pyarrow.string())
    if isinstance(kind, ArrayOf) and _is_list(column.type):
        return column.cast(pyarrow.list_(pyarrow.string()))
    if kind in _NUMBERS and (types.is_floating(column.type) or types.is_unsigned_integer(column.type)):
        # pandas stores integers as floats if a value is missing.
        try:
            return column.cast(pyarrow.int64())
        except pyarrow.ArrowInvalid:
            faults.append(f"column {name} has numbers that are no bigint")
    return column


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    lists = (
        types.is_list,
        types.is_large_list,
        types.is_list_view,
        types.is_large_list_view,
        types.is_fixed_size_list,
    )
    return any(one(kind) for one in lists) and not types.is_null(kind.value_type)
