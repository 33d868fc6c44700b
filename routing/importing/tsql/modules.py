"""The heads of procedures, functions, triggers and views: names, parameters, and where the body begins."""

from __future__ import annotations

from collections.abc import Iterator

from routing.importing.tsql.cursor import LexemeCursor
from routing.importing.tsql.tokens import Lexeme, LexemeKind
from routing.importing.tsql.tree import ProcedureParameter, Words

_MODULES = ("PROC", "PROCEDURE", "FUNCTION", "TRIGGER", "VIEW")
AFTER_CREATE = frozenset(["SCHEMA", "DEFAULT", "RULE"])
"""What CREATE alone, not ALTER, makes first in its batch."""

FIRST_IN_BATCH = frozenset(
    [*((verb, kind) for verb in ("CREATE", "ALTER") for kind in _MODULES)]
    + [("CREATE", kind) for kind in AFTER_CREATE]
)
"""Verbs and kinds of what must stand first in its batch."""

DEFAULT_SCHEMA = "dbo"
_END_OF_PARAMETERS = frozenset(["WITH", "FOR", "RETURNS", "AS"])


def read_name(cursor: LexemeCursor) -> tuple[str, tuple[str, str]]:
    """Return the name at the cursor, as written last, and its schema and name in lower case; move past it."""
    parts = [cursor.next().text]
    while cursor.take_sign("."):
        parts.append("" if cursor.at_sign(".") else cursor.next().text)
    if cursor.at_sign(";") and cursor.peek(1).kind is LexemeKind.NUMBER:
        cursor.next()
        cursor.next()
    return parts[-1], key_of(parts)


def key_of(parts: list[str] | tuple[str, ...]) -> tuple[str, str]:
    """Return schema and name, in lower case, of a name in parts."""
    schema = parts[-2] if len(parts) > 1 and parts[-2] else DEFAULT_SCHEMA
    return schema.casefold(), parts[-1].casefold()


def find_body(cursor: LexemeCursor, kind: str) -> None:
    """Move to the body of a module, from behind its name."""
    before = cursor.peek(-1)
    while not cursor.at_end:
        lexeme = cursor.peek()
        if kind == "FUNCTION" and lexeme.upper in ("BEGIN", "RETURN"):
            return
        if lexeme.upper == "AS" and before.upper not in ("EXECUTE", "EXEC") and not before.text.startswith("@"):
            cursor.next()
            return
        before = lexeme
        if not cursor.skip_group():
            cursor.next()


def read_parameters(header: Words) -> tuple[ProcedureParameter, ...]:
    """Return the parameters in the head of a procedure, which may stand in parentheses."""
    return tuple(_read_parameter(words) for words in _split(_unwrap(header)) if words[0].text.startswith("@"))


def _unwrap(header: Words) -> Words:
    if not (header and header[0].kind is LexemeKind.SIGN and header[0].text == "("):
        return header
    depth = 0
    for index, lexeme in enumerate(header):
        depth += _depth(lexeme)
        if depth == 0:
            return header[1:index]
    return header[1:]


def _depth(lexeme: Lexeme) -> int:
    return ((lexeme.text == "(") - (lexeme.text == ")")) if lexeme.kind is LexemeKind.SIGN else 0


def _split(words: Words) -> Iterator[Words]:
    """Yield the words between commas outside parentheses, up to WITH, FOR or the body."""
    depth, start = 0, 0
    for index, lexeme in enumerate(words):
        depth += _depth(lexeme)
        is_end = lexeme.upper in _END_OF_PARAMETERS and not words[index - 1].text.startswith("@")
        if depth == 0 and (is_end or (lexeme.kind is LexemeKind.SIGN and lexeme.text == ",")):
            if words[start:index]:
                yield words[start:index]
            start = index + 1
            if is_end:
                return
    if words[start:]:
        yield words[start:]


def _read_parameter(words: Words) -> ProcedureParameter:
    name, rest = words[0].text, list(words[1:])
    is_output = any(word.upper in ("OUTPUT", "OUT") for word in rest)
    rest = [word for word in rest if word.upper not in ("OUTPUT", "OUT", "READONLY", "VARYING")]
    if rest and rest[0].upper == "AS":
        rest = rest[1:]
    equals = next(
        (index for index, word in enumerate(rest) if word.text == "=" and word.kind is LexemeKind.SIGN), None
    )
    default = None if equals is None else tuple(rest[equals + 1 :])
    type_words = [word for word in rest[:equals] if word.upper not in ("NULL", "NOT")]
    return ProcedureParameter(name, tuple(type_words), default, is_output)


def read_dropped(cursor: LexemeCursor) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Return schemas and names behind DROP PROCEDURE, and whether IF EXISTS stands there; move past them."""
    cursor.next()
    cursor.next()
    if_exists = cursor.take_words("IF", "EXISTS")
    keys = []
    while cursor.peek().kind in (LexemeKind.WORD, LexemeKind.NAME):
        keys.append(read_name(cursor)[1])
        if not cursor.take_sign(","):
            break
    return tuple(keys), if_exists
