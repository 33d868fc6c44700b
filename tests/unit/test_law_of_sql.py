"""No text from outside is pasted into SQL: every part of it is constant, a number, or goes through the quoting.

Checked on the syntax tree, by following names to what a function binds them to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import routing
from routing.config import Location
from routing.tables import sql_name

HOUSE = Path(routing.__file__).parent
_QUOTING = {"sql_name", "_quoted", "quoted_name"}
# Methods whose arguments Spark parses, whatever they are called on; and of these only what is text.
_PARSED = {"sql", "expr", "selectExpr", "saveAsTable", "insertInto"}
_CONDITIONS = {"where", "filter"}
# A Delta reader or a session; `show.table` is something else.
_TABLES = re.compile(r"(spark|reader|.*\.read(\.format\(.*\))?)")
_NUMBERS = {"int", "len"}

Bindings = dict[str, ast.expr]


class _Scope:
    """What the names of one function may be."""

    def __init__(self, function: ast.AST) -> None:
        self._bound: dict[str, list[ast.expr]] = {}
        self._numbers: set[str] = set()
        self._given: set[str] = set()
        for node in ast.walk(function):
            self._bind_all(node)

    def _bind_all(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            self._bind(node.target, node.value)
        elif isinstance(node, ast.For):
            self._bind(node.target, node.iter)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("append", "add", "extend", "insert") and isinstance(node.func.value, ast.Name):
                self._bound.setdefault(node.func.value.id, []).extend(node.args)
        elif isinstance(node, ast.arg):
            kind = "" if node.annotation is None else ast.unparse(node.annotation)
            (self._numbers if kind in ("int", "float") else self._given).add(node.arg)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        for name, bound in _parts(target, value):
            self._bound.setdefault(name, []).append(bound)

    def is_safe(self, node: ast.expr, inner: Bindings | None = None, above: frozenset[str] = frozenset()) -> bool:
        """Whether nothing from outside can be in a text; ``inner`` are the names of comprehensions around it."""

        def safe(part: ast.expr) -> bool:
            return self.is_safe(part, inner, above)

        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return self._is_safe_name(name, inner or {}, above)
            case ast.JoinedStr(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
                return all(safe(part) for part in parts)
            case ast.FormattedValue(value=part) | ast.Starred(value=part):
                return safe(part)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return safe(left) and safe(right)
            case ast.BinOp(op=ast.Sub()):
                return True
            case ast.IfExp(body=body, orelse=orelse):
                return safe(body) and safe(orelse)
            case ast.ListComp(elt=element, generators=loops) | ast.GeneratorExp(elt=element, generators=loops):
                names = {name: bound for loop in loops for name, bound in _parts(loop.target, loop.iter)}
                return self.is_safe(element, {**(inner or {}), **names}, above)
            case ast.Call(func=ast.Name(id=name)):
                return name in _QUOTING | _NUMBERS
            case ast.Call(func=ast.Attribute(attr="join", value=ast.Constant()), args=[part]):
                return safe(part)
            case ast.Call(func=ast.Attribute(attr=name)):
                # A type of a schema in routing.schemas.
                return name in _QUOTING | {"simpleString"}
        return False

    def _is_safe_name(self, name: str, inner: Bindings, above: frozenset[str]) -> bool:
        if name in inner:
            return self.is_safe(inner[name], {n: v for n, v in inner.items() if n != name}, above)
        if name.isupper() or name in self._numbers:
            return True
        values = [] if name in above or name in self._given else self._bound.get(name, [])
        return bool(values) and all(self.is_safe(value, None, above | {name}) for value in values)


def _parts(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Each name with what it is bound to; bound to the elements of a list, it counts as bound to the list."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple):
        is_zip = isinstance(value, ast.Call) and ast.unparse(value.func) == "zip"
        parts = value.args if is_zip and isinstance(value, ast.Call) else [value] * len(target.elts)
        for one, part in zip(target.elts, parts, strict=False):
            yield from _parts(one, part)


def _texts(tree: ast.AST) -> Iterator[ast.expr]:
    """What Spark is to parse as SQL."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        on = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if name in _PARSED or (name == "table" and _TABLES.fullmatch(on)):
            yield from node.args
        elif name in _CONDITIONS:
            yield from (a for a in node.args if isinstance(a, ast.JoinedStr) or _has_text(a))


