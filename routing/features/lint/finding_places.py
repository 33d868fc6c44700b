"""A finding in one line, as reports for other programs have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routing.render.wording import printable

_NAMES = ("instance_name", "database_name", "object")


def name_of(row: Mapping[str, Any]) -> str:
    """Name a finding's place: instance, database and object with dots between them.

    Left out is the name of a script that stands for itself, which is its file's.
    """
    names = (row[name] for name in _NAMES if row[name] and row[name] != row.get("file"))
    return printable(".".join(dict.fromkeys(names)))


def finding_line(row: Mapping[str, Any]) -> str:
    """Write a finding: its place, its message, SQL Server's number and what to do."""
    number = f" (SQL Server's number {row['error_number']})" if row["error_number"] else ""
    name = name_of(row)
    message = printable(f"{row['message']}{number}; {row['advice']}")
    return f"{name}: {message}" if name else message


def where(row: Mapping[str, Any]) -> str:
    """Return the file of a finding, and its line."""
    line = "" if row["line"] is None else f":{row['line']}"
    return printable(f"{row['file']}{line}")
