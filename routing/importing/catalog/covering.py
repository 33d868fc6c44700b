"""Make the rows of the tables of an export, and the units that it covers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from routing.errors import InputError
from routing.importing.catalog import conversation_rows, queue_rows
from routing.importing.catalog.typed_rows import MARKER, CatalogExport, keep_latest
from routing.importing.covered_rows import CoveredRows, Unit, key_of, unit_of
from routing.importing.spelling import NameSpelling
from routing.importing.tsql.script_statements import RefusalError, RouteOptions, check_options
from routing.rules.text import is_local, is_tcp, is_transport
from routing.terms import TableRow

# An instance's forwarding and its own network addresses, from its endpoints and names.


_BETWEEN_NAMES = re.compile(r"[,;\s]+")
_PORTS = range(1, 65_536)


def instances(
    covered: CoveredRows, rows: Mapping[str, Sequence[TableRow]], extra_addresses: Sequence[str]
) -> None:
    """Add a row for every instance in the export.

    ``is_message_forwarding_enabled`` is None if no endpoints were exported, and ``addresses`` is None if they are
    unknown. The table's values then stay. Raises InputError if ``extra_addresses`` could belong to several
    instances.
    """
    names = covered.instances
    if extra_addresses and len(names) != 1:
        raise InputError(
            f"--address is for one instance, and the export has {len(names)}", "import each separately"
        )
    ports = {(row["instance_name"], row["endpoint_id"]): row for row in rows.get("tcp_endpoints", ())}
    for name in names:
        endpoint_rows = [row for row in rows.get("service_broker_endpoints", ()) if row["instance_name"] == name]
        was_exported = any(unit[0] == name for unit in covered.units.get("service_broker_endpoints", {}))
        endpoint_addresses = [address for row in endpoint_rows for address in _addresses(covered, row, ports)]
        addresses = list(dict.fromkeys([*endpoint_addresses, *extra_addresses]))
        covered.add(
            "instances",
            {
                "instance_name": name,
                "is_message_forwarding_enabled": (
                    any(row["is_message_forwarding_enabled"] for row in endpoint_rows) if was_exported else None
                ),
                "addresses": addresses or None,
            },
        )


def _addresses(covered: CoveredRows, row: TableRow, ports: Mapping[tuple[str, int], TableRow]) -> list[str]:
    """Write ``tcp://NAME:PORT`` for each name of the machine and its listeners."""
    listening = ports.get((row["instance_name"], row["endpoint_id"]), {})
    port = row["port"] if listening.get("port") is None else listening["port"]
    if row["endpoint_id"] is None:
        return []
    texts = (row["machine_name"], row["full_name"], row["listener_names"], listening.get("ip_address"))
    names = list(dict.fromkeys(name for text in texts if text for name in _BETWEEN_NAMES.split(text) if name))
    if port not in _PORTS:
        covered.notes.append(
            f"{row['place']}: the port is unknown, so there is no address of {row['instance_name']}"
        )
        return []
    if not names:
        instance = row["instance_name"]
        covered.notes.append(
            f"{row['place']}: no network name of {instance} is known; give its addresses with --address"
        )
    hosts = (f"[{name}]" if ":" in name and not name.startswith("[") else name for name in names)
    return [address for host in hosts if is_tcp(address := f"tcp://{host}:{port}")]


def cover(export: CatalogExport, spelling: NameSpelling, addresses: Sequence[str] = ()) -> CoveredRows:
    """Build the rows of the tables that an export covers (docs/how-to/import.md).

    Names are spelled as in the tables (``spelling``), or else as in the export's own sys.databases. ``addresses``
    are the values of ``--address``. Raises InputError if these could belong to several instances.
    """
    keep_latest(export)
    covered = CoveredRows(
        rejected=export.rejected, rejected_of=export.rejected_of, notes=export.notes, doubts=export.doubts
    )
    _spell(export, spelling)
    for view, rows in export.rows.items():
        units = covered.units.setdefault(view, {})
        units.update((unit_of(row), row["exported_at"]) for row in rows)
        export.rows[view] = [row for row in rows if MARKER not in row]
    _databases(covered, export.rows.get("databases", []))
    _services(covered, export.rows.get("services", []))
    _routes(covered, export.rows.get("routes", []))
    instances(covered, export.rows, addresses)
    conversation_rows.dialogs(covered, export.rows.get("conversation_endpoints", []))
    conversation_rows.messages(covered, export.rows)
    _add_distinct(covered, "queues", "service_queues", queue_rows.list_queues(export.rows, covered.units))
    _add_distinct(covered, "endpoint_counts", "endpoint_counts", queue_rows.list_counts(export.rows))
    return covered