def _has_text(node: ast.expr) -> bool:
    """A text that is put together: a sum of which a part is a text."""
    return isinstance(node, ast.BinOp) and any(
        isinstance(part, ast.JoinedStr | ast.Constant) for part in (node.left, node.right)
    )


def breaches(source: str) -> list[str]:
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    inner = {id(text) for function in functions for text in _texts(function)}
    found = []
    for scope in (*functions, tree):
        known = _Scope(scope)
        texts = [t for t in _texts(scope) if scope is not tree or id(t) not in inner]
        found += [f"line {t.lineno}: {ast.unparse(t)}" for t in texts if not known.is_safe(t)]
    return found


def test_every_text_of_sql_is_put_together_safely() -> None:
    rooms = {path: path.read_text(encoding="utf-8") for path in sorted(HOUSE.rglob("*.py"))}
    seen = sum(len(list(_texts(ast.parse(source)))) for source in rooms.values())
    assert seen >= 8
    found = {path.name: breaches(source) for path, source in rooms.items()}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "spark.sql(f'SELECT * FROM {path}')",
        "spark.sql('SELECT * FROM ' + path)",
        "spark.sql('SELECT * FROM %s' % path)",
        "spark.sql('SELECT * FROM {}'.format(path))",
        "spark.sql(text)",
        "name = path; spark.sql(f'SELECT * FROM {name}')",
        "name = '`' + path + '`'; spark.sql(f'SELECT * FROM {name}')",
        "path = sql_name(path); spark.sql(path)",
        "names = [_quoted(n) for n in path]; spark.sql(' '.join(n for n in path))",
        "names = ['a']; names.append(path); spark.sql(', '.join(names))",
        "spark.sql(' '.join(f'`{n}`' for n in names))",
        "spark.sql(f'SELECT {row.name}')",
        "F.expr(f'{path} > 1')",
        "expr(path)",
        "frame.selectExpr(f'{path} AS x')",
        "frame.where(f'run_id = \"{run_id}\"')",
        "frame.filter('run_id = ' + run_id)",
        "frame.write.saveAsTable(path)",
        "spark.read.format('delta').table(path)",
        "reader.table(path)",
    ],
)
def test_a_breach_is_seen(line: str) -> None:
    assert breaches(f"def f(spark, frame, path, run_id):\n    {line}\n")


def test_a_breach_outside_of_functions_is_seen() -> None:
    assert breaches("spark.sql(f'SELECT {path}')")


@pytest.mark.parametrize(
    "line",
    [
        "spark.sql('SELECT 1')",
        "spark.sql(f'SELECT * FROM {sql_name(location)} LIMIT {count}')",
        "name = sql_name(location); spark.sql(f'SELECT * FROM {name}')",
        "names = [_quoted(n) for n in path]; spark.sql('SELECT ' + ', '.join(names))",
        "frame.where(frame.x == path)",
        "frame.where('x is null')",
        "reader.table(sql_name(location))",
        "show.table(title, columns)",
    ],
)
def test_what_is_safe_passes(line: str) -> None:
    assert breaches(f"def f(spark, frame, path, location, count: int):\n    {line}\n") == []


_QUOTED = re.compile(r"`((?:[^`]|``)*)`", re.DOTALL)


@given(st.text(min_size=1))
def test_a_quoted_path_ends_where_it_ends(path: str) -> None:
    """One backtick opens it, one closes it, and what is between reads as the path."""
    name = sql_name(Location(path))
    match = re.fullmatch(rf"`delta`\.{_QUOTED.pattern}", name, re.DOTALL)
    assert match is not None
    assert match.group(1).replace("``", "`") == path


@given(st.lists(st.text(st.characters(exclude_characters="."), min_size=1), min_size=2, max_size=3))
def test_so_does_every_part_of_a_name(parts: list[str]) -> None:
    name = sql_name(Location(".".join(parts), is_name=True))
    assert re.fullmatch(r"`(?:[^`]|``)*`(?:\.`(?:[^`]|``)*`){1,2}", name, re.DOTALL)
    assert [part.replace("``", "`") for part in _QUOTED.findall(name)] == parts
