"""How ids and addresses are read on the way of messages: Column → Column, each equal to its form in rules.text.

Names are compared exactly, so none of these touches one; addresses have a comparable form, and so have broker ids,
which take several steps (`brokers`).
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from routing.terms import BLANKS

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HOST = r"(?:\[[0-9A-Fa-f:.]+(?:%[^/:\[\] \t\n\r]+)?\]|[^/:\[\] \t\n\r]+)"
_SCHEME = r"[tT][cC][pP]://"
_ADDRESS_IN_NAME = rf"\A({_SCHEME}{_HOST}:[0-9]{{1,5}})(?:/|\z)"
# Characters listed, nothing repeated: Java takes two thirds of the time that it needs for ranges and counts.
_HEX = "[0123456789abcdefABCDEF]"
GUID = rf"\A{_HEX * 8}-{_HEX * 4}-{_HEX * 4}-{_HEX * 4}-{_HEX * 12}\z"


def empty_as_null(text: Column) -> Column:
    """Empty text in an optional column is null (section 0)."""
    return F.when(text != "", text)


def fold(text: Column) -> Column:
    """The text with the letters A to Z in lower case; every other character stays as it is.

    Spark's own ``lower`` is fast, and right where all is ASCII; on other characters it differs from Python's. To
    hash ten million GUIDs took 1.1 s with ``lower``, 1.8 s with this, 4.4 s with ``translate`` alone.
    """
    is_ascii = F.octet_length(text) == F.length(text)
    return F.when(is_ascii, F.lower(text)).otherwise(fold_any(text))


def fold_any(text: Column) -> Column:
    """The same, slower and in less code: for what is rare."""
    return F.translate(text, _UPPER, _UPPER.lower())


def conversation_id(text: Column) -> Column:
    """A conversation id as it is compared, hashed and written."""
    return fold(text)


def is_guid(text: Column) -> Column:
    """36 characters of a GUID in any case, without braces."""
    return text.rlike(GUID)


def comparable_address(address: Column) -> Column:
    """An address as two are compared: folded, no blanks around, no slashes after (section 3)."""
    return rtrim(fold(F.btrim(address, F.lit(BLANKS))), "/")


def rtrim(text: Column, signs: str) -> Column:
    """The text without any of these characters at its end.

    In one pass, where an expression for it looks through each run of slashes once for each slash of the run.
    Spark 3.5's own ``F.rtrim`` takes no characters.
    """
    return F.call_function("rtrim", F.lit(signs), text)


def ltrim(text: Column, signs: str) -> Column:
    """The text without any of these characters at its beginning."""
    return F.call_function("ltrim", F.lit(signs), text)


def address_in_name(service_name: Column) -> Column:
    """The address that a TRANSPORT route reads from a service name, null where there is none (section 3)."""
    return empty_as_null(leading_address(service_name))


def leading_address(service_name: Column) -> Column:
    """The same, empty text where there is none: one search, where to make it null takes another."""
    return F.regexp_extract(service_name, _ADDRESS_IN_NAME, 1)
