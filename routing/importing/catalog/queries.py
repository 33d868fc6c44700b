"""The T-SQL script that exports the views from an instance."""

from __future__ import annotations

from importlib.resources import files


def queries() -> str:
    """The script as text; it only reads, and returns one result set a view."""
    return (files(__package__) / "queries.sql").read_text(encoding="utf-8")
