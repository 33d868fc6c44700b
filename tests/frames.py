"""Rows of plain Python ↔ the input and output tables."""

from __future__ import annotations

import base64
import json
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from routing.schemas import Schema

CASES = Path(__file__).parent / "cases"
Tables = dict[str, list[dict[str, Any]]]
# Where yaml has its parser in C, a tenth of the time.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Frames are lazy, so their files stay until the tests end.
_FOLDER = tempfile.TemporaryDirectory(prefix="frames-")


def moment(value: Any) -> Any:
    """Convert ISO text to an aware UTC time, and return anything else unchanged."""
    if isinstance(value, str) and len(value) >= 20 and value[10] == "T" and value.endswith("Z"):
        return datetime.fromisoformat(value[:-1]).replace(tzinfo=timezone.utc)
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=timezone.utc)
    return value


def load_cases() -> list[dict[str, Any]]:
    """All worked cases, each with the ``file`` it is from."""
    cases = []
    for file in sorted(CASES.glob("*.yaml")):
        for case in yaml.load(file.read_text(encoding="utf-8"), _LOADER)["cases"]:
            cases.append({**case, "file": file.name})
    return cases


def load_trace_cases() -> list[dict[str, Any]]:
    """The worked cases of tracing."""
    text = (CASES.parent / "trace_cases" / "trace.yaml").read_text(encoding="utf-8")
    return list(yaml.load(text, _LOADER)["cases"])


def with_moments(tables: Tables) -> Tables:
    """The same rows with times for the texts of times, as the tests' own resolver reads them."""
    return {
        key: [{name: moment(value) for name, value in row.items()} for row in rows] for key, rows in tables.items()
    }


def prefixed(tables: Tables, prefix: str) -> Tables:
    """Return the same rows under prefixed instance names, so that many estates fit in one Spark job."""
    return {
        key: [{**row, "instance_name": f"{prefix}{row['instance_name']}"} for row in rows]
        for key, rows in tables.items()
    }


def merged(many: list[Tables]) -> Tables:
    """The rows of many estates in one set of tables."""
    tables: Tables = {}
    for estate in many:
        for key, rows in estate.items():
            tables.setdefault(key, []).extend(rows)
    return tables


def frames(spark: SparkSession, tables: Tables) -> dict[str, DataFrame]:
    """Return DataFrames of the input tables, and of kept tables with rows. Missing columns are null."""
    from routing.schemas import INPUTS, OPTIONAL_INPUTS, TABLES

    return {
        key: frame_of(spark, tables.get(key, []), schema)
        for key, schema in TABLES.items()
        if (key in INPUTS and key not in OPTIONAL_INPUTS) or tables.get(key)
    }


