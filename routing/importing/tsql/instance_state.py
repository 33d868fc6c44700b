"""Hold the state of one instance, as far as scripts can change it. Columns have their names in the tables."""

from __future__ import annotations

from collections.abc import Mapping
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
    """The instance's SERVICE_BROKER endpoint. Its name is None if it is unknown."""

    name: str | None = None
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


Row = RouteState | ServiceState | DatabaseState
_Row = TypeVar("_Row", RouteState, ServiceState, DatabaseState)
_Key = tuple[str, str, str]
_VIEWS: Mapping[type[Row], str] = {RouteState: ROUTES, ServiceState: SERVICES, DatabaseState: DATABASES}


def _key(view: str, database: str, name: str) -> _Key:
    """Return what identifies an object: services by their exact name, all others in any case."""
    return view, database.casefold(), name if view == SERVICES else name.casefold()


class NamedRows:
    """The rows by name: of routes and databases in any case, of services exactly.

    ``endpoint`` is as in InstanceState, and ``others`` are its ``other_endpoints`` by folded name.
    """

    def __init__(self, state: InstanceState) -> None:
        self._rows: dict[_Key, list[Row]] = {}
        self._spellings: dict[str, str] = {}
        self.endpoint = state.endpoint
        self.others: dict[str, str] = {name.casefold(): name for name in state.other_endpoints}
        self._stated_names: set[_Key] = set()
        rows: list[Row] = [*state.databases, *state.routes, *state.services]
        for row in rows:
            self.put(row)
        self._in_part = state.in_part
        in_part = {(view, database.casefold()) for view, database in state.in_part}
        self._whole = ({key[:2] for key in self._rows} - in_part) | state.complete_views
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
        whole, key = _key(view, database, ""), _key(view, database, name)
        return whole[:2] in self._whole or not self._stated_names.isdisjoint([whole, key])

    def note_stated(self, view: str, database: str, name: str) -> None:
        """Note that the script shows whether an object exists."""
        self._stated_names.add(_key(view, database, name))

    def state(self) -> InstanceState:
        """Return the state as one value."""
        return InstanceState(
            routes=tuple(self._rows_of(RouteState)),
            services=tuple(self._rows_of(ServiceState)),
            databases=tuple(self._rows_of(DatabaseState)),
            endpoint=self.endpoint,
            other_endpoints=frozenset(self.others.values()),
            in_part=self._in_part,
            complete_views=frozenset(self._whole | {key[:2] for key in self._stated_names if key[2] == ""}),
        )

    def _rows_of(self, kind: type[_Row]) -> list[_Row]:
        return [row for rows in self._rows.values() for row in rows if isinstance(row, kind)]

    def spell(self, database: str) -> str:
        """Return a database's name as the rows spell it, those of databases first, else as given."""
        row = self.find(DatabaseState, "", database)
        return row.name if row else self._spellings.get(database.casefold(), database)

    def holds_database(self, name: str) -> bool:
        """Return True if there is such a database, even if only its routes or services are known."""
        return name.casefold() in self._spellings

    def is_other_endpoint(self, name: str) -> bool:
        """Return True if this is the name of an endpoint for something other than Service Broker."""
        return name.casefold() in self.others

    def named(self, kind: type[_Row], database: str, name: str) -> list[_Row]:
        """Return the rows of this name. A database is in no database."""
        return [row for row in self._rows.get(_key(_VIEWS[kind], database, name), ()) if isinstance(row, kind)]

    def find(self, kind: type[_Row], database: str, name: str) -> _Row | None:
        """Return the row with this name. Exact case wins among names that differ only in case."""
        rows = self.named(kind, database, name)
        candidates = [row for row in rows if row.name == name] or rows
        return candidates[0] if len(candidates) == 1 else None

    def put(self, row: Row, instead_of: Row | None = None) -> None:
        """Add a row, in the place of another if given. There is one service of a name."""
        database = "" if isinstance(row, DatabaseState) else row.database_name
        key = _key(_VIEWS[type(row)], database, row.name)
        others = () if isinstance(row, ServiceState) else self._rows.get(key, ())
        self._rows[key] = [*(other for other in others if other is not instead_of), row]
        self._spellings.setdefault((database or row.name).casefold(), database or row.name)
        self._stated_names.add(key)

    def remove(self, row: RouteState | ServiceState) -> None:
        """Remove a route or service."""
        key = _key(_VIEWS[type(row)], row.database_name, row.name)
        self._rows[key] = [other for other in self._rows[key] if other is not row]
        self._stated_names.add(key)

    def remove_database(self, name: str) -> None:
        """Remove a database, with its routes and services."""
        key = _key(DATABASES, "", name)
        self._spellings.pop(key[2], None)
        self._rows = {other: rows for other, rows in self._rows.items() if other != key and other[1] != key[2]}
        self._stated_names.add(key)

    def rename_database(self, name: str, new_name: str) -> None:
        """Rename a database, together with its routes and services."""
        database = self.find(DatabaseState, "", name)
        contents: list[RouteState | ServiceState] = [*self._rows_of(RouteState), *self._rows_of(ServiceState)]
        is_whole = [view for view in (ROUTES, SERVICES) if self.knows(view, name)]
        self.remove_database(name)
        self._spellings[new_name.casefold()] = new_name
        if database is not None:
            self.put(replace(database, name=new_name))
        for row in contents:
            if row.database_name.casefold() == name.casefold():
                self.put(replace(row, database_name=new_name))
        for view in is_whole:
            self.note_stated(view, new_name, "")


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
        row = holdings.find(DatabaseState, "", guard.name)
        return row.is_broker_enabled if row else None
    if guard.subject is GuardSubject.ENDPOINT:
        return _has_endpoint(holdings, guard.name)
    if guard.subject is GuardSubject.BROKER_ENDPOINT:
        return _has_broker_endpoint(holdings, guard.name)
    if database is None:
        return None
    if guard.subject is GuardSubject.ROUTE:
        return holdings.find(RouteState, database, guard.name) is not None
    return holdings.find(ServiceState, database, guard.name) is not None


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
