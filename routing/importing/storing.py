"""The tables of an import: checked, read into plain rows, and brought up to date, one MERGE each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from routing import keeping, tables
from routing.config import Config, Location
from routing.errors import InputError
from routing.importing.covered import Row
from routing.importing.faults import missing_keys, not_a_table
from routing.importing.history import Changes
from routing.schemas import INPUTS, KEPT
from routing.validate import KEYS

SCHEMAS = {**INPUTS, **KEPT}
ON = {
    **KEYS,
    "messages": ("instance_name", "message_id"),
    "observed_routing": ("instance_name", "message_id", "observed_at", "source"),
    "imports": ("instance_name", "database_name", "view_or_file"),
}


@dataclass(frozen=True)
class Stored:
    """The tables that an import writes, each at one version or not yet there."""

    spark: SparkSession
    locations: Mapping[str, Location]
    snapshots: Mapping[str, tables.Snapshot]

    def frame(self, key: str) -> DataFrame:
        """A table as it stands; columns that it lacks are null."""
        schema = SCHEMAS[key]
        if key not in self.snapshots:
            return keeping.frame_of(self.spark, [], schema)
        read = self.snapshots[key].read(self.spark)
        lacking = [field for field in schema if field.name not in read.columns]
        nulls = {field.name: F.lit(None).cast(field.dataType) for field in lacking}
        return read.select(
            *(nulls.get(field.name, F.col(f"`{field.name}`")).alias(field.name) for field in schema)
        )

    def rows(self, key: str, instances: Sequence[str] | None = None) -> list[Row]:
        """A table's rows of these instances as plain Python, times aware and UTC."""
        if key not in self.snapshots or instances == []:
            return []
        frame = self.frame(key)
        if instances is not None:
            frame = frame.where(F.col("instance_name").isin(list(instances)))
        return keeping.rows_of(frame)


def stored(spark: SparkSession, config: Config, keys: Sequence[str]) -> Stored:
    """The tables of these configuration keys, checked before anything is written.

    Raises ConfigError for keys that are missing, InputError where something else stands at a location.
    """
    named = {**config.tables, **config.kept}
    missing = [f"tables.{key}" for key in keys if key not in named]
    if missing:
        raise missing_keys(config.file, missing)
    locations = {key: named[key] for key in keys}
    snapshots = {}
    for key, location in locations.items():
        version = tables.current_version(spark, location)
        if version is not None:
            snapshots[key] = tables.Snapshot(location, version)
            faults = tables.cannot_hold(snapshots[key].read(spark).schema, SCHEMAS[key])
            if faults:
                raise InputError.wrong_columns(key, faults)
        elif _holds_files(location):
            raise not_a_table(key, str(location))
    return Stored(spark, locations, snapshots)


def _holds_files(location: Location) -> bool:
    if location.is_name or "://" in location.text:
        return False
    folder = Path(location.text)
    return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))


def make_ready(store: Stored) -> None:
    """Make the tables that are missing, and add the columns that others lack. Raises StorageError."""
    for key, location in store.locations.items():
        schema = SCHEMAS[key]
        there = set(store.snapshots[key].read(store.spark).columns) if key in store.snapshots else set()
        if not there.issuperset(schema.names):
            tables.create_if_missing(store.spark, key, location, schema)


def put(store: Stored, key: str, changes: Changes) -> None:
    """Bring the changed rows into a table, if there are any."""
    if changes:
        flagged = [{**row, tables.REMOVE: False} for row in changes.put]
        flagged += [{**row, tables.REMOVE: True} for row in changes.remove]
        tables.merge(
            keeping.frame_of(store.spark, flagged, flagged_schema(key)), key, store.locations[key], ON[key]
        )


def flagged_schema(key: str) -> StructType:
    """A table's columns, all of which may be null, and the flag of rows to be removed."""
    flag = StructField(tables.REMOVE, BooleanType())
    return StructType([*keeping.nullable(SCHEMAS[key]), flag])
