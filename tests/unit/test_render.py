"""Documents as text, with widths, colours, wide tables and hostile names."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from routing.document import (
    Cell,
    DataTable,
    Document,
    DocumentHeading,
    LabelledFact,
    ListItem,
    Paragraph,
    SqlStatement,
    Tone,
    TonedText,
    make_columns,
)
from routing.render.text import write_sql, write_text
from routing.render.wording import count, format_duration, format_time, format_value

RUNS = DataTable(
    make_columns(["run", "mode", "seconds", "outcomes"], ["seconds"]),
    [["a1b2c3d4-e5f6", "full", 1.5, "DELIVERED 995, SENT 995"], ["b", "full", 3600.0, None]],
    "Runs",
    more=1,
)
WIDE = """\
Runs
run            mode  seconds  outcomes
a1b2c3d4-e5f6  full      1.5  DELIVERED 995, SENT 995
b              full  3,600.0  -
and 1 more row"""
# The column with one value is stated once; the texts go on below.
NARROW = """\
Runs
mode: full

run            seconds  outcomes
a1b2c3d4-e5f6      1.5  DELIVERED 995,
                        SENT 995
b              3,600.0  -
and 1 more row"""
RECORDS = """\
Runs
mode: full

run: a1b2c3d4-e5f6
seconds: 1.5
outcomes: DELIVERED
  995, SENT 995

