"""Databases that an export of sys.databases does not list: what the tables hold of them is gone; pure Python."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from routing.importing import order
from routing.importing.covered import CoveredRows, Unit, unit_of
from routing.importing.history import ROUTE, TableChanges, end_route, stands
from routing.terms import MSDB, TableRow

_VIEWS = {"routes": "routes", "services": "services", "dialogs": "conversation_endpoints"}
"""The tables that hold what belongs to a database, and the view that each is filled from."""
Dropped = Mapping[str, Mapping[Unit, datetime]]
"""By table the databases that are gone, and since when."""


def find_dropped(
    covered: CoveredRows,
    databases: Sequence[TableRow],
    units_by_table: Mapping[str, Collection[Unit]],
    imports: Sequence[TableRow],
) -> Dropped:
    """Return the databases that sys.databases does not list any more, though tables hold something of them.

    ``databases`` are the rows of that table, ``units_by_table`` by table the databases that it has rows of. A
    database whose line was rejected is left alone, and so is msdb, which no export has to list, and what is of a
    later time.
    """
    stored = {(row["instance_name"], row["name"]) for row in databases}
    listed = {(row["instance_name"], row["name"]) for row in covered.rows.get("databases", ())}
    folded = {(instance, name.casefold()) for instance, name in listed}
    times = {instance: at for (instance, _), at in covered.units.get("databases", {}).items()}

    def is_gone(instance: str, name: str | None) -> bool:
        if instance not in times or name is None or name.casefold() == MSDB:
            return False
        # A table may spell a database otherwise; two whose names differ in case alone are both in `databases`.
        is_listed = (instance, name.casefold()) in folded and (instance, name) not in stored - listed
        return not is_listed and not covered.is_doubtful("databases", {"instance_name": instance, "name": name})

    def is_newer(table: str, unit: Unit) -> bool:
        exported_at, last = (
            covered.units.get(_VIEWS[table], {}).get(unit),
            order.find_last(imports, _VIEWS[table], unit),
        )
        return any(at is not None and at > times[unit[0]] for at in (exported_at, last))

    return {
        table: {unit: times[unit[0]] for unit in units if is_gone(*unit) and not is_newer(table, unit)}
        for table, units in units_by_table.items()
    }


def cover_dropped(covered: CoveredRows, dropped: Dropped) -> None:
    """Cover dropped databases as empty in the views of an export, and note what goes with them."""
    for table, gone in dropped.items():
        units = covered.units.get(_VIEWS[table], {})
        instances = {instance for instance, _ in units}
        for unit, at in gone.items():
            if unit[0] in instances:
                units.setdefault(unit, at)
    names = sorted({f"{instance}.{name}" for gone in dropped.values() for instance, name in gone})
    if names:
        shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        covered.notes.append(
            f"sys.databases does not list {shown}: the routes, services and dialogs that the tables hold of it are"
            " closed or removed"
        )


def close_routes(changes: TableChanges, stored: Iterable[TableRow], gone: Mapping[Unit, datetime]) -> None:
    """Close the routes that remain, after these changes, in dropped databases, as of the drop."""
    rows = {_version(row): row for row in stored}
    for row in changes.remove:
        rows.pop(_version(row), None)
    put = {_version(row): row for row in changes.put}
    for version, row in {**rows, **put}.items():
        at = gone.get(unit_of(row))
        if at is None or not stands(row, at):
            continue
        if version in put:
            changes.put.remove(row)
        if version in rows or row["valid_from"] != at:
            end_route(changes, row, at, is_replaced=False)


def _version(row: TableRow) -> tuple[object, ...]:
    return (*(row[name] for name in ROUTE), row.get("valid_from"))
