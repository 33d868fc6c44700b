"""SHOP with a message to STOCK, exported with views beside the routing that show why it does not arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routing.advice.remedy import Remedy
from routing.views.check.checking import check
from tests.exported import GUID, database, export, route, waiting, whole_shop

REFUSED = "Connection attempt failed with error: '10061(No connection could be made because …)'."
TIMED_OUT = "Connection attempt failed with error: '10060(A connection attempt failed because …)'."
GROUP = GUID.format("99999999")
ZERO = "00000000-0000-0000-0000-000000000000"
BOUND = GUID.format("5c5c5c5c")


def broker_endpoint(machine: str, port: int = 4022, **columns: Any) -> dict[str, Any]:
    """A row of sys.service_broker_endpoints with its evidence."""
    row = {
        "endpoint_id": 65540,
        "is_message_forwarding_enabled": 0,
        "machine_name": machine,
        "port": port,
        "name": f"{machine} Broker",
        "state_desc": "STARTED",
        "connection_auth_desc": "CERTIFICATE",
        "encryption_algorithm_desc": "AES",
        "certificate_id": 261,
    }
    return {**row, **columns}


def to_stock(address: str, **columns: Any) -> dict[str, Any]:
    """The routes of SHOP, one of them to //stock."""
    return {"msdb": [route("AutoCreatedLocal")], "Orders": [route("ToStock", "//stock", address, **columns)]}


def shop(folder: Path, status: str = "", number: int | None = None, **views: Any) -> Path:
    """SHOP with one message to //stock, enqueued hours before the export."""
    row = waiting(1, "//stock", transmission_status=status, error_number=number)
    given = {
        "service_broker_endpoints": [broker_endpoint("SHOP")],
        "services": {"msdb": [], "Orders": [{"name": "//from"}]},
        **views,
    }
    broker = given.pop("bound", None)
    return whole_shop(folder, [{**row, "to_broker_instance": broker}], **given)


def target(folder: Path, instance: str = "STOCK", **views: Any) -> Path:
    """An instance whose database Stock holds //stock; ``views`` replace or add some."""
    views_of_target: dict[str, Any] = {
        "databases": [database("msdb", "d5d5d5d5", 4), database("Stock", "5c5c5c5c")],
        "service_broker_endpoints": [broker_endpoint(instance)],
        "routes": {
            "msdb": [route("AutoCreatedLocal")],
            "Stock": [route("Back", "//from", "TCP://shop:4022"), route("AutoCreatedLocal")],
        },
        "services": {"msdb": [], "Stock": [{"name": "//stock", "service_id": 7, "service_queue_id": 70}]},
        **views,
    }
    return export(folder, instance, **{view: rows for view, rows in views_of_target.items() if rows is not None})


def only_remedy(folder: Path) -> Remedy:
    """The only remedy of the only group of messages."""
    [group] = check([str(folder)]).groups
    [advice] = group.advice
    return advice.remedy


QUEUE = {
    "object_id": 70,
    "schema_name": "dbo",
    "name": "StockQueue",
    "is_receive_enabled": 1,
    "is_enqueue_enabled": 1,
    "activation_procedure": "[dbo].[read]",
    "is_activation_enabled": 1,
    "messages": 0,
}
AWAY = to_stock("TCP://stock:4022")
