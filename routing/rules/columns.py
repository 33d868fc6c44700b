"""What the rules say, as tables hold it: columns by the names of fields, and plain values."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from routing.terms import MatchingStep, TableRow, Word

ALTERNATIVE_COLUMNS = ("route_name", "address", "mirror_address")
"""What a table says of an alternative route."""


def names_of(columns: type) -> tuple[str, ...]:
    """Return the columns of a dataclass, in their order."""
    return tuple(field.name for field in fields(columns))


def plain_columns(row: object, names: tuple[str, ...]) -> TableRow:
    """Return some fields by name, with values as tables hold them; an alternative route is a tuple."""
    values = vars(row)
    return {name: _plain(values[name]) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, Word):
        return str(value)
    if isinstance(value, MatchingStep):
        return int(value)
    if isinstance(value, tuple):
        return tuple([(route.name, route.address, route.mirror_address) for route in value]) or None
    return value
