"""Read the details of a Delta table, such as its location, properties and unique id, and check its path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from routing.config import TableLocation
from routing.delta import commits
from routing.errors import OutputError
from routing.storage_faults import find_fault_of_folder
from routing.tables import sql_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class TableDetail:
    """The row of DESCRIBE DETAIL. ``root`` is the location of the table's files.

    ``table_id`` moves with a table's folder, and changes if the table is recreated.
    """

    root: str
    table_id: str
    properties: Mapping[str, str]
    cluster_by: tuple[str, ...] = ()

    @property
    def has_column_mapping(self) -> bool:
        """Whether the files have other names for the columns than the table."""
        return has_column_mapping(self.properties)

    def is_on(self, name: str) -> bool:
        """Return whether a boolean property is on. It is off if the table does not have it."""
        return self.properties.get(name, "false").lower() == "true"

    def has_commit_time(self, version: int) -> bool:
        """Return True if a commit contains its time. Other times are those of files, which a copy changes."""
        since = int(self.properties.get("delta.inCommitTimestampEnablementVersion", 0))
        return self.properties.get("delta.enableInCommitTimestamps") == "true" and version >= since


def has_column_mapping(properties: Mapping[str, str]) -> bool:
    """Return whether a table with these properties has other column names in its files."""
    return properties.get("delta.columnMapping.mode", "none").lower() != "none"


def detail(spark: SparkSession, location: TableLocation) -> TableDetail:
    """Read the details of a table with Spark."""
    row = sql_statements.describe_detail(spark, location).collect()[0].asDict()
    return TableDetail(
        root=str(row["location"]).rstrip("/"),
        table_id=str(row["id"]),
        properties=dict(row["properties"] or {}),
        # Delta has this column since 3.1.
        cluster_by=tuple(row.get("clusteringColumns") or ()),
    )


# Check local paths before anything is read, and find relative paths.


def check_writable(setting: str, location: TableLocation) -> None:
    """Refuse a local path where nothing can be written. Raises OutputError."""
    if not commits.is_local(location):
        return
    folder = Path(location.text)
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not nearest.is_dir():
        raise OutputError.not_writable(setting, str(location), f"{nearest} is not a folder")
    fault = find_fault_of_folder(nearest)
    if fault is not None:
        raise OutputError.not_writable(setting, str(location), f"{fault} ({nearest})")


def relative_path(start: str, to: str) -> str:
    """Return the relative path between two local paths, which a moved folder keeps. Others stay unchanged."""
    return os.path.relpath(to, start) if Path(start).is_absolute() and Path(to).is_absolute() else to
