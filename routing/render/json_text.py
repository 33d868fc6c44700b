"""The values of a result as JSON: one form of a time in every command."""

from __future__ import annotations

import json
from datetime import datetime

from routing.render.wording import format_time


def write_json(value: object) -> str:
    """Return a value as JSON in one line; times read as `format_time` writes them. Raises TypeError."""
    return json.dumps(value, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return format_time(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
