"""Define instances, databases, services and routes as the rules see them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import TypeVar

from routing.groups import group_pairs
from routing.rules import text
from routing.terms import BROKER_CONFIGURATION_SERVICE, LOCAL_ADDRESS, LOOPBACK_HOSTS, MSDB


class AddressKind(Enum):
    """The kind of a route's address."""

    LOCAL = "LOCAL"
    TRANSPORT = "TRANSPORT"
    NETWORK = "NETWORK"


@dataclass(frozen=True)
class EstateRoute:
    """A route, prepared for matching. ``service`` and ``broker`` are None if the route has none.

    It is valid from ``live_from`` (inclusive) to ``live_to`` (exclusive). ``kind`` is None for an address
    outside the grammar. ``name`` is None for the LOCAL route that a rule implies (sections 1 and 2.6).
    """

    name: str | None
    service: str | None
    broker: str | None
    live_from: int | None
    live_to: int | None
    address: str | None
    mirror_address: str | None
    kind: AddressKind | None

    @classmethod
    def of_row(
        cls,
        name: str,
        remote_service_name: str | None,
        broker_instance: str | None,
        address: str,
        mirror_address: str | None,
        valid_from: int | None,
        valid_to: int | None,
        lifetime: int | None,
    ) -> EstateRoute:
        """Return the route of a row of ``routes``. Addresses keep their spelling."""
        ends = [end for end in (valid_to, lifetime) if end is not None]
        return cls(
            name,
            text.empty_as_null(remote_service_name),
            text.broker_id(broker_instance),
            valid_from,
            min(ends, default=None),
            address,
            text.empty_as_null(mirror_address),
            kind_of(address),
        )

    @classmethod
    def implied(cls, address: str | None) -> EstateRoute:
        """Return the LOCAL route that a rule implies, with the address under which it is reported."""
        return cls(None, None, None, None, None, address, None, AddressKind.LOCAL)

    @property
    def is_implied(self) -> bool:
        """True if a rule implies the route, so that no row has it."""
        return self.name is None

    @property
    def is_ever_live(self) -> bool:
        """True if the route is valid at any time."""
        return self.live_from is None or self.live_to is None or self.live_from < self.live_to

    def is_live(self, t: int) -> bool:
        """Return True if the route is valid at a time (section 0)."""
        return (self.live_from is None or self.live_from <= t) and (self.live_to is None or t < self.live_to)

    @property
    def compared(self) -> str | None:
        """The address in its form for comparison."""
        return None if self.address is None else text.comparable_address(self.address)

    @property
    def compared_mirror(self) -> str | None:
        """The mirror address in its form for comparison."""
        return None if self.mirror_address is None else text.comparable_address(self.mirror_address)


class RoutesByBroker:
    """Routes in their order, indexed by the broker instance that a message needs to match them.

    ``required`` returns that broker instance for a route, or None if any bound message may match.
    """

    def __init__(self, routes: Sequence[EstateRoute], required: Callable[[EstateRoute], str | None]) -> None:
        self._routes = routes
        self._places: dict[str | None, list[int]] = {}
        for place, route in enumerate(routes):
            self._places.setdefault(required(route), []).append(place)

    def select(self, broker: str | None) -> Sequence[EstateRoute]:
        """Return the routes that a message bound to this broker instance may match. None returns all routes."""
        if broker is None:
            return self._routes
        places = sorted((*self._places.get(broker, ()), *self._places.get(None, ())))
        return [self._routes[place] for place in places]


@lru_cache(maxsize=10_000)
def kind_of(address: str | None) -> AddressKind | None:
    """Return the kind of an address, or None if it is outside the grammar (tables.md)."""
    if text.is_local(address):
        return AddressKind.LOCAL
    if text.is_transport(address):
        return AddressKind.TRANSPORT
    return AddressKind.NETWORK if text.is_tcp(address) else None


