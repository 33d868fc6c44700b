"""Parse the YAML file and ``--set``, and convert the values to a checked configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from routing.arguments import checked
from routing.config.config_model import (
    BESIDE,
    CLUSTER_BY,
    INPUTS,
    JOURNAL,
    KEPT,
    MODES,
    MOST_CLUSTERED,
    OUTPUTS,
    SECTIONS,
    VIEW,
    Config,
    ConfigError,
    LineageSettings,
    ResolveSettings,
    TableLocation,
    folder_of,
    is_server,
    journal_beside,
    parse_time,
    path_in,
    read_duration,
    size_in_bytes,
)
from routing.config.instance_patterns import is_pattern
from routing.config.secrets import refuse_secrets, without_content
from routing.errors import first_sentence, quote, unknown_key
from routing.process import read_ordinary_file
from routing.rules.timeline import as_utc
from routing.schemas import RESOLVED_ROUTES, ColumnKind
from routing.terms import ENGINES, MISSING_ROUTE_NAMESPACE, ON_CONFIG_FAULT

# Convert parsed YAML to a configuration, and collect all faults to report them together.


class ConfigChecker:
    """Converts parsed YAML to a configuration, and adds every fault to ``faults``."""

    def __init__(self, values: dict[str, Any], folder: str, faults: list[str]) -> None:
        self._values, self._folder, self._faults = values, folder, faults

    def config(self, file: str) -> Config:
        """Return the configuration, which is valid only if no fault was added."""
        self._refuse_unknown(self._values, SECTIONS, "")
        tables = self._locations("tables", tuple(INPUTS), {k for k, v in INPUTS.items() if v})
        journal = tables.pop(JOURNAL, None) or journal_beside(tables.get("imports"))
        outputs = self._locations("output", tuple(OUTPUTS), {k for k, v in OUTPUTS.items() if v})
        self._distinct(tables, {} if journal is None else {JOURNAL: journal}, outputs)
        view = self._view(outputs)
        routing = self._section("dynamic_routing", ("missing_route_namespace",))
        resolve = self._resolve(self._section("resolve", tuple(ResolveSettings.__dataclass_fields__)))
        self._fits_mode(resolve, outputs)
        return Config(
            file=file,
            tables={key: location for key, location in tables.items() if key not in KEPT},
            output={key: location for key, location in outputs.items() if key not in (*BESIDE, VIEW)},
            resolve=resolve,
            missing_route_namespace=self._text(
                routing, "dynamic_routing.missing_route_namespace", MISSING_ROUTE_NAMESPACE
            ),
            spark=self._spark(),
            import_tables={key: location for key, location in tables.items() if key in KEPT},
            journal=journal,
            other_outputs={key: location for key, location in outputs.items() if key in BESIDE},
            view=view,
            cluster_by=self._cluster_by(),
            lint=self._values.get("lint"),
            lineage=self._lineage(self._section("lineage", tuple(LineageSettings.__dataclass_fields__))),
        )

    def _refuse_unknown(self, values: Mapping[Any, Any], known_keys: Sequence[str], prefix: str) -> None:
        for key in values:
            if key not in known_keys:
                self._faults.append(unknown_key(f"{prefix}{key}", [prefix + name for name in known_keys]))

    def _section(self, name: str, known_keys: Sequence[str] | None) -> dict[str, Any]:
        section = self._values.get(name)
        if section is None:
            return {}
        if not isinstance(section, dict):
            self._faults.append(f"{name} must be a mapping")
            return {}
        if known_keys is not None:
            self._refuse_unknown(section, known_keys, f"{name}.")
        return section

    def _locations(self, name: str, known_keys: Sequence[str], required: set[str]) -> dict[str, TableLocation]:
        section = self._section(name, (*known_keys, CLUSTER_BY) if name == "output" else known_keys)
        locations = {}
        for key in known_keys:
            value = section.get(key)
            if value is None:
                if key in required:
                    self._faults.append(f"{name}.{key} is missing")
            elif not isinstance(value, str) or not value.strip():
                self._faults.append(f"{name}.{key} must be a path or a table name")
            elif "\0" in value:
                self._faults.append(f"{name}.{key} holds a null byte, which no path or table name can")
            else:
                locations[key] = TableLocation.parse(value, self._folder)
                if "${" in locations[key].text:
                    # Spark replaces it even in a quoted name, but not in a path that is read without SQL.
                    self._faults.append(f"{name}.{key} holds ${{, which Spark replaces in statements")
        return locations

    def _distinct(
        self,
        tables: Mapping[str, TableLocation],
        journal: Mapping[str, TableLocation],
        outputs: Mapping[str, TableLocation],
    ) -> None:
        """Add a fault for each table that a command writes to the location of another, which would be lost."""
        used_locations = {str(location): f"tables.{key}" for key, location in tables.items() if key not in KEPT}
        own_locations = {
            f"tables.{key}": location for key, location in {**tables, **journal}.items() if key in (*KEPT, JOURNAL)
        }
        for key, location in {
            **own_locations,
            **{f"output.{key}": location for key, location in outputs.items()},
        }.items():
            if str(location) in used_locations:
                self._faults.append(f"{key} has the location of {used_locations[str(location)]}")
            used_locations.setdefault(str(location), key)

    def _view(self, outputs: Mapping[str, TableLocation]) -> TableLocation | None:
        """Return the view's name. Its outputs must also be names of a catalog."""
        view = outputs.get(VIEW)
        if view is None:
            return None
        if not view.is_name:
            self._faults.append(f"output.{VIEW} must be the name of a view in a catalog, such as schema.{VIEW}")
        for key in ("resolved_routes", "runs"):
            if key in outputs and not outputs[key].is_name:
                self._faults.append(f"output.{VIEW} needs an output.{key} that is a name of a catalog as well")
        return view

    def _cluster_by(self) -> tuple[str, ...]:
        """Return the columns of ``output.cluster_by``: a list of names, or a text with commas."""
        section = self._values.get("output")
        value = section.get(CLUSTER_BY) if isinstance(section, dict) else None
        names = value.split(",") if isinstance(value, str) else value
        if names is None:
            return ()
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self._faults.append(f"output.{CLUSTER_BY} must be a list of columns, not {quote(value)}")
            return ()
        columns = tuple(name.strip() for name in names)
        kinds = {field.name: field.kind for field in RESOLVED_ROUTES}
        for name in columns:
            # Delta needs the minimum and maximum of the columns, which these types do not have.
            if not isinstance(kinds.get(name), ColumnKind) or kinds[name] == ColumnKind.BOOLEAN:
                self._faults.append(
                    f"output.{CLUSTER_BY}: {quote(name)} is no column of resolved_routes that can be clustered"
                )
        if not 0 < len(columns) <= MOST_CLUSTERED or len(set(columns)) < len(columns):
            self._faults.append(f"output.{CLUSTER_BY} needs one to {MOST_CLUSTERED} different columns")
        return columns

    def _resolve(self, section: Mapping[str, Any]) -> ResolveSettings:
        default = ResolveSettings()
        times = {name: self._time(section, name) for name in ("as_of", "window_from", "window_to")}
        limit_value = section.get("broadcast_limit")
        limit = default.broadcast_limit if limit_value is None else str(limit_value)
        try:
            size_in_bytes(limit)
        except ValueError as error:
            self._faults.append(f"resolve.broadcast_limit: {error}")
        within = self._words(section, "resolve.duplicates_within") or None
        try:
            _ = None if within is None else read_duration(within)
        except ValueError as error:
            self._faults.append(f"resolve.duplicates_within: {error}")
        return ResolveSettings(
            mode=self._choice(section, "resolve.mode", MODES),
            dialog_hash=self._choice(section, "resolve.dialog_hash", ("builtin", "udf")),
            broadcast_limit=limit,
            engine=self._choice(section, "resolve.engine", ENGINES),
            duplicates_within=within,
            instances=self._instances(section.get("instances")),
            on_config_fault=self._choice(section, "resolve.on_config_fault", ON_CONFIG_FAULT),
            **times,
        )

    def _instances(self, value: object) -> tuple[str, ...] | None:
        """Return ``resolve.instances``: a pattern or a list of patterns."""
        patterns: Any = [value] if isinstance(value, str) else value
        if patterns is None:
            return None
        if not isinstance(patterns, list) or not patterns or not all(map(is_pattern, patterns)):
            self._faults.append(
                f"resolve.instances must be a list of names, with * at the start or end, not {quote(value)}"
            )
            return None
        return tuple(patterns)

    def _time(self, section: Mapping[str, Any], name: str) -> datetime | None:
        try:
            return None if section.get(name) is None else parse_time(section[name])
        except ValueError as error:
            self._faults.append(f"resolve.{name}: {error}")
            return None

    def _fits_mode(self, resolve: ResolveSettings, outputs: Mapping[str, TableLocation]) -> None:
        """Check that the keys that a mode needs exist, and no key that it does not use."""
        window = (resolve.window_from, resolve.window_to)
        if resolve.mode != "window" and window != (None, None):
            self._faults.append("resolve.window_from and resolve.window_to need resolve.mode: window")
        if resolve.mode not in ("incremental", "window"):
            return
        if resolve.as_of is not None:
            self._faults.append(f"resolve.as_of cannot be used with resolve.mode: {resolve.mode}")
        if "pending_messages" not in outputs:
            self._faults.append(f"output.pending_messages is missing, which resolve.mode: {resolve.mode} needs")
        ends = [as_utc(time) for time in window if time is not None]
        if resolve.mode == "window" and (len(ends) < 2 or ends[0] >= ends[1]):
            self._faults.append("resolve.window_from must be a time before resolve.window_to")

    def _lineage(self, section: Mapping[str, Any]) -> LineageSettings:
        """Check section ``lineage``. Events go either to a server or to a file on this machine."""
        keys = LineageSettings.__dataclass_fields__
        lineage_values = {key: text for key in keys if (text := self._words(section, f"lineage.{key}"))}
        if "url" in lineage_values and "file" in lineage_values:
            self._faults.append("lineage.url and lineage.file cannot both be given")
        if "url" in lineage_values and not is_server(lineage_values["url"]):
            self._faults.append(
                f"lineage.url must be the http(s) address of a server, not {quote(lineage_values['url'])}"
            )
        if "file" in lineage_values:
            path = path_in(self._folder, lineage_values["file"])
            if path is None:
                self._faults.append(
                    f"lineage.file must be a path of this machine, not {quote(lineage_values['file'])}"
                )
            lineage_values["file"] = path or lineage_values["file"]
        return LineageSettings(**lineage_values)

    def _words(self, section: Mapping[str, Any], key: str) -> str:
        """Read a non-blank text, or return an empty one if the key is absent."""
        value = self._text(section, key, "")
        if section.get(key.rpartition(".")[2]) == value and not value.strip():
            self._faults.append(f"{key} must not be empty")
        return value

    def _choice(self, section: Mapping[str, Any], key: str, choices: Sequence[str]) -> str:
        """Read one of a few words. The first is the default."""
        value = self._text(section, key, choices[0])
        if value not in choices:
            self._faults.append(f"{key} must be {', '.join(choices[:-1])} or {choices[-1]}, not {quote(value)}")
        return value

    def _text(self, section: Mapping[str, Any], key: str, default: str) -> str:
        value = section.get(key.rpartition(".")[2])
        if value is None:
            return default
        if not isinstance(value, str):
            self._faults.append(f"{key} must be text, not {quote(value)}")
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


