"""Hold the state of one instance, as far as scripts can change it. Columns have their names in the tables."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from routing.importing.tsql.script_statements import ConditionGuard, GuardSubject, quote

ROUTES, SERVICES, DATABASES = "routes", "services", "databases"


@dataclass(frozen=True)
class RouteState:
    """A row of sys.routes. ``lifetime`` is the expiry in UTC, with a time zone."""

    database_name: str
    name: str
    address: str
    remote_service_name: str | None = None
    broker_instance: str | None = None
    lifetime: datetime | None = None
    mirror_address: str | None = None


@dataclass(frozen=True)
class ServiceState:
    """A row of sys.services."""

    database_name: str
    name: str


@dataclass(frozen=True)
class DatabaseState:
    """A row of sys.databases. ``service_broker_guid`` is None if the server made a new one."""

    name: str
    service_broker_guid: str | None
    is_broker_enabled: bool = True
    database_id: int | None = None


@dataclass(frozen=True)
class EndpointState:
    """The instance's SERVICE_BROKER endpoint. Its name and port are None if they are unknown."""

    name: str | None = None
    listener_port: int | None = None
    is_message_forwarding_enabled: bool = False


@dataclass(frozen=True)
class InstanceState:
    """The state of one instance.

    ``endpoint`` is None without an endpoint, and ``Endpoint()`` if it is unknown. ``other_endpoints`` are the
    names of endpoints for other payloads. A view with rows is complete, except for the views ``in_part``, each
    with its database (an empty text for the view of databases). ``complete_views`` names views that are complete
    without rows.
    """

    routes: tuple[RouteState, ...] = ()
    services: tuple[ServiceState, ...] = ()
    databases: tuple[DatabaseState, ...] = ()
    endpoint: EndpointState | None = None
    other_endpoints: frozenset[str] = frozenset()
    in_part: frozenset[tuple[str, str]] = frozenset()
    complete_views: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)


# An instance's rows while statements change them; names are looked up as SQL Server does.


_Row = TypeVar("_Row", RouteState, DatabaseState)


class NamedRows:
    """The rows by name: of routes and databases in any case, of services exactly.

    ``endpoint`` is as in InstanceState, and ``others`` are its ``other_endpoints`` by folded name.
    """

    def __init__(self, state: InstanceState) -> None:
        self._routes: dict[tuple[str, str], list[RouteState]] = {}
        self._services: dict[tuple[str, str], ServiceState] = {}
        self._databases: dict[str, list[DatabaseState]] = {}
        self._spellings: dict[str, str] = {}
        self.endpoint = state.endpoint
        self.others: dict[str, str] = {name.casefold(): name for name in state.other_endpoints}
        self._stated_names: set[tuple[str, str, str]] = set()
        for database in state.databases:
            self.put_database(database)
        for route in state.routes:
            self.put_route(route)
        for service in state.services:
            self.put_service(service)
        self._in_part = state.in_part
        self._whole = _find_whole(state)
        self._stated_names.clear()

    def copy(self) -> NamedRows:
        """Return an independent copy."""
        state_copy = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, (dict, set)):
                setattr(state_copy, name, value.copy())
        return state_copy

    def knows(self, view: str, database: str, name: str = "") -> bool:
        """Return True if the import or the script shows whether an object with this name exists."""
        database = database.casefold()
        key = (view, database, name if view == SERVICES else name.casefold())
        return (
            (view, database) in self._whole
            or (view, database, "") in self._stated_names
            or key in self._stated_names
        )

    def note_stated(self, view: str, database: str, name: str) -> None:
        """Note that the script shows whether an object exists."""
        self._stated_names.add((view, database.casefold(), name if view == SERVICES else name.casefold()))

    def note_new_database(self, name: str) -> None:
        """Note that the script created a database, so that all of its contents are known."""
        for view in (ROUTES, SERVICES):
            self.note_stated(view, name, "")

    def state(self) -> InstanceState:
        """Return the state as one value."""
        return InstanceState(
            routes=tuple(route for rows in self._routes.values() for route in rows),
            services=tuple(self._services.values()),
            databases=tuple(database for rows in self._databases.values() for database in rows),
            endpoint=self.endpoint,
            other_endpoints=frozenset(self.others.values()),
            in_part=self._in_part,
            complete_views=frozenset(self._whole | {key[:2] for key in self._stated_names if key[2] == ""}),
        )

    def spell(self, database: str) -> str:
        """Return a database's name as the rows spell it, those of databases first, else as given."""
        row = self.database(database)
        return row.name if row else self._spellings.get(database.casefold(), database)

    def holds_database(self, name: str) -> bool:
        """Return True if there is such a database, even if only its routes or services are known."""
        return name.casefold() in self._spellings

    def is_other_endpoint(self, name: str) -> bool:
        """Return True if this is the name of an endpoint for something other than Service Broker."""
        return name.casefold() in self.others

    def database(self, name: str) -> DatabaseState | None:
        """Return the database with this name. Exact case wins among names that differ only in case."""
        return _find_named(self._databases.get(name.casefold(), []), name)

    def routes_named(self, database: str, name: str) -> list[RouteState]:
        """Return the routes of this name in any case."""
        return self._routes.get((database.casefold(), name.casefold()), [])

    def route(self, database: str, name: str) -> RouteState | None:
        """Return the route with this name. Exact case wins among names that differ only in case."""
        return _find_named(self.routes_named(database, name), name)

    def service(self, database: str, name: str) -> ServiceState | None:
        """Return the service of exactly this name."""
        return self._services.get((database.casefold(), name))

    def put_route(self, route: RouteState, instead_of: RouteState | None = None) -> None:
        """Add a route, in the place of another if given."""
        key = (route.database_name.casefold(), route.name.casefold())
        rows = [row for row in self._routes.get(key, []) if row is not instead_of]
        self._routes[key] = [*rows, route]
        self._spellings.setdefault(key[0], route.database_name)
        self.note_stated(ROUTES, *key)

    def put_service(self, service: ServiceState) -> None:
        """Add or replace a service."""
        folded = service.database_name.casefold()
        self._services[(folded, service.name)] = service
        self._spellings.setdefault(folded, service.database_name)
        self.note_stated(SERVICES, folded, service.name)

    def put_database(self, database: DatabaseState, instead_of: DatabaseState | None = None) -> None:
        """Add a database, in the place of another if given."""
        key = database.name.casefold()
        rows = [row for row in self._databases.get(key, []) if row is not instead_of]
        self._databases[key] = [*rows, database]
        self._spellings.setdefault(key, database.name)
        self.note_stated(DATABASES, "", key)

    def remove_route(self, route: RouteState) -> None:
        """Remove a route."""
        key = (route.database_name.casefold(), route.name.casefold())
        self._routes[key] = [row for row in self._routes[key] if row is not route]
        self.note_stated(ROUTES, *key)

    def remove_service(self, service: ServiceState) -> None:
        """Remove a service."""
        self._services.pop((service.database_name.casefold(), service.name), None)

    def remove_database(self, name: str) -> None:
        """Remove a database, with its routes and services."""
        folded = name.casefold()
        self._databases.pop(folded, None)
        self._spellings.pop(folded, None)
        for key in [key for key in self._routes if key[0] == folded]:
            self._routes.pop(key, None)
        for key in [key for key in self._services if key[0] == folded]:
            self._services.pop(key, None)
        self.note_stated(DATABASES, "", folded)

    def rename_database(self, name: str, new_name: str) -> None:
        """Rename a database, together with its routes and services."""
        state = self.state()
        routes = [row for row in state.routes if row.database_name.casefold() == name.casefold()]
        services = [row for row in state.services if row.database_name.casefold() == name.casefold()]
        database = self.database(name)
        is_whole = [view for view in (ROUTES, SERVICES) if self.knows(view, name)]
        self.remove_database(name)
        self._spellings[new_name.casefold()] = new_name
        if database is not None:
            self.put_database(replace(database, name=new_name))
        for route in routes:
            self.put_route(replace(route, database_name=new_name))
        for service in services:
            self.put_service(replace(service, database_name=new_name))
        for view in is_whole:
            self.note_stated(view, new_name, "")


