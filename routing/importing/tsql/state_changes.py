"""Apply each statement to an instance's rows. A refused statement raises RefusalError.

Error numbers are those of SQL Server for the case, if any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from routing.importing.tsql import script_statements as statements
from routing.importing.tsql.instance_state import (
    DATABASES,
    ROUTES,
    SERVICES,
    DatabaseState,
    EndpointState,
    NamedRows,
    RouteState,
    ServiceState,
)
from routing.importing.tsql.script_statements import RefusalError, ScriptStatement, UntoldError, quote

# Apply statements to an instance's databases. Refused ones raise RefusalError.


DEFAULT_ROUTE = "AutoCreatedLocal"
"""The route to LOCAL that the server puts into each new database."""

_DATABASE_EXISTS, _NONE_TO_DROP, _NONE_TO_ALTER, _NONE_TO_DETACH = 1801, 3701, 5011, 15010
_NEW_ID = "the server creates its service_broker_guid, which only an export of sys.databases shows"
_ENDED = "its conversations end with an error: its dialogs and messages stay in the tables until the next export"
_MOVED = (
    "its routes and services are renamed too; its dialogs and messages keep the old name until the next export"
)


def _create(holdings: NamedRows, statement: statements.CreateDatabase) -> str:
    name = statement.name
    if holdings.holds_database(name):
        raise RefusalError("the database already exists", _DATABASE_EXISTS)
    holdings.put(DatabaseState(name, None))
    holdings.put(RouteState(name, DEFAULT_ROUTE, "LOCAL"))
    for view in (ROUTES, SERVICES):
        holdings.note_stated(view, name, "")
    return _NEW_ID


def _drop(holdings: NamedRows, statement: statements.DropDatabase | statements.DetachDatabase) -> str | None:
    is_detached = isinstance(statement, statements.DetachDatabase)
    is_missing = not holdings.holds_database(statement.name)
    is_told = holdings.knows(DATABASES, "", statement.name)
    if is_missing and is_told and not getattr(statement, "if_exists", False):
        raise RefusalError("the instance has no such database", _NONE_TO_DETACH if is_detached else _NONE_TO_DROP)
    holdings.remove_database(statement.name)
    if not is_missing or is_told:
        return None
    return "it is unknown whether the instance has such a database; from here on it has none"


def _rename(holdings: NamedRows, statement: statements.RenameDatabase) -> str:
    name, new_name = statement.name, statement.new_name
    if not holdings.holds_database(name):
        raise _no_database_to_alter(holdings, name)
    if name.casefold() != new_name.casefold() and holdings.holds_database(new_name):
        raise RefusalError(f"the database {quote(new_name)} already exists", _DATABASE_EXISTS)
    holdings.rename_database(name, new_name)
    return f"its name is {quote(new_name)} from here on: {_MOVED}"


def _set_broker(holdings: NamedRows, statement: statements.AlterDatabase) -> str | None:
    database = holdings.find(DatabaseState, "", statement.name)
    if database is None:
        raise _no_database_to_alter(holdings, statement.name)
    changed = replace(database, is_broker_enabled=statement.setting is not statements.BrokerSetting.DISABLE)
    if statement.setting is statements.BrokerSetting.NEW:
        changed = replace(changed, service_broker_guid=None)
    holdings.put(changed, instead_of=database)
    return {statements.BrokerSetting.NEW: _NEW_ID, statements.BrokerSetting.ERROR: _ENDED}.get(statement.setting)


def _no_database_to_alter(holdings: NamedRows, name: str) -> RefusalError:
    why = "no such database is known: export sys.databases"
    is_told = holdings.knows(DATABASES, "", name) and not holdings.holds_database(name)
    return RefusalError(why, _NONE_TO_ALTER) if is_told else UntoldError(why)


# Apply statements to an instance's endpoints. Refused ones raise RefusalError.


_ENDPOINT_MISSING, _SECOND = 15151, 7862
_NO_TABLE = "no table stores whether an endpoint is STARTED"
_WHICH_ENDPOINT = "whether it is the SERVICE_BROKER endpoint is not known"


def _create_endpoint(holdings: NamedRows, statement: statements.CreateEndpoint) -> str | None:
    endpoint = holdings.endpoint
    if holdings.is_other_endpoint(statement.name) or _is_called(endpoint, statement.name):
        raise RefusalError("the endpoint already exists", by_server=True)
    if not statement.for_service_broker:
        holdings.others[statement.name.casefold()] = statement.name
        return None
    if endpoint is not None and (endpoint.name is not None or endpoint.is_message_forwarding_enabled):
        which = "which forwards messages" if endpoint.name is None else quote(endpoint.name)
        raise RefusalError(f"the instance already has a SERVICE_BROKER endpoint, {which}", _SECOND)
    forwards = bool(statement.is_message_forwarding_enabled)
    holdings.endpoint = EndpointState(statement.name, forwards)
    return None if statement.state == "STARTED" else f"it becomes {statement.state}; {_NO_TABLE}"


def _alter_endpoint(holdings: NamedRows, statement: statements.AlterEndpoint) -> str | None:
    endpoint = holdings.endpoint
    is_named = _is_called(endpoint, statement.name)
    if statement.for_service_broker is False or holdings.is_other_endpoint(statement.name):
        return None
    if endpoint is None or (endpoint.name is not None and not is_named):
        raise RefusalError("the instance has no such endpoint", _ENDPOINT_MISSING)
    remark = f"STATE = {statement.state}: {_NO_TABLE}" if statement.state else None
    if statement.for_service_broker is None and not is_named:
        if statement.listener_port is None:
            return remark
        raise UntoldError(_WHICH_ENDPOINT)
    forwarding = statement.is_message_forwarding_enabled
    holdings.endpoint = EndpointState(
        endpoint.name or statement.name,
        endpoint.is_message_forwarding_enabled if forwarding is None else forwarding,
    )
    return remark


def _drop_endpoint(holdings: NamedRows, statement: statements.DropEndpoint) -> str | None:
    endpoint = holdings.endpoint
    if holdings.is_other_endpoint(statement.name):
        holdings.others.pop(statement.name.casefold(), None)
    elif _is_called(endpoint, statement.name):
        holdings.endpoint = None
    elif endpoint is None or endpoint.name is not None:
        raise RefusalError("the instance has no such endpoint", _ENDPOINT_MISSING)
    elif endpoint == EndpointState():
        # Nothing is known of the endpoint, so nothing that is known changes.
        return _WHICH_ENDPOINT
    else:
        raise UntoldError(_WHICH_ENDPOINT)
    return None


def _is_called(endpoint: EndpointState | None, name: str) -> bool:
    called = endpoint.name if endpoint else None
    return called is not None and called.casefold() == name.casefold()


NOTHING_TELLS = "it is unknown"
"""The start of remarks on facts that no import has."""

_EXISTS, _MISSING = 15530, 15151


def _database_of(holdings: NamedRows, statement: ScriptStatement) -> str:
    if statement.database is None:
        raise UntoldError("its database is unknown: there is no USE before it, and none was given")
    return holdings.spell(statement.database)


def _change_route(
    holdings: NamedRows, statement: statements.CreateRoute | statements.AlterRoute | statements.DropRoute
) -> str | None:
    database = _database_of(holdings, statement)
    if isinstance(statement, statements.CreateRoute):
        same = holdings.named(RouteState, database, statement.name)
        if same:
            raise RefusalError(f"the route {quote(same[0].name)} already exists", _EXISTS)
        holdings.put(_alter(RouteState(database, statement.name, ""), statement))
        return None
    route = holdings.find(RouteState, database, statement.name)
    if route is None:
        return _miss(holdings, ROUTES, database, statement)
    if isinstance(statement, statements.DropRoute):
        holdings.remove(route)
        return None
    altered = _alter(route, statement)
    statements.check_route(
        altered.remote_service_name, altered.broker_instance, altered.address, altered.mirror_address
    )
    holdings.put(altered, instead_of=route)
    return None


def _miss(holdings: NamedRows, view: str, database: str, statement: ScriptStatement) -> str:
    """Apply ALTER or DROP to an unknown object, and return a remark if SQL Server may accept it."""
    noun = "route" if view == ROUTES else "service"
    if holdings.knows(view, database, statement.name):
        raise RefusalError(f"the database {quote(database)} has no such {noun}", _MISSING)
    if isinstance(statement, statements.AlterRoute):
        why = f"no such route is known in the database {quote(database)}, so its other options are unknown"
        raise UntoldError(why)
    holdings.note_stated(view, database, statement.name)
    return f"{NOTHING_TELLS} whether the database {quote(database)} has such a {noun}; from here on it has none"


def _alter(route: RouteState, statement: statements.CreateRoute | statements.AlterRoute) -> RouteState:
    options = statement.options
    return replace(
        route,
        address=options.address or route.address,
        remote_service_name=options.service_name or route.remote_service_name,
        broker_instance=options.broker_instance or route.broker_instance,
        lifetime=options.lifetime or route.lifetime,
        mirror_address=options.mirror_address or route.mirror_address,
    )


def _change_service(
    holdings: NamedRows, statement: statements.CreateService | statements.DropService
) -> str | None:
    database = _database_of(holdings, statement)
    service = holdings.find(ServiceState, database, statement.name)
    if isinstance(statement, statements.CreateService):
        if service is not None:
            raise RefusalError("the service already exists", _EXISTS)
        holdings.put(ServiceState(database, statement.name))
        return None
    if service is not None:
        holdings.remove(service)
        return None
    return _miss(holdings, SERVICES, database, statement)


_CHANGES: Mapping[type[ScriptStatement], Callable[..., str | None]] = {
    **dict.fromkeys((statements.CreateRoute, statements.AlterRoute, statements.DropRoute), _change_route),
    **dict.fromkeys((statements.CreateService, statements.DropService), _change_service),
    statements.CreateEndpoint: _create_endpoint,
    statements.AlterEndpoint: _alter_endpoint,
    statements.DropEndpoint: _drop_endpoint,
    statements.CreateDatabase: _create,
    **dict.fromkeys((statements.DropDatabase, statements.DetachDatabase), _drop),
    statements.RenameDatabase: _rename,
    statements.AlterDatabase: _set_broker,
    statements.AlterDatabaseState: lambda _, statement: (
        f"SET {statement.state} is reported but not applied: no table stores it"
    ),
}


def change(holdings: NamedRows, statement: ScriptStatement) -> str | None:
    """Apply one statement, and return a remark or None."""
    return _CHANGES[type(statement)](holdings, statement)
