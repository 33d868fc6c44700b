"""EXEC of texts, and texts that are not run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from routing.importing.tsql.script_reader import ReadScript
from routing.importing.tsql.script_statements import CreateRoute

ReadText = Callable[..., ReadScript]
ROUTE = "CREATE ROUTE r WITH ADDRESS = ''LOCAL''"
DECLARED = (
    "DECLARE @a int, @b int, @h int, @m nvarchar(200), @n sysname, @name sysname, @rc int, @s nvarchar(max), "
    "@clause sysname, @owner sysname, @p sysname, @sql nvarchar(max), @unknown int;"
)


def _declare(text: str) -> str:
    """Return the declarations that a text with variables needs."""
    return DECLARED if "@" in text and "DECLARE" not in text else ""


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
    script = read(f"{_declare(text)}\n\n{text}\nDROP ROUTE last_one")
    assert [(statement.name, statement.line, statement.database) for statement in script.statements] == [
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
        ("SET @sql = N'CREATE ROUTE [' + @name + N'] WITH'", "built by string concatenation"),
        ("SET @sql += 'create' + ' route ' + @name", "built by string concatenation"),
        (
            f"DECLARE @x char, @a nvarchar(max) = N'{ROUTE}', @b nvarchar(max) = @x + @a PRINT @b EXEC p @b",
            "does not run",
        ),
        (f"DECLARE @a nvarchar(max) PRINT @a SET @a = N'{ROUTE}'; EXEC p @a", "does not run here"),
        (f"EXEC dbo.run_later N'{ROUTE}'", "does not run here"),
        ("EXEC dbo.run_later N'DROP ROUTE [a b] DROP ROUTE c'", "does not run here"),
        ("EXEC dbo.run_later N'CREATE ROUTE r -- the hub\n WITH ADDRESS = ''LOCAL'' '", "does not run here"),
        (f"EXEC xp_cmdshell 'start /b sqlcmd -S HUB -Q \"{ROUTE}\"'", "does not run here"),
        ("EXEC xp_cmdshell 'sqlcmd -E -Q \"DROP ROUTE r\"'", "does not run here"),
        ("SET @s = FORMATMESSAGE('CREATE ROUTE %s %s', @name, @clause)", "built by string concatenation"),
        ("SET @s = 'CREATE ROUTE ' + @p + '_r AUTHORIZATION ' + @owner", "built by string concatenation"),
        (f"EXEC msdb.dbo.sp_send_dbmail @subject = 'x', @query = '{ROUTE}'", "does not run here"),
        (f"SELECT * FROM OPENQUERY(other, '{ROUTE}')", "does not run here"),
        (f"dbo.run_later N'{ROUTE}'", "does not run here"),
        (f"DECLARE @sql nvarchar(max) = N'{ROUTE}'", "does not run here"),
        (f"EXEC msdb.dbo.sp_add_jobstep @command = N'{ROUTE}'", "does not run here"),
    ],
)
def test_a_text_that_is_not_known_or_not_run_is_reported(read: ReadText, text: str, why: str) -> None:
    script = read(f"{_declare(text)}\n{text}\nDROP ROUTE last_one")
    assert [statement.name for statement in script.statements] == ["last_one"]
    assert not any(problem.counted for problem in script.problems)
    assert {problem.line for problem in script.problems} == {2}
    assert any(why in problem.why for problem in script.problems)


@pytest.mark.parametrize(
    "text",
    [
        "RAISERROR('Could not create route to the hub', 16, 1)",
        f"RAISERROR(N'{ROUTE}', 10, 1) WITH NOWAIT",
        "THROW 50001, N'Drop route done', 1;",
        "PRINT 'Drop route done'",
        "PRINT N'create route ' + @n + N' failed'",
        "INSERT dbo.log (m) VALUES ('drop route done')",
        "INSERT INTO dbo.log SELECT N'Drop route done', GETDATE()",
        f"INSERT #commands VALUES (1, N'{ROUTE}')",
        f"UPDATE dbo.steps SET command = N'{ROUTE}' WHERE id = 1",
        "DELETE dbo.log WHERE m LIKE 'DROP ROUTE%'",
        "MERGE dbo.log AS t USING (SELECT 'drop route x' AS m) AS s ON t.m = s.m WHEN MATCHED THEN DELETE;",
        "CREATE TABLE t (m nvarchar(50) DEFAULT 'create route')",
        "SEND ON CONVERSATION @h MESSAGE TYPE [//m] (N'create route r')",
        "EXEC sp_addextendedproperty N'MS_Description', N'Create route r first', 'SCHEMA', 'dbo', 'TABLE', 't'",
        "EXEC sys.sp_addextendedproperty @name = N'MS_Description', @value = N'DROP ROUTE r undoes it'",
        "EXEC sys.xp_logevent 55000, N'DROP ROUTE r'",
        "EXEC msdb.dbo.sp_send_dbmail @subject = 'x', @body = 'Drop route done'",
        "EXEC dbo.write_log N'Could not create route to the hub'",
        "EXEC dbo.write_log N'Create route to the hub failed'",
        "EXEC dbo.write_log @text = N'Drop route ToStock next, then alter route ToCash too'",
        "SET @m = N'drop route done' PRINT @m",
        "SET @m = N'Drop route ' + @n RAISERROR(@m, 16, 1)",
        "SELECT @m = N'Drop route ' + @n; THROW 50000, @m, 1",
        "SET @m = N'Drop route' SET @m += @n INSERT dbo.log VALUES (@m)",
        "SET @m = N'Could not create route' EXEC dbo.write_log @m",
        "IF EXISTS (SELECT * FROM dbo.log WHERE m = 'drop route done') PRINT 'x'",
        "/* CREATE ROUTE r WITH ADDRESS = 'LOCAL' */ -- DROP ROUTE r",
        "EXEC sp_MSforeachdb 'PRINT ''?'''",
    ],
)
def test_a_text_used_as_data_is_not_a_statement(read: ReadText, text: str) -> None:
    script = read(f"DROP ROUTE first_one {_declare(text)}\nIF 1 = 1 BEGIN PRINT 'x'; {text}\nEND\n")
    assert [statement.name for statement in script.statements] == ["first_one"]
    assert script.problems == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PRINT 'CREATE ROUTE r WITH ADDRESS = ''LOCAL'''", "printed, not run"),
        ("PRINT N'ALTER DATABASE x SET ENABLE_BROKER'", "printed, not run"),
        (f"DECLARE @sql nvarchar(max) = N'{ROUTE}' PRINT @sql", "does not run here"),
        (f"DECLARE @sql nvarchar(max) = N'{ROUTE}' INSERT #commands VALUES (@sql)", "does not run here"),
        (f"SELECT '{ROUTE}'", "does not run here"),
        ("SELECT 'DROP ROUTE ' + name FROM sys.routes", "built by string concatenation"),
        ("SELECT CONCAT('DROP SERVICE ', name) FROM sys.services", "built by string concatenation"),
    ],
)
def test_a_statement_that_is_shown_is_remarked_on(read: ReadText, text: str, why: str) -> None:
    (problem,) = read(text).problems
    assert why in problem.why
    assert problem.counted


@pytest.mark.parametrize(
    "text",
    [
        "EXEC sp_MSforeachdb 'USE [?]; ALTER DATABASE [?] SET ENABLE_BROKER'",
        f"EXEC master.sys.sp_MSforeachdb @command1 = N'USE [?] {ROUTE}', @replacechar = N'?'",
        f"EXEC @rc = sp_MSforeach_db 'PRINT 1', '?', 'USE [?] {ROUTE}'",
        f"sp_msforeachdb N'USE [?] {ROUTE}'",
        f"DECLARE @c nvarchar(max) = N'{ROUTE}' EXEC dbo.sp_ineachdb @command = @c",
        "EXEC dbo.sp_foreachdb @unknown",
    ],
)
def test_a_text_that_runs_in_every_database(read: ReadText, text: str) -> None:
    script = read(f"{_declare(text)}{text}\nDROP ROUTE last_one")
    assert [statement.name for statement in script.statements] == ["last_one"]
    (problem,) = script.problems
    assert problem.why.endswith(": it runs in every database, and only the server knows which those are")
    assert not problem.counted


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
def test_texts_that_are_not_about_routing_are_ignored(read: ReadText, text: str) -> None:
    script = read(f"{_declare(text)}\n{text}\nDROP ROUTE last_one")
    assert [statement.name for statement in script.statements] == ["last_one"]
    assert script.problems == ()


def test_a_condition_applies_to_the_text_of_exec(read: ReadText) -> None:
    script = read(f"IF DB_ID('x') IS NOT NULL EXEC('USE x {ROUTE}')")
    (statement,) = script.statements
    assert statement.database == "x"
    assert statement.name == "r"


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
    (statement,) = script.statements
    assert (statement.name, statement.line, statement.database) == ("to stock", 2, "shop")
    assert isinstance(statement, CreateRoute)
    assert statement.options.address == "TCP://h:4022"
    assert statement.options.lifetime_seconds == 60
    assert [(problem.line, problem.counted) for problem in script.problems] == [
        *[(1, True), (2, True), (2, True), (2, True), (2, True), (2, True)],
        *[(4, False), (5, False), (7, False)],
    ]
