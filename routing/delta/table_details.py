"""What a Delta table says of itself: where it lies, and which table it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from routing.config import TableLocation
from routing.delta.local_tables import find_id
from routing.tables import sql_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.sessions.holding import HasSession


@dataclass(frozen=True)
class TableDetail:
    """The row of DESCRIBE DETAIL; ``root`` is where the table's files lie.

    ``table_id`` stays with a table wherever its folder is moved, and is another one for a table made anew.
    """

    root: str
    table_id: str
    properties: Mapping[str, str]

    @property
    def has_column_mapping(self) -> bool:
        """Whether the files have other names for the columns than the table."""
        return self.properties.get("delta.columnMapping.mode", "none").lower() != "none"

    def is_on(self, name: str) -> bool:
        """Return True if a property that is on or off is on; off where the table says nothing of it."""
        return self.properties.get(name, "false").lower() == "true"


def find_table_id(asked: HasSession, location: TableLocation) -> str:
    """Return the id of the table that stands there, of a local one without asking Spark."""
    table_id = find_id(location)
    return detail(asked.spark, location).table_id if table_id is None else table_id


def detail(spark: SparkSession, location: TableLocation) -> TableDetail:
    """Return the table's own description of itself."""
    row = sql_statements.describe_detail(spark, location).select("location", "id", "properties").collect()[0]
    return TableDetail(
        root=str(row["location"]).rstrip("/"),
        table_id=str(row["id"]),
        properties=dict(row["properties"] or {}),
    )