@dataclass(frozen=True)
class Database:
    """A row of ``databases``. ``broker`` is None if the id is all zeros."""

    name: str
    broker: str | None
    is_enabled: bool

    @classmethod
    def of_row(cls, name: str, service_broker_guid: str | None, is_broker_enabled: bool | None) -> Database:
        """Return the database of a row of ``databases``."""
        return cls(name, text.broker_id(service_broker_guid), is_broker_enabled is not False)


T = TypeVar("T")


class SharedTuple(tuple[T, ...]):
    """A long tuple that many keys share, with a hash that is computed once."""

    @cached_property
    def _hash(self) -> int:
        return tuple.__hash__(self)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __reduce__(self) -> tuple[type[SharedTuple[T]], tuple[tuple[T, ...]]]:
        # The hash is left out, because hashes of text differ between processes.
        return type(self), (tuple(self),)


class ServiceHolders(SharedTuple[Database]):
    """The databases of an instance that hold one service, by name.

    Databases and services may be many, so the lookups are computed once.
    """

    @cached_property
    def by_broker(self) -> Mapping[str | None, ServiceHolders]:
        """The holders by broker instance. None has all of them."""
        fitting = group_pairs((holder.broker, holder) for holder in self if holder.broker is not None)
        return {None: ServiceHolders(self), **{broker: ServiceHolders(its) for broker, its in fitting.items()}}

    @cached_property
    def able(self) -> tuple[str, ...]:
        """The names of the databases with an enabled broker, in their order."""
        return tuple(holder.name for holder in self if holder.is_enabled)

    @cached_property
    def able_names(self) -> frozenset[str]:
        """The names in `able` as a set."""
        return frozenset(self.able)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all databases as a set."""
        return frozenset(holder.name for holder in self)


NO_HOLDERS = ServiceHolders()


RoutesByService = Mapping[str | None, tuple[EstateRoute, ...]]
"""The routes of a database by service, in the order of their names. None is any service."""


@dataclass(frozen=True)
class SqlInstance:
    """One SQL Server instance.

    ``is_forwarding`` is also False if it is unknown, as ``is_forwarding_known`` shows. No rule uses the latter.
    ``has_routes`` is True if any route is known, even if ``routes`` is empty.
    ``routes`` are by database and service (None for any), in the order of their names.
    ``holders`` are the databases that hold each service, in the order of their names.
    """

    name: str
    is_forwarding: bool = False
    own_addresses: frozenset[str] = frozenset()
    databases: Mapping[str, Database] = field(default_factory=dict)
    routes: Mapping[str, RoutesByService] = field(default_factory=dict)
    holders: Mapping[str, ServiceHolders] = field(default_factory=dict)
    is_forwarding_known: bool = True
    has_routes: bool = False

    @cached_property
    def brokers(self) -> Mapping[str, Sequence[Database]]:
        """Its databases by their broker instances. Copies of a database may share one."""
        databases = self.databases.values()
        return group_pairs((database.broker, database) for database in databases if database.broker is not None)

    @cached_property
    def machine_names(self) -> frozenset[str]:
        """The folded names of the machine: the instance name before its backslash, and hosts of its addresses.

        If any host begins with the machine's name, only such hosts count.
        """
        machine = text.machine_of(self.name)
        hosts = {text.host(address) for address in self.own_addresses} - {None, *LOOPBACK_HOSTS}
        named = {host for host in hosts if host is not None and f"{host}.".startswith(f"{machine}.")}
        return frozenset({machine, *(host for host in named or hosts if host is not None)})

    @cached_property
    def route_names(self) -> Mapping[str, frozenset[str]]:
        """The names of all routes of each database, valid or not, in the form of `text.collated`."""
        return {
            database: frozenset(
                text.collated(route.name) for routes in by_service.values() for route in routes if route.name
            )
            for database, by_service in self.routes.items()
        }

    @property
    def is_only_named(self) -> bool:
        """True if at most the name and routes are known, because an import only mentioned the instance.

        Services without their database do not count.
        """
        return not (self.is_forwarding_known or self.own_addresses or self.databases)

    @property
    def is_only_addressed(self) -> bool:
        """True if neither databases nor routes are known, so that arrivals cannot be decided."""
        return not (self.databases or self.has_routes)

    @property
    def every_route(self) -> Iterator[EstateRoute]:
        """All of its routes, valid or not."""
        return (route for by_service in self.routes.values() for routes in by_service.values() for route in routes)

    @property
    def route_addresses(self) -> set[str]:
        """The addresses and mirror addresses of its routes."""
        written = {address for route in self.every_route for address in (route.address, route.mirror_address)}
        return {address for address in written if address is not None}

    @property
    def service_names(self) -> set[str]:
        """The services that it holds, or that its routes name."""
        named = (service for by_service in self.routes.values() for service in by_service)
        return {*self.holders, *(service for service in named if service is not None)}

    def at(self, t: int) -> SqlInstance:
        """Return the instance with only the routes that are valid at a time."""
        live: dict[str, dict[str | None, tuple[EstateRoute, ...]]] = {}
        for database, by_service in self.routes.items():
            for service, routes in by_service.items():
                live_routes = tuple(route for route in routes if route.is_live(t))
                if live_routes:
                    live.setdefault(database, {})[service] = live_routes
        return replace(self, routes=live)

    def is_enabled(self, database: str) -> bool:
        """Return True if the broker of a database is enabled. An unlisted database counts as enabled."""
        listed_database = self.databases.get(database)
        return listed_database is None or listed_database.is_enabled

    def naming(self, database: str, service: str | None) -> tuple[EstateRoute, ...]:
        """Return the routes of a database to exactly this service, by name."""
        return () if service is None else self.routes.get(database, {}).get(service, ())

    @cached_property
    def by_broker(self) -> dict[tuple[str, str | None], RoutesByBroker]:
        """A cache of routes to a service of a database, indexed by broker instance."""
        return {}

    def unnamed(self, database: str) -> tuple[EstateRoute, ...]:
        """Return the routes of a database to any service, and those to the BrokerConfiguration service."""
        by_service = self.routes.get(database, {})
        return (*by_service.get(None, ()), *by_service.get(BROKER_CONFIGURATION_SERVICE, ()))

    def tie(self, routes: Iterable[EstateRoute]) -> Hashable:
        """Return each route with two flags: its broker instance and its address belong to this instance."""
        brokers, addresses = self.brokers, self.own_addresses
        return tuple([(id(route), route.broker in brokers, route.compared in addresses) for route in routes])

    def scope_facts(self, database: str) -> Hashable:
        """Return the state of a database's broker and `tie` of its `unnamed` routes, computed once."""
        if database not in self._scope_facts:
            facts = self.is_enabled(database), self.tie(self.unnamed(database))
            self._scope_facts[database] = SharedTuple(facts)
        return self._scope_facts[database]

    @cached_property
    def _scope_facts(self) -> dict[str, Hashable]:
        return {}

    def holders_of(self, service: str | None) -> ServiceHolders:
        """Return the databases that hold a service, by name."""
        return NO_HOLDERS if service is None else self.holders.get(service, NO_HOLDERS)


