"""EXEC of texts, and texts that are not run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from routing.importing.tsql import Script
from routing.importing.tsql.statements import CreateRoute, Guard, Subject

ReadText = Callable[..., Script]
ROUTE = "CREATE ROUTE r WITH ADDRESS = ''LOCAL''"


@pytest.mark.parametrize(
    ("text", "database"),
    [
        (f"EXEC('{ROUTE}')", "db"),
        (f"execute (N'{ROUTE}') AS USER = 'u';", "db"),
        ("EXEC ('CREATE ' + N'ROUTE r WITH ADDRESS = ' + '''LOCAL''')", "db"),
        ("EXEC (\"CREATE ROUTE r WITH ADDRESS = 'LOCAL'\")", "db"),
        (f"EXEC('USE [x y]; {ROUTE}')", "x y"),
        (f"EXEC sp_executesql N'{ROUTE}'", "db"),
        (f"EXEC @rc = sys.sp_executesql @stmt = N'{ROUTE}', @params = N'@a int', @a = 1", "db"),
        (f"EXEC [x y].sys.sp_executesql N'{ROUTE}'", "x y"),
        (f"EXEC x..sp_executesql @statement = N'{ROUTE}'", "x"),
        (f"INSERT INTO t EXEC('{ROUTE}')", "db"),
        (
            "EXEC('EXEC(''USE x EXEC(''''CREATE ROUTE r WITH ADDRESS = ''''''''LOCAL'''''''''''')'')')",
            "x",
        ),
    ],
)
def test_the_text_of_a_literal_is_read(read: ReadText, text: str, database: str) -> None:
    script = read(f"\n\n{text}\nDROP ROUTE last_one")
    assert [(found.name, found.line, found.database) for found in script.statements] == [
        ("r", 3, database),
        ("last_one", 4, "db"),
    ]
    assert script.problems == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("EXEC(@sql)", "EXEC of a variable"),
        ("EXEC sp_executesql @sql", "EXEC of a variable"),
        ("EXEC sp_executesql @stmt = @sql, N'@x int'", "EXEC of a variable"),
        ("EXEC('CREATE ROUTE ' + @name)", "EXEC of a text built by string concatenation"),
        ("EXEC(@a + @b)", "EXEC of a text built by string concatenation"),
        ("EXEC sp_executesql 'CREATE ROUTE r'", "EXEC of a text that is not nvarchar"),
        (f"EXEC('{ROUTE}') AT [other]", "linked server 'other'"),
        (f"EXEC other.x.sys.sp_executesql N'{ROUTE}'", "linked server 'other'"),
        ("EXEC('CREATE ROUTE r WITH ADDRESS = @a')", "not the variable '@a'"),
        ("EXEC('CREATE ROUTE r WITH ADDRESS = ''LOCAL')", "the text ends inside a string"),
        ("EXEC('$(sql)')", "sqlcmd variable 'sql' has no value"),
        ("$(sql)", "sqlcmd variable 'sql' has no value"),
        ("PRINT 'CREATE ROUTE r WITH ADDRESS = ''LOCAL'''", "printed, not run"),
        ("PRINT N'ALTER DATABASE x SET ENABLE_BROKER'", "printed, not run"),
        ("SET @sql = N'CREATE ROUTE [' + @name + N'] WITH'", "built by string concatenation"),
        ("SET @sql += 'create' + ' route ' + @name", "built by string concatenation"),
        ("SELECT 'DROP ROUTE ' + name FROM sys.routes", "built by string concatenation"),
        ("SELECT CONCAT('DROP SERVICE ', name) FROM sys.services", "built by string"),
        (f"DECLARE @sql nvarchar(max) = N'{ROUTE}'", "not run where it stands"),
        (f"EXEC msdb.dbo.sp_add_jobstep @command = N'{ROUTE}'", "not run where it stands"),
        (f"EXEC sp_MSforeachdb 'USE [?]; {ROUTE}'", "not run where it stands"),
    ],
)
def test_a_text_that_is_not_known_or_not_run_is_reported(read: ReadText, text: str, why: str) -> None:
    script = read(f"\n{text}\nDROP ROUTE last_one")
    assert [found.name for found in script.statements] == ["last_one"]
    assert script.problems
    assert {problem.line for problem in script.problems} == {2}
    assert any(why in problem.why for problem in script.problems)


@pytest.mark.parametrize(
    "text",
    [
        "EXEC p 'x'",
        "EXEC @rc = dbo.p @x = 1",
        "EXECUTE AS USER = 'u'; REVERT",
        "EXEC('SELECT 1') AT other",
        "EXEC('GRANT CREATE ROUTE TO u')",
        "PRINT 'the routes are done'",
        "RAISERROR('no such route', 16, 1)",
    ],
)
def test_what_says_nothing_about_routing(read: ReadText, text: str) -> None:
    script = read(text + "\nDROP ROUTE last_one")
    assert [found.name for found in script.statements] == ["last_one"]
    assert script.problems == ()


def test_a_condition_holds_for_the_text_too(read: ReadText) -> None:
    script = read(f"IF DB_ID('x') IS NOT NULL EXEC('USE x {ROUTE}')")
    (found,) = script.statements
    assert found.database == "x"
    assert found.guards == (Guard(Subject.DATABASE, None, "x", True, 1),)


def test_a_template_that_was_not_filled_in(read: ReadText) -> None:
    text = (
        "USE [<database, sysname, shop>]\n"
        "CREATE ROUTE <route name, sysname, to stock> AUTHORIZATION <owner ,user ,dbo> WITH\n"
        "LIFETIME = <seconds, int, 60>, ADDRESS = N'TCP://<host, nvarchar, h>:<port, int, 4022>'\n"
        "CREATE ROUTE <name, sysname, > WITH ADDRESS = 'LOCAL'\n"
        "CREATE ROUTE r WITH ADDRESS = '<address, nvarchar, >'\n"
        "GO\nCREATE ROUTE <name> WITH ADDRESS = 'LOCAL'\n"
    )
    script = read(text)
    (found,) = script.statements
    assert (found.name, found.line, found.database) == ("to stock", 2, "shop")
    assert isinstance(found, CreateRoute)
    assert found.options.address == "TCP://h:4022"
    assert found.options.lifetime_seconds == 60
    assert [(problem.line, problem.counted) for problem in script.problems] == [
        *[(1, True), (2, True), (2, True), (2, True), (2, True), (2, True)],
        *[(4, False), (5, False), (7, False)],
    ]
    strict = read(text, template_defaults=False)
    assert strict.statements == ()
    assert [problem.line for problem in strict.problems] == [1, 2, 4, 5, 7]
