"""Names for parametrised rows that pytest would only number."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from enum import Enum
from functools import partial
from pathlib import PurePath
from typing import Any

LONGEST = 90
# A text that is longer has a number.
LONGEST_OF_PYTEST = 100
_NAMED_BY_PYTEST = (str, bytes, int, float, complex, Enum)


def describe(value: object) -> str | None:
    """Return a short text for a value that pytest only numbers, or None for other values."""
    if isinstance(value, str | bytes) and len(value) > LONGEST_OF_PYTEST:
        return f"{value[:LONGEST]!a}..."
    if value is None or isinstance(value, _NAMED_BY_PYTEST) or hasattr(value, "__name__"):
        return None
    text = _text(value)
    if " at 0x" in text:
        return None
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _text(value: Any) -> str:
    match value:
        case Enum():
            return value.name
        case datetime() | date() | time():
            return value.isoformat().replace("+00:00", "Z") if _is_utc(value) else value.isoformat()
        case timedelta() | PurePath():
            return str(value)
        case Mapping():
            return f"{{{', '.join(f'{_text(key)}: {_text(element)}' for key, element in value.items())}}}"
        case set() | frozenset():
            return f"{{{', '.join(sorted(map(_text, value)))}}}"
        case tuple() if hasattr(value, "_asdict"):
            named: Any = value
            return _call(value, named._asdict(), named._field_defaults)
        case list() | tuple():
            return f"[{', '.join(map(_text, value))}]"
        case partial():
            return f"{_text(value.func)}({', '.join([*map(_text, value.args), *map(str, value.keywords)])})"
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: field for field in dataclasses.fields(value) if field.repr}
            defaults = {name: field.default for name, field in fields.items()}
            return _call(value, {name: getattr(value, name) for name in fields}, defaults)
    return ascii(value) if not hasattr(value, "__name__") else str(value.__name__)


def _call(value: object, fields: dict[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return the call that creates a value, without default arguments."""
    arguments = [
        f"{name}={_text(value_of_field)}"
        for name, value_of_field in fields.items()
        if not _is_default(value_of_field, defaults.get(name))
    ]
    return f"{type(value).__name__}({', '.join(arguments)})"


def _is_default(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)


def _is_utc(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is timezone.utc
