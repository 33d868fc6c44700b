"""Define the estate for findings: the raw tables, the estate of the rules and the owners of addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from routing.engines.traffic_tables import open_traffic
from routing.lint.catalogue import BY_CODE
from routing.plan.checked_inputs import instances_of
from routing.plan.planner import Planner
from routing.rules.estate import ARRIVALS, Database, EstateRoute, SqlInstance
from routing.rules.network import EstateNetwork
from routing.rules.timeline import SECOND
from routing.schemas import OPTIONAL_INPUTS
from routing.tables.read_rows import columns_of, read_each
from routing.tables.row_faults import phrase, time_text
from routing.tables.table_columns import Table, TableColumns

# Every database of SQL Server holds services of these; nobody routes to them.
_SYSTEM_SERVICES = "http://schemas.microsoft.com/SQL/"
_NAMED_BY = {
    "instances": ("instance_name",),
    "databases": ("instance_name", "name"),
    "services": ("instance_name", "database_name", "name"),
    "routes": ("instance_name", "database_name", "name"),
}


class LiveRoute(NamedTuple):
    """A valid route with its instance and database."""

    instance: str
    database: str
    route: EstateRoute


class ServiceHolder(NamedTuple):
    """A database that holds a service."""

    instance: str
    database: Database
    service: str


@dataclass(frozen=True)
class LintEstate:
    """Tables at one moment, maybe with rows that `resolve` refuses.

    ``tables`` are unchanged. ``instances`` are the estate of the rules, from rows with a complete key and valid
    routes. They include instances that only other tables name, and ``listed`` are the names without these. ``now``
    is in microseconds since 1970. ``days`` defines how soon an end of a lifetime is near.
    """

    tables: Mapping[str, TableColumns]
    instances: Mapping[str, SqlInstance]
    listed: frozenset[str]
    now: int
    days: int

    @cached_property
    def decisions(self) -> Planner:
        """The decisions of the rules on messages."""
        return Planner(is_exact=True)

    @cached_property
    def live_routes(self) -> tuple[LiveRoute, ...]:
        """The valid routes."""
        return tuple(
            LiveRoute(instance.name, database, route)
            for instance in self.instances.values()
            for database, by_service in instance.routes.items()
            for routes in by_service.values()
            for route in routes
        )

    @cached_property
    def network(self) -> EstateNetwork:
        """The instances that the tables list, as a message meets them."""
        return EstateNetwork({name: self.instances[name] for name in sorted(self.listed)})

    def owners(self, instance: str | None, address: str | None) -> tuple[SqlInstance, ...]:
        """Return the instances at an address that an instance sends to. Loopback names lead to its own machine."""
        sender = self.instances.get(instance or "")
        if address is None or sender is None:
            return ()
        return self.network.owners(address, sender)

    @cached_property
    def holders(self) -> tuple[ServiceHolder, ...]:
        """The services with their databases and instances."""
        return tuple(
            ServiceHolder(instance.name, database, service)
            for instance in self.instances.values()
            for service, databases in instance.holders.items()
            for database in databases
        )

    def services_of_users(self, instance: SqlInstance) -> Iterator[str]:
        """Return the services of an instance's databases that somebody made."""
        return filter(is_users, instance.holders)


def estate_of(tables: Mapping[str, TableColumns], now: int, days: int) -> LintEstate:
    """Return the estate at a moment."""
    keyed = with_keys(tables)
    listed = frozenset(keyed["instances"].values["instance_name"])
    instance_names = {name for columns in keyed.values() for name in columns.values["instance_name"]}
    bare = sorted(instance_names - listed)
    instance_values = keyed["instances"].values
    keyed["instances"] = TableColumns(
        {
            name: [*values, *(bare if name == "instance_name" else [None] * len(bare))]
            for name, values in instance_values.items()
        }
    )
    instances = {name: instance.at(now) for name, instance in instances_of(keyed).items()}
    return LintEstate(tables, instances, listed, now, days)


def with_keys(tables: Mapping[str, TableColumns]) -> dict[str, TableColumns]:
    """Return the tables of the configuration without rows that lack a name. The rules accept no others."""
    return {key: _named(tables[key], names) for key, names in _NAMED_BY.items()}


def _named(columns: TableColumns, names: tuple[str, ...]) -> TableColumns:
    if not any(None in columns.values[name] for name in names):
        return columns
    return columns.take([place for place, key in enumerate(columns.rows(*names)) if None not in key])


def sender_of(scope: str) -> str | None:
    """Return the origin of the messages that search a database's routes. Those of msdb are for arrivals."""
    return None if scope == ARRIVALS else scope


def is_users(service: str) -> bool:
    """Return True if somebody made a service, and not every database holds it."""
    return not service.startswith(_SYSTEM_SERVICES)


# How a finding is made: one maker of all, and how names and times read in its message.


Place = tuple["str | None", "str | None"]
"""Instance and database."""
MOST_SHOWN = 5
"""Names in a message."""


class LintFinding(NamedTuple):
    """The parts that differ between findings of a code. The catalogue has the rest."""

    code: str
    instance_name: str | None
    database_name: str | None
    object: str | None
    message: str
    error_number: int | None


def finding(
    code: str, place: Place, object_name: str | None, sentence: str, *values: str | None, number: int | None = None
) -> LintFinding:
    """Return a finding. All findings are made here.

    ``object_name`` names a route, for example. ``sentence`` has a ``%s`` for each value. ``number`` is SQL
    Server's error number if it depends on the row.
    """
    error_number = BY_CODE[code].error_number if number is None else number
    return LintFinding(code, *place, object_name, phrase(sentence, *values), error_number)


def list_names(names: Iterable[str]) -> str:
    """Write names as text: sorted, each once, at most five shown and the rest counted."""
    distinct = sorted(set(names))
    return show_names(distinct[:MOST_SHOWN], len(distinct))


def show_names(first: Sequence[str], total: int) -> str:
    """Write the first of a number of names as text."""
    shown, hidden = ", ".join(first), total - len(first)
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def utc(micros: int) -> str:
    """Return a time as ISO 8601 text in UTC, in whole seconds."""
    return time_text(micros // SECOND * SECOND).replace(" ", "T") + "Z"


# The tables that findings are made from, as columns; of what grows with the traffic only rows that can matter.


READ = ("routes", "databases", "services", "instances", "dialogs", "route_requests")
"""The tables that findings are made from."""


def columns(tables: Mapping[str, Table], now: int) -> dict[str, TableColumns]:
    """Return the tables that lint reads, of those from `take_tables`. Raises InputError if a column is missing.

    Of dialogs and requests it returns only the rows that can matter at a moment (microseconds), and maybe some
    more.
    """
    tables_read = {key: tables[key] for key in READ if key in tables}
    return read_each(tables_read, lambda key: read_one(tables_read[key], key, now))


def read_one(table: Table, key: str, now: int) -> TableColumns:
    """Return one of these tables. Raises InputError if a column is missing."""
    return open_traffic(table, key).doubtful_rows(key, now) if key in OPTIONAL_INPUTS else columns_of(table, key)
