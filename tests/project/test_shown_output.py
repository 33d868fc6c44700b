"""Every command in the documentation runs, or has a reason why not. Shown outputs are those of the command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from routing import cli
from tests.shown_output import (
    PAGES,
    ROOT,
    arguments_of,
    blocks_of,
    build_reader_folder,
    copied,
    renewed,
    run_block,
    run_command,
)

WITH_BLOCKS = [page for page in PAGES if any(blocks_of(page.read_text(encoding="utf-8")))]
by_page = pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
PAGE = """
```sh
sbroute lint --explain SBR017
```
<!-- output to Severity -->
```text
old
```
<!-- end of output -->
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("reader")
    build_reader_folder(folder)
    return folder


@by_page
def test_a_page_shows_what_its_commands_print(page: Path, built: Path) -> None:
    text = page.read_text(encoding="utf-8")
    with copied(built):
        assert renewed(text) == text, "make docs-output renews it"


@by_page
def test_commands_that_are_not_run_exist(page: Path) -> None:
    for block in blocks_of(page.read_text(encoding="utf-8")):
        for words in block.commands if block.reason else ():
            arguments = arguments_of(words)
            if arguments is not None:
                cli._parser().parse_all(arguments[: arguments.index(">")] if ">" in arguments else arguments)


def examples_of_help(capsys: pytest.CaptureFixture[str], *command: str) -> list[str]:
    """The examples of a command's help, and of the commands below it."""
    with pytest.raises(SystemExit):
        cli.main([*command, "--help"])
    shown = capsys.readouterr().out
    names = re.findall(r"^ {4}([a-z]+)\b", shown.partition("positional arguments:")[2], re.MULTILINE)
    [example] = re.findall(r"\nexample:\n  (.+)\n$", shown)
    return [example, *(each for name in names for each in examples_of_help(capsys, *command, name))]


def test_the_example_of_every_help_runs(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = examples_of_help(capsys)
    assert len(examples) == 20
    # Its engine is Spark's alone: tests/spark/test_candidate_table.py runs it.
    examples.remove("sbroute candidates --config sbroute-demo/demo.yaml")
    # It needs servers: tests/unit/importing/test_servers.py runs it.
    examples.remove("sbroute export --server HUB --server SHOP --out exports")
    # It needs a catalog: tests/spark/test_job_instances.py runs it.
    examples.remove("sbroute views --jobs east.yaml west.yaml --view main.broker.all_routes")
    with copied(built):
        for example in examples:
            [block] = blocks_of(f"```sh\n{example}\n```\n")
            run_block(block)


LABELS = "--with-script conf/examples/labels.sql --instance depot-east --at 2026-01-05T12:00Z"
OF_JSON = {
    "messages": "messages --config conf/mine.yaml --waiting",
    "diff": f"diff --config sbroute-demo/demo.yaml {LABELS}",
    "lint": "lint --config conf/mine.yaml --messages",
    "Other commands": "runs --config conf/mine.yaml",
    "Other commands, one run": "runs night-2026-01-05 --config conf/mine.yaml",
    "Other commands, trace": "trace --config sbroute-demo/demo.yaml --message-id d00263-i0 --instance depot-east",
    "Other commands, import": "import catalog exports --config conf/mine.yaml --dry-run",
    "Other commands, report": "report --config conf/mine.yaml --out report.html",
    "Other commands, reconcile": "reconcile --config conf/mine.yaml",
}


@pytest.mark.parametrize("heading", OF_JSON)
def test_the_keys_of_json_are_documented(heading: str, built: Path) -> None:
    with copied(built):
        printed = json.loads(run_command([*OF_JSON[heading].split(), "--format", "json"]))
    pages = {name: (ROOT / "docs" / "reference" / f"{name}.md").read_text("utf-8") for name in ("json", "tables")}
    section = pages["json"].partition(f"\n## {heading.partition(',')[0]}\n")[2].partition("\n## ")[0]
    if "started_at" in printed:
        section += pages["tables"].partition("\n### runs\n")[2].partition("\n### ")[0]
    names = list(printed) + (list(printed["messages"][0]) if heading == "messages" else [])
    assert [name for name in names if not re.search(rf"\b{name}\b", section)] == []


def test_output_is_replaced_as_far_as_the_page_shows_it() -> None:
    new = PAGE.replace("old\n", "# SBR017: Load-balancing routes behind a route without broker instance\n\n…\n")
    assert renewed(PAGE) == new
    with pytest.raises(AssertionError, match="no line begins with 'Nowhere'"):
        renewed(PAGE.replace("Severity", "Nowhere"))


@pytest.mark.parametrize(
    ("commands", "why"),
    [
        ("sbroute lint --explain SBR999", "ended with 2: sbroute: unknown finding"),
        ("make demo", "make is not run: say why above the block"),
    ],
    ids=["a command that fails", "another program"],
)
def test_a_block_that_cannot_run_fails(commands: str, why: str) -> None:
    block = f"```sh\n{commands}\n```\n"
    with pytest.raises(AssertionError, match=why):
        renewed(block)
    assert renewed(f"<!-- not run: because -->\n{block}") == f"<!-- not run: because -->\n{block}"
