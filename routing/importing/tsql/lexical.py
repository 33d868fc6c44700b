"""Where a text is code and where it is string, quoted name or comment.

The tokenizer reads the tokens; this says what lies between them, line by line, before ``GO`` and
the sqlcmd commands are taken out, and where a text that ends too early was opened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


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
