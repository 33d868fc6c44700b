"""What each statement does to an instance's rows; raises RefusalError for what is refused.

Numbers are the engine's where it has one for the case.
"""

from __future__ import annotations

from dataclasses import replace

from routing.importing.tsql.database_changes import OF_DATABASES, change_database
from routing.importing.tsql.endpoint_changes import OF_ENDPOINTS, change_endpoint
from routing.importing.tsql.holdings import NamedRows
from routing.importing.tsql.refusal import RefusalError, UntoldError
from routing.importing.tsql.route_rules import check_route
from routing.importing.tsql.script_statements import (
    AlterRoute,
    CreateRoute,
    CreateService,
    DropRoute,
    DropService,
    ScriptStatement,
    quote,
)
from routing.importing.tsql.state import ROUTES, SERVICES, RouteState, ServiceState

NOTHING_TELLS = "nothing tells"
"""How remarks begin on what nothing that was imported tells."""

_EXISTS, _MISSING = 15530, 15151


def change(holdings: NamedRows, statement: ScriptStatement) -> str | None:
    """Apply one statement; gives a remark on it, or None."""
    if isinstance(statement, (CreateRoute, AlterRoute, DropRoute)):
        return _change_route(holdings, statement)
    if isinstance(statement, (CreateService, DropService)):
        return _change_service(holdings, statement)
    if isinstance(statement, OF_DATABASES):
        return change_database(holdings, statement)
    if isinstance(statement, OF_ENDPOINTS):
        return change_endpoint(holdings, statement)
    raise TypeError(f"no change is known for {type(statement).__name__}")


def _database_of(holdings: NamedRows, statement: ScriptStatement) -> str:
    if statement.database is None:
        raise UntoldError("its database is not known: no USE stands before it, nor was one given")
    return holdings.spell(statement.database)


def _change_route(holdings: NamedRows, statement: CreateRoute | AlterRoute | DropRoute) -> str | None:
    database = _database_of(holdings, statement)
    if isinstance(statement, CreateRoute):
        same = holdings.routes_named(database, statement.name)
        if same:
            raise RefusalError(f"the route {quote(same[0].name)} exists already", _EXISTS)
        holdings.put_route(_alter(RouteState(database, statement.name, ""), statement))
        return None
    route = holdings.route(database, statement.name)
    if route is None:
        return _miss_route(holdings, database, statement)
    if isinstance(statement, DropRoute):
        holdings.remove_route(route)
        return None
    altered = _alter(route, statement)
    check_route(
        altered.remote_service_name,
        altered.broker_instance,
        altered.address,
        altered.mirror_address,
    )
    holdings.put_route(altered, instead_of=route)
    return None


def _miss_route(holdings: NamedRows, database: str, statement: AlterRoute | DropRoute) -> str:
    """Apply ALTER or DROP to an unknown route; return a remark where SQL Server may not refuse it."""
    if holdings.tells(ROUTES, database, statement.name):
        raise RefusalError(f"the database {quote(database)} has no such route", _MISSING)
    if isinstance(statement, AlterRoute):
        why = (
            f"nothing tells of such a route in the database {quote(database)}, so its other options are not known"
        )
        raise UntoldError(why)
    holdings.note_no_route(database, statement.name)
    return f"{NOTHING_TELLS} whether the database {quote(database)} has such a route; it has none from here on"


def _alter(route: RouteState, statement: CreateRoute | AlterRoute) -> RouteState:
    """Return the route with the given options; those not given stay."""
    options = statement.options
    return replace(
        route,
        address=options.address or route.address,
        remote_service_name=options.service_name or route.remote_service_name,
        broker_instance=options.broker_instance or route.broker_instance,
        lifetime=options.lifetime or route.lifetime,
        mirror_address=options.mirror_address or route.mirror_address,
    )


def _change_service(holdings: NamedRows, statement: CreateService | DropService) -> str | None:
    database = _database_of(holdings, statement)
    service = holdings.service(database, statement.name)
    if isinstance(statement, CreateService):
        if service is not None:
            raise RefusalError("the service exists already", _EXISTS)
        holdings.put_service(ServiceState(database, statement.name))
        return None
    if service is not None:
        holdings.remove_service(service)
        return None
    if holdings.tells(SERVICES, database, statement.name):
        raise RefusalError(f"the database {quote(database)} has no such service", _MISSING)
    holdings.note_no_service(database, statement.name)
    return f"{NOTHING_TELLS} whether the database {quote(database)} has such a service; it has none from here on"
