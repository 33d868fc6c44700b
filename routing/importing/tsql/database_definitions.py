"""Read CREATE, ALTER and DROP DATABASE and ENDPOINT, and find the reader of any other definition."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from routing.importing.tsql import definitions, script_statements
from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.extents import begins_statement
from routing.importing.tsql.parse_faults import find_misspelt_noun
from routing.importing.tsql.script_statements import (
    AlterEndpoint,
    RefusalError,
    ScriptStatement,
    UnparsedError,
    no_value,
    quote,
)
from routing.importing.tsql.tokens import Lexeme, LexemeKind
from routing.importing.tsql.vocabulary import (
    BESIDE_DATABASE,
    RESERVED,
    STARTERS,
    as_written,
    find_misspelt,
    find_unknown_variable,
)

CURRENT = ""
"""The name of the database in use, as a statement has it until it runs."""

_SETTINGS = {setting.value: setting for setting in script_statements.BrokerSetting}
_STATES = frozenset(
    [
        *("ONLINE", "OFFLINE", "EMERGENCY", "SINGLE_USER", "RESTRICTED_USER", "MULTI_USER"),
        *("READ_ONLY", "READ_WRITE", "PARTNER", "WITNESS", "HADR"),
    ]
)
_AFTER_NEW_NAME = frozenset(["CONTAINMENT", "ON", "COLLATE", "WITH", "FOR", "AS", "LOG"])
_NO_CLAUSES = frozenset(["ENABLE", "DISABLE", "NEW"])
_BROKER = "BROKER"
_BROKER_PRIORITY = frozenset(["HONOR_BROKER_PRIORITY"])
_ATTACHING = {"ATTACH", "ATTACH_REBUILD_LOG", "ATTACH_FORCE_REBUILD_LOG"}


def create_database(cursor: LexemeCursor, scripted_at: datetime) -> list[ScriptStatement]:
    """Read CREATE DATABASE. The content of an attached or copied database is unknown."""
    name = cursor.name("database name")
    if cursor.peek().upper not in _AFTER_NEW_NAME and not cursor.at("("):
        cursor.end_of_statement()
    words = {lexeme.upper for lexeme in _remaining_lexemes(cursor)}
    if words & _ATTACHING:
        raise definitions.attached(name)
    if words >= {"AS", "COPY", "OF"}:
        raise RefusalError(f"the contents of the copied database {quote(name)} are not in the script")
    if "SNAPSHOT" in words:
        raise RefusalError(f"{quote(name)} is a snapshot with the routes of its source")
    return [script_statements.CreateDatabase(name=name)]


def drop_database(cursor: LexemeCursor, scripted_at: datetime) -> list[ScriptStatement]:
    """Read DROP DATABASE [IF EXISTS] name, name…."""
    if_exists = cursor.take("IF", "EXISTS")
    names = [cursor.name("database name")]
    while cursor.take(","):
        names.append(cursor.name("database name"))
    cursor.end_of_statement()
    return [script_statements.DropDatabase(name=name, if_exists=if_exists) for name in names]


def alter_database(cursor: LexemeCursor, scripted_at: datetime) -> list[ScriptStatement]:
    """Read ALTER DATABASE name | CURRENT: a new name, SET's broker options, and states that no table holds."""
    name, doubt = _read_altered_name(cursor)
    statements: list[ScriptStatement] = []
    if cursor.take("MODIFY", "NAME"):
        cursor.expect("=")
        new_name = cursor.name("new database name")
        statements.append(script_statements.RenameDatabase(name=name, new_name=new_name))
        cursor.end_of_statement()
    elif cursor.take("SET"):
        for option in _set_options(cursor):
            statements += _read_option(option, name)
        if any(isinstance(statement, script_statements.AlterDatabase) for statement in statements):
            _termination(cursor)
    elif _is_left_over(cursor):
        raise cursor.unexpected("SET or another clause")
    elif any(lexeme.upper in _SETTINGS for lexeme in _remaining_lexemes(cursor)):
        raise UnparsedError("a broker option has no SET before it")
    if statements and doubt is not None:
        raise doubt
    return statements


def _is_left_over(cursor: LexemeCursor) -> bool:
    """Return True if the text after a database's name is certainly no clause: a sign, or a word before SET."""
    lexeme = cursor.peek()
    if lexeme.kind is LexemeKind.SIGN:
        return lexeme.text in "-./"
    is_word = lexeme.kind in (LexemeKind.WORD, LexemeKind.NAME) and find_unknown_variable(lexeme.text) is None
    return lexeme.upper in _NO_CLAUSES or (is_word and cursor.peek(1).upper in ("SET", "MODIFY"))


