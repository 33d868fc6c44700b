"""Rows of an estate by the column names of its tables. The default is database Sales on hub.

Missing columns are null. `tests.stored` writes rows as Delta tables, and `tests.frames` converts them to
DataFrames and Arrow tables.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
Tables = dict[str, list[Row]]
SALES, STOCK, STORE = (f"0000000{n}-aaaa-bbbb-cccc-000000000000" for n in (1, 2, 3))
ASK = "SQL/ServiceBroker/BrokerConfiguration"
_HUB: Row = {"instance_name": "hub"}
_SALES: Row = {**_HUB, "database_name": "Sales"}


def conversation(number: int) -> str:
    """Return a conversation id."""
    return f"C0{number:06d}-1111-2222-3333-444444444444"


def instance(name: str = "hub", *addresses: str, **columns: Any) -> Row:
    """Return an instance. Without addresses, nothing is known about its addresses."""
    known_columns = {"addresses": list(addresses)} if addresses else {}
    return {"instance_name": name, **known_columns, **columns}


def database(name: str = "Sales", guid: str = SALES, **columns: Any) -> Row:
    """Return a database of hub with its broker instance."""
    return {**_HUB, "name": name, "service_broker_guid": guid, **columns}


def service(database_name: str, name: str, **columns: Any) -> Row:
    """Return a service of a database of hub."""
    return {**_HUB, "database_name": database_name, "name": name, **columns}


def route(name: str, service_name: str | None, address: str | None, **columns: Any) -> Row:
    """Return a route of database Sales on hub."""
    return {**_SALES, "name": name, "remote_service_name": service_name, "address": address, **columns}


def message(number: int, service_name: str, **columns: Any) -> Row:
    """Return a message of database Sales on hub at noon."""
    return {
        **_SALES,
        "message_id": f"m{number}",
        "conversation_id": conversation(number),
        "is_initiator": True,
        "message_sequence_number": number,
        "enqueue_time": "2026-01-05T12:00:00Z",
        "to_service_name": service_name,
        **columns,
    }


def endpoint(number: int, **columns: Any) -> Row:
    """Return the conversation endpoint that sends the message of the same number: a row of dialogs, with more."""
    return {**_SALES, "conversation_id": conversation(number), "is_initiator": True, **columns}


def request(service_name: str, **columns: Any) -> Row:
    """Return a request for a route on record, which Sales made an hour before noon."""
    values = {"requested_at": "2026-01-05T11:00:00Z", "message_id": "m0"}
    return {**_SALES, "service_name": service_name, **values, **columns}


def observation(number: int, at: Any, source: str = "TRANSMISSION_QUEUE", **columns: Any) -> Row:
    """Return a row of observed_routing with the status of a message, as import writes it."""
    observed = {"message_id": f"m{number}", "observed_at": at, "source": source}
    return {**endpoint(number, conversation_id=conversation(number).lower()), **observed, **columns}


def estate(**tables: list[Row]) -> Tables:
    """Return the tables of hub with database Sales. Given tables replace or extend them."""
    alone = {"instances": [instance()], "databases": [database()], "services": [], "routes": [], "messages": []}
    return {**alone, **tables}


def small_estate() -> Tables:
    """Return one instance with three databases. Two messages are rejected, and one asks for a route."""
    guids = {"Sales": SALES, "Stock": STOCK, "Store": STORE}
    return {
        "instances": [instance(is_message_forwarding_enabled=True)],
        "databases": [database(name, guid, database_id=5) for name, guid in guids.items()],
        "services": [service(name, "//stock") for name in ("Stock", "Store")],
        "routes": [
            route("Stock", "//stock", "LOCAL", broker_instance=STOCK),
            route("Store", "//stock", "LOCAL", broker_instance=STORE),
            route("Far", "//far", "TCP://far.example:4022", mirror_address="tcp://mirror.example:4022"),
            route("Ask", ASK, "LOCAL"),
        ],
        "messages": [
            message(1, "//stock"),
            message(2, "//stock"),
            message(3, "//far"),
            message(4, "//nowhere"),
            message(5, "//stock", database_name=None, hops_remaining=3),
            message(6, "//stock", conversation_id="no guid"),
            message(7, "//stock", instance_name="spoke"),
        ],
        "dialogs": [endpoint(number, far_broker_instance=STORE) for number in (2, 9)],
        "route_requests": [request("//elsewhere")],
    }
