"""Random networks of `tests.reference.networks`, as folders of exports and as the tables that these hold."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.exported import export
from tests.reference.networks import Row, Tables, random_network
from tests.reference.text import address_key

AT = datetime.fromisoformat("2026-03-01T12:30:00+00:00")
"""When everything is exported: after half of the lifetimes of a network."""


def exported_network(rng: random.Random, n_messages: int) -> Tables:
    """Return a network as exports can show it, every message sent from a database and decided at `AT`.

    Exports know no versions of routes, no hops that are left, no acknowledgement and no requests on record.
    """
    tables = random_network(rng, n_messages)
    names = {(row["instance_name"], row["name"]) for row in tables["databases"]}
    routes = {
        (row["instance_name"], row["database_name"], _named(row["name"])): {
            **row,
            "name": _named(row["name"]),
            "valid_from": None,
            "valid_to": None,
        }
        for row in tables["routes"]
    }
    messages = []
    for number, row in enumerate(tables["messages"]):
        if (row["instance_name"], row["database_name"]) in names:
            role = "I" if row["is_initiator"] else "T"
            dialog = row["conversation_id"].lower()
            sent = {**row, "conversation_id": dialog, "hops_remaining": None, "observed_at": AT}
            sent["enqueue_time"] = AT - timedelta(seconds=number)
            sent["message_sequence_number"] = number
            sent["message_id"] = f"{dialog}:{role}:{number}:{row['database_name']}"
            sent["to_broker_instance"] = _bare(row["to_broker_instance"])
            messages.append(sent)
    empty = dict.fromkeys(("acknowledged_at", "acknowledged_broker_instance"))
    dialogs = [
        {**row, "conversation_id": row["conversation_id"].lower(), **empty}
        for row in tables["dialogs"]
        if (row["instance_name"], row["database_name"]) in names
    ]
    databases = [{**row, "service_broker_guid": _bare(row["service_broker_guid"])} for row in tables["databases"]]
    return {
        **tables,
        "routes": list(routes.values()),
        "databases": databases,
        "messages": messages,
        "dialogs": dialogs,
        "route_requests": [],
    }


def _named(route: str) -> str:
    """Return the name of a route, which SQL Server compares without case."""
    return "lower a" if route == "a" else route


def _bare(broker: str | None) -> str | None:
    return None if broker is None else broker.strip("{} \t\r\n")


def write_network(folder: Path, tables: Tables, left_out: Collection[tuple[str, str]] = ()) -> None:
    """Write the exports of all instances. The instances in ``left_out`` lack a view."""
    for row in tables["instances"]:
        name = row["instance_name"]
        theirs = {table: _of(rows, name) for table, rows in tables.items() if table != "instances"}
        views = {view: rows for view, rows in _views(row, theirs).items() if (name, view) not in left_out}
        export(folder, name, at=AT.isoformat(), **views)


def _of(rows: list[Row], instance: str) -> list[Row]:
    return [row for row in rows if row["instance_name"] == instance]


def _views(instance: Row, tables: Mapping[str, list[Row]]) -> dict[str, Any]:
    """Return the views of an instance, or only its endpoint if just its address is known."""
    forwards = int(bool(instance["is_message_forwarding_enabled"]))
    views: dict[str, Any] = {
        "service_broker_endpoints": [
            {
                "endpoint_id": number,
                "is_message_forwarding_enabled": forwards,
                "machine_name": address_key(address).removeprefix("tcp://").rpartition(":")[0],
                "port": int(address_key(address).rpartition(":")[2]),
            }
            for number, address in enumerate(instance["addresses"], start=1)
        ]
    }
    if not tables["databases"]:
        return views
    listed = [row["name"] for row in tables["databases"]]
    databases = [
        {
            "name": row["name"],
            "database_id": number,
            "service_broker_guid": row["service_broker_guid"],
            "is_broker_enabled": int(row["is_broker_enabled"] is not False),
        }
        for number, row in enumerate(tables["databases"], start=5)
    ]
    routes = ("name", "remote_service_name", "broker_instance", "address", "mirror_address")
    by_database = {name: _in(tables["routes"], name) for name in {*listed, "msdb"}}
    queue = {name: [_waiting(row) for row in _in(tables["messages"], name)] for name in listed}
    ends = {name: _ends(_in(tables["messages"], name), _in(tables["dialogs"], name)) for name in listed}
    return {
        **views,
        "databases": databases,
        "routes": {
            name: [
                {**{column: row[column] for column in routes}, "lifetime": _text(row["lifetime"])}
                for row in theirs
            ]
            for name, theirs in by_database.items()
        },
        "services": {
            name: [{"name": row["name"]} for row in _in(tables["services"], name)] for name in by_database
        },
        "conversation_endpoints": ends,
        "transmission_queue": queue,
    }


def _in(rows: list[Row], database: str) -> list[Row]:
    return [row for row in rows if row["database_name"] == database]


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _handle(row: Row) -> str:
    """Return the handle of an end: that of the conversation, with another first digit for the target's."""
    dialog: str = row["conversation_id"]
    return ("e" if row["is_initiator"] else "f") + dialog[1:]


def _waiting(row: Row) -> Row:
    return {
        "conversation_handle": _handle(row),
        "to_service_name": row["to_service_name"],
        "to_broker_instance": row["to_broker_instance"],
        "from_service_name": row["from_service_name"],
        "enqueue_time": row["enqueue_time"].isoformat(),
        "message_sequence_number": row["message_sequence_number"],
        "transmission_status": "",
    }


def _ends(messages: list[Row], dialogs: list[Row]) -> list[Row]:
    exported_ends = {(row["conversation_id"], row["is_initiator"]): row for row in dialogs}
    ends: dict[str, Row] = {}
    for row in messages:
        dialog = exported_ends.get((row["conversation_id"], row["is_initiator"]), {})
        ends[_handle(row)] = {
            "conversation_handle": _handle(row),
            "conversation_id": row["conversation_id"],
            "is_initiator": int(row["is_initiator"]),
            "conversation_group_id": None,
            "lifetime": _text(dialog.get("lifetime")),
            "far_service": row["to_service_name"],
            "far_broker_instance": dialog.get("far_broker_instance"),
        }
    return list(ends.values())
