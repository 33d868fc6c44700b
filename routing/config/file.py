"""The YAML file and ``--set`` → parsed values, and from these a checked configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from routing.config.config_checks import ConfigChecker
from routing.config.config_keys import SECTIONS
from routing.config.config_values import folder_of
from routing.config.model import Config
from routing.config.secrets import refuse_secrets, without_content
from routing.errors import ConfigError, first_sentence, quote, unknown_key
from routing.process.ordinary_files import read_ordinary_file

_LARGEST, _LONGEST_NUMBER = 2_000_000, 1000
_TEXT = "tag:yaml.org,2002:str"


def load(file: str, overrides: Sequence[str] = (), text: str | None = None) -> Config:
    """Read and check a configuration file (docs/reference/configuration.md).

    Args:
        file: its path, or the name that messages give it where ``text`` has the content.
        overrides: ``KEY=VALUE`` texts, as of ``--set``; each replaces the file's value.
        text: the file's content where the caller has read it, such as from a URI.

    Returns:
        The configuration; relative locations belong to the file's folder.

    Raises:
        ConfigError: the file cannot be read, or has faults: all of them in one message.

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
    """Load one section of a local file, which need have no other, or of ``--set`` alone.

    None where neither has it; what it holds is for its reader to check. Raises ConfigError.
    """
    values = {} if file is None else _parse(file, _read(file))
    named = file or "--set"
    faults = _override_all(named, values, overrides)
    faults += [unknown_key(str(key), SECTIONS) for key in values if key not in SECTIONS]
    if faults:
        raise ConfigError.faults(named, faults)
    return values.get(name)


def _override_all(file: str, values: dict[str, Any], overrides: Sequence[str]) -> list[str]:
    """Set the values of ``--set``; return the faults. Raises ConfigError where either holds a secret."""
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
    # UTF-16 without a byte-order mark is valid UTF-8 of every other character.
    if "\0" in text:
        raise ConfigError.not_utf8(file, text.count("\n", 0, text.index("\0")) + 1)
    try:
        values = _load_text(text)
    # A time of YAML's own that is none, and brackets a thousand deep, are no YAMLError.
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
    """Return the number of characters of a node, aliases as what they stand for. Raises ConstructorError.

    Whatever goes through the values then ends: a text that shows one, above all. ``sizes`` has the sizes of the
    nodes by their identity, None for those around this one.
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
    """YAML's safe loader, which refuses a key that stands twice instead of taking the last."""

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
    """Set the value of one ``--set KEY=VALUE``; return a fault text where it cannot be set."""
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
