"""Draw random estates: small, valid configurations with messages that reach every rule.

Everything is drawn from the small alphabet of `estate_words`, so that ties, near misses and exact
bounds are common. All randomness comes from the given generator.
"""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

from . import estate_words as words
from .cells import reachable_cells, reachable_rerouted_cells
from .estate_messages import random_dialogs, random_messages, random_requests
from .estate_words import maybe, pick, spelt_address, spelt_id
from .text import address_key, broker_id

__all__ = ["draw_estates", "joined", "random_estate", "reachable_cells", "reachable_rerouted_cells"]

Row = dict[str, Any]
Tables = dict[str, list[Row]]
TABLES = (
    "routes",
    "databases",
    "services",
    "instances",
    "messages",
    "dialogs",
    "route_requests",
)


def random_estate(rng: random.Random, n_messages: int, prefix: str = "") -> Tables:
    """Build one estate with every input table and column. Times are aware, in UTC.

    Instance names begin with the prefix, so that estates of different prefixes can be joined.
    """
    tables: Tables = {table: [] for table in TABLES}
    for name in ("hub", "spoke", "Hub")[: rng.randint(1, 3)]:
        _instance(rng, tables, prefix + name)
    if rng.random() < 0.3:
        _instance(rng, tables, prefix + "ghost")
        del tables["instances"][-1]  # only partly configured, so that its messages are rejected
    tables["messages"] = random_messages(rng, tables, n_messages, prefix)
    tables["dialogs"] = random_dialogs(rng, tables)
    tables["route_requests"] = random_requests(rng, tables)
    for rows in tables.values():
        rng.shuffle(rows)
    return tables


def draw_estates(rng: random.Random, count: int, n_messages: int) -> list[Tables]:
    """Draw some estates with the prefixes e0/, e1/ and so on."""
    return [random_estate(rng, n_messages, f"e{number}/") for number in range(count)]


def joined(estates: list[Tables]) -> Tables:
    """Put estates of different prefixes into one set of tables."""
    return {table: [row for estate in estates for row in estate[table]] for table in TABLES}


def _instance(rng: random.Random, tables: Tables, name: str) -> None:
    """Configure one instance with its databases, services and routes."""
    tables["instances"].append(
        {
            "instance_name": name,
            "is_message_forwarding_enabled": rng.choice((True, True, True, False, None)),
            "addresses": pick(rng, (6, words.OWN_ADDRESSES[:3]), (2, words.OWN_ADDRESSES[3:])),
        }
    )
    databases = rng.sample(words.DATABASE_NAMES, rng.randint(1, 3))
    if rng.random() < 0.75:
        databases.append("msdb")
    ids = rng.sample(words.BROKER_IDS, rng.randint(2, 4))
    services = [
        pick(
            rng,
            (4, words.PLAIN_SERVICES),
            (2, words.OWN_SERVICES),
            (2, words.FAR_SERVICES),
            (1, words.BROKEN_SERVICES),
        )
        for _ in range(rng.randint(1, 4))
    ]
    for number, database in enumerate(databases, start=1):
        guid = words.ZERO if rng.random() < 0.1 else rng.choice(ids)
        switches = (True, True, True, True, None, None) if database == "msdb" else (True, None)
        tables["databases"].append(
            {
                "instance_name": name,
                "name": database,
                "database_id": maybe(rng, 0.8, number),
                "service_broker_guid": spelt_id(rng, guid),
                "is_broker_enabled": rng.choice((*switches, False)),
            }
        )
    for database in [*databases, "Unlisted"]:
        for service in sorted(set(services)):
            if rng.random() < (0.3 if database in ("msdb", "Unlisted") else 0.5):
                tables["services"].append({"instance_name": name, "database_name": database, "name": service})
    # msdb has a routing table even if `databases` does not list it.
    for database in sorted({*databases, "msdb", "Unlisted"}):
        _scope(rng, tables, (name, database), services, ids)


