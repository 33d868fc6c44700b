"""Text → lexemes, by sqlglot's T-SQL tokenizer.

The tokenizer is asked for T-SQL's lexical rules alone: no keywords and no commands, since it would
otherwise read what follows ``GO`` or ``END`` as one string. What it does not know of T-SQL is made
up for here: it takes ``{#`` for a comment, gives ``@``, ``#`` and the name after them as several
tokens, and refuses a whole text for one quote that is not closed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from sqlglot import Token, TokenType
from sqlglot.dialects.tsql import TSQL
from sqlglot.errors import TokenError

from routing.importing.tsql.lexical import CODE, Mode, Segment, State, segments


class Kind(Enum):
    """What a lexeme is; END follows the last, CUT marks a string or comment that is not closed."""

    WORD = "word"
    NAME = "quoted name"
    STRING = "string"
    NUMBER = "number"
    SIGN = "sign"
    CUT = "cut"
    END = "end"


@dataclass(frozen=True, slots=True)
class Lexeme:
    """One token: ``text`` is unquoted, ``upper`` the upper case of a word, else empty.

    ``start`` and ``end`` are offsets in the text, ``row`` the line of it, both from 0.
    """

    kind: Kind
    text: str
    upper: str
    start: int
    end: int
    row: int


@dataclass(frozen=True)
class Tokens:
    """A text's lexemes; one that ends too early was opened at row ``cut``, by a ``cut_in``."""

    text: str
    lexemes: tuple[Lexeme, ...]
    cut: int | None = None
    cut_in: str = ""


class _Lexer(TSQL.Tokenizer):
    KEYWORDS: ClassVar[dict[str, TokenType]] = {}
    # With a double quote here, which encloses names, N before one would begin a string that ends at the next.
    QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]


def tokenize(text: str) -> Tokens:
    """The lexemes of a text, up to the string, name or comment that is not closed."""
    found, last = segments(text)
    row_starts = [match.end() for match in re.finditer("\n", text)]
    cut = _find_cut(found, last)
    readable = text[:cut] if cut is not None else text
    cut_in = last.mode.value
    try:
        tokens = _Lexer(dialect=TSQL()).tokenize(_plain(readable, found))
    except TokenError:
        tokens, cut, cut_in = [], 0, "text that the tokenizer cannot read"
    lexemes = [_lexeme(token, text, row_starts) for token in tokens]
    merged = _merge(lexemes, text)
    if cut is None:
        return Tokens(text, tuple(merged))
    row = bisect_right(row_starts, cut)
    merged.append(Lexeme(Kind.CUT, cut_in, "", cut, len(text), row))
    return Tokens(text, tuple(merged), row, cut_in)


def _find_cut(found: list[Segment], last: State) -> int | None:
    if last == CODE or last.mode is Mode.LINE_COMMENT or not found:
        return None
    return found[-1].start


def _plain(text: str, found: list[Segment]) -> str:
    """The text, as long as before, without what the tokenizer takes for something else.

    ``{#`` would open a comment; a byte-order mark, left where files were joined, would stick to a
    word.
    """
    if "{" not in text and "\ufeff" not in text:
        return text
    parts = []
    for part in found:
        piece = text[part.start : part.end]
        if part.mode is Mode.CODE:
            piece = piece.replace("{", "?").replace("\ufeff", " ")
        parts.append(piece)
    return "".join(parts)


def _lexeme(token: Token, text: str, row_starts: list[int]) -> Lexeme:
    start, end = token.start, token.end + 1
    raw = text[start:end]
    first = raw[:1]
    row = bisect_right(row_starts, start)
    if first == "'" or (first in "nN" and raw[1:2] == "'" and len(raw) > 2):
        return Lexeme(Kind.STRING, token.text, "", start, end, row)
    if first in ('"', "["):
        return Lexeme(Kind.NAME, token.text, "", start, end, row)
    if first in "0123456789":
        return Lexeme(Kind.NUMBER, raw, "", start, end, row)
    if len(raw) > 1 or first == "_" or first.isalnum() or ord(first) > 127:
        return Lexeme(Kind.WORD, raw, _upper(raw), start, end, row)
    return Lexeme(Kind.SIGN, raw, "", start, end, row)


def _upper(word: str) -> str:
    """Upper case, but no letter of another alphabet becomes one of a keyword's."""
    return word.upper() if word.isascii() else word


def _merge(lexemes: list[Lexeme], text: str) -> list[Lexeme]:
    """``@name``, ``@@name``, ``#name`` and ``##name`` as one word each."""
    merged: list[Lexeme] = []
    index = 0
    while index < len(lexemes):
        first = last = lexemes[index]
        index += 1
        while _is_mark(last) and index < len(lexemes) and lexemes[index].start == last.end:
            if not _is_mark(lexemes[index]) and lexemes[index].kind is not Kind.WORD:
                break
            last = lexemes[index]
            index += 1
        if last is not first:
            raw = text[first.start : last.end]
            first = Lexeme(Kind.WORD, raw, _upper(raw), first.start, last.end, first.row)
        merged.append(first)
    return merged


def _is_mark(lexeme: Lexeme) -> bool:
    return lexeme.kind is Kind.SIGN and lexeme.text in "@#"
