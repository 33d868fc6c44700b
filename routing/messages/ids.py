"""How ids and addresses are read on the way of messages: all of Spark's forms, each equal to that of rules.text.

Names are compared exactly, so none of these touches one; addresses are compared folded, and so are broker ids,
which are read in several steps (`read_brokers`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.terms import BLANKS, ZERO_GUID

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HOST = r"(?:\[[0-9A-Fa-f:.]+(?:%[^/:\[\] \t\n\r]+)?\]|[^/:\[\] \t\n\r]+)"
_SCHEME = r"[tT][cC][pP]://"
_ADDRESS_IN_NAME = rf"\A({_SCHEME}{_HOST}:[0-9]{{1,5}})(?:/|\z)"
# Characters listed, nothing repeated: Java takes two thirds of the time that it needs for ranges and counts.
_HEX = "[0123456789abcdefABCDEF]"
GUID = rf"\A{_HEX * 8}-{_HEX * 4}-{_HEX * 4}-{_HEX * 4}-{_HEX * 12}\z"
_GUID_LENGTH = 36


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


def leading_address(service_name: Column) -> Column:
    """The address that a TRANSPORT route reads from a service name, empty text where there is none (section 3).

    Nothing stands around it: folded it is as two are compared. To make it null takes another search, unless it is
    a column before.
    """
    return F.regexp_extract(service_name, _ADDRESS_IN_NAME, 1)


def read_brokers(rows: DataFrame, **given: str) -> DataFrame:
    """Return rows with more columns, each by its name the broker instance that the text of another column gives.

    As it is compared and written (`rules.text.broker_id`): no blanks, no braces, folded; null when none. Narrow;
    every row is kept. Spark puts an expression in the place of every column that names it, unless a projection of
    its own has it: in one expression these steps would be made thirty times over, longer than Java compiles.
    """
    # What is never null takes half the code.
    found = rows.withColumns({name: F.coalesce(text, F.lit("")) for name, text in given.items()})
    for step in (_folded, _without_braces, _if_an_id):
        found = found.withColumns({name: step(F.col(name)) for name in given})
    return found


def _folded(text: Column) -> Column:
    """No blanks around, folded; what is as long as a GUID and bare is spared what takes time.

    Blanks come before the digits, and braces after the letters.
    """
    is_ascii = (F.length(text) == _GUID_LENGTH) & (F.octet_length(text) == _GUID_LENGTH)
    is_bare = is_ascii & text.between("0", "z") & (text.substr(-1, 1) > " ")
    return F.when(is_bare, F.lower(text)).otherwise(fold_any(F.btrim(text, F.lit(BLANKS))))


def _without_braces(text: Column) -> Column:
    inner = F.btrim(text.substr(F.lit(2), F.length(text) - 2), F.lit(BLANKS))
    return F.when(text.startswith("{") & text.endswith("}"), inner).otherwise(text)


def _if_an_id(text: Column) -> Column:
    return F.when((text != "") & (text != ZERO_GUID), text)
