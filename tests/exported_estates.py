r"""Random instances as exports of views: complete, incomplete, and with a script instead of the routes.

The names belong to a machine with several instances. ``HUB7\FULL`` has the complete exports of estate 7,
``HUB7\LESS1`` the same without some views of some databases, and ``HUB7\SCRIPT`` a script that creates its routes.
All randomness comes from the given generator.
"""

from __future__ import annotations

import csv
import json
import os
import random
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Place = tuple[str, str | None]
"""A view and a database, None for what belongs to the instance."""
Parts = dict[Place, list[Row]]

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
FULL, SCRIPT = "FULL", "SCRIPT"
ZERO = "00000000-0000-0000-0000-000000000000"
IDS = tuple(f"{letter * 8}-1111-4111-8111-111111111111" for letter in "abcd")
CONFIGURATION_SERVICE = "SQL/ServiceBroker/BrokerConfiguration"
STATUSES = (
    None,
    "",
    "The target service name could not be found. Ensure that the service name is specified correctly.",
    "An error that nobody knows.",
)
# No view of SQL Server's own has the addresses of an endpoint: columns that the project's queries add tell them.
ADDRESSES: Place = ("addresses", None)
# How often a view of a database is left out; the queue never is.
LEFT_OUT = {
    "routes": 0.2,
    "services": 0.25,
    "conversation_endpoints": 0.12,
    "databases": 0.06,
    "service_broker_endpoints": 0.15,
    "addresses": 0.15,
}
COLUMNS = {
    "routes": ("name", "remote_service_name", "broker_instance", "lifetime", "address", "mirror_address"),
    "services": ("name",),
    "databases": ("name", "database_id", "service_broker_guid", "is_broker_enabled"),
    "service_broker_endpoints": (
        *("endpoint_id", "is_message_forwarding_enabled", "machine_name", "full_name", "listener_names", "port"),
    ),
    "conversation_endpoints": (
        *("conversation_handle", "conversation_id", "is_initiator", "conversation_group_id", "lifetime"),
        *("far_service", "far_broker_instance"),
    ),
    "transmission_queue": (
        *("conversation_handle", "to_service_name", "to_broker_instance", "from_service_name", "enqueue_time"),
        *("message_sequence_number", "transmission_status"),
    ),
}


@dataclass(frozen=True)
class Exported:
    """One written instance: its omitted parts, and the time of its newest export."""

    name: str
    estate: int
    variant: str
    left_out: frozenset[Place]
    at: datetime


def random_parts(rng: random.Random, estate: int, at: datetime) -> Parts:
    """Return every view of one instance by database, with aware times in UTC."""
    machine = f"HUB{estate}"
    services = [
        "S1",
        "S2",
        "s2",
        "S3",
        "tcp://far.example:4022/x",
        f"tcp://{machine}:4022/y",
        CONFIGURATION_SERVICE,
    ]
    databases = rng.sample(["Alpha", "Beta", "Gamma", "Delta"], rng.randint(2, 3))
    parts: Parts = {("databases", None): _databases(rng, databases), ("service_broker_endpoints", None): []}
    if rng.random() < 0.9:
        parts["service_broker_endpoints", None] = [
            {
                "endpoint_id": 65536,
                "is_message_forwarding_enabled": rng.choice((0, 1, 1)),
                "machine_name": machine,
                "full_name": f"{machine.lower()}.example",
                "port": 4022,
            }
        ]
    for database in [*databases, "msdb"]:
        parts["routes", database] = _routes(rng, machine, services, at, is_msdb=database == "msdb")
    for database in databases:
        held_services = [name for name in services if name != CONFIGURATION_SERVICE and rng.random() < 0.3]
        parts["services", database] = [{"name": name} for name in held_services]
    # Some databases send though sys.databases does not list them.
    senders = [*databases, *(["Ghost"] if rng.random() < 0.2 else [])]
    for number, database in enumerate(senders):
        ends = _conversations(rng, number, at)
        parts["conversation_endpoints", database] = ends
        parts["transmission_queue", database] = _queue(rng, ends, services, at)
    return parts


