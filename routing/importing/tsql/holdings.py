"""An instance's rows while statements change them, found as SQL Server finds names."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from routing.importing.tsql.state import Database, Endpoint, InstanceState, Route, Service

_Row = TypeVar("_Row", Route, Database)


class Holdings:
    """The rows by name: of routes and databases in any case, of services exactly.

    ``endpoint`` and ``other_endpoints`` are as in InstanceState.
    """

    def __init__(self, state: InstanceState) -> None:
        self._routes: dict[tuple[str, str], list[Route]] = {}
        self._services: dict[tuple[str, str], Service] = {}
        self._databases: dict[str, list[Database]] = {}
        self._spellings: dict[str, str] = {}
        self.endpoint: Endpoint | None = state.endpoint
        self.other_endpoints = set(state.other_endpoints)
        for database in state.databases:
            self.put_database(database)
        for route in state.routes:
            self.put_route(route)
        for service in state.services:
            self.put_service(service)

    def state(self) -> InstanceState:
        """All of it as one value."""
        return InstanceState(
            routes=tuple(route for rows in self._routes.values() for route in rows),
            services=tuple(self._services.values()),
            databases=tuple(database for rows in self._databases.values() for database in rows),
            endpoint=self.endpoint,
            other_endpoints=frozenset(self.other_endpoints),
        )

    def spell(self, database: str) -> str:
        """A database's name as the rows spell it, those of databases first, else as given."""
        row = self.database(database)
        return row.name if row else self._spellings.get(database.casefold(), database)

    def holds_database(self, name: str) -> bool:
        """Whether there is such a database, be it by its routes or services alone."""
        return name.casefold() in self._spellings

    def is_other_endpoint(self, name: str) -> bool:
        """Whether this is the name of an endpoint for something other than Service Broker."""
        return name.casefold() in {other.casefold() for other in self.other_endpoints}

    def database(self, name: str) -> Database | None:
        """The database of this name; of several that differ in case, the one spelled so."""
        return _find_named(self._databases.get(name.casefold(), []), name)

    def routes_named(self, database: str, name: str) -> list[Route]:
        """The routes of this name in any case."""
        return self._routes.get((database.casefold(), name.casefold()), [])

    def route(self, database: str, name: str) -> Route | None:
        """The route of this name; of several that differ in case, the one spelled so."""
        return _find_named(self.routes_named(database, name), name)

    def service(self, database: str, name: str) -> Service | None:
        """The service of exactly this name."""
        return self._services.get((database.casefold(), name))

    def put_route(self, route: Route, instead_of: Route | None = None) -> None:
        """Add a route, in the place of another if given."""
        key = (route.database_name.casefold(), route.name.casefold())
        rows = [row for row in self._routes.get(key, []) if row is not instead_of]
        self._routes[key] = [*rows, route]
        self._spellings.setdefault(key[0], route.database_name)

    def put_service(self, service: Service) -> None:
        """Add a service."""
        folded = service.database_name.casefold()
        self._services[(folded, service.name)] = service
        self._spellings.setdefault(folded, service.database_name)

    def put_database(self, database: Database, instead_of: Database | None = None) -> None:
        """Add a database, in the place of another if given."""
        key = database.name.casefold()
        rows = [row for row in self._databases.get(key, []) if row is not instead_of]
        self._databases[key] = [*rows, database]
        self._spellings.setdefault(key, database.name)

    def remove_route(self, route: Route) -> None:
        """Take a route away."""
        key = (route.database_name.casefold(), route.name.casefold())
        self._routes[key] = [row for row in self._routes[key] if row is not route]
        if not self._routes[key]:
            del self._routes[key]

    def remove_service(self, service: Service) -> None:
        """Take a service away."""
        del self._services[(service.database_name.casefold(), service.name)]

    def remove_database(self, name: str) -> None:
        """Take a database away, with its routes and services."""
        folded = name.casefold()
        self._databases.pop(folded, None)
        self._spellings.pop(folded, None)
        self._routes = {key: rows for key, rows in self._routes.items() if key[0] != folded}
        self._services = {key: row for key, row in self._services.items() if key[0] != folded}

    def rename_database(self, name: str, new_name: str) -> None:
        """Give a database another name; its routes and services go along."""
        state = self.state()
        routes = [row for row in state.routes if row.database_name.casefold() == name.casefold()]
        services = [row for row in state.services if row.database_name.casefold() == name.casefold()]
        database = self.database(name)
        self.remove_database(name)
        self._spellings[new_name.casefold()] = new_name
        if database is not None:
            self.put_database(replace(database, name=new_name))
        for route in routes:
            self.put_route(replace(route, database_name=new_name))
        for service in services:
            self.put_service(replace(service, database_name=new_name))


def _find_named(rows: list[_Row], name: str) -> _Row | None:
    exact = [row for row in rows if row.name == name]
    candidates = exact or rows
    return candidates[0] if len(candidates) == 1 else None
