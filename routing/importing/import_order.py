"""Order imports: find equal, older and first imports in ``imports``."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from routing.importing.catalog.views import VIEWS
from routing.importing.covered_rows import CoveredRows, Unit, list_some, unit_of
from routing.importing.history import ROUTE, TableChanges, apply_changes, changes_between, end_route, stands
from routing.importing.import_faults import older_import
from routing.render.wording import format_time
from routing.terms import MSDB, ImportKind, TableRow

_SUBJECTS = {
    "routes": "routes",
    "databases": "databases",
    "services": "services",
    "service_broker_endpoints": "instances",
    "tcp_endpoints": "addresses",
    "conversation_endpoints": "dialogs",
    "transmission_queue": "messages",
    "service_queues": "queues",
    "endpoint_counts": "endpoint_counts",
}
_VIEWS = {subject: view for view, subject in _SUBJECTS.items()}
_QUEUE = "transmission_queue"
_EVER = datetime.max.replace(tzinfo=timezone.utc)
Units = Mapping[str, Mapping[Unit, datetime]]


def rows_of_views(units: Units, now: datetime, digest: Callable[[str, Unit], str]) -> list[TableRow]:
    """Return the rows of ``imports`` for exported views. ``digest`` returns the digest of a view and a unit."""
    return [
        _row(ImportKind.VIEW, view, unit, at, now, digest(view, unit))
        for view, of_units in units.items()
        for unit, at in of_units.items()
    ]


def rows_of_script(name: str, units: Iterable[Unit], at: datetime, now: datetime, digest: str) -> list[TableRow]:
    """Return the rows of ``imports`` for a script, called ``name``."""
    in_order = sorted(units, key=lambda unit: unit[1] or "")
    return [_row(ImportKind.SCRIPT, name, unit, at, now, digest) for unit in in_order]


def _row(kind: ImportKind, name: str, unit: Unit, at: datetime, now: datetime, digest: str) -> TableRow:
    return {
        "instance_name": unit[0],
        "database_name": unit[1],
        "view_or_file": name,
        "exported_at": at,
        "imported_at": now,
        "kind": str(kind),
        "content_digest": digest,
    }


def digest_rows(rows: Iterable[TableRow], options: Sequence[str] = ()) -> str:
    """Return the digest of a view's rows and of the options that affect them."""
    digest = hashlib.sha256(repr(list(options)).encode("utf-8", "surrogatepass"))
    for row in rows:
        values = [(name, value) for name, value in row.items() if name != "place"]
        digest.update(repr(values).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def digest_script(content_digest: str, *, snapshot: bool) -> str:
    """Return the digest of a script's import, from its content and ``--snapshot``."""
    return hashlib.sha256(f"{content_digest} {snapshot}".encode()).hexdigest()


def is_known(imports: Iterable[TableRow], rows: Sequence[TableRow]) -> bool:
    """Return True if this very import of a script was done before: its content, options and time.

    Older releases stored no digest of the content: there the name and the time decide.
    """
    known_imports = {
        (unit_of(row), row["view_or_file"], row["exported_at"], row.get("content_digest"))
        for row in imports
        if not is_of_view(row)
    }

    def has(row: TableRow) -> bool:
        same = (unit_of(row), row["view_or_file"], row["exported_at"])
        return (*same, row["content_digest"]) in known_imports or (*same, None) in known_imports

    return all(map(has, rows))


def refuse_older(imports: Sequence[TableRow], rows: Iterable[TableRow], latest: datetime = _EVER) -> None:
    """Raise InputError if a later import covers the same units as these rows of ``imports``.

    Times after ``latest`` are in the future and do not count.
    """
    faults = find_later(imports, rows, latest)
    if faults:
        raise older_import(faults)


def find_later(imports: Sequence[TableRow], rows: Iterable[TableRow], latest: datetime = _EVER) -> list[str]:
    """Return a phrase for each row with a later import, as `refuse_older` uses it."""
    last: dict[tuple[Unit, str], TableRow] = {}
    for row in imports:
        for subject in _subjects(row) if row["exported_at"] <= latest else ():
            of = last.setdefault((unit_of(row), subject), row)
            if row["exported_at"] > of["exported_at"]:
                last[unit_of(row), subject] = row
    return list(_phrase_later(last, rows))


def _phrase_later(last: Mapping[tuple[Unit, str], TableRow], rows: Iterable[TableRow]) -> Iterator[str]:
    for row in rows:
        of_subjects = (last.get((unit_of(row), subject)) for subject in sorted(_subjects(row)))
        later = [of for of in of_subjects if of is not None and of["exported_at"] > row["exported_at"]]
        if later:
            newest = max(later, key=lambda of: of["exported_at"])
            yield (
                f"{row['view_or_file']} of {', database '.join(filter(None, unit_of(row)))} is of"
                f" {format_time(row['exported_at'])}, but"
                f" {newest['view_or_file']} of {format_time(newest['exported_at'])} was imported"
            )


def _subjects(row: TableRow) -> set[str]:
    """Return the tables that an import of a view or a script, a database's or the instance's own, is about."""
    if is_of_view(row):
        return {_SUBJECTS[row["view_or_file"]]}
    return {"databases", "instances"} if row["database_name"] is None else {"routes", "services"}


def is_of_view(row: TableRow) -> bool:
    """Return True if a row of ``imports`` is of a view, and not of a script, which may be called like one."""
    return row["view_or_file"] in VIEWS and row.get("kind") in (None, ImportKind.VIEW)


def find_last(imports: Iterable[TableRow], view: str, unit: Unit) -> datetime | None:
    """Return the time of the last import that covers a view of this unit."""
    times = (row["exported_at"] for row in imports if unit_of(row) == unit and _SUBJECTS[view] in _subjects(row))
    return max(times, default=None)


def find_first(
    imports: Iterable[TableRow], instances: Iterable[str], with_routes: Collection[str]
) -> tuple[set[str], set[str]]:
    """Return the instances without an earlier import of routes, and those where only ``imports`` suggests this.

    ``with_routes`` are the instances with rows in ``routes``. If no script can have made these, rows of
    ``imports`` are lost or the routes were not imported. An import is then not the first one.
    """
    imported, scripted = set(), set()
    for row in imports:
        if "routes" in _subjects(row):
            imported.add(row["instance_name"])
        if not is_of_view(row):
            scripted.add(row["instance_name"])
    unknown = set(instances) - imported
    instances_lost = (unknown & set(with_routes)) - scripted
    return unknown - instances_lost, instances_lost


def say_lost(instances_lost: Collection[str]) -> list[str]:
    """Return a note on the instances with lost rows of ``imports``, if there are any."""
    if not instances_lost:
        return []
    why = f"tables.routes has routes of {list_some(instances_lost)}, but tables.imports has no import of them"
    return [f"{why}: this import does not count as the first, so new routes are valid from its own time on"]


@dataclass(frozen=True)
class TakenBack:
    """Routes without the changes of imports with a future time. ``stored`` are the actual rows.

    ``notes`` describe the reverted changes and are empty without any.
    """

    stored: Sequence[TableRow]
    routes: Sequence[TableRow]
    notes: list[str] = field(default_factory=list)

    def with_changes(self, changes: TableChanges) -> TableChanges:
        """Combine these changes with further changes of the table."""
        if not self.notes:
            return changes
        all_changes = changes_between("routes", self.stored, apply_changes("routes", self.routes, changes))
        all_changes.counts = changes.counts + Counter(removed=len(self.stored) - len(self.routes))
        return all_changes


def take_back(routes: Sequence[TableRow], imports: Iterable[TableRow], latest: datetime) -> TakenBack:
    """Return the routes without the changes of imports at times after ``latest``.

    Versions that these imports opened are removed, and versions that they closed are open again. Other instances
    keep all routes, such as planned ones.
    """
    instances = {row["instance_name"] for row in imports if row["exported_at"] > latest}
    if not instances:
        return TakenBack(routes, routes)
    remaining: list[TableRow] = []
    counts: Counter[tuple[str, str]] = Counter()
    for row in routes:
        name, begins, ends = row["instance_name"], row["valid_from"], row["valid_to"]
        if name in instances and begins is not None and begins > latest:
            counts[name, "removed"] += 1
        elif name in instances and ends is not None and ends > latest:
            counts[name, "reopened"] += 1
            remaining.append({**row, "valid_to": None})
        else:
            remaining.append(row)
    notes = [
        f"{name}: an earlier import had a time in the future; of its versions of routes"
        f" {counts[name, 'removed']} are removed, and {counts[name, 'reopened']} that it closed are open again"
        for name in sorted({name for name, _ in counts})
    ]
    return TakenBack(routes, remaining, notes)


def imports_changes(
    imports: Sequence[TableRow], rows: Sequence[TableRow], latest: datetime = _EVER
) -> TableChanges:
    """Find the changes to ``imports``, which keeps the last import of a view and every import of scripts.

    The same import again changes no row. For an older release, this is one of the same view and time. Imports at
    times after ``latest`` get their import time, or that of this import if it is earlier. Otherwise they would
    later count as newer than this one. Imports of a queue keep their time until the next import of a queue.
    """
    of_views = {(unit_of(row), row["view_or_file"]): row for row in imports if is_of_view(row)}
    changes = TableChanges()
    for row in rows:
        old = of_views.get((unit_of(row), row["view_or_file"])) if is_of_view(row) else None
        if old is None:
            changes.put.append(row)
            continue
        has_content = old["content_digest"] in (None, row["content_digest"])
        if not has_content or old["exported_at"] != row["exported_at"]:
            changes.put.append(row)
            changes.remove.append(old)
    for row in imports:
        # What observations of a queue are known by is the time of its export.
        is_taken_back = row["exported_at"] > latest and row["view_or_file"] != _QUEUE
        if is_taken_back and row not in changes.remove:
            changes.remove.append(row)
            import_times = (new["exported_at"] for new in rows if new["instance_name"] == row["instance_name"])
            changes.put.append({**row, "exported_at": min(row["imported_at"], *import_times, latest)})
    return changes


# Find databases that an export of sys.databases no longer lists, in pure Python: their stored objects are gone.


Dropped = Mapping[str, Mapping[Unit, datetime]]
"""By table the databases that are gone, and since when."""


def find_dropped(
    covered: CoveredRows,
    databases: Sequence[TableRow],
    units_by_table: Mapping[str, Collection[Unit]],
    imports: Sequence[TableRow],
) -> Dropped:
    """Return the databases that have rows in tables but are missing in sys.databases.

    ``databases`` are the rows of that table, ``units_by_table`` the databases with rows by table. The result
    leaves out databases with a rejected row, msdb, which need not be exported, and units with a later time.
    """
    stored = {(row["instance_name"], row["name"]) for row in databases}
    exported = {(row["instance_name"], row["name"]) for row in covered.rows.get("databases", ())}
    folded = {(instance, name.casefold()) for instance, name in exported}
    times = {instance: at for (instance, _), at in covered.units.get("databases", {}).items()}

    def is_gone(instance: str, name: str | None) -> bool:
        if instance not in times or name is None or name.casefold() == MSDB:
            return False
        # A table may spell a database differently. If two names differ only in case, both are in `databases`.
        is_listed = (instance, name.casefold()) in folded and (instance, name) not in stored - exported
        return not is_listed and not covered.is_doubtful("databases", {"instance_name": instance, "name": name})

    def is_newer(table: str, unit: Unit) -> bool:
        exported_at, last = (
            covered.units.get(_VIEWS[table], {}).get(unit),
            find_last(imports, _VIEWS[table], unit),
        )
        return any(at is not None and at > times[unit[0]] for at in (exported_at, last))

    return {
        table: {unit: times[unit[0]] for unit in units if is_gone(*unit) and not is_newer(table, unit)}
        for table, units in units_by_table.items()
    }


def cover_dropped(covered: CoveredRows, dropped: Dropped) -> None:
    """Cover dropped databases as empty in the views of an export, and note the removed rows."""
    for table, dropped_units in dropped.items():
        units = covered.units.get(_VIEWS[table], {})
        instances = {instance for instance, _ in units}
        for unit, at in dropped_units.items():
            if unit[0] in instances:
                units.setdefault(unit, at)
    names = {f"{instance}.{name}" for dropped_units in dropped.values() for instance, name in dropped_units}
    if names:
        covered.notes.append(
            f"sys.databases does not list {list_some(names)}: its routes, services and dialogs in the tables are"
            " closed or removed"
        )


def close_routes(
    changes: TableChanges, stored: Iterable[TableRow], dropped_units: Mapping[Unit, datetime]
) -> None:
    """Close the routes that these changes leave open in dropped databases, at the time of the drop."""
    rows = {_version(row): row for row in stored}
    for row in changes.remove:
        rows.pop(_version(row), None)
    put = {_version(row): row for row in changes.put}
    for version, row in {**rows, **put}.items():
        at = dropped_units.get(unit_of(row))
        if at is None or not stands(row, at):
            continue
        if version in put:
            changes.put.remove(row)
        if version in rows or row["valid_from"] != at:
            end_route(changes, row, at, is_replaced=False)


def _version(row: TableRow) -> tuple[object, ...]:
    return (*(row[name] for name in ROUTE), row.get("valid_from"))
