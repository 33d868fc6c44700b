"""What statements do to an instance's databases; raises RefusalError for what is refused."""

from __future__ import annotations

from dataclasses import replace

from routing.importing.tsql.holdings import NamedRows
from routing.importing.tsql.refusal import RefusalError, UntoldError
from routing.importing.tsql.script_statements import (
    AlterDatabase,
    AlterDatabaseState,
    BrokerSetting,
    CreateDatabase,
    DetachDatabase,
    DropDatabase,
    RenameDatabase,
    ScriptStatement,
    quote,
)
from routing.importing.tsql.state import DATABASES, DatabaseState, RouteState

DEFAULT_ROUTE = "AutoCreatedLocal"
"""The route to LOCAL that the server puts into each new database."""

OF_DATABASES = (
    *(CreateDatabase, DropDatabase, DetachDatabase),
    *(RenameDatabase, AlterDatabase, AlterDatabaseState),
)

_EXISTS, _NONE_TO_DROP, _NONE_TO_ALTER, _NONE_TO_DETACH = 1801, 3701, 5011, 15010
_NEW_ID = "the server draws its service_broker_guid, which only an export of sys.databases tells"
_ENDED = "its conversations end with an error: its dialogs and messages stay in the tables until an export tells"
_MOVED = "its routes and services go along; its dialogs and messages keep the old name until an export tells"


def change_database(holdings: NamedRows, statement: ScriptStatement) -> str | None:
    """Apply one statement of OF_DATABASES; gives a remark on it, or None."""
    if isinstance(statement, CreateDatabase):
        return _create(holdings, statement.name)
    if isinstance(statement, (DropDatabase, DetachDatabase)):
        return _drop(holdings, statement)
    if isinstance(statement, RenameDatabase):
        return _rename(holdings, statement)
    if isinstance(statement, AlterDatabase):
        return _set_broker(holdings, statement)
    if isinstance(statement, AlterDatabaseState):
        return f"SET {statement.state} is named, not applied: no table holds it"
    raise TypeError(f"no change is known for {type(statement).__name__}")


def _create(holdings: NamedRows, name: str) -> str:
    if holdings.holds_database(name):
        raise RefusalError("the database exists already", _EXISTS)
    holdings.put_database(DatabaseState(name, None))
    holdings.put_route(RouteState(name, DEFAULT_ROUTE, "LOCAL"))
    holdings.note_new_database(name)
    return _NEW_ID


def _drop(holdings: NamedRows, statement: DropDatabase | DetachDatabase) -> str | None:
    is_detached = isinstance(statement, DetachDatabase)
    is_missing = not holdings.holds_database(statement.name)
    is_told = holdings.tells(DATABASES, "", statement.name)
    if is_missing and is_told and not getattr(statement, "if_exists", False):
        raise RefusalError("the instance has no such database", _NONE_TO_DETACH if is_detached else _NONE_TO_DROP)
    holdings.remove_database(statement.name)
    if not is_missing or is_told:
        return None
    return "nothing tells whether the instance has such a database; it has none from here on"


def _rename(holdings: NamedRows, statement: RenameDatabase) -> str:
    name, new_name = statement.name, statement.new_name
    if not holdings.holds_database(name):
        raise _none_to_alter(holdings, name)
    if name.casefold() != new_name.casefold() and holdings.holds_database(new_name):
        raise RefusalError(f"the database {quote(new_name)} exists already", _EXISTS)
    holdings.rename_database(name, new_name)
    return f"it is called {quote(new_name)} from here on: {_MOVED}"


def _set_broker(holdings: NamedRows, statement: AlterDatabase) -> str | None:
    database = holdings.database(statement.name)
    if database is None:
        raise _none_to_alter(holdings, statement.name)
    changed = replace(database, is_broker_enabled=statement.setting is not BrokerSetting.DISABLE)
    if statement.setting is BrokerSetting.NEW:
        changed = replace(changed, service_broker_guid=None)
    holdings.put_database(changed, instead_of=database)
    return {BrokerSetting.NEW: _NEW_ID, BrokerSetting.ERROR: _ENDED}.get(statement.setting)


def _none_to_alter(holdings: NamedRows, name: str) -> RefusalError:
    why = "no such database is known: an export of sys.databases tells"
    is_told = holdings.tells(DATABASES, "", name) and not holdings.holds_database(name)
    return RefusalError(why, _NONE_TO_ALTER) if is_told else UntoldError(why)
