"""Split a text into lexemes, by sqlglot's T-SQL tokenizer.

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

from routing.importing.tsql.vocabulary import INVISIBLE, NOUNS, RESERVED, STARTERS

# Where a text is code and where it is string, quoted name or comment.
#
# The tokenizer reads the tokens; this says what lies between them, line by line, before ``GO`` and the sqlcmd
# commands are taken out, and where a text that ends too early was opened.


class TextMode(Enum):
    """The kind of a stretch of text; the value is its name in texts."""

    CODE = "code"
    STRING = "string"
    QUOTED = "name in double quotes"
    BRACKET = "name in brackets"
    COMMENT = "comment"
    LINE_COMMENT = "line comment"


@dataclass(frozen=True)
class LexicalState:
    """The construct that a point of the text is inside of; ``depth`` counts nested comments."""

    mode: TextMode = TextMode.CODE
    depth: int = 0


@dataclass(frozen=True)
class TextSegment:
    """``text[start:end]`` is all of one mode, its delimiters included."""

    mode: TextMode
    start: int
    end: int


CODE = LexicalState()
_OPENING = {
    "'": TextMode.STRING,
    '"': TextMode.QUOTED,
    "[": TextMode.BRACKET,
    "/*": TextMode.COMMENT,
    "--": TextMode.LINE_COMMENT,
}
_OPENER = re.compile(r"--|/\*|['\"\[]")
_CLOSER = {
    TextMode.STRING: re.compile("''?"),
    TextMode.QUOTED: re.compile('""?'),
    TextMode.BRACKET: re.compile(r"\]\]?"),
    TextMode.COMMENT: re.compile(r"/\*|\*/"),
    TextMode.LINE_COMMENT: re.compile(r"\n"),
}


def segments(text: str, state: LexicalState = CODE) -> tuple[list[TextSegment], LexicalState]:
    """Return the segments of a text that begins in ``state``, and the state it ends in."""
    parts: list[TextSegment] = []
    start = inside = 0
    while start < len(text):
        mode = state.mode
        if mode is TextMode.CODE:
            opener = _OPENER.search(text, start)
            end = opener.start() if opener else len(text)
            if end > start:
                parts.append(TextSegment(mode, start, end))
            if opener:
                state, inside = LexicalState(_OPENING[opener.group()], 1), opener.end()
        else:
            end, state = _close(text, inside, state)
            parts.append(TextSegment(mode, start, end))
            inside = end
        start = end
    return parts, state


def _close(text: str, position: int, state: LexicalState) -> tuple[int, LexicalState]:
    """Return where the string, name or comment around this position ends, and the state from there on."""
    depth = state.depth
    for closer in _CLOSER[state.mode].finditer(text, position):
        if state.mode is TextMode.COMMENT:
            depth += 1 if closer.group() == "/*" else -1
            if depth == 0:
                return closer.end(), CODE
        elif state.mode is TextMode.LINE_COMMENT or len(closer.group()) == 1:
            return closer.end(), CODE
    return len(text), LexicalState(state.mode, depth)


class LexemeKind(Enum):
    """The kind of a lexeme; END follows the last, CUT marks a string or comment that is not closed."""

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

    ``start`` and ``end`` are offsets in the text, ``row`` the line of it, both from 0. ``is_national`` marks a
    string that is written with N before it.
    """

    kind: LexemeKind
    text: str
    upper: str
    start: int
    end: int
    row: int
    is_national: bool = False


@dataclass(frozen=True)
class LexemeList:
    """A text's lexemes; one that ends too early was opened at row ``cut``, by a ``cut_in``.

    ``invisible`` has the row and the first invisible character of each row that holds one outside strings, names
    and comments. The lexemes are those without it: it divides words where it stands beside a keyword.
    """

    text: str
    lexemes: tuple[Lexeme, ...]
    cut: int | None = None
    cut_in: str = ""
    invisible: tuple[tuple[int, str], ...] = ()


_LONGEST_PART = 40
_FIRST_WORD = re.compile(rf"[\w@#$]{{1,{_LONGEST_PART}}}")
_INVISIBLE_RUN = re.compile(f"{INVISIBLE.pattern}+")
_OPTIONS = ("ADDRESS", "BROKER_INSTANCE", "LIFETIME", "MIRROR_ADDRESS", "SERVICE_NAME")
_KEYWORDS = RESERVED | STARTERS | {*NOUNS, *_OPTIONS}


class _Lexer(TSQL.Tokenizer):
    KEYWORDS: ClassVar[dict[str, TokenType]] = {}
    # With a double quote here, which encloses names, N before one would begin a string that ends at the next.
    QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]


