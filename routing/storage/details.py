"""What a Delta table says of itself: where it lies, and which table it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from routing.config import Location
from routing.storage import statements
from routing.storage.local import find_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Detail:
    """What DESCRIBE DETAIL tells of a table; ``root`` is where its files lie.

    ``table_id`` stays with a table wherever its folder is moved, and is another one for a table made anew.
    """

    root: str
    table_id: str
    column_mapping: str


def find_table_id(spark: SparkSession, location: Location) -> str:
    """The id of the table that stands there, of a local one without asking Spark."""
    found = find_id(location)
    return detail(spark, location).table_id if found is None else found


def detail(spark: SparkSession, location: Location) -> Detail:
    """The table's own description of itself."""
    row = statements.describe_detail(spark, location).select("location", "id", "properties").collect()[0]
    return Detail(
        root=str(row["location"]).rstrip("/"),
        table_id=str(row["id"]),
        column_mapping=dict(row["properties"] or {}).get("delta.columnMapping.mode", "none"),
    )
