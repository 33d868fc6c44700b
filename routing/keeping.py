"""Small frames that several passes read: computed once, and where they are really small, rows of the driver.

Planning the scan of a small table, which each pass would do anew, takes longer than reading it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, StructField, StructType

from routing import session

# Up to this many rows a frame is carried by the driver.
_HELD_ROWS = 20_000


def keep(small: DataFrame) -> DataFrame:
    """A small frame that is computed once and read by several passes.

    On Spark Connect, where nothing can be cached, its rows go by way of the client.
    """
    spark = small.sparkSession
    if session.is_connect(spark):
        return spark.createDataFrame(small.collect(), small.schema)
    kept = small.persist()
    if kept.count() > _HELD_ROWS or not _has_arrow():
        return kept
    rows = kept.toArrow()
    kept.unpersist()
    return _as_rows(spark, rows, small.schema)


def held(frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Conformed inputs, those of a small configuration as rows that the driver holds.

    Messages and dialogs, which grow with the traffic, stay as they are.
    """
    return {key: frame if key in ("messages", "dialogs") else _held(frame) for key, frame in frames.items()}


def _held(frame: DataFrame) -> DataFrame:
    if not _has_arrow():
        return frame
    rows = frame.limit(_HELD_ROWS + 1).toArrow()
    return frame if rows.num_rows > _HELD_ROWS else _as_rows(frame.sparkSession, rows, frame.schema)


def _as_rows(spark: SparkSession, rows: Any, schema: StructType) -> DataFrame:
    """An Arrow table as a DataFrame; everything may be null, for Arrow refuses a null struct of other fields."""
    return spark.createDataFrame(rows, _nullable(schema))


def _nullable(kind: Any) -> Any:
    """A type in which every field and element may be null."""
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _nullable(f.dataType), True, f.metadata) for f in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType), True)
    return kind


def _has_arrow() -> bool:
    """Whether rows can be taken and given back as they are: from pyspark 4.0, where pyarrow is installed."""
    return hasattr(DataFrame, "toArrow") and find_spec("pyarrow") is not None
