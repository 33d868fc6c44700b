"""How ids are read by Arrow: all of its forms, each equal to its form in rules.text.

Each takes and gives an array, or an expression over a dataset where it says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.rules import text
from routing.storage.arrow import plain_values
from routing.terms import ZERO_GUID

if TYPE_CHECKING:
    import pyarrow

_HEX = "[0123456789abcdefABCDEF]"
_GUID = rf"\A{_HEX * 8}-{_HEX * 4}-{_HEX * 4}-{_HEX * 4}-{_HEX * 12}\z"
_PLAIN_BROKER = r"\A[0-9a-f-]{36}\z"


def fold_texts(words: Any) -> Any:
    """Return texts with the letters A to Z in lower case; an array, a table's column or an expression."""
    import pyarrow.compute as pc

    return pc.ascii_lower(words)


def is_guid(words: Any) -> Any:
    """Return whether texts are GUIDs of 36 characters in any case; an array or an expression."""
    import pyarrow.compute as pc

    return pc.match_substring_regex(words, _GUID)


def read_brokers(words: pyarrow.Array) -> pyarrow.Array:
    """Return broker instances as they are compared and written; null for what is none."""
    import pyarrow
    import pyarrow.compute as pc

    folded = fold_texts(words)
    # Most are written as they are compared. The others are read one by one.
    is_plain = pc.match_substring_regex(folded, _PLAIN_BROKER)
    others = pc.indices_nonzero(pc.or_kleene(pc.invert(is_plain), pc.equal(folded, ZERO_GUID))).to_pylist()
    if not others:
        return folded
    ids, written = plain_values(folded), plain_values(words)
    for place in others:
        ids[place] = text.broker_id(written[place])
    return pyarrow.array(ids, pyarrow.string())
