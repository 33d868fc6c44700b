"""Modules hold whole concepts: few, none very long, and none that serves one neighbour alone without a reason."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

import routing
from tests.patterns import nodes_of

HOUSE = Path(routing.__file__).parent
MOST = 25
MOST_MODULES = 284
MOST_LINES = 550
# Where the reason is length, the two have more than 420 lines together.
REASONS = {
    "cli": "`__main__` handles signals before it imports anything of the command line",
    "demo.company": "length; the instances and routes of the company, without its day",
    "engines.arrow.asking_messages": "length; how messages ask, without which of their requests stay open",
    "features.check.connection_advice": "length; one of the topics of `status_advice`",
    "features.check.path_following": "length; `checking` has the steps of a check in their order",
    "features.check.route_remedies": "length; the remedies that change routes, as `service_remedies` has others",
    "features.check.status_advice": "length; advice is written, where `grouping` groups",
    "features.diff.arrow_diff": "one of two engines; it needs no pyspark",
    "features.diff.spark_diff": "one of two engines; it imports pyspark",
    "features.explain.route_lines": "length; the lines of searched routes, of which there are most",
    "features.lint.configuration_rules": "length; a family of findings",
    "features.reconcile.arrow_episodes": "length; tables → episodes, which `arrow_reconcile` judges",
    "features.reconcile.arrow_reconcile": "one of two engines; it needs no pyspark",
    "features.reconcile.spark_reconcile": "one of two engines; it imports pyspark",
    "features.report.dialog_balance": "length; one fact of a report, and the times at which it holds",
    "features.report.page_sections": "length; `report_page` has the page around the sections",
    "features.report.pictures.estate_marks": "length; `estate_picture` puts the marks together",
    "features.report.report_page": "it imports the packages of a page, which `page_file` looks for first",
    "importing.catalog.fixed_width": "length; one of the forms of text that `result_files` knows",
    "importing.tsql.calling": "length; runs what a statement calls, where `interpreter` runs statements",
    "importing.tsql.conditions": "length; the grammar of conditions, and their values",
    "importing.tsql.interpreter": "length; runs statements, where `script_reader` reads files",
    "importing.tsql.session_statements": "length; one kind of statements, of which `interpreter` runs all",
    "importing.tsql.simple_statements": "length; statements of one line, as `definitions` has those of routing",
    "runs.increment": "length; the inputs of an incremental run, which `spark_runs` resolves",
}


def importers_of(trees: Mapping[str, ast.AST]) -> dict[str, set[str]]:
    """By module those that import it or something of it; names are relative to the package."""
    importers = defaultdict[str, set[str]](set)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or (node.module or "").partition(".")[0] != "routing":
                continue
            source = (node.module or "").partition(".")[2]
            for alias in node.names:
                target = f"{source}.{alias.name}".strip(".")
                imported = target if target in trees else source
                if imported in trees and imported != module:
                    importers[imported].add(module)
    return dict(importers)


def lonely_in(trees: Mapping[str, ast.AST]) -> set[str]:
    """Modules with one importer, which is in the same folder."""

    def folder(module: str) -> str:
        return module.rpartition(".")[0]

    return {
        module
        for module, importers in importers_of(trees).items()
        if len(importers) == 1 and folder(module) == folder(next(iter(importers)))
    }


def trees_of_the_package() -> dict[str, ast.AST]:
    """The syntax tree of each module, by its name below the package."""
    # The stub lists what the package itself hands on.
    paths = [*HOUSE.rglob("*.py"), HOUSE / "__init__.pyi"]
    names = {path: ".".join(path.relative_to(HOUSE).with_suffix("").parts) for path in paths}
    return {name.removesuffix(".__init__"): nodes_of(path)[0] for path, name in names.items()}


def test_a_module_with_one_importer_beside_it_has_a_reason() -> None:
    trees = trees_of_the_package()
    assert len(trees) > 200
    assert lonely_in(trees) == set(REASONS)
    assert len(REASONS) <= MOST


def test_modules_are_few_and_none_is_very_long() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in HOUSE.rglob("*.py")}
    assert 200 < len(lines) <= MOST_MODULES
    assert {str(path.relative_to(HOUSE)): number for path, number in lines.items() if number > MOST_LINES} == {}


def test_length_is_a_reason_where_both_are_long() -> None:
    trees = trees_of_the_package()
    importers = importers_of(trees)

    def lines(module: str) -> int:
        return len(HOUSE.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8").splitlines())

    short = {
        module: both
        for module, reason in REASONS.items()
        if reason.startswith("length")
        for both in [lines(module) + lines(next(iter(importers[module])))]
        if both <= 420
    }
    assert short == {}


@pytest.mark.parametrize(
    ("sources", "lonely"),
    [
        pytest.param({"a.b": "", "a.c": "from routing.a.b import x"}, {"a.b"}, id="one beside it"),
        pytest.param({"a.b": "", "a.c": "from routing.a import b"}, {"a.b"}, id="as a module"),
        pytest.param({"a.b": "", "a.c": "def f():\n  from routing.a import b"}, {"a.b"}, id="in a function"),
        pytest.param({"a.b": "", "c.d": "from routing.a import b"}, set(), id="one elsewhere"),
        pytest.param(
            {"a.b": "", "a.c": "from routing.a import b", "a.d": "from routing.a.b import x"}, set(), id="two"
        ),
        pytest.param({"a.b": "", "a.c": "from a import b"}, set(), id="another package"),
        pytest.param({"a.b": "from routing.a.b import x"}, set(), id="itself"),
    ],
)
def test_what_is_lonely(sources: dict[str, str], lonely: set[str]) -> None:
    assert lonely_in({module: ast.parse(source) for module, source in sources.items()}) == lonely