def tokenize(text: str) -> LexemeList:
    """Return the lexemes of a text, up to the string, name or comment that is not closed."""
    text_segments, last = segments(text)
    strays = _find_invisible(text, text_segments)
    row_starts = [match.end() for match in re.finditer("\n", text)]
    cut = _find_cut(text_segments, last)
    readable = text[:cut] if cut is not None else text
    cut_in = last.mode.value
    try:
        tokens = _Lexer(dialect=TSQL()).tokenize(_plain(readable, text_segments, strays))
    except TokenError:
        tokens, cut, cut_in = [], 0, "text that the tokenizer cannot read"
    lexemes = [_lexeme(token, text, row_starts) for token in tokens]
    merged = _merge(lexemes, text)
    by_row = {bisect_right(row_starts, start): text[start] for start, _end in reversed(strays)}
    invisible = tuple(sorted(by_row.items()))
    if cut is None:
        return LexemeList(text, tuple(merged), invisible=invisible)
    row = bisect_right(row_starts, cut)
    merged.append(Lexeme(LexemeKind.CUT, cut_in, "", cut, len(text), row))
    return LexemeList(text, tuple(merged), row, cut_in, invisible)


def _find_cut(text_segments: list[TextSegment], last: LexicalState) -> int | None:
    if last == CODE or last.mode is TextMode.LINE_COMMENT or not text_segments:
        return None
    return text_segments[-1].start


def _find_invisible(text: str, text_segments: list[TextSegment]) -> list[tuple[int, int]]:
    """Return the beginning and end of each run of invisible characters in code."""
    if text.isascii():
        return []
    in_code = (part for part in text_segments if part.mode is TextMode.CODE)
    return [match.span() for part in in_code for match in _INVISIBLE_RUN.finditer(text, part.start, part.end)]


def _plain(text: str, text_segments: list[TextSegment], strays: list[tuple[int, int]]) -> str:
    """Return the text, as long as before, without what the tokenizer takes for something else.

    ``{#`` would open a comment; an invisible character would stick to a keyword.
    """
    if "{" in text:
        parts = (text[part.start : part.end] for part in text_segments)
        kinds = (part.mode is TextMode.CODE for part in text_segments)
        text = "".join(
            piece.replace("{", "?") if is_code else piece for piece, is_code in zip(parts, kinds, strict=True)
        )
    characters = list(text) if strays else []
    for start, end in strays:
        if end <= len(text) and _divides(text, start, end):
            characters[start:end] = " " * (end - start)
    return "".join(characters) or text


def _divides(text: str, start: int, end: int) -> bool:
    """Return whether invisible characters divide words: they do but within a word that holds no keyword."""
    before = _FIRST_WORD.match(text[max(0, start - _LONGEST_PART) : start][::-1])
    after = _FIRST_WORD.match(text, end)
    if before is None or after is None:
        return True
    return before.group()[::-1].upper() in _KEYWORDS or after.group().upper() in _KEYWORDS


def _lexeme(token: Token, text: str, row_starts: list[int]) -> Lexeme:
    start, end = token.start, token.end + 1
    raw = text[start:end]
    first = raw[:1]
    row = bisect_right(row_starts, start)
    if first == "'" or (first in "nN" and raw[1:2] == "'" and len(raw) > 2):
        return Lexeme(LexemeKind.STRING, token.text, "", start, end, row, is_national=first != "'")
    if first in ('"', "["):
        return Lexeme(LexemeKind.NAME, token.text, "", start, end, row)
    if first in "0123456789":
        return Lexeme(LexemeKind.NUMBER, raw, "", start, end, row)
    if len(raw) > 1 or first == "_" or first.isalnum() or ord(first) > 127:
        word = INVISIBLE.sub("", raw)
        return Lexeme(LexemeKind.WORD, word, _upper(word), start, end, row)
    return Lexeme(LexemeKind.SIGN, raw, "", start, end, row)


def _upper(word: str) -> str:
    """Convert ASCII to upper case; no letter of another alphabet becomes one of a keyword's."""
    return word.upper() if word.isascii() else word


def _merge(lexemes: list[Lexeme], text: str) -> list[Lexeme]:
    """Merge ``@name``, ``@@name``, ``#name`` and ``##name`` into one word each."""
    merged: list[Lexeme] = []
    index = 0
    while index < len(lexemes):
        first = last = lexemes[index]
        index += 1
        while _is_mark(last) and index < len(lexemes) and lexemes[index].start == last.end:
            if not _is_mark(lexemes[index]) and lexemes[index].kind is not LexemeKind.WORD:
                break
            last = lexemes[index]
            index += 1
        if last is not first:
            raw = text[first.start : last.end]
            first = Lexeme(LexemeKind.WORD, raw, _upper(raw), first.start, last.end, first.row)
        merged.append(first)
    return merged


def _is_mark(lexeme: Lexeme) -> bool:
    return lexeme.kind is LexemeKind.SIGN and lexeme.text in "@#"