run: b
seconds: 3,600.0
and 1 more row"""


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        pytest.param(80, WIDE, id="all columns fit"),
        pytest.param(40, NARROW, id="texts go on below"),
        pytest.param(20, RECORDS, id="each row is a list"),
    ],
)
def test_a_table_fits_its_width(width: int, expected: str) -> None:
    assert write_text([RUNS], width=width) == expected


SQL = "USE [Orders];\nALTER ROUTE [ToBilling] WITH SERVICE_NAME = N'//a very long name that no width may break'"
CAUSE: Document = [
    DocumentHeading("4 of 8 messages are stuck", 1),
    DocumentHeading(("1. ", TonedText("DELAYED", Tone.WAITING))),
    LabelledFact("why", "Names are compared exactly.", 1),
    SqlStatement(SQL, "On 'SHOP', in 'Orders'", 2),
    ListItem("one two three four five six", "10.", 1),
    Paragraph("The end."),
]


def test_text_is_wrapped_and_statements_are_not() -> None:
    assert write_text(CAUSE, width=20).split("\n") == [
        "4 of 8 messages are",
        "stuck",
        "",
        "1. DELAYED",
        "  why: Names are",
        "    compared",
        "    exactly.",
        "",
        "    USE [Orders];",
        f"    {SQL.splitlines()[1]}",
        "",
        "  10. one two three",
        "      four five six",
        "The end.",
    ]


def test_statements_without_text_begin_at_column_0() -> None:
    assert (
        write_sql([*CAUSE, SqlStatement("DROP ROUTE [x];")])
        == f"-- On 'SHOP', in 'Orders'\n{SQL}\n\nDROP ROUTE [x];"
    )


def test_colours_are_optional() -> None:
    plain, coloured = write_text(CAUSE), write_text(CAUSE, is_coloured=True)
    assert "\x1b" not in plain
    assert "\x1b[1;33mDELAYED\x1b[0m" in coloured
    assert SQL.splitlines()[1] in coloured


# Moves the cursor, colours, rings; markup of rich and of HTML; written from right to left.
HOSTILE = "\x1b[2J\x07a\rb\x9b1m[red]c[/red]<script>d</script>\u202e"
TEXTS: Document = [
    DocumentHeading(HOSTILE),
    Paragraph(HOSTILE),
    ListItem(HOSTILE, HOSTILE),
    LabelledFact(HOSTILE, (HOSTILE, TonedText(HOSTILE, Tone.BAD))),
    SqlStatement(HOSTILE, f"{HOSTILE}\n{HOSTILE}"),
    DataTable(make_columns([HOSTILE]), [[HOSTILE], [TonedText(HOSTILE, Tone.GOOD)]], HOSTILE),
]


@pytest.mark.parametrize("width", [1, 7, 30, 200])
def test_text_of_the_data_stays_harmless(width: int) -> None:
    for text in (write_text(TEXTS, width=width), write_sql(TEXTS)):
        assert all(character.isprintable() for line in text.split("\n") for character in line)
    lines = write_sql(TEXTS).split("\n")
    assert [line[:3] for line in lines[:2]] == ["-- ", "-- "]
    assert "[red]c[/red]" in write_text(TEXTS, width=200)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (3_600, "1 h"),
        (31_680, "8 h 48 min"),
        (86_399.6, "1 d"),
        (90_061, "1 d 1 h"),
        (86_460, "1 d"),
        (31_677, "8 h 48 min"),
        (3_599.6, "1 h"),
        (100_000_000, "1,157 d 10 h"),
        (-5, "-5 s"),
    ],
)
def test_durations_have_their_two_largest_units(seconds: float, expected: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "-"),
        (1_234_567, "1,234,567"),
        (1_234.5, "1,234.5"),
        (True, "True"),
        ("a\tb", "a\ufffdb"),
        (datetime(2026, 1, 5, 9, 12, 3), "2026-01-05T09:12:03Z"),
        (datetime(2026, 1, 5, 9, 12, 3, 20_000, timezone(timedelta(hours=2))), "2026-01-05T07:12:03.020000Z"),
        (timedelta(hours=1), "1 h"),
        (TonedText("DELAYED", Tone.BAD), "DELAYED"),
    ],
    ids=str,
)
def test_values_have_one_form(value: Cell, expected: str) -> None:
    assert format_value(value) == expected


def test_counts_have_singular_and_plural() -> None:
    assert [count(0, "message"), count(1, "query", "queries"), count(2_000, "query", "queries")] == [
        "0 messages",
        "1 query",
        "2,000 queries",
    ]
    assert format_time(datetime(1, 1, 1)) == "0001-01-01T00:00:00Z"


def test_statements_of_a_script_begin_at_column_0() -> None:
    sentence = "Names are compared exactly, and no known database holds a service of that name. "
    purpose = f"On 'SHOP'. {sentence * 2}"
    alone = write_sql([SqlStatement("USE [Orders];\nDROP ROUTE [ToBilling];", purpose, 3)])
    assert alone.splitlines() == [
        "-- On 'SHOP'. Names are compared exactly, and no known database holds a service",
        "-- of that name. Names are compared exactly, and no known database holds a",
        "-- service of that name.",
        "USE [Orders];",
        "DROP ROUTE [ToBilling];",
    ]


@pytest.mark.parametrize(
    ("hostile", "comment"),
    [
        pytest.param("$(x)", "-- $ (x)", id="a variable of sqlcmd"),
        pytest.param("${x}", "-- $ {x}", id="Flyway"),
        pytest.param("{{x}}", "-- { {x}}", id="RoundhousE"),
        pytest.param("#{x}", "-- # {x}", id="Octopus"),
        pytest.param("$x$", "-- $ x$", id="DbUp"),
        pytest.param("a\r\nDROP TABLE t", "-- a�\n-- DROP TABLE t", id="a line break does not leave the comment"),
        pytest.param("a\n:r c:\\x.sql\nGO", "-- a\n-- :r c:\\x.sql\n-- GO", id="commands of sqlcmd"),
    ],
)
def test_a_comment_has_no_variables_or_commands(hostile: str, comment: str) -> None:
    assert write_sql([], hostile) == comment


def test_a_comment_replaces_a_missing_statement() -> None:
    assert write_sql([Paragraph("DELIVERED")]) == "-- There is nothing to run."


def test_a_paragraph_has_a_hanging_indent() -> None:
    assert write_text([Paragraph("one two three", 1, 1)], width=9) == "  one two\n    three"
