"""Python that pages show is Python, and uses names, arguments and modules of the package that exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import routing
from tests import public_api, python_page
from tests.shown_output import PAGES

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
_MAGIC = re.compile(r"^%", re.MULTILINE)
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8")), 1)
]


def faults(source: str) -> list[str]:
    """Names of the package that do not exist, and calls that its signatures do not take, a text each."""
    tree = ast.parse(_MAGIC.sub("# %", source))
    found, known = list[str](), {"routing": routing}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "routing":
            for alias in node.names:
                try:
                    known[alias.asname or alias.name] = _imported(node.module or "", alias.name)
                except (ImportError, AttributeError):
                    found.append(f"{node.module} has no {alias.name}")
    for node in ast.walk(tree):
        is_ours = isinstance(node, ast.Attribute) and _value(node.value, known) is not None
        if isinstance(node, ast.Attribute) and is_ours and _value(node, known) is None:
            found.append(f"{ast.unparse(node)} does not exist")
        if isinstance(node, ast.Call):
            found += _call_faults(node, _value(node.func, known))
    return found


def _imported(module: str, name: str) -> Any:
    owner = importlib.import_module(module)
    return getattr(owner, name) if hasattr(owner, name) else importlib.import_module(f"{module}.{name}")


def _value(node: ast.expr, known: dict[str, Any]) -> Any:
    """Return the object of a dotted name, or None if it is not in the package."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    return getattr(_value(node.value, known), node.attr, None) if isinstance(node, ast.Attribute) else None


def _call_faults(call: ast.Call, called: Any) -> Iterator[str]:
    if not callable(called) or any(isinstance(one, ast.Starred) for one in call.args):
        return
    arguments = [None for _ in call.args]
    try:
        inspect.signature(called).bind(
            *arguments, **{one.arg: None for one in call.keywords if one.arg is not None}
        )
    except TypeError as error:
        yield f"{ast.unparse(call)}: {error}"


@pytest.mark.parametrize("block", BLOCKS)
def test_python_on_a_page_uses_what_exists(block: str) -> None:
    assert faults(block) == []


def test_pages_have_python() -> None:
    assert len(BLOCKS) > 8


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        pytest.param("import routing\nrouting.load_config('a.yaml')", None, id="right"),
        pytest.param("routing.load_config('a.yaml', overrides=[])", None, id="keyword"),
        pytest.param("%pip install x\nrouting.ask(outcomes=['SENT'])", None, id="magic"),
        pytest.param("frame.load_config(file=1)", None, id="of something else"),
        pytest.param("routing.load('a.yaml')", "routing.load does not exist", id="no such name"),
        pytest.param("routing.load_config()", "missing a required argument: 'file'", id="argument missing"),
        pytest.param("routing.ask(outcome=['SENT'])", "unexpected keyword argument 'outcome'", id="wrong keyword"),
        pytest.param("routing.Scripts.of_txt('x')", "routing.Scripts.of_txt does not exist", id="no such method"),
        pytest.param("from routing import resolver", "routing has no resolver", id="no such import"),
        pytest.param("from routing.views import nothing", "has no nothing", id="no such module"),
        pytest.param("from routing.terms import Outcome\nOutcome.LOST", "Outcome.LOST", id="no such member"),
        pytest.param("from routing import ask\nask('x')", "too many positional", id="imported by itself"),
    ],
)
def test_wrong_calls_on_a_page_are_faults(source: str, fault: str | None) -> None:
    found = faults(source)
    assert (found == []) if fault is None else (fault in " ".join(found))


def test_python_that_does_not_parse_is_refused() -> None:
    with pytest.raises(SyntaxError):
        faults("routing.resolve(spark, …)")


def test_the_reference_shows_every_public_name_once() -> None:
    listed = python_page.listed_names(python_page.PAGE.read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(public_api.NAMES)


def test_the_reference_shows_the_docstrings() -> None:
    text = python_page.PAGE.read_text(encoding="utf-8")
    assert python_page.renewed(text) == text, "make docs-output renews it"
