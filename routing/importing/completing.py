"""Complete, drop or report an interrupted import from its journal."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from routing.config import JOURNAL, Config
from routing.delta.import_times import begun_at, say_events
from routing.delta.opening import TableOpener
from routing.errors import ContractError, join_bounded
from routing.importing import import_journal, import_order, stored_tables
from routing.importing.history import TableChanges
from routing.importing.import_faults import unfit_journal
from routing.importing.import_journal import UnfinishedImport, UnfitError
from routing.schemas import TABLES
from routing.tables.read_rows import read_rows
from routing.terms import TableRow

_IMPORTS = "imports"


@dataclass
class EarlierImports:
    """The imports found in the journal: notes on them, and the imports of events that stay there."""

    notes: list[str] = field(default_factory=list)
    of_events: list[UnfinishedImport] = field(default_factory=list)


def complete_imports(
    opener: TableOpener, config: Config, *, is_dry_run: bool = False, drops: bool = False
) -> EarlierImports:
    """Complete the imports with changes in the journal. No other import may run at the same time.

    With ``drops`` they are removed from the journal instead, including imports of events. With ``is_dry_run`` no
    table is written. Raises InputError if an import cannot be completed, StorageError if a table cannot be
    written.
    """
    earlier = EarlierImports()
    store = stored_tables.open_stored(opener, config, ())
    rows = read_rows(store.opened[JOURNAL].rows, import_journal.SMALL) if JOURNAL in store.opened else []
    unfinished = import_journal.list_unfinished(rows)
    if drops:
        earlier.notes += [_say_dropped(entry, is_dry_run) for entry in unfinished]
        if unfinished and not is_dry_run:
            stored_tables.replace_journal(store, [])
        return earlier
    for entry in unfinished:
        if entry.is_of_events:
            earlier.of_events.append(entry)
        elif is_dry_run:
            earlier.notes.append(
                f"the import that began at {begun_at(entry.started_at)} is not finished: the next import completes"
                " it first, and this dry run reads the current tables"
            )
        else:
            _complete(opener, config, entry)
            earlier.notes.append(f"the import that began at {begun_at(entry.started_at)} was completed first")
    return earlier


def note_events(earlier: EarlierImports, completed_ids: Collection[str] = ()) -> list[str]:
    """Return a note on each import of events in the journal. This run completed ``completed_ids``."""
    return [
        f"the import of events that began at {begun_at(entry.started_at)} is completed by this one"
        if entry.import_id in completed_ids
        else say_events(entry.started_at)
        for entry in earlier.of_events
    ]


def _complete(opener: TableOpener, config: Config, unfinished: UnfinishedImport) -> None:
    """Write the changes of a stored import, and clear the journal. Raises InputError before any write."""
    try:
        import_journal.check_release(unfinished)
        import_journal.check_parts(unfinished)
        named = {**config.tables, **config.import_tables}
        unknown = [key for key in unfinished.table_keys if key not in named]
        if unknown:
            raise UnfitError(f"the configuration names no tables.{unknown[0]}")
        store = stored_tables.open_stored(opener, config, dict.fromkeys([*unfinished.table_keys, _IMPORTS]))
        changes = {key: _decode(store, unfinished, key) for key in unfinished.table_keys}
    except (UnfitError, ContractError) as error:
        raise unfit_journal(begun_at(unfinished.started_at), str(error)) from error
    recorded = changes.get(_IMPORTS, TableChanges())
    own_values = {_values(row) for row in [*recorded.put, *recorded.remove]}
    others = [row for row in store.rows(_IMPORTS) if _values(row) not in own_values]
    if later := import_order.find_later(others, recorded.put):
        raise unfit_journal(begun_at(unfinished.started_at), join_bounded(later, "part"))
    stored_tables.make_ready(store)
    other_imports = [row for row in store.rows(JOURNAL) if row["import_id"] != unfinished.import_id]
    store.is_journaled = True
    for key in set(import_journal.APPENDED) & changes.keys():
        changes[key].put = stored_tables.find_new(store, key, changes[key].put)
    stored_tables.write_changes(store, changes)
    stored_tables.replace_journal(store, other_imports)


def _decode(store: stored_tables.StoredTables, unfinished: UnfinishedImport, key: str) -> TableChanges:
    parts = store.rows(JOURNAL, {"import_id": [unfinished.import_id], "table_key": [key]})
    return import_journal.decode_changes(unfinished, key, parts, stored_tables.find_id(store, key))


def _values(row: TableRow) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in TABLES[_IMPORTS].names if name != "imported_at")


def _say_dropped(unfinished: UnfinishedImport, is_dry_run: bool) -> str:
    """Return the sentence on a dropped import. Its rows are not decoded: they may be damaged."""
    begun = begun_at(unfinished.started_at)
    done = "would be dropped" if is_dry_run else "was dropped"
    if unfinished.is_of_events:
        return f"the import of events that began at {begun} {done}: run the same command to add the rest"
    names = ", ".join(f"tables.{key}" for key in unfinished.table_keys)
    return f"the import that began at {begun} {done}; {names} may hold a part of it. Import complete exports once"
