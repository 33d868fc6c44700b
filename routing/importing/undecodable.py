r"""Bytes of files that cannot be decoded, and half characters: no table takes them, so their row is rejected.

Until then an undecodable byte stands in the text as the half character U+DC00 plus its value, as Python writes it
in the words of a command line: what stood around it stays where it was.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

from routing.rules.text import UndecodedText

KEEP = "sbroute.keep"
"""The name, for decoders, of what keeps undecodable bytes in the text."""
_HALF = re.compile("[\ud800-\udfff]")
_BYTE = range(0xDC00, 0xDD00)


def _keep(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(_BYTE.start + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(KEEP, _keep)


def count_undecodable(text: str) -> int:
    """Count the half characters of a text."""
    return len(_HALF.findall(text))


def is_writable(value: object) -> bool:
    """Return whether a table takes a value: any but a text that was undecodable, or holds half a character."""
    if not isinstance(value, str):
        return True
    return not isinstance(value, UndecodedText) and (value.isascii() or _HALF.search(value) is None)


def as_shown(text: str) -> str:
    r"""Return a text as it is shown: an undecodable byte as ``\xNN``, another half character as ``\uNNNN``."""
    return _HALF.sub(_escape, text)


def _escape(half: re.Match[str]) -> str:
    code = ord(half.group())
    return f"\\x{code - _BYTE.start:02x}" if code in _BYTE else f"\\u{code:04x}"


def find_undecodable(values: Iterable[object]) -> str | None:
    """Return a sentence on the first value of a row that no table takes; None where there is none."""
    for value in values:
        if isinstance(value, str) and not is_writable(value):
            return f"it holds bytes that cannot be decoded, or half a character: {_quote(value)}"
    return None


def refuse_undecodable(values: Iterable[object]) -> None:
    """Raise ValueError where `find_undecodable` has a sentence."""
    why = find_undecodable(values)
    if why is not None:
        raise ValueError(why)


def _quote(text: str) -> str:
    shown = as_shown(text if len(text) <= _SHOWN else _around(text))
    return "'" + "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown) + "'"


_SHOWN, _BEFORE = 100, 40


def _around(text: str) -> str:
    """Return the part of a long text in which its first half character stands."""
    half_character = _HALF.search(text)
    start = max((half_character.start() if half_character else 0) - _BEFORE, 0)
    return f"…{text[start : start + _SHOWN]}…"
