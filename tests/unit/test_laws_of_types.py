"""Laws of values that rooms exchange: values have names, so that readers need not count places or guess keys."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import routing
from tests.patterns import nodes_of

HOUSE = Path(routing.__file__).parent
MOST_PLACES = 3
_IS_TYPE = re.compile(r"[A-Za-z.]+\[[A-Za-z\[\]., |]*\]( \| None)?$")
# Where values by name may be anything, with the reason.
ANYTHING = {
    "terms.py": "names them, once each: rows of tables, and objects of JSON",
    "config/config_file.py": "reads what YAML holds, which is checked there, value by value",
}


def _annotations(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes, and those of annotations that are written as texts."""
    for node in nodes:
        yield node
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _IS_TYPE.match(node.value):
            yield from ast.walk(ast.parse(node.value, mode="eval"))


def _subscripts(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, list[ast.expr]]]:
    for node in _annotations(nodes):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            yield ast.unparse(node.value), node.slice.elts


def _long_tuples(nodes: Iterable[ast.AST]) -> list[str]:
    """Types of tuples with more places than a reader can tell apart."""
    return [
        f"{name}[{', '.join(map(ast.unparse, places))}]"
        for name, places in _subscripts(nodes)
        if name in ("tuple", "Tuple") and len(places) > MOST_PLACES
    ]


def _values_of_any_kind(nodes: Iterable[ast.AST]) -> int:
    """Count the types that name their values without types for these."""
    return sum([ast.unparse(one) for one in kinds] == ["str", "Any"] for _, kinds in _subscripts(nodes))


def test_a_tuple_has_at_most_three_elements() -> None:
    found = {str(path.relative_to(HOUSE)): _long_tuples(nodes_of(path)) for path in sorted(HOUSE.rglob("*.py"))}
    assert {name: tuples for name, tuples in found.items() if tuples} == {}


def test_values_by_name_are_rows_objects_or_of_one_type() -> None:
    paths = {str(path.relative_to(HOUSE)) for path in HOUSE.rglob("*.py") if _values_of_any_kind(nodes_of(path))}
    assert paths == set(ANYTHING)


@pytest.mark.parametrize(
    ("source", "is_breach"),
    [
        pytest.param("x: tuple[int, int, int]", False, id="three"),
        pytest.param("x: tuple[int, int, int, int]", True, id="four"),
        pytest.param("x: dict[tuple[int, int, int, int], str]", True, id="four, as a key"),
        pytest.param("Key = tuple[int, 'str | None', int, int]", True, id="four, in an alias"),
        pytest.param("x: 'tuple[int, int, int, int] | None'", True, id="four, in a text"),
        pytest.param("x: tuple[int, ...]", False, id="any number of one type"),
    ],
)
def test_long_tuples_are_reported(source: str, is_breach: bool) -> None:
    assert bool(_long_tuples(list(ast.walk(ast.parse(source))))) is is_breach


@pytest.mark.parametrize(
    ("source", "is_breach"),
    [
        pytest.param("x: dict[str, Any]", True, id="a dictionary"),
        pytest.param("def f(x: Mapping[str, Any]) -> None: ...", True, id="a mapping"),
        pytest.param("x: 'dict[str, Any]'", True, id="in a text"),
        pytest.param("x: TableRow", False, id="a row"),
        pytest.param("x: dict[str, object]", False, id="objects, which must be looked at first"),
    ],
)
def test_mappings_with_any_values_are_reported(source: str, is_breach: bool) -> None:
    assert bool(_values_of_any_kind(list(ast.walk(ast.parse(source))))) is is_breach
