"""Plan a routing key: its timeline has the decisions for every time, computed on demand.

Equivalent keys share a timeline.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import TypeVar

from routing.rules.deciding import ConcerningRoutes, Decision, RoutingKey, signature
from routing.rules.estate import SqlInstance
from routing.rules.timeline import TimeInterval

T = TypeVar("T")

MOST_KEYS = 100_000
"""The maximal number of keys in a cache, so that names that senders invent do not fill the memory."""


def remember(memory: dict[Hashable, T], key: Hashable, value: T, most: int = MOST_KEYS) -> T:
    """Store a value in a cache. A full cache is cleared first."""
    if len(memory) >= most:
        memory.clear()
    memory[key] = value
    return value


class DecisionTimeline:
    """The decisions for a key at every time. An interval is computed at its first use."""

    def __init__(self, routes: ConcerningRoutes) -> None:
        self._routes = routes
        self._made: dict[int, TimeInterval[Decision]] = {}

    @cached_property
    def changes(self) -> list[int]:
        """The times, in order, between which the decisions stay the same (microseconds)."""
        return self._routes.changes()

    def at(self, t: int) -> TimeInterval[Decision]:
        """Return the interval of a time (microseconds since 1970, UTC)."""
        place = bisect_right(self.changes, t)
        interval = self._made.get(place)
        if interval is None:
            start = self.changes[place - 1] if place else None
            end = self.changes[place] if place < len(self.changes) else None
            interval = self._made[place] = TimeInterval(start, end, self._routes.decide(t))
        return interval

    def intervals(self) -> Iterator[TimeInterval[Decision]]:
        """Yield all intervals in the order of time by one sweep over the routes, without storing them."""
        return self._routes.decide_all()


class Planner:
    """Makes timelines of decisions for the keys of one estate.

    ``is_exact`` keeps the broker instance of a message in decisions even if it is unknown in the estate.
    """

    def __init__(self, *, is_exact: bool = False, most_keys: int = MOST_KEYS) -> None:
        self._is_exact, self._most_keys = is_exact, most_keys
        self._by_key: dict[Hashable, DecisionTimeline] = {}
        self._shared: dict[Hashable, DecisionTimeline] = {}

    def timeline(self, key: RoutingKey, instance: SqlInstance) -> DecisionTimeline:
        """Return the timeline of a key. Equivalent keys share one."""
        place = instance.name, key
        timeline = self._by_key.get(place)
        if timeline is None:
            timeline = remember(self._by_key, place, self._find(key, instance), self._most_keys)
        return timeline

    def at(self, key: RoutingKey, instance: SqlInstance, t: int) -> TimeInterval[Decision]:
        """Return the interval of a key's timeline at a time."""
        return self.timeline(key, instance).at(t)

    def _find(self, key: RoutingKey, instance: SqlInstance) -> DecisionTimeline:
        # A signature takes longer to compute than a key, but many keys share it.
        broker = key.broker if self._is_exact else None
        shared = instance.name, key.database, broker, signature(key, instance)
        timeline = self._shared.get(shared)
        if timeline is None:
            timeline = DecisionTimeline(ConcerningRoutes.of(key, instance))
            remember(self._shared, shared, timeline, self._most_keys)
        return timeline