def _add_distinct(covered: CoveredRows, table: str, view: str, rows: Iterable[TableRow]) -> None:
    """Add the rows of a table that is not about routing, each key once."""
    seen_keys = set()
    for row in rows:
        key = key_of(table, row)
        if key in seen_keys:
            covered.reject(view, {**row, "place": f"sys.{view}"}, "the row appears twice")
            continue
        seen_keys.add(key)
        covered.add(table, row)


def _spell(export: CatalogExport, spelling: NameSpelling) -> None:
    """Write the names of all rows in one spelling."""
    for row in export.rows.get("databases", []):
        row["instance_name"] = spelling.instance(row["instance_name"])
    names = [row for row in export.rows.get("databases", []) if MARKER not in row]
    spellings = Counter(
        (instance, name.casefold()) for instance, name in {(row["instance_name"], row["name"]) for row in names}
    )
    for row in names:
        # Two databases that differ only in case are both listed.
        is_new = spellings[row["instance_name"], row["name"].casefold()] > 1
        row["name"] = spelling.database(row["instance_name"], row["name"], is_new=is_new)
    for view, rows in export.rows.items():
        spelled_units: dict[Unit, Unit] = {}
        for row in rows if view != "databases" else ():
            unit = unit_of(row)
            spelled = spelled_units.get(unit)
            if spelled is None:
                spelled = spelled_units[unit] = _spell_unit(unit, spelling)
            if spelled != unit:
                row["instance_name"] = spelled[0]
                if spelled[1] is not None:
                    row["database_name"] = spelled[1]


def _spell_unit(unit: Unit, spelling: NameSpelling) -> Unit:
    instance, database = spelling.instance(unit[0]), unit[1]
    return instance, None if database is None else spelling.database(instance, database)


def _databases(covered: CoveredRows, rows: Sequence[TableRow]) -> None:
    seen_keys = set()
    for row in rows:
        key = (row["instance_name"], row["name"])
        if key in seen_keys:
            covered.reject("databases", row, "the database appears twice")
        else:
            seen_keys.add(key)
            columns = ("instance_name", "name", "database_id", "service_broker_guid", "is_broker_enabled")
            covered.add("databases", {name: row[name] for name in columns})


def _services(covered: CoveredRows, rows: Sequence[TableRow]) -> None:
    seen_keys = set()
    for row in rows:
        key = (*unit_of(row), row["name"])
        if key in seen_keys:
            covered.reject("services", row, "the service appears twice")
            continue
        seen_keys.add(key)
        covered.add("services", {name: row[name] for name in ("instance_name", "database_name", "name")})


def _routes(covered: CoveredRows, rows: Sequence[TableRow]) -> None:
    columns = (
        *("instance_name", "database_name", "name", "remote_service_name", "broker_instance"),
        *("lifetime", "address", "mirror_address"),
    )
    seen_keys = set()
    for row in rows:
        key = (*unit_of(row), row["name"])
        fault = "the route appears twice" if key in seen_keys else address_fault(row)
        if fault is not None:
            covered.reject("routes", row, fault)
            continue
        seen_keys.add(key)
        covered.add("routes", {name: row[name] for name in columns})


def address_fault(row: TableRow) -> str | None:
    """Return the reason why ``resolve`` would refuse the route's addresses; None where it would not."""
    address, mirror = row["address"], row["mirror_address"]
    try:
        check_options(RouteOptions(address=address, mirror_address=mirror))
    except RefusalError as refusal:
        return refusal.why
    if mirror is not None and (is_local(address) or is_transport(address)):
        return f"it has a mirror address in addition to the address {address}"
    return None
