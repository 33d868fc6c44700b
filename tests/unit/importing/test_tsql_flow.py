"""Context and conditions: which statements run, in which database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from routing.importing.tsql.expressions import SessionFacts, answer_condition
from routing.importing.tsql.instance_state import DatabaseState, InstanceState, RouteState
from routing.importing.tsql.script_reader import ReadScript, apply_script
from routing.importing.tsql.script_statements import ConditionGuard, GuardSubject
from routing.importing.tsql.tokens import tokenize

ReadText = Callable[..., ReadScript]
ROUTE = "CREATE ROUTE r WITH ADDRESS = 'LOCAL'"


def _applied(script: ReadScript, databases: tuple[str, ...] = ()) -> list[str]:
    """The names of the statements that are applied to an instance with these databases."""
    routes = tuple(RouteState("db", name, "LOCAL") for name in "abc")
    state = InstanceState(routes, databases=tuple(DatabaseState(name, None) for name in (*databases, "db")))
    return [statement.name for statement in apply_script(state, script).statements]


def _contexts(script: ReadScript) -> list[tuple[str, str | None]]:
    return [(statement.name, statement.database) for statement in script.statements]


def test_use_sets_the_database_of_later_statements(read: ReadText) -> None:
    script = read(
        """DROP ROUTE a
        USE shop DROP ROUTE b
        GO
        DROP ROUTE c; use [msdb]; DROP ROUTE d
        GO
        DROP ROUTE e"""
    )
    assert _contexts(script) == [
        ("a", "db"),
        ("b", "shop"),
        ("c", "shop"),
        ("d", "msdb"),
        ("e", "msdb"),
    ]


@pytest.mark.parametrize("name", ["[$(name)]", "<db, sysname, >"])
def test_a_use_that_cannot_be_known_leaves_no_database(read: ReadText, name: str) -> None:
    script = read(f"USE {name}\nGO\nDROP ROUTE a\nUSE b\nDROP ROUTE c")
    assert _contexts(script) == [("a", None), ("c", "b")]
    (problem,) = script.problems
    assert problem.line == 1
    assert problem.why.endswith("the database in use is not known from here on")


def _guard(subject: GuardSubject, name: str, holds: bool, database: str | None = None) -> ConditionGuard:
    return ConditionGuard(subject, database, name, holds)


@pytest.mark.parametrize(
    ("condition", "guard"),
    [
        (
            "EXISTS (SELECT * FROM sys.routes WHERE name = N'x')",
            _guard(GuardSubject.ROUTE, "x", True, "db"),
        ),
        (
            "not exists (select 1 from [sys].[routes] as r where r.[name] = 'it''s')",
            _guard(GuardSubject.ROUTE, "it's", False, "db"),
        ),
        (
            "(NOT (EXISTS (SELECT TOP (1) name FROM msdb.sys.services s WHERE s.name = 'x')))",
            _guard(GuardSubject.SERVICE, "x", False, "msdb"),
        ),
        (
            "EXISTS (SELECT TOP 1 1 FROM sys.endpoints e WHERE name = 'x')",
            _guard(GuardSubject.ENDPOINT, "x", True),
        ),
        (
            "NOT EXISTS (SELECT 'y' FROM master..sysdatabases WHERE name = 'x')",
            _guard(GuardSubject.DATABASE, "x", False),
        ),
        (
            "(SELECT COUNT(*) FROM sys.routes WHERE (name = 'x')) = 0",
            _guard(GuardSubject.ROUTE, "x", False, "db"),
        ),
        (
            "NOT (SELECT COUNT(*) FROM sys.routes WHERE name = 'x') > 0",
            _guard(GuardSubject.ROUTE, "x", False, "db"),
        ),
        ("DB_ID(N'x') IS NOT NULL", _guard(GuardSubject.DATABASE, "x", True)),
        ("(DB_ID('x') IS NULL)", _guard(GuardSubject.DATABASE, "x", False)),
        ("NOT DB_ID('x') IS NULL", _guard(GuardSubject.DATABASE, "x", True)),
        (
            "EXISTS (SELECT * FROM sys.databases WHERE name = 'x' AND is_broker_enabled = 0)",
            _guard(GuardSubject.BROKER, "x", False),
        ),
        (
            "NOT EXISTS (SELECT * FROM sys.databases d WHERE d.is_broker_enabled = 1 AND d.name = DB_NAME())",
            _guard(GuardSubject.BROKER, "db", False),
        ),
        (
            "(SELECT is_broker_enabled FROM sys.databases WHERE database_id = DB_ID()) = 0",
            _guard(GuardSubject.BROKER, "db", False),
        ),
        (
            "(SELECT is_broker_enabled FROM sys.databases WHERE database_id = DB_ID('x')) = 1",
            _guard(GuardSubject.BROKER, "x", True),
        ),
        (
            "(SELECT d.is_broker_enabled FROM sys.databases AS d WHERE d.name LIKE 'x') <> 1",
            _guard(GuardSubject.BROKER, "x", False),
        ),
        (
            "NOT EXISTS (SELECT 1 FROM sys.databases WHERE name IN (N'x') AND is_broker_enabled != 0)",
            _guard(GuardSubject.BROKER, "x", False),
        ),
        ("DATABASEPROPERTYEX(N'x', 'IsBrokerEnabled') = 0", _guard(GuardSubject.BROKER, "x", False)),
        ("DATABASEPROPERTYEX(DB_NAME(), 'isbrokerenabled') = 1", _guard(GuardSubject.BROKER, "db", True)),
        (
            "NOT EXISTS (SELECT * FROM sys.service_broker_endpoints)",
            _guard(GuardSubject.BROKER_ENDPOINT, "", False),
        ),
        (
            "EXISTS (SELECT 1 FROM sys.service_broker_endpoints e WHERE e.name = N'x')",
            _guard(GuardSubject.BROKER_ENDPOINT, "x", True),
        ),
        (
            "(SELECT COUNT(*) FROM sys.endpoints WHERE type_desc = 'SERVICE_BROKER') >= 1",
            _guard(GuardSubject.BROKER_ENDPOINT, "", True),
        ),
        (
            "EXISTS (SELECT * FROM sys.tcp_endpoints WHERE type = 3 AND name = 'x')",
            _guard(GuardSubject.BROKER_ENDPOINT, "x", True),
        ),
    ],
)
def test_conditions_about_existing_objects_are_evaluated(
    read: ReadText, condition: str, guard: ConditionGuard
) -> None:
    asked: list[ConditionGuard] = []

    def ask(question: ConditionGuard) -> bool:
        asked.append(question)
        return True

    words = tokenize(condition).lexemes
    answer = answer_condition(words, SessionFacts("db", 0, 0, 0, None, ask))
    assert [replace(question, holds=True) for question in asked] == [replace(guard, holds=True)]
    assert (answer.holds, answer.by_state) == (guard.holds, True)
    script = read(f"IF {condition} DROP ROUTE a ELSE DROP ROUTE b\nDROP ROUTE c")
    assert [statement.name for statement in script.statements] == ["a", "b", "c"]
    assert script.problems == ()


@pytest.mark.parametrize(
    "condition",
    [
        "@x = 1",
        "EXISTS (SELECT * FROM sys.routes WHERE name LIKE 'x%')",
        "EXISTS (SELECT * FROM sys.routes WHERE name = 'x' AND address = 'LOCAL')",
        "EXISTS (SELECT * FROM sys.routes WHERE name = '$(v)')",
        "EXISTS (SELECT * FROM sys.routes WHERE name = @x)",
        "EXISTS (SELECT * FROM routes WHERE name = DB_NAME())",
        "EXISTS (SELECT * FROM sys.service_queues WHERE name = 'x')",
        "DB_ID('x') IS NULL AND @x = 1",
        "IIF(1 = 1, 1, 0) = 1",
        "UPDATE(c)",
        "(SELECT COUNT(*) FROM sys.routes) > 1",
        "EXISTS (SELECT * FROM sys.routes)",
        "EXISTS (SELECT * FROM sys.services WHERE name LIKE 'x_')",
        "EXISTS (SELECT * FROM sys.endpoints WHERE name = 'x' AND state = 0)",
        "EXISTS (SELECT * FROM sys.endpoints WHERE type_desc = 'TSQL')",
        "EXISTS (SELECT * FROM sys.routes WHERE name = 'x' AND type = 3)",
        "DATABASEPROPERTYEX('x', 'Status') = 1",
        "DB_NAME() = 'DB'",
        "1 = '1'",
        "'straße' = 'strasse'",
        "",
    ],
)
def test_other_conditions_make_both_branches_unknown(read: ReadText, condition: str) -> None:
    script = read(f"DECLARE @x int\nIF {condition} DROP ROUTE a; ELSE BEGIN DROP ROUTE b END\nDROP ROUTE c")
    assert [statement.name for statement in script.statements] == ["c"]
    assert [problem.line for problem in script.problems] == [2, 2]
    assert all("the IF in line 2" in problem.why for problem in script.problems)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("1 = 1", True),
        ("(1 = 0)", False),
        ("2 <> 1", True),
        ("DB_NAME() <> N'shop'", True),
        ("DB_NAME() = 'db '", True),
        ("DB_NAME() IN ('x', 'db')", True),
        ("DB_NAME() NOT IN ('x', 'y')", True),
        # As SQL Server Data Tools ask whether sqlcmd runs their script.
        ("N'$(__IsSqlCmdEnabled)' NOT LIKE N'True'", False),
        ("'a' LIKE 'b'", False),
    ],
)
def test_a_condition_of_constants_is_known(read: ReadText, condition: str, holds: bool) -> None:
    text = f':setvar __IsSqlCmdEnabled "True"\nIF {condition} DROP ROUTE a ELSE DROP ROUTE b'
    script = read(text)
    assert _contexts(script) == [("a" if holds else "b", "db")]
    (problem,) = script.problems
    assert problem.why.startswith(f"DROP ROUTE '{'b' if holds else 'a'}': the condition of the IF in line 2")


def test_nested_conditions_add_up_and_else_belongs_to_the_nearest_if(read: ReadText) -> None:
    script = read(
        """IF DB_ID('x') IS NOT NULL
             IF DB_ID('y') IS NOT NULL DROP ROUTE a
             ELSE DROP ROUTE b
           DROP ROUTE c"""
    )
    assert _applied(script, databases=("x", "y")) == ["a", "c"]
    assert _applied(script, databases=("x",)) == ["b", "c"]
    assert _applied(script, databases=("y",)) == ["c"]


def test_an_if_governs_one_statement_or_block(read: ReadText) -> None:
    script = read(
        """DECLARE @x int, @y int
           IF @x = 1 PRINT 'x' DROP ROUTE a
           IF @x = 1 BEGIN SELECT CASE WHEN 1 = 1 THEN 2 END; BEGIN PRINT 'y' END END DROP ROUTE b
           IF @x = 1 SET @y = CASE @x WHEN 1 THEN 2 ELSE 3 END ELSE DROP ROUTE c
           DROP ROUTE d"""
    )
    assert [statement.name for statement in script.statements] == ["a", "b", "d"]
    assert [problem.line for problem in script.problems] == [4]


def test_an_else_without_its_if_is_unknown(read: ReadText) -> None:
    script = read("IF @@SERVERNAME = 1 some words PRINT 'x' PRINT 'y' ELSE DROP ROUTE a\nDROP ROUTE b")
    assert [statement.name for statement in script.statements] == ["b"]
    assert [problem.line for problem in script.problems] == [1]


def test_try_runs_and_catch_is_reported(read: ReadText) -> None:
    script = read(
        """BEGIN TRY
             DROP ROUTE a
           END TRY
           BEGIN CATCH
             DROP ROUTE b; THROW
           END CATCH
           DROP ROUTE c"""
    )
    assert [statement.name for statement in script.statements] == ["a", "c"]
    assert [(problem.line, "CATCH in line 4" in problem.why) for problem in script.problems] == [(5, True)]


def test_a_loop_is_unknown(read: ReadText) -> None:
    script = read("DECLARE @i int WHILE @i < 5 BEGIN DROP ROUTE a SET @i += 1 END DROP ROUTE b")
    assert [statement.name for statement in script.statements] == ["b"]
    assert "loop" in script.problems[0].why


@pytest.mark.parametrize(
    "head",
    [
        "CREATE PROCEDURE dbo.p @x int AS",
        "CREATE OR ALTER PROC p AS BEGIN",
        "ALTER FUNCTION [p]() RETURNS int AS BEGIN",
        "create trigger p on database for CREATE_TABLE as",
    ],
)
def test_the_body_of_a_module_is_not_run(read: ReadText, head: str) -> None:
    end = "END" if head.endswith("BEGIN") else ""
    script = read(f"{head}\nDECLARE @s char\n{ROUTE}\nEXEC(@s)\nRETURN {end}\nGO\nDROP PROCEDURE p DROP ROUTE b")
    assert _contexts(script) == [("b", "db")]
    (problem,) = script.problems
    assert problem.line == 3
    assert "'p', which the script only creates" in problem.why


def test_return_ends_the_batch(read: ReadText) -> None:
    script = read("DROP ROUTE a RETURN DROP ROUTE b\nGO\nDROP ROUTE c")
    assert [statement.name for statement in script.statements] == ["a", "c"]
    assert "RETURN in line 1" in script.problems[0].why


def test_after_a_conditional_return_the_condition_failed(read: ReadText) -> None:
    script = read("IF DB_ID('x') IS NULL BEGIN PRINT 'no'; RETURN END\nDROP ROUTE a\nGO\nDROP ROUTE b")
    assert _applied(script) == ["b"]
    assert _applied(script, databases=("x",)) == ["a", "b"]


def test_a_check_that_only_the_server_can_make_is_assumed_to_pass(read: ReadText) -> None:
    script = read("IF @@VERSION LIKE '%9.0%' RETURN\nDROP ROUTE a")
    (statement,) = script.statements
    assert (statement.name, script.problems) == ("a", ())
    assert str(statement.doubt).startswith("it runs only if the RETURN in line 1 does not")


def test_noexec_and_parseonly(read: ReadText) -> None:
    script = read(
        """IF @@ERROR <> 0 SET NOEXEC ON
           DROP ROUTE a
           SET NOEXEC ON
           GO
           USE x DROP ROUTE b
           SET NOEXEC OFF
           DROP ROUTE c
           SET PARSEONLY ON DROP ROUTE d"""
    )
    assert _contexts(script) == [("a", "db"), ("c", "db")]
    assert [problem.line for problem in script.problems] == [5, 8]


def test_rolled_back_statements_do_not_count(read: ReadText) -> None:
    script = read(
        """BEGIN TRAN; DROP ROUTE a
           BEGIN TRANSACTION; DROP ROUTE b; COMMIT
           GO
           ROLLBACK TRAN
           BEGIN TRAN t DROP ROUTE c SAVE TRAN s DROP ROUTE d ROLLBACK TRAN s
           IF @@ERROR <> 0 ROLLBACK
           COMMIT
           ROLLBACK
           DROP ROUTE e"""
    )
    assert [statement.name for statement in script.statements] == ["c", "e"]
    assert [problem.line for problem in script.problems] == [1, 2, 5]
    assert [int(problem.why[-1]) for problem in script.problems] == [4, 4, 5]


def test_a_rollback_under_a_condition(read: ReadText) -> None:
    script = read(
        """DECLARE @x int IF DB_ID('x') IS NOT NULL
        BEGIN
            BEGIN TRAN DROP ROUTE a ROLLBACK
            DROP ROUTE b
        END
        BEGIN TRAN
        DROP ROUTE c
        IF @@ERROR = 0 COMMIT ELSE ROLLBACK
        BEGIN TRAN
        DROP ROUTE d
        IF @x = 1 ROLLBACK
        IF @@TRANCOUNT > 0 COMMIT"""
    )
    assert [statement.name for statement in script.statements] == ["b", "c", "d"]
    assert [statement.doubt for statement in script.statements[:2]] == [None, None]
    assert str(script.statements[2].doubt).startswith("it counts only if the ROLLBACK in line 11 does not run")
    assert [problem.why for problem in script.problems] == ["DROP ROUTE 'a': it is rolled back in line 3"]


def test_a_use_under_a_condition(read: ReadText) -> None:
    script = read("IF DB_ID('X') IS NOT NULL USE x DROP ROUTE a\nIF @@SPID = 1 USE y\nDROP ROUTE b")
    assert _contexts(script) == [("a", "x"), ("b", None)]
    assert [problem.line for problem in script.problems] == [2]


def test_dialogs_are_not_blocks(read: ReadText) -> None:
    script = read(
        """DECLARE @h uniqueidentifier, @x int BEGIN DIALOG CONVERSATION @h FROM SERVICE a TO SERVICE 'b'
           IF @x = 1 BEGIN END CONVERSATION @h; DROP ROUTE a END
           BEGIN CONVERSATION TIMER (@h) TIMEOUT = 5
           END CONVERSATION @h
           DROP ROUTE b"""
    )
    assert [statement.name for statement in script.statements] == ["b"]
    assert [problem.line for problem in script.problems] == [2]


@pytest.mark.parametrize(
    ("condition", "instance", "routes"),
    [
        ("@@SERVERNAME = N'hub'", "HUB", ["a"]),
        ("@@SERVERNAME <> N'HUB'", "HUB", ["b"]),
        ("NOT @@SERVERNAME = N'HUB\\SQL1'", "HUB\\SQL1", ["b"]),
        # The name of an instance need not be the one that the server has.
        ("@@SERVERNAME = N'HUB'", "EDGE", []),
        ("@@SERVERNAME = N'.'", "HUB", []),
        ("@@SERVERNAME LIKE N'H%'", "HUB", []),
        ("@@SERVERNAME IN (N'EDGE', N'hub')", "HUB", ["a"]),
        ("@@SERVERNAME NOT IN (N'HUB', N'EDGE')", "HUB", ["b"]),
        ("@@SERVERNAME IN (N'EDGE', N'CORE')", "HUB", []),
        ("@@SERVERNAME NOT IN (N'EDGE', N'CORE')", "HUB", []),
        ("@@SERVERNAME IN (SELECT name FROM sys.servers)", "HUB", []),
        ("@@SERVERNAME IN ()", "HUB", []),
        ("SERVERPROPERTY('MachineName') = N'HUB'", "HUB", []),
        ("@@SERVERNAME = N'HUB'", None, []),
    ],
)
def test_the_name_of_the_server_is_that_of_the_instance(
    read: ReadText, condition: str, instance: str | None, routes: list[str]
) -> None:
    script = read(f"IF {condition} DROP ROUTE a ELSE DROP ROUTE b", instance=instance)
    state = InstanceState(tuple(RouteState("db", name, "LOCAL") for name in "ab"))
    done = apply_script(state, script)
    assert [statement.name for statement in done.statements] == routes
    assert len(done.passed_over) == len(routes)
    assert done.refused == (0 if routes else 2)
