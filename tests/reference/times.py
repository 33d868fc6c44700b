"""Times of the input, all read as UTC."""

from __future__ import annotations

from datetime import datetime, timezone


def utc(value: datetime | None) -> datetime | None:
    """Read a time as UTC. Without a zone it already is."""
    if value is None or value.tzinfo is timezone.utc:
        return value
    if value.tzinfo is None:
        return value.replace(tzinfo=timezone.utc)
    return value.astimezone(timezone.utc)