def by_name(route: EstateRoute) -> tuple[str, int]:
    """Return the sort key of a route: its name, then the beginning of its version."""
    return (route.name or "", -(2**63) if route.live_from is None else route.live_from)


def own_addresses(addresses: Iterable[str | None] | None) -> frozenset[str]:
    """Fold an instance's addresses and add loopback names with its ports (section 3)."""
    compared = {text.comparable_address(address) for address in addresses or () if address}
    ports = {text.port(address) for address in compared} - {None}
    return frozenset(compared | {f"tcp://{host}:{port}" for port in ports for host in LOOPBACK_HOSTS})


def places_of(instances: Iterable[SqlInstance]) -> dict[str, tuple[SqlInstance, ...]]:
    """Return the instances by address, sorted by name, without loopback addresses."""
    owners_by_address = group_pairs(
        (address, instance)
        for instance in sorted(instances, key=lambda named_instance: named_instance.name)
        for address in instance.own_addresses
        if text.host(address) not in (None, *LOOPBACK_HOSTS)
    )
    return {address: tuple(owners) for address, owners in owners_by_address.items()}


InstanceRow = tuple[str, bool | None, Iterable[str | None] | None]
DatabaseRow = tuple[str, Database]
ServiceRow = tuple[str, str, str]
RouteRow = tuple[str, str, EstateRoute]


