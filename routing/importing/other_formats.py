"""Name files that hold T-SQL in another format, none of which is read as a script."""

from __future__ import annotations

import re

from routing.importing.import_files import FilePlace

_ARCHIVE = b"PK\x03\x04"
_START = 4096
_CHANGELOG = "a Liquibase changelog in {}: `liquibase update-sql` writes the SQL of it"
_NOTEBOOK = "a notebook: save the T-SQL of its cells to a .sql file"
_BY_SUFFIX = {
    ".dacpac": "a DACPAC: `sqlpackage /Action:Script` writes its T-SQL",
    ".bacpac": "a BACPAC: import it into a server, and export the catalog views of that",
    ".ipynb": _NOTEBOOK,
}
_BEFORE_YAML = r"(?:[^\S\n]*(?:#[^\n]*|---|%YAML[^\n]*)?\r?\n)*"
_BY_CONTENT = (
    (
        re.compile(r"\s*<(?:\?xml|!--|databaseChangeLog)(?:(?!<databaseChangeLog).)*<?databaseChangeLog", re.S),
        _CHANGELOG.format("XML"),
    ),
    (re.compile(r"\s*\{(?:.*?)\"databaseChangeLog\"\s*:", re.S), _CHANGELOG.format("JSON")),
    (
        re.compile(r"(?:[^\S\n]*(?:#[^\n]*|---|%YAML[^\n]*)?\r?\n)*databaseChangeLog\s*:"),
        _CHANGELOG.format("YAML"),
    ),
    (re.compile(r"\s*\{(?=.*\"cells\"\s*:)", re.S), _NOTEBOOK),
    (re.compile(r"\s*<\?xml\b"), "XML"),
)


_READ_FOR_CONTENT = frozenset([".xml", ".yaml", ".yml", ".json"])


def other_format_of(path: FilePlace) -> str | None:
    """Return a sentence on a file that is no export by its name, where it is one of these. Raises OSError."""
    if path.suffix.lower() not in {*_BY_SUFFIX, *_READ_FOR_CONTENT} or not path.is_file():
        return None
    data = b"" if path.suffix.lower() in _BY_SUFFIX else path.read_bytes()
    return find_other_format(path.name, data, data[:_START].decode("utf-8", "replace"))


def find_other_format(name: str, data: bytes, text: str) -> str | None:
    """Return a sentence on what a file is, where it is no script; None where it may be one."""
    suffix = next((ending for ending in _BY_SUFFIX if name.lower().endswith(ending)), None)
    if suffix is not None:
        return f"it is {_BY_SUFFIX[suffix]}"
    if data.startswith(_ARCHIVE):
        return "it is a ZIP archive, as DACPAC and BACPAC files are"
    start = text[:_START].removeprefix("\ufeff")
    kinds = (kind for pattern, kind in _BY_CONTENT if pattern.match(start))
    kind = next(kinds, None)
    return None if kind is None else f"it is {kind}"
