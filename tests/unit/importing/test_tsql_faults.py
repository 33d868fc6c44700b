"""Batches that cannot be compiled, with their numbers, and all forms of T-SQL that can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from routing.importing.tsql.instance_state import InstanceState
from routing.importing.tsql.script_reader import ReadScript, apply_script

ReadText = Callable[..., ReadScript]
ROUTE = "CREATE ROUTE r WITH ADDRESS = 'LOCAL'"
COMMON = "c AS (SELECT 1 a) SELECT * FROM c"
TCP = "AS TCP (LISTENER_PORT = 4022)"

FAULTS: dict[int, list[str]] = {
    102: [
        "BEGIN END",
        "IF 1=1",
        "IF 1=1 PRINT 'x' ELSE",
        "WHILE 1=1",
        "BEGIN TRY END TRY BEGIN CATCH END CATCH",
        "BEGIN TRY PRINT 1 END TRY; BEGIN CATCH END CATCH",
        "BEGIN CATCH END CATCH",
        "BEGIN TRY PRINT 1 END BEGIN CATCH END CATCH",
        "IF 1=1 BEGIN END ELSE PRINT 1",
        "BEGIN IF 1=1 END",
        "IF 1=1 ; ELSE PRINT 1",
        "DROP DATABASE My-Db",
        "DROP ROUTE my-route",
        "ALTER ROUTE my-r WITH ADDRESS='LOCAL'",
        "CREATE SERVICE a-b ON QUEUE q",
        "ALTER DATABASE My-Db MODIFY NAME = x",
        "ALTER DATABASE a MODIFY NAME = My-Db",
        "BACKUP DATABASE My-Db TO DISK='x'",
        "DROP ENDPOINT a-b",
        "USE a b",
        "CREATE DATABASE a b",
        "ALTER DATABASE D SET BROKER_ENABLED",
        "ALTER DATABASE D SET SERVICE_BROKER ON",
        "ALTER DATABASE D SET ENABLE_BROKER = ON",
        "ALTER DATABASE D SET NEW BROKER",
        "ALTER DATABASE D SET SINGLE USER WITH ROLLBACK IMMEDIATE",
        "ALTER DATABASE D SET READ ONLY",
        "ALTER DATABASE D ENABLE BROKER",
        "ALTER DATABASE D ENABLE_BROKER",
        "ALTER DATABASE My Db SET ENABLE_BROKER",
        "ALTER DATABASE My Db MODIFY NAME = x",
        "USE 'Sales'",
        "USE Sales.dbo",
        "CREATE DATABASE 2020Sales",
        "ALTER DATABASE D SET BROKER OFF",
        "ALTER DATABASE D SET (DISABLE_BROKER)",
        "ALTER DATABASE D SET DISABLE BROKER WITH ROLLBACK IMMEDIATE",
        "ALTER DATABASE CURRENT SET BROKER ON",
        "ALTER DATABASE D SET",
        "ALTER ENDPOINT e SET (STATE = STOPPED)",
        "BEGIN WHILE 1 = 1 END",
        "SELECT 1 IF 1 = 1 BEGIN PRINT 'x' END ELSE",
        "CREATE ENDPOINT e STATE = STARTED AS TCP (LISTENER_PORT = 4022)",
        f"{ROUTE};\n/\nDROP ROUTE r;",
        "PRINT 'x'\n/\nDROP ROUTE r",
        "PRINT 'x';\n/",
        "EXEC p 1 +",
    ],
    111: [
        "CREATE VIEW v AS SELECT 1 a",
        "CREATE OR ALTER PROC p AS SELECT 1",
        "ALTER TRIGGER t ON x FOR INSERT AS SELECT 1",
        "CREATE FUNCTION f() RETURNS int AS BEGIN RETURN 1 END",
        "CREATE SCHEMA s",
        "CREATE DEFAULT d AS 1",
        "CREATE RULE ru AS @x > 1",
    ],
    132: [
        "x: PRINT 1 x: PRINT 2",
    ],
    133: [
        "GOTO x",
    ],
    134: [
        "DECLARE @a int, @a int",
        "DECLARE @a int DECLARE @A int",
    ],
    135: [
        "BREAK",
    ],
    136: [
        "CONTINUE",
    ],
    137: [
        "SET @a = 1",
        "SELECT @a",
        "EXEC p @x = @y",
    ],
    156: [
        "IF 1=1 EXEC sp_x ELSE CREATE PROC p AS SELECT 1",
        "CREATE ROUTE Group WITH ADDRESS = 'LOCAL'",
        "DROP ROUTE Public",
        "CREATE SERVICE Plan ON QUEUE q",
        "CREATE SERVICE s ON QUEUE Order",
        "USE User",
        "CREATE DATABASE Index",
        "DROP DATABASE Key",
        "ALTER DATABASE Table SET ENABLE_BROKER",
        "CREATE ROUTE r2 AUTHORIZATION Public WITH ADDRESS='LOCAL'",
        "CREATE TABLE User (a int)",
        "CREATE ENDPOINT External STATE=STARTED AS TCP (LISTENER_PORT=4022) FOR SERVICE_BROKER ()",
        "BEGIN CREATE VIEW v AS SELECT 1 a END",
        "CREATE QUEUE Order",
        "DROP TABLE IF EXISTS Table",
    ],
    178: [
        "RETURN 1",
        "IF 1=1 RETURN (1)",
    ],
    319: [
        "SELECT 1 WITH c AS (SELECT 1 a) SELECT * FROM c",
        "PRINT 'x' WITH XMLNAMESPACES ('u' AS n) SELECT 1",
        "DECLARE @i int WITH c (a) AS (SELECT 1) SELECT * FROM c",
    ],
    911: [
        "CREATE DATABASE N USE N",
        "EXEC('CREATE DATABASE N') USE [N]",
    ],
    1067: [
        "SET SHOWPLAN_ALL ON",
        "SET SHOWPLAN_XML OFF",
        "SET SHOWPLAN_TEXT ON",
    ],
    1087: [
        "INSERT @t SELECT 1",
    ],
    10704: [
        "THROW",
    ],
    10713: [
        "MERGE t USING s ON 1=1 WHEN MATCHED THEN UPDATE SET a=1 WHEN NOT MATCHED THEN INSERT (a) VALUES (1)",
    ],
}


def read_numbers(read: ReadText, text: str) -> tuple[set[int | None], list[str]]:
    """Return the error numbers of rejected batches and the names of applied objects."""
    applied = apply_script(InstanceState(), read(text))
    rejected = [problem for problem in applied.problems if problem.why.endswith("; its batch does not run")]
    assert all(problem.by_server and not problem.counted for problem in rejected)
    return {problem.number for problem in rejected}, [statement.name for statement in applied.statements]


@pytest.mark.parametrize(
    ("number", "text"), [(number, text) for number, texts in FAULTS.items() for text in texts]
)
def test_a_batch_that_cannot_be_compiled_runs_nothing(read: ReadText, number: int, text: str) -> None:
    assert read_numbers(read, f"{ROUTE}\n{text}\nGO\nDROP ROUTE last") == ({number}, ["last"])


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (f"{ROUTE}\nBEGIN\nEND", 2, "the BEGIN … END that begins here is empty"),
        (f"{ROUTE}\nDECLARE @a int\n\nPRINT @b", 4, "the variable '@b' is not declared in its batch"),
        (f"{ROUTE}\n\nCREATE VIEW v AS SELECT 1 a", 3, "CREATE VIEW must be the first statement of its batch"),
        (f"{ROUTE}\nUSE My-Db", 2, "USE: the end of the statement was expected, not '-'"),
        (f"CREATE PROC p AS\n{ROUTE}\nBREAK", 3, "BREAK is outside a loop"),
    ],
)
def test_a_fault_says_where_and_why(read: ReadText, text: str, line: int, why: str) -> None:
    problems = apply_script(InstanceState(), read(text)).problems
    assert [(problem.line, problem.why) for problem in problems if problem.by_server] == [
        (line, f"{why}; its batch does not run")
    ]
    assert f"its batch cannot be parsed: see line {line}" in next(
        problem.why for problem in problems if not problem.by_server
    )


VALID = (Path(__file__).parent / "valid_statements.txt").read_text(encoding="utf-8").splitlines()


FRAMES = ("{}\n;" + ROUTE, ROUTE + ";\n{}", "{}\n" + ROUTE, "IF 1 = 1 BEGIN {}\nEND " + ROUTE)


@pytest.mark.parametrize("text", VALID)
def test_valid_batches_run(read: ReadText, text: str) -> None:
    for frame in FRAMES:
        numbers, names = read_numbers(read, frame.format(text))
        assert (numbers, "r" in names) == (set(), True), frame


@pytest.mark.parametrize(
    "text",
    [
        f"CREATE VIEW v AS WITH {COMMON}",
        "CREATE VIEW dbo.v (a) WITH SCHEMABINDING AS (SELECT 1 a) UNION SELECT 2;",
        "CREATE VIEW v AS SELECT 1 a FROM t WITH (NOLOCK) WITH CHECK OPTION",
        "CREATE PROC p @a int = 1, @b AS nvarchar(max) = N'x' OUTPUT WITH RECOMPILE, EXECUTE AS OWNER AS RETURN 1",
        f"CREATE PROC p (@a int) AS BEGIN SET NOCOUNT ON; WITH {COMMON} END",
        f"CREATE PROC p AS WITH {COMMON}",
        "CREATE PROC p;2 @a int AS SELECT @a",
        "CREATE PROC p @c CURSOR VARYING OUTPUT AS SET @c = CURSOR FOR SELECT 1 OPEN @c",
        "CREATE PROC p @t dbo.tt READONLY AS INSERT u SELECT * FROM @t",
        "CREATE FUNCTION f (@a int = 1) RETURNS int AS BEGIN DECLARE @b int = @a RETURN @b END",
        "CREATE FUNCTION f () RETURNS TABLE AS RETURN (SELECT 1 a)",
        f"CREATE FUNCTION f () RETURNS TABLE WITH SCHEMABINDING AS RETURN WITH {COMMON}",
        "CREATE FUNCTION f (@a int) RETURNS @t TABLE (a int) AS BEGIN INSERT @t SELECT @a RETURN END",
        "CREATE FUNCTION f () RETURNS int BEGIN RETURN 1 END",
        "ALTER TRIGGER t ON dbo.x WITH EXECUTE AS 'u' AFTER INSERT, UPDATE AS IF UPDATE(a) RETURN",
        "CREATE TRIGGER t ON DATABASE FOR CREATE_ROUTE, DROP_ROUTE AS SELECT EVENTDATA()",
        "CREATE PROC p AS EXTERNAL NAME a.b.c",
        "CREATE PROC p AS",
        "CREATE SCHEMA s AUTHORIZATION dbo CREATE TABLE t (a int) GRANT SELECT ON t TO u",
        "CREATE RULE ru AS @x > 1",
        "-- a comment\n;\nCREATE DEFAULT d AS 1",
    ],
)
def test_statements_that_must_come_first_in_a_batch_are_valid_there(read: ReadText, text: str) -> None:
    assert read_numbers(read, f"{text}\nGO\n{ROUTE}") == (set(), ["r"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # It was there before, for all that is known.
        ("USE N\nCREATE DATABASE N2\nUSE N", ["N2"]),
        ("DROP DATABASE N\nCREATE DATABASE N\nUSE N", ["N", "N"]),
        ("CREATE DATABASE N\nGO\nUSE N", ["N"]),
        ("CREATE DATABASE N\nEXEC('USE N CREATE ROUTE q WITH ADDRESS = ''LOCAL''')", ["N", "q"]),
        ("USE none", []),
    ],
)
def test_a_database_that_may_be_there_is_used(read: ReadText, text: str, names: list[str]) -> None:
    assert read_numbers(read, text) == (set(), names)


@pytest.mark.parametrize(
    "text",
    ["SELECT @x $(p)", "BEGIN $(p) END", "$(p)\nPRINT @y", "IF 1 = 1 $(p)", "CREATE VIEW v AS SELECT 1 $(p)"],
)
def test_a_batch_that_a_sqlcmd_variable_may_complete_is_not_rejected(read: ReadText, text: str) -> None:
    assert read_numbers(read, f"{ROUTE}\n{text}")[0] == set()


def test_commas_between_the_options_of_an_altered_route_may_be_left_out(read: ReadText) -> None:
    script = read(
        f"{ROUTE}\nALTER ROUTE r WITH SERVICE_NAME = 's' LIFETIME = 9 ADDRESS = 'TCP://h:1'\nDROP ROUTE q"
    )
    applied = apply_script(InstanceState(), script)
    (route,) = applied.state.routes
    assert (route.remote_service_name, route.address) == ("s", "TCP://h:1")
    assert [(p.line, "there is no comma before" in p.why) for p in applied.problems if p.line == 2] == [
        (2, True)
    ] * 2
    assert all(problem.counted for problem in applied.problems)
