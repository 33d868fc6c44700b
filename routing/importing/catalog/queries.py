"""The T-SQL scripts that export the views from an instance, and record and read its events."""

from __future__ import annotations

from importlib.resources import files


def queries(*, of_events: bool = False) -> str:
    """Return the script as text; it only reads, and returns one result set a view.

    ``of_events``: the one that records the broker's events instead, and reads them.
    """
    name = "events.sql" if of_events else "queries.sql"
    return (files(__package__) / name).read_text(encoding="utf-8")
