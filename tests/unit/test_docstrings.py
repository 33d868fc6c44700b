"""Docstrings of functions begin with a verb; those of classes and modules have a noun, or of modules a verb."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import routing
from tests.patterns import nodes_of

HOUSE = Path(routing.__file__).parent
_PRONOUNS = r"what(?! to\b)|those|the ones?|the same|one that|another|it|them|that which|all that|whoever"
# As `tests/project/test_docs.py` has it for what users read.
AVOIDED = re.compile(
    r"\b(but\s+for|whoever|comes?\s+to|(?:is|are)\s+told|besides(?!``)|of\s+one's\s+own|as\s+ever)\b",
    re.IGNORECASE,
)
HEADLESS = re.compile(rf"[A-Z][a-z]+ (?:{_PRONOUNS})\b")
NO_VERB = re.compile(r"(?:The|An?|Whether|What|How|Which|Where|When|Who|Returns|It|No|All|Each|Every)\b|[^A-Z]")
_PROPERTIES = {"property", "cached_property"}


def _function_docstrings(nodes: Iterator[ast.AST]) -> Iterator[tuple[int, str, str]]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
            said = ast.get_docstring(node)
            if said is not None and not decorators & _PROPERTIES:
                yield node.lineno, node.name, said


def faults(nodes: Iterator[ast.AST]) -> list[str]:
    """Where a docstring begins with a noun, a question or code, or with a verb whose object is a pronoun."""
    return [
        f"line {line}, {name}: {said.splitlines()[0]}"
        for line, name, said in _function_docstrings(nodes)
        if NO_VERB.match(said) or HEADLESS.match(said)
    ]


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    found = {str(path.relative_to(HOUSE)): faults(iter(nodes_of(path))) for path in sorted(HOUSE.rglob("*.py"))}
    assert found
    assert {file: lines for file, lines in found.items() if lines} == {}


def test_docstrings_of_classes_have_a_noun() -> None:
    headless = re.compile(r"(What|Those|How|Which|Whether|Where|When|Who|The (same|one|ones)) ")
    found = [
        f"{path.relative_to(HOUSE)} {node.name}"
        for path in sorted(HOUSE.rglob("*.py"))
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef) and headless.match(ast.get_docstring(node) or "")
    ]
    assert found == []


def test_docstrings_name_the_actor() -> None:
    """Of modules and classes as well."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    found = [
        f"{path.relative_to(HOUSE)}: {match[0]}"
        for path in sorted(HOUSE.rglob("*.py"))
        for node in nodes_of(path)
        if isinstance(node, kinds)
        for match in AVOIDED.finditer(ast.get_docstring(node) or "")
    ]
    assert found == []


@pytest.mark.parametrize(
    ("said", "is_wrong"),
    [
        pytest.param("Return the routes of a database.", False, id="verb"),
        pytest.param("Return how many messages wait.", False, id="question"),
        pytest.param("Advise what to compare.", False, id="what to do"),
        pytest.param("Read, check and write.", False, id="verbs"),
        pytest.param("Return whether a text is a GUID.", False, id="whether"),
        pytest.param("The routes of a database.", True, id="noun"),
        pytest.param("Whether a text is a GUID.", True, id="no verb before whether"),
        pytest.param("Returns the routes.", True, id="third person"),
        pytest.param("``routes`` of a database.", True, id="code"),
        pytest.param("Return what a route says.", True, id="headless what"),
        pytest.param("Return those of a database.", True, id="headless those"),
        pytest.param("Return the one that matches.", True, id="headless one"),
        pytest.param("Return the same by Spark.", True, id="headless same"),
        pytest.param("Return the one node of all others.", True, id="headless one node"),
        pytest.param("Release them.", True, id="headless them"),
    ],
)
def test_what_is_wrong(said: str, is_wrong: bool) -> None:
    source = f'def f():\n    """{said}"""\n\n@property\ndef p():\n    """The same."""\n\nclass C:\n    """One."""'
    assert bool(faults(ast.walk(ast.parse(source)))) is is_wrong
