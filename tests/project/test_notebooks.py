"""The notebooks ask questions whose answers hold on any platform. These tests read them without running."""

from __future__ import annotations

import ast
import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from routing import pictures
from tests import public_api
from tests.notebook_outputs import MOST_BYTES, NOTEBOOKS, normalize
from tests.small_png import SIGNATURE

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
HANDED_ON = {"routing", "pictures", "config", "now"}
IN_SPARK = {"routing", "pictures", "config", "spark", "names", "F"}
HANDED_ON_BY = {"routing-outcomes": HANDED_ON, "what-if": HANDED_ON, "spark-analysis": IN_SPARK}
LONGEST = 5
_PLUMBING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.With, ast.Try)
by_notebook = pytest.mark.parametrize("name", sorted(NOTEBOOKS))


def _cells(name: str, kind: str) -> list[dict[str, Any]]:
    read = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))
    return [cell for cell in read["cells"] if cell["cell_type"] == kind]


def _code(name: str) -> list[ast.Module]:
    return [ast.parse("".join(cell["source"])) for cell in _cells(name, "code")]


def _named(cell: ast.Module) -> set[str]:
    """Return the names that a cell defines."""
    nodes = list(ast.walk(cell))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    aliases = [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    return names | {alias.asname or alias.name for alias in aliases}


def _of(cells: list[ast.Module], module: str) -> set[str]:
    """The names of a module that cells use."""
    nodes = [node for cell in cells for node in ast.walk(cell) if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if ast.unparse(node.value) == module}


def test_every_notebook_is_checked() -> None:
    assert set(NOTEBOOKS) == set(HANDED_ON_BY)


@by_notebook
def test_all_cells_but_the_first_have_stored_outputs(name: str) -> None:
    """Each cell but the first shows something: `make notebooks` has run it."""
    cells = _cells(name, "code")
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert [bool(cell["outputs"]) for cell in cells] == [False] + [True] * (len(cells) - 1)


@by_notebook
def test_a_stored_output_is_text_or_a_small_picture(name: str) -> None:
    outputs = [out for cell in _cells(name, "code") for out in cell["outputs"]]
    pictures = [base64.b64decode(out["data"]["image/png"]) for out in outputs if "data" in out]
    assert [picture[:8] for picture in pictures] == [SIGNATURE] * len(pictures)
    assert (len(pictures) >= 3, max(map(len, pictures)) <= MOST_BYTES) == (True, True)
    texts = [out for out in outputs if "data" not in out]
    assert {(out["output_type"], out["name"]) for out in texts} == {("stream", "stdout")}


@by_notebook
def test_no_output_is_of_one_machine_or_run(name: str) -> None:
    outputs = [out for cell in _cells(name, "code") for out in cell["outputs"] if "data" not in out]
    text = "\n".join("".join(out["text"]) for out in outputs)
    # Paths from the root of a disk, and versions of programs.
    assert re.findall(r"(?<![\w/.:])/(?!/)[\w.-]+|\b\d+\.\d+\.\d+\b", text) == []
    assert normalize(text) == text


@by_notebook
def test_only_the_first_cell_depends_on_the_environment(name: str) -> None:
    """Later cells import and define nothing and start no session. They use only names of the first one."""
    first, *later = _code(name)
    assert _named(first) >= HANDED_ON_BY[name]
    nodes = [node for cell in later for node in ast.walk(cell)]
    assert [ast.unparse(node) for node in nodes if isinstance(node, _PLUMBING)] == []
    own = set().union(*(_named(cell) for cell in later))
    assert {node.id for node in nodes if isinstance(node, ast.Name)} <= HANDED_ON_BY[name] | own | {"print"}


def test_the_first_cell_for_databricks_defines_the_same_names() -> None:
    page = (ROOT / "docs" / "how-to" / "databricks.md").read_text(encoding="utf-8")
    section = page.partition("\n## In a notebook\n")[2].partition("\n## ")[0]
    install, first = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names = _named(ast.parse(first))
    assert names >= HANDED_ON | IN_SPARK
    calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(first)) if isinstance(node, ast.Call)}
    assert {"routing.load_config", "pictures.for_notebook"} <= calls
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r"service_broker_routing-(.+)-py3-none-any\.whl\[(.+)\]", install)
    assert found is not None
    assert f'\nversion = "{found[1]}"\n' in project
    assert [extra for extra in found[2].split(",") if f"\n{extra} = [" not in project] == []


@pytest.mark.parametrize("name", ["routing-outcomes", "what-if"])
def test_only_the_last_cell_needs_spark(name: str) -> None:
    read = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))
    needing = [cell for cell in read["cells"] if cell["metadata"].get("tags") == ["spark"]]
    assert needing == read["cells"][-2:]
    assert [cell["cell_type"] for cell in needing] == ["markdown", "code"]
    *others, last = _code(name)
    assert "spark_session" in _of([last], "routing")
    assert "spark_session" not in _of(others, "routing")


@by_notebook
def test_an_answer_is_a_few_lines(name: str) -> None:
    lengths = [len(cell["source"]) for cell in _cells(name, "code")[1:]]
    assert (len(lengths) > 5, max(lengths) <= LONGEST) == (True, True)


@by_notebook
def test_notebooks_import_only_public_names(name: str) -> None:
    imports = [
        node for cell in _code(name) for node in ast.walk(cell) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    modules = [node.module for node in imports if isinstance(node, ast.ImportFrom)]
    plain = [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    assert {one for one in (*modules, *plain) if one and one.partition(".")[0] == "routing"} == {"routing"}
    imported_names = [
        node.names for node in imports if isinstance(node, ast.ImportFrom) and node.module == "routing"
    ]
    assert {alias.name for names in imported_names for alias in names} <= {*public_api.NAMES, *public_api.MODULES}


@by_notebook
def test_calls_in_a_notebook_are_public_and_documented(name: str) -> None:
    cells = _code(name)
    used = {"routing": _of(cells, "routing"), "pictures": _of(cells, "pictures")}
    assert used["routing"] <= set(public_api.NAMES)
    assert used["pictures"] <= set(pictures.__all__)
    assert min(map(len, used.values())) >= 2
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    calls = [f"{module}.{attribute}" for module, names in used.items() for attribute in names]
    assert [call for call in calls if re.search(rf"\b{re.escape(call)}\b", pages) is None] == []


def test_every_public_picture_is_in_a_notebook() -> None:
    """A picture that none shows is to be deleted."""
    assert set().union(*(_of(_code(name), "pictures") for name in NOTEBOOKS)) == set(pictures.__all__)


@by_notebook
def test_links_in_a_notebook_exist(name: str) -> None:
    text = "\n".join("".join(cell["source"]) for cell in _cells(name, "markdown"))
    links = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", text)
    assert links
    for file, heading in links:
        target = NOTEBOOKS[name].parent / file
        assert target.is_file(), file
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE) if heading else []
        anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}
        assert not heading or heading in anchors, heading
