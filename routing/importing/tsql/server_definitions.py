"""CREATE, ALTER and DROP of an instance's endpoints and databases: lexemes → statements."""

from __future__ import annotations

from dataclasses import dataclass

from routing.importing.tsql.cursor import Cursor
from routing.importing.tsql.definitions import Place
from routing.importing.tsql.refusal import RefusalError, no_value
from routing.importing.tsql.statements import (
    AlterDatabase,
    AlterEndpoint,
    BrokerSetting,
    CreateDatabase,
    CreateEndpoint,
    DropDatabase,
    Statement,
    quote,
)
from routing.importing.tsql.tokens import Kind, Lexeme
from routing.importing.tsql.vocabulary import STARTERS, find_unknown_variable

_SETTINGS = {setting.value: setting for setting in BrokerSetting}
_OTHER_THINGS = {"AUDIT", "SCOPED", "ENCRYPTION"}
_SWITCH = {"ENABLED": True, "DISABLED": False}


@dataclass
class _EndpointOptions:
    payload: str | None = None
    listener_port: int | None = None
    is_message_forwarding_enabled: bool | None = None


def create_endpoint(cursor: Cursor, place: Place) -> list[Statement]:
    """CREATE ENDPOINT; MESSAGE_FORWARDING is DISABLED where it is not given."""
    cursor.expect_words("CREATE", "ENDPOINT")
    name = cursor.name("endpoint name")
    options = _endpoint_options(cursor)
    is_broker = options.payload == "SERVICE_BROKER"
    if is_broker and options.listener_port is None:
        raise RefusalError("LISTENER_PORT is missing")
    return [
        CreateEndpoint(
            file=place.file,
            line=place.line,
            database=place.database,
            name=name,
            for_service_broker=is_broker,
            listener_port=options.listener_port,
            is_message_forwarding_enabled=bool(options.is_message_forwarding_enabled),
        )
    ]


def alter_endpoint(cursor: Cursor, place: Place) -> list[Statement]:
    """ALTER ENDPOINT; only the given options change."""
    cursor.expect_words("ALTER", "ENDPOINT")
    name = cursor.name("endpoint name")
    options = _endpoint_options(cursor)
    is_broker = None if options.payload is None else options.payload == "SERVICE_BROKER"
    return [
        AlterEndpoint(
            file=place.file,
            line=place.line,
            database=place.database,
            name=name,
            for_service_broker=is_broker,
            listener_port=options.listener_port,
            is_message_forwarding_enabled=options.is_message_forwarding_enabled,
        )
    ]


def create_database(cursor: Cursor, place: Place) -> list[Statement]:
    """CREATE DATABASE of a new database; what an attached one holds cannot be known."""
    cursor.expect_words("CREATE", "DATABASE")
    if cursor.peek().upper in _OTHER_THINGS and cursor.peek(1).kind is Kind.WORD:
        return []
    name = cursor.name("database name")
    words = {lexeme.upper for lexeme in _rest(cursor)}
    if "ATTACH" in words or "ATTACH_REBUILD_LOG" in words:
        raise RefusalError(f"what the attached database {quote(name)} holds is not in the script")
    if "SNAPSHOT" in words:
        raise RefusalError(f"{quote(name)} is a snapshot, whose routes are those of its source")
    return [CreateDatabase(file=place.file, line=place.line, database=place.database, name=name)]


def drop_database(cursor: Cursor, place: Place) -> list[Statement]:
    """DROP DATABASE [IF EXISTS] name, name…."""
    cursor.expect_words("DROP", "DATABASE")
    if cursor.peek().upper in _OTHER_THINGS and cursor.peek(1).kind is Kind.WORD:
        return []
    if_exists = cursor.take_words("IF", "EXISTS")
    names = [cursor.name("database name")]
    while cursor.take_sign(","):
        names.append(cursor.name("database name"))
    cursor.end_of_statement()
    return [
        DropDatabase(
            file=place.file,
            line=place.line,
            database=place.database,
            name=name,
            if_exists=if_exists,
        )
        for name in names
    ]


