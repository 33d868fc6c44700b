"""Import Extended Events into ``observed_routing`` and ``dialogs``: read → new rows → commits of many rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from routing.config import Config
from routing.delta.opening import TableOpener
from routing.importing import stored_tables
from routing.importing.completing import complete_imports, note_events
from routing.importing.covered_rows import EVENT_KEY, ImportResult, name_message
from routing.importing.events.event_files import RawEvent, read_events
from routing.importing.events.event_rows import BrokenEventError, parse_event, read_event
from routing.importing.history import TableChanges
from routing.importing.import_faults import latest_time, phrase_to_come
from routing.importing.import_files import Reach
from routing.importing.spelling import NameSpelling, say_near_names
from routing.importing.stored_rows import with_stored_ids
from routing.terms import TableRow

ROWS_AT_ONCE = 50_000
# So many rejected rows are named; all are counted.
_NAMED = 1_000
_DIALOG = ("instance_name", "conversation_id", "is_initiator")
# The lock file is next to imports.
_TABLES = ("databases", "instances", "observed_routing", "imports")
_NO_INSTANCE = "its instance is unknown (--instance)"


def import_events(
    opener: TableOpener,
    config: Config,
    sources: Sequence[str],
    reach: Reach,
    *,
    instance: str | None = None,
    now: datetime,
    dry_run: bool = False,
    drop_unfinished: bool = False,
    progress: Callable[[str], None] = lambda text: None,
    rows_at_once: int = ROWS_AT_ONCE,
) -> ImportResult:
    """Import the events of files (docs/how-to/reconcile.md). Stored events are not changed.

    ``instance`` is the default for rows without an instance, ``now`` the time of the import. ``rows_at_once``
    limits the events in memory and in a commit. Another interrupted import is completed first, or removed from the
    journal with ``drop_unfinished``. Raises ContractError before any write, StorageError after it.
    """
    config = config.placed(opener.placed)
    keys = [*_TABLES, *(key for key in ("dialogs",) if key in config.tables)]
    with nullcontext() if dry_run else stored_tables.only_import(config, now):
        progress("reading the tables")
        earlier = complete_imports(opener, config, is_dry_run=dry_run, drops=drop_unfinished)
        store = stored_tables.open_stored(opener, config, keys)
        # Read only the stored messages and their ids.
        messages = stored_tables.open_stored(opener, config, ["messages"] if "messages" in config.tables else [])
        event_import = _EventImport.of(store, messages, instance, latest_time(now))
        source = {"files": list(sources), "instance": instance}
        of_sources = stored_tables.find_of_sources(store, source)
        progress("bringing in the events")
        for rows in event_import.batches(read_events(sources, reach, event_import.not_read), rows_at_once):
            if not dry_run:
                if not event_import.added:
                    stored_tables.make_ready(store)
                    stored_tables.store_sources(store, "observed_routing", source, now)
                stored_tables.add(store, "observed_routing", rows, EVENT_KEY)
            event_import.added += len(rows)
        dialogs = event_import.acknowledged()
        if not dry_run:
            stored_tables.put(store, "dialogs", dialogs)
            stored_tables.remove_sources(store, source)
    done = event_import.summarize(dry_run, dialogs)
    done.notes[:0] = [*earlier.notes, *note_events(earlier, () if dry_run else of_sources)]
    return done


@dataclass
class _EventImport:
    store: stored_tables.StoredTables
    messages: stored_tables.StoredTables
    instance: str | None
    spelling: NameSpelling
    databases: dict[tuple[str, int], str]
    known_digests: set[bytes]
    latest: datetime
    counted: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    sentences: list[str] = field(default_factory=list)
    ignored_events: Counter[str] = field(default_factory=Counter)
    unknown_ids: Counter[tuple[str, int]] = field(default_factory=Counter)
    acknowledgements: dict[tuple[object, ...], datetime] = field(default_factory=dict)
    instances: set[str] = field(default_factory=set)
    not_read: list[str] = field(default_factory=list)
    added: int = 0
    unchanged: int = 0
    lost: int = 0

    @classmethod
    def of(
        cls,
        store: stored_tables.StoredTables,
        messages: stored_tables.StoredTables,
        instance: str | None,
        latest: datetime,
    ) -> _EventImport:
        """Begin an import into these tables."""
        databases = store.rows("databases")
        spelling = NameSpelling.of_tables(store.rows("instances"), databases)
        ids = {
            (row["instance_name"], row["database_id"]): row["name"]
            for row in databases
            if row["database_id"] is not None
        }
        return cls(store, messages, instance, spelling, ids, set(store.hashes()), latest)

    def batches(self, raws: Iterable[RawEvent], rows_at_once: int) -> Iterator[list[TableRow]]:
        """Yield the rows that are new, many at a time."""
        rows = self._rows(raws)
        while batch := list(islice(rows, rows_at_once)):
            new = self.store.new_events(batch)
            self.unchanged += len(batch) - len(new)
            if new:
                yield with_stored_ids(new, self.messages.find_message_ids(new))

    def _rows(self, raws: Iterable[RawEvent]) -> Iterator[TableRow]:
        for raw in raws:
            file = raw.place.rpartition(", ")[0]
            self.counted[file] += 1
            try:
                row = self._row(raw)
            except BrokenEventError as error:
                self.rejected[file] += 1
                if self.rejected.total() <= _NAMED:
                    self.sentences.append(f"{raw.place}: {error}")
                continue
            if row is None:
                continue
            digest = stored_tables.event_digest(row["instance_name"], row["event_hash"])
            if digest in self.known_digests:
                self.unchanged += 1
                continue
            self.known_digests.add(digest)
            yield row

    def _row(self, raw: RawEvent) -> TableRow | None:
        """Return the row of an event, or None if it makes none. Raises BrokenEventError."""
        if raw.data is None:
            raise BrokenEventError(raw.why or "it has no event")
        event, named = parse_event(raw.data), raw.instance or self.instance
        if named is None:
            raise BrokenEventError(_NO_INSTANCE)
        instance = self.spelling.instance(named)
        read = read_event(event, instance)
        if read is None:
            self.ignored_events[event.name or "an event without a name"] += 1
            return None
        row = read.row
        if row["observed_at"] > self.latest:
            raise BrokenEventError(phrase_to_come("its timestamp", row["observed_at"]))
        self.instances.add(instance)
        if read.database_id is not None:
            row["database_name"] = self.databases.get((instance, read.database_id))
            self.unknown_ids[instance, read.database_id] += row["database_name"] is None
        if row["is_initiator"] is not None and row["message_sequence_number"] is not None:
            row["message_id"] = name_message(row)
        if not read.is_acknowledgement:
            return row
        dialog_key = tuple(row[name] for name in _DIALOG)
        earliest = self.acknowledgements.get(dialog_key, row["observed_at"])
        self.acknowledgements[dialog_key] = min(earliest, row["observed_at"])
        return None

    def acknowledged(self) -> TableChanges:
        """Return the dialogs that were acknowledged, as far as the table does not say when."""
        changes = TableChanges()
        if "dialogs" not in self.store.locations or not self.acknowledgements:
            self.lost = len(self.acknowledgements)
            return changes
        ids = {str(dialog_key[1]) for dialog_key in self.acknowledgements}
        key_filter = {
            "instance_name": sorted(self.instances),
            "conversation_id": sorted(ids | set(map(str.upper, ids))),
        }
        stored_keys = set()
        for row in self.store.rows("dialogs", key_filter):
            dialog_key = (row["instance_name"], row["conversation_id"].lower(), row["is_initiator"])
            at = self.acknowledgements.get(dialog_key)
            if at is None:
                continue
            stored_keys.add(dialog_key)
            if row["acknowledged_at"] is None:
                changes.put.append({**row, "acknowledged_at": at})
        changes.counts["changed"] = len(changes.put)
        changes.counts["unchanged"] = len(stored_keys) - len(changes.put)
        self.lost = len(self.acknowledgements) - len(stored_keys)
        return changes

    def summarize(self, dry_run: bool, dialogs: TableChanges) -> ImportResult:
        """Return the result: the numbers of events read, rejected and written."""
        done = ImportResult(dry_run, counted="rows", rejected=self.sentences)
        for file, rows in self.counted.items():
            done.rows_read[file] = (rows, self.rejected[file], 0)
        done.count_written("observed_routing", {"added": self.added, "unchanged": self.unchanged})
        done.count_written("dialogs", dialogs.counts)
        done.notes += self._notes()
        done.files_read, done.files_skipped = len(self.counted), len(self.not_read)
        return done

    def _notes(self) -> Iterator[str]:
        yield from self.not_read
        if self.rejected.total() > _NAMED:
            yield f"{self.rejected.total():,} rows were rejected, and only the first {_NAMED:,} are listed"
        for name, number in sorted(self.ignored_events.items()):
            yield f"{number:,} of {name[:100]} were skipped, since they are not about routes"
        for (instance, number), events in sorted(self.unknown_ids.items()):
            if events:
                problem = f"tables.databases has no database_id {number} on {instance}"
                yield f"{problem}: {events:,} of its events have no database_name (import its databases first)"
        if self.lost:
            yield f"{self.lost:,} acknowledgements are for conversations that are missing in tables.dialogs"
        known_rows = [*self.store.rows("instances"), *self.store.rows("databases")]
        yield from say_near_names(sorted(self.instances), known_rows)
