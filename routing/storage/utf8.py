"""Texts whose bytes are no UTF-8, which Spark takes as they are: which these are, and how they are written.

The same of plain texts is `rules.text.decode_utf8`, of Arrow's `storage.arrow.find_undecodable`.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

# The bytes of a character beyond ASCII in UTF-8, or one byte; a byte is a character of ISO 8859-1 here.
_NEXT = "[\u0080-\u00bf]"
_CHARACTER_OR_BYTE = (
    f"([\u00c2-\u00df]{_NEXT}|\u00e0[\u00a0-\u00bf]{_NEXT}|[\u00e1-\u00ec\u00ee\u00ef]{_NEXT}{_NEXT}"
    f"|\u00ed[\u0080-\u009f]{_NEXT}|\u00f0[\u0090-\u00bf]{_NEXT}{_NEXT}|[\u00f1-\u00f3]{_NEXT}{_NEXT}{_NEXT}"
    f"|\u00f4[\u0080-\u008f]{_NEXT}{_NEXT}|(?s:.))"
)
# No character of ISO 8859-1.
_BETWEEN = "\uffff"


def is_utf8(text: Column) -> Column:
    """Tell whether the bytes of a text are UTF-8; Spark itself takes any."""
    if hasattr(F, "is_valid_utf8"):
        return F.is_valid_utf8(text)
    # Before Spark 4.0: Java reads and writes them, and puts other bytes in the place of those that are none.
    return F.encode(text, "UTF-8") == text.cast("binary")


def readable(text: Column) -> Column:
    r"""Return a text with each byte that cannot be decoded as ``\xNN``, as `rules.text.decode_utf8` writes it."""
    # A character for each byte, so that Java's expressions see bytes.
    bytes_of = F.decode(text.cast("binary"), "ISO-8859-1")
    parts = F.split(F.regexp_replace(bytes_of, _CHARACTER_OR_BYTE, f"$1{_BETWEEN}"), _BETWEEN)
    escaped = F.transform(parts, _escape_lone_byte)
    joined = F.encode(F.array_join(escaped, ""), "ISO-8859-1").cast("string")
    return F.when(is_utf8(text), text).otherwise(joined)


def _escape_lone_byte(part: Column) -> Column:
    """Return the bytes of a character as they are, and one byte beyond ASCII, which is no character, as text."""
    is_lone = (F.length(part) == 1) & (part >= "\u0080")
    return F.when(is_lone, F.concat(F.lit("\\x"), F.lower(F.hex(F.encode(part, "ISO-8859-1"))))).otherwise(part)