def alter_database(cursor: Cursor, place: Place) -> list[Statement]:
    """ALTER DATABASE name | CURRENT SET; only broker options say something about routing."""
    cursor.expect_words("ALTER", "DATABASE")
    if cursor.peek().upper in _OTHER_THINGS and cursor.peek(1).kind is Kind.WORD:
        return []
    name, doubt = _read_altered_name(cursor, place)
    if cursor.at_words("MODIFY", "NAME"):
        raise RefusalError(f"the database {quote(name)} gets another name, which is not followed here")
    if not cursor.take_words("SET"):
        return []
    rest = _rest(cursor)
    for before, lexeme in zip([",", *(lexeme.text for lexeme in rest)], rest, strict=False):
        missing = find_unknown_variable(lexeme.text)
        if missing is not None and before == ",":
            raise no_value(missing)
    settings = [_SETTINGS[lexeme.upper] for lexeme in rest if lexeme.upper in _SETTINGS]
    if settings and doubt is not None:
        raise doubt
    return [
        AlterDatabase(file=place.file, line=place.line, database=place.database, name=name, setting=setting)
        for setting in settings
    ]


def _read_altered_name(cursor: Cursor, place: Place) -> tuple[str, RefusalError | None]:
    """The database's name, or why it is not known, which matters only before a broker option."""
    if cursor.take_words("CURRENT"):
        return place.database or "", None if place.database else RefusalError("the database in use is not known")
    try:
        return cursor.name("database name"), None
    except RefusalError as refusal:
        while not (cursor.at_end or cursor.at_sign(";") or cursor.peek().upper in STARTERS):
            cursor.next()
        return "", refusal


def _rest(cursor: Cursor) -> list[Lexeme]:
    """The lexemes up to the statement's end, without what stands in parentheses."""
    found = []
    while not (cursor.at_end or cursor.at_sign(";")):
        if cursor.peek().kind is Kind.CUT:
            raise cursor.unexpected("the end of the statement")
        if cursor.skip_group():
            continue
        if cursor.take_words("WITH", "ROLLBACK") or cursor.take_words("WITH"):
            continue
        if cursor.peek().upper in STARTERS:
            break
        found.append(cursor.next())
    return found


def _endpoint_options(cursor: Cursor) -> _EndpointOptions:
    options = _EndpointOptions()
    while not (cursor.at_end or cursor.at_sign(";") or cursor.peek().upper in STARTERS):
        if cursor.at_sign("(") and not cursor.at_group:
            raise cursor.unexpected("a parenthesis and its end")
        if cursor.peek().kind is Kind.CUT:
            raise cursor.unexpected("the end of the statement")
        if cursor.take_words("FOR"):
            options.payload = cursor.next().upper
        elif cursor.at_words("LISTENER_PORT"):
            _port(cursor, options)
        elif cursor.at_words("MESSAGE_FORWARDING"):
            _forwarding(cursor, options)
        else:
            cursor.next()
    return options


def _port(cursor: Cursor, options: _EndpointOptions) -> None:
    if options.listener_port is not None:
        raise RefusalError("the option LISTENER_PORT is given twice")
    cursor.next()
    cursor.expect_sign("=")
    options.listener_port = cursor.integer("LISTENER_PORT")
    if not 1 <= options.listener_port <= 65535:
        raise RefusalError(f"LISTENER_PORT {options.listener_port} is no port")


def _forwarding(cursor: Cursor, options: _EndpointOptions) -> None:
    if options.is_message_forwarding_enabled is not None:
        raise RefusalError("the option MESSAGE_FORWARDING is given twice")
    cursor.next()
    cursor.expect_sign("=")
    if cursor.peek().upper not in _SWITCH:
        raise cursor.unexpected("ENABLED or DISABLED")
    options.is_message_forwarding_enabled = _SWITCH[cursor.next().upper]
