"""The tables of an import: checked, read into plain rows, and brought up to date, one MERGE each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.config import Config, Location
from routing.errors import InputError, StorageError
from routing.importing.covered import Row
from routing.importing.faults import missing_keys, not_a_table
from routing.importing.history import Changes
from routing.schemas import INPUTS, KEPT, KEYS, Field, Kind, Schema
from routing.storage import frames, tables
from routing.storage.commits import is_local
from routing.storage.locking import only_run

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
    # The versions that this import knows of, its own commits included; None: no table.
    versions: dict[str, int | None]

    def frame(self, key: str) -> DataFrame:
        """A table as it stands; columns that it lacks are null."""
        schema = SCHEMAS[key]
        if key not in self.snapshots:
            return frames.frame_of(self.spark, [], schema)
        return tables.with_columns_of(self.snapshots[key].read(self.spark), schema)

    def rows(self, key: str, instances: Sequence[str] | None = None) -> list[Row]:
        """A table's rows of these instances as plain Python, times aware and UTC."""
        if key not in self.snapshots or instances == []:
            return []
        frame = self.frame(key)
        if instances is not None:
            frame = frame.where(F.col("instance_name").isin(list(instances)))
        return frames.rows_of(frame)


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
    versions = {key: snapshots[key].version if key in snapshots else None for key in locations}
    return Stored(spark, locations, snapshots, versions)


def _holds_files(location: Location) -> bool:
    if not is_local(location):
        return False
    folder = Path(location.text)
    return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))


@contextmanager
def only_import(config: Config, now: datetime) -> Iterator[None]:
    """Be the only import into these tables, from the first read to the last commit.

    By a lock file beside ``imports``, as runs have one beside ``runs``; where there is none, on an object store or
    by names of a catalog, each write looks whether another import has written (`_commit`). Raises StorageError.
    """
    imports = config.kept.get("imports")
    if imports is None:
        # `stored` says what is missing.
        yield
        return
    with only_run(imports, f"import of {now.isoformat(timespec='seconds')}"):
        yield


def make_ready(store: Stored) -> None:
    """Make the tables that are missing, and add the columns that others lack. Raises StorageError."""
    for key, location in store.locations.items():
        schema = SCHEMAS[key]
        there = set(store.snapshots[key].read(store.spark).columns) if key in store.snapshots else set()
        if not there.issuperset(schema.names):
            with _commit(store, key):
                tables.create_if_missing(store.spark, key, location, schema)


def put(store: Stored, key: str, changes: Changes) -> None:
    """Bring the changed rows into a table, if there are any."""
    if changes:
        flagged = [{**row, tables.REMOVE: False} for row in changes.put]
        flagged += [{**row, tables.REMOVE: True} for row in changes.remove]
        merge(store, key, frames.frame_of(store.spark, flagged, flagged_schema(key)))


def merge(
    store: Stored, key: str, rows: DataFrame, *, folded: Collection[str] = (), insert_only: bool = False
) -> None:
    """Bring rows into a table by its key (`tables.merge`). Raises StorageError, where others have written too."""
    with _commit(store, key):
        tables.merge(rows, key, store.locations[key], ON[key], folded=folded, insert_only=insert_only)


@contextmanager
def _commit(store: Stored, key: str) -> Iterator[None]:
    """Make one commit to a table that nobody else has written to since it was read. Raises StorageError."""
    location, known = store.locations[key], store.versions[key]
    if tables.current_version(store.spark, location) != known:
        raise StorageError.imported_meanwhile(key, str(location))
    yield
    version = tables.current_version(store.spark, location)
    if version not in (known, 0 if known is None else known + 1):
        raise StorageError.imported_meanwhile(key, str(location))
    store.versions[key] = version


def flagged_schema(key: str) -> Schema:
    """A table's columns, all of which may be null, and the flag of rows to be removed."""
    return Schema((*SCHEMAS[key].optional(), Field(tables.REMOVE, Kind.BOOLEAN)))