def _find_whole(state: InstanceState) -> set[tuple[str, str]]:
    whole_views = {(ROUTES, route.database_name.casefold()) for route in state.routes}
    whole_views |= {(SERVICES, service.database_name.casefold()) for service in state.services}
    whole_views |= {(DATABASES, "")} if state.databases else set()
    return (whole_views - {(view, database.casefold()) for view, database in state.in_part}) | state.complete_views


def _find_named(rows: list[_Row], name: str) -> _Row | None:
    exact = [row for row in rows if row.name == name]
    candidates = exact or rows
    return candidates[0] if len(candidates) == 1 else None


# Answer conditions from a state, and describe conditions that it cannot answer.


def phrase_guard(guard: ConditionGuard) -> str:
    """Return a condition as a clause: ``the route 'r' exists``."""
    if guard.subject is GuardSubject.BROKER:
        return f"the broker of {quote(guard.name)} is {'' if guard.holds else 'not '}enabled"
    if guard.subject is GuardSubject.MIGRATION:
        return f"the migration {quote(guard.name)} is {'' if guard.holds else 'not '}in the table of migrations"
    if guard.name == "":
        return f"there is {'a' if guard.holds else 'no'} {guard.subject.value}"
    return f"the {guard.subject.value} {quote(guard.name)} {'exists' if guard.holds else 'does not exist'}"


def answer_guard(holdings: NamedRows, guard: ConditionGuard) -> bool | None:
    """Return True if the object exists or its broker is enabled, or None if the state cannot decide."""
    database = guard.database
    if guard.subject is GuardSubject.MIGRATION:
        return None
    if guard.subject is GuardSubject.DATABASE:
        return holdings.holds_database(guard.name)
    if guard.subject is GuardSubject.BROKER:
        row = holdings.database(guard.name)
        return row.is_broker_enabled if row else None
    if guard.subject is GuardSubject.ENDPOINT:
        return _has_endpoint(holdings, guard.name)
    if guard.subject is GuardSubject.BROKER_ENDPOINT:
        return _has_broker_endpoint(holdings, guard.name)
    if database is None:
        return None
    if guard.subject is GuardSubject.ROUTE:
        return holdings.route(database, guard.name) is not None
    return holdings.service(database, guard.name) is not None


def _has_endpoint(holdings: NamedRows, name: str) -> bool | None:
    endpoint = holdings.endpoint
    if holdings.is_other_endpoint(name):
        return True
    if endpoint is not None and endpoint.name is None:
        return None
    return endpoint is not None and endpoint.name is not None and endpoint.name.casefold() == name.casefold()


def _has_broker_endpoint(holdings: NamedRows, name: str) -> bool | None:
    """Return True if an endpoint with this or any name exists. A forwarding endpoint counts under any name."""
    endpoint = holdings.endpoint
    if endpoint is None or (name and holdings.is_other_endpoint(name)):
        return False
    if endpoint.name is None:
        return None if name or not endpoint.is_message_forwarding_enabled else True
    return not name or endpoint.name.casefold() == name.casefold()
