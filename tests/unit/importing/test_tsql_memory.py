"""Irrelevant text of a script is neither tokenized nor stored, without any effect on the result."""

from __future__ import annotations

import gc
import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import datetime, timezone

import pytest

from routing.importing.tsql import script_reader
from routing.importing.tsql.instance_state import DatabaseState, InstanceState
from routing.importing.tsql.kept_batches import find_data_runs
from routing.importing.tsql.script_reader import AppliedScript, ReadScript, apply_script, read_script
from routing.importing.tsql.tokens import tokenize

NEEDS_SKIPPING = pytest.mark.skipif(
    sys.version_info < (3, 11),
    reason="without possessive quantifiers, which Python 3.10 lacks, nothing is skipped",
)
AT = datetime(2024, 5, 1, tzinfo=timezone.utc)
STATE = InstanceState(databases=(DatabaseState("db", "4c8c5a5c-1d3e-4b7a-9d5e-2f0a6b1c7d88"),))

DATA = [
    "INSERT INTO dbo.T (a, [b c], d) VALUES (1, N'it''s', NULL), (-2.5e3, '\u0436', 0xAB);",
    "INSERT [dbo].[T] VALUES (CAST(N'2020-01-01T00:00:00.000' AS DateTime), CAST(1.5 AS Decimal(9, 2)), DEFAULT)",
    "insert t values (convert(varbinary(max), 0x01, 1), getdate())\n",
    "UPDATE dbo.T SET a = 'FOR', [b] = NULL WHERE id = 1 AND x = N'y';",
    "DELETE FROM T WHERE id = 1;",
]
NOT_DATA = [
    "INSERT T VALUES (@v);",
    "INSERT T VALUES ((SELECT 1));",
    "INSERT T (a) SELECT 1;",
    "INSERT Route VALUES (1);",
    "INSERT T VALUES ('\ue000v\ue001');",
    "INSERT T VALUES (1) OPTION (RECOMPILE);",
    "INSERT T OUTPUT inserted.a VALUES (1);",
    "INSERT T EXEC ('CREATE ROUTE r WITH ADDRESS = ''LOCAL''');",
    "INSERT T VALUES (1.2.3);",
    "INSERT T VALUES (1 /* one */);",
    "UPDATE T SET a = 'FOR' WHERE id = 1\n",
    "UPDATE T SET a = a + 1;",
    "UPDATE STATISTICS SET a = 1;",
    "DELETE T WHERE a = 1 AND [b]]] = 1;",
    "PRINT 'x';",
]


@NEEDS_SKIPPING
def test_only_runs_of_statements_that_load_data_are_left_out() -> None:
    for one in DATA:
        text = one * 100
        [run] = find_data_runs(text)
        left_out = text[run.start : run.end].strip()
        assert (left_out, text[run.end :].strip()) == ((one * run.count).strip(), one.strip())
        assert run.count > 40
    for one in NOT_DATA:
        assert find_data_runs(one * 100) == [], one
    # One that is part of a string, comment or name is none; neither is one in a module, or of a mixed run.
    for around in ("'{}'", "/* {}", "[{}]", "CREATE PROC p AS {}"):
        assert find_data_runs(around.format(DATA[4] * 100)) == [], around
    assert find_data_runs((DATA[1] + " " + DATA[4]) * 100) == []
    assert find_data_runs((DATA[4] + "-- and\n/* more */ ") * 100) != []


def test_a_long_text_is_tokenized_as_a_whole_one_is() -> None:
    long_comment = "x /* y */ 'z' {" * 20
    pieces = [
        f"CREATE ROUTE r /* a /* nested */ {long_comment} */WITH ADDRESS = N'tcp://a  b' -- b\n, [x y] @v @@x #t",
        f"a /* {long_comment} */b/**/c --{long_comment}\nd 1e5/* {long_comment} */2 0xAB {{# {{{{v}}}} #}} 'a\nb'",
        'one two\u200bthree\nfour [five\u200b] \u200bsix \u00adSE\u00adLECT seven \ufeffUSE\u200bx "c d"  end  ',
    ]
    for end in ("", " 'six", " /* seven /* eight */", " [nine", " -- ten"):
        text = " ".join(pieces * 70) + end
        # A text that holds a carriage return is tokenized as one.
        whole, found = tokenize(f"/*\r*/{text}"), tokenize(f"/* */{text}")
        assert len(found.lexemes) > 2_000
        assert (found.lexemes, found.cut, found.invisible) == (whole.lexemes, whole.cut, whole.invisible), end


