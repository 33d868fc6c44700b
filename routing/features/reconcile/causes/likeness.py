"""Names that are nearly the same: a slip of the pen, and not two names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from routing.features.near_differences import likeness

# As long as a name has to be for a slip in it to be told from another name.
_SHORTEST = 4
# As much of longer names is compared.
_LENGTH = 256
_DIGITS = re.compile(r"\d+")


def is_near(name: str, other: str) -> bool:
    """Return whether two names differ by case, blanks around, slashes after, or one letter.

    Names that differ in their digits alone are counted through, and two.
    """
    if name == other:
        return False
    if likeness(name) == likeness(other):
        return True
    one, two = likeness(name)[:_LENGTH], likeness(other)[:_LENGTH]
    if min(len(one), len(two)) < _SHORTEST or abs(len(one) - len(two)) > 1:
        return False
    if _DIGITS.sub("#", one) == _DIGITS.sub("#", two):
        return False
    return _is_one_slip(one, two)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the first by name of those that are near; None where none is."""
    return min((other for other in names if is_near(name, other)), default=None)


def _is_one_slip(one: str, two: str) -> bool:
    """Return True if a letter is another one, is there in one of them alone, or two have changed places."""
    start = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    rest, other = one[start:], two[start:]
    if len(rest) != len(other):
        longer, shorter = sorted((rest, other), key=len, reverse=True)
        return longer[1:] == shorter
    return rest[1:] == other[1:] or (rest[:2] == other[1::-1] and rest[2:] == other[2:])
