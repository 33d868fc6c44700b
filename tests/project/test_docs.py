"""README and docs describe the project correctly."""

from __future__ import annotations

import ast
import re
import signal
import struct
from collections import Counter
from pathlib import Path

import pytest
import yaml

from routing import config, errors
from routing.cli import main
from routing.demo.build import generate_day
from routing.lint.lint_settings import LintSettings
from routing.lint.lint_settings import settings as lint_settings
from routing.terms import MISSING_ROUTE_NAMESPACE, Outcome, Reason, Rejection
from tests.demo_screen import summary_lines
from tests.reference.resolver import resolve

ROOT = Path(__file__).parents[2]
DOCS = [
    page
    for place in ("*.md", "benchmarks/*.md", "conf/**/*.md", "docs/**/*.md")
    for page in sorted(ROOT.glob(place))
]
EXCERPT = re.compile(r"<!-- demo excerpt -->\n```text\n(.*?)```\n<!-- end of demo excerpt -->", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def help_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--help"])
    assert end.value.code == 0
    return capsys.readouterr().out


def commands(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return re.findall(r"^ {4}([a-z]+)\b", help_of(capsys), re.MULTILINE)


def test_the_excerpt_of_the_demo_equals_its_output() -> None:
    match = EXCERPT.search(text("docs/how-to/install.md"))
    assert match is not None
    *shown, end = match.group(1).split()
    assert end == "…"
    assert " ".join(summary_lines()).split()[: len(shown)] == shown


def test_the_counts_of_the_day_are_those_of_the_reference_resolver() -> None:
    resolved = resolve(generate_day()).resolved_routes
    counts = Counter((str(row["outcome"]), str(row["reason"])) for row in resolved)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{outcome} | {reason} | {count}" for (outcome, reason), count in ordered]
    assert lines == text("tests/golden/demo_day.txt").splitlines()


def section_of(page: str, heading: str) -> str:
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def options_in(rows: str, command: str | None = None) -> set[str]:
    """The options in the first cells of a table, or of its rows whose second cell names the command."""
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in rows.splitlines() if "| `" in line
    ]
    return {
        option
        for first, *others in cells
        if command is None or command in others[0].split(", ")
        for option in re.findall(r"`(--?[a-z-]+)", first)
    }


def documented_options(page: str, command: str) -> tuple[set[str], set[str]]:
    """The options that the page has for a command: its own and shared ones, and all that it refers to."""
    name, _, kind = command.partition(" ")
    section = section_of(page, f"sbroute {name}")
    own = options_in(section, kind or None)
    own |= options_in(section_of(page, "Options for exports and scripts"), command)
    referred = options_in(section_of(page, "Common options"))
    for other in re.findall(r"options of \[\w+\]\(#sbroute-(\w+)\)", section):
        referred |= options_in(section_of(page, f"sbroute {other}"))
    return own, own | referred


def test_every_command_and_option_is_documented(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    page = text("docs/reference/commands.md")
    kinds = [f"import {kind}" for kind in ("catalog", "tsql", "events", "queries")]
    found = [command for command in commands(capsys) if command != "import"] + kinds
    assert len(found) == 18
    for command in found:
        shown = help_of(capsys, *command.split())
        options = {
            option
            for line in re.findall(r"^ +(-[^ ].*?)(?:  .*)?$", shown, re.MULTILINE)
            for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line)
        } - {"-h"}
        own, all_documented = documented_options(page, command)
        assert options - all_documented == set(), command
        assert own - options - OTHER_NAMES == set(), command


# The parser takes this one too, for a command of release 0.2.0.
OTHER_NAMES = {"--conversation-id"}


def test_every_choice_of_an_option_is_documented(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    page = text("docs/reference/commands.md")
    for command in commands(capsys):
        for option, choices in re.findall(r"(--[a-z-]+) \{([\w,-]+)\}", help_of(capsys, command)):
            rows = "\n".join(line for line in page.splitlines() if f"`{option}" in line)
            missing = [choice for choice in choices.split(",") if not re.search(rf"\b{choice}`", rows)]
            assert missing == [], f"{option} of {command}"


def test_every_exit_code_is_documented() -> None:
    page = text("docs/reference/exit-codes.md")
    codes = {getattr(errors, name) for name in dir(errors) if name.startswith("EXIT_")}
    assert {2, 3} <= codes
    ended_by = {128 + number for number in (signal.SIGINT, signal.SIGTERM)}
    rows = re.findall(r"^\| ([\d, ]+) \|", page, re.MULTILINE)
    assert {int(code) for row in rows for code in row.split(", ")} == codes | ended_by | {0, 1}


def test_every_make_target_is_documented() -> None:
    targets = re.findall(r"^([a-z0-9-]+):.*## ", text("Makefile"), re.MULTILINE)
    documented = re.findall(r"^\| `make ([a-z0-9-]+)` \|", text("CONTRIBUTING.md"), re.MULTILINE)
    assert sorted(documented) == sorted(targets)


def test_no_command_is_documented_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    found = commands(capsys)
    for file in DOCS:
        named = re.findall(r"\bsbroute ([a-z]+)\b", file.read_text(encoding="utf-8"))
        assert set(named) <= set(found), file.name


def test_every_key_of_the_configuration_is_documented() -> None:
    page = text("docs/reference/configuration.md")
    keys = [f"tables.{key}" for key in config.INPUTS] + [f"output.{key}" for key in config.OUTPUTS]
    keys += ["output.cluster_by"]
    keys += [f"resolve.{key}" for key in config.ResolveSettings.__dataclass_fields__]
    keys += ["dynamic_routing.missing_route_namespace"]
    keys += [f"lint.{key}" for key in LintSettings.__dataclass_fields__]
    keys += [f"lineage.{key}" for key in config.LineageSettings.__dataclass_fields__] + ["spark"]
    assert {key.partition(".")[0] for key in keys} == set(config.SECTIONS)
    documented = re.findall(r"^\| `([a-z_.]+)` \|", page, re.MULTILINE)
    assert documented == keys


def test_the_page_on_reports_shows_one() -> None:
    """The picture that `make screenshot` takes: as wide as a window, no larger than a page may wait for."""
    [(words, file)] = re.findall(
        r"^!\[([^\]]+)\]\(\.\./([^)]+\.png)\)$", text("docs/how-to/report.md"), re.MULTILINE
    )
    picture = (ROOT / "docs" / file).read_bytes()
    signature, width, height = struct.unpack(">16sII", picture[:24])
    assert signature.startswith(b"\x89PNG\r\n\x1a\n")
    assert width == 1280
    assert 700 <= height <= 1600
    assert len(picture) < 300_000
    assert len(words) > 40


def test_every_image_is_on_a_page() -> None:
    shown = {file for page in DOCS for file in re.findall(r"images/([\w.-]+)\)", page.read_text(encoding="utf-8"))}
    assert {file.name for file in (ROOT / "docs" / "images").iterdir()} == shown


def test_every_configuration_of_the_project_loads() -> None:
    files = sorted((ROOT / "conf").glob("*.yaml"))
    assert files
    for file in files:
        config.load(str(file))


def test_the_example_configuration_shows_every_key_and_its_default() -> None:
    shown = yaml.safe_load(text("conf/local.yaml"))
    assert tuple(shown) == config.SECTIONS
    assert list(shown["tables"]) == list(config.INPUTS)
    assert list(shown["output"]) == list(config.OUTPUTS)
    assert shown["resolve"] == vars(config.ResolveSettings())
    assert lint_settings(shown["lint"], "local.yaml") == LintSettings()
    assert shown["lineage"] == vars(config.LineageSettings())
    assert shown["dynamic_routing"] == {"missing_route_namespace": MISSING_ROUTE_NAMESPACE}


def test_every_word_of_the_output_is_documented() -> None:
    tables, reasons = text("docs/reference/tables.md"), text("docs/reference/reasons.md")
    for word in (*Outcome, *Reason):
        assert f"\n| {word} |" in reasons, word
    for word in Outcome:
        assert re.search(rf"\b{word}\b", tables), word
    for code in Rejection:
        assert f"| {code} |" in tables, code


def test_every_column_is_documented() -> None:
    from routing.schemas import INPUTS, KEPT, MESSAGE_PATHS, OUTPUTS, RECONCILIATION, ROUTE_CANDIDATES

    page = text("docs/reference/tables.md")
    beside = {
        "route_candidates": ROUTE_CANDIDATES,
        "message_paths": MESSAGE_PATHS,
        "reconciliation": RECONCILIATION,
    }
    for table, schema in {**INPUTS, **KEPT, **OUTPUTS, **beside}.items():
        section = page.partition(f"\n### {table}\n")[2].partition("\n#")[0]
        # These two have the columns of messages, and some of their own.
        own = {"rejected_messages": schema.fields[-2:], "pending_messages": schema.fields[-4:]}.get(
            table, schema.fields
        )
        for field in own:
            name = field.name if field.nullable else f"{field.name}!"
            assert re.search(rf"^\| (?:[a-z_!, ]+, )?{name}(?:, [a-z_!, ]+)? \|", section, re.MULTILINE), (
                f"{table}.{name}"
            )


def tables_in(page: str) -> list[list[list[str]]]:
    """The tables of a page: rows of cells."""
    outside = re.sub(r"^ *```.*?^ *```", "", page, flags=re.DOTALL | re.MULTILINE)
    blocks = re.findall(r"(?:^ *\|.*\n)+", outside, re.MULTILINE)
    return [
        [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]] for line in block.splitlines()]
        for block in blocks
    ]


