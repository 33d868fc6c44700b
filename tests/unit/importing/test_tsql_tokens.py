"""The lexemes: the tokens of sqlglot for T-SQL, and their corrections."""

from __future__ import annotations

import pytest

from routing.importing.tsql.tokens import LexemeKind, tokenize


def _lexemes(text: str) -> list[tuple[str, str]]:
    return [(lexeme.kind.value, lexeme.text) for lexeme in tokenize(text).lexemes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a /* x /* y */ z */ b", [("word", "a"), ("word", "b")]),
        ("a /*/ x */ b -- c ' [", [("word", "a"), ("word", "b")]),
        ("/*+ x */ SELECT /*+ CREATE */ y", [("word", "SELECT"), ("word", "y")]),
        ("N'it''s' n'' ''''", [("string", "it's"), ("string", ""), ("string", "'")]),
        ("'back\\slash' 'two\nlines'", [("string", "back\\slash"), ("string", "two\nlines")]),
        ('[a]]b] "c""d" [e\'f]', [("quoted name", t) for t in ("a]b", 'c"d', "e'f")]),
        (
            "a[b]c'd'e",
            [("word", "a"), ("quoted name", "b"), ("word", "c"), ("string", "d"), ("word", "e")],
        ),
        (
            "@v @@x #t ##t a#b @",
            [("word", t) for t in ("@v", "@@x", "#t", "##t", "a#b")] + [("sign", "@")],
        ),
        ("#[#] @'x'", [("sign", "#"), ("quoted name", "#"), ("sign", "@"), ("string", "x")]),
        ("1 1.5 0xAB 0xZZ", [("number", t) for t in ("1", "1.5", "0xAB", "0xZZ")]),
        (
            "{# x #} y",
            [
                ("sign", "{"),
                ("sign", "#"),
                ("word", "x"),
                ("sign", "#"),
                ("sign", "}"),
                ("word", "y"),
            ],
        ),
        ("'{#' y", [("string", "{#"), ("word", "y")]),
        ("\ufeffUSE\u200ba", [("word", "USE"), ("word", "a")]),
        ("CRE\u00ad\u00adATE\u2060 Stock\u200bLine", [("word", "CREATE"), ("word", "StockLine")]),
        ("'a\u200b' [\u200b] /* \u200b */", [("string", "a\u200b"), ("quoted name", "\u200b")]),
        ("\ue000v\ue001_route", [("word", "\ue000v\ue001_route")]),
    ],
)
def test_lexemes(text: str, expected: list[tuple[str, str]]) -> None:
    assert _lexemes(text) == expected


@pytest.mark.parametrize("word", ["GO", "END", "SHOW", "FETCH", "RENAME", "PRINT", "BEGIN; END"])
def test_a_keyword_does_not_consume_later_tokens(word: str) -> None:
    assert _lexemes(f"{word} x\nCREATE ROUTE r")[-3:] == [
        ("word", "CREATE"),
        ("word", "ROUTE"),
        ("word", "r"),
    ]


@pytest.mark.parametrize(
    ("text", "row", "what"),
    [
        ("a\n'b\nc", 1, "string"),
        ("a N'b''", 0, "string"),
        ("a\n\n[b]]", 2, "name in brackets"),
        ('a "b""', 0, "name in double quotes"),
        ("a /* b /* c */\n", 0, "comment"),
    ],
)
def test_an_unclosed_text_keeps_the_tokens_before_it(text: str, row: int, what: str) -> None:
    tokens = tokenize(text)
    assert (tokens.cut, tokens.cut_in) == (row, what)
    assert tokens.lexemes[0].text == "a"
    assert tokens.lexemes[-1].kind is LexemeKind.CUT


def test_rows_count_every_line_of_strings_and_comments() -> None:
    tokens = tokenize("/*\n\n*/ a 'x\ny' b\nc")
    assert [(lexeme.text, lexeme.row) for lexeme in tokens.lexemes] == [
        ("a", 2),
        ("x\ny", 2),
        ("b", 3),
        ("c", 4),
    ]