_LARGEST, _LONGEST_NUMBER = 2_000_000, 1000
_TEXT = "tag:yaml.org,2002:str"


@checked
def load(file: str, overrides: Sequence[str] = (), text: str | None = None) -> Config:
    """Read and check a configuration file (docs/reference/configuration.md).

    Args:
        file: the path, or a name for messages if ``text`` has the content.
        overrides: ``KEY=VALUE`` texts as for ``--set``. Each replaces the value of the file.
        text: the content, if you have read it yourself, such as from a URI.

    Returns:
        The configuration. Relative locations are relative to the file's folder.

    Raises:
        ConfigError: the file cannot be read or has faults. The message has all of them.

    Example:
        >>> config = routing.load_config("job.yaml", ["resolve.dialog_hash=udf"])
        >>> config.resolve.dialog_hash
        'udf'
    """
    values = _parse(file, _read(file) if text is None else text)
    faults = _override_all(file, values, overrides)
    checked = ConfigChecker(values, folder_of(file), faults).config(file)
    if faults:
        raise ConfigError.faults(file, faults)
    return checked


def load_section(file: str | None, name: str, overrides: Sequence[str] = ()) -> Any:
    """Load one section of a local file or of ``--set``. Other sections are not required.

    Returns None if neither has the section. The caller checks the content. Raises ConfigError.
    """
    values = {} if file is None else _parse(file, _read(file))
    named = file or "--set"
    faults = _override_all(named, values, overrides)
    faults += [unknown_key(str(key), SECTIONS) for key in values if key not in SECTIONS]
    if faults:
        raise ConfigError.faults(named, faults)
    return values.get(name)


