"""Batches that SQL Server cannot parse never run. Unknown T-SQL is something else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import routing.importing.catalog as catalog
from routing.importing.tsql.script_reader import ReadScript

ReadText = Callable[..., ReadScript]
ROUTE = "CREATE ROUTE r WITH ADDRESS = 'LOCAL'"


@pytest.mark.parametrize(
    ("wrong", "number", "why"),
    [
        ("CRAETE ROUTE x WITH ADDRESS = 'LOCAL'", 102, "no statement begins with 'CRAETE', but with CREATE"),
        ("PRINT 'x'\nCRAETE ROUTE x WITH ADDRESS = 'LOCAL'", 102, "CREATE was meant by 'CRAETE'"),
        ("SELECT 1 ALTRE SERVICE [x] ON QUEUE q", 102, "ALTER was meant by 'ALTRE'"),
        ("PRINT 'x';\nDORP ROUTE x", 102, "no statement begins with 'DORP', but with DROP"),
        ("BEGIN SELCT 1 END", 102, "no statement begins with 'SELCT', but with SELECT"),
        ("CREATE ROUT x WITH ADDRESS = 'LOCAL'", 102, "CREATE ROUT: ROUTE was meant by 'ROUT'"),
        ("CREATE PROCEDRE p AS DROP ROUTE q", 102, "PROCEDURE was meant by 'PROCEDRE'"),
        ("CREATE OR ALTER ROUTE x WITH ADDRESS = 'LOCAL'", 102, "CREATE ROUTE: it has no clause OR ALTER"),
        ("DROP SERVICE IF EXISTS x", 102, "DROP SERVICE has no clause IF EXISTS"),
        ("CREATE ROUTE x WIHT ADDRESS = 'LOCAL'", 102, "WITH was expected, not 'WIHT'"),
        ("CREATE ROUTE x WITH ADRESS = 'LOCAL'", 102, "a route has no option 'ADRESS'"),
        ("CREATE ROUTE x WITH SERVICE_NAME = 's' ADDRESS = 'LOCAL'", 102, "the end of the statement"),
        ("CREATE ROUTE x WITH ADDRESS = 'LOCAL', ADDRESS = 'LOCAL'", None, "the option ADDRESS is given twice"),
        ("USE @x", 102, "USE: the database name was expected, not the variable '@x'"),
        ("USE a.b", 102, "'a' must have one part"),
        ("USE ''", 102, "the database name was expected"),
        ("SELECT (1", 102, "the parenthesis that opens here is not closed"),
        ("SELECT 1)", 102, "this closing parenthesis has no opening one"),
        ("BEGIN TRAN BEGIN PRINT 'x'", 102, "the BEGIN that begins here has no END"),
        ("PRINT 'x' END", 102, "this END has no BEGIN"),
        ("SELECT CASE WHEN 1 = 1 THEN 2", 102, "the CASE that begins here has no END"),
        ("EXEC sp_executesql N'DROP ROUTE ' + N'x'", 102, "EXEC: it is built by string concatenation"),
        ("GOTO nowhere", 133, "its batch has no label 'nowhere'"),
    ],
)
def test_nothing_runs_of_a_batch_that_cannot_be_parsed(
    read: ReadText, wrong: str, number: int | None, why: str
) -> None:
    script = read(f"DROP ROUTE a\nGO\n{wrong}\n;USE shop; DROP ROUTE b\nGO\nDROP ROUTE c")
    assert [(statement.name, statement.database) for statement in script.statements] == [("a", "db"), ("c", "db")]
    last = 3 + wrong.count("\n")
    cause, dropped = script.problems[0], script.problems[-1]
    assert (cause.number, cause.counted) == (number, False)
    assert 3 <= cause.line <= last
    assert why in cause.why
    assert cause.why.endswith("; its batch does not run")
    why_not = f"it does not run, since its batch cannot be parsed: see line {cause.line}"
    assert (dropped.line, dropped.why) == (last + 1, f"DROP ROUTE 'b': {why_not}")


@pytest.mark.parametrize(
    ("opened", "number"), [("PRINT 'x", 105), ("DROP ROUTE [x", 105), ('PRINT "x', 105), ("/* x", 113)]
)
def test_nothing_runs_before_an_unclosed_part(read: ReadText, opened: str, number: int) -> None:
    """GO does not end a batch inside a string, a name or a comment."""
    script = read(f"DROP ROUTE a\nGO\nDROP ROUTE b\n{opened}\nGO\nDROP ROUTE c")
    assert [statement.name for statement in script.statements] == ["a"]
    assert [problem.line for problem in script.problems if problem.number == number] == [4]
    assert [problem.line for problem in script.problems if "DROP ROUTE 'b'" in problem.why] == [3]


def test_effects_of_a_rejected_batch_are_undone(read: ReadText) -> None:
    """This includes its USE, SET NOEXEC and transaction. An earlier parsed batch stays."""
    script = read(
        """BEGIN TRAN DROP ROUTE a
        GO
        USE shop SET NOEXEC ON ROLLBACK DROP ROUTE (
        GO
        DROP ROUTE b COMMIT"""
    )
    assert [(statement.name, statement.database) for statement in script.statements] == [("a", "db"), ("b", "db")]


def test_the_text_of_an_exec_is_a_separate_batch(read: ReadText) -> None:
    script = read("EXEC('DROP ROUTE a DROP ROUTE IF EXISTS b')\nDROP ROUTE c")
    assert [statement.name for statement in script.statements] == ["c"]
    assert [problem.line for problem in script.problems] == [1, 1]


def test_a_batch_that_a_variable_may_complete_is_not_rejected(read: ReadText) -> None:
    script = read("CREATE ROUTE a $(b)\nSELECT (1 $(c)\nDROP ROUTE d")
    assert [statement.name for statement in script.statements] == ["d"]
    assert "sqlcmd variable 'b' has no value" in script.problems[0].why


@pytest.mark.parametrize(
    "text",
    [
        "sp_configure 'show advanced options', 1",
        "create_everything ROUTE, [x]",
        "selct ROUTE OUTPUT",
        "SELECT created service FROM t; SELECT later service, x AS state FROM created route WHERE state = 1",
        "CREATE TABLE t (b datetime2 GENERATED ALWAYS AS ROW START, c datetime2 GENERATED ALWAYS AS ROW END)",
        "ALTER TABLE t ADD b datetime2 GENERATED ALWAYS AS ROW END HIDDEN",
        "BEGIN DISTRIBUTED TRANSACTION; COMMIT",
        "DECLARE @h char; BEGIN DIALOG @h FROM SERVICE a TO SERVICE 'b'; END CONVERSATION @h WITH CLEANUP",
        "CREATE SERVER ROLE x; ALTER SERVICE MASTER KEY REGENERATE; CREATE ROLE y",
        "ALTER SERVICE s ON QUEUE q (DROP CONTRACT c)",
        "CREATE EVENT NOTIFICATION n ON SERVER FOR CREATE_ROUTE, DROP_ROUTE TO SERVICE 's', 'current database'",
        "again: IF @@ERROR = 0 PRINT 'x'; done: PRINT 'y'",
        "SELECT geography::Parse('POINT(1 1)'); GRANT SEND ON SERVICE::[s] TO public",
        "SELECT JSON_OBJECT('a': 1, 'b': (2))",
        "ALTER DATABASE x SET CHANGE_TRACKING = ON (CHANGE_RETENTION = 2 DAYS), RECOVERY FULL WITH NO_WAIT",
        "ALTER DATABASE x SET HADR OFF; ALTER DATABASE x ADD FILEGROUP f CONTAINS MEMORY_OPTIMIZED_DATA",
        "WITH c AS (SELECT 1 AS n) SELECT * FROM c; MERGE t USING s ON 1 = 1 WHEN MATCHED THEN DELETE;",
        "DECLARE @p binary(16); UPDATETEXT t.c @p 0 NULL 'x'; SETUSER; LINENO 5",
        "some_future_statement x y z",
    ],
)
def test_unknown_syntax_rejects_nothing(read: ReadText, text: str) -> None:
    script = read(f"{text}\n;\n{ROUTE}")
    assert [statement.name for statement in script.statements if statement.name != "x"] == ["r"]
    assert not [problem for problem in script.problems if "its batch does not run" in problem.why]


def test_the_queries_that_export_an_instance_can_be_parsed(read: ReadText) -> None:
    """A long script of the project's own, with TRY, CASE and texts built for EXEC."""
    text = (Path(catalog.__file__).parent / "queries.sql").read_text(encoding="utf-8")
    assert not [problem for problem in read(text).problems if "its batch does not run" in problem.why]
