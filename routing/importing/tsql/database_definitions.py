"""CREATE, ALTER and DROP DATABASE: lexemes → statements."""

from __future__ import annotations

from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.definitions import StatementPlace
from routing.importing.tsql.extents import begins_statement
from routing.importing.tsql.refusal import RefusalError, UnparsedError, no_value
from routing.importing.tsql.script_statements import (
    AlterDatabase,
    AlterDatabaseState,
    BrokerSetting,
    CreateDatabase,
    DropDatabase,
    RenameDatabase,
    ScriptStatement,
    quote,
)
from routing.importing.tsql.tokens import Lexeme, LexemeKind
from routing.importing.tsql.vocabulary import STARTERS, find_misspelt, find_unknown_variable

CURRENT = ""
"""The name of the database in use, as a statement has it until it runs."""

_SETTINGS = {setting.value: setting for setting in BrokerSetting}
_STATES = frozenset(
    [
        *("ONLINE", "OFFLINE", "EMERGENCY", "SINGLE_USER", "RESTRICTED_USER", "MULTI_USER"),
        *("READ_ONLY", "READ_WRITE", "PARTNER", "WITNESS", "HADR"),
    ]
)
_AFTER_NEW_NAME = frozenset(["CONTAINMENT", "ON", "COLLATE", "WITH", "FOR", "AS", "LOG"])
_NO_CLAUSES = frozenset(["ENABLE", "DISABLE", "NEW"])
_OTHER_THINGS = {"AUDIT", "SCOPED", "ENCRYPTION"}
_BROKER = "BROKER"
_BROKER_PRIORITY = frozenset(["HONOR_BROKER_PRIORITY"])
_ATTACHING = {"ATTACH", "ATTACH_REBUILD_LOG", "ATTACH_FORCE_REBUILD_LOG"}


def create_database(cursor: LexemeCursor, place: StatementPlace) -> list[ScriptStatement]:
    """Read CREATE DATABASE; the content of an attached or copied database cannot be known."""
    cursor.expect_words("CREATE", "DATABASE")
    if cursor.peek().upper in _OTHER_THINGS and cursor.peek(1).kind is LexemeKind.WORD:
        return []
    name = cursor.name("database name")
    if cursor.peek().upper not in _AFTER_NEW_NAME and not cursor.at_sign("("):
        cursor.end_of_statement()
    words = {lexeme.upper for lexeme in _rest(cursor)}
    if words & _ATTACHING:
        raise attached(name)
    if words >= {"AS", "COPY", "OF"}:
        raise RefusalError(f"what the copied database {quote(name)} holds is not in the script")
    if "SNAPSHOT" in words:
        raise RefusalError(f"{quote(name)} is a snapshot, whose routes are those of its source")
    return [CreateDatabase(file=place.file, line=place.line, database=place.database, name=name)]


def attached(name: str) -> RefusalError:
    """Return the error that an attached database cannot be known."""
    return RefusalError(f"what the attached database {quote(name)} holds is not in the script")


def drop_database(cursor: LexemeCursor, place: StatementPlace) -> list[ScriptStatement]:
    """Read DROP DATABASE [IF EXISTS] name, name…."""
    cursor.expect_words("DROP", "DATABASE")
    if cursor.peek().upper in _OTHER_THINGS and cursor.peek(1).kind is LexemeKind.WORD:
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


def alter_database(cursor: LexemeCursor, place: StatementPlace) -> list[ScriptStatement]:
    """Read ALTER DATABASE name | CURRENT: a new name, SET's broker options, and states that no table holds."""
    cursor.expect_words("ALTER", "DATABASE")
    if cursor.peek().upper in _OTHER_THINGS and cursor.peek(1).kind is LexemeKind.WORD:
        return []
    name, doubt = _read_altered_name(cursor, place)
    statements: list[ScriptStatement] = []
    if cursor.take_words("MODIFY", "NAME"):
        cursor.expect_sign("=")
        statements.append(rename(place, name, cursor.name("new database name")))
        cursor.end_of_statement()
    elif cursor.take_words("SET"):
        statements = [
            statement for option in _set_options(cursor) for statement in _read_option(option, place, name)
        ]
        if any(isinstance(statement, AlterDatabase) for statement in statements):
            _termination(cursor)
    elif _is_left_over(cursor):
        raise cursor.unexpected("SET or another clause")
    elif any(lexeme.upper in _SETTINGS for lexeme in _rest(cursor)):
        raise UnparsedError("a broker option stands behind no SET")
    if statements and doubt is not None:
        raise doubt
    return statements


