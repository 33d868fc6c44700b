"""Read statements on routes and services, and calls of the system procedures that change databases.

Each reader of a definition is called behind its verb and noun and reads to its end. Readers raise RefusalError for
unknown values and for statements that SQL Server refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from routing.importing.tsql import script_statements as statements
from routing.importing.tsql import tree
from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.script_statements import (
    RefusalError,
    RouteOptions,
    ScriptStatement,
    UnparsedError,
    quote,
)
from routing.importing.tsql.tokens import Lexeme, LexemeKind
from routing.importing.tsql.vocabulary import RESERVED, as_written, find_unknown_variable

_LIFETIME = "LIFETIME"
_OPTIONS = (*statements.LONGEST_TEXTS, _LIFETIME)


def create_route(cursor: LexemeCursor, scripted_at: datetime) -> list[ScriptStatement]:
    """Read CREATE ROUTE name [AUTHORIZATION owner] WITH options in any order, and check it."""
    name = cursor.name("route name")
    cursor.skip_owner()
    options = _route_options(cursor, scripted_at)
    statements.check_route(options.service_name, options.broker_instance, options.address, options.mirror_address)
    return [statements.CreateRoute(name=name, options=options)]


def alter_route(cursor: LexemeCursor, scripted_at: datetime) -> list[ScriptStatement]:
    """Read ALTER ROUTE name WITH options. The rest of the route is known only at its application."""
    name = cursor.name("route name")
    options = _route_options(cursor, scripted_at, takes_commas_out=True)
    return [statements.AlterRoute(name=name, options=options)]


def create_service(cursor: LexemeCursor, scripted_at: datetime) -> list[ScriptStatement]:
    """Read CREATE SERVICE name [AUTHORIZATION owner] ON QUEUE queue [(contracts)]."""
    name = cursor.name("service name")
    cursor.skip_owner()
    cursor.expect("ON", "QUEUE")
    _skip_object_name(cursor)
    if cursor.at("("):
        cursor.group()
    cursor.end_of_statement()
    return [statements.CreateService(name=name)]


def drop(
    kind: type[statements.DropRoute] | type[statements.DropService] | type[statements.DropEndpoint],
) -> Definition:
    """Return the reader of DROP ROUTE, SERVICE or ENDPOINT name, which do not accept IF EXISTS."""

    def read(cursor: LexemeCursor, scripted_at: datetime) -> list[ScriptStatement]:
        noun = cursor.peek(-1).upper
        if cursor.at("IF", "EXISTS"):
            raise UnparsedError(f"DROP {noun} has no clause IF EXISTS")
        name = cursor.name(f"{noun.lower()} name")
        cursor.end_of_statement()
        return [kind(name=name)]

    return read


def _skip_object_name(cursor: LexemeCursor) -> None:
    """Skip a queue's name, which has up to three parts and is not about routing."""
    while True:
        if cursor.at("<"):
            place = cursor.skip_placeholder("queue name")
            cursor.notes.append(f"the template's place {quote(place)} was not filled in")
            lexeme = cursor.peek(-1)
        else:
            lexeme = cursor.next()
        if lexeme.upper in RESERVED:
            why = f"the queue name was expected, not {quote(lexeme.text)}, a reserved keyword"
            raise UnparsedError(why, statements.RESERVED_WORD)
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


def _route_options(cursor: LexemeCursor, scripted_at: datetime, *, takes_commas_out: bool = False) -> RouteOptions:
    """Read the options after WITH. The manual's grammar of ALTER ROUTE allows missing commas."""
    cursor.expect("WITH")
    texts: dict[str, str] = {}
    seconds: int | None = None
    given = set[str]()
    while True:
        if cursor.peek().upper in _OPTIONS:
            word = take_option(cursor, given)
            if word == _LIFETIME:
                seconds = cursor.integer(word)
            else:
                texts[word] = cursor.string(word)
        elif cursor.peek().upper and cursor.peek(1).text == "=":
            raise UnparsedError(f"a route has no option {quote(cursor.peek().text)}")
        else:
            raise cursor.unexpected("a route option")
        if cursor.take(","):
            continue
        if not (takes_commas_out and cursor.peek().upper in _OPTIONS):
            break
        cursor.notes.append(
            f"there is no comma before {cursor.peek().upper}: the manual's grammar does not say if it is required"
        )
    cursor.end_of_statement()
    options = RouteOptions(
        service_name=texts.get("SERVICE_NAME"),
        broker_instance=texts.get("BROKER_INSTANCE"),
        lifetime_seconds=seconds,
        lifetime=_expiry(seconds, scripted_at),
        address=texts.get("ADDRESS"),
        mirror_address=texts.get("MIRROR_ADDRESS"),
    )
    statements.check_options(options)
    return options