def _read_altered_name(cursor: LexemeCursor) -> tuple[str, RefusalError | None]:
    """Return the database's name, or the reason why it is unknown, which matters only for routing."""
    if cursor.take("CURRENT"):
        return CURRENT, None
    try:
        return cursor.name("database name"), None
    except UnparsedError:
        raise
    except RefusalError as refusal:
        while not (cursor.at_end or cursor.at(";") or cursor.at("MODIFY", "NAME")):
            if cursor.peek().upper in STARTERS:
                break
            cursor.next()
        return "", refusal


def _set_options(cursor: LexemeCursor) -> list[list[Lexeme]]:
    """Return the lexemes of each option of SET, up to WITH or the statement's end."""
    options: list[list[Lexeme]] = [[]]
    if cursor.at_group:
        # Some services of SQL Server have options in parentheses, but none of the broker's.
        if any(_BROKER in word.upper for word in cursor.group()):
            raise UnparsedError("the broker options of SET are not in parentheses")
        return []
    while not (cursor.at_end or cursor.at(";") or cursor.at("WITH") or begins_statement(cursor)):
        if cursor.peek().kind is LexemeKind.CUT:
            raise cursor.unexpected("the end of the statement")
        if cursor.take(","):
            options.append([])
        elif not cursor.skip_group():
            options[-1].append(cursor.next())
    if options == [[]]:
        raise cursor.unexpected("an option of the database")
    return [option for option in options if option]


def _read_option(option: list[Lexeme], name: str) -> list[ScriptStatement]:
    first = option[0]
    missing = find_unknown_variable(first.text)
    if missing is not None:
        raise no_value(missing)
    if first.upper in _STATES:
        return [script_statements.AlterDatabaseState(name=name, state=first.upper)]
    correct_name = find_misspelt(first.upper, (*_SETTINGS, *_STATES))
    if correct_name is not None:
        raise UnparsedError(f"a database has no option {quote(first.text)}, but {correct_name}")
    joined = "_".join(word.upper for word in option[:2])
    if len(option) > 1 and (joined in _SETTINGS or joined in _STATES):
        raise UnparsedError(f"a database has no option {quote(joined.replace('_', ' '))}, but {joined}")
    setting = _SETTINGS.get(first.upper)
    if setting is None and first.upper not in _BROKER_PRIORITY and any(_BROKER in word.upper for word in option):
        written = " ".join(word.text for word in option)
        raise UnparsedError(f"a database has no option {quote(written)}, but {', '.join(_SETTINGS)}")
    if setting is None:
        return []
    if len(option) > 1:
        raise UnparsedError(f"{first.upper} is followed by {quote(option[1].text)}")
    return [script_statements.AlterDatabase(name=name, setting=setting)]


def _termination(cursor: LexemeCursor) -> None:
    """Skip WITH ROLLBACK AFTER n SECONDS, WITH ROLLBACK IMMEDIATE or WITH NO_WAIT."""
    if not cursor.take("WITH"):
        return
    if cursor.take("ROLLBACK"):
        if cursor.peek().upper not in ("IMMEDIATE", "AFTER"):
            raise cursor.unexpected("IMMEDIATE or AFTER")
    elif not cursor.at("NO_WAIT"):
        raise cursor.unexpected("ROLLBACK or NO_WAIT")


def _remaining_lexemes(cursor: LexemeCursor) -> list[Lexeme]:
    """Return the lexemes up to the statement's end, without groups in parentheses."""
    lexemes = []
    while not (cursor.at_end or cursor.at(";")):
        if cursor.peek().kind is LexemeKind.CUT:
            raise cursor.unexpected("the end of the statement")
        if cursor.skip_group() or cursor.take("WITH"):
            continue
        if cursor.peek().upper in STARTERS:
            break
        lexemes.append(cursor.next())
    return lexemes


# CREATE and ALTER ENDPOINT: lexemes → statements.


_SERVICE_BROKER = "SERVICE_BROKER"
_PAYLOADS = (_SERVICE_BROKER, "DATABASE_MIRRORING", "DATA_MIRRORING", "TSQL", "SOAP")
_JOINED = ("AUTHORIZATION", "STATE", "AFFINITY")
"""Clauses that a comma may join to the one before."""

_AFFINITIES = ("NONE", "ADMIN")
_AFFINITY_MASK = re.compile(r"[0-9]{1,20}|0x[0-9A-Fa-f]{1,16}")
_LEAST_PORT, _LARGEST_PORT = 1024, 32767
_ENDPOINT_STATES = ("STARTED", "STOPPED", "DISABLED")
_SWITCH = {"ENABLED": True, "DISABLED": False}
_TCP_OPTIONS = ("LISTENER_PORT", "LISTENER_IP")
_BROKER_OPTIONS = ("AUTHENTICATION", "ENCRYPTION", "MESSAGE_FORWARDING", "MESSAGE_FORWARD_SIZE")


