"""Times as numbers: microseconds since 1970 in UTC, exact, whatever the zone of session and machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta, timezone

from routing.terms import TableRow

SECOND = 1_000_000
"""In microseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def moment_of(micros: int) -> datetime:
    """Convert microseconds since 1970 to an aware UTC time. Raises OverflowError outside the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=micros)


def with_moments(rows: Iterable[TableRow], names: Collection[str]) -> list[TableRow]:
    """Convert the named columns of rows from microseconds to aware times; null stays null."""
    timed_rows = list(rows)
    for row in timed_rows:
        row.update({name: None if row[name] is None else moment_of(row[name]) for name in names})
    return timed_rows


def micros_of(time: datetime) -> int:
    """Return a time as microseconds since 1970; one without a zone is UTC."""
    return (as_utc(time) - _EPOCH) // timedelta(microseconds=1)


def as_utc(time: datetime) -> datetime:
    """Return a time as an aware one; one without a zone is UTC."""
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)
