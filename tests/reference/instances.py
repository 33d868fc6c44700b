"""Read instances with their databases and services, and locate a message's destination (rule book, 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .routes import Route, Scope
from .text import broker_id, own_address_keys

Rows = list[dict[str, Any]]
MSDB = "msdb"


@dataclass(frozen=True)
class Database:
    """One row of databases. An all-zero broker instance counts as none."""

    name: str
    broker: str | None
    enabled: bool


@dataclass
class Instance:
    """One instance with everything configured in it."""

    name: str
    forwards: bool
    own_addresses: frozenset[str]
    databases: dict[str, Database] = field(default_factory=dict)
    holding: dict[str, list[Database]] = field(default_factory=dict)
    """The listed databases that hold a service, by its name, in name order."""
    broker_ids: set[str] = field(default_factory=set)
    scopes: dict[str, Scope] = field(default_factory=dict)

    def broker_enabled(self, database: str) -> bool:
        """Return whether a scope's broker is on. An unlisted database, such as msdb, counts as on."""
        listed = self.databases.get(database)
        return listed is None or listed.enabled

    def locate(self, service: str, broker: str | None, sender: str | None) -> tuple[str | None, str]:
        """Locate the destination database: its name and the reason, or None and why not.

        `sender` is the sending database, or None for a message from the network.
        """
        holders = [
            database for database in self.holding.get(service, ()) if broker is None or database.broker == broker
        ]
        able = [database.name for database in holders if database.enabled]
        if broker is None and sender in able:
            return sender, "LOCAL_SERVICE"
        if able:
            return able[0], "LOCAL_SERVICE"
        if broker is not None and broker not in self.broker_ids:
            return None, "BROKER_INSTANCE_NOT_FOUND"
        return None, "BROKER_DISABLED" if holders else "SERVICE_NOT_FOUND"


def read_instances(tables: dict[str, Rows]) -> dict[str, Instance]:
    """Build the instances from the four configuration tables. Rows of unlisted instances are ignored."""
    instances = {
        row["instance_name"]: Instance(
            name=row["instance_name"],
            forwards=bool(row.get("is_message_forwarding_enabled")),
            own_addresses=own_address_keys(row.get("addresses")),
        )
        for row in tables.get("instances") or ()
    }
    for row in tables.get("databases") or ():
        instance = instances.get(row["instance_name"])
        if instance is not None:
            broker = broker_id(row["service_broker_guid"])
            enabled = row.get("is_broker_enabled") is not False
            instance.databases[row["name"]] = Database(row["name"], broker, enabled)
            if broker is not None:
                instance.broker_ids.add(broker)
    for row in tables.get("services") or ():
        instance = instances.get(row["instance_name"])
        database = instance.databases.get(row["database_name"]) if instance else None
        if instance is not None and database is not None:
            instance.holding.setdefault(row["name"], []).append(database)
    for row in tables.get("routes") or ():
        instance = instances.get(row["instance_name"])
        if instance is not None:
            instance.scopes.setdefault(row["database_name"], Scope()).add(Route.read(row))
    for instance in instances.values():
        for holders in instance.holding.values():
            holders.sort(key=lambda database: database.name)
    return instances
