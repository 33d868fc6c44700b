"""Refuse configurations that seem to hold a secret, before their content is used, recorded or printed.

Names and values are judged by their form, so that unknown settings are refused too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routing.config.config_model import ConfigError
from routing.errors import quote

HIDDEN = "…"
"""Replaces a value that must not be shown."""

_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
# The words of a key are joined with dots, so that accountKey, account_key and account.key are the same.
_SECRET = re.compile(
    r"secret|password|passwd|passphrase|connection\.?string|(pwd|tokens?)(\.|$)"
    r"|(^|\.)(pass|sas|sig|signature|credentials?)(\.|$)"
    r"|(account|access|api|private|shared|storage|signing|encryption|master)\.?keys?(\.|$)"
)
# A key with the location, provider or length of a secret does not hold the secret.
_POINTER = re.compile(
    r"(^|\.)providers?(\.(class|type|path|mapping)(\.|$)|$)"
    r"|\.(class|type|file|path|location|endpoint|enabled|length|interval)$"
)
_IN_URI = re.compile(r"(?<![\w+.-])([A-Za-z][\w+.-]*://[^/\s?#@:]*:[^/\s?#@]+@|https?://[^/\s?#@]+@)")
# name=value in a query, a connection string or program options, or name: value in YAML of --set. Only a lookahead
# reads the value, because it may be another pair.
_PAIR = re.compile(r"(?:^|[\s?&;,{\"'])(?:-D)?([A-Za-z][\w.-]*(?: [A-Za-z]+)?)[\"']?(?=\s*(?:=|:\s)\s*[^\s;&])")
# In a part of a web token, only the first eyJ is tried, because a lookahead does not backtrack. Trying each one
# would take quadratic time.
_WELL_KNOWN = re.compile(
    r"\b(AKIA|ASIA)[0-9A-Z]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY|\bdapi[0-9a-f]{32}|\bgh[pousr]_\w{36}"
    r"|(?<![\w-])(?=(?P<first>[\w-]*?\beyJ))(?P=first)[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]"
)
_CONTENT = re.compile(r"\b(alias|anchor|tag|handle) .*")


def refuse_secrets(file: str, values: Mapping[Any, Any], overrides: Sequence[str] = ()) -> None:
    """Refuse a parsed file and ``--set`` texts that seem to hold a secret.

    The error names keys but no values. Raises ConfigError.
    """
    secret_places = ["the address of the file itself"] if holds_secret(file) else []
    secret_places += [*_of_overrides(overrides), *_of_values(values, "", set())]
    if secret_places:
        raise ConfigError.secrets(HIDDEN if holds_secret(file) else file, list(dict.fromkeys(secret_places)))


def names_secret(key: str) -> bool:
    """Return True if a key has a name that secrets usually have."""
    words = ".".join(word for word in _BETWEEN_WORDS.split(key) if word).lower()
    return _SECRET.search(words) is not None and _POINTER.search(words) is None


def holds_secret(value: object) -> bool:
    """Return whether a value has credentials in a URI, its query, a connection string or program options."""
    text = str(value)
    if _IN_URI.search(text) or _WELL_KNOWN.search(text):
        return True
    return any(names_secret(match.group(1)) for match in _PAIR.finditer(text))


def without_secrets(value: Any) -> Any:
    """Replace every secret in plain values by `HIDDEN`, as in the settings that an older run recorded."""
    if isinstance(value, Mapping):
        return {key: HIDDEN if names_secret(str(key)) else without_secrets(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner) for inner in value]
    return HIDDEN if holds_secret(value) else value


def without_content(problem: str) -> str:
    """Remove words of the file from the YAML parser's message: an unquoted ``*hunter2`` is an alias."""
    return _CONTENT.sub(r"\1", problem)


def _of_overrides(overrides: Sequence[str]) -> Iterator[str]:
    for override in overrides:
        key, equals, raw = override.partition("=")
        # A key that begins with `spark.` is the name of one setting as a whole.
        name = key if key.startswith("spark.") else key.rpartition(".")[2]
        if holds_secret(key) or (not equals and names_secret(key)):
            yield "a key of --set"
        elif names_secret(name) or holds_secret(raw):
            yield f"--set {quote(key)}"


def _of_values(value: object, at: str, seen: set[int]) -> Iterator[str]:
    """Yield every key under a value that names or holds a secret.

    Each node is visited once, because YAML aliases may form circles or expand without end.
    """
    if isinstance(value, Mapping | list | tuple | set):
        if id(value) in seen:
            return
        seen.add(id(value))
    if isinstance(value, Mapping):
        for key, inner in value.items():
            path = f"{at}.{key}" if at else str(key)
            if holds_secret(key):
                yield f"a key of {at}" if at else "a key"
            elif names_secret(str(key)):
                yield quote(path)
            else:
                yield from _of_values(inner, path, seen)
    elif isinstance(value, list | tuple | set):
        for inner in value:
            yield from _of_values(inner, at, seen)
    elif holds_secret(value):
        yield quote(at)