def _databases(rng: random.Random, names: list[str]) -> list[Row]:
    listed = [*names, *(["msdb"] if rng.random() < 0.85 else [])]
    ids = rng.sample(IDS, 3)
    return [
        {
            "name": name,
            "database_id": number,
            "service_broker_guid": rng.choice((*ids, *ids, ZERO)),
            "is_broker_enabled": int(rng.random() < 0.85),
        }
        for number, name in enumerate(listed, start=4)
    ]


def _routes(rng: random.Random, machine: str, services: list[str], at: datetime, *, is_msdb: bool) -> list[Row]:
    addresses = ["LOCAL", "local/", "TRANSPORT", "tcp://far:4022", "TCP://far.example:5022/"]
    own = [
        f"tcp://{machine}:4022",
        f"TCP://{machine}:4022/",
        "tcp://localhost:4022",
        f"tcp://{machine}.example:4022",
    ]
    routes = []
    for name in rng.sample(["AutoCreatedLocal", "A", "B", "C]'", "D", "E"], rng.choice((0, 1, 2, 3, 4, 6))):
        address = rng.choice(addresses if rng.random() < 0.65 else own)
        # SQL Server wants a service of a route with a broker instance, both of one with a mirror, and none of
        # TRANSPORT.
        mirrored = address.lower().startswith("tcp") and rng.random() < 0.15
        service = rng.choice(services) if mirrored or (address != "TRANSPORT" and rng.random() < 0.65) else None
        has_broker = mirrored or (service is not None and rng.random() < 0.4)
        routes.append(
            {
                "name": name,
                "remote_service_name": service,
                "broker_instance": rng.choice((*IDS, IDS[0].upper())) if has_broker else None,
                "lifetime": at + rng.choice((-HOUR, HOUR)) if rng.random() < 0.15 else None,
                "address": address,
                "mirror_address": "tcp://mirror:4022" if mirrored else None,
            }
        )
    if rng.random() < (0.5 if is_msdb else 0.25):
        routes.append({"name": "Ask", "remote_service_name": CONFIGURATION_SERVICE, "address": "LOCAL"})
    return routes


