"""Recognize files with T-SQL in another format, which are not read as scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from routing.importing.import_files import FilePlace, list_files

_ARCHIVE = b"PK\x03\x04"
_START = 16_384
_ROOT = "databaseChangeLog"
_CHANGELOG = "a Liquibase changelog in {}: `liquibase update-sql` writes the SQL of it"
_NOTEBOOK = "a notebook: save the T-SQL of its cells to a .sql file"
_RICH_TEXT = "rich text: save T-SQL as plain text (.sql), and export views as CSV"
_BY_SUFFIX = {
    ".dacpac": "a DACPAC: `sqlpackage /Action:Script` writes its T-SQL",
    ".bacpac": "a BACPAC: import it into a server, and export the catalog views of that",
    ".ipynb": _NOTEBOOK,
    ".rtf": _RICH_TEXT,
}
_OF_SSBDIAGNOSE = (
    "it is the output of ssbdiagnose, which has no routes and no messages: export the views of the servers that it"
    " names, by sbroute import queries"
)
_SSBDIAGNOSE = re.compile(
    r"(?:[^\n]*\n){0,4}(?:Service Broker Diagnostic Utility|(?:<\?[^\n>]*>\s*)?<DiagnosticInformation)\b"
)
_XML = re.compile(r"\s*<(?:\?xml\b|!--|[A-Za-z][\w:.-]*[\s/>])")
_PROFILE = ".publish.xml"
_TARGET = re.compile(r"<TargetDatabaseName>([^<>]+)")
_VARIABLE = re.compile(r"<SqlCmdVariable\s+Include=\"([^\"]+)\"")
_YAML = re.compile(r"(?:[^\S\n]*(?:#[^\n]*|---[^\S\n]*|%YAML[^\n]*)?\n)*databaseChangeLog\s*:")
_OBJECT = re.compile(r"\s*\{")
_READ_FOR_CONTENT = frozenset([".xml", ".yaml", ".yml", ".json"])


def other_format_of(path: FilePlace) -> str | None:
    """Return a sentence on a script in another format, or None if the file is not one. Raises OSError."""
    if path.suffix.lower() not in {*_BY_SUFFIX, *_READ_FOR_CONTENT} or not path.is_file():
        return None
    data = b"" if path.suffix.lower() in _BY_SUFFIX else _read_start(path)
    # Without its zero bytes and marks the beginning of any UTF-16 document is readable enough.
    start = data.replace(b"\0", b"").decode("utf-8", "replace").lstrip("\ufeff\ufffd")
    return find_other_format(path.name, data, start)


def say_publish_profiles(folder: Path) -> Iterator[str]:
    """Yield a note on each publish profile in the folder of a project, which is not read. Raises OSError."""
    for file in list_files(folder, []):
        if file.name.lower().endswith(_PROFILE):
            yield f"{file}: not read, {other_format_of(file)}"


def is_changelog(file: Path) -> bool:
    """Return whether a file is a changelog of Liquibase by its name and its beginning. Raises OSError."""
    return file.suffix.lower() in _READ_FOR_CONTENT and _ROOT in _read_start(file).decode("utf-8", "replace")


def _read_start(path: FilePlace) -> bytes:
    if not isinstance(path, Path):
        return path.read_bytes()[:_START]
    with path.open("rb") as opened:
        return opened.read(_START)


def find_other_format(name: str, data: bytes, text: str) -> str | None:
    """Return a sentence on the format of a file, or None if it may be a script."""
    suffix = next((ending for ending in _BY_SUFFIX if name.lower().endswith(ending)), None)
    if suffix is not None:
        return f"it is {_BY_SUFFIX[suffix]}"
    if data.startswith(_ARCHIVE):
        return "it is a ZIP archive, as DACPAC and BACPAC files are"
    start = text[:_START].removeprefix("\ufeff")
    foreign_text = find_foreign_text(start)
    if foreign_text is not None:
        return foreign_text
    has_changes = _ROOT in start
    if _YAML.match(start):
        return f"it is {_CHANGELOG.format('YAML')}"
    if _XML.match(start):
        return f"it is {_CHANGELOG.format('XML') if has_changes else _name_xml(name, start)}"
    if _OBJECT.match(start) is None:
        return None
    return (
        f"it is {_CHANGELOG.format('JSON')}"
        if has_changes
        else (f"it is {_NOTEBOOK}" if '"cells"' in start else None)
    )


def _name_xml(name: str, text: str) -> str:
    """Return what a document is. The values of a publish profile are not taken, since they may be passwords."""
    if not name.lower().endswith(_PROFILE):
        return "XML"
    variables = ", ".join(_VARIABLE.findall(text))
    of_database = "".join(f" of the database {name.strip()}" for name in _TARGET.findall(text))
    return f"a publish profile{of_database}" + (f" (give its values with -v): {variables}" if variables else "")


def find_foreign_text(text: str) -> str | None:
    """Return a sentence on a text of word processors (RTF) or of ssbdiagnose, or None for any other text."""
    if text.startswith("{\\rtf"):
        return f"it is {_RICH_TEXT}"
    return _OF_SSBDIAGNOSE if _SSBDIAGNOSE.match(text) else None
