"""Folders of exports that are large in one thing, to see how work grows: each is made with a size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.exported import database, endpoint, export, listening, route, waiting

_LOCAL = [route("AutoCreatedLocal")]


def _many_databases(count: int) -> list[dict[str, Any]]:
    msdb = database("msdb", "d4d4d4d4", 4)
    return [msdb, *(database(f"Db{each:06}", f"0d{each:06}", each + 5) for each in range(count))]


def _shop(folder: Path, databases: list[dict[str, Any]], **views: Any) -> Path:
    return export(folder, databases=databases, service_broker_endpoints=[listening("SHOP")], **views)


def _by_number(make: Callable[[int], list[dict[str, Any]]], count: int) -> dict[str, list[dict[str, Any]]]:
    return {f"Db{each:06}": make(each) for each in range(count)}


def _routes(make: Callable[[int], list[dict[str, Any]]], count: int) -> dict[str, list[dict[str, Any]]]:
    return {"msdb": _LOCAL, **_by_number(make, count)}


def _services(name: str, count: int) -> dict[str, list[dict[str, Any]]]:
    """Each database holds a service. ``name`` may have {} in the place of the database's number."""
    return {"msdb": [], **_by_number(lambda each: [{"name": name.format(each)}], count)}


def _sending(folder: Path, databases: list[dict[str, Any]], to: str, **views: Any) -> Path:
    """Write databases that each send a message. ``to`` may have {} in the place of the database's number."""
    count = len(databases) - 1
    return _shop(
        folder,
        databases,
        conversation_endpoints=_by_number(lambda each: [endpoint(each)], count),
        transmission_queue=_by_number(lambda each: [waiting(each, to.format(each))], count),
        **{"routes": _routes(lambda each: _LOCAL, count), **views},
    )


def many_databases(folder: Path, count: int) -> Path:
    """Databases that each hold a service, and send a message to one that nobody holds."""
    services = _services("//service{}", count)
    return _sending(folder, _many_databases(count), "//nowhere{}", services=services)


def many_unread_databases(folder: Path, count: int) -> Path:
    """Return databases that each send a message. Their services were not exported."""
    return _sending(folder, _many_databases(count), "//nowhere{}")


def many_doubtful_findings(folder: Path, count: int) -> Path:
    """Return databases with two routes each for which lint has findings. Their services were not exported."""

    def routes(each: int) -> list[dict[str, Any]]:
        service = f"//service{each}"
        return [route("Own", service, "tcp://shop:4022"), route("Here", service)]

    return _shop(folder, _many_databases(count), routes=_routes(routes, count), transmission_queue={"msdb": []})


def many_holders(folder: Path, count: int) -> Path:
    """Databases that all hold one service, and each send it a message."""
    return _sending(folder, _many_databases(count), "//any", services=_services("//any", count))


def many_broken_holders(folder: Path, count: int) -> Path:
    """Databases with their brokers off that all hold one service, and each send it a message."""
    databases = [
        {**one, "is_broker_enabled": int(one["name"] == "msdb" or one["database_id"] % 2)}
        for one in _many_databases(count)
    ]
    routes = _routes(lambda each: [route("Gone", "//other")], count)
    return _sending(folder, databases, "//Any", routes=routes, services=_services("//any", count))


def many_routes_for_any_service(folder: Path, count: int, address: str = "tcp://far{}:4022") -> Path:
    """A database with routes for any service, and a message to each of as many services."""
    return _shop(
        folder,
        _many_databases(1),
        routes={
            "msdb": _LOCAL,
            "Db000000": [route(f"Any{each}", None, address.format(each)) for each in range(count)],
        },
        services={"msdb": [], "Db000000": [{"name": "//from"}]},
        conversation_endpoints={"Db000000": [endpoint(each, far_service=f"//any{each}") for each in range(count)]},
        transmission_queue={"Db000000": [waiting(each, f"//any{each}") for each in range(count)]},
    )


def many_messages(folder: Path, count: int, services: int) -> Path:
    """Return messages of a database to services without a route, each in its own dialog."""
    return _shop(
        folder,
        _many_databases(1),
        routes={"msdb": _LOCAL, "Db000000": [route("ToOther", "//other", "tcp://far:4022")]},
        services={"msdb": [], "Db000000": [{"name": "//from"}]},
        conversation_endpoints={
            "Db000000": [endpoint(each, far_service=f"//any{each % services}") for each in range(count)]
        },
        transmission_queue={"Db000000": [waiting(each, f"//any{each % services}") for each in range(count)]},
    )


def many_asking_databases(folder: Path, count: int) -> Path:
    """Databases that each hold a service, and ask for routes to all services of the instance but one."""
    ask = "SQL/ServiceBroker/BrokerConfiguration"
    return _shop(
        folder,
        _many_databases(count),
        routes=_routes(lambda each: [route("Ask", ask), route("Here", f"//service{each}")], count),
        services=_services("//service{}", count),
        transmission_queue={"msdb": []},
    )


LARGE: Mapping[str, Callable[[Path, int], Path]] = {
    "databases": many_databases,
    "unread databases": many_unread_databases,
    "asking databases": many_asking_databases,
    "doubtful findings": many_doubtful_findings,
    "holders": many_holders,
    "broken holders": many_broken_holders,
    "routes for any service": many_routes_for_any_service,
    "local routes for any service": lambda folder, count: many_routes_for_any_service(folder, count, "LOCAL"),
    "messages to few services": lambda folder, count: many_messages(folder, count, max(count // 40, 1)),
    "messages to missing services": lambda folder, count: many_messages(folder, count, count),
}