def _is_left_over(cursor: LexemeCursor) -> bool:
    """Return whether what follows a database's name is surely no clause: a sign, or a word before SET."""
    lexeme = cursor.peek()
    if lexeme.kind is LexemeKind.SIGN:
        return lexeme.text in "-./"
    is_word = lexeme.kind in (LexemeKind.WORD, LexemeKind.NAME) and find_unknown_variable(lexeme.text) is None
    return lexeme.upper in _NO_CLAUSES or (is_word and cursor.peek(1).upper in ("SET", "MODIFY"))


def rename(place: StatementPlace, name: str, new_name: str) -> RenameDatabase:
    """Return the statement that gives a database another name."""
    return RenameDatabase(file=place.file, line=place.line, database=place.database, name=name, new_name=new_name)


def _read_altered_name(cursor: LexemeCursor, place: StatementPlace) -> tuple[str, RefusalError | None]:
    """Return the database's name, or why it is not known, which matters only where it is of routing."""
    if cursor.take_words("CURRENT"):
        return CURRENT, None
    try:
        return cursor.name("database name"), None
    except UnparsedError:
        raise
    except RefusalError as refusal:
        while not (cursor.at_end or cursor.at_sign(";") or cursor.at_words("MODIFY", "NAME")):
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
            raise UnparsedError("the broker options of SET stand in no parentheses")
        return []
    while not (cursor.at_end or cursor.at_sign(";") or cursor.at_words("WITH") or begins_statement(cursor)):
        if cursor.peek().kind is LexemeKind.CUT:
            raise cursor.unexpected("the end of the statement")
        if cursor.take_sign(","):
            options.append([])
        elif not cursor.skip_group():
            options[-1].append(cursor.next())
    if options == [[]]:
        raise cursor.unexpected("an option of the database")
    return [option for option in options if option]


def _read_option(option: list[Lexeme], place: StatementPlace, name: str) -> list[ScriptStatement]:
    first = option[0]
    missing = find_unknown_variable(first.text)
    if missing is not None:
        raise no_value(missing)
    file, line, used = place.file, place.line, place.database
    if first.upper in _STATES:
        return [AlterDatabaseState(file=file, line=line, database=used, name=name, state=first.upper)]
    meant = find_misspelt(first.upper, (*_SETTINGS, *_STATES))
    if meant is not None:
        raise UnparsedError(f"a database has no option {quote(first.text)}, but {meant}")
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
    return [AlterDatabase(file=file, line=line, database=used, name=name, setting=setting)]


def _termination(cursor: LexemeCursor) -> None:
    """Skip WITH ROLLBACK AFTER n SECONDS, WITH ROLLBACK IMMEDIATE or WITH NO_WAIT."""
    if not cursor.take_words("WITH"):
        return
    if cursor.take_words("ROLLBACK"):
        if cursor.peek().upper not in ("IMMEDIATE", "AFTER"):
            raise cursor.unexpected("IMMEDIATE or AFTER")
    elif not cursor.at_words("NO_WAIT"):
        raise cursor.unexpected("ROLLBACK or NO_WAIT")


def _rest(cursor: LexemeCursor) -> list[Lexeme]:
    """Return the lexemes up to the statement's end, without what stands in parentheses."""
    lexemes = []
    while not (cursor.at_end or cursor.at_sign(";")):
        if cursor.peek().kind is LexemeKind.CUT:
            raise cursor.unexpected("the end of the statement")
        if cursor.skip_group() or cursor.take_words("WITH"):
            continue
        if cursor.peek().upper in STARTERS:
            break
        lexemes.append(cursor.next())
    return lexemes
