"""Match the names of instances by patterns (``resolve.instances``): ``*`` is any text, and ``?`` one character.

All other characters stand for themselves. Names are compared exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

_ANY, _ONE = "*", "?"
_LIKE = {_ANY: "%", _ONE: "_", "%": r"\%", "_": r"\_", "\\": r"\\"}


def like_pattern(pattern: str) -> str:
    r"""Return a pattern for SQL's LIKE, in which a backslash escapes.

    >>> like_pattern("SHOP_*")
    'SHOP\\_%'
    """
    return "".join(_LIKE.get(sign, sign) for sign in pattern)


def overlap(first: str, second: str) -> bool:
    """Return whether a name exists that both patterns match.

    >>> overlap("SHOP*", "*1"), overlap("SHOP1", "SHOP2"), overlap("A?", "?")
    (True, False, False)
    """

    @cache
    def meet(a: int, b: int) -> bool:
        """Return whether the rests of both patterns overlap."""
        if a < len(first) and first[a] == _ANY:
            return meet(a + 1, b) or (b < len(second) and meet(a, b + 1))
        if b < len(second) and second[b] == _ANY:
            return meet(a, b + 1) or (a < len(first) and meet(a + 1, b))
        if a == len(first) or b == len(second):
            return a == len(first) and b == len(second)
        return (first[a] == second[b] or _ONE in (first[a], second[b])) and meet(a + 1, b + 1)

    return meet(0, 0)


def find_overlaps(jobs: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Yield a phrase for each two patterns of different jobs that overlap.

    ``jobs`` are names with their patterns. A job without patterns has all instances.
    """
    for place, (name, patterns) in enumerate(jobs):
        for other, others in jobs[place + 1 :]:
            for mine in patterns or [_ANY]:
                for theirs in others or [_ANY]:
                    if overlap(mine, theirs):
                        yield f"'{mine}' of {name} and '{theirs}' of {other}"
