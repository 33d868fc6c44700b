"""Docstrings and pages are plain English by the measures of `tests.prose`, and the pages stay short."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import routing
from tests import prose

HOUSE = Path(routing.__file__).parent
ROOT = HOUSE.parent
ROOMS = sorted(room for room in HOUSE.iterdir() if (room / "__init__.py").exists())
GOLDEN = ROOT / "tests" / "golden"
DOCS = ROOT / "docs"
WORDING = ("headless", "dialect")
SQL_SERVERS_OWN = {"message_texts.py", "query_script.py"}
"""Modules with texts of SQL Server, and with T-SQL."""
ALLOWED = {
    "what to do": "a heading, as short as a question",
    "nothing was written": "plain English",
}
"""Phrases of texts that count as no mark, with the reason."""
GENERATED = {
    "docs/errors": "made from the catalogue of errors, with SQL Server's own texts",
    "docs/lint": "copied from the package while the site is built",
    "docs/reference/lint-codes.md": "made from the findings of lint",
    "docs/reference/python.md": "made from docstrings, which have their own test",
}
LISTS = {
    "docs/index.md": "each line lists links",
    "docs/reference/json.md": "the cells list keys",
}
"""Pages that the shares of marks leave out, with the reason."""
MOST_WORDS = 45_000
LEAST_TO_READERS = 15
"""The lowest share of sentences in tutorials and how-to pages that speak to the reader, in per cent."""
_NO_VERB = re.compile(
    r"(?:The|A|An|This|That|These|Those|It|Its|All|Each|Every|Any|No|Nothing|If|When|Where|Whether|Which|What|Who|How"
    r"|Why|One|Two|More|Of|From|For|In|On|By|As|So|True|False|None|[A-Z][a-z]*[^s\W]s)\b"
)
_PROPERTIES = {"property", "cached_property"}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_docstrings_of_a_room_read_well(room: Path) -> None:
    shares = prose.shares(prose.sentences_of(room.rglob("*.py")))
    assert {mark: share for mark, share in shares.items() if share > prose.TARGETS[mark]} == {}


@pytest.mark.parametrize("folder", ["benchmarks", "deploy", "tests"])
def test_docstrings_of_a_folder_read_well(folder: str) -> None:
    shares = prose.shares(prose.sentences_of((ROOT / folder).rglob("*.py")))
    assert {mark: share for mark, share in shares.items() if share > prose.TARGETS[mark]} == {}


def test_docstrings_of_single_modules_read_well() -> None:
    shares = prose.shares(prose.sentences_of(HOUSE.glob("*.py")))
    assert {mark: share for mark, share in shares.items() if share > prose.TARGETS[mark]} == {}


def test_texts_of_the_program_read_well() -> None:
    """Lists make help and errors longer than sentences, so only two of the measures count."""
    texts = [
        text
        for path in sorted(HOUSE.rglob("*.py"))
        if path.name not in SQL_SERVERS_OWN
        for text in prose.texts_of(path.read_text("utf-8"))
    ]
    assert len(texts) > 1500
    shares = prose.shares(list(prose.sentences(map(without_allowed, texts))))
    assert {mark: shares[mark] for mark in WORDING if shares[mark] > prose.TARGETS[mark]} == {}


def test_golden_outputs_read_well() -> None:
    """A line of a golden file counts as a sentence, because tables and lists have no full stops."""
    lines = [line for path in sorted(GOLDEN.rglob("*.txt")) for line in path.read_text("utf-8").splitlines()]
    shares = prose.shares(list(prose.sentences(map(without_allowed, lines))))
    assert {mark: shares[mark] for mark in WORDING if shares[mark] > prose.TARGETS[mark]} == {}


def written_pages() -> list[Path]:
    """Return the README and the pages of the documentation that are not generated."""
    pages = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in pages if not any(page.is_relative_to(ROOT / name) for name in GENERATED)]


def test_the_documentation_stays_short() -> None:
    words = {page: len(page.read_text("utf-8").split()) for page in written_pages()}
    assert len(words) > 40
    assert sum(words.values()) <= MOST_WORDS


def test_the_readme_reads_well() -> None:
    shares = prose.shares(prose.sentences_of([ROOT / "README.md"]))
    assert {mark: share for mark, share in shares.items() if share > prose.TARGETS[mark]} == {}


def test_the_documentation_reads_well() -> None:
    lists = [ROOT / name for name in LISTS]
    pages = [page for page in written_pages() if page.is_relative_to(DOCS)]
    assert set(lists) <= set(pages)
    shares = prose.shares(prose.sentences_of(page for page in pages if page not in lists))
    assert {mark: share for mark, share in shares.items() if share > prose.TARGETS[mark]} == {}


@pytest.mark.parametrize("folder", ["tutorial", "how-to"])
def test_guides_speak_to_the_reader(folder: str) -> None:
    sentences = prose.sentences_of((DOCS / folder).glob("*.md"))
    assert prose.share_to_readers(sentences) >= LEAST_TO_READERS


def without_allowed(text: str) -> str:
    return re.sub("|".join(ALLOWED), "CODE", text)


def without_verb(source: str) -> list[str]:
    """Return functions, except properties, with docstrings that do not begin with an imperative verb."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
            text = ast.get_docstring(node)
            if text is not None and not decorators & _PROPERTIES and not begins_with_a_verb(text):
                names.append(f"{node.name}: {text.splitlines()[0]}")
    return names


def begins_with_a_verb(text: str) -> bool:
    return re.match(r"[A-Z][a-z]+\b", text) is not None and _NO_VERB.match(text) is None


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    names = {str(path.relative_to(HOUSE)): without_verb(path.read_text("utf-8")) for path in HOUSE.rglob("*.py")}
    assert len(names) > 200
    assert {file: functions for file, functions in names.items() if functions} == {}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Return the routes of a database.", []),
        ("Return what a route says.", ["headless"]),
        ("What does a route say?", []),
        ("It goes on with the connection.", ["dialect"]),
        ("It reads a, b, c, and d.", ["tangled"]),
        ("It reads rows; it writes them.", ["tangled"]),
        (" ".join(["word"] * 31), ["long"]),
    ],
)
def test_faults_of_a_sentence_are_found(sentence: str, expected: list[str]) -> None:
    assert prose.marks(sentence) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Return the routes.", True),
        ("Pass a row on.", True),
        ("Returns the routes.", False),
        ("The routes of a database.", False),
        ("Whether a text is a GUID.", False),
        ("``routes`` of a database.", False),
    ],
)
def test_first_word_of_a_docstring(text: str, expected: bool) -> None:
    assert begins_with_a_verb(text) is expected


def test_blocks_of_a_page() -> None:
    page = (
        "# Title\n\nA first line\nand a second.\n\n- an item\n- another\n\n```sh\ncode; code\n```\n"
        "<!-- a\ncomment; -->\n| a | b |\n|---|---|\n| too short | a cell of some words |\n"
    )
    expected = ["A first line and a second.", "an item", "another", "a cell of some words"]
    assert list(prose.page_blocks(page)) == expected


def test_arguments_and_examples_are_not_sentences() -> None:
    source = '"""Do it.\n\nArgs:\n    one: what; it is, a, b, c.\n\nExample:\n    >>> 1\n"""\n'
    assert list(prose.docstring_blocks(source)) == ["Do it."]