def _override_all(file: str, values: dict[str, Any], overrides: Sequence[str]) -> list[str]:
    """Apply ``--set`` and return the faults. Raises ConfigError if the file or an override holds a secret."""
    refuse_secrets(file, values, overrides)
    faults = [fault for override in overrides if (fault := _override(values, override))]
    refuse_secrets(file, values)
    return faults


def _read(file: str) -> str:
    try:
        content = read_ordinary_file(Path(file))
    except OSError as error:
        raise ConfigError.unreadable(file, error.strerror or first_sentence(error)) from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        # Not `from error`, which holds the whole content.
        raise ConfigError.not_utf8(file, content.count(b"\n", 0, error.start) + 1) from None


def _parse(file: str, text: str) -> dict[str, Any]:
    # UTF-16 without a byte-order mark is valid UTF-8 with null bytes.
    if "\0" in text:
        raise ConfigError.not_utf8(file, text.count("\n", 0, text.index("\0")) + 1)
    try:
        values = _load_text(text)
    # An invalid YAML time raises ValueError, and a thousand nested brackets raise RecursionError.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        error_mark = getattr(error, "problem_mark", None)
        why = without_content(getattr(error, "problem", None) or first_sentence(error))
        # Not `from error`, which would show the line in a traceback.
        raise ConfigError.broken_yaml(file, error_mark.line + 1 if error_mark else None, why) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError.broken_yaml(file, None, "the top level must be a mapping")
    return values


