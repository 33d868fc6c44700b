"""Times as numbers: microseconds since 1970 in UTC, exact, whatever the zone of session and machine."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def moment_of(micros: int) -> datetime:
    """Microseconds since 1970 as an aware UTC time, exact. Raises OverflowError outside the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=micros)


def micros_of(time: datetime) -> int:
    """The same the other way round; a time without a zone is UTC."""
    return ((time if time.tzinfo else time.replace(tzinfo=timezone.utc)) - _EPOCH) // timedelta(microseconds=1)
