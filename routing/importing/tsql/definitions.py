"""Read statements on routes and services, and calls of the system procedures that change databases.

Each reader of a definition is called at its first word and reads to its end. Readers raise RefusalError for
unknown values and for statements that SQL Server refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from routing.importing.tsql import tree
from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.script_statements import (
    LONGEST_LIFETIME,
    RESERVED_WORD,
    AlterDatabaseState,
    AlterRoute,
    CreateRoute,
    CreateService,
    DetachDatabase,
    DropDatabase,
    DropEndpoint,
    DropRoute,
    DropService,
    RefusalError,
    RenameDatabase,
    RouteOptions,
    ScriptStatement,
    UnparsedError,
    check_options,
    check_route,
    known_to_the_server,
    no_value,
    quote,
)
from routing.importing.tsql.tokens import Lexeme, LexemeKind
from routing.importing.tsql.vocabulary import RESERVED, as_written, find_unknown_variable

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


# Calls of the system procedures that change databases → statements.


ValueOf = Callable[[Lexeme], str | None]
"""A function that returns the text of a variable, or None if it is unknown."""

Arguments = Mapping[str, str | RefusalError]

_MOST_ARGUMENTS = 20
_STATES = {
    "offline": "OFFLINE",
    "read only": "READ_ONLY",
    "single user": "SINGLE_USER",
    "dbo use only": "RESTRICTED_USER",
}


def attached(name: str) -> RefusalError:
    """Return the error that an attached database cannot be known."""
    return RefusalError(f"the contents of the attached database {quote(name)} are not in the script")


def read_procedure(
    name: str, arguments: Sequence[tree.CallArgument], place: StatementPlace, value_of: ValueOf
) -> list[ScriptStatement] | None:
    """Read a procedure call as statements, or return None if the procedure has no effect here.

    Raises RefusalError if an argument or the effect is unknown.
    """
    procedure = _PROCEDURES.get(name.lower())
    if procedure is None:
        return None
    parameters, read = procedure
    words_by_name = tree.bind(arguments[:_MOST_ARGUMENTS], [f"@{parameter}" for parameter in parameters])
    # An unknown value is a refusal where it is needed.
    return read({parameter[1:]: _value(words[0], value_of) for parameter, words in words_by_name.items()}, place)


def _value(lexeme: Lexeme, value_of: ValueOf) -> str | RefusalError:
    missing = find_unknown_variable(lexeme.text)
    if missing is not None:
        return no_value(missing)
    if lexeme.kind is LexemeKind.WORD and lexeme.text.startswith("@"):
        value = value_of(lexeme)
        return known_to_the_server(lexeme.text) if value is None else value
    if lexeme.kind not in (LexemeKind.STRING, LexemeKind.NAME, LexemeKind.WORD):
        return RefusalError(f"its argument {quote(lexeme.text)} cannot be read")
    return lexeme.text


def _text(arguments: Arguments, parameter: str, default: str | None = None) -> str:
    value = arguments.get(parameter, default)
    if isinstance(value, RefusalError):
        raise value
    if value is None:
        raise RefusalError(f"its argument @{parameter} is missing")
    return value


def _remove(arguments: Arguments, place: StatementPlace) -> list[ScriptStatement]:
    return [DropDatabase(*place.parts, _text(arguments, "dbname"))]


def _attach(arguments: Arguments, place: StatementPlace) -> list[ScriptStatement]:
    raise attached(_text(arguments, "dbname"))


def _rename_database(arguments: Arguments, place: StatementPlace, named: str = "dbname") -> list[ScriptStatement]:
    new_name = _unquoted(_text(arguments, "newname"))
    return [RenameDatabase(*place.parts, _unquoted(_text(arguments, named)), new_name=new_name)]


def _rename_object(arguments: Arguments, place: StatementPlace) -> list[ScriptStatement]:
    if _text(arguments, "objtype", "").lower() != "database":
        return []
    return _rename_database(arguments, place, "objname")


def _set_option(arguments: Arguments, place: StatementPlace) -> list[ScriptStatement]:
    option = _STATES.get(_text(arguments, "optname", "").lower())
    if option is None:
        return []
    return [AlterDatabaseState(*place.parts, _text(arguments, "dbname"), state=option)]


def _unquoted(name: str) -> str:
    """Return a name that may be given in brackets inside its string."""
    return name[1:-1].replace("]]", "]") if name.startswith("[") and name.endswith("]") else name


_PROCEDURES: dict[str, tuple[tuple[str, ...], Callable[[Arguments, StatementPlace], list[ScriptStatement]]]] = {
    "sp_attach_db": (("dbname",), _attach),
    "sp_attach_single_file_db": (("dbname",), _attach),
    "sp_dboption": (("dbname", "optname", "optvalue"), _set_option),
    "sp_dbremove": (("dbname",), _remove),
    "sp_detach_db": (
        ("dbname",),
        lambda arguments, place: [DetachDatabase(*place.parts, _text(arguments, "dbname"))],
    ),
    "sp_rename": (("objname", "newname", "objtype"), _rename_object),
    "sp_renamedb": (("dbname", "newname"), _rename_database),
}


def is_read_procedure(name: str) -> bool:
    """Return whether `read_procedure` reads calls of this procedure."""
    return name.lower() in _PROCEDURES
