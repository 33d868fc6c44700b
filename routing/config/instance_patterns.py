"""Patterns of instance names (``resolve.instances``): a name, with ``*`` for any text at its start or end.

Names are compared exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

ANY = "*"
_LONGEST = 256


def is_pattern(value: object) -> bool:
    """Return whether a value of the configuration is a pattern."""
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and ANY not in value[1:-1]


def overlap(first: str, second: str) -> bool:
    """Return whether a name exists that both patterns match.

    >>> overlap("SHOP*", "*1"), overlap("SHOP1", "SHOP2"), overlap("S*", "SHOP1")
    (True, False, True)
    """
    if ANY not in first or ANY not in second:
        name, pattern = (first, second) if ANY not in first else (second, first)
        return _matches(name, pattern)
    starts = [text.strip(ANY) for text in (first, second) if not text.startswith(ANY)]
    ends = [text.strip(ANY) for text in (first, second) if not text.endswith(ANY)]
    # Two starts, or two ends, must agree. Any others fit into one name.
    return _agree(starts, str.startswith) and _agree(ends, str.endswith)


def _agree(texts: Sequence[str], starts_with: Callable[[str, str], bool]) -> bool:
    return len(texts) < 2 or starts_with(texts[0], texts[1]) or starts_with(texts[1], texts[0])


def _matches(name: str, pattern: str) -> bool:
    text = pattern.strip(ANY)
    if ANY not in pattern:
        return name == text
    if pattern.startswith(ANY) and pattern.endswith(ANY):
        return text in name
    return name.endswith(text) if pattern.startswith(ANY) else name.startswith(text)


def find_overlaps(jobs: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Yield a phrase for each pair of overlapping patterns of different jobs.

    ``jobs`` has the names of jobs with their patterns. A job without patterns has all instances.
    """
    for (name, patterns), (other, others) in combinations(jobs, 2):
        for mine, theirs in product(patterns or [ANY], others or [ANY]):
            if overlap(mine, theirs):
                yield f"'{mine}' of {name} and '{theirs}' of {other}"
