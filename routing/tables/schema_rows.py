"""Rows of plain Python that a function returns, and the same as an Arrow table or a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from routing.schemas import Schema
from routing.tables.arrow_rows import table_of
from routing.terms import ReadRow

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class SchemaRows:
    """Rows of a known schema; times are aware, in UTC."""

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