def _guid(rng: random.Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _conversations(rng: random.Random, number: int, at: datetime) -> list[Row]:
    return [
        {
            "conversation_handle": _guid(rng),
            "conversation_id": _guid(rng),
            "is_initiator": int(rng.random() < 0.6),
            "lifetime": at + rng.choice((-HOUR, HOUR, 1000 * HOUR)) if rng.random() < 0.3 else None,
            "far_service": "S1",
            "far_broker_instance": rng.choice((*IDS, ZERO)) if rng.random() < 0.45 else None,
        }
        for _ in range(rng.randint(5, 9))
    ]


def _queue(rng: random.Random, ends: list[Row], services: list[str], at: datetime) -> list[Row]:
    rows = [
        {
            "conversation_handle": rng.choice(ends)["conversation_handle"],
            "to_service_name": rng.choice((*services, "Nowhere")),
            "to_broker_instance": rng.choice(IDS) if rng.random() < 0.2 else None,
            "from_service_name": "S3",
            "enqueue_time": at - timedelta(seconds=rng.randint(1, 10_000)),
            "message_sequence_number": number,
            "transmission_status": rng.choice(STATUSES),
        }
        for number in range(rng.randint(8, 16))
    ]
    if rng.random() < 0.15:
        # Ended while the views were exported: no conversation endpoint has this handle.
        rows[0]["conversation_handle"] = _guid(rng)
    if rng.random() < 0.1:
        rows.append(dict(rows[-1]))
    return rows


def write_estates(rng: random.Random, folder: Path, numbers: range, less: int, scripted: int) -> list[Exported]:
    """Write estates, an instance a folder: each whole and ``less`` times in part, the first ones with a script."""
    written = []
    for estate in numbers:
        at = NOON + HOUR * (estate % 2)
        parts = random_parts(rng, estate, at)
        written.append(_write(rng, folder, Exported(f"HUB{estate}\\{FULL}", estate, FULL, frozenset(), at), parts))
        for number in range(less):
            chosen = frozenset(place for place in (*parts, ADDRESSES) if rng.random() < LEFT_OUT.get(place[0], 0))
            instance = Exported(f"HUB{estate}\\LESS{number}", estate, f"LESS{number}", chosen, at)
            written.append(_write(rng, folder, instance, parts))
        if estate - numbers.start < scripted:
            chosen = frozenset(place for place in parts if place[0] == "routes")
            instance = Exported(f"HUB{estate}\\{SCRIPT}", estate, SCRIPT, chosen, at)
            written.append(_write(rng, folder, instance, parts))
            _write_script(script_of(folder, instance), parts, at - 2 * HOUR)
    return written


def folder_of(folder: Path, instance: Exported) -> Path:
    """Where the exports of an instance are."""
    return folder / instance.name.replace("\\", "$")


def script_of(folder: Path, instance: Exported) -> Path:
    """Where the script of an instance is."""
    return folder_of(folder, instance) / "routes.sql"


def _write(rng: random.Random, folder: Path, instance: Exported, parts: Parts) -> Exported:
    own = folder_of(folder, instance)
    own.mkdir(parents=True)
    for view in COLUMNS:
        rows = [
            # The queue is the newest. A view that is empty somewhere is there with a row that says no more.
            {**row, "instance_name": instance.name, "database_name": database, "exported_at": exported_at}
            for (name, database), rows in parts.items()
            if name == view and (name, database) not in instance.left_out
            for exported_at in [instance.at if view == "transmission_queue" else instance.at - 3 * HOUR]
            for row in rows or [{}]
        ]
        if view == "service_broker_endpoints" and ADDRESSES in instance.left_out:
            rows = [{**row, **dict.fromkeys(("machine_name", "full_name", "port"))} for row in rows]
        if rows:
            (_write_csv if rng.random() < 0.5 else _write_json)(own / view, COLUMNS[view], rows)
    return instance


def _text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _write_csv(file: Path, columns: tuple[str, ...], rows: list[Row]) -> None:
    names = (*columns, "instance_name", "database_name", "exported_at")
    with file.with_suffix(".csv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(names)
        # As sqlcmd writes NULL.
        writer.writerows(["NULL" if row.get(name) is None else _text(row[name]) for name in names] for row in rows)


def _write_json(file: Path, columns: tuple[str, ...], rows: list[Row]) -> None:
    names = (*columns, "instance_name", "database_name", "exported_at")
    lines = [json.dumps({name: _text(row.get(name)) for name in names}) for row in rows]
    file.with_suffix(".jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_script(file: Path, parts: Parts, at: datetime) -> None:
    """CREATE ROUTE for every route of an instance, run at a time."""
    lines = []
    for (view, database), routes in parts.items():
        if view == "routes":
            lines += [f"USE [{database}];", *(_create_route(route, at) for route in routes)]
    file.write_text("\nGO\n".join(lines), encoding="utf-8")
    os.utime(file, (at.timestamp(), at.timestamp()))


def _create_route(route: Row, at: datetime) -> str:
    lifetime = route.get("lifetime")
    options_by_name = {
        "SERVICE_NAME": route.get("remote_service_name"),
        "BROKER_INSTANCE": route.get("broker_instance"),
        "ADDRESS": route["address"],
        "MIRROR_ADDRESS": route.get("mirror_address"),
    }
    options = [f"{name} = N'{value}'" for name, value in options_by_name.items() if value is not None]
    if lifetime is not None:
        options.append(f"LIFETIME = {int((lifetime - at).total_seconds())}")
    return f"CREATE ROUTE [{route['name'].replace(']', ']]')}] WITH {', '.join(options)};"
