"""Estates of a company: instances that send to each other directly, through a forwarder, or nowhere."""

from __future__ import annotations

import random
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

from tests import estate_rows

Row = dict[str, Any]
Tables = dict[str, list[Row]]
MORNING = datetime(2026, 1, 5, tzinfo=timezone.utc)
NOON = MORNING + timedelta(hours=12)
# Some of them are nearly the same, as names are that people give.
TOWNS = ("Aalen", "Bergen", "Cordoba", "Dresden", "Exeter")
TRADES = ("Billing", "Billings", "Dispatch", "Order", "Orders", "Payroll", "Stock1", "Stock2", "Tax", "Taxes")
NAMES = ("alpha", "kilo", "oscar", "zulu")


def guid(rng: random.Random) -> str:
    """A GUID of the generator's."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def address_of(instance: str) -> str:
    """The network address of an instance."""
    return f"tcp://{instance}.example:4022"


def build(rng: random.Random) -> Tables:
    """Build an estate of two to four instances with route changes during the day. The first one forwards."""
    tables: Tables = {key: [] for key in ("instances", "databases", "services", "routes", "messages", "dialogs")}
    instances = NAMES[: rng.randint(2, 4)]
    for instance in instances:
        forwards = True if instance == instances[0] else rng.choice((True, False, None))
        instance_row = {"instance_name": instance, "is_message_forwarding_enabled": forwards}
        tables["instances"].append({**instance_row, "addresses": [address_of(instance)]})
        for number, database in enumerate(("msdb", "Sales", "Supply", "Staff")[: rng.randint(2, 4)], start=4):
            broker = {"service_broker_guid": guid(rng), "is_broker_enabled": rng.random() < 0.97}
            where = {"instance_name": instance, "name": database, "database_id": number}
            tables["databases"].append({**where, **broker})
    _services(rng, tables)
    for instance in instances:
        _routes_of(rng, tables, instance, instances)
    return tables


def _services(rng: random.Random, tables: Tables) -> None:
    """Draw one to three services a database. Some of them are in databases of two instances."""
    homes = [row for row in tables["databases"] if row["name"] != "msdb"]
    names = [f"//{town}.example/{trade}" for town in TOWNS for trade in TRADES]
    rng.shuffle(names)
    for home in homes:
        for _ in range(rng.randint(1, 3)):
            name = names.pop()
            others = [row for row in homes if row["instance_name"] != home["instance_name"]]
            holders = [home, *([rng.choice(others)] if others and rng.random() < 0.4 else [])]
            for row in holders:
                where = {"instance_name": row["instance_name"], "database_name": row["name"]}
                tables["services"].append({**where, "name": name})


def _routes_of(rng: random.Random, tables: Tables, instance: str, instances: tuple[str, ...]) -> None:
    """The routes of each database of an instance, and of its msdb."""
    named = sorted({row["name"] for row in tables["services"]})
    service_names = {row["name"] for row in tables["services"] if row["instance_name"] == instance}
    add = tables["routes"].append
    add(_route(instance, "msdb", "AutoCreatedLocal", None, "LOCAL"))
    for service in named if instance == instances[0] else ():
        if service not in service_names:
            [holder, *_] = _holders(tables, service)
            add(_route(instance, "msdb", f"On to {service}", service, address_of(holder["instance_name"])))
    for row in [row for row in tables["databases"] if row["instance_name"] == instance and row["name"] != "msdb"]:
        scope = (instance, row["name"])
        for service in named:
            for route in _routes_to(rng, tables, scope, service, instances):
                add(route)
        if instance != instances[0] and rng.random() < 0.3:
            add(_route(*scope, "By the forwarder", None, address_of(instances[0])))
        elif rng.random() < 0.5:
            add(_route(*scope, "AutoCreatedLocal", None, "LOCAL"))


def _routes_to(
    rng: random.Random, tables: Tables, scope: tuple[str, str], service: str, instances: tuple[str, ...]
) -> list[Row]:
    """Draw the routes of a database to a service: none, one, one a holder, or two versions of one."""
    holders, kind = _holders(tables, service), rng.random()
    away = [row for row in holders if row["instance_name"] != scope[0]]
    if kind < 0.12:
        return []
    if not away:
        return [_route(*scope, service[2:], service, "LOCAL")]
    if len(holders) > 1 and kind < 0.6:
        return [_balanced(rng, scope, service, row) for row in holders]
    to = address_of(away[0]["instance_name"])
    route = _route(*scope, service[2:], service, to)
    if kind < 0.75:
        return [route]
    # From a machine that is gone, or by the forwarder, to where it is now.
    old = (
        address_of(instances[0])
        if instances[0] != scope[0] and rng.random() < 0.5
        else "tcp://former.example:4022"
    )
    at = MORNING + timedelta(minutes=rng.randint(60, 23 * 60))
    return [{**route, "address": old, "valid_to": at}, {**route, "valid_from": at}]


def _balanced(rng: random.Random, scope: tuple[str, str], service: str, holder: Row) -> Row:
    is_here = holder["instance_name"] == scope[0]
    to = "LOCAL" if is_here else address_of(holder["instance_name"])
    name = f"{service[2:]} at {holder['instance_name']}"
    mirror = {} if is_here or rng.random() < 0.8 else {"mirror_address": f"tcp://{guid(rng)[:8]}.example:4022"}
    return _route(*scope, name, service, to) | {"broker_instance": holder["broker"], **mirror}


def _holders(tables: Tables, service: str) -> list[Row]:
    """The databases that hold a service, each with its broker instance."""
    ids = {(row["instance_name"], row["name"]): row["service_broker_guid"] for row in tables["databases"]}
    return [
        {**row, "broker": ids[row["instance_name"], row["database_name"]]}
        for row in tables["services"]
        if row["name"] == service
    ]


def _route(instance: str, database: str, name: str, service: str | None, address: str) -> Row:
    empty = dict.fromkeys(("broker_instance", "lifetime", "mirror_address", "valid_from", "valid_to"))
    return estate_rows.route(name, service, address, instance_name=instance, database_name=database, **empty)
