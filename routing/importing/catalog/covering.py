"""An export → the rows of the tables, and the units that it covers."""

from __future__ import annotations

from collections.abc import Sequence

from routing.importing.catalog import conversation_rows, endpoints
from routing.importing.catalog.typed_rows import MARKER, CatalogExport, keep_latest
from routing.importing.covered import CoveredRows, unit_of
from routing.importing.spelling import NameSpelling
from routing.importing.tsql.refusal import RefusalError
from routing.importing.tsql.route_rules import check_options
from routing.importing.tsql.script_statements import RouteOptions
from routing.terms import TableRow

_KEYWORDS = ("local", "transport")


def cover(export: CatalogExport, spelling: NameSpelling, addresses: Sequence[str] = ()) -> CoveredRows:
    """Build the rows of the tables that an export covers (docs/explanation/how-import-keeps-tables.md).

    ``spelling`` knows the names of the tables; those of the export's own sys.databases come next.
    ``addresses`` are those of ``--address``. Raises InputError where it is not clear whose they are.
    """
    keep_latest(export)
    covered = CoveredRows(
        rejected=export.rejected, rejected_of=export.rejected_of, notes=export.notes, doubts=export.doubts
    )
    _spell(export, spelling)
    for view, rows in export.rows.items():
        units = covered.units.setdefault(view, {})
        for row in rows:
            units[unit_of(row)] = row["exported_at"]
        export.rows[view] = [row for row in rows if MARKER not in row]
    _databases(covered, export.rows.get("databases", []))
    _services(covered, export.rows.get("services", []))
    _routes(covered, export.rows.get("routes", []))
    endpoints.instances(covered, export.rows, addresses)
    conversation_rows.dialogs(covered, export.rows.get("conversation_endpoints", []))
    conversation_rows.messages(covered, export.rows)
    return covered


def _spell(export: CatalogExport, spelling: NameSpelling) -> None:
    """Write the names of all rows in one spelling."""
    for row in export.rows.get("databases", []):
        row["instance_name"] = spelling.instance(row["instance_name"])
    names = [row for row in export.rows.get("databases", []) if MARKER not in row]
    listed = {(row["instance_name"], row["name"]) for row in names}
    for row in names:
        # Two databases that differ in case alone are both listed.
        others = {name for instance, name in listed if instance == row["instance_name"] and name != row["name"]}
        is_new = any(name.casefold() == row["name"].casefold() for name in others)
        row["name"] = spelling.database(row["instance_name"], row["name"], is_new=is_new)
    for view, rows in export.rows.items():
        for row in rows if view != "databases" else ():
            row["instance_name"] = spelling.instance(row["instance_name"])
            if row.get("database_name") is not None:
                row["database_name"] = spelling.database(row["instance_name"], row["database_name"])


def _databases(covered: CoveredRows, rows: Sequence[TableRow]) -> None:
    seen = set()
    for row in rows:
        key = (row["instance_name"], row["name"])
        if key in seen:
            covered.reject("databases", row, "the database appears twice")
        else:
            seen.add(key)
            columns = ("instance_name", "name", "database_id", "service_broker_guid", "is_broker_enabled")
            covered.add("databases", {name: row[name] for name in columns})


def _services(covered: CoveredRows, rows: Sequence[TableRow]) -> None:
    seen = set()
    for row in rows:
        key = (*unit_of(row), row["name"])
        if key in seen:
            covered.reject("services", row, "the service appears twice")
            continue
        seen.add(key)
        covered.add("services", {name: row[name] for name in ("instance_name", "database_name", "name")})


def _routes(covered: CoveredRows, rows: Sequence[TableRow]) -> None:
    columns = (
        *("instance_name", "database_name", "name", "remote_service_name", "broker_instance"),
        *("lifetime", "address", "mirror_address"),
    )
    seen = set()
    for row in rows:
        key = (*unit_of(row), row["name"])
        fault = "the route appears twice" if key in seen else address_fault(row)
        if fault is not None:
            covered.reject("routes", row, fault)
            continue
        seen.add(key)
        covered.add("routes", {name: row[name] for name in columns})


def address_fault(row: TableRow) -> str | None:
    """Return the reason why ``resolve`` would refuse the route's addresses; None where it would not."""
    address, mirror = row["address"], row["mirror_address"]
    try:
        check_options(RouteOptions(address=address, mirror_address=mirror))
    except RefusalError as refusal:
        return refusal.why
    if mirror is not None and address.strip().lower().rstrip("/") in _KEYWORDS:
        return f"a mirror address is given beside the address {address}"
    return None
