"""Open and check the tables of an import, read plain rows, and write changes with one commit each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any

from routing.config import JOURNAL, Config, TableLocation
from routing.delta.counted_runs import new_run_id
from routing.delta.local_tables import UnreadableTable
from routing.delta.opening import OpenedTable, TableOpener
from routing.delta.run_lock import only_run
from routing.delta.table_creation import creating, is_vacant
from routing.delta.table_log import TableLog
from routing.engines.traffic_tables import count_by
from routing.errors import InputError, OutputError, StorageError
from routing.importing import stored_rows
from routing.importing.covered_rows import EVENT_KEY, ON, Unit, key_of
from routing.importing.history import TableChanges
from routing.importing.import_faults import missing_keys, not_a_table
from routing.importing.import_journal import APPENDED, encode_changes, encode_sources, in_order, is_of_sources
from routing.importing.stored_rows import LocalWriter, SparkWriter, TableWriter
from routing.schemas import TABLES
from routing.tables.read_rows import cannot_hold, read_rows
from routing.tables.table_columns import Only, Table, as_dataset, by_engine, types_of
from routing.terms import TableRow

_OBSERVED = "observed_routing"


def event_digest(instance: str, event_hash: str) -> bytes:
    """Return the identity of an event in few bytes."""
    return bytes.fromhex(event_hash)[:16] + instance.encode()


@dataclass
class StoredTables:
    """The tables that an import writes and the journal, each at one version or not yet created.

    ``job`` is the location of ``imports``, which identifies the job that creates these tables.
    """

    opener: TableOpener
    locations: Mapping[str, TableLocation]
    opened: Mapping[str, OpenedTable]
    # The versions that this import knows of, its own commits included; None: no table.
    versions: dict[str, int | None]
    job: str
    writers: dict[str, TableWriter] = field(default_factory=dict)
    # True if the journal holds the changes of this import.
    is_journaled: bool = False

    def rows(self, key: str, only: Only | None = None) -> list[TableRow]:
        """Return a table's rows, whole."""
        if key not in self.opened or any(not values for values in (only or {}).values()):
            return []
        return read_rows(self.opened[key].rows, TABLES[key], only=only)

    def units(self, key: str, instances: Collection[str]) -> set[Unit]:
        """Return the databases of some instances that a table has rows of."""
        if key not in self.opened:
            return set()
        counts = count_by(self.opened[key].rows, ("instance_name", "database_name"), {"instance_name": instances})
        return {(instance, database) for instance, database in counts}

    def keys(self, key: str, rows: Sequence[TableRow]) -> set[tuple[Any, ...]]:
        """Return the keys of these rows that are in a table."""
        if key == "messages":
            rows_with_ids = zip(rows, self.find_message_ids(rows), strict=True)
            return {key_of(key, row) for row, message_id in rows_with_ids if message_id is not None}
        return stored_rows.find_keys(self.opened[key].rows, key, rows) if key in self.opened else set()

    def find_message_ids(self, rows: Sequence[TableRow]) -> list[str | None]:
        """Return the stored ids of some rows' messages, or None for a message that is not stored."""
        if "messages" not in self.opened:
            return [None] * len(rows)
        return stored_rows.find_message_ids(self.opened["messages"].rows, rows)

    def hashes(self) -> Iterator[bytes]:
        """Return the digests of the events in ``observed_routing``, if it is a local table."""
        table = self._open_events()
        if table is None:
            return iter(())
        return by_engine({_OBSERVED: table}, spark=lambda: iter(()), arrow=lambda: _read_digests(table))

    def new_events(self, rows: Sequence[TableRow]) -> list[TableRow]:
        """Return events that ``observed_routing`` lacks if Spark reads it, otherwise all events."""
        table = self._open_events()
        if table is None:
            return list(rows)
        key = TABLES[_OBSERVED].only(*EVENT_KEY)
        stored = by_engine(
            {_OBSERVED: table},
            spark=lambda: stored_rows.find_in_frame(table, key, rows),
            arrow=lambda: list[TableRow](),
        )
        stored_events = {tuple(row[name] for name in EVENT_KEY) for row in stored}
        return [row for row in rows if tuple(row[name] for name in EVENT_KEY) not in stored_events]

    def _open_events(self) -> Table | None:
        """Return ``observed_routing`` if it has the column of events."""
        opened = self.opened.get(_OBSERVED)
        return None if opened is None or EVENT_KEY[1] not in types_of(opened.rows) else opened.rows

    def writer(self, key: str) -> TableWriter:
        """Return the writer of a table, which is chosen at the first write."""
        if key not in self.writers:
            self.writers[key] = self._choose_writer(key)
        return self.writers[key]

    def _choose_writer(self, key: str) -> TableWriter:
        location, table_key = self.locations[key], f"tables.{key}"
        local_table = self.opener.open_to_write(location, self.versions[key])
        if isinstance(local_table, UnreadableTable):
            return SparkWriter(key, location, self.opener.start_for(table_key, "written", local_table))
        self.opener.on_note(f"{table_key}: written by deltalake")
        return LocalWriter(key, location, local_table)


