"""What was found for keys of messages, as long as there is room: names that messages invent are not to fill it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

T = TypeVar("T")

MOST_KEYS = 100_000
"""So many keys are remembered at a time."""


def remember(found: dict[Hashable, T], key: Hashable, value: T) -> T:
    """Remember what was found for a key; all else is forgotten where there are too many."""
    if len(found) >= MOST_KEYS:
        found.clear()
    found[key] = value
    return value
