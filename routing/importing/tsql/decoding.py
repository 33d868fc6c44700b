"""The bytes of a script → its text, and which encoding that was."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from routing.importing.undecodable import count_undecodable

_MARKS = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with byte-order mark"),
    # UTF-32 LE begins with the mark of UTF-16 LE, so it is asked for first.
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32 LE with byte-order mark"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32 BE with byte-order mark"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16 LE with byte-order mark"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16 BE with byte-order mark"),
)
_CONTROLS = re.compile(r"[\x01-\x08\x0e-\x19\x1b-\x1f]")
_MOST_ODD = 0.1
_SAMPLE = 8192
_MANY = 0.3
_FEW = 0.05


@dataclass(frozen=True)
class DecodedScript:
    """A script's text, its encoding, and how many characters that encoding could not read."""

    text: str
    encoding: str
    unreadable: int = 0

    @property
    def is_text(self) -> bool:
        """Whether a script may be so: no text holds zeros, or control characters in great number."""
        odd = self.unreadable + len(_CONTROLS.findall(self.text))
        return "\0" not in self.text and odd <= _MOST_ODD * len(self.text)


def decode(data: bytes, errors: str = "replace") -> DecodedScript:
    """Decode by byte-order mark, else as UTF-16 by its zero bytes, else as UTF-8, else as Windows-1252.

    ``errors`` says what becomes of bytes that cannot be decoded, as decoders have it: ``replace``, or
    `undecodable.KEEP`.
    """
    for byte_order_mark, codec, name in _MARKS:
        if data.startswith(byte_order_mark):
            return _decode(data[len(byte_order_mark) :], codec, name, errors)
    wide = _wide_codec(data)
    if wide is not None:
        return _decode(data, wide, f"{wide[:6].upper()} {wide[-2:].upper()}", errors)
    try:
        return DecodedScript(data.decode("utf-8"), "UTF-8")
    except UnicodeDecodeError:
        return _decode(data, "cp1252", "Windows-1252", errors)


def _decode(data: bytes, codec: str, name: str, errors: str) -> DecodedScript:
    text = data.decode(codec, errors=errors)
    return DecodedScript(text, name, text.count("\ufffd") + count_undecodable(text))


def _wide_codec(data: bytes) -> str | None:
    """Return the codec of UTF-16 without a mark: T-SQL is mostly ASCII, so every other byte is mostly zero."""
    sample = data[:_SAMPLE]
    pairs = len(sample) // 2
    if pairs == 0:
        return None
    low, high = sample[0 : 2 * pairs : 2], sample[1 : 2 * pairs : 2]
    zeros_low, zeros_high = low.count(0) / pairs, high.count(0) / pairs
    if zeros_high >= _MANY and zeros_low <= _FEW:
        return "utf-16-le"
    if zeros_low >= _MANY and zeros_high <= _FEW:
        return "utf-16-be"
    return None
