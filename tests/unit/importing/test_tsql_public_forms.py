"""Scripts in the forms of tools and administrators: their routes and their rejected statements.

Each is applied to an instance HUB with the route ToCash in its database Sales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from routing.importing.tsql.instance_state import DatabaseState, EndpointState, InstanceState, RouteState
from routing.importing.tsql.script_reader import ReadScript, apply_script

ReadText = Callable[..., ReadScript]

CASH = ("ToCash", "TCP://cash:4022")
STOCK = ("ToStock", "TCP://stock:4022")
BEFORE = InstanceState(
    routes=(RouteState("Sales", *CASH),),
    databases=(DatabaseState("Sales", "00000000-0000-0000-0000-000000000001", False),),
    endpoint=EndpointState(),
)


@dataclass(frozen=True)
class _Form:
    """A script, the routes of Sales afterwards, and line and part of the reason of each rejected statement."""

    script: str
    routes: list[tuple[str, str]]
    rejected: list[tuple[int, str]] = field(default_factory=list)


CREATE_STOCK = "CREATE ROUTE ToStock WITH ADDRESS = 'TCP://stock:4022'"
CREATE_NAMED = "CREATE ROUTE [' + @name + '] WITH ADDRESS = ''TCP://stock:4022''"

FORMS = {
    "SSMS: Script Route as > DROP And CREATE To": _Form(
        """USE [Sales]
GO

/****** Object:  ServiceRoute [ToCash]    Script Date: 5/1/2024 10:15:00 AM ******/
DROP ROUTE [ToCash]
GO

/****** Object:  ServiceRoute [ToCash]    Script Date: 5/1/2024 10:15:00 AM ******/
CREATE ROUTE [ToCash]   AUTHORIZATION [dbo]   WITH  SERVICE_NAME  = N'//cash' ,  """
        """BROKER_INSTANCE  = N'1F5DB6A9-20FA-4114-BFD9-35FE8B8BE40B' ,  ADDRESS  = N'TCP://cash2:4022'
GO
""",
        [("ToCash", "TCP://cash2:4022")],
    ),
    "SSDT: setvar, on error exit, the check for SQLCMD mode, options of the database": _Form(
        """/*
Deployment script for Sales
*/

GO
SET ANSI_NULLS, ANSI_PADDING, ANSI_WARNINGS, ARITHABORT, CONCAT_NULL_YIELDS_NULL, QUOTED_IDENTIFIER ON;

SET NUMERIC_ROUNDABORT OFF;


GO
:setvar DatabaseName "Sales"
:setvar DefaultDataPath "D:\\Data\\"

GO
:on error exit
GO
:setvar __IsSqlCmdEnabled "True"
GO
IF N'$(__IsSqlCmdEnabled)' NOT LIKE N'True'
    BEGIN
        PRINT N'SQLCMD mode must be enabled to successfully execute this script.';
        SET NOEXEC ON;
    END


GO
USE [$(DatabaseName)];


GO
IF EXISTS (SELECT 1
           FROM   [master].[dbo].[sysdatabases]
           WHERE  [name] = N'$(DatabaseName)')
    BEGIN
        ALTER DATABASE [$(DatabaseName)]
            SET ENABLE_BROKER WITH ROLLBACK IMMEDIATE;
    END


GO
PRINT N'Creating Route [ToStock]...';


GO
CREATE ROUTE [ToStock]
    AUTHORIZATION [dbo]
    WITH SERVICE_NAME = N'//stock', ADDRESS = N'TCP://stock:4022';


GO
PRINT N'Update complete.';


GO
""",
        [CASH, STOCK],
    ),
    "SSDT with transactions: #tmpErrors, made once it is needed": _Form(
        """:on error exit
GO
USE [Sales];
GO
BEGIN TRANSACTION
GO
PRINT N'Creating Route [ToStock]...';
GO
CREATE ROUTE [ToStock]
    AUTHORIZATION [dbo]
    WITH ADDRESS = N'TCP://stock:4022';
GO
IF @@ERROR <> 0
   AND @@TRANCOUNT > 0
    BEGIN
        ROLLBACK;
    END

IF OBJECT_ID(N'tempdb..#tmpErrors') IS NULL
    CREATE TABLE [#tmpErrors] (
        Error INT
    );

IF @@TRANCOUNT = 0
    BEGIN
        INSERT  INTO #tmpErrors (Error)
        VALUES                 (1);
        BEGIN TRANSACTION;
    END
