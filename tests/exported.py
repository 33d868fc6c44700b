"""Folders of exports, as `sbroute import queries` and users' own jobs write them: JSON lines, one file a view."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routing.importing.catalog import VIEWS

AT = "2026-01-05T18:00:00Z"
GUID = "{}-0000-4000-8000-000000000000"
Rows = Sequence[Mapping[str, Any]]


def export(folder: Path, instance: str = "SHOP", at: str = AT, **views: Mapping[str, Rows] | Rows) -> Path:
    """Write views of an instance. Views of databases have rows by database, or none if they are empty."""
    for view, content in views.items():
        head: dict[str, Any] = {"instance_name": instance, "exported_at": at}
        if not VIEWS[view].per_database:
            rows = [{**head, **row} for row in content]  # type: ignore[dict-item]
        else:
            assert isinstance(content, Mapping)
            nothing = dict.fromkeys(column.name for column in VIEWS[view].columns)
            of = {name: theirs or [nothing] for name, theirs in content.items()}
            rows = [{**head, "database_name": name, **row} for name, theirs in of.items() for row in theirs]
        file = folder / instance.replace("\\", "$") / f"{view}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def listening(machine: str, forwards: int = 0) -> dict[str, Any]:
    """The Service Broker endpoint of an instance."""
    return {"endpoint_id": 1, "is_message_forwarding_enabled": forwards, "machine_name": machine, "port": 4022}


def handle(number: int) -> str:
    """The handle of a numbered conversation."""
    return GUID.format(f"e{number:07}")


def conversation(number: int) -> str:
    """The id of a numbered conversation."""
    return GUID.format(f"c{number:07}")


def endpoint(number: int, **columns: Any) -> dict[str, Any]:
    """The conversation endpoint of an initiator that is bound to nobody."""
    row = {
        "conversation_handle": handle(number),
        "conversation_id": conversation(number),
        "is_initiator": 1,
        "conversation_group_id": None,
        "lifetime": "2090-01-01T00:00:00",
        "far_service": "//any",
        "far_broker_instance": None,
    }
    return {**row, **columns}


def waiting(number: int, service: str, sequence: int = 0, **columns: Any) -> dict[str, Any]:
    """A message of the transmission queue, enqueued in minute ``number``."""
    row = {
        "conversation_handle": handle(number),
        "to_service_name": service,
        "to_broker_instance": None,
        "from_service_name": "//from",
        "enqueue_time": f"2026-01-05T12:{number % 60:02}:00",
        "message_sequence_number": sequence,
        "transmission_status": "",
    }
    return {**row, **columns}


def route(name: str, service: str | None = None, address: str = "LOCAL", **columns: Any) -> dict[str, Any]:
    """A row of sys.routes."""
    optional = {"broker_instance": None, "lifetime": None, "mirror_address": None}
    return {"name": name, "remote_service_name": service, "address": address, **optional, **columns}


def database(name: str, broker: str, number: int = 5, is_enabled: int = 1) -> dict[str, Any]:
    """Return a row of sys.databases. ``broker`` is the first group of its id."""
    guid = GUID.format(broker)
    return {"name": name, "database_id": number, "service_broker_guid": guid, "is_broker_enabled": is_enabled}


def whole_shop(folder: Path, queue: Rows, dialogs: Rows | None = None, **views: Any) -> Path:
    """Export SHOP completely with msdb and Orders. ``views`` replaces some views, and None omits one."""
    numbers = dict.fromkeys(int(row["conversation_handle"][1:8]) for row in queue)
    rows_by_view: dict[str, Any] = {
        "databases": [database("msdb", "d4d4d4d4", 4), database("Orders", "0d0d0d0d")],
        "service_broker_endpoints": [listening("SHOP")],
        "routes": {
            "msdb": [route("AutoCreatedLocal")],
            "Orders": [route("AutoCreatedLocal"), route("ToStock", "//stock", "TCP://hub.example:4022")],
        },
        "services": {"msdb": [], "Orders": [{"name": "//orders"}]},
        "conversation_endpoints": {
            "Orders": [endpoint(number) for number in numbers] if dialogs is None else dialogs
        },
        "transmission_queue": {"Orders": queue},
        **views,
    }
    return export(folder, **{view: rows for view, rows in rows_by_view.items() if rows is not None})
