"""An instance's forwarding and its own network addresses, from its endpoints and names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from routing.errors import InputError
from routing.importing.covered import CoveredRows
from routing.importing.tsql.refusal import RefusalError
from routing.importing.tsql.route_rules import check_options
from routing.importing.tsql.script_statements import RouteOptions
from routing.terms import TableRow

_BETWEEN_NAMES = re.compile(r"[,;\s]+")
_PORTS = range(1, 65_536)


def instances(
    covered: CoveredRows, rows: Mapping[str, Sequence[TableRow]], extra_addresses: Sequence[str]
) -> None:
    """Add a row for every instance that the export covers in any way.

    ``is_message_forwarding_enabled`` is None where no endpoints were exported, ``addresses`` None where
    nothing says what they are; what a table holds then stays. Raises InputError for ``extra_addresses`` addresses
    that belong to nobody in particular.
    """
    names = covered.instances
    if extra_addresses and len(names) != 1:
        raise InputError(
            f"--address is for one instance, and the export has {len(names)}", "import each by itself"
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
        covered.notes.append(f"{row['place']}: no port is known, so no address of {row['instance_name']}")
        return []
    if not names:
        instance = row["instance_name"]
        covered.notes.append(
            f"{row['place']}: no network name of {instance} is known; give its addresses with --address"
        )
    addresses = [f"tcp://{_host(name)}:{port}" for name in names]
    return [address for address in addresses if is_tcp(address)]


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name and not name.startswith("[") else name


def is_tcp(address: str) -> bool:
    """Return True if an address has the tcp form."""
    try:
        check_options(RouteOptions(mirror_address=address))
    except RefusalError:
        return False
    return True
