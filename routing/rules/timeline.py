"""Rule book, section 0: convert times, and split time into intervals with the same valid routes.

A time is a number of microseconds since 1970 in UTC, so it does not depend on the zone of a session or machine.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Generic, NamedTuple, TypeVar

from routing.rules.estate import EstateRoute

C = TypeVar("C")
SECOND = 1_000_000
"""A second in microseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class TimeRange(NamedTuple):
    """A range of times in a column, from ``first`` (inclusive) to ``end`` (exclusive)."""

    column: str
    first: datetime
    end: datetime


def moment_of(micros: int) -> datetime:
    """Convert microseconds since 1970 to the nearest aware UTC time of the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=min(max(micros, _FIRST), _LAST))


def micros_of(time: datetime) -> int:
    """Return a time in microseconds since 1970. A time without a zone is UTC."""
    return (as_utc(time) - _EPOCH) // timedelta(microseconds=1)


def as_utc(time: datetime) -> datetime:
    """Return a time with a zone. A time without one is UTC."""
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


# Tables may have times outside Python's years 1 to 9999. The ends of this range replace them.
_FIRST, _LAST = (micros_of(time.replace(tzinfo=timezone.utc)) for time in (datetime.min, datetime.max))  # noqa: DTZ901


@dataclass(frozen=True)
class TimeInterval(Generic[C]):
    """The decision from one time (inclusive) to another (exclusive). None means no bound.

    The dialog-ID hash picks one of several choices (sections 2.3 and 6).
    """

    valid_from: int | None
    valid_to: int | None
    choices: tuple[C, ...]

    def pick(self, hashed: int) -> C:
        """Return the choice of a dialog by its hash."""
        return self.choices[hashed % len(self.choices)]


class TimeSpan(NamedTuple):
    """A half-open interval (None for no bound), and the routes of each table that are valid in it."""

    valid_from: int | None
    valid_to: int | None
    tables: tuple[tuple[EstateRoute, ...], ...]


def spans(*tables: Sequence[EstateRoute]) -> Iterator[TimeSpan]:
    """Yield the intervals between the bounds of routes, in order. Routes keep the order of their table.

    The sweep visits each bound once, so the cost grows linearly with the versions of a route.
    """
    routes = [(number, route) for number, table in enumerate(tables) for route in table]
    starts: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    live: list[int] = []
    for position, (_, route) in enumerate(routes):
        if route.live_from is None:
            live.append(position)
        else:
            starts.setdefault(route.live_from, []).append(position)
        if route.live_to is not None:
            ends.setdefault(route.live_to, []).append(position)

    def span(valid_from: int | None, valid_to: int | None) -> TimeSpan:
        live_routes: list[list[EstateRoute]] = [[] for _ in tables]
        for position in live:
            number, route = routes[position]
            live_routes[number].append(route)
        return TimeSpan(valid_from, valid_to, tuple(map(tuple, live_routes)))

    start: int | None = None
    for moment in sorted({*starts, *ends}):
        yield span(start, moment)
        for position in ends.get(moment, ()):
            live.remove(position)
        for position in starts.get(moment, ()):
            insort(live, position)
        start = moment
    yield span(start, None)
