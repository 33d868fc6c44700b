"""EXEC, and which text it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from routing.importing.tsql.constants import Constant
from routing.importing.tsql.cursor import Cursor
from routing.importing.tsql.tokens import Kind, Lexeme
from routing.importing.tsql.vocabulary import STARTERS

_IS_VARIABLE = "of a variable: its text is known to the server alone"
_IS_NARROW = "of a text that is not nvarchar, which sp_executesql refuses"
_STATEMENT_TYPE = 214
_IS_BUILT = "of a text built by string concatenation, which only the server can do"

RUNS_TEXT = "sp_executesql"


Evaluate = Callable[[Sequence[Lexeme]], Constant | None]
"""What an expression comes to; None where that is not known."""


@dataclass(frozen=True)
class Executed:
    """What an EXEC runs: a ``procedure``, or a ``text``, or ``why`` that is not known, or refused by a ``number``.

    ``database`` is where it runs if that is not the one in use, ``server`` if that is not this
    instance. ``has_variables`` tells a text that holds some from one of literals alone.
    """

    text: Constant | None = None
    why: str | None = None
    database: str | None = None
    server: str | None = None
    procedure: str | None = None
    number: int | None = None
    has_variables: bool = False


def read_execution(cursor: Cursor, evaluate: Evaluate) -> Executed:
    """What the EXEC at the cursor runs; the cursor moves past the text or the procedure's name.

    The first statement of a batch may call a procedure without EXEC.
    """
    if not cursor.take_words("EXEC"):
        cursor.take_words("EXECUTE")
    if cursor.at_sign("("):
        return _read_executed_string(cursor, evaluate)
    if cursor.peek().text.startswith("@") and cursor.peek(1).text == "=":
        cursor.next()
        cursor.next()
    parts = _procedure_name(cursor)
    server = parts[0] if len(parts) > 3 else None
    if not parts or parts[-1].lower() != RUNS_TEXT:
        return Executed(procedure=parts[-1] if parts else "", server=server)
    database = parts[-3] or None if len(parts) > 2 else None
    if cursor.peek().text.lower() in ("@stmt", "@statement") and cursor.peek(1).text == "=":
        cursor.next()
        cursor.next()
    if cursor.peek(1).text == "+":
        raise cursor.unexpected("one literal or variable", at=1)
    word = cursor.next()
    value = evaluate((word,))
    if value is None:
        return Executed(why=_IS_VARIABLE, server=server)
    if not value.is_national:
        return Executed(why=_IS_NARROW, number=_STATEMENT_TYPE)
    return Executed(value, database=database, server=server, has_variables=word.kind is Kind.WORD)


def _read_executed_string(cursor: Cursor, evaluate: Evaluate) -> Executed:
    """EXEC ('…'): literals and known variables joined by plus signs are known; AT names another instance."""
    if not cursor.at_group:
        return Executed(why="of a text in a parenthesis that does not end")
    inner = cursor.group()
    if cursor.take_words("AS"):
        cursor.next()
        cursor.take_sign("=")
        cursor.next()
    server = cursor.next().text if cursor.take_words("AT") else None
    value = evaluate(inner)
    if value is not None:
        return Executed(value, server=server, has_variables=any(word.kind is Kind.WORD for word in inner))
    is_variable = len(inner) == 1 and inner[0].text.startswith("@")
    return Executed(why=_IS_VARIABLE if is_variable else _IS_BUILT, server=server)


def find_called(cursor: Cursor) -> str:
    """The procedure, without its schema, whose name begins at the cursor; empty where none does."""
    position = cursor.position
    parts = _procedure_name(cursor)
    cursor.position = position
    return parts[-1] if parts else ""


def _procedure_name(cursor: Cursor) -> list[str]:
    parts: list[str] = []
    while cursor.peek().kind in (Kind.WORD, Kind.NAME) and cursor.peek().upper not in STARTERS:
        parts.append(cursor.next().text)
        dots = 0
        while cursor.take_sign("."):
            dots += 1
        if dots == 0:
            break
        parts.extend([""] * (dots - 1))
    return parts
