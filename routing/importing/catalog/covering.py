"""Make the rows of the tables of an export, and the units that it covers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from routing.errors import InputError
from routing.importing.catalog import conversation_rows
from routing.importing.catalog.replicas import leave_copies_out
from routing.importing.catalog.typed_rows import MARKER, CatalogExport, find_places, keep_latest
from routing.importing.covered_rows import ON, CoveredRows, Unit, unit_of
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
        why = f"--address is for one instance, and the export has {len(names)}"
        raise InputError(why, "import each separately")
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
    place, instance = row["place"], row["instance_name"]
    listening = ports.get((instance, row["endpoint_id"]), {})
    port = row["port"] if listening.get("port") is None else listening["port"]
    if row["endpoint_id"] is None:
        return []
    texts = (row["machine_name"], row["full_name"], row["listener_names"], listening.get("ip_address"))
    names = list(dict.fromkeys(name for text in texts if text for name in _BETWEEN_NAMES.split(text) if name))
    if port not in _PORTS:
        covered.notes.append(f"{place}: the port is unknown, so there is no address of {instance}")
        return []
    if not names:
        hint = "give its addresses with --address"
        covered.notes.append(f"{place}: no network name of {instance} is known; {hint}")
    hosts = (f"[{name}]" if ":" in name and not name.startswith("[") else name for name in names)
    return [address for host in hosts if is_tcp(address := f"tcp://{host}:{port}")]


_COLUMNS = {
    "databases": ("instance_name", "name", "database_id", "service_broker_guid", "is_broker_enabled"),
    "services": ("instance_name", "database_name", "name"),
    "routes": (
        *("instance_name", "database_name", "name", "remote_service_name", "broker_instance"),
        *("lifetime", "address", "mirror_address"),
    ),
}


def cover(
    export: CatalogExport, spelling: NameSpelling, addresses: Sequence[str] = (), leaves_out: Collection[str] = ()
) -> CoveredRows:
    """Build the rows of the tables that an export covers (docs/how-to/import.md).

    Names are spelled as in the tables (``spelling``), or else as in the export's own sys.databases. ``addresses``
    are the values of ``--address``. No table needs the views in ``leaves_out``. Raises InputError if the addresses
    could belong to several instances.
    """
    keep_latest(export)
    covered = CoveredRows(
        rejected=export.rejected, rejected_of=export.rejected_of, notes=export.notes, doubts=export.doubts
    )
    _spell(export, spelling)
    copies = leave_copies_out(export)
    for view in leaves_out:
        del export.rows[view]
    for view, rows in export.rows.items():
        units = covered.units.setdefault(view, {})
        units.update({(instance, database): at for instance, database, at in find_places(rows)})
        export.rows[view] = [row for row in rows if MARKER not in row]
    _add_distinct(
        covered, "databases", "databases", export.rows.get("databases", ()), "the database appears twice"
    )
    _add_distinct(covered, "services", "services", export.rows.get("services", ()), "the service appears twice")
    routes = export.rows.get("routes", ())
    _add_distinct(covered, "routes", "routes", routes, "the route appears twice", find_address_fault)
    instances(covered, export.rows, addresses)
    conversation_rows.dialogs(covered, export.rows.get("conversation_endpoints", []))
    conversation_rows.messages(covered, export.rows)
    twice = "the row appears twice"
    _add_distinct(covered, "queues", "service_queues", list_queues(export.rows, covered.units), twice)
    counted = {*copies, *covered.units.get("endpoint_counts", {})}
    _add_distinct(covered, "endpoint_counts", "endpoint_counts", list_counts(export.rows, counted), twice)
    return covered


def _add_distinct(
    covered: CoveredRows,
    table: str,
    view: str,
    rows: Iterable[TableRow],
    twice: str,
    find_fault: Callable[[TableRow], str | None] = lambda row: None,
) -> None:
    """Add a view's rows to a table, each key once."""
    seen_keys = set()
    for row in rows:
        key = tuple(map(row.get, ON[table]))
        fault = twice if key in seen_keys else find_fault(row)
        if fault is not None:
            covered.reject(view, {"place": f"sys.{view}", **row}, fault)
            continue
        seen_keys.add(key)
        covered.add(table, {name: row[name] for name in _COLUMNS.get(table, row)})


def _spell(export: CatalogExport, spelling: NameSpelling) -> None:
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
                instance, database = spelling.instance(unit[0]), unit[1]
                database = None if database is None else spelling.database(instance, database)
                spelled = spelled_units[unit] = instance, database
            if spelled != unit:
                row["instance_name"] = spelled[0]
                if spelled[1] is not None:
                    row["database_name"] = spelled[1]


