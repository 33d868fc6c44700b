"""The configuration: frozen dataclasses from YAML and ``--set``; every fault told at once.

Nothing here imports Spark, so that a wrong option or key is answered at once.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import yaml

from routing.errors import ConfigError, first_sentence, quoted, unknown_key
from routing.terms import DEFAULT_BROADCAST_LIMIT, MISSING_ROUTE_NAMESPACE

_INPUTS = {
    "routes": True,
    "databases": True,
    "services": True,
    "instances": True,
    "messages": True,
    "dialogs": False,
    "route_requests": False,
}
_OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")
_SECTIONS = ("tables", "output", "resolve", "dynamic_routing", "spark")
_SIZE = re.compile(r"\A(\d+)\s*([kmgt]?)i?b?\Z", re.IGNORECASE)
_URI = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]+:")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class Location:
    """Where a table stands: a path or URI, or a name of the catalog."""

    text: str
    is_name: bool = False

    @classmethod
    def parse(cls, text: str, folder: str) -> Location:
        """A location as a configuration file in ``folder`` writes it (commands.md)."""
        if _URI.match(text) and not re.match(r"\A[A-Za-z]:[\\/]", text):
            return cls(text)
        if not re.search(r"[/\\:]", text) and len(text.split(".")) in (2, 3) and all(text.split(".")):
            return cls(text, is_name=True)
        if _URI.match(folder):
            return cls(posixpath.join(folder, text))
        return cls(str(Path(folder, text).absolute()))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class ResolveSettings:
    """Section ``resolve``: how messages are resolved."""

    mode: str = "full"
    as_of: datetime | None = None
    dialog_hash: str = "builtin"
    broadcast_limit: str = DEFAULT_BROADCAST_LIMIT


@dataclass(frozen=True)
class Config:
    """A whole configuration, checked; ``file`` is only for messages."""

    file: str
    tables: Mapping[str, Location]
    output: Mapping[str, Location]
    resolve: ResolveSettings = field(default_factory=ResolveSettings)
    missing_route_namespace: str = MISSING_ROUTE_NAMESPACE
    spark: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> str:
        """The configuration as one line of JSON, as the ``runs`` table keeps it."""
        as_of = self.resolve.as_of
        plain = {
            "tables": {key: str(where) for key, where in self.tables.items()},
            "output": {key: str(where) for key, where in self.output.items()},
            "resolve": {**vars(self.resolve), "as_of": as_of and as_of.isoformat()},
            "dynamic_routing": {"missing_route_namespace": self.missing_route_namespace},
            "spark": dict(self.spark),
        }
        return json.dumps(plain, sort_keys=True)


def size_in_bytes(size: str) -> int:
    """``512MB`` in bytes; units are powers of 1024, as Spark reads them.

    Raises ValueError where the text is no size.
    """
    match = _SIZE.match(size.strip())
    if match is None:
        raise ValueError(f"{quoted(size)} is no size, such as 512MB")
    return int(match.group(1)) * _UNITS[match.group(2).lower()]


def parse_time(value: object) -> datetime:
    """An ISO 8601 time as an aware UTC datetime; UTC where no offset is given.

    Raises ValueError where the value is no time.
    """
    if isinstance(value, datetime):
        time = value
    elif isinstance(value, date):
        time = datetime(value.year, value.month, value.day)
    elif isinstance(value, str):
        try:
            time = datetime.fromisoformat(re.sub(r"[zZ]\Z", "+00:00", value.strip()))
        except ValueError:
            raise ValueError(f"{quoted(value)} is no ISO 8601 time") from None
    else:
        raise ValueError(f"{quoted(value)} is no ISO 8601 time")
    try:
        return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except OverflowError:
        raise ValueError(f"{quoted(value)} is no time between the years 1 and 9999") from None


def load(file: str, overrides: Sequence[str] = (), text: str | None = None) -> Config:
    """Read and check a configuration file.

    ``overrides`` are ``KEY=VALUE`` texts of ``--set``; ``text`` is the file's content where the caller has
    read it (a URI). Raises ConfigError with every fault of the file.
    """
    values = _parse(file, _read(file) if text is None else text)
    faults = [fault for override in overrides if (fault := _override(values, override))]
    folder = posixpath.dirname(file) if _URI.match(file) else str(Path(file).absolute().parent)
    checked = _Checker(values, folder, faults).config(file)
    if faults:
        raise ConfigError.faults(file, faults)
    return checked


def is_uri(file: str) -> bool:
    """Whether a configuration has to be read through Spark."""
    return _URI.match(file) is not None and "://" in file


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or first_sentence(error)
        raise ConfigError.unreadable(file, reason) from error


def _parse(file: str, text: str) -> dict[str, Any]:
    try:
        values = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or first_sentence(error)
        raise ConfigError.broken_yaml(file, mark.line + 1 if mark else None, why) from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError.broken_yaml(file, None, "the top level must be a mapping")
    return values


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, which refuses a key that stands twice instead of taking the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
                if key_node.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {quoted(key_node.value)} stands twice", key_node.start_mark
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep=deep)


def _override(values: dict[str, Any], override: str) -> str | None:
    """Put one ``--set KEY=VALUE`` into the values; a fault text where it cannot be."""
    key, equals, raw = override.partition("=")
    if not equals or not key:
        return f"--set takes KEY=VALUE, not {quoted(override)}"
    try:
        value = yaml.safe_load(raw)
    except yaml.YAMLError:
        return f"--set {key}: {quoted(raw)} is not valid YAML"
    section, dot, rest = key.partition(".")
    parts = [section, rest] if section == "spark" and dot else key.split(".")
    inner = values
    for part in parts[:-1]:
        if inner.get(part) is None:
            inner[part] = {}
        if not isinstance(inner[part], dict):
            return f"--set {key}: {quoted(part)} holds no keys"
        inner = inner[part]
    inner[parts[-1]] = value
    return None


class _Checker:
    """One pass over the parsed YAML that collects every fault in ``faults``."""

    def __init__(self, values: dict[str, Any], folder: str, faults: list[str]) -> None:
        self._values, self._folder, self._faults = values, folder, faults

    def config(self, file: str) -> Config:
        """The checked configuration; only to be used where no fault was collected."""
        self._known(self._values, _SECTIONS, "")
        inputs = self._locations("tables", tuple(_INPUTS), {k for k, v in _INPUTS.items() if v})
        outputs = self._locations("output", _OUTPUTS, set(_OUTPUTS))
        self._distinct(inputs, outputs)
        routing = self._section("dynamic_routing", ("missing_route_namespace",))
        resolve = self._section("resolve", tuple(ResolveSettings.__dataclass_fields__))
        return Config(
            file=file,
            tables=inputs,
            output=outputs,
            resolve=self._resolve(resolve),
            missing_route_namespace=self._text(
                routing, "dynamic_routing.missing_route_namespace", MISSING_ROUTE_NAMESPACE
            ),
            spark=self._spark(),
        )

    def _known(self, values: Mapping[Any, Any], known: Sequence[str], prefix: str) -> None:
        for key in values:
            if key not in known:
                self._faults.append(unknown_key(f"{prefix}{key}", [prefix + name for name in known]))

    def _section(self, name: str, known: Sequence[str] | None) -> dict[str, Any]:
        section = self._values.get(name)
        if section is None:
            return {}
        if not isinstance(section, dict):
            self._faults.append(f"{name} must be a mapping")
            return {}
        if known is not None:
            self._known(section, known, f"{name}.")
        return section

    def _locations(self, name: str, known: Sequence[str], required: set[str]) -> dict[str, Location]:
        section = self._section(name, known)
        found = {}
        for key in known:
            value = section.get(key)
            if value is None:
                if key in required:
                    self._faults.append(f"{name}.{key} is missing")
            elif not isinstance(value, str) or not value.strip():
                self._faults.append(f"{name}.{key} must be a path or a table name")
            else:
                found[key] = Location.parse(value, self._folder)
        return found

    def _distinct(self, inputs: Mapping[str, Location], outputs: Mapping[str, Location]) -> None:
        """No output may stand where an input or another output does: it would be replaced."""
        taken = {str(where): f"tables.{key}" for key, where in inputs.items()}
        for key, where in outputs.items():
            if str(where) in taken:
                self._faults.append(f"output.{key} has the location of {taken[str(where)]}")
            taken.setdefault(str(where), f"output.{key}")

    def _resolve(self, section: Mapping[str, Any]) -> ResolveSettings:
        default = ResolveSettings()
        as_of = None
        try:
            as_of = None if section.get("as_of") is None else parse_time(section["as_of"])
        except ValueError as error:
            self._faults.append(f"resolve.as_of: {error}")
        given = section.get("broadcast_limit")
        limit = default.broadcast_limit if given is None else str(given)
        try:
            size_in_bytes(limit)
        except ValueError as error:
            self._faults.append(f"resolve.broadcast_limit: {error}")
        return ResolveSettings(
            mode=self._choice(section, "resolve.mode", ("full",)),
            as_of=as_of,
            dialog_hash=self._choice(section, "resolve.dialog_hash", ("builtin", "udf")),
            broadcast_limit=limit,
        )

    def _choice(self, section: Mapping[str, Any], key: str, choices: Sequence[str]) -> str:
        """One of a few words; the first is the default."""
        value = self._text(section, key, choices[0])
        if value not in choices:
            self._faults.append(f"{key} must be {' or '.join(choices)}, not {quoted(value)}")
        return value

    def _text(self, section: Mapping[str, Any], key: str, default: str) -> str:
        value = section.get(key.rpartition(".")[2])
        if value is None:
            return default
        if not isinstance(value, str):
            self._faults.append(f"{key} must be text, not {quoted(value)}")
            return default
        return value

    def _spark(self) -> dict[str, str]:
        settings = {}
        for key, value in self._section("spark", None).items():
            if isinstance(value, dict | list) or value is None:
                self._faults.append(f"spark.{key} must be one value, such as spark.sql.ansi.enabled: true")
            else:
                settings[str(key)] = str(value).lower() if isinstance(value, bool) else str(value)
        return settings