@pytest.mark.parametrize("file", DOCS, ids=lambda file: str(file.relative_to(ROOT)))
def test_tables_have_headers_and_short_cells(file: Path) -> None:
    for rows in tables_in(file.read_text(encoding="utf-8")):
        assert all(rows[0]), f"a column of {rows[0]} has no header"
        for row in rows:
            assert len(row) == len(rows[0]), row
            # The cells of python.md are docstrings.
            assert file.name == "python.md" or [cell for cell in row if len(cell.split()) > 40] == []


def anchors(file: Path) -> set[str]:
    """The anchors of a page's headings, as the common renderers make them."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("file", DOCS, ids=lambda file: str(file.relative_to(ROOT)))
def test_local_links_lead_somewhere(file: Path) -> None:
    for target in LINK.findall(file.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (file.parent / path).resolve() if path else file
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


NAMED_PAGE = re.compile(r"\b(docs/[\w/.-]+\.md)(?:#([\w-]+))?")


def test_pages_that_the_program_names_exist() -> None:
    """Every page that a text, a hint or a docstring of the package names, and every link of the pages of lint."""
    sources = [*ROOT.glob("routing/**/*.py"), *ROOT.glob("routing/**/*.pyi")]
    named = {page for file in sources for page in NAMED_PAGE.findall(file.read_text(encoding="utf-8"))}
    assert ("docs/how-to/check.md", "") in named
    lost = {(page, anchor) for page, anchor in named if not (ROOT / page).is_file()}
    assert lost == set()
    assert {(page, anchor) for page, anchor in named if anchor and anchor not in anchors(ROOT / page)} == set()


@pytest.mark.parametrize("file", sorted(ROOT.glob("routing/lint/pages/*.md")), ids=lambda file: str(file.stem))
def test_links_of_a_page_of_lint_lead_somewhere(file: Path) -> None:
    test_local_links_lead_somewhere(file)


def test_the_readme_begins_with_the_purpose() -> None:
    readme = text("README.md")
    first = next(line for line in readme.splitlines() if line and not line.startswith(("#", "[![")))
    assert "Service Broker message" in first
    assert "`sys.transmission_queue`" in first
    first_result, main_job = readme.index("sbroute check conf/examples"), readme.index("make demo")
    assert first_result < main_job
    for needed in ("git", "make", "python3", "3.10", "python3-venv", "make demo", "make test"):
        assert needed in readme


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) < 12_000


def test_the_readme_has_a_line_for_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    rows = re.findall(r"^\| \[?`([a-z]+)`", text("README.md"), re.MULTILINE)
    assert sorted(rows) == sorted(commands(capsys))


# Words of sentences without an actor (grown when another one is found).
AVOIDED = re.compile(
    r"\b(but for|whoever|comes? to|(?:is|are) told|besides|of one's own|as ever)\b", re.IGNORECASE
)
READ_BY_USERS = [*DOCS, *sorted(ROOT.glob("tests/golden/*.txt"))]


def test_sentences_that_users_read_have_an_actor() -> None:
    """The texts are pages and the golden outputs of commands: help, errors and results."""
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]}"
        for file in READ_BY_USERS
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in AVOIDED.finditer(line)
    ]
    assert found == []


def test_texts_of_the_package_have_an_actor() -> None:
    """These are all texts of the source except docstrings: help, errors, notes and headings."""
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]}"
        for file in sorted(ROOT.glob("routing/**/*.py"))
        for number, said in texts_of(file)
        for match in AVOIDED.finditer(said)
    ]
    assert found == []


def texts_of(file: Path) -> list[tuple[int, str]]:
    """The texts of a module that are no docstrings, with their lines."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    statements = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements
    ]