def scripts() -> Iterator[str]:
    """Yield scripts of runs of data among statements that could look at them, or hold them."""
    chooser = random.Random(5)
    around = [
        *("IF 1 = 2", "ELSE", "BEGIN", "END", "BEGIN TRY", "END TRY BEGIN CATCH", "END CATCH", "WHILE 1 = 1"),
        *("(", ")", "CASE", "a:", "GOTO a", ";", "GRANT SELECT ON x", "TO y", "GO", "foo", ",", "'", "THROW;"),
        *("SET IMPLICIT_TRANSACTIONS ON;", "ROLLBACK;", "IF @@ERROR <> 0", "USE db;", "MERGE t THEN", "RETURN;"),
        *("PRINT 'CREATE ROUTE p WITH ADDRESS = ''LOCAL''';", "SELECT 'x' FROM t;", "EXEC p;", "EXEC p 1;"),
        *("GO\nCREATE PROC p AS", "GO\nCREATE PROC p @a int = 2 AS IF @a = 1", "GO\nALTER PROC p AS"),
        *("DROP PROC p;", "COMMIT", "BEGIN TRAN", "SET XACT_ABORT ON;", "WITH q AS (SELECT 1 a)"),
        "EXEC('CREATE ROUTE x WITH ADDRESS = ''LOCAL''')",
    ]
    for _ in range(30):
        parts: list[str] = []
        for number in range(chooser.randrange(2, 14)):
            parts += [chooser.choice(around) for _ in range(chooser.randrange(3))]
            parts.append(chooser.choice([*DATA, "SELECT 1;", NOT_DATA[2]]) * chooser.choice([1, 2, 70]))
            parts.append(chooser.choice(["", f"CREATE ROUTE r{number} WITH ADDRESS = 'LOCAL';", "GO"]))
        yield "\n".join(parts)


def test_skipped_text_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers() -> list[tuple[ReadScript, AppliedScript, AppliedScript]]:
        read = [read_script(text, file="f.sql", scripted_at=AT, database="db") for text in texts]
        return [(script, apply_script(STATE, script), apply_script(STATE, script)) for script in read]

    texts = list(scripts())
    found = answers()
    monkeypatch.setattr(script_reader, "find_data_runs", lambda text: [])
    monkeypatch.setattr(script_reader, "keep_batch", lambda parsed, read_again: parsed)
    for text, answer, expected in zip(texts, found, answers(), strict=True):
        assert answer == expected, text
    assert sum(len(applied.statements) for _, applied, _ in found) > 8


def test_a_grant_ends_before_skipped_text() -> None:
    text = "GRANT SELECT ON x\n" + "INSERT INTO T VALUES (1)\n" * 100 + "CREATE ROUTE TO WITH ADDRESS = 'LOCAL'"
    [problem] = read_script(text, file="f", scripted_at=AT).problems
    assert problem.line == 102


def test_an_irrelevant_procedure_runs_where_it_is_called() -> None:
    text = (
        "CREATE PROC quiet @a int AS IF @a = 1 THROW 50000, 'x', 1;\nGO\n"
        "EXEC quiet 2;\nCREATE ROUTE a WITH ADDRESS = 'LOCAL';\nGO\n"
        "EXEC quiet 1;\nCREATE ROUTE b WITH ADDRESS = 'LOCAL';\n"
    )
    script = read_script(text, file="f", scripted_at=AT, database="db")
    for done in (script, apply_script(STATE, script)):
        assert [one.name for one in done.statements] == ["a"]


def _inserts(number: int) -> str:
    return f"INSERT INTO dbo.T (a, b) VALUES ({number}, 'x{number}');\n"


def _updates_in_batches(number: int) -> str:
    return f"UPDATE dbo.T SET a = a + {number} WHERE b IN (1, 2, {number});\n" + "GO\n" * (number % 20 == 0)


def _procedures(number: int) -> str:
    body = "SELECT t.a, count(*) FROM T t JOIN U u ON u.a = t.a WHERE t.b = @a GROUP BY t.a ORDER BY 1;\n" * 4
    return f"CREATE PROC p{number} @a int AS BEGIN\n{body}IF @a = 1 RETURN 2;\nEND\nGO\n"


def _comments(number: int) -> str:
    return f"-- step {number}: what it's for\n/* over\n /* nested */ lines */\n"


@pytest.mark.parametrize(
    ("part", "size", "kept", "most"),
    [
        pytest.param(_inserts, 200_000, 2, 7, marks=NEEDS_SKIPPING),
        (_updates_in_batches, 30_000, 2, 25),
        (_procedures, 20_000, 8, 15),
        (_comments, 70_000, 2, 12),
    ],
)
def test_memory_is_a_few_bytes_for_each_byte(
    part: Callable[[int], str], size: int, kept: float, most: float
) -> None:
    """Were all of it kept, a byte of a batch would take 200 bytes, and one of a script of many batches 60."""
    text = "".join(part(number) for number in range(size // len(part(0))))
    text += "\nGO\nCREATE ROUTE r WITH ADDRESS = 'LOCAL'"
    read_script(text, file="f", scripted_at=AT)
    tracemalloc.start()
    script = read_script(text, file="f", scripted_at=AT)
    gc.collect()  # Python's lists of free tuples are emptied too.
    now, peak = (traced / len(text) for traced in tracemalloc.get_traced_memory())
    tracemalloc.stop()
    assert [one.name for one in script.statements] == ["r"]
    assert (now < kept, peak < most) == (True, True), (now, peak)
