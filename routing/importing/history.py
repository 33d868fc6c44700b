"""Compare the stored rows with those of an import in pure Python, and find the changes.

Rows are dictionaries by column name. A route's versions are its rows by ``valid_from``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from routing.importing.covered_rows import ON, Unit, key_of, unit_of
from routing.rules.text import fold
from routing.terms import TableRow

CONTENT = ("remote_service_name", "broker_instance", "lifetime", "address", "mirror_address")
ROUTE = ("instance_name", "database_name", "name")
SINCE_EVER = datetime.min.replace(tzinfo=timezone.utc)


@dataclass
class TableChanges:
    """Rows to insert or replace by key, rows to remove, and their numbers.

    ``counts`` has the keys added, changed, closed, removed and unchanged.
    """

    put: list[TableRow] = field(default_factory=list)
    remove: list[TableRow] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.put or self.remove)


def apply_changes(key: str, rows: Iterable[TableRow], changes: TableChanges) -> list[TableRow]:
    """Return the rows of a table with changes made to them."""
    changed_keys = {key_of(key, row) for row in (*changes.put, *changes.remove)}
    return [*(row for row in rows if key_of(key, row) not in changed_keys), *changes.put]


def changes_between(key: str, before: Iterable[TableRow], after: Iterable[TableRow]) -> TableChanges:
    """Find the changes from some rows of a table to others, without counts."""
    before_by_key, after_by_key = ({key_of(key, row): row for row in rows} for rows in (before, after))
    return TableChanges(
        put=[row for of, row in after_by_key.items() if before_by_key.get(of) != row],
        remove=[row for of, row in before_by_key.items() if of not in after_by_key],
    )


def count_versions(
    before: Iterable[TableRow], after: Iterable[TableRow], touched: Collection[str], at: datetime
) -> Counter[str]:
    """Count versions of an instance's routes added, changed or closed between two histories.

    A version that begins at the end of another one is a change. In touched databases, equal routes that are valid
    ``at`` a time count as unchanged.
    """
    counts: Counter[str] = Counter()
    old, new = ({key_of("routes", row): row for row in rows} for rows in (before, after))
    begun = {(_route(row), row["valid_from"]) for row in new.values()}
    ended = {(_route(row), row["valid_to"]) for row in new.values() if row["valid_to"] is not None}
    for of, row in new.items():
        was = old.get(of)
        if was is None:
            counts["changed" if (_route(row), row["valid_from"]) in ended else "added"] += 1
        elif not _is_same(was, row):
            counts["changed"] += 1
        elif was["valid_to"] != row["valid_to"]:
            counts["closed"] += (_route(row), row["valid_to"]) not in begun
        else:
            counts["unchanged"] += row["database_name"] in touched and stands(row, at)
    counts["closed"] += sum(of not in new for of in old)
    return +counts


def route_changes(
    stored: Iterable[TableRow],
    snapshot_rows: Iterable[TableRow],
    covered: Mapping[Unit, datetime],
    first: Collection[str] = (),
    is_doubtful: Callable[[TableRow], bool] = lambda row: False,
) -> TableChanges:
    """Return the history of routes after a snapshot of the covered databases, each at its own time.

    Missing or changed routes are closed (``valid_to``) and new ones opened (``valid_from``) at that time. New
    routes of the instances in ``first`` have no begin, because no import came before. A version that began at the
    same time is replaced, because it is an earlier import of the same moment. A doubtful row is not closed.
    """
    versions: dict[tuple[str, str, str], list[TableRow]] = {}
    for row in stored:
        versions.setdefault(_route(row), []).append(row)
    targets = {_route(row): row for row in snapshot_rows}
    changes = TableChanges()
    for key in dict.fromkeys([*targets, *versions]):
        at = covered.get((key[0], key[1]))
        if at is None:
            continue
        current_versions = [row for row in versions.get(key, ()) if stands(row, at)]
        target = targets.get(key)
        if target is None and any(is_doubtful(row) for row in current_versions):
            changes.counts["unchanged"] += 1
            continue
        if target is not None and any(_is_same(row, target) for row in current_versions):
            changes.counts["unchanged"] += 1
            continue
        for row in current_versions:
            end_route(changes, row, at, is_replaced=target is not None)
        if target is not None:
            _begin(changes, target, at, versions.get(key, ()), key[0] in first, bool(current_versions))
    return changes


def _route(row: TableRow) -> tuple[str, str, str]:
    return row["instance_name"], row["database_name"], row["name"]


def stands(row: TableRow, at: datetime) -> bool:
    """Return True if a version of a route is valid at a time."""
    begins, ends = row.get("valid_from"), row.get("valid_to")
    return (begins is None or begins <= at) and (ends is None or ends > at)


def _is_same(row: TableRow, target: TableRow) -> bool:
    return all((row.get(name) or None) == (target.get(name) or None) for name in CONTENT)


def end_route(changes: TableChanges, row: TableRow, at: datetime, *, is_replaced: bool) -> None:
    """Close a version of a route at a time. A version that began at that time is removed or replaced."""
    if row.get("valid_from") != at:
        changes.put.append({**row, "valid_to": at})
    elif not is_replaced:
        changes.remove.append(row)
    if not is_replaced:
        changes.counts["closed"] += 1


def _begin(
    changes: TableChanges,
    target: TableRow,
    at: datetime,
    versions: Sequence[TableRow],
    is_first: bool,
    replaces: bool,
) -> None:
    later = [row["valid_from"] for row in versions if (row.get("valid_from") or SINCE_EVER) > at]
    changes.put.append(
        {
            **{name: target.get(name) for name in (*ROUTE, *CONTENT)},
            "valid_from": None if is_first and not versions else at,
            "valid_to": min(later, default=None),
        }
    )
    changes.counts["changed" if replaces else "added"] += 1


def present_changes(
    stored: Iterable[TableRow],
    imported_rows: Iterable[TableRow],
    key: Sequence[str],
    is_covered: Callable[[TableRow], bool] = lambda row: True,
) -> TableChanges:
    """Find the changes that leave the covered part of a table exactly the wanted rows."""
    stored_by_key = {tuple(row.get(name) for name in key): row for row in stored}
    wanted = ((tuple(row[name] for name in key), row) for row in imported_rows)
    return _compare(stored_by_key, wanted, key, is_covered)


def _compare(
    stored_by_key: Mapping[tuple[Any, ...], TableRow],
    wanted: Iterable[tuple[tuple[Any, ...], TableRow]],
    key: Sequence[str],
    is_covered: Callable[[TableRow], bool],
) -> TableChanges:
    changes = TableChanges()
    wanted_keys = set()
    for values, row in wanted:
        wanted_keys.add(values)
        old = stored_by_key.get(values)
        if old is not None and all(old.get(name) == value for name, value in row.items() if name not in key):
            changes.counts["unchanged"] += 1
            continue
        changes.put.append(row)
        changes.counts["added" if old is None else "changed"] += 1
    for values, row in stored_by_key.items():
        if values not in wanted_keys and is_covered(row):
            changes.remove.append(row)
            changes.counts["removed"] += 1
    return changes


def instance_rows(stored: Iterable[TableRow], imported: Iterable[TableRow]) -> list[TableRow]:
    """Return the wanted instances, with the stored value of each column that the import does not know."""
    rows_by_name = {row["instance_name"]: row for row in stored}
    return [
        {
            name: rows_by_name.get(row["instance_name"], {}).get(name) if value is None else value
            for name, value in row.items()
        }
        for row in imported
    ]


# Dialogs as an export has them × as they are stored → the rows that change; pure Python.


def dialog_changes(
    exported: Iterable[TableRow], stored: Iterable[TableRow], covered: Collection[Unit]
) -> TableChanges:
    """Find the changes after which covered databases have exactly the exported dialogs. Ids are folded.

    A stored time of acknowledgement stays, with the exported broker instance as its id. Without a stored time,
    that id is valid from the export.
    """
    stored_by_key = {key_of("dialogs", row): row for row in stored}
    keyed = ((key_of("dialogs", row), row) for row in exported)
    wanted = ((of, _keep_acknowledgement(row, stored_by_key.get(of))) for of, row in keyed)
    return _compare(stored_by_key, wanted, ON["dialogs"], lambda row: unit_of(row) in covered)


def _keep_acknowledgement(row: TableRow, old: TableRow | None) -> TableRow:
    if old is None or old["acknowledged_at"] is None:
        return row
    far, by = row["far_broker_instance"], old["acknowledged_broker_instance"]
    # After an acknowledgement the export no longer has the broker instance of BEGIN DIALOG.
    is_its_id = by is None or (far is not None and fold(far) == fold(by))
    return {
        **row,
        "far_broker_instance": old["far_broker_instance"] if is_its_id else far,
        "acknowledged_at": old["acknowledged_at"],
        "acknowledged_broker_instance": far if by is None else by,
    }