GO
IF EXISTS (SELECT * FROM #tmpErrors) ROLLBACK TRANSACTION
GO
IF @@TRANCOUNT>0 BEGIN
PRINT N'The transacted portion of the database update succeeded.'
COMMIT TRANSACTION
END
ELSE PRINT N'The transacted portion of the database update failed.'
GO
IF (SELECT OBJECT_ID('tempdb..#tmpErrors')) IS NOT NULL DROP TABLE #tmpErrors
GO
""",
        [CASH, STOCK],
    ),
    "a comparison tool: a transaction and #tmpErrors around all": _Form(
        """USE [Sales]
GO
IF EXISTS (SELECT * FROM tempdb..sysobjects WHERE id=OBJECT_ID('tempdb..#tmpErrors')) DROP TABLE #tmpErrors
GO
CREATE TABLE #tmpErrors (Error int)
GO
SET XACT_ABORT ON
GO
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
GO
BEGIN TRANSACTION
GO
PRINT N'Dropping route [ToCash]'
GO
DROP ROUTE [ToCash]
GO
IF @@ERROR<>0 AND @@TRANCOUNT>0 ROLLBACK TRANSACTION
GO
IF @@TRANCOUNT=0 BEGIN INSERT INTO #tmpErrors (Error) SELECT 1 BEGIN TRANSACTION END
GO
CREATE ROUTE [ToStock] WITH SERVICE_NAME = N'//stock', ADDRESS = N'TCP://stock:4022'
GO
IF @@ERROR<>0 AND @@TRANCOUNT>0 ROLLBACK TRANSACTION
GO
IF @@TRANCOUNT=0 BEGIN INSERT INTO #tmpErrors (Error) SELECT 1 BEGIN TRANSACTION END
GO
IF EXISTS (SELECT * FROM #tmpErrors) ROLLBACK TRANSACTION
GO
IF @@TRANCOUNT>0 BEGIN
PRINT 'The database update succeeded'
COMMIT TRANSACTION
END
ELSE PRINT 'The database update failed'
GO
DROP TABLE #tmpErrors
GO
""",
        [STOCK],
    ),
    "a comparison tool: SET NOEXEC ON after each error": _Form(
        """USE [Sales]
GO
SET NUMERIC_ROUNDABORT OFF
GO
SET XACT_ABORT ON
GO
BEGIN TRANSACTION
GO
IF @@ERROR <> 0 SET NOEXEC ON
GO
PRINT N'Altering [ToCash]'
GO
ALTER ROUTE [ToCash] WITH ADDRESS = N'TCP://cash2:4022'
GO
IF @@ERROR <> 0 SET NOEXEC ON
GO
CREATE ROUTE [ToStock] WITH ADDRESS = N'TCP://stock:4022'
GO
IF @@ERROR <> 0 SET NOEXEC ON
GO
COMMIT TRANSACTION
GO
IF @@ERROR <> 0 SET NOEXEC ON
GO
IF HAS_PERMS_BY_NAME(N'sys.xp_logevent', N'OBJECT', N'EXECUTE') = 1
BEGIN
    DECLARE @databaseName AS nvarchar(2048), @eventMessage AS nvarchar(2048)
    SET @databaseName = REPLACE(REPLACE(DB_NAME(), N'\\', N'\\\\'), N'"', N'\\"')
    SET @eventMessage = N'compare: { "deployment": { "database": "' + @databaseName + N'" }}'
    EXECUTE sys.xp_logevent 55000, @eventMessage
END
GO
DECLARE @Success AS BIT
SET @Success = 1
SET NOEXEC OFF
IF (@Success = 1) PRINT 'The database update succeeded'
ELSE BEGIN
	IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION
	PRINT 'The database update failed'
END
GO
""",
        [("ToCash", "TCP://cash2:4022"), STOCK],
    ),
    "@@ERROR after each statement": _Form(
        """USE Sales
BEGIN TRANSACTION
DROP ROUTE ToCash
IF @@ERROR <> 0
BEGIN
    RAISERROR('Route ToCash could not be dropped.', 16, 1)
    ROLLBACK TRANSACTION
    RETURN
END
CREATE ROUTE ToStock WITH ADDRESS = 'TCP://stock:4022'
IF (@@ERROR = 0) COMMIT TRANSACTION ELSE ROLLBACK TRANSACTION
GO
""",
        [STOCK],
    ),
    "@@ERROR kept in a variable, and a GOTO": _Form(
        """USE Sales
DECLARE @err int
CREATE ROUTE ToStock WITH ADDRESS = 'TCP://stock:4022'
SELECT @err = @@ERROR
IF @err <> 0 GOTO failed
DROP ROUTE ToCash
RETURN
failed:
    DROP ROUTE ToStock
""",
        [STOCK],
        [(9, "DROP ROUTE 'ToStock'")],
    ),
    "DB_NAME() guards the script": _Form(
        """USE Sales
GO
IF DB_NAME() <> N'Sales'
BEGIN
    RAISERROR(N'This script is for Sales.', 16, 1);
    SET NOEXEC ON;
END
GO
CREATE ROUTE ToStock WITH ADDRESS = 'TCP://stock:4022'
GO
SET NOEXEC OFF
GO
""",
        [CASH, STOCK],
    ),
    "DB_NAME() guards a statement": _Form(
        """USE Sales
IF DB_NAME() = 'master'
    DROP ROUTE ToCash
IF DB_NAME() = 'Sales'
    CREATE ROUTE ToStock WITH ADDRESS = 'TCP://stock:4022'
ELSE
    PRINT 'This script is for Sales.'
""",
        [CASH, STOCK],
        [(3, "does not hold")],
    ),
    "DB_NAME() finds another database, and the script leaves": _Form(
        """USE Sales
GO
IF DB_NAME() = N'Sales' RETURN
CREATE ROUTE ToStock WITH ADDRESS = 'TCP://stock:4022'
GO
""",
        [CASH],
        [(4, "RETURN in line 3")],
    ),
    ":connect first": _Form(
        f""":connect HUB
USE Sales
GO
{CREATE_STOCK}
GO
:connect SPOKE
USE Sales
DROP ROUTE ToCash
GO
""",
        [CASH, STOCK],
        [(8, "'SPOKE'")],
    ),
    ":connect without GO takes the batch before it along": _Form(
        f""":connect SPOKE
USE Sales
DROP ROUTE ToCash
:connect HUB
USE Sales
{CREATE_STOCK}
""",
        [STOCK],
    ),
    "a text that its variable cuts off in the middle of a string": _Form(
        f"""USE Sales
DECLARE @sql varchar(40)
SET @sql = '{CREATE_STOCK.replace("'", "''")}'
EXEC (@sql)
GO
DROP ROUTE ToCash
""",
        [],
        [(4, "the text ends inside a string"), (4, "ToStock")],
    ),
    "a name that its variable cuts off": _Form(
        f"""USE Sales
DECLARE @name nvarchar(5) = N'ToStock'
DECLARE @sql nvarchar(max) = '{CREATE_NAMED}'
EXEC (@sql)
""",
        [CASH, ("ToSto", "TCP://stock:4022")],
    ),
    "a name that is NULL": _Form(
        f"""USE Sales
DECLARE @name sysname
EXEC ('{CREATE_NAMED}')
GO
DECLARE @sql nvarchar(max)
EXEC sp_executesql @sql
""",
        [CASH],
        [(3, "EXEC"), (6, "EXEC")],
    ),
    "GO in a string and in a comment": _Form(
        f"""USE Sales
PRINT 'first
GO
second'
{CREATE_STOCK}
/*
GO
*/
DROP ROUTE [ToCash]
GO
""",
        [STOCK],
    ),
    "GO in the text of an EXEC, which the server does not know": _Form(
        f"""USE Sales
EXEC('{CREATE_STOCK.replace("'", "''")}
GO
')
""",
        [CASH],
        [(2, "'GO'")],
    ),
    "no-break and wide blanks, line and paragraph separators between words": _Form(
        "USE\u00a0Sales\u2028CREATE\u00a0ROUTE\u2003ToStock\u00a0WITH\u2028ADDRESS\u3000=\u00a0'TCP://stock:4022'\n"
        "GO\u00a0\nDROP ROUTE\u2029ToCash\u0085CREATE ROUTE [To\u00a0Bank] WITH ADDRESS = 'LOCAL'",
        [STOCK, ("To\u00a0Bank", "LOCAL")],
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_script_in_a_public_form(read: ReadText, form: _Form) -> None:
    script = read(form.script, database="master", instance="HUB")
    result = apply_script(BEFORE, script)
    routes = [(route.name, route.address) for route in result.state.routes if route.database_name == "Sales"]
    assert sorted(routes) == sorted(form.routes)
    assert len(result.state.routes) == len(form.routes)
    rejected = [problem for problem in result.problems if not problem.counted]
    assert [problem.line for problem in rejected] == [line for line, _ in form.rejected]
    for problem, (_, part) in zip(rejected, form.rejected, strict=True):
        assert part in problem.why


BROKER = "FOR SERVICE_BROKER (AUTHENTICATION = WINDOWS, MESSAGE_FORWARDING = ENABLED)"


@pytest.mark.parametrize(
    ("clauses", "is_started"),
    [
        (f"AUTHORIZATION [sa] STATE = STARTED AS TCP (LISTENER_PORT = 4022) {BROKER}", True),
        (f"STATE = STARTED AUTHORIZATION sa AS TCP (LISTENER_PORT = 4022, LISTENER_IP = ALL) {BROKER}", True),
        (f"AS TCP (LISTENER_PORT = 4022) {BROKER} STATE = STARTED", True),
        (f"{BROKER} AS TCP (LISTENER_PORT = 4022) STATE = STOPPED", False),
        (f"AS TCP (LISTENER_IP = ALL LISTENER_PORT = 4022) {BROKER}", False),
    ],
)
def test_the_clauses_of_an_endpoint_have_either_order(read: ReadText, clauses: str, is_started: bool) -> None:
    script = read(f"CREATE ENDPOINT Broker\n{clauses}\nGO\n")
    assert script.problems == ()
    result = apply_script(InstanceState(), script)
    assert result.state.endpoint == EndpointState("Broker", True)
    assert [problem.why.partition(";")[0] for problem in result.problems] == (
        [] if is_started else ["CREATE ENDPOINT 'Broker': it becomes STOPPED"]
    )