def _scope(
    rng: random.Random,
    tables: Tables,
    scope: tuple[str, str],
    services: list[str],
    ids: list[str],
) -> None:
    """Fill the routing table of one database, usually with a preference for one kind of route."""
    taste = rng.choice(("any", "any", "any", "local", "own", "transport"))
    shares = (rng.choice((0.3, 0.6, 0.9)), rng.choice((0.15, 0.5, 0.85)))
    routes: list[Row] = []
    least = 2 if scope[1] == "msdb" else rng.choice((0, 1))
    for name in rng.sample(words.ROUTE_NAMES, rng.choice((least, 2, 3, 4, 6, 9))):
        version = _route(rng, services, ids, taste, shares)
        if routes and rng.random() < 0.25:
            version = _respelt(rng, rng.choice(routes))
        for valid_from, valid_to in _versions(rng):
            if rng.random() < 0.3:  # otherwise the next version is the same route
                version = _route(rng, services, ids, taste, shares)
            routes.append(
                {
                    **version,
                    "instance_name": scope[0],
                    "database_name": scope[1],
                    "name": name,
                    "valid_from": valid_from,
                    "valid_to": valid_to,
                }
            )
    if rng.random() < 0.35:
        routes.append(_configuration_route(rng, scope, ids))
    if rng.random() < 0.4:
        routes.append(_open_route(rng, scope))
    tables["routes"] += routes


def _route(
    rng: random.Random,
    services: list[str],
    ids: list[str],
    taste: str,
    shares: tuple[float, float],
) -> Row:
    """Build the columns of a route version. `shares` has the shares with a service and with a broker instance."""
    named, bound = shares
    local = (5.0 if taste == "local" else 3.0, ["LOCAL"])
    own_targets = (12.0 if taste == "own" else 2.0, words.OWN_TARGETS)
    transport = (40.0 if taste == "transport" else 2.0, ["TRANSPORT"])
    address = pick(rng, local, own_targets, transport, (3.0, words.FAR_TARGETS))
    mirror = None
    if address.startswith("tcp") and rng.random() < 0.2:
        mirror = pick(rng, (3, words.FAR_TARGETS), (1, words.OWN_TARGETS), (1, [""]))
    return {
        "remote_service_name": (rng.choice(services) if rng.random() < named else rng.choice((None, ""))),
        "broker_instance": (
            spelt_id(rng, rng.choice(ids)) if rng.random() < bound else rng.choice(words.NO_BROKER_IDS)
        ),
        "lifetime": maybe(rng, 0.1, rng.choice(words.MOMENTS)),
        "address": spelt_address(rng, address),
        "mirror_address": spelt_address(rng, mirror) if mirror else mirror,
    }


def _respelt(rng: random.Random, route: Row) -> Row:
    """Copy a route, with its broker instance and addresses spelled differently."""
    broker, mirror = broker_id(route["broker_instance"]), route["mirror_address"]
    return {
        **route,
        "broker_instance": spelt_id(rng, broker) if broker else rng.choice(words.NO_BROKER_IDS),
        "address": spelt_address(rng, address_key(route["address"])),
        "mirror_address": spelt_address(rng, address_key(mirror)) if mirror else mirror,
    }


def _configuration_route(rng: random.Random, scope: tuple[str, str], ids: list[str]) -> Row:
    """Build a route that names the BrokerConfiguration service, or nearly does."""
    near = (words.CONFIGURATION_SERVICE.lower(), words.CONFIGURATION_SERVICE + " ")
    service = pick(rng, (9, [words.CONFIGURATION_SERVICE]), (1, near))
    return {
        "instance_name": scope[0],
        "database_name": scope[1],
        "name": "Config",
        **_route(rng, [service], ids, "any", (1.0, 0.4)),
        "valid_from": maybe(rng, 0.1, words.MOMENTS[1]),
        "valid_to": maybe(rng, 0.1, words.MOMENTS[5]),
    }


def _open_route(rng: random.Random, scope: tuple[str, str]) -> Row:
    """Build a route for every service: mostly LOCAL in msdb, mostly back to msdb elsewhere."""
    to_own = 0.2 if scope[1] == "msdb" else 0.7
    target = rng.choice(words.OWN_TARGETS) if rng.random() < to_own else "LOCAL"
    return {
        "instance_name": scope[0],
        "database_name": scope[1],
        "name": "Every service",
        "remote_service_name": None,
        "broker_instance": None,
        "lifetime": None,
        "address": spelt_address(rng, target),
        "mirror_address": None,
        "valid_from": None,
        "valid_to": None,
    }


def _versions(rng: random.Random) -> list[tuple[datetime | None, datetime | None]]:
    """Draw the bounds of a route's versions, which never overlap but may leave gaps."""
    kind = rng.random()
    if kind < 0.6:
        return [(None, None)]
    if kind < 0.65:  # a single version that is never valid
        return [rng.choice(((words.NOON, words.NOON), (words.NOON, words.MOMENTS[0])))]
    cuts = sorted(rng.sample(words.MOMENTS, rng.randint(1, 3)))
    pieces = list(zip([None, *cuts], [*cuts, None], strict=True))
    return rng.sample(pieces, rng.randint(1, len(pieces)))
