"""What each statement does to an instance's rows; raises RefusalError for what is refused.

Numbers are the engine's where it has one for the case.
"""

from __future__ import annotations

from dataclasses import replace

from routing.importing.tsql.holdings import Holdings
from routing.importing.tsql.refusal import RefusalError
from routing.importing.tsql.route_rules import check_route
from routing.importing.tsql.state import Database, Endpoint, Route, Service
from routing.importing.tsql.statements import (
    AlterDatabase,
    AlterEndpoint,
    AlterRoute,
    BrokerSetting,
    CreateDatabase,
    CreateEndpoint,
    CreateRoute,
    CreateService,
    DropDatabase,
    DropEndpoint,
    DropRoute,
    DropService,
    Statement,
    quote,
)

DEFAULT_ROUTE = "AutoCreatedLocal"
"""The route to LOCAL that the server puts into each new database."""

_EXISTS, _MISSING = 15530, 15151
_DATABASE_EXISTS, _NONE_TO_DROP, _NONE_TO_ALTER = 1801, 3701, 5011
_NEW_ID = "the server draws its service_broker_guid, which only an export of sys.databases tells"


def change(holdings: Holdings, statement: Statement) -> str | None:
    """Apply one statement; gives a remark on it, or None."""
    if isinstance(statement, (CreateRoute, AlterRoute, DropRoute)):
        _change_route(holdings, statement)
    elif isinstance(statement, (CreateService, DropService)):
        _change_service(holdings, statement)
    elif isinstance(statement, CreateEndpoint):
        _create_endpoint(holdings, statement)
    elif isinstance(statement, AlterEndpoint):
        _alter_endpoint(holdings, statement)
    elif isinstance(statement, DropEndpoint):
        _drop_endpoint(holdings, statement)
    elif isinstance(statement, (CreateDatabase, AlterDatabase, DropDatabase)):
        return _change_database(holdings, statement)
    else:
        raise TypeError(f"no change is known for {type(statement).__name__}")
    return None


def _database_of(holdings: Holdings, statement: Statement) -> str:
    if statement.database is None:
        raise RefusalError("its database is not known: no USE stands before it, nor was one given")
    return holdings.spell(statement.database)


def _change_route(holdings: Holdings, statement: CreateRoute | AlterRoute | DropRoute) -> None:
    database = _database_of(holdings, statement)
    if isinstance(statement, CreateRoute):
        same = holdings.routes_named(database, statement.name)
        if same:
            raise RefusalError(f"the route {quote(same[0].name)} exists already", _EXISTS)
        holdings.put_route(_alter(Route(database, statement.name, ""), statement))
        return
    route = holdings.route(database, statement.name)
    if route is None:
        raise RefusalError(f"the database {quote(database)} has no such route", _MISSING)
    if isinstance(statement, DropRoute):
        holdings.remove_route(route)
        return
    altered = _alter(route, statement)
    check_route(
        altered.remote_service_name,
        altered.broker_instance,
        altered.address,
        altered.mirror_address,
    )
    holdings.put_route(altered, instead_of=route)


def _alter(route: Route, statement: CreateRoute | AlterRoute) -> Route:
    """The route with the given options; those not given stay."""
    options = statement.options
    return replace(
        route,
        address=options.address or route.address,
        remote_service_name=options.service_name or route.remote_service_name,
        broker_instance=options.broker_instance or route.broker_instance,
        lifetime=options.lifetime or route.lifetime,
        mirror_address=options.mirror_address or route.mirror_address,
    )


def _change_service(holdings: Holdings, statement: CreateService | DropService) -> None:
    database = _database_of(holdings, statement)
    service = holdings.service(database, statement.name)
    if isinstance(statement, DropService):
        if service is None:
            raise RefusalError(f"the database {quote(database)} has no such service", _MISSING)
        holdings.remove_service(service)
    elif service is not None:
        raise RefusalError("the service exists already", _EXISTS)
    else:
        holdings.put_service(Service(database, statement.name))


def _create_endpoint(holdings: Holdings, statement: CreateEndpoint) -> None:
    standing = holdings.endpoint
    if holdings.is_other_endpoint(statement.name) or _is_called(standing, statement.name):
        raise RefusalError("the endpoint exists already")
    if not statement.for_service_broker:
        holdings.other_endpoints.add(statement.name)
        return
    if standing is not None and standing.name is not None:
        raise RefusalError(f"the instance has a SERVICE_BROKER endpoint already, {quote(standing.name)}")
    holdings.endpoint = Endpoint(
        statement.name, statement.listener_port, bool(statement.is_message_forwarding_enabled)
    )


def _alter_endpoint(holdings: Holdings, statement: AlterEndpoint) -> None:
    standing = holdings.endpoint
    is_named = _is_called(standing, statement.name)
    if statement.for_service_broker is False or holdings.is_other_endpoint(statement.name):
        return
    if standing is not None and standing.name is not None and not is_named:
        raise RefusalError("the instance has no such endpoint", _MISSING)
    if statement.for_service_broker is None and not is_named:
        if statement.listener_port is None:
            return
        raise RefusalError("whether it is the SERVICE_BROKER endpoint is not known")
    endpoint = standing or Endpoint()
    port, forwarding = statement.listener_port, statement.is_message_forwarding_enabled
    holdings.endpoint = Endpoint(
        endpoint.name or statement.name,
        endpoint.listener_port if port is None else port,
        endpoint.is_message_forwarding_enabled if forwarding is None else forwarding,
    )


def _drop_endpoint(holdings: Holdings, statement: DropEndpoint) -> None:
    standing = holdings.endpoint
    if holdings.is_other_endpoint(statement.name):
        folded = statement.name.casefold()
        others = holdings.other_endpoints
        holdings.other_endpoints = {name for name in others if name.casefold() != folded}
    elif _is_called(standing, statement.name):
        holdings.endpoint = None
    elif standing is not None and standing.name is None:
        raise RefusalError("whether it is the SERVICE_BROKER endpoint is not known")
    else:
        raise RefusalError("the instance has no such endpoint", _MISSING)


def _is_called(endpoint: Endpoint | None, name: str) -> bool:
    called = endpoint.name if endpoint else None
    return called is not None and called.casefold() == name.casefold()


def _change_database(holdings: Holdings, statement: CreateDatabase | AlterDatabase | DropDatabase) -> str | None:
    name = statement.name
    if isinstance(statement, CreateDatabase):
        if holdings.holds_database(name):
            raise RefusalError("the database exists already", _DATABASE_EXISTS)
        holdings.put_database(Database(name, None))
        holdings.put_route(Route(name, DEFAULT_ROUTE, "LOCAL"))
        return _NEW_ID
    if isinstance(statement, DropDatabase):
        if not holdings.holds_database(name) and not statement.if_exists:
            raise RefusalError("the instance has no such database", _NONE_TO_DROP)
        holdings.remove_database(name)
        return None
    database = holdings.database(name)
    if database is None:
        raise RefusalError("no such database is known: an export of sys.databases tells", _NONE_TO_ALTER)
    is_enabled = statement.setting is not BrokerSetting.DISABLE
    changed = replace(database, is_broker_enabled=is_enabled)
    if statement.setting is BrokerSetting.NEW:
        changed = replace(changed, service_broker_guid=None)
    holdings.put_database(changed, instead_of=database)
    return _NEW_ID if statement.setting is BrokerSetting.NEW else None
