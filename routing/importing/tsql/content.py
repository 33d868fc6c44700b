"""CREATE, ALTER and DROP: of what belongs to routing, and of anything else."""

from __future__ import annotations

from routing.importing.tsql.batch_syntax import find_misspelt_noun
from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.database_definitions import alter_database, create_database, drop_database
from routing.importing.tsql.definitions import Definition, alter_route, create_route, create_service, drop
from routing.importing.tsql.endpoint_definitions import alter_endpoint, create_endpoint
from routing.importing.tsql.refusal import RESERVED_WORD, SYNTAX, UnparsedError
from routing.importing.tsql.script_statements import DropEndpoint, DropRoute, DropService, quote
from routing.importing.tsql.tokens import LexemeKind
from routing.importing.tsql.vocabulary import RESERVED, as_written

_DEFINITIONS: dict[tuple[str, str], Definition] = {
    ("CREATE", "ROUTE"): create_route,
    ("ALTER", "ROUTE"): alter_route,
    ("DROP", "ROUTE"): drop(DropRoute, "ROUTE"),
    ("CREATE", "SERVICE"): create_service,
    ("DROP", "SERVICE"): drop(DropService, "SERVICE"),
    ("CREATE", "ENDPOINT"): create_endpoint,
    ("ALTER", "ENDPOINT"): alter_endpoint,
    ("DROP", "ENDPOINT"): drop(DropEndpoint, "ENDPOINT"),
    ("CREATE", "DATABASE"): create_database,
    ("ALTER", "DATABASE"): alter_database,
    ("DROP", "DATABASE"): drop_database,
}
_NAMED = frozenset(["TABLE", "QUEUE", "CONTRACT", "VIEW", "PROC", "PROCEDURE", "FUNCTION", "SEQUENCE", "SYNONYM"])
"""Kinds of things whose name stands right behind them."""


def find_definition(verb: str, noun: str) -> Definition | None:
    """Return the reader of a statement of this verb and noun; None for one that is not about routing."""
    return _DEFINITIONS.get((verb, noun))


def title_of(cursor: LexemeCursor) -> str:
    """Write the title of the definition at the cursor: ``CREATE ROUTE 'name'``."""
    verb, noun, name = cursor.peek().upper, cursor.peek(1).upper, cursor.peek(2)
    is_name = name.kind in (LexemeKind.WORD, LexemeKind.NAME) and name.upper not in RESERVED
    return f"{verb} {noun} {quote(as_written(name.text))}" if is_name else f"{verb} {noun}"


def find_other_fault(cursor: LexemeCursor, name_at: int) -> UnparsedError | None:
    """Return why SQL Server cannot parse a definition of something else, if that is sure from its first words."""
    verb, noun = cursor.peek().upper, cursor.peek(name_at)
    if name_at == 3 and (verb, noun.upper) in _DEFINITIONS:
        return UnparsedError("it has no clause OR ALTER")
    meant = find_misspelt_noun(noun.upper)
    if meant is not None:
        return UnparsedError(f"{meant} was meant by {quote(noun.text)}")
    if noun.upper not in _NAMED:
        return None
    has_if = cursor.peek(name_at + 1).upper == "IF" and cursor.peek(name_at + 2).upper == "EXISTS"
    name = cursor.peek(name_at + (3 if has_if else 1))
    if name.upper in RESERVED:
        return UnparsedError(
            f"{quote(name.text)} is a reserved keyword: brackets make a name of it", RESERVED_WORD
        )
    return None


def find_stray_sign(cursor: LexemeCursor) -> UnparsedError | None:
    """Return why BACKUP or RESTORE cannot be parsed where a sign follows the database's name."""
    name, after = cursor.peek(2), cursor.peek(3)
    is_stray = after.kind is LexemeKind.SIGN and after.text in "-./"
    if name.kind in (LexemeKind.WORD, LexemeKind.NAME) and is_stray:
        return UnparsedError(f"{quote(after.text)} follows the name {quote(as_written(name.text))}", SYNTAX)
    return None
