"""Alter a random estate into another valid configuration for the same messages and dialogs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from . import estate_words as words

Row = dict[str, Any]
Tables = dict[str, list[Row]]
_ADDRESSES = ("address", "mirror_address")


def altered(rng: random.Random, tables: Tables, edits: int = 4) -> Tables:
    """Copy an estate's tables and make some edits, each of which may find nothing to change."""
    copy = {table: [dict(row) for row in rows] for table, rows in tables.items()}
    for _ in range(edits):
        rng.choice(_EDITS)(rng, copy)
    return copy


def _drop_routes(rng: random.Random, tables: Tables) -> None:
    tables["routes"] = [route for route in tables["routes"] if rng.random() > 0.15]


def _swap_addresses(rng: random.Random, tables: Tables) -> None:
    """Give a few routes the addresses of others, address and mirror together."""
    for route in _some(rng, tables["routes"]):
        other = rng.choice(tables["routes"])
        route.update({column: other[column] for column in _ADDRESSES})


def _swap_brokers(rng: random.Random, tables: Tables) -> None:
    for route in _some(rng, tables["routes"]):
        route["broker_instance"] = rng.choice(tables["routes"])["broker_instance"]


def _expire_routes(rng: random.Random, tables: Tables) -> None:
    for route in _some(rng, tables["routes"]):
        route["lifetime"] = rng.choice((None, *words.MOMENTS))


def _add_routes(rng: random.Random, tables: Tables) -> None:
    """Copy a few routes under new names, some for every service and some for another service."""
    for number, route in enumerate(_some(rng, tables["routes"])):
        service = rng.choice((None, route["remote_service_name"], rng.choice(_services(tables))))
        name = f"Added {number} {rng.randrange(10**9)}"
        bounds = {"valid_from": None, "valid_to": None}
        tables["routes"].append({**route, **bounds, "name": name, "remote_service_name": service})


def _ask_for_routes(rng: random.Random, tables: Tables) -> None:
    """Let a few scopes ask for routes, or stop all scopes from asking."""
    service = words.CONFIGURATION_SERVICE
    if rng.random() < 0.5:
        tables["routes"] = [route for route in tables["routes"] if route["remote_service_name"] != service]
        return
    for route in _some(rng, tables["routes"]):
        name = f"Asking {rng.randrange(10**9)}"
        bounds = {"valid_from": None, "valid_to": None}
        tables["routes"].append({**route, **bounds, "name": name, "remote_service_name": service})


def _switch_brokers(rng: random.Random, tables: Tables) -> None:
    for database in _some(rng, tables["databases"]):
        database["is_broker_enabled"] = not (database["is_broker_enabled"] is not False)


def _change_broker_ids(rng: random.Random, tables: Tables) -> None:
    for database in _some(rng, tables["databases"]):
        database["service_broker_guid"] = rng.choice(words.BROKER_IDS)


def _move_services(rng: random.Random, tables: Tables) -> None:
    """Move services to other databases of their instance, or away."""
    latest: dict[tuple[Any, ...], Row] = {}
    for service in tables["services"]:
        if rng.random() < 0.15:
            continue
        here = [row["name"] for row in tables["databases"] if row["instance_name"] == service["instance_name"]]
        if here and rng.random() < 0.2:
            service["database_name"] = rng.choice(here)
        latest[tuple(service.values())] = service
    tables["services"] = list(latest.values())


def _remove_databases(rng: random.Random, tables: Tables) -> None:
    tables["databases"] = [database for database in tables["databases"] if rng.random() > 0.15]


def _remove_instances(rng: random.Random, tables: Tables) -> None:
    """Remove an instance, and change the addresses and forwarding of others."""
    if rng.random() < 0.5:
        tables["instances"] = tables["instances"][1:]
    for instance in _some(rng, tables["instances"]):
        instance["addresses"] = rng.choice((None, [], words.OWN_ADDRESSES[0]))
        instance["is_message_forwarding_enabled"] = rng.choice((True, False, None))


def _add_databases(rng: random.Random, tables: Tables) -> None:
    """Add the instances and databases that only other tables name."""
    listed_instances = {row["instance_name"] for row in tables["instances"]}
    for name in sorted({row["instance_name"] for row in tables["databases"]} - listed_instances):
        tables["instances"].append(
            {"instance_name": name, "is_message_forwarding_enabled": True, "addresses": words.OWN_ADDRESSES[0]}
        )
    listed = {(row["instance_name"], row["name"]) for row in tables["databases"]}
    scopes = {(row["instance_name"], row["database_name"]) for row in tables["routes"]}
    for instance, name in sorted(scopes - listed):
        tables["databases"].append(
            {
                "instance_name": instance,
                "name": name,
                "database_id": None,
                "service_broker_guid": rng.choice(words.BROKER_IDS),
                "is_broker_enabled": None,
            }
        )


def _change_requests(rng: random.Random, tables: Tables) -> None:
    """Remove a few requests, end others, and add requests that some messages may have opened."""
    tables["route_requests"] = [request for request in tables["route_requests"] if rng.random() > 0.3]
    for request in _some(rng, tables["route_requests"]):
        request["ended_at"] = rng.choice((None, *words.MOMENTS))
    for message in _some(rng, tables["messages"]):
        wanted = (message["instance_name"], message["to_service_name"], message["message_id"])
        if all(wanted):
            tables["route_requests"].append(
                {
                    "instance_name": message["instance_name"],
                    "database_name": message["database_name"] or "msdb",
                    "service_name": message["to_service_name"],
                    "requested_at": rng.choice(words.MOMENTS),
                    "message_id": message["message_id"],
                    "ended_at": rng.choice((None, *words.MOMENTS)),
                }
            )


def _some(rng: random.Random, rows: list[Row]) -> list[Row]:
    return [row for row in rows if rng.random() < 0.25]


def _services(tables: Tables) -> list[str | None]:
    return [None, *(row["to_service_name"] for row in tables["messages"] if row["to_service_name"])]


_EDITS: tuple[Callable[[random.Random, Tables], None], ...] = (
    _drop_routes,
    _swap_addresses,
    _swap_brokers,
    _expire_routes,
    _add_routes,
    _ask_for_routes,
    _switch_brokers,
    _change_broker_ids,
    _move_services,
    _remove_databases,
    _add_databases,
    _remove_instances,
    _change_requests,
)
