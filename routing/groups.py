"""Group values by their keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def group_pairs(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, all in the order of the pairs.

    >>> group_pairs([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return dict(groups)
