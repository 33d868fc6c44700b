"""Where a text is code and where it is string, quoted name or comment.

The tokenizer reads the tokens; this says what lies between them, line by line, before ``GO`` and
the sqlcmd commands are taken out, and where a text that ends too early was opened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Mode(Enum):
    """What a stretch of text is; the value is how texts name it."""

    CODE = "code"
    STRING = "string"
    QUOTED = "name in double quotes"
    BRACKET = "name in brackets"
    COMMENT = "comment"
    LINE_COMMENT = "line comment"


@dataclass(frozen=True)
class State:
    """What the text is inside of at some point; ``depth`` counts nested comments."""

    mode: Mode = Mode.CODE
    depth: int = 0


@dataclass(frozen=True)
class Segment:
    """``text[start:end]`` is all of one mode, its delimiters included."""

    mode: Mode
    start: int
    end: int


CODE = State()
_OPENING = {
    "'": Mode.STRING,
    '"': Mode.QUOTED,
    "[": Mode.BRACKET,
    "/*": Mode.COMMENT,
    "--": Mode.LINE_COMMENT,
}
_OPENER = re.compile(r"--|/\*|['\"\[]")
_CLOSER = {
    Mode.STRING: re.compile("''?"),
    Mode.QUOTED: re.compile('""?'),
    Mode.BRACKET: re.compile(r"\]\]?"),
    Mode.COMMENT: re.compile(r"/\*|\*/"),
    Mode.LINE_COMMENT: re.compile(r"\n"),
}


def segments(text: str, state: State = CODE) -> tuple[list[Segment], State]:
    """Return the segments of a text that begins in ``state``, and the state it ends in."""
    found: list[Segment] = []
    start = inside = 0
    while start < len(text):
        mode = state.mode
        if mode is Mode.CODE:
            opener = _OPENER.search(text, start)
            end = opener.start() if opener else len(text)
            if end > start:
                found.append(Segment(mode, start, end))
            if opener:
                state, inside = State(_OPENING[opener.group()], 1), opener.end()
        else:
            end, state = _close(text, inside, state)
            found.append(Segment(mode, start, end))
            inside = end
        start = end
    return found, state


def _close(text: str, position: int, state: State) -> tuple[int, State]:
    """Return where the string, name or comment around this position ends, and the state from there on."""
    depth = state.depth
    for closer in _CLOSER[state.mode].finditer(text, position):
        if state.mode is Mode.COMMENT:
            depth += 1 if closer.group() == "/*" else -1
            if depth == 0:
                return closer.end(), CODE
        elif state.mode is Mode.LINE_COMMENT or len(closer.group()) == 1:
            return closer.end(), CODE
    return len(text), State(state.mode, depth)