def list_instances(instances: Iterable[InstanceRow], databases: Iterable[DatabaseRow]) -> dict[str, SqlInstance]:
    """Build instances by name with their databases, but without services and routes.

    ``instances`` has rows of (instance_name, is_message_forwarding_enabled, addresses), and ``databases`` rows of
    (instance_name, `Database`). Databases of unlisted instances are ignored.
    """
    listed: dict[str, dict[str, Database]] = {}
    for instance, database in databases:
        listed.setdefault(instance, {})[database.name] = database
    return {
        name: SqlInstance(
            name,
            bool(is_forwarding),
            own_addresses(addresses),
            listed.get(name, {}),
            is_forwarding_known=is_forwarding is not None,
        )
        for name, is_forwarding, addresses in instances
    }


def with_services_and_routes(
    instances: Mapping[str, SqlInstance], services: Iterable[ServiceRow], routes: Iterable[RouteRow]
) -> dict[str, SqlInstance]:
    """Add services and routes to instances that have none with these names yet.

    Rows of services: (instance_name, database_name, name). Rows of routes: (instance_name, database_name,
    `EstateRoute`). Routes that are never valid are left out. So are services and routes of unlisted databases and
    instances. ``has_routes`` is True even if all routes of an instance were left out.
    """
    holding: dict[str, dict[str, list[Database]]] = {}
    for instance, database_name, service in services:
        holder = instances[instance].databases.get(database_name) if instance in instances else None
        if holder is not None:
            holding.setdefault(instance, {}).setdefault(service, []).append(holder)
    routed: dict[str, dict[str, dict[str | None, list[EstateRoute]]]] = {}
    with_routes = set()
    for instance, database_name, route in routes:
        with_routes.add(instance)
        if route.is_ever_live:
            scope = routed.setdefault(instance, {}).setdefault(database_name, {})
            scope.setdefault(route.service, []).append(route)
    changed = {
        name: replace(
            instance,
            routes={**instance.routes, **_add_routes(instance.routes, routed.get(name, {}))},
            holders={**instance.holders, **_order_holders(holding.get(name, {}))},
            has_routes=instance.has_routes or name in with_routes,
        )
        for name, instance in instances.items()
        if name in holding or name in with_routes
    }
    return {name: changed.get(name, instance) for name, instance in instances.items()}


def _add_routes(
    routes_by_database: Mapping[str, RoutesByService], added: Mapping[str, Mapping[str | None, list[EstateRoute]]]
) -> dict[str, RoutesByService]:
    """Return the known and added routes of each database that gets new ones."""
    return {
        database_name: {
            **routes_by_database.get(database_name, {}),
            **{service: tuple(sorted(versions, key=by_name)) for service, versions in scope.items()},
        }
        for database_name, scope in added.items()
    }


def _order_holders(holding: Mapping[str, list[Database]]) -> dict[str, ServiceHolders]:
    return {
        service: ServiceHolders(sorted(holders, key=lambda database: database.name))
        for service, holders in holding.items()
    }


class NameAddress(Enum):
    """The address that a service name holds, for TRANSPORT routes (section 3)."""

    NONE = "none"
    ELSEWHERE = "elsewhere"
    OWN = "own"


def address_of_name(service: str, instance_addresses: frozenset[str]) -> NameAddress:
    """Return whether a service name holds an address, and whether it is one of the instance's own."""
    address = text.address_in_name(service)
    if address is None:
        return NameAddress.NONE
    return NameAddress.OWN if text.comparable_address(address) in instance_addresses else NameAddress.ELSEWHERE


IMPLIED_LOCAL = EstateRoute.implied(LOCAL_ADDRESS)
"""The LOCAL route to the service that step 6 implies."""
REPLY = EstateRoute.implied(None)
"""The implied route of a reply, which is delivered without a route (section 1)."""
ARRIVALS = MSDB
"""The database whose routes are searched for messages that arrive over the network."""
