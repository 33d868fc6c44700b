"""Section ``lint`` of the configuration: frozen dataclasses, every fault told at once.

Nothing here imports Spark, so that a wrong key is answered at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from routing.analysis.lint.catalogue import BY_CODE
from routing.errors import ConfigError, quote, unknown_key

DEFAULT_DAYS = 30
_MOST_DAYS = 36_500
_KEYS = ("suppress", "expiring_within_days")


@dataclass(frozen=True)
class Suppression:
    """Findings that are not to be shown: those that equal every part that is given."""

    code: str | None = None
    instance_name: str | None = None
    database_name: str | None = None
    object: str | None = None


@dataclass(frozen=True)
class LintSettings:
    """Section ``lint``."""

    suppress: tuple[Suppression, ...] = ()
    expiring_within_days: int = DEFAULT_DAYS


def settings(section: object, file: str) -> LintSettings:
    """The section as ``file`` holds it, null where it has none. Raises ConfigError with every fault."""
    faults: list[str] = []
    values = _mapping(section, "lint", _KEYS, faults)
    days = values.get("expiring_within_days")
    if days is None:
        days = DEFAULT_DAYS
    elif isinstance(days, bool) or not isinstance(days, int) or not 0 <= days <= _MOST_DAYS:
        faults.append(
            f"lint.expiring_within_days must be a number of days from 0 to {_MOST_DAYS}, not {quote(days)}"
        )
    given = values.get("suppress")
    if given is not None and not isinstance(given, list):
        faults.append("lint.suppress must be a list")
        given = None
    suppress = tuple(_suppression(one, f"lint.suppress[{n}]", faults) for n, one in enumerate(given or []))
    if faults:
        raise ConfigError.faults(file, faults)
    return LintSettings(suppress, days)


def check_code(code: str) -> str | None:
    """What is wrong with a finding's code; null where lint knows it."""
    if code in BY_CODE:
        return None
    return f"unknown finding {quote(code)}, codes are {min(BY_CODE)} to {max(BY_CODE)}"


def _suppression(value: object, name: str, faults: list[str]) -> Suppression:
    parts = tuple(Suppression.__dataclass_fields__)
    texts: dict[str, str] = {}
    for key, text in _mapping(value, name, parts, faults).items():
        if isinstance(text, str) and text and key in parts:
            texts[key] = text
        elif text is not None and key in parts:
            faults.append(f"{name}.{key} must be text, not {quote(text)}")
    if "code" in texts and (fault := check_code(texts["code"])):
        faults.append(f"{name}.code: {fault}")
    if isinstance(value, Mapping) and not any(part is not None for part in value.values()):
        faults.append(f"{name} names nothing, and would suppress every finding")
    return Suppression(**texts)


def _mapping(value: object, name: str, keys: tuple[str, ...], faults: list[str]) -> Mapping[str, Any]:
    if value is None and name == "lint":
        return {}
    if not isinstance(value, Mapping):
        faults.append(f"{name} must be a mapping")
        return {}
    faults.extend(unknown_key(f"{name}.{key}", [f"{name}.{k}" for k in keys]) for key in value if key not in keys)
    return value
