"""Read a SQL Server database project (``.sqlproj``, old and SDK style) into the scripts that it deploys.

MSBuild is not needed: conditions and imported files are not evaluated. Documents with a DTD are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple
from urllib.parse import unquote
from xml.parsers import expat

from routing.importing.changelogs import natural_key
from routing.importing.import_files import FilePlace, list_files
from routing.importing.tsql.sqlcmd import SourceText

SUFFIX = ".sqlproj"
_PROPERTY = re.compile(r"\$\((\w+)\)")
_BROKER_OPTIONS = {
    "enablebroker": "ENABLE_BROKER",
    "disablebroker": "DISABLE_BROKER",
    "newbroker": "NEW_BROKER",
    "errorbrokerconversations": "ERROR_BROKER_CONVERSATIONS",
}
_DATABASE_NAMES = ("TargetDatabase", "TargetDatabaseName", "SqlTargetName", "Name")
_NOT_BUILT = ("bin", "obj")
# This SDK builds content, and leaves out the folders whose scripts a deployment includes by :r.
_CONTENT_SDK = "msbuild.sdk.sqlproj"
_DEPLOYMENT = ("pre-deployment", "post-deployment")


@dataclass
class _Element:
    """An element of the project's XML with its line; ``text`` is its own."""

    name: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list[_Element] = field(default_factory=list)

    def all_named(self, name: str) -> Iterator[_Element]:
        for child in self.children:
            if child.name == name:
                yield child
            yield from child.all_named(name)


def parse_xml(data: bytes) -> _Element:
    """Return the root of a document. Raises ValueError for one that is not XML, or that has a DTD."""
    top = _Element("", {}, 0)
    above = [top]
    parser = expat.ParserCreate()

    def begin(name: str, attributes: dict[str, str]) -> None:
        element = _Element(name.rpartition(":")[2], attributes, parser.CurrentLineNumber)
        above[-1].children.append(element)
        above.append(element)

    def end(name: str) -> None:
        above.pop()

    def add(text: str) -> None:
        above[-1].text += text

    def refuse(*_: object) -> None:
        raise ValueError("it has a DTD, which is not read")

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = add
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ValueError(f"it is not XML: {expat.ErrorString(error.code)}, line {error.lineno}") from error
    return top.children[0]


@dataclass(frozen=True)
class SqlProject:
    """A project: the name of its database, the default values of variables, and its texts in order.

    ``guesses`` are sentences on items under a condition, which are always taken.
    """

    database: str
    variables: dict[str, str]
    sources: tuple[SourceText, ...]
    guesses: tuple[str, ...]


class _Item(NamedTuple):
    """A file of a project by its path in the project's folder, and the line that names it."""

    name: str
    line: int


def read_project(path: FilePlace) -> SqlProject:
    """Read a project. Raises OSError, ValueError for a file that is none."""
    root = parse_xml(path.read_bytes())
    if root.name != "Project":
        raise ValueError(f"it is not a project, but an XML document <{root.name}>")
    properties, lines = _properties(root, path)
    files = (file for file in list_files(path.parent, []) if file.suffix.lower() == ".sql")
    scripts = [_name_in(path.parent, file) for file in files]
    reader = _ItemReader(root, scripts, properties)
    database = next((properties[name] for name in _DATABASE_NAMES if properties.get(name)), path.stem)
    sources = []
    option = _BROKER_OPTIONS.get(properties.get("ServiceBrokerOption", "").casefold())
    if option is not None:
        name, written = database.replace("]", "]]"), database.replace("'", "''")
        text = f"IF DB_ID(N'{written}') IS NULL CREATE DATABASE [{name}]; ALTER DATABASE [{name}] SET {option};"
        sources.append(SourceText(text, str(path), lines["ServiceBrokerOption"]))
    before, after = reader.items("PreDeploy"), reader.items("PostDeploy")
    built = reader.built({item.name for item in (*before, *after)})
    sources += [SourceText(f':r "{item.name}"', str(path), item.line) for item in (*before, *built, *after)]
    guesses = tuple(
        f"{path}, line {item.line}: the condition of <{item.name}> is not evaluated, so its scripts are read"
        for item in _conditional_items(root)
    )
    variables = {"DatabaseName": database, **_variables(root, properties)}
    return SqlProject(database, variables, tuple(sources), guesses)


def _conditional_items(element: _Element, *, is_conditional: bool = False) -> Iterator[_Element]:
    for child in element.children:
        is_inside = is_conditional or "Condition" in child.attributes or child.name in ("When", "Otherwise")
        if is_inside and "Include" in child.attributes and child.name in ("Build", "PreDeploy", "PostDeploy"):
            yield child
        yield from _conditional_items(child, is_conditional=is_inside)


