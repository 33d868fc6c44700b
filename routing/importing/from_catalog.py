"""Exports of catalog views into the tables: read → covered part → changes → one commit a table → imports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import cache

from routing.config import Config
from routing.importing import order, storing
from routing.importing.catalog import Export, cover
from routing.importing.catalog.conversations import reject_without_endpoint
from routing.importing.conversing import dialog_changes
from routing.importing.covered import Covered, Row, Unit, line_order
from routing.importing.history import Changes, instance_rows, present_changes, route_changes
from routing.importing.keyed import ON, key_of
from routing.importing.moments import find_exports_to_come, latest_time, refuse_to_come
from routing.importing.result import Imported
from routing.importing.spelling import Spelling, say_near_names
from routing.importing.stored_messages import with_stored_ids
from routing.storage.opening import Opener
from routing.terms import MSDB

_ALWAYS = ("databases", "services", "instances", "routes", "imports")
_ALSO = {"conversation_endpoints": ("dialogs",), "transmission_queue": ("messages", "observed_routing")}
_NOT_SAID = "an acknowledgement or BEGIN DIALOG, which the export does not tell: it holds as of the export"


def import_export(
    opener: Opener,
    config: Config,
    export: Export,
    *,
    now: datetime,
    addresses: Sequence[str] = (),
    dry_run: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Imported:
    """Bring what an export covers into the tables that the configuration names (docs/importing.md).

    ``now`` is the time of the import. Raises ContractError before anything is written: an export that is
    older than the last import of the same, a key or table that does not fit; StorageError after.
    """
    refuse_to_come(
        find_exports_to_come(export.rows, now), "--time-zone names the zone of the clock that showed it"
    )
    keys = [*_ALWAYS, *(key for view, also in _ALSO.items() if view in export.rows for key in also)]
    config = config.placed(opener.placed)
    with nullcontext() if dry_run else storing.only_import(config, now):
        progress("reading the tables")
        store = storing.open_stored(opener, config, keys)
        return _bring_export(store, export, now, addresses, dry_run, progress)


def _bring_export(
    store: storing.Stored,
    export: Export,
    now: datetime,
    addresses: Sequence[str],
    dry_run: bool,
    progress: Callable[[str], None],
) -> Imported:
    databases, instances = store.rows("databases"), store.rows("instances")
    spelling = Spelling.of_tables(instances, databases)
    covered = cover(export, spelling, addresses)
    reject_without_endpoint(covered)
    imports = store.rows("imports", {"instance_name": covered.instances})
    latest = latest_time(now)
    digest = cache(_digests(export, addresses))
    order.refuse_older(imports, order.rows_of_views(covered.units, now, digest), latest)
    _cover_dropped(covered, databases)
    own = order.rows_of_views(covered.units, now, digest)
    first = order.find_without_routes(imports, covered.instances)
    is_read = "routes" in covered.units or bool(order.find_ahead(imports, latest))
    routes = store.rows("routes", {"instance_name": covered.instances}) if is_read else []
    taken_back = order.take_back(routes, imports, latest)
    covered.notes += taken_back.notes
    changes = _changes(store, covered, databases, instances, first, taken_back)
    covered.notes += say_near_names(covered.instances, [*instances, *databases])
    done = Imported(dry_run, counted="rows", rejected=covered.rejected, notes=covered.notes)
    for view, rows in export.rows_read.items():
        done.rows_read[view] = (rows, covered.rejected_of[view], export.left_out[view])
    if not dry_run:
        progress("writing the tables")
        storing.make_ready(store)
    for key, change in changes.items():
        if not dry_run:
            storing.put(store, key, change)
        done.tell(key, change.counts)
    if "dialogs" in store.locations:
        _bring_dialogs(store, covered, done)
    if "messages" in store.locations:
        _bring_messages(store, covered, done)
    if not dry_run:
        storing.put(store, "imports", order.imports_changes(imports, own, latest))
    done.rejected.sort(key=line_order)
    return done


def _digests(export: Export, addresses: Sequence[str]) -> Callable[[str, Unit], str]:
    """Return what gives the digest of a view and a unit of an export that was covered."""
    rows: defaultdict[tuple[str, Unit], list[Row]] = defaultdict(list)
    for view, of_view in export.rows.items():
        for row in of_view:
            rows[view, (row["instance_name"], row.get("database_name"))].append(row)
    return lambda view, unit: order.digest_rows(rows[view, unit], addresses)


def _cover_dropped(covered: Covered, stored: Sequence[Row]) -> None:
    """A database that sys.databases no longer lists is covered by every other view of the export, as empty."""
    listed = {(row["instance_name"], row["name"]) for row in covered.rows.get("databases", ())}
    for (instance, _), at in covered.units.get("databases", {}).items():
        for row in stored:
            unit = (instance, row["name"])
            if row["instance_name"] != instance or unit in listed or covered.is_doubtful("databases", row):
                continue
            for view in ("routes", "services", "conversation_endpoints"):
                units = covered.units.get(view, {})
                if any(other == instance for other, _ in units):
                    units.setdefault(unit, at)


def _changes(
    store: storing.Stored,
    covered: Covered,
    databases: Sequence[Row],
    instances: Sequence[Row],
    first: set[str],
    taken_back: order.TakenBack,
) -> dict[str, Changes]:
    """What changes in the small tables, in the order in which they are written."""
    units, rows, names = covered.units, covered.rows, {"instance_name": covered.instances}

    def find_changes(key: str, stored: Sequence[Row], wanted: Sequence[Row]) -> Changes:
        def is_covered(row: Row) -> bool:
            unit = (row["instance_name"], row.get("database_name"))
            return unit in units.get(key, {}) and not covered.is_doubtful(key, row)

        return present_changes(stored, wanted, ON[key], is_covered)

    wanted = instance_rows(instances, rows.get("instances", ()))
    changes = {
        "databases": find_changes("databases", databases, rows.get("databases", ())),
        "services": find_changes("services", store.rows("services", names), rows.get("services", ())),
        "instances": find_changes("instances", instances, wanted),
    }
    if "routes" in units or taken_back.notes:
        changed = route_changes(
            taken_back.routes,
            rows.get("routes", ()),
            units.get("routes", {}),
            first,
            lambda row: covered.is_doubtful("routes", row),
        )
        changes["routes"] = taken_back.with_changes(changed)
    _say_what_is_missing(covered, databases)
    return changes


def _say_what_is_missing(covered: Covered, databases: Sequence[Row]) -> None:
    """Databases with routes or messages that ``databases`` does not list: their messages will be rejected."""
    listed = {(row["instance_name"], row["name"]) for row in [*databases, *covered.rows.get("databases", ())]}
    used = {
        (instance, name)
        for view in ("routes", "transmission_queue")
        for instance, name in covered.units.get(view, {})
        if name is not None and name.lower() != MSDB
    }
    missing = sorted(f"{instance}.{name}" for instance, name in used - listed)
    if missing:
        shown = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        covered.notes.append(f"the table databases does not list {shown}: import sys.databases as well")


def _bring_dialogs(store: storing.Stored, covered: Covered, done: Imported) -> None:
    rows, units = covered.rows.get("dialogs", []), covered.units["conversation_endpoints"]
    # Nobody else's dialogs are read, which may be many.
    only = {
        "instance_name": {instance for instance, _ in units},
        "database_name": {database for _, database in units if database is not None},
    }
    changes = dialog_changes(rows, store.rows("dialogs", only), units)
    if covered.doubts.get("conversation_endpoints"):
        # A row that could not be read may be any of them.
        changes.remove.clear()
        del changes.counts["removed"]
    if not done.is_dry_run:
        storing.put(store, "dialogs", changes)
    done.tell("dialogs", changes.counts)
    named = sum(row["far_broker_instance"] is not None for row in rows)
    if named:
        dialogs = "1 dialog" if named == 1 else f"{named} dialogs"
        done.notes.append(f"far_broker_instance of {dialogs} is from {_NOT_SAID}")


def _bring_messages(store: storing.Stored, covered: Covered, done: Imported) -> None:
    messages, observed = covered.rows.get("messages", []), covered.rows.get("observed_routing", [])
    ids = store.find_message_ids(messages)
    # Each observation is of the message in the same place.
    observed = with_stored_ids(observed, ids)
    there = store.keys("observed_routing", observed)
    new = {
        "messages": [row for row, known in zip(messages, ids, strict=True) if known is None],
        "observed_routing": [row for row in observed if key_of("observed_routing", row) not in there],
    }
    for key, rows in new.items():
        if not done.is_dry_run:
            storing.add(store, key, rows)
        done.tell(key, Counter(added=len(rows), unchanged=len(messages) - len(rows)))
