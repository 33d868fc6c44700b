"""EXEC, and which text it runs; and texts about routing that are not run where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routing.importing.tsql.cursor import Cursor, drop_line_breaks
from routing.importing.tsql.tokens import Kind, Lexeme
from routing.importing.tsql.vocabulary import STARTERS, speaks_of_routing

_IS_VARIABLE = "of a variable: its text is known to the server alone"
_IS_BUILT = "of a text built by string concatenation, which only the server can do"

RUNS_TEXT = "sp_executesql"
_BUILDERS = frozenset(["CONCAT", "CONCAT_WS", "FORMATMESSAGE", "QUOTENAME", "REPLACE", "STUFF"])


@dataclass(frozen=True)
class Executed:
    """What an EXEC runs: a ``procedure``, or a ``text``, or ``why`` that is not known.

    ``database`` is where it runs if that is not the one in use, ``server`` if that is not this
    instance.
    """

    text: str | None = None
    why: str | None = None
    database: str | None = None
    server: str | None = None
    procedure: str | None = None


def read_execution(cursor: Cursor) -> Executed:
    """What the EXEC at the cursor runs; the cursor moves past the text or the procedure's name.

    The first statement of a batch may call a procedure without EXEC.
    """
    if not cursor.take_words("EXEC"):
        cursor.take_words("EXECUTE")
    if cursor.at_sign("("):
        return _read_executed_string(cursor)
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
    if cursor.peek().kind is not Kind.STRING:
        return Executed(why=_IS_VARIABLE, server=server)
    if cursor.peek(1).text == "+":
        return Executed(why=_IS_BUILT, server=server)
    return Executed(drop_line_breaks(cursor.next().text), database=database, server=server)


def _read_executed_string(cursor: Cursor) -> Executed:
    """EXEC ('…'): literals joined by plus signs are known; AT names another instance."""
    if not cursor.at_group:
        return Executed(why="of a text in a parenthesis that does not end")
    inner = cursor.group()
    if cursor.take_words("AS"):
        cursor.next()
        cursor.take_sign("=")
        cursor.next()
    server = cursor.next().text if cursor.take_words("AT") else None
    text = _join(inner)
    if text is not None:
        return Executed(text, server=server)
    is_variable = len(inner) == 1 and inner[0].text.startswith("@")
    return Executed(why=_IS_VARIABLE if is_variable else _IS_BUILT, server=server)


def _join(parts: Sequence[Lexeme]) -> str | None:
    """The text of literals with plus signs between them; double quotes hold a string here too."""
    strings, signs = parts[::2], parts[1::2]
    if len(strings) != len(signs) + 1 or any(sign.text != "+" for sign in signs):
        return None
    if any(part.kind not in (Kind.STRING, Kind.NAME) for part in strings):
        return None
    return drop_line_breaks("".join(part.text for part in strings))


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


def find_hidden_statement(words: Sequence[Lexeme]) -> str | None:
    """Why the routing statement in these words' strings does not count; None without one."""
    text = " ".join(lexeme.text for lexeme in words if lexeme.kind is Kind.STRING)
    if not speaks_of_routing(text):
        return None
    if words[0].upper == "PRINT":
        return "a statement in a text that is printed, not run"
    if any(lexeme.text == "+" or lexeme.upper in _BUILDERS for lexeme in words):
        return "a statement built by string concatenation, which only the server can do"
    return "a statement in a text that is not run where it stands"
