"""Import exports of catalog views: read → covered part → changes → one commit a table → imports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import cache
from operator import itemgetter

from routing.config import Config
from routing.delta.opening import TableOpener
from routing.errors import join_bounded, quote
from routing.groups import group_pairs
from routing.importing import import_order, stored_tables
from routing.importing.catalog import CatalogExport, cover
from routing.importing.catalog.conversation_rows import observations, reject_without_endpoint
from routing.importing.catalog.covering import MONITORS, SEEN_VIEWS
from routing.importing.catalog.views import EVIDENCE, QUEUE
from routing.importing.completing import complete_imports, note_events
from routing.importing.covered_rows import ON, CoveredRows, ImportResult, Unit, line_order, list_some, unit_of
from routing.importing.history import TableChanges, dialog_changes, instance_rows, present_changes, route_changes
from routing.importing.import_faults import find_exports_to_come, latest_time, refuse_to_come
from routing.importing.import_order import Dropped, close_routes, cover_dropped, find_dropped
from routing.importing.spelling import NameSpelling, say_near_names
from routing.importing.stored_rows import with_stored_ids
from routing.terms import MSDB, TableRow

_ALWAYS = ("databases", "services", "instances", "routes", "imports")
_OF_DATABASES = ("services", "routes")
_ALSO = {"conversation_endpoints": ("dialogs",), "transmission_queue": ("messages", "observed_routing")}
_NOT_SAID = (
    "an acknowledgement or BEGIN DIALOG, and the export does not show which: it applies from"
    " the time of the export"
)


def import_export(
    opener: TableOpener,
    config: Config,
    export: CatalogExport,
    *,
    now: datetime,
    addresses: Sequence[str] = (),
    dry_run: bool = False,
    drop_unfinished: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> ImportResult:
    """Import an export into the tables of the configuration (docs/how-to/import.md).

    ``now`` is the time of the import. An interrupted import is completed first, or removed from the journal with
    ``drop_unfinished``. Raises ContractError before any write if the export is older than the last import of the
    same, or a key or table does not fit. Raises StorageError for a failed write.
    """
    hint = "--time-zone names the zone of the clock that showed it"
    refuse_to_come(find_exports_to_come(export.rows, now), hint)
    keys = [
        *_ALWAYS,
        *(key for view, further_keys in _ALSO.items() if view in export.rows for key in further_keys),
    ]
    optional: tuple[str, ...] = ("dialogs",) if "databases" in export.rows and "dialogs" not in keys else ()
    config = config.placed(opener.placed)
    is_exported = {key: not export.rows.keys().isdisjoint(views) for key, views in SEEN_VIEWS.items()}
    seen_keys = [key for key in SEEN_VIEWS if is_exported[key] and key in config.import_tables]
    keys += seen_keys
    if "databases" in export.rows:
        # Of databases that are gone nothing stays.
        optional += tuple(key for key in SEEN_VIEWS if key not in seen_keys)
    leaves_out = _find_unneeded(export, seen_keys)
    with nullcontext() if dry_run else stored_tables.only_import(config, now):
        progress("reading the tables")
        earlier = complete_imports(opener, config, is_dry_run=dry_run, drops=drop_unfinished)
        store = stored_tables.open_stored(opener, config, keys, optional)
        done = _bring_export(store, export, now, addresses, leaves_out, dry_run, progress)
    done.notes[:0] = [*earlier.notes, *note_events(earlier)]
    return done


def _find_unneeded(export: CatalogExport, seen_keys: Collection[str]) -> list[str]:
    """Return the views of an export that no table needs, and note them.

    ``seen_keys`` are the written tables of queues and endpoints. The monitors of queues go to the table of queues.
    """
    stored_views = {view for key in seen_keys for view in SEEN_VIEWS[key]}
    stored_views |= {MONITORS} if "queues" in seen_keys else set()
    views = [view for view in export.rows if view in EVIDENCE and view not in stored_views]
    if views:
        named = join_bounded([f"sys.{view}" for view in views], "view")
        export.notes.append(f"{named}: not imported; check reads it, and resolve does not need it")
    return views


def _bring_export(
    store: stored_tables.StoredTables,
    export: CatalogExport,
    now: datetime,
    addresses: Sequence[str],
    leaves_out: Collection[str],
    dry_run: bool,
    progress: Callable[[str], None],
) -> ImportResult:
    stored = {key: store.rows(key) for key in ("databases", "instances")}
    spelling = NameSpelling.of_tables(stored["instances"], stored["databases"])
    covered = cover(export, spelling, addresses, leaves_out)
    covered.units.pop(MONITORS, None)
    reject_without_endpoint(covered)
    names = {"instance_name": covered.instances}
    stored |= {key: store.rows(key, names) for key in _OF_DATABASES}
    imports = store.rows("imports", names)
    latest = latest_time(now)
    digest = cache(_digests(export, addresses))
    import_order.refuse_older(imports, import_order.rows_of_views(covered.units, now, digest), latest)
    taken_back = import_order.take_back(stored["routes"], imports, latest)
    stored["routes"] = list(taken_back.routes)
    dropped = _find_dropped(store, covered, stored, [row for row in imports if row["exported_at"] <= latest])
    cover_dropped(covered, dropped)
    import_rows = import_order.rows_of_views(covered.units, now, digest)
    first, instances_lost = import_order.find_first(
        imports, covered.instances, {row["instance_name"] for row in stored["routes"]}
    )
    covered.notes += taken_back.notes
    changes = _changes(covered, stored, dropped, first, taken_back)
    covered.notes += import_order.say_lost(instances_lost if changes.get("routes") else ())
    _say_copies(store, covered, stored["databases"])
    covered.notes += say_near_names(covered.instances, [*stored["instances"], *stored["databases"]])
    done = ImportResult(dry_run, counted="rows", rejected=covered.rejected, notes=covered.notes)
    for view, rows in export.rows_read.items():
        done.rows_read[view] = (rows, covered.rejected_of[view], export.left_out[view])
    if "dialogs" in store.locations:
        changes["dialogs"] = _dialog_changes(store, covered, dropped.get("dialogs", {}))
    if "messages" in store.locations:
        changes |= _added_rows(store, covered)
    for key in SEEN_VIEWS:
        if key in store.locations:
            changes[key] = _seen_changes(store, covered, key, dropped.get(key, {}))
    for key, change in changes.items():
        done.count_written(key, change.counts)
    if not dry_run:
        progress("writing the tables")
        changes["imports"] = import_order.imports_changes(imports, import_rows, latest)
        stored_tables.commit_changes(store, changes, now)
    done.rejected.sort(key=line_order)
    return done


def _digests(export: CatalogExport, addresses: Sequence[str]) -> Callable[[str, Unit], str]:
    rows: defaultdict[tuple[str, Unit], list[TableRow]] = defaultdict(list)
    for view, of_view in export.rows.items():
        for row in of_view:
            rows[view, unit_of(row)].append(row)
    return lambda view, unit: import_order.digest_rows(rows[view, unit], addresses)


def _find_dropped(
    store: stored_tables.StoredTables,
    covered: CoveredRows,
    stored: Mapping[str, Sequence[TableRow]],
    imports: Sequence[TableRow],
) -> Dropped:
    """Return the databases that tables hold something of and sys.databases does not list, if it was exported."""
    of_views = covered.units.get("databases", {})
    if not of_views:
        return {}
    units_by_table = {key: {unit_of(row) for row in stored[key]} for key in _OF_DATABASES}
    if "dialogs" in store.locations:
        units_by_table["dialogs"] = store.units("dialogs", {instance for instance, _ in of_views})
    for key in SEEN_VIEWS:
        if key in store.locations:
            units_by_table[key] = store.units(key, {instance for instance, _ in of_views})
    for key in units_by_table:
        units_by_table[key] |= {unit_of(row) for row in covered.rows.get(key, ())}
    return find_dropped(covered, stored["databases"], units_by_table, imports)


def _changes(
    covered: CoveredRows,
    stored: Mapping[str, Sequence[TableRow]],
    dropped: Dropped,
    first: set[str],
    taken_back: import_order.TakenBack,
) -> dict[str, TableChanges]:
    """Find the changes to the small tables. ``stored`` are their rows."""
    units, rows = covered.units, covered.rows

    def find_changes(key: str, rows: Sequence[TableRow]) -> TableChanges:
        dropped_units = dropped.get(key, {})

        def is_covered(row: TableRow) -> bool:
            unit = unit_of(row)
            return unit in dropped_units or (unit in units.get(key, {}) and not covered.is_doubtful(key, row))

        existing = [row for row in rows if unit_of(row) not in dropped_units]
        return present_changes(stored[key], existing, ON[key], is_covered)

    changes = {
        "databases": find_changes("databases", rows.get("databases", ())),
        "services": find_changes("services", rows.get("services", ())),
        "instances": find_changes("instances", instance_rows(stored["instances"], rows.get("instances", ()))),
    }
    if "routes" in units or dropped.get("routes") or taken_back.notes:
        changed = route_changes(
            stored["routes"],
            rows.get("routes", ()),
            units.get("routes", {}),
            first,
            lambda row: covered.is_doubtful("routes", row),
        )
        close_routes(changed, stored["routes"], dropped.get("routes", {}))
        changes["routes"] = taken_back.with_changes(changed)
    _say_what_is_missing(covered, stored["databases"])
    return changes


def _say_what_is_missing(covered: CoveredRows, databases: Sequence[TableRow]) -> None:
    """Note databases with routes or messages that ``databases`` lacks: their messages will be rejected."""
    rows = [*databases, *covered.rows.get("databases", ())]
    known_databases = {(row["instance_name"], row["name"]) for row in rows}
    used = {
        (instance, name)
        for view in ("routes", "transmission_queue")
        for instance, name in covered.units.get(view, {})
        if name is not None and name.lower() != MSDB
    }
    missing = [f"{instance}.{name}" for instance, name in used - known_databases]
    if missing:
        covered.notes.append(
            f"the table databases does not list {list_some(missing)}: import sys.databases as well"
        )


def _say_copies(store: stored_tables.StoredTables, covered: CoveredRows, stored: Sequence[TableRow]) -> None:
    """Note messages of databases with the id of one on another instance, whose messages are stored too."""
    rows = [*stored, *covered.rows.get("databases", ())]
    brokers = {(row["instance_name"], row["name"]): row["service_broker_guid"] for row in rows}
    by_broker = group_pairs(((unit[1], broker), unit) for unit, broker in brokers.items() if broker is not None)
    senders = dict.fromkeys(unit_of(row) for row in covered.rows.get("messages", ()))
    pairs = ((unit, twin) for unit in senders for twin in by_broker.get((unit[1], brokers.get(unit)), ()))
    twins = [(unit, twin) for unit, twin in pairs if twin != unit]
    names = {instance for pair in twins for instance, _ in pair}
    imports = sorted(store.rows("imports", {"instance_name": names}), key=itemgetter("imported_at"))
    last = {unit_of(row): row["imported_at"] for row in imports if row["view_or_file"] == QUEUE}
    exported = covered.units.get(QUEUE, {})
    # A replica whose queue was imported later than the other one's had this note then.
    older = {
        (unit, twin)
        for unit, twin in twins
        if twin in last and twin not in exported and (unit not in last or last[unit] < last[twin])
    }
    covered.notes += (
        f"{quote(unit[0])} and {quote(twin[0])} have messages of one database, {quote(twin[1])}: if these are"
        " replicas, import only the primary's transmission queue"
        for unit, twin in twins
        if (unit, twin) in older or (twin in senders and unit < twin)
    )


def _seen_changes(
    store: stored_tables.StoredTables, covered: CoveredRows, key: str, dropped_units: Collection[Unit]
) -> TableChanges:
    """Find the changes to a table of evidence, which has the last export of each database."""
    units = {*dropped_units, *(unit for view in SEEN_VIEWS[key] for unit in covered.units.get(view, {}))}
    rows = [row for row in covered.rows.get(key, []) if unit_of(row) not in dropped_units]
    stored = store.rows(key, {"instance_name": {instance for instance, _ in units}})
    return present_changes(stored, rows, ON[key], lambda row: unit_of(row) in units)


def _dialog_changes(
    store: stored_tables.StoredTables, covered: CoveredRows, dropped_units: Collection[Unit]
) -> TableChanges:
    """Find the changes to ``dialogs``, and note which broker instances an export does not date."""
    units = {*covered.units.get("conversation_endpoints", {}), *dropped_units}
    rows = [row for row in covered.rows.get("dialogs", []) if unit_of(row) not in dropped_units]
    # Read only the dialogs of these databases: the table may be large.
    only = {
        "instance_name": {instance for instance, _ in units},
        "database_name": {database for _, database in units if database is not None},
    }
    # An unreadable row may be any dialog, except one of a dropped database.
    is_doubtful = bool(covered.doubts.get("conversation_endpoints"))
    changes = dialog_changes(rows, store.rows("dialogs", only), dropped_units if is_doubtful else units)
    named = sum(row["far_broker_instance"] is not None for row in rows)
    if named:
        dialogs = "1 dialog" if named == 1 else f"{named} dialogs"
        covered.notes.append(f"far_broker_instance of {dialogs} is from {_NOT_SAID}")
    return changes


def _added_rows(store: stored_tables.StoredTables, covered: CoveredRows) -> dict[str, TableChanges]:
    messages, observed = covered.rows.get("messages", []), observations(covered)
    ids = store.find_message_ids(messages)
    new = {
        "messages": [row for row, stored_id in zip(messages, ids, strict=True) if stored_id is None],
        # Each observation is of the message in the same place.
        "observed_routing": stored_tables.find_new(store, "observed_routing", with_stored_ids(observed, ids)),
    }
    return {
        key: TableChanges(put=rows, counts=Counter(added=len(rows), unchanged=len(messages) - len(rows)))
        for key, rows in new.items()
    }
