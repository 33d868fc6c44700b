"""The largest few by name, all others together: a picture holds so many rows and no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routing.render.wording import printable


@dataclass(frozen=True)
class LargestPlaces:
    """The places of a picture: ``labels`` in their order, ready to be shown, and the place of each name."""

    labels: Sequence[str]
    place: Mapping[str, int]
    others: int | None = None
    """The place of all others together."""

    def named(self, field: str, place: int) -> dict[str, Any]:
        """Begin a row: place, the label in the field, and whether this is all others together."""
        return {"place": place, field: self.labels[place], "others": place == self.others}


def largest(counted: Iterable[tuple[str, int]], most: int, others: str | None) -> LargestPlaces:
    """Rank the ``most`` names with most messages, those with more first, from (name, messages).

    All others share one more place ("12 other services"), or have none where ``others`` is None.
    """
    totals: Counter[str] = Counter()
    for name, messages in counted:
        totals[name] += messages
    ordered = sorted(totals, key=lambda name: (-totals[name], name))
    # One name too many is shown by its name: "1 other" would take the same room.
    shown = ordered if others is not None and len(ordered) == most + 1 else ordered[:most]
    left = ordered[len(shown) :]
    labels = [printable(name) for name in shown]
    if others is None or not left:
        return LargestPlaces(labels, {name: place for place, name in enumerate(shown)})
    places = {name: min(place, len(shown)) for place, name in enumerate(ordered)}
    return LargestPlaces([*labels, f"{len(left):,} {others}"], places, len(shown))