def find_address_fault(row: TableRow) -> str | None:
    """Return why SQL Server refuses the addresses of a route, or None if they are valid."""
    address, mirror = row["address"], row["mirror_address"]
    try:
        check_options(RouteOptions(address=address, mirror_address=mirror))
    except RefusalError as refusal:
        return refusal.why
    if mirror is not None and (is_local(address) or is_transport(address)):
        return f"it has a mirror address in addition to the address {address}"
    return None


# Queues and counted conversation endpoints.


SEEN_VIEWS = {"queues": ("service_queues",), "endpoint_counts": ("endpoint_counts", "conversation_endpoints")}
"""The tables beside the routing that an import writes, each with the views of its rows."""
MONITORS = "dm_broker_queue_monitors"
_OWN = (
    *("instance_name", "database_name", "schema_name", "name", "is_receive_enabled", "is_enqueue_enabled"),
    *("is_activation_enabled", "is_retention_enabled", "activation_procedure", "execute_as_name", "max_readers"),
    *("messages", "exported_at"),
)
_COUNTED = (
    *("instance_name", "database_name", "state", "service_name", "far_service", "is_initiator", "endpoints"),
    "exported_at",
)
CLOSED, CONVERSING, IN_ERROR = "CD", "CO", "ER"
"""States of conversation endpoints, as sys.conversation_endpoints writes them."""
_STATES = {
    "STARTED_OUTBOUND": "SO",
    "STARTED_INBOUND": "SI",
    "CONVERSING": CONVERSING,
    "DISCONNECTED_INBOUND": "DI",
    "DISCONNECTED_OUTBOUND": "DO",
    "CLOSED": CLOSED,
    "ERROR": IN_ERROR,
}


def list_queues(
    rows: Mapping[str, Sequence[TableRow]], units: Mapping[str, Collection[Unit]]
) -> Iterator[TableRow]:
    """Yield the queues of an export with their services and readers. ``units`` are those of each view.

    ``service_names`` is None if the export does not have the queues of the services. ``tasks_waiting`` is None if
    the queue monitors of the instance were not exported.
    """
    services: dict[tuple[str, str | None, int], list[str]] = defaultdict(list)
    exported_units = set(units.get("services", ()))
    for row in rows.get("services", ()):
        if row["service_queue_id"] is None:
            exported_units.discard(unit_of(row))
        else:
            services[(*unit_of(row), row["service_queue_id"])].append(row["name"])
    ids = {(row["instance_name"], row["database_id"]): row["name"] for row in rows.get("databases", ())}
    waiting: Counter[tuple[str, str | None, int]] = Counter()
    states: dict[tuple[str, str | None, int], str | None] = {}
    for row in rows.get(MONITORS, ()):
        if row["queue_id"] is not None:
            database = ids.get((row["instance_name"], row["database_id"]))
            key = (row["instance_name"], database, row["queue_id"])
            waiting[key] += row["tasks_waiting"] or 0
            states[key] = row["state"]
    for row in rows.get("service_queues", ()):
        if row["name"] is None:
            continue
        key = (*unit_of(row), row["object_id"])
        is_watched = (row["instance_name"], None) in units.get(MONITORS, ())
        yield {
            **{name: row[name] for name in _OWN},
            "service_names": services.get(key, [] if unit_of(row) in exported_units else None),
            "tasks_waiting": waiting[key] if is_watched else None,
            "monitor_state": states.get(key),
        }


def list_counts(rows: Mapping[str, Sequence[TableRow]], counted: Collection[Unit]) -> Iterator[TableRow]:
    """Yield the numbers of conversation endpoints by state and services.

    They are those of the queries, or else count the endpoints of databases that are not in ``counted``.
    """
    for row in rows.get("endpoint_counts", ()):
        if row["state"] and row["endpoints"]:
            yield {name: row[name] for name in _COUNTED}
    services = (row for row in rows.get("services", ()) if row["service_id"] is not None)
    names = {(*unit_of(row), row["service_id"]): row["name"] for row in services}
    counts: Counter[tuple[object, ...]] = Counter()
    for row in rows.get("conversation_endpoints", ()):
        unit = unit_of(row)
        if row["state"] is None or unit in counted:
            continue
        state = row["state"].strip().upper()
        service = row["service_name"] or names.get((*unit, row["service_id"]))
        ends = service, row["far_service"], row["is_initiator"]
        counts[(*unit, _STATES.get(state, state), *ends, row["exported_at"])] += 1
    for (*values, exported_at), number in counts.items():
        yield dict(zip(_COUNTED, (*values, number, exported_at), strict=True))
