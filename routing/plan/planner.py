"""Plan a routing key: its timeline has what is decided at every time, and is made as far as it is asked for.

Every command asks a planner; keys that differ in nothing that counts share a timeline.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator
from functools import cached_property
from typing import Generic, TypeVar

from routing.rules.deciding import ConcerningRoutes, Decision, RoutingKey, signature
from routing.rules.estate import SqlInstance
from routing.rules.timeline import TimeInterval

C = TypeVar("C")
T = TypeVar("T")

MOST_KEYS = 100_000
"""A memory holds this many keys at a time: names that senders invent do not fill it."""


def remember(memory: dict[Hashable, T], key: Hashable, value: T, most: int = MOST_KEYS) -> T:
    """Remember a value; forget all others first where there are too many."""
    if len(memory) >= most:
        memory.clear()
    memory[key] = value
    return value


class DecisionTimeline(Generic[C]):
    """The decisions for a key at every time; an interval is made when a time in it is first asked for."""

    def __init__(self, routes: ConcerningRoutes, make: Callable[[Decision], C]) -> None:
        self._routes, self._make = routes, make
        self._made: dict[int, TimeInterval[C]] = {}

    @cached_property
    def changes(self) -> list[int]:
        """The times, in order, between which the decisions stay the same (microseconds)."""
        return self._routes.changes()

    def at(self, t: int) -> TimeInterval[C]:
        """Return the interval of a time (microseconds since 1970, UTC)."""
        place = bisect_right(self.changes, t)
        interval = self._made.get(place)
        if interval is None:
            start = self.changes[place - 1] if place else None
            end = self.changes[place] if place < len(self.changes) else None
            interval = self._made[place] = TimeInterval(start, end, self._choices(self._routes.decide(t)))
        return interval

    def intervals(self) -> Iterator[TimeInterval[C]]:
        """Yield all intervals in the order of time, made by one sweep over the routes; none is kept."""
        for one in self._routes.decide_all():
            yield TimeInterval(one.valid_from, one.valid_to, self._choices(one.choices))

    def _choices(self, decisions: tuple[Decision, ...]) -> tuple[C, ...]:
        return tuple([self._make(decision) for decision in decisions])


class Planner(Generic[C]):
    """Makes timelines of choices: ``make`` turns a decision into one.

    Keys for which ``share`` has equal values share a timeline: `signature` where a choice names neither its
    instance nor its sender. The keys of one planner are of one estate, whose instances have different names.
    """

    def __init__(
        self,
        make: Callable[[Decision], C],
        share: Callable[[RoutingKey, SqlInstance], Hashable],
        most_keys: int = MOST_KEYS,
    ) -> None:
        self._make, self._share, self._most_keys = make, share, most_keys
        self._by_key: dict[Hashable, DecisionTimeline[C]] = {}
        self._shared: dict[Hashable, DecisionTimeline[C]] = {}

    def timeline(self, key: RoutingKey, instance: SqlInstance) -> DecisionTimeline[C]:
        """Return the timeline of a key; keys of equal signatures share one."""
        place = instance.name, key
        timeline = self._by_key.get(place)
        if timeline is None:
            timeline = remember(self._by_key, place, self._find(key, instance), self._most_keys)
        return timeline

    def at(self, key: RoutingKey, instance: SqlInstance, t: int) -> TimeInterval[C]:
        """Return the interval of a key's timeline at a time."""
        return self.timeline(key, instance).at(t)

    def _find(self, key: RoutingKey, instance: SqlInstance) -> DecisionTimeline[C]:
        # A signature takes longer to make than a key, and fewer keys have it.
        shared = self._share(key, instance)
        timeline = self._shared.get(shared)
        if timeline is None:
            timeline = DecisionTimeline(ConcerningRoutes.of(key, instance), self._make)
            remember(self._shared, shared, timeline, self._most_keys)
        return timeline


def plan_decisions(*, is_exact: bool = False, most_keys: int = MOST_KEYS) -> Planner[Decision]:
    """Return a planner of whole decisions.

    ``is_exact``: they tell of the broker instance that a message brings even where nothing has it.
    """
    return Planner(lambda decision: decision, _key_itself if is_exact else _what_counts, most_keys)


def _what_counts(key: RoutingKey, instance: SqlInstance) -> Hashable:
    return instance.name, key.database, signature(key, instance)


def _key_itself(key: RoutingKey, instance: SqlInstance) -> Hashable:
    return instance.name, key
