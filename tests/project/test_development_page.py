"""The page for contributors names existing files, modules, classes and functions."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"\.?[\w-]+(?:/[\w.*…-]*)+")
_FILE = re.compile(r"[\w.…-]+\.(?:py|md|sql|yml|yaml|toml|lock|svg|json)")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")
_NAME = re.compile(r"[A-Za-z_]\w*")
# Folders that a command makes.
_BUILT = ("build/", "dist/")


def faults(text: str) -> list[str]:
    """Return missing files, modules and their members among a text's names in backquotes."""
    return [code for code in dict.fromkeys(_CODE.findall(text)) if not _exists(code)]


def _exists(code: str) -> bool:
    if _FILE.fullmatch(code):
        return any(path.name.endswith(code.lstrip("…")) for path in _files())
    if _PATH.fullmatch(code) and (ROOT / code.split("/")[0]).exists() and not code.startswith(_BUILT):
        return any(ROOT.glob(code.rstrip("/")))
    if _DOTTED.fullmatch(code):
        return _is_found(f"routing.{code}") or _is_found(code)
    return True


@cache
def _files() -> tuple[Path, ...]:
    folders = ("routing", "tests", "docs", "conf", "jobs", "scripts", "deploy", "resources", "benchmarks")
    below = (path for folder in folders for path in (ROOT / folder).rglob("*.*"))
    return (*ROOT.glob("*"), *below)


@cache
def _is_found(name: str) -> bool:
    """Whether a module, or a name or field in one, has this dotted name."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if any(part in vars(one).get("__annotations__", {}) for one in getattr(value, "__mro__", ())):
                return True
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


def names_of(folder: Path) -> frozenset[str]:
    """Return every name below a folder of the package: modules, classes, functions, constants and methods."""
    found = set[str]()
    for path in [folder.with_suffix(".py"), *folder.rglob("*.py")]:
        if path.exists():
            found |= {path.stem, path.parent.name}
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    found.add(node.name)
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found.add(node.id)
    return frozenset(found)


def rows_of_rooms(text: str) -> list[tuple[str, str]]:
    """Return the rows of the table of rooms, with their names and descriptions."""
    table = text.partition("\n| room | holds |\n")[2].partition("\n\n")[0]
    return [(cells[1], "|".join(cells[2:])) for line in table.splitlines()[1:] for cells in [line.split("|")]]


@pytest.mark.parametrize("page", [PAGE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_what_a_page_names_exists(page: Path) -> None:
    assert faults(page.read_text(encoding="utf-8")) == []


def test_the_table_of_rooms_is_complete() -> None:
    """A name without a dot is a module's, or of something in it, in the room of its row or in another."""
    rows = rows_of_rooms(PAGE.read_text(encoding="utf-8"))
    rooms = {code.strip("/") for head, _ in rows for code in _CODE.findall(head)}
    package = ROOT / "routing"
    assert rooms == {
        path.stem
        for path in package.iterdir()
        if not path.stem.startswith("__") and (path.suffix == ".py" or (path / "__init__.py").exists())
    }
    known = names_of(package)
    named = {code for _, text in rows for code in _CODE.findall(text) if _NAME.fullmatch(code)}
    assert named
    assert named - known == set()


@pytest.mark.parametrize(
    ("code", "is_wrong"),
    [
        pytest.param("runs.running.run_by", False, id="function"),
        pytest.param("rules.resolving.Verdict.outcome", False, id="field"),
        pytest.param("runs.running.run_all", True, id="no function"),
        pytest.param("storage.ledger", True, id="no room"),
        pytest.param("tests.stored.save_estate", False, id="of the tests"),
        pytest.param("routing/rules/choosing.py", False, id="path"),
        pytest.param("routing/rules/choices.py", True, id="no path"),
        pytest.param("choosing.py", False, id="file"),
        pytest.param("choosings.py", True, id="no file"),
        pytest.param("ALTER DATABASE", False, id="no name"),
    ],
)
def test_missing_names_on_a_page_are_faults(code: str, is_wrong: bool) -> None:
    assert bool(faults(f"It is `{code}`.")) is is_wrong