def create_endpoint(cursor: LexemeCursor, scripted_at: datetime) -> list[ScriptStatement]:
    """Read CREATE ENDPOINT. The defaults are MESSAGE_FORWARDING DISABLED and STATE STOPPED."""
    options = _read_endpoint(cursor, cursor.name("endpoint name"))
    if options.for_service_broker is None:
        raise cursor.unexpected("FOR SERVICE_BROKER or another payload")
    if options.for_service_broker and options.listener_port is None:
        raise RefusalError("LISTENER_PORT is missing", by_server=True)
    return [
        script_statements.CreateEndpoint(
            name=options.name,
            for_service_broker=options.for_service_broker,
            state=options.state or "STOPPED",
            listener_port=options.listener_port,
            is_message_forwarding_enabled=bool(options.is_message_forwarding_enabled),
        )
    ]


def alter_endpoint(cursor: LexemeCursor, scripted_at: datetime) -> list[ScriptStatement]:
    """Read ALTER ENDPOINT. Only the given options change."""
    name = cursor.name("endpoint name")
    if cursor.at("SET"):
        raise cursor.unexpected("STATE, AS or FOR")
    return [_read_endpoint(cursor, name)]


def _read_endpoint(cursor: LexemeCursor, name: str) -> AlterEndpoint:
    """Read the options of an endpoint. Each may be given once."""
    options, given = AlterEndpoint(name=name), set[str]()
    start = cursor.position
    while not (cursor.at_end or cursor.at(";") or cursor.peek().upper in STARTERS or cursor.at_label):
        if cursor.position > start and cursor.peek(1).upper in _JOINED:
            cursor.take(",")
        if cursor.skip_owner():
            continue
        if cursor.at("STATE"):
            definitions.take_option(cursor, given)
            options = replace(options, state=_one_of(cursor, _ENDPOINT_STATES))
        elif cursor.at("AFFINITY"):
            definitions.take_option(cursor, given)
            _pass_affinity(cursor)
        elif cursor.take("AS"):
            is_tcp = cursor.next().upper == "TCP"
            options = _read_group(cursor, options, given, _TCP_OPTIONS if is_tcp else ())
        elif cursor.take("FOR"):
            is_broker = _read_payload(cursor) == _SERVICE_BROKER
            options = replace(options, for_service_broker=is_broker)
            options = _read_group(cursor, options, given, _BROKER_OPTIONS if is_broker else ())
        else:
            raise cursor.unexpected("STATE, AS or FOR")
    _note_port(cursor, options)
    return options


def _pass_affinity(cursor: LexemeCursor) -> None:
    value = cursor.peek()
    if value.upper not in _AFFINITIES and not (
        value.kind is LexemeKind.NUMBER and _AFFINITY_MASK.fullmatch(value.text) and int(value.text, 0) < 2**64
    ):
        raise cursor.unexpected("NONE, ADMIN or a whole number of 64 bits")
    cursor.next()


def _note_port(cursor: LexemeCursor, options: AlterEndpoint) -> None:
    """Note a port that SQL Server takes, though its manual's text leaves it out."""
    port = options.listener_port
    if port is None or _LEAST_PORT <= port <= _LARGEST_PORT or options.for_service_broker is False:
        return
    bounds = f"outside {_LEAST_PORT} to {_LARGEST_PORT}"
    cursor.notes.append(f"LISTENER_PORT {port} is {bounds}, which the manual asks for and its own example exceeds")


def _read_payload(cursor: LexemeCursor) -> str:
    word = cursor.peek().upper
    if not word or find_misspelt(word, _PAYLOADS) is not None:
        raise cursor.unexpected("SERVICE_BROKER, DATABASE_MIRRORING or TSQL")
    cursor.next()
    return word


def _read_group(
    cursor: LexemeCursor, options: AlterEndpoint, given: set[str], known_options: tuple[str, ...]
) -> AlterEndpoint:
    """Read the options in parentheses, with optional commas, and skip those of other protocols."""
    if not cursor.at_group:
        raise cursor.unexpected("a parenthesis and its end")
    if not known_options:
        cursor.skip_group()
        return options
    end = cursor.group_end - 1
    cursor.next()
    while cursor.position < end:
        if cursor.peek(1).text != "=":
            cursor.skip_item()
            continue
        if cursor.peek().upper not in known_options:
            raise UnparsedError(f"it has no option {quote(cursor.peek().text)}")
        word = definitions.take_option(cursor, given)
        if word == "LISTENER_PORT":
            options = replace(options, listener_port=_read_port(cursor))
        elif word == "MESSAGE_FORWARDING":
            options = replace(options, is_message_forwarding_enabled=_SWITCH[_one_of(cursor, tuple(_SWITCH))])
    cursor.position = end + 1
    return options