def _read_digests(table: Table) -> Iterator[bytes]:
    for batch in as_dataset(table).to_batches(columns=list(EVENT_KEY)):
        for instance, event_hash in zip(*(batch[name].to_pylist() for name in EVENT_KEY), strict=True):
            if event_hash is not None:
                yield event_digest(instance, event_hash)


def open_stored(
    opener: TableOpener, config: Config, keys: Iterable[str], optional: Iterable[str] = ()
) -> StoredTables:
    """Open the tables of these configuration keys and the journal, and check them before any write.

    Missing tables of ``optional`` keys are left out.

    Raises ConfigError for missing keys, InputError or OutputError for a path without a valid table.
    """
    named = {**config.tables, **config.import_tables}
    missing = [f"tables.{key}" for key in keys if key not in named]
    if missing or config.journal is None:
        raise missing_keys(config.file, missing or ["tables.imports"])
    locations = {**{key: named[key] for key in keys}, JOURNAL: config.journal}
    locations |= {key: named[key] for key in optional if key in named}
    opened, job = {}, str(named.get("imports", config.journal))
    for key, location in list(locations.items()):
        table = opener.find(f"tables.{key}", location)
        if table is not None and table.version is None:
            raise OutputError.without_versions(str(location))
        if table is not None:
            opened[key] = table
            faults = cannot_hold(types_of(table.rows), TABLES[key])
            if faults:
                raise InputError.wrong_columns(key, faults)
        elif not is_vacant(location, job):
            raise not_a_table(key, str(location))
        elif key in optional:
            del locations[key]
    versions = {key: opened[key].version if key in opened else None for key in locations}
    return StoredTables(opener, locations, opened, versions, job)


def only_import(config: Config, now: datetime) -> AbstractContextManager[None]:
    """Return the lock of these tables for one import, from the first read to the last commit.

    The lock file is next to ``imports``, as the lock file of runs is next to ``runs``. Object stores and catalogs
    have no lock file. There each write checks whether another import has written (`_commit`). The lock raises
    StorageError.
    """
    imports = config.import_tables.get("imports")
    if imports is None:
        # `open_stored` says what is missing.
        return nullcontext()
    return only_run(imports, f"import of {now.isoformat(timespec='seconds')}")


def make_ready(store: StoredTables) -> None:
    """Create the tables that are missing, and add the columns that others lack. Raises StorageError."""
    for key in list(_list_unready(store)):
        with _commit(store, key) as writer:
            if store.versions[key] is None:
                writer.make()
            else:
                writer.add_columns()


def _list_unready(store: StoredTables) -> Iterator[str]:
    """Yield the tables that are missing or lack columns. The journal is created with its first rows."""
    for key in store.locations:
        is_missing = store.versions[key] is None
        if key != JOURNAL and (is_missing or stored_rows.find_missing(store.opened[key].rows, TABLES[key])):
            yield key