def _properties(root: _Element, path: FilePlace) -> tuple[dict[str, str], dict[str, int]]:
    """Return the properties with their lines; one under a condition counts where no other has its name."""
    values, lines = dict.fromkeys(("MSBuildProjectName", "MSBuildThisFileName"), path.stem), dict[str, int]()
    values |= {"MSBuildProjectDirectory": ".", "MSBuildThisFileDirectory": "./"}
    for group in root.all_named("PropertyGroup"):
        for element in group.children:
            has_condition = "Condition" in element.attributes or "Condition" in group.attributes
            if element.name not in values or not has_condition:
                values[element.name] = _evaluate(element.text, values)
                lines[element.name] = element.line
    return values, lines


def _evaluate(text: str, properties: dict[str, str]) -> str:
    return _PROPERTY.sub(lambda match: properties.get(match[1], match[0]), text.strip())


def _variables(root: _Element, properties: dict[str, str]) -> dict[str, str]:
    """Return the default values of sqlcmd's variables; those without one stay unknown."""
    values = {}
    for element in root.all_named("SqlCmdVariable"):
        attribute = element.attributes.get("DefaultValue", "")
        default = next((child.text for child in element.all_named("DefaultValue")), attribute)
        if default.strip():
            values[element.attributes.get("Include", "")] = _evaluate(default, properties)
    return values


class _ItemReader:
    def __init__(self, root: _Element, lying: Sequence[str], properties: dict[str, str]) -> None:
        self._root, self._lying, self._properties = root, lying, properties
        sdks = [
            root.attributes.get("Sdk", ""),
            *(element.attributes.get("Name", "") for element in root.all_named("Sdk")),
        ]
        is_default = properties.get("EnableDefaultSqlItems", "true").casefold() != "false"
        self._has_defaults = is_default and any("sql" in sdk.casefold() for sdk in sdks)
        builds_content = any(sdk.casefold().startswith(_CONTENT_SDK) for sdk in sdks)
        self._kinds = ("Build", "Content") if builds_content else ("Build",)
        self._not_built = (*_NOT_BUILT, *_DEPLOYMENT) if builds_content else _NOT_BUILT

    def items(self, kind: str) -> list[_Item]:
        """Return the files of the items of a kind, without removed ones."""
        items: dict[str, _Item] = {}
        for element in self._root.all_named(kind):
            excluded = set(self._names(element, "Exclude"))
            for name in self._names(element, "Include"):
                if name not in excluded:
                    items.setdefault(name, _Item(name, element.line))
            for name in self._names(element, "Remove"):
                items.pop(name, None)
        return list(items.values())

    def built(self, deployed: set[str]) -> list[_Item]:
        """Return the files that the build takes, in natural order."""
        items = {item.name: item for kind in self._kinds for item in self.items(kind)}
        if self._has_defaults:
            not_built = {*deployed, *(item.name for item in self.items("None"))}
            for element in (element for kind in self._kinds for element in self._root.all_named(kind)):
                not_built.update(self._names(element, "Remove"))
            for name in self._lying:
                if name not in not_built and name.partition("/")[0].casefold() not in self._not_built:
                    items.setdefault(name, _Item(name, self._root.line))
        return sorted(items.values(), key=lambda item: natural_key(item.name))

    def _names(self, element: _Element, attribute: str) -> Iterator[str]:
        """Yield the files of an attribute: names and patterns, apart by semicolons."""
        written = _evaluate(element.attributes.get(attribute, ""), self._properties)
        for name in written.replace("\\", "/").split(";"):
            name = unquote(name.strip()).removeprefix("./")
            if any(sign in name for sign in "*?"):
                pattern = name.casefold().replace("[", "[[]").split("/")
                yield from (lying for lying in self._lying if _matches(pattern, lying.casefold().split("/")))
            elif name:
                same = (lying for lying in self._lying if lying.casefold() == name.casefold())
                yield next(same, name)


def _name_in(folder: FilePlace, file: FilePlace) -> str:
    name = str(file) if str(folder) == "." else str(file).removeprefix(str(folder))
    return name.replace("\\", "/").lstrip("/")


def _matches(pattern: Sequence[str], name: Sequence[str]) -> bool:
    """Return True if the parts of a path match those of a pattern of MSBuild."""
    places = {0}
    for part in pattern:
        if part == "**":
            places = set(range(min(places), len(name) + 1))
        else:
            places = {place + 1 for place in places if place < len(name) and fnmatchcase(name[place], part)}
        if not places:
            return False
    return len(name) in places