def _read_port(cursor: LexemeCursor) -> int:
    port = cursor.integer("LISTENER_PORT")
    if not 1 <= port <= 65535:
        raise RefusalError(f"LISTENER_PORT {port} is not a port, which is 1 to 65535", by_server=True)
    return port


def _one_of(cursor: LexemeCursor, words: tuple[str, ...]) -> str:
    if cursor.peek().upper not in words:
        raise cursor.unexpected(f"{', '.join(words[:-1])} or {words[-1]}")
    return cursor.next().upper


# CREATE, ALTER and DROP: of what belongs to routing, and of anything else.


_DEFINITIONS: dict[tuple[str, str], definitions.Definition] = {
    ("CREATE", "ROUTE"): definitions.create_route,
    ("ALTER", "ROUTE"): definitions.alter_route,
    ("DROP", "ROUTE"): definitions.drop(script_statements.DropRoute),
    ("CREATE", "SERVICE"): definitions.create_service,
    ("DROP", "SERVICE"): definitions.drop(script_statements.DropService),
    ("CREATE", "ENDPOINT"): create_endpoint,
    ("ALTER", "ENDPOINT"): alter_endpoint,
    ("DROP", "ENDPOINT"): definitions.drop(script_statements.DropEndpoint),
    ("CREATE", "DATABASE"): create_database,
    ("ALTER", "DATABASE"): alter_database,
    ("DROP", "DATABASE"): drop_database,
}
_NAMED = frozenset(["TABLE", "QUEUE", "CONTRACT", "VIEW", "PROC", "PROCEDURE", "FUNCTION", "SEQUENCE", "SYNONYM"])
"""The kinds of objects with their name directly after the kind."""


def find_definition(cursor: LexemeCursor) -> definitions.Definition | None:
    """Return the reader of the statement at the cursor, or None if it is not about routing."""
    verb, noun = cursor.peek().upper, cursor.peek(1).upper
    if noun == "DATABASE" and cursor.peek(2).upper in BESIDE_DATABASE and cursor.peek(3).kind is LexemeKind.WORD:
        return lambda cursor, scripted_at: []
    return _DEFINITIONS.get((verb, noun))


def title_of(cursor: LexemeCursor) -> str:
    """Write the title of the definition at the cursor: ``CREATE ROUTE 'name'``."""
    verb, noun, name = cursor.peek().upper, cursor.peek(1).upper, cursor.peek(2)
    is_name = name.kind in (LexemeKind.WORD, LexemeKind.NAME) and name.upper not in RESERVED
    if name.upper == "CURRENT" and noun == "DATABASE":
        return f"{verb} DATABASE CURRENT"
    return f"{verb} {noun} {quote(as_written(name.text))}" if is_name else f"{verb} {noun}"


def find_other_fault(cursor: LexemeCursor, name_at: int) -> UnparsedError | None:
    """Return why SQL Server cannot parse a definition of something else, if that is sure from its first words."""
    verb, noun = cursor.peek().upper, cursor.peek(name_at)
    if name_at == 3 and (verb, noun.upper) in _DEFINITIONS:
        return UnparsedError("it has no clause OR ALTER")
    correct_noun = find_misspelt_noun(noun.upper)
    if correct_noun is not None:
        return UnparsedError(f"{correct_noun} was meant by {quote(noun.text)}")
    if noun.upper not in _NAMED:
        return None
    has_if = cursor.peek(name_at + 1).upper == "IF" and cursor.peek(name_at + 2).upper == "EXISTS"
    name = cursor.peek(name_at + (3 if has_if else 1))
    if name.upper in RESERVED:
        why = f"{quote(name.text)} is a reserved keyword: put it in brackets to use it as a name"
        return UnparsedError(why, script_statements.RESERVED_WORD)
    return None


def find_stray_sign(cursor: LexemeCursor) -> UnparsedError | None:
    """Return why BACKUP or RESTORE cannot be parsed because of a sign after the database's name."""
    name, after = cursor.peek(2), cursor.peek(3)
    is_stray = after.kind is LexemeKind.SIGN and after.text in "-./"
    if name.kind in (LexemeKind.WORD, LexemeKind.NAME) and is_stray:
        return UnparsedError(f"{quote(after.text)} follows the name {quote(as_written(name.text))}")
    return None