def commit_changes(store: StoredTables, changes: Mapping[str, TableChanges], now: datetime) -> None:
    """Commit an import's changes by table, so that an interrupted import can be completed.

    All changes are stored in the journal first, in one commit, and taken from it once the last table is written.
    An import that makes one commit needs no journal. Raises StorageError.
    """
    ordered = {key: changes[key] for key in in_order(changes) if changes[key]}
    if not ordered or (len(ordered) == 1 and not any(_list_unready(store))):
        make_ready(store)
        write_changes(store, ordered)
        return
    ids = {key: find_id(store, key) for key in ordered}
    import_id, other_imports = new_run_id(), store.rows(JOURNAL)
    with _commit(store, JOURNAL) as writer:
        writer.replace(chain(other_imports, encode_changes(import_id, now, ordered, ids)))
    # From here on each commit makes sure that nobody else has written to the journal.
    store.is_journaled = True
    make_ready(store)
    write_changes(store, ordered)
    replace_journal(store, other_imports)


def find_id(store: StoredTables, key: str) -> str | None:
    """Return the id of a table, or None without a table."""
    return None if store.versions[key] is None else TableLog(store.opener, store.locations[key]).table_id


def write_changes(store: StoredTables, changes: Mapping[str, TableChanges]) -> None:
    """Write changes to their tables, one commit each, in their order. Raises StorageError."""
    for key, change in changes.items():
        if key in APPENDED:
            add(store, key, change.put)
        else:
            put(store, key, change)


def store_sources(store: StoredTables, key: str, sources: Mapping[str, object], now: datetime) -> None:
    """Note in the journal that an import streams to a table, until `remove_sources`. Raises StorageError."""
    journal_row = encode_sources(new_run_id(), now, key, sources)
    replace_journal(store, [*_without_sources(store, sources), journal_row])
    store.is_journaled = True


def remove_sources(store: StoredTables, sources: Mapping[str, object]) -> None:
    """Remove the rows of these sources from the journal, of every import. Raises StorageError."""
    other_imports = _without_sources(store, sources)
    if store.is_journaled or len(other_imports) < len(store.rows(JOURNAL)):
        replace_journal(store, other_imports)


def _without_sources(store: StoredTables, sources: Mapping[str, object]) -> list[TableRow]:
    return [row for row in store.rows(JOURNAL) if not is_of_sources(row, sources)]


def find_of_sources(store: StoredTables, sources: Mapping[str, object]) -> set[str]:
    """Return the ids of the imports in the journal that stream these sources."""
    return {row["import_id"] for row in store.rows(JOURNAL) if is_of_sources(row, sources)}


def replace_journal(store: StoredTables, rows: Sequence[TableRow]) -> None:
    """Replace the journal's rows. Raises StorageError."""
    with _commit(store, JOURNAL) as writer:
        writer.replace(rows)
    store.is_journaled = False


def find_new(store: StoredTables, key: str, rows: Sequence[TableRow]) -> list[TableRow]:
    """Return the rows with keys that a table lacks."""
    stored_keys = store.keys(key, rows)
    return [row for row in rows if key_of(key, row) not in stored_keys]


def put(store: StoredTables, key: str, changes: TableChanges) -> None:
    """Write the changed rows of a table, if there are any. Raises StorageError."""
    if changes:
        with _commit(store, key) as writer:
            writer.put(changes)


def add(store: StoredTables, key: str, rows: Sequence[TableRow], on: Sequence[str] | None = None) -> None:
    """Add rows with new keys, if there are any. Raises StorageError.

    ``on`` are the columns of the key, or those of `covered_rows.ON` if None.
    """
    if rows:
        with _commit(store, key) as writer:
            writer.add(rows, ON[key] if on is None else on)


@contextmanager
def _commit(store: StoredTables, key: str) -> Iterator[TableWriter]:
    """Commit to a table that has had no other commit since it was read. Raises StorageError."""
    writer, before = store.writer(key), store.versions[key]
    overtaken = StorageError.imported_meanwhile(key, str(store.locations[key]))
    if store.is_journaled and store.writer(JOURNAL).find_newest() != store.versions[JOURNAL]:
        raise StorageError.imported_meanwhile(JOURNAL, str(store.locations[JOURNAL]))
    if writer.find_newest() != before:
        raise overtaken
    try:
        with creating(store.locations[key], store.job):
            yield writer
    except StorageError as error:
        # Delta refuses a conflicting concurrent commit.
        if writer.find_newest() != before:
            raise overtaken from error
        raise
    version = writer.find_newest()
    if version not in (before, 0 if before is None else before + 1):
        raise overtaken
    store.versions[key] = version
