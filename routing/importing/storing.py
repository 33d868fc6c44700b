"""The tables of an import: opened and checked, read into plain rows, and brought up to date, one commit each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from routing.config import Config, Location
from routing.errors import InputError, OutputError, StorageError
from routing.importing.covered import Row
from routing.importing.faults import missing_keys, not_a_table
from routing.importing.history import Changes
from routing.importing.keyed import EVENT_KEY, ON, key_of
from routing.importing.stored_messages import find_message_ids
from routing.importing.stored_rows import find_keys, find_missing
from routing.importing.writing import LocalWriter, SparkWriter, Writer
from routing.schemas import TABLES, Schema
from routing.storage.columns import Only, as_dataset, is_frame
from routing.storage.commits import is_local
from routing.storage.local import Unfit
from routing.storage.locking import only_run
from routing.storage.opening import Opened, Opener
from routing.storage.shapes import cannot_hold, types_of
from routing.storage.stored import read_rows

_OBSERVED = "observed_routing"


def event_digest(instance: str, event_hash: str) -> bytes:
    """What tells an event from any other, in few bytes."""
    return bytes.fromhex(event_hash)[:16] + instance.encode()


@dataclass(frozen=True)
class Stored:
    """The tables that an import writes, each at one version or not yet there."""

    opener: Opener
    locations: Mapping[str, Location]
    opened: Mapping[str, Opened]
    # The versions that this import knows of, its own commits included; None: no table.
    versions: dict[str, int | None]
    writers: dict[str, Writer] = field(default_factory=dict)

    def rows(self, key: str, only: Only | None = None) -> list[Row]:
        """A table's rows, whole."""
        if key not in self.opened or any(not values for values in (only or {}).values()):
            return []
        return read_rows(self.opened[key].rows, TABLES[key], only=only)

    def keys(self, key: str, rows: Sequence[Row]) -> set[tuple[Any, ...]]:
        """Return those keys of these rows that stand in a table."""
        if key == "messages":
            known = zip(rows, self.find_message_ids(rows), strict=True)
            return {key_of(key, row) for row, message_id in known if message_id is not None}
        return find_keys(self.opened[key].rows, key, rows) if key in self.opened else set()

    def find_message_ids(self, rows: Sequence[Row]) -> list[str | None]:
        """Return the ids under which the messages of some rows are stored; None for one that is not."""
        if "messages" not in self.opened:
            return [None] * len(rows)
        return find_message_ids(self.opened["messages"].rows, rows)

    def hashes(self) -> Iterator[bytes]:
        """The digests of the events that stand in ``observed_routing``, where it is a local table."""
        table = self.opened[_OBSERVED].rows if _OBSERVED in self.opened else None
        if table is None or is_frame(table) or EVENT_KEY[1] not in table.schema.names:
            return
        for batch in as_dataset(table).to_batches(columns=list(EVENT_KEY)):
            for instance, told in zip(*(batch[name].to_pylist() for name in EVENT_KEY), strict=True):
                if told is not None:
                    yield event_digest(instance, told)

    def new_events(self, rows: Sequence[Row]) -> list[Row]:
        """Those of some events that do not stand in ``observed_routing``, where Spark reads it; else all."""
        table = self.opened[_OBSERVED].rows if _OBSERVED in self.opened else None
        if table is None or not is_frame(table) or EVENT_KEY[1] not in table.columns:
            return list(rows)
        from routing.storage.frames import frame_of, with_columns_of

        schema = Schema(tuple(field for field in TABLES[_OBSERVED] if field.name in EVENT_KEY))
        asked = frame_of(table.sparkSession, rows, schema.optional())
        there = read_rows(with_columns_of(table, schema).join(asked, list(EVENT_KEY), "left_semi"), schema)
        known = {tuple(row[name] for name in EVENT_KEY) for row in there}
        return [row for row in rows if tuple(row[name] for name in EVENT_KEY) not in known]

    def writer(self, key: str) -> Writer:
        """What writes a table, chosen at the first write."""
        if key not in self.writers:
            self.writers[key] = self._choose_writer(key)
        return self.writers[key]

    def _choose_writer(self, key: str) -> Writer:
        location, told = self.locations[key], f"tables.{key}"
        found = self.opener.open_to_write(location, self.versions[key])
        if isinstance(found, Unfit):
            return SparkWriter(key, location, self.opener.start_for(told, "written", found))
        self.opener.tell(f"{told}: written by deltalake")
        return LocalWriter(key, location, found)


def open_stored(opener: Opener, config: Config, keys: Sequence[str]) -> Stored:
    """The tables of these configuration keys, checked before anything is written.

    Raises ConfigError for keys that are missing, InputError or OutputError where something else stands there.
    """
    named = {**config.tables, **config.kept}
    missing = [f"tables.{key}" for key in keys if key not in named]
    if missing:
        raise missing_keys(config.file, missing)
    locations = {key: named[key] for key in keys}
    opened = {}
    for key, location in locations.items():
        found = opener.find(f"tables.{key}", location)
        if found is not None and found.version is None:
            raise OutputError.without_versions(str(location))
        if found is not None:
            opened[key] = found
            faults = cannot_hold(types_of(found.rows), TABLES[key])
            if faults:
                raise InputError.wrong_columns(key, faults)
        elif _holds_files(location):
            raise not_a_table(key, str(location))
    versions = {key: opened[key].version if key in opened else None for key in locations}
    return Stored(opener, locations, opened, versions)


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
        # `open_stored` says what is missing.
        yield
        return
    with only_run(imports, f"import of {now.isoformat(timespec='seconds')}"):
        yield


def make_ready(store: Stored) -> None:
    """Make the tables that are missing, and add the columns that others lack. Raises StorageError."""
    for key in store.locations:
        if key not in store.opened:
            with _commit(store, key) as writer:
                writer.make()
        elif find_missing(store.opened[key].rows, TABLES[key]):
            with _commit(store, key) as writer:
                writer.add_columns()


def put(store: Stored, key: str, changes: Changes) -> None:
    """Bring the changed rows into a table, if there are any. Raises StorageError."""
    if changes:
        with _commit(store, key) as writer:
            writer.put(changes)


def add(store: Stored, key: str, rows: Sequence[Row], on: Sequence[str] | None = None) -> None:
    """Add rows, of which no key stands in the table, if there are any. Raises StorageError.

    ``on`` are the columns of the key, those of `keyed.ON` if None.
    """
    if rows:
        with _commit(store, key) as writer:
            writer.add(rows, ON[key] if on is None else on)


@contextmanager
def _commit(store: Stored, key: str) -> Iterator[Writer]:
    """Make one commit to a table that nobody else has written to since it was read. Raises StorageError."""
    writer, before = store.writer(key), store.versions[key]
    overtaken = StorageError.imported_meanwhile(key, str(store.locations[key]))
    if writer.find_newest() != before:
        raise overtaken
    try:
        yield writer
    except StorageError as error:
        # Delta refuses a commit beside another's, if it comes to that.
        if writer.find_newest() != before:
            raise overtaken from error
        raise
    version = writer.find_newest()
    if version not in (before, 0 if before is None else before + 1):
        raise overtaken
    store.versions[key] = version
