"""A law of the tests: none replaces a module's constant or private name. Limits are parameters.

Tests may replace the surroundings of the package (time, environment, packages that fail on purpose) and its public
functions.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[1]
_PATCHES = {"setattr", "setitem", "delattr", "delitem", "object"}
_NEIGHBOURS = "swaps two neighbours: the rules' order is stated in one place, which every command follows"
_METHODS = "public methods, wrapped one after the other"
# The names that are patched nevertheless, by file, with the reason.
EXCEPTIONS = {
    ("unit/test_plan_order.py", "STEPS"): _NEIGHBOURS,
    ("unit/test_plan_order.py", "TIERS"): _NEIGHBOURS,
    ("unit/test_plan_order.py", "_PLACE"): "the places of the swapped steps",
    ("unit/test_plan_candidates.py", "STEPS"): _NEIGHBOURS,
    ("unit/test_plan_candidates.py", "TIERS"): _NEIGHBOURS,
    ("unit/test_plan_candidates.py", "_PLACE"): "the places of the swapped steps",
    ("unit/test_cli.py", "_COMMANDS"): "a command that ends with a given error, in the place of one that works",
    ("spark/test_refusing_session.py", "_tried"): "the tests' one session, of which this process knows better",
    ("hooks.py", "name"): _METHODS,
    ("half_imports.py", "name"): _METHODS,
    ("spark/test_new_rows.py", "name"): "the methods of Spark's reader",
    ("spark/test_runs.py", "name"): "public functions of `spark_runs`, which also act",
}


class Patched(NamedTuple):
    """A replaced name, or its source if it is not a text."""

    name: str
    is_text: bool = True

    @property
    def is_inner(self) -> bool:
        """Return whether the name is a constant or private. A name that is not a text may be either."""
        is_private = self.name.startswith("_") and not self.name.endswith("__")
        return self.name.isupper() or is_private or not self.is_text


def _find_patched(node: ast.AST) -> Patched | None:
    """The name that a call or an assignment replaces."""
    if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Attribute):
        is_own = not isinstance(target.value, ast.Name) or target.value.id in ("self", "cls")
        return None if is_own else Patched(target.attr)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PATCHES):
        return None
    if node.func.attr.endswith("item"):
        return Patched(ast.unparse(node.args[0]).rpartition(".")[2])
    # The name stands in the first argument, with its module, or in the second.
    named = node.args[0] if isinstance(node.args[0], ast.Constant) else node.args[1]
    if isinstance(named, ast.Constant):
        return Patched(str(named.value).rpartition(".")[2])
    return Patched(ast.unparse(named), is_text=False)


def _inner_names(source: str) -> set[str]:
    patched = (_find_patched(node) for node in ast.walk(ast.parse(source)))
    return {one.name for one in patched if one is not None and one.is_inner}


def test_no_test_replaces_a_constant_or_a_private_name() -> None:
    replaced = {
        (str(path.relative_to(TESTS)), name)
        for path in sorted(TESTS.rglob("*.py"))
        for name in _inner_names(path.read_text(encoding="utf-8"))
    }
    assert replaced == set(EXCEPTIONS)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        pytest.param("monkeypatch.setattr(flows, 'MOST', 1)", {"MOST"}, id="a constant"),
        pytest.param("patch.setattr('routing.rules.matching.STEPS', ())", {"STEPS"}, id="by its path"),
        pytest.param("patch.setattr(session, '_tried', {})", {"_tried"}, id="a private name"),
        pytest.param("mock.patch.object(session, '_tried', {})", {"_tried"}, id="by mock"),
        pytest.param("monkeypatch.setitem(cli._COMMANDS, 'demo', f)", {"_COMMANDS"}, id="an entry"),
        pytest.param("streams._PAUSE = 0.1", {"_PAUSE"}, id="by assignment"),
        pytest.param("for most in ('A', 'B'): patch.setattr(flows, most, 1)", {"most"}, id="a name of any kind"),
        pytest.param("monkeypatch.setattr(run_lock, 'lock_file', f)", set(), id="a public function"),
        pytest.param("monkeypatch.setattr(sample, '__doc__', 'text')", set(), id="Python's own"),
        pytest.param("self._PAUSE = 0.1", set(), id="an attribute of its own"),
    ],
)
def test_patched_inner_names_are_collected(source: str, names: set[str]) -> None:
    assert _inner_names(source) == names