def _load_text(text: str) -> Any:
    """Parse YAML. Raises YAMLError, ValueError and RecursionError."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _size(node, {})
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _size(node: yaml.Node, sizes: dict[int, int | None]) -> int:
    """Return the number of characters of a node with its aliases expanded.

    Raises ConstructorError if there are too many. The limit makes every later pass over the values finite.
    ``sizes`` has the sizes of visited nodes by identity, and None for nodes that are being visited.
    """
    if id(node) in sizes:
        size = sizes[id(node)]
        if size is None:
            raise _too_much("it holds itself, by its own alias", node)
        return size
    if isinstance(node, yaml.ScalarNode):
        if node.tag != _TEXT and len(node.value) > _LONGEST_NUMBER:
            raise _too_much(f"a number or time of more than {_LONGEST_NUMBER} characters", node)
        return 1 + len(node.value)
    sizes[id(node)] = None
    pairs = node.value if isinstance(node, yaml.MappingNode) else ((inner,) for inner in node.value)
    size = 1
    for inner in (part for pair in pairs for part in pair):
        size += _size(inner, sizes)
        if size > _LARGEST:
            raise _too_much(f"it is larger than {_LARGEST} characters, its aliases written out", node)
    sizes[id(node)] = size
    return size


def _too_much(why: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, why, node.start_mark)


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, which refuses duplicate keys instead of taking the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
                if key_node.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {quote(key_node.value)} appears twice", key_node.start_mark
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep=deep)


def _override(values: dict[str, Any], override: str) -> str | None:
    """Apply one ``--set KEY=VALUE``. Return the fault, or None."""
    key, equals, raw = override.partition("=")
    if not equals or not key:
        return f"--set takes KEY=VALUE, not {quote(override)}"
    try:
        value = _load_text(raw)
    except (yaml.YAMLError, ValueError, RecursionError):
        return f"--set {key}: {quote(raw)} is not valid YAML"
    section, dot, rest = key.partition(".")
    parts = [section, rest] if section == "spark" and dot else key.split(".")
    inner = values
    for part in parts[:-1]:
        if inner.get(part) is None:
            inner[part] = {}
        if not isinstance(inner[part], dict):
            return f"--set {key}: {quote(part)} holds no keys"
        inner = inner[part]
    inner[parts[-1]] = value
    return None
