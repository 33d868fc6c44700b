"""Constants in variables: texts that are run by EXEC, arguments, and conditions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from routing.importing.tsql.script_reader import ReadScript
from routing.importing.tsql.script_statements import CreateRoute, DetachDatabase

ReadText = Callable[..., ReadScript]
ROUTE = "CREATE ROUTE r WITH ADDRESS = ''LOCAL''"
MAX = "DECLARE @x int, @sql nvarchar(max)"


@pytest.mark.parametrize(
    "text",
    [
        f"{MAX} = N'{ROUTE}'; EXEC sp_executesql @sql",
        f"{MAX}; SET @sql = N'{ROUTE}'; EXEC (@sql)",
        f"{MAX}\nSELECT @SQL = N'{ROUTE}'\nEXECUTE sys.sp_executesql @stmt = @Sql",
        f"{MAX} = N'CREATE ROUTE r' + N' WITH ADDRESS = ' + '''LOCAL''' EXEC(@sql)",
        f"{MAX} = N''; SET @sql += N'CREATE ROUTE r'; SET @sql = @sql + N' WITH ADDRESS = ''LOCAL'''; EXEC(@sql)",
        """DECLARE @name sysname = N'r', @at AS varchar(10) = 'LOCAL'
        EXEC('CREATE ROUTE ' + @name + ' WITH ADDRESS = ''' + @at + '''')""",
        """DECLARE @sql nvarchar(max), @name sysname
        SELECT @name = 'r',
            @sql = N'CREATE ROUTE ' + QUOTENAME(@name) + N' WITH ADDRESS = ' + QUOTENAME('LOCAL', '''')
        EXEC sp_executesql @sql, N'@x int', @x = 1""",
        f"{MAX} = N'USE ' + QUOTENAME(DB_NAME()) + CHAR(13) + NCHAR(10) + (N'{ROUTE}') EXEC(@sql)",
        f"{MAX} = CONCAT(N'CREATE ROUTE r WITH ADDRESS =', CHAR(39), 'LOCAL', CHAR(39)); EXEC(@sql)",
        f"IF 1 = 1 BEGIN {MAX} = N'{ROUTE}'; PRINT @sql; SELECT @sql; EXEC(@sql) END",
        f"DECLARE @rc int; {MAX} = N'{ROUTE}'; EXEC @rc = sp_executesql @sql; IF @rc <> 0 PRINT 'x'",
    ],
)
def test_a_text_of_constants_is_read(read: ReadText, text: str) -> None:
    script = read(text)
    (statement,) = script.statements
    assert isinstance(statement, CreateRoute)
    assert (statement.name, statement.database, statement.options.address) == ("r", "db", "LOCAL")
    assert script.problems == ()


def test_an_address_of_a_host_and_a_port(read: ReadText) -> None:
    script = read(
        """DECLARE @host nvarchar(50) = N'stock.example', @port int = 4022
        DECLARE @sql nvarchar(max) = N'CREATE ROUTE r WITH ADDRESS = ''TCP://' + @host + N':'
            + CAST(@port AS nvarchar(10)) + N''''
        EXEC sp_executesql @sql"""
    )
    (statement,) = script.statements
    assert isinstance(statement, CreateRoute)
    assert statement.options.address == "TCP://stock.example:4022"


@pytest.mark.parametrize(
    "text",
    [
        # Never given a value, given one by the server, or by a way that is not followed.
        f"{MAX}; EXEC(@sql)",
        f"{MAX} = @x; EXEC(@sql)",
        f"{MAX} = N'{ROUTE}' + @@SERVERNAME; EXEC(@sql)",
        f"{MAX} = REPLACE(N'{ROUTE}', 'r', 'q'); EXEC(@sql)",
        f"{MAX} = N'{ROUTE}'; SELECT @sql = name FROM t; EXEC(@sql)",
        f"{MAX} = N'{ROUTE}'; SELECT @sql = N'DROP ROUTE r' WHERE 1 = 0; EXEC(@sql)",
        f"{MAX} = N'{ROUTE}'; UPDATE t SET @sql = c; EXEC(@sql)",
        f"{MAX} = N'{ROUTE}'; FETCH NEXT FROM c INTO @x, @sql; EXEC(@sql)",
        f"{MAX} = N'{ROUTE}'; EXEC p @sql OUTPUT; EXEC(@sql)",
        f"{MAX} = N'{ROUTE}'; EXEC @sql = p; EXEC(@sql)",
        f"{MAX} = N'{ROUTE}'; IF @x = 1 SET @sql = N'DROP ROUTE q'; EXEC(@sql)",
        f"{MAX} = N'{ROUTE}'; IF DB_ID('x') IS NULL SET @sql = N'DROP ROUTE q'; EXEC(@sql)",
        f"{MAX} = N'{ROUTE}'; WHILE @x = 1 SET @sql = N'DROP ROUTE q'; EXEC(@sql)",
        f"{MAX} = N'{ROUTE}'; again: EXEC(@sql) SET @sql = N'DROP ROUTE q' IF @x = 1 GOTO again",
        f"DECLARE @sql char(100) = '{ROUTE}'; EXEC(@sql)",
        f"DECLARE @sql varchar(100) = N'{ROUTE} -- Größe'; EXEC(@sql)",
        # Cut at 4,000 characters by the server, since neither part is a (max).
        f"{MAX} = N'{ROUTE}' + N'{'-' * 3990}'; EXEC(@sql)",
    ],
)
def test_a_value_that_is_not_known_is_reported(read: ReadText, text: str) -> None:
    script = read(text)
    assert script.statements == ()
    assert any("EXEC of a variable" in problem.why for problem in script.problems)


def test_long_texts_are_known_where_the_variable_is_long(read: ReadText) -> None:
    script = read(f"{MAX} = N'{ROUTE}'; SET @sql += N'{' ' * 3990}'; SET @sql = @sql + N'--'; EXEC(@sql)")
    assert [statement.name for statement in script.statements] == ["r"]


def test_a_text_is_cut_to_its_variable(read: ReadText) -> None:
    script = read("DECLARE @sql nvarchar(12) = N'DROP ROUTE abc'; EXEC(@sql)\nDECLARE @s varchar = 'x'; EXEC(@s)")
    assert [statement.name for statement in script.statements] == ["a"]


def test_variables_that_double_come_to_an_end(read: ReadText) -> None:
    script = read("DECLARE @s nvarchar(max) = N'DROP ROUTE a '\n" + "SET @s = @s + @s\n" * 60 + "EXEC(@s)")
    assert script.statements == ()
    assert any("have more than 2000000 characters" in problem.why for problem in script.problems)


@pytest.mark.parametrize(
    "text",
    [
        f"{MAX} = N'{ROUTE}'",
        f"{MAX} = N'{ROUTE}'; EXEC msdb.dbo.sp_add_jobstep @command = @sql",
        f"{MAX} = N'CREATE ROUTE r'; SET @sql += N' WITH ADDRESS = ''LOCAL'''",
        f"{MAX} = N'{ROUTE}'; PRINT @sql; EXEC p @sql",
        f"{MAX} = N'SELECT 1'; EXEC(@sql) SET @sql += N';{ROUTE}'",
    ],
)
def test_a_text_that_is_not_run_is_reported_once(read: ReadText, text: str) -> None:
    script = read(text)
    assert script.statements == ()
    assert [(problem.line, problem.why) for problem in script.problems] == [
        (1, "a statement in a text that does not run here")
    ]


def test_sp_executesql_refuses_other_types_than_nvarchar(read: ReadText) -> None:
    script = read(f"DECLARE @sql varchar(max) = '{ROUTE}'\nEXEC sp_executesql @sql")
    assert script.statements == ()
    assert {(problem.line, problem.number) for problem in script.problems} == {(1, None), (2, 214)}


def test_a_variable_set_and_used_under_one_condition_is_known(read: ReadText) -> None:
    script = read(f"{MAX}; IF DB_ID('x') IS NOT NULL BEGIN SET @sql = N'{ROUTE}'; EXEC(@sql) END")
    (statement,) = script.statements
    assert statement.name == "r"


def test_arguments_and_conditions_of_constants(read: ReadText) -> None:
    script = read(
        """DECLARE @db sysname = N'shop', @enable bit = 1
        IF EXISTS (SELECT * FROM sys.databases WHERE name = @db) EXEC master.dbo.sp_detach_db @dbname = @db
        IF @enable = 1 DROP ROUTE a ELSE DROP ROUTE b"""
    )
    detached, dropped = script.statements
    assert isinstance(detached, DetachDatabase)
    assert detached.name == "shop"
    assert dropped.name == "a"
