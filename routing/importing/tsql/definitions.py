"""Read CREATE, ALTER and DROP of routes, services, endpoints and databases as statements.

Each function is called at its statement's first word and reads to the statement's end. It raises RefusalError for
unknown values and for statements that SQL Server refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.script_statements import (
    LONGEST_LIFETIME,
    RESERVED_WORD,
    AlterRoute,
    CreateRoute,
    CreateService,
    DropEndpoint,
    DropRoute,
    DropService,
    RefusalError,
    RouteOptions,
    ScriptStatement,
    UnparsedError,
    check_options,
    check_route,
    quote,
)
from routing.importing.tsql.vocabulary import RESERVED, as_written

_TEXT_OPTIONS = ("SERVICE_NAME", "BROKER_INSTANCE", "ADDRESS", "MIRROR_ADDRESS")


@dataclass(frozen=True)
class StatementPlace:
    """The place of a statement: file, line, current database and the script's own time."""

    file: str
    line: int
    database: str | None
    scripted_at: datetime

    @property
    def parts(self) -> tuple[str, int, str | None]:
        """The place as the first arguments of each statement."""
        return self.file, self.line, self.database


def create_route(cursor: LexemeCursor, place: StatementPlace) -> list[ScriptStatement]:
    """Read CREATE ROUTE name [AUTHORIZATION owner] WITH options in any order, and check it."""
    cursor.expect("CREATE", "ROUTE")
    name = cursor.name("route name")
    owner = _owner(cursor)
    options = _route_options(cursor, place)
    check_route(options.service_name, options.broker_instance, options.address, options.mirror_address)
    return [CreateRoute(*place.parts, name, owner=owner, options=options)]


def alter_route(cursor: LexemeCursor, place: StatementPlace) -> list[ScriptStatement]:
    """Read ALTER ROUTE name WITH options. The rest of the route is known only at its application."""
    cursor.expect("ALTER", "ROUTE")
    name = cursor.name("route name")
    options = _route_options(cursor, place, takes_commas_out=True)
    return [AlterRoute(*place.parts, name, options=options)]


def create_service(cursor: LexemeCursor, place: StatementPlace) -> list[ScriptStatement]:
    """Read CREATE SERVICE name [AUTHORIZATION owner] ON QUEUE queue [(contracts)]."""
    cursor.expect("CREATE", "SERVICE")
    name = cursor.name("service name")
    owner = _owner(cursor)
    cursor.expect("ON", "QUEUE")
    _skip_object_name(cursor)
    if cursor.at("("):
        cursor.group()
    cursor.end_of_statement()
    return [CreateService(*place.parts, name, owner=owner)]


def drop(kind: type[DropRoute] | type[DropService] | type[DropEndpoint], noun: str) -> Definition:
    """Return the reader of DROP ROUTE, SERVICE or ENDPOINT name, which do not accept IF EXISTS."""

    def read(cursor: LexemeCursor, place: StatementPlace) -> list[ScriptStatement]:
        cursor.expect("DROP", noun)
        if cursor.at("IF", "EXISTS"):
            raise UnparsedError(f"DROP {noun} has no clause IF EXISTS")
        name = cursor.name(f"{noun.lower()} name")
        cursor.end_of_statement()
        return [kind(*place.parts, name)]

    return read


def _owner(cursor: LexemeCursor) -> str | None:
    return cursor.name("owner name") if cursor.take("AUTHORIZATION") else None


def _skip_object_name(cursor: LexemeCursor) -> None:
    """Skip a queue's name, which has up to three parts and is not about routing."""
    while True:
        if cursor.at("<"):
            cursor.placeholder("queue name")
            lexeme = cursor.peek(-1)
        else:
            lexeme = cursor.next()
        if lexeme.upper in RESERVED:
            why = f"the queue name was expected, not {quote(lexeme.text)}, a reserved keyword"
            raise UnparsedError(why, RESERVED_WORD)
        if not cursor.take("."):
            return
        while cursor.take("."):
            pass


def find_brought_database(cursor: LexemeCursor) -> tuple[str | None, str]:
    """Return title and reason of a RESTORE or DBCC that creates a database. Others have no title."""
    verb, noun = cursor.peek().upper, cursor.peek(1).upper
    if verb == "RESTORE" and noun in ("DATABASE", "LOG"):
        name = quote(as_written(cursor.peek(2).text))
        return f"RESTORE {noun} {name}", "the contents of the restored database are not in the script"
    if verb == "DBCC" and noun == "CLONEDATABASE":
        return "DBCC CLONEDATABASE", "the contents of the cloned database are not in the script"
    return None, ""


def _route_options(cursor: LexemeCursor, place: StatementPlace, *, takes_commas_out: bool = False) -> RouteOptions:
    """Read the options after WITH. The manual's grammar of ALTER ROUTE allows missing commas."""
    cursor.expect("WITH")
    texts: dict[str, str] = {}
    seconds: int | None = None
    while True:
        word = cursor.peek().upper
        if word in texts or (word == "LIFETIME" and seconds is not None):
            raise UnparsedError(f"the option {word} is given twice", None)
        if word in _TEXT_OPTIONS:
            cursor.next()
            cursor.expect("=")
            texts[word] = cursor.string(word)
        elif cursor.take("LIFETIME"):
            cursor.expect("=")
            seconds = cursor.integer("LIFETIME")
        elif word and cursor.peek(1).text == "=":
            raise UnparsedError(f"a route has no option {quote(cursor.peek().text)}")
        else:
            raise cursor.unexpected("a route option")
        if cursor.take(","):
            continue
        if not (takes_commas_out and cursor.peek().upper in (*_TEXT_OPTIONS, "LIFETIME")):
            break
        cursor.notes.append(
            f"there is no comma before {cursor.peek().upper}: the manual's grammar does not say if it is required"
        )
    cursor.end_of_statement()
    options = RouteOptions(
        service_name=texts.get("SERVICE_NAME"),
        broker_instance=texts.get("BROKER_INSTANCE"),
        lifetime_seconds=seconds,
        lifetime=_expiry(seconds, place.scripted_at),
        address=texts.get("ADDRESS"),
        mirror_address=texts.get("MIRROR_ADDRESS"),
    )
    check_options(options)
    return options


def _expiry(seconds: int | None, scripted_at: datetime) -> datetime | None:
    """Return the expiry of the route. A lifetime out of range has none, and is refused by its number."""
    if seconds is None or not 0 <= seconds <= LONGEST_LIFETIME:
        return None
    try:
        return scripted_at + timedelta(seconds=seconds)
    except OverflowError:
        raise RefusalError("its LIFETIME ends after the year 9999") from None


Definition = Callable[[LexemeCursor, StatementPlace], list[ScriptStatement]]
"""Reads the statement that begins at the cursor."""
