"""Split a text into lexemes, by sqlglot's T-SQL tokenizer.

The tokenizer uses only T-SQL's lexical rules, without keywords and commands. Otherwise it would read the text
after ``GO`` or ``END`` as one string. This module corrects its limits. The tokenizer takes ``{#`` for a comment,
and splits ``@`` and ``#`` from their names. It also refuses a whole text for one unclosed quote.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from routing.importing.tsql.vocabulary import INVISIBLE, NOUNS, RESERVED, STARTERS

if TYPE_CHECKING:
    from sqlglot import Token, Tokenizer, TokenType

# Find the parts of a text that are code, strings, quoted names or comments.
# The tokenizer reads the tokens. This module finds the text between them, line by line, before ``GO`` and the
# sqlcmd commands are removed, and the beginning of an unclosed text.


class TextMode(Enum):
    """The kind of a segment of text. The value is its name in texts."""

    CODE = "code"
    STRING = "string"
    QUOTED = "name in double quotes"
    BRACKET = "name in brackets"
    COMMENT = "comment"
    LINE_COMMENT = "line comment"


@dataclass(frozen=True)
class LexicalState:
    """The construct around a position in the text. ``depth`` counts nested comments."""

    mode: TextMode = TextMode.CODE
    depth: int = 0


class TextSegment(NamedTuple):
    """``text[start:end]`` is all of one mode, its delimiters included."""

    mode: TextMode
    start: int
    end: int


CODE = LexicalState()
COMMENTS = (TextMode.COMMENT, TextMode.LINE_COMMENT)
OPENING = {
    "'": TextMode.STRING,
    '"': TextMode.QUOTED,
    "[": TextMode.BRACKET,
    "/*": TextMode.COMMENT,
    "--": TextMode.LINE_COMMENT,
}
"""The modes by their opening sign."""

OPENER = re.compile(r"--|/\*|['\"\[]")
_CLOSER = {
    TextMode.STRING: re.compile("''?"),
    TextMode.QUOTED: re.compile('""?'),
    TextMode.BRACKET: re.compile(r"\]\]?"),
    TextMode.COMMENT: re.compile(r"/\*|\*/"),
    TextMode.LINE_COMMENT: re.compile(r"\n"),
}


def segments(text: str, state: LexicalState = CODE) -> tuple[list[TextSegment], LexicalState]:
    """Return the segments of a text that begins in ``state``, and the state it ends in."""
    walk = SegmentWalk(text, state)
    return list(walk.read(0, len(text))), walk.state


class SegmentWalk:
    """Reads the segments of a text in order. ``state`` is the one after the last segment."""

    def __init__(self, text: str, state: LexicalState = CODE) -> None:
        self._text = text
        self.state = state

    def read(self, start: int, stop: int) -> Iterator[TextSegment]:
        """Yield the segments from ``start``, which end at ``stop`` at the latest."""
        inside = start
        while start < stop:
            mode = self.state.mode
            if mode is TextMode.CODE:
                opener = OPENER.search(self._text, start, stop)
                end = opener.start() if opener else stop
                if opener:
                    self.state, inside = LexicalState(OPENING[opener.group()], 1), opener.end()
                if end > start:
                    yield TextSegment(mode, start, end)
            else:
                end, self.state = close_segment(self._text, inside, self.state, stop)
                yield TextSegment(mode, start, end)
                inside = end
            start = end


def close_segment(text: str, position: int, state: LexicalState, stop: int) -> tuple[int, LexicalState]:
    """Return the end of the string, name or comment around this position, and the state after it."""
    depth = state.depth
    for closer in _CLOSER[state.mode].finditer(text, position, stop):
        if state.mode is TextMode.COMMENT:
            depth += 1 if closer.group() == "/*" else -1
            if depth == 0:
                return closer.end(), CODE
        elif state.mode is TextMode.LINE_COMMENT or len(closer.group()) == 1:
            return closer.end(), CODE
    return stop, LexicalState(state.mode, depth)


class LexemeKind(Enum):
    """The kind of a lexeme. END follows the last, and CUT marks an unclosed string or comment."""

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
    """A text's lexemes. If the text ends too early, ``cut_in`` opened at row ``cut`` without an end.

    ``invisible`` has the row and the first invisible character for each row with one outside strings, names and
    comments. The lexemes do not have it, because it separates words beside a keyword. ``skipped`` has the number
    of statements left out before the one at each of these offsets.
    """

    text: str
    lexemes: tuple[Lexeme, ...]
    cut: int | None = None
    cut_in: str = ""
    invisible: tuple[tuple[int, str], ...] = ()
    skipped: Mapping[int, int] = field(default_factory=dict)


_LONGEST_PIECE = 50_000
_LONG_COMMENT = 200
_BLANK = re.compile(r"[ \t\n]")
_LONGEST_PART = 40
_FIRST_WORD = re.compile(rf"[\w@#$]{{1,{_LONGEST_PART}}}")
_INVISIBLE_RUN = re.compile(f"{INVISIBLE.pattern}+")
_OPTIONS = ("ADDRESS", "BROKER_INSTANCE", "LIFETIME", "MIRROR_ADDRESS", "SERVICE_NAME")
_KEYWORDS = RESERVED | STARTERS | {*NOUNS, *_OPTIONS}


@cache
def _lexer_class() -> type[Tokenizer]:
    """Load sqlglot, which takes long, and only scripts need it."""
    from sqlglot.dialects.tsql import TSQL

    class Lexer(TSQL.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {}
        # With a double quote here, which encloses names, N before one would begin a string that ends at the next.
        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]

    return Lexer


@dataclass(frozen=True)
class SkippedText:
    """The part ``text[start:end]`` with ``count`` skipped statements. Another statement begins at ``end``."""

    start: int
    end: int
    count: int


def tokenize(text: str, skipped: Sequence[SkippedText] = ()) -> LexemeList:
    """Return the lexemes of a text, up to an unclosed string, name or comment.

    ``skipped`` parts are left out in order. Each begins and ends in code.
    """
    return _LexemeReader(text, skipped).read()


class _LexemeReader:
    """Tokenizes a text piece by piece: a token of the tokenizer takes a hundred times its text."""

    def __init__(self, text: str, skipped: Sequence[SkippedText]) -> None:
        self._text = text
        self._skipped = skipped
        self._lexer = _lexer_class()(dialect="tsql")
        self._names: dict[str, str] = {}
        self._words: dict[str, tuple[str, str]] = {}
        self._row_starts = array("I", (match.end() for match in re.finditer("\n", text)))
        self._row = 0
        self._lexemes: list[Lexeme] = []
        self._invisible: dict[int, str] = {}
        # The tokenizer ends a line comment at a carriage return too: such a text is not cut.
        self._is_divisible = "\r" not in text
        self._plain_pieces: list[str] = []
        self._piece_start = 0
        self._is_readable = True

    def read(self) -> LexemeList:
        walk = SegmentWalk(self._text)
        part: TextSegment | None = None
        start = 0
        for stop, following in [*((run.start, run.end) for run in self._skipped), (len(self._text), 0)]:
            self._piece_start = start
            for part in walk.read(start, stop):
                if part.mode is TextMode.CODE:
                    self._add_code(part)
                elif walk.state.mode in (TextMode.CODE, TextMode.LINE_COMMENT):
                    self._add_other(part)
            self._tokenize()
            start = following
        cut = None if part is None or walk.state == CODE else part.start
        return self._result(cut, walk.state.mode)

    def _result(self, cut: int | None, mode: TextMode) -> LexemeList:
        skipped = {run.end: run.count for run in self._skipped}
        invisible, cut_in = tuple(sorted(self._invisible.items())), mode.value
        if not self._is_readable:
            self._lexemes, cut, cut_in = [], 0, "text that the tokenizer cannot read"
        elif mode is TextMode.LINE_COMMENT:
            cut = None
        if cut is None:
            return LexemeList(self._text, tuple(self._lexemes), invisible=invisible, skipped=skipped)
        row = bisect_right(self._row_starts, cut)
        self._lexemes.append(Lexeme(LexemeKind.CUT, cut_in, "", cut, len(self._text), row))
        return LexemeList(self._text, tuple(self._lexemes), row, cut_in, invisible, skipped)

    def _add_code(self, part: TextSegment) -> None:
        """Add code, and end the piece at blanks in it once that is long enough."""
        start = part.start
        while self._is_divisible and part.end - self._piece_start > _LONGEST_PIECE:
            blank = _BLANK.search(self._text, max(start, self._piece_start + _LONGEST_PIECE), part.end)
            if blank is None:
                break
            self._plain_pieces.append(self._plain(start, blank.end()))
            self._tokenize()
            start = self._piece_start = blank.end()
        self._plain_pieces.append(self._plain(start, part.end))

    def _add_other(self, part: TextSegment) -> None:
        if part.mode in COMMENTS and self._is_divisible and part.end - part.start > _LONG_COMMENT:
            self._plain_pieces.append(" ")
            self._tokenize()
            self._piece_start = part.end
        else:
            self._plain_pieces.append(self._text[part.start : part.end])

    def _plain(self, start: int, end: int) -> str:
        """Return code of equal length, without text that confuses the tokenizer.

        ``{#`` would open a comment, and an invisible character would stick to a keyword.
        """
        code = self._text[start:end].replace("{", "?")
        if code.isascii():
            return code
        characters: list[str] = []
        for stray in _INVISIBLE_RUN.finditer(self._text, start, end):
            self._invisible.setdefault(bisect_right(self._row_starts, stray.start()), self._text[stray.start()])
            if _divides(self._text, stray.start(), stray.end()):
                characters = characters or list(code)
                characters[stray.start() - start : stray.end() - start] = " " * (stray.end() - stray.start())
        return "".join(characters) or code

    def _tokenize(self) -> None:
        piece, self._plain_pieces = "".join(self._plain_pieces), []
        if not piece or not self._is_readable:
            return
        from sqlglot.errors import TokenError

        try:
            tokens = self._lexer.tokenize(piece)
        except TokenError:
            self._is_readable = False
            return
        self._lexemes += _merge([self._lexeme(token) for token in tokens], self._text)

    def _lexeme(self, token: Token) -> Lexeme:
        start, end = self._piece_start + token.start, self._piece_start + token.end + 1
        while self._row < len(self._row_starts) and self._row_starts[self._row] <= start:
            self._row += 1
        raw = self._text[start:end]
        first = raw[:1]
        if first == "'" or (first in "nN" and raw[1:2] == "'" and len(raw) > 2):
            return Lexeme(LexemeKind.STRING, token.text, "", start, end, self._row, is_national=first != "'")
        if first in ('"', "["):
            name = self._names.setdefault(token.text, token.text)
            return Lexeme(LexemeKind.NAME, name, "", start, end, self._row)
        if first in "0123456789":
            return Lexeme(LexemeKind.NUMBER, raw, "", start, end, self._row)
        word, upper = self._word(raw)
        if len(raw) > 1 or first == "_" or first.isalnum() or ord(first) > 127:
            return Lexeme(LexemeKind.WORD, word, upper, start, end, self._row)
        return Lexeme(LexemeKind.SIGN, word, "", start, end, self._row)

    def _word(self, raw: str) -> tuple[str, str]:
        """Return a word without invisible characters, and in upper case. Equal words are one object."""
        interned = self._words.get(raw)
        if interned is None:
            word = raw if raw.isascii() else INVISIBLE.sub("", raw)
            upper = _upper(word)
            interned = self._words[raw] = (word, word if upper == word else upper)
        return interned


def _divides(text: str, start: int, end: int) -> bool:
    """Return whether invisible characters divide words: they do but within a word that holds no keyword."""
    before = _FIRST_WORD.match(text[max(0, start - _LONGEST_PART) : start][::-1])
    after = _FIRST_WORD.match(text, end)
    if before is None or after is None:
        return True
    return before.group()[::-1].upper() in _KEYWORDS or after.group().upper() in _KEYWORDS


def _upper(word: str) -> str:
    """Convert ASCII to upper case. Letters of other alphabets never become those of a keyword."""
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


def depth_of(word: Lexeme) -> int:
    """Return how much deeper in parentheses the text behind a word is."""
    return ((word.text == "(") - (word.text == ")")) if word.kind is LexemeKind.SIGN else 0


def split_words(words: Sequence[Lexeme], between: str) -> list[tuple[Lexeme, ...]]:
    """Return the words between those signs or keywords that are outside parentheses."""
    parts: list[tuple[Lexeme, ...]] = []
    depth = start = 0
    for index, word in enumerate(words):
        depth += depth_of(word)
        is_between = word.upper == between or (word.kind is LexemeKind.SIGN and word.text == between)
        if depth == 0 and is_between:
            parts.append(tuple(words[start:index]))
            start = index + 1
    return [*parts, tuple(words[start:])]
