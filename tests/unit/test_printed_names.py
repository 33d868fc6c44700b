"""Printed texts name no class or function of the package, so that renaming one changes no heading."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests import public_api
from tests.patterns import HOUSE, nodes_of

# Two capitals, each with small letters after it: one word alone may be plain English.
_CAMEL = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+")
_WORD = re.compile(r"(?<![\w.])\w+")
# Modules that name columns of SQL Server's catalog views, and the queries for them.
_COLUMNS_OF_VIEWS = tuple(f"importing/catalog/{name}.py" for name in ("evidence_views", "query_script", "views"))
_TEMPLATES = {".css", ".html", ".js", ".md", ".sql"}
# Class names that a text may hold all the same, each with what else has the name.
_OTHERS = {
    "BalancedService": "a service of an example in Microsoft's documentation, which the demo builds",
    "SqlInstance": "an option of the commands of dbatools",
}
# Names with an underscore that a sentence may hold, although some function or variable has the name as well.
_OTHER_SNAKES = {
    "broadcast_limit": "a key of the configuration",
    "by_id": "a group of a regular expression",
    "database_id": "a column of SQL Server's catalog views",
    "principal_id": "a column of SQL Server's catalog views",
    "scripted_at": "an argument, in an error about it",
}


def _modules() -> Iterator[tuple[str, tuple[ast.AST, ...]]]:
    for path in sorted(HOUSE.rglob("*.py")):
        yield str(path.relative_to(HOUSE)), nodes_of(path)


def _class_names() -> set[str]:
    nodes = (node for _, found in _modules() for node in found)
    return {node.name.lstrip("_") for node in nodes if isinstance(node, ast.ClassDef)}


def _texts_for_code(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Docstrings, types that are written as texts, and names that a module exports or looks up."""
    for node in nodes:
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.Expr):
            parts = [node.value] if isinstance(node.value, ast.Constant) else []
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [node.returns]
        elif isinstance(node, ast.arg | ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.Subscript):
            # Of a dictionary this is a key.
            parts = [node.slice]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            parts = [node.value]
        for part in parts:
            yield from ast.walk(part) if part is not None else ()


def printable_texts(nodes: tuple[ast.AST, ...]) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each literal that may be printed."""
    for_code = set(map(id, _texts_for_code(nodes)))
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in for_code:
            yield node.lineno, node.value


def _texts_of_package() -> Iterator[tuple[str, str]]:
    for file, nodes in _modules():
        # The table of public names, by which they are imported when they are first used.
        if file != "__init__.py":
            for line, text in printable_texts(nodes):
                yield f"{file}, line {line}", text
    for path in sorted(HOUSE.rglob("*")):
        if path.suffix in _TEMPLATES:
            yield str(path.relative_to(HOUSE)), path.read_text(encoding="utf-8")


def test_no_text_has_a_class_name() -> None:
    names = {name for name in _class_names() if _CAMEL.fullmatch(name)}
    assert names
    found = [
        f"{where}: {word}"
        for where, text in _texts_of_package()
        for word in _WORD.findall(text)
        if word in names and word not in _OTHERS
    ]
    assert found == []


def _defined_snakes() -> set[str]:
    """Return names with underscores of functions, arguments and variables that users never see."""
    nodes = [node for _, found in _modules() for node in found]
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    snakes = {name for name in names if "_" in name.strip("_") and name.islower()}
    return snakes - set(public_api.NAMES) - _columns()


def _columns() -> set[str]:
    from routing import result_schemas, schemas
    from routing.schemas import Schema

    schemas_found = [value for module in (schemas, result_schemas) for value in vars(module).values()]
    tables = [table for table in schemas_found if isinstance(table, Schema)]
    keys = [key for value in schemas_found if isinstance(value, dict) for key in value if isinstance(key, str)]
    return {name for table in tables for name in table.names} | set(keys)


def test_no_sentence_has_a_name_of_the_code() -> None:
    names = _defined_snakes() - set(_OTHER_SNAKES)
    assert names
    found = [
        f"{where}: {word}"
        for where, text in _texts_of_package()
        # A text of one word is a key, a column or an option.
        if " " in text and not where.endswith(tuple(_TEMPLATES)) and not where.startswith(_COLUMNS_OF_VIEWS)
        for word in _WORD.findall(text)
        if word in names
    ]
    assert found == []


def test_no_notebook_or_page_has_a_class_name() -> None:
    """Public names are written as code there."""
    names = {name for name in _class_names() if _CAMEL.fullmatch(name)} - set(_OTHERS)
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "notebooks").glob("*.ipynb")]
    found = []
    for page in pages:
        text = re.sub(r"```.*?```|`[^`\n]*`|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        found += [f"{page.name}: {word}" for word in _WORD.findall(text) if word in names]
    assert found == []


def test_names_of_classes_in_texts_are_found() -> None:
    source = '''
__all__ = ["TrafficTable"]
Folder = dict[str, "Folder | ListedFile"]

def text_of(route: "RouteMatch") -> "RoutePlan":
    """Return a text of a `RouteMatch`."""
    return PageSection("DialogBalance", f"{route} is a RouteMatch", 'a "MessageCase"')
'''
    texts = " ".join(text for _, text in printable_texts(tuple(ast.walk(ast.parse(source)))))
    assert set(_CAMEL.findall(texts)) == {"DialogBalance", "RouteMatch", "MessageCase"}
