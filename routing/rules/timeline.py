"""Rule book, section 0: times, and those between which the routes in force stay the same.

A time is a number, of microseconds since 1970 in UTC: exact, whatever the zone of session and machine.
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
"""In microseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def moment_of(micros: int) -> datetime:
    """Convert microseconds since 1970 to the nearest aware UTC time of the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=min(max(micros, _FIRST), _LAST))


def micros_of(time: datetime) -> int:
    """Return a time as microseconds since 1970; one without a zone is UTC."""
    return (as_utc(time) - _EPOCH) // timedelta(microseconds=1)


def as_utc(time: datetime) -> datetime:
    """Return a time as an aware one; one without a zone is UTC."""
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


# Tables hold times of more years than Python has: the ends of the years 1 and 9999 stand for the others.
_FIRST, _LAST = (micros_of(time.replace(tzinfo=timezone.utc)) for time in (datetime.min, datetime.max))  # noqa: DTZ901


@dataclass(frozen=True)
class TimeInterval(Generic[C]):
    """The decision from a time (inclusive) to another (exclusive), None for no bound.

    Of several choices the dialog-ID hash takes one (sections 2.3 and 6).
    """

    valid_from: int | None
    valid_to: int | None
    choices: tuple[C, ...]

    def pick(self, hashed: int) -> C:
        """Return the choice of a dialog by its hash."""
        return self.choices[hashed % len(self.choices)]


class TimeSpan(NamedTuple):
    """A half-open interval of time, None for no bound, and the routes of each table that are in force in it."""

    valid_from: int | None
    valid_to: int | None
    tables: tuple[tuple[EstateRoute, ...], ...]


def spans(*tables: Sequence[EstateRoute]) -> Iterator[TimeSpan]:
    """Yield the intervals that the bounds of routes cut, in order; the routes of each table in the order given.

    A sweep: each bound is met once, so that many versions of a route cost what they are, not what all of them are
    beside each other.
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