def frame_of(spark: SparkSession, rows: list[dict[str, Any]], schema: Schema | StructType) -> DataFrame:
    """Rows of plain Python as a DataFrame, times exact to the microsecond.

    By way of a JSON file: rows given to createDataFrame would start Python workers for every scan.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import LongType, StructField, StructType, TimestampType

    from routing.schemas import Schema
    from routing.tables.frames import spark_schema

    schema = spark_schema(schema) if isinstance(schema, Schema) else schema
    times = [f.name for f in schema if isinstance(f.dataType, TimestampType)]
    read_as = StructType(
        [StructField(f.name, LongType() if f.name in times else f.dataType, True) for f in schema]
    )
    # Bytes stand for a text that is no UTF-8, which JSON does not hold.
    raw = [f.name for f in schema if any(isinstance(row.get(f.name), bytes) for row in rows)]
    with tempfile.NamedTemporaryFile(
        "w", suffix=".json", dir=_FOLDER.name, delete=False, encoding="utf-8"
    ) as file:
        for row in rows:
            coded = {name: _base64(row.get(name)) for name in raw}
            file.write(json.dumps({**{f.name: _plain(row.get(f.name)) for f in schema}, **coded}) + "\n")
    read = spark.read.schema(read_as).json(file.name)
    texts = {name: F.unbase64(name).cast("string") for name in raw}
    return _with(read, {**{name: F.timestamp_micros(name) for name in times}, **texts})


def arrow(tables: Tables) -> dict[str, pyarrow.Table]:
    """Return Arrow tables of the input tables, and of kept tables with rows. Missing columns are null."""
    from routing.schemas import INPUTS, OPTIONAL_INPUTS, TABLES

    return {
        key: arrow_of(tables.get(key, []), schema)
        for key, schema in TABLES.items()
        if (key in INPUTS and key not in OPTIONAL_INPUTS) or tables.get(key)
    }


def arrow_of(rows: list[dict[str, Any]], schema: Schema) -> pyarrow.Table:
    """Rows of plain Python as an Arrow table."""
    from routing.tables.arrow_rows import table_of

    texts = [{name: moment(value) for name, value in row.items() if not isinstance(value, bytes)} for row in rows]
    table = table_of(texts, schema)
    # Bytes stand for a text that is no UTF-8.
    raw = {name for row in rows for name, value in row.items() if type(value) is bytes}
    for place, name in enumerate(table.column_names):
        if name in raw:
            table = table.set_column(place, name, _texts_of([row.get(name) for row in rows]))
    return table


def _texts_of(values: list[str | bytes | None]) -> pyarrow.Array:
    """Return Arrow texts, possibly with invalid UTF-8."""
    import pyarrow

    coded = [value.encode() if isinstance(value, str) else value for value in values]
    return pyarrow.array(coded, pyarrow.binary()).view(pyarrow.string())


def _with(frame: DataFrame, columns: dict[str, Column]) -> DataFrame:
    """A Spark Connect client refuses to add no column at all."""
    return frame.withColumns(columns) if columns else frame


def _base64(value: str | bytes | None) -> str | None:
    data = value.encode() if isinstance(value, str) else value
    return None if data is None else base64.b64encode(data).decode()


def _plain(value: Any) -> Any:
    value = None if isinstance(value, bytes) else moment(value)
    if isinstance(value, datetime):
        since = value - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return since // timedelta(microseconds=1)
    return value


def assert_same_frames(actual: DataFrame, expected: DataFrame) -> None:
    """Assert that both have the same columns and rows, in any order, with any nullability and comments."""
    from chispa import DataFramesNotEqualError, assert_df_equality
    from chispa.schema_comparer import SchemasNotEqualError

    try:
        assert_df_equality(actual, expected, ignore_row_order=True, ignore_nullable=True, ignore_metadata=True)
    except (DataFramesNotEqualError, SchemasNotEqualError) as error:
        # What chispa raises is no AssertionError.
        raise AssertionError(str(error)) from None


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Return a frame's rows as plain Python, with aware times in UTC in any session time zone."""
    return collect_rows(frame)[1]


def collect_rows(frame: DataFrame) -> tuple[DataFrame, list[dict[str, Any]]]:
    """Return the frame with its times as numbers, which is the one that is executed, and its rows."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import TimestampType

    times = [f.name for f in frame.schema if isinstance(f.dataType, TimestampType)]
    micros = _with(frame, {name: F.unix_micros(name) for name in times})
    rows = [row.asDict(recursive=True) for row in micros.collect()]
    for row in rows:
        for name in times:
            if row[name] is not None:
                seconds, microseconds = divmod(row[name], 1_000_000)
                row[name] = datetime.fromtimestamp(seconds, timezone.utc).replace(microsecond=microseconds)
    return micros, rows


def rows_in(table: Any) -> list[dict[str, Any]]:
    """The rows of a DataFrame, or of a table or dataset of Arrow, as plain Python."""
    if hasattr(table, "sparkSession"):
        return rows_of(table)
    return list((table.to_table() if hasattr(table, "to_table") else table).to_pylist())
