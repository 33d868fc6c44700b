"""Invisible characters, as scripts get them from web pages, chats and joined files: no server parses them."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable

import pytest

from routing.importing.tsql.script_reader import ReadScript
from routing.importing.tsql.vocabulary import INVISIBLE, name_character

ReadText = Callable[..., ReadScript]
WITH = "WITH ADDRESS = 'TCP://h:4022'"


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("\u200b", "U+200B (zero width space)"),
        ("\u200c", "U+200C (zero width non-joiner)"),
        ("\u200d", "U+200D (zero width joiner)"),
        ("\u2060", "U+2060 (word joiner)"),
        ("\ufeff", "U+FEFF (byte-order mark)"),
        ("\u00ad", "U+00AD (soft hyphen)"),
        ("\u200e", "U+200E (left-to-right mark)"),
        ("\u200f", "U+200F (right-to-left mark)"),
        ("\u202a", "U+202A (left-to-right embedding)"),
        ("\u202e", "U+202E (right-to-left override)"),
        ("\u2066", "U+2066 (left-to-right isolate)"),
        ("\u2069", "U+2069 (pop directional isolate)"),
        ("\ufe0f", "U+FE0F (variation selector-16)"),
    ],
)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE|ROUTE r " + WITH,
        "CREATE ROUTE| r " + WITH,
        "CRE|ATE ROUTE r " + WITH,
        "CREATE ROUTE r WITH |ADD|RESS = 'x'",
    ],
)
def test_a_statement_with_an_invisible_character_is_named(
    read: ReadText, statement: str, character: str, name: str
) -> None:
    script = read(f"USE D\nGO\n\n{statement.replace('|', character)}\nGO\nDROP ROUTE last_one")
    assert [found.name for found in script.statements] == ["last_one"]
    assert [(problem.line, problem.number) for problem in script.problems] == [(4, 102), (4, None)]
    stands = f"SQL Server cannot parse the invisible character {name} here"
    assert script.problems[0].why == f"{stands}; its batch does not run"
    assert script.problems[1].why.startswith("CREATE ROUTE 'r': it does not run")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("DROP ROUTE a\nSELECT\u200b 1\nSELECT 2\u200b\u200b\n\u2060", [2, 3, 4]),
        ("DROP ROUTE a\nGO\u200b\nDROP ROUTE b", [2]),
        # Two files, of which the second began with a byte-order mark, joined by COPY.
        ("DROP ROUTE a\nGO\n\ufeffUSE D\nDROP ROUTE b", [3]),
        ("EXEC('DROP\u200bROUTE a')", [1]),
        ("DROP ROUTE Order\u00adLine", [1]),
    ],
)
def test_each_line_with_an_invisible_character_is_named(read: ReadText, text: str, lines: list[int]) -> None:
    problems = read(text).problems
    assert [problem.line for problem in problems if "the invisible character" in problem.why] == lines


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffDROP ROUTE a",
        "-- \u200b\nDROP ROUTE a /* \u2060 */",
        "PRINT 'x\u200by' DROP ROUTE a",
        "SELECT 1 AS [x\u200by] DROP ROUTE a",
        "DROP\u00a0ROUTE\u2003a\u3000",
    ],
)
def test_invisible_characters_outside_code_get_no_note(read: ReadText, text: str) -> None:
    script = read(text)
    assert [statement.name for statement in script.statements] == ["a"]
    assert script.problems == ()


def test_invisible_characters_in_names_are_kept_and_noted(read: ReadText) -> None:
    script = read("CREATE ROUTE [a\u200bb] WITH SERVICE_NAME = '//s\u00adt', ADDRESS = 'TCP://h\u200b:4022'")
    assert [statement.name for statement in script.statements] == ["a\u200bb"]
    assert [problem.counted for problem in script.problems] == [True] * 3
    assert [problem.why.partition(": ")[2] for problem in script.problems] == [
        "the route name contains the invisible character U+200B (zero width space)",
        "the SERVICE_NAME contains the invisible character U+00AD (soft hyphen)",
        "the ADDRESS contains the invisible character U+200B (zero width space)",
    ]


def test_blanks_that_look_like_the_usual_one_are_noted(read: ReadText) -> None:
    script = read("CREATE ROUTE [a\u00a0b] WITH SERVICE_NAME = '//s\u2003', ADDRESS = 'LOCAL'")
    assert [problem.why.partition(": ")[2] for problem in script.problems] == [
        "the route name contains the invisible character U+00A0 (no-break space)",
        "the SERVICE_NAME contains the invisible character U+2003 (em space)",
    ]


def test_every_format_character_is_invisible_and_no_blank_is() -> None:
    for character in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(character) == "Cf":
            assert INVISIBLE.match(character), name_character(character)
        elif character.isspace() or character.isprintable():
            assert not INVISIBLE.match(character) or unicodedata.category(character) == "Mn"