def take_option(cursor: LexemeCursor, given: set[str]) -> str:
    """Move behind the sign of an option, and return its word."""
    word = cursor.next().upper
    if word in given:
        raise UnparsedError(f"the option {word} is given twice", None)
    given.add(word)
    cursor.expect("=")
    return word


def _expiry(seconds: int | None, scripted_at: datetime) -> datetime | None:
    """Return the expiry of the route. A lifetime out of range has none, and is refused by its number."""
    if seconds is None or not 0 <= seconds <= statements.LONGEST_LIFETIME:
        return None
    try:
        return scripted_at + timedelta(seconds=seconds)
    except OverflowError:
        raise RefusalError("its LIFETIME ends after the year 9999") from None


Definition = Callable[[LexemeCursor, datetime], list[ScriptStatement]]
"""Reads the statement with its verb and noun before the cursor, in a script of this time."""


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
    name: str, arguments: Sequence[tree.CallArgument], value_of: ValueOf
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
    return read({parameter[1:]: _value(words[0], value_of) for parameter, words in words_by_name.items()})


def _value(lexeme: Lexeme, value_of: ValueOf) -> str | RefusalError:
    missing = find_unknown_variable(lexeme.text)
    if missing is not None:
        return statements.no_value(missing)
    if lexeme.kind is LexemeKind.WORD and lexeme.text.startswith("@"):
        value = value_of(lexeme)
        unknown = RefusalError(f"the value of the variable {quote(lexeme.text)} is known only to the server")
        return unknown if value is None else value
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


def _attach(arguments: Arguments) -> list[ScriptStatement]:
    raise attached(_text(arguments, "dbname"))


def _rename_database(arguments: Arguments, named: str = "dbname") -> list[ScriptStatement]:
    new_name = _unquoted(_text(arguments, "newname"))
    return [statements.RenameDatabase(name=_unquoted(_text(arguments, named)), new_name=new_name)]


def _rename_object(arguments: Arguments) -> list[ScriptStatement]:
    if _text(arguments, "objtype", "").lower() != "database":
        return []
    return _rename_database(arguments, "objname")


def _set_option(arguments: Arguments) -> list[ScriptStatement]:
    option = _STATES.get(_text(arguments, "optname", "").lower())
    if option is None:
        return []
    return [statements.AlterDatabaseState(name=_text(arguments, "dbname"), state=option)]


def _unquoted(name: str) -> str:
    """Return a name that may be given in brackets inside its string."""
    return name[1:-1].replace("]]", "]") if name.startswith("[") and name.endswith("]") else name


_PROCEDURES: dict[str, tuple[tuple[str, ...], Callable[[Arguments], list[ScriptStatement]]]] = {
    "sp_attach_db": (("dbname",), _attach),
    "sp_attach_single_file_db": (("dbname",), _attach),
    "sp_dboption": (("dbname", "optname", "optvalue"), _set_option),
    "sp_dbremove": (("dbname",), lambda arguments: [statements.DropDatabase(name=_text(arguments, "dbname"))]),
    "sp_detach_db": (("dbname",), lambda arguments: [statements.DetachDatabase(name=_text(arguments, "dbname"))]),
    "sp_rename": (("objname", "newname", "objtype"), _rename_object),
    "sp_renamedb": (("dbname", "newname"), _rename_database),
}
