"""The effects of a script with failing statements, transactions, connections and procedures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from routing.importing.tsql.instance_state import DatabaseState, EndpointState, InstanceState, RouteState
from routing.importing.tsql.script_reader import ReadScript, apply_script

ReadText = Callable[..., ReadScript]
STATE = InstanceState(
    routes=(RouteState("D", "old", "TCP://old:4022", remote_service_name="s"),),
    databases=(DatabaseState("D", None), DatabaseState("Other", None)),
    endpoint=EndpointState(),
)
OLD = ("old", "TCP://old:4022")
BAD = "CREATE ROUTE bad WITH ADDRESS = 'nonsense'"
TWICE = "CREATE ROUTE old WITH ADDRESS = 'LOCAL'"


def make(name: str) -> str:
    return f"CREATE ROUTE {name} WITH ADDRESS = 'LOCAL'"


A, B, C = make("a"), make("b"), make("c")


def run(read: ReadText, text: str, state: InstanceState = STATE) -> tuple[set[str], list[tuple[int, int | None]]]:
    """Return the routes that a script adds in D, and the line and number of refused statements."""
    script = read(text, database="D", instance="X")
    applied = apply_script(state, script)
    names = {route.name for route in applied.state.routes if route.database_name == "D"}
    route_names = {route.name for route in state.routes}
    return names - route_names, [
        (problem.line, problem.number) for problem in applied.problems if problem.number is not None
    ]


STEERING = {
    "the next statement runs": (f"{BAD}\n{A}", {"a"}, [(1, 9744)]),
    "a refusal leaves its TRY": (
        f"BEGIN TRY\n{BAD}\n{A}\nEND TRY\nBEGIN CATCH\n{B}\nEND CATCH\n{C}",
        {"b", "c"},
        [(2, 9744)],
    ),
    "a name that is taken leaves its TRY": (
        f"BEGIN TRY\n{TWICE}\n{A}\nEND TRY BEGIN CATCH {B} END CATCH",
        {"b"},
        [(2, 15530)],
    ),
    "a name that is missing leaves its TRY": (
        f"BEGIN TRY\nDROP ROUTE none\n{A}\nEND TRY BEGIN CATCH {B} END CATCH",
        {"b"},
        [(2, 15151)],
    ),
    "a database that is missing leaves its TRY": (
        f"BEGIN TRY\nDROP DATABASE none\n{A}\nEND TRY BEGIN CATCH {B} END CATCH",
        {"b"},
        [(2, 3701)],
    ),
    "the innermost TRY catches": (
        f"BEGIN TRY BEGIN TRY\n{BAD}\nEND TRY BEGIN CATCH {A} END CATCH {B} END TRY BEGIN CATCH {C} END CATCH",
        {"a", "b"},
        [(2, 9744)],
    ),
    "what fails in a CATCH goes to the TRY around it": (
        (
            f"BEGIN TRY BEGIN TRY\n{BAD}\nEND TRY BEGIN CATCH\n{TWICE}\n{A} END CATCH {B} END TRY\n"
            f"BEGIN CATCH {C} END CATCH"
        ),
        {"c"},
        [(2, 9744), (4, 15530)],
    ),
    "THROW passes the error on": (
        f"BEGIN TRY BEGIN TRY\n{BAD}\nEND TRY BEGIN CATCH THROW END CATCH {B} END TRY BEGIN CATCH {C} END CATCH",
        {"c"},
        [(2, 9744)],
    ),
    "THROW in a CATCH ends the batch": (
        f"BEGIN TRY\n{BAD}\nEND TRY BEGIN CATCH THROW; END CATCH {A}\nGO\n{B}",
        {"b"},
        [(2, 9744)],
    ),
    "RAISERROR of severity 16 leaves a TRY": (
        f"BEGIN TRY RAISERROR('x', 16, 1) {A} END TRY BEGIN CATCH {B} END CATCH",
        {"b"},
        [],
    ),
    "RAISERROR of severity 10 leaves none": (
        f"BEGIN TRY RAISERROR('x', 10, 1) {A} END TRY BEGIN CATCH {B} END CATCH",
        {"a"},
        [],
    ),
    "RAISERROR of a severity that a variable holds": (
        f"DECLARE @s int = 11 BEGIN TRY RAISERROR('x', @s, 1) {A} END TRY BEGIN CATCH {B} END CATCH",
        {"b"},
        [],
    ),
    "RAISERROR outside a TRY ends nothing": (f"RAISERROR('x', 16, 1) {A}", {"a"}, []),
    "a text of EXEC fails in the TRY around it": (
        (
            f"BEGIN TRY EXEC('{BAD.replace(chr(39), chr(39) * 2)} CREATE ROUTE x WITH ADDRESS = ''LOCAL''')\n"
            f"{A} END TRY BEGIN CATCH {B} END CATCH"
        ),
        {"b"},
        [(1, 9744)],
    ),
    "a text of EXEC that cannot be parsed fails alone": (
        f"EXEC('SELECT (1')\n{A}",
        {"a"},
        [(1, 102)],
    ),
    "a text of EXEC that cannot be parsed leaves a TRY": (
        f"BEGIN TRY EXEC('SELECT (1')\n{A} END TRY BEGIN CATCH {B} END CATCH",
        {"b"},
        [(1, 102)],
    ),
    "variables end where a text of EXEC begins": (
        f"DECLARE @x int EXEC('SELECT @x CREATE ROUTE r WITH ADDRESS = ''LOCAL''')\n{A}",
        {"a"},
        [(1, 137)],
    ),
    "sp_executesql has parameters": (
        (
            "DECLARE @n sysname = 'LOCAL' EXEC sp_executesql N'DECLARE @q nvarchar(99) = N''CREATE ROUTE r WITH "
            "ADDRESS = '''''' + @p + '''''''' EXEC(@q)', N'@p sysname', @p = @n"
        ),
        {"r"},
        [],
    ),
    "of several databases one is missing": (
        f"DROP DATABASE none, Other\nIF DB_ID('Other') IS NULL {A}",
        {"a"},
        [(1, 3701)],
    ),
    "@@ERROR after a refusal": (f"{BAD}\nIF @@ERROR <> 0 {A} ELSE {B}", {"a"}, [(1, 9744)]),
    "@@ERROR after a statement that succeeds": (f"{C}\nIF @@ERROR <> 0 {A} ELSE {B}", {"b", "c"}, []),
    "@@ERROR is that of the statement before alone": (
        f"{BAD}\nPRINT 'x'\nIF @@ERROR <> 0 {A}",
        set(),
        [(1, 9744)],
    ),
    "@@ERROR in a variable": (
        f"DECLARE @e int\n{BAD}\nSET @e = @@ERROR\nIF @e <> 0 {A} ELSE {B}",
        {"a"},
        [(2, 9744)],
    ),
    "@@ERROR by its number": (f"{BAD}\nIF @@ERROR = 9744 {A} ELSE {B}", {"a"}, [(1, 9744)]),
    "@@ERROR in the next batch": (f"{BAD}\nGO\nIF @@ERROR <> 0 SET NOEXEC ON\nGO\n{A}", set(), [(1, 9744)]),
    "@@ERROR after a batch that cannot be parsed": (
        f"SELECT (1\nGO\nIF @@ERROR <> 0 {A}",
        {"a"},
        [(1, 102)],
    ),
    "ERROR_NUMBER() in a CATCH": (
        f"BEGIN TRY\n{TWICE}\nEND TRY BEGIN CATCH IF ERROR_NUMBER() = 15530 {A} ELSE {B} END CATCH",
        {"a"},
        [(2, 15530)],
    ),
    "XACT_ABORT ends the batch": (f"SET XACT_ABORT ON\n{BAD}\n{A}\nGO\n{B}", {"b"}, [(2, 9744)]),
    "XACT_ABORT in a list of options": (f"SET NOCOUNT, XACT_ABORT ON\n{BAD}\n{A}", set(), [(2, 9744)]),
    "XACT_ABORT OFF again": (f"SET XACT_ABORT ON SET XACT_ABORT OFF\n{BAD}\n{A}", {"a"}, [(2, 9744)]),
    "XACT_ABORT lasts from batch to batch": (f"SET XACT_ABORT ON\nGO\n{BAD}\n{A}", set(), [(3, 9744)]),
    "XACT_ABORT rolls the transaction back": (
        f"SET XACT_ABORT ON BEGIN TRAN {A}\n{BAD}\n{B} COMMIT\nGO\n{C}",
        {"c"},
        [(2, 9744)],
    ),
    "XACT_ABORT leaves RAISERROR alone": (f"SET XACT_ABORT ON RAISERROR('x', 16, 1) {A}", {"a"}, []),
    "XACT_ABORT set in a text of EXEC ends with it": (
        f"EXEC('SET XACT_ABORT ON')\n{BAD}\n{A}",
        {"a"},
        [(2, 9744)],
    ),
    "a doomed transaction can only be rolled back": (
        f"SET XACT_ABORT ON BEGIN TRY BEGIN TRAN {A}\n{BAD}\nEND TRY BEGIN CATCH\n{B}\n{C} END CATCH",
        set(),
        [(2, 9744), (4, 3930)],
    ),
    "a doomed transaction is rolled back": (
        (
            f"SET XACT_ABORT ON BEGIN TRY BEGIN TRAN {A}\n{BAD}\nEND TRY BEGIN CATCH\n"
            f"IF XACT_STATE() = -1 ROLLBACK {C} END CATCH"
        ),
        {"c"},
        [(2, 9744)],
    ),
    "a doomed transaction ends with its batch": (
        f"SET XACT_ABORT ON BEGIN TRY BEGIN TRAN {A}\n{BAD}\nEND TRY BEGIN CATCH PRINT 'x' END CATCH\nGO\n{B}",
        {"b"},
        [(2, 9744)],
    ),
    "on error exit ends the script after the batch": (
        f":on error exit\n{BAD}\n{A}\nGO\n{B}",
        {"a"},
        [(2, 9744)],
    ),
    "on error exit, where a CATCH takes the error": (
        f":on error exit\nBEGIN TRY\n{BAD}\nEND TRY BEGIN CATCH PRINT 'x' END CATCH\nGO\n{B}",
        {"b"},
        [(3, 9744)],
    ),
    "on error exit, by RAISERROR": (f":on error exit\nRAISERROR('x', 16, 1)\nGO\n{B}", set(), []),
    "WITH ROLLBACK of an option is no statement": (
        f":on error exit\nALTER DATABASE D SET ANSI_NULLS ON, ANSI_PADDING ON WITH ROLLBACK IMMEDIATE\nGO\n{B}",
        {"b"},
        [],
    ),
    "WITH ROLLBACK of a filegroup is no statement": (
        f":on error exit\nALTER DATABASE D MODIFY FILEGROUP f READ_ONLY WITH ROLLBACK AFTER 5\nGO\n{B}",
        {"b"},
        [],
    ),
    "on error exit, by a message": (f":on error exit\nRAISERROR('x', 10, 1)\nGO\n{B}", {"b"}, []),
    "on error exit, by a variable of another batch": (
        f":on error exit\nDECLARE @a int\nGO\nPRINT @a\nGO\n{B}",
        set(),
        [(4, 137)],
    ),
}


@pytest.mark.parametrize("form", STEERING)
def test_a_refusal_affects_later_statements(read: ReadText, form: str) -> None:
    text, routes, refused = STEERING[form]
    assert run(read, text) == (routes, refused)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("DROP ROUTE none", "it is unknown whether the database 'D' has such a route"),
        ("DROP SERVICE none", "it is unknown whether the database 'D' has such a service"),
        ("DROP DATABASE none", "it is unknown whether the instance has such a database"),
        ("EXEC sp_detach_db 'none'", "it is unknown whether the instance has such a database"),
        ("ALTER ROUTE none WITH ADDRESS = 'LOCAL'", "no such route is known"),
        ("ALTER DATABASE none SET ENABLE_BROKER", "no such database is known"),
        ("ALTER ENDPOINT none AS TCP (LISTENER_PORT = 4022)", "whether it is the SERVICE_BROKER endpoint"),
        ("DROP ENDPOINT none", "whether it is the SERVICE_BROKER endpoint"),
    ],
)
def test_statements_on_unknown_objects_succeed(read: ReadText, text: str, note: str) -> None:
    script = read(f"BEGIN TRY\n{text}\n{A}\nEND TRY BEGIN CATCH {B} END CATCH", database="D")
    applied = apply_script(InstanceState(endpoint=EndpointState()), script)
    assert {route.name for route in applied.state.routes} == {"a"}
    assert [problem.number for problem in applied.problems] == [None, None]
    assert note in applied.problems[0].why


def test_earlier_statements_of_the_script_can_cause_a_refusal(read: ReadText) -> None:
    script = read(
        f"{A}\n{A}\nDROP ROUTE a\nDROP ROUTE a\nDROP ROUTE z\nDROP ROUTE z\nDROP DATABASE N\nDROP DATABASE N\n"
        "CREATE DATABASE M\nGO\nUSE M DROP ROUTE none",
        database="D",
    )
    applied = apply_script(InstanceState(), script)
    assert [(problem.line, problem.number) for problem in applied.problems if not problem.counted] == [
        (2, 15530),
        (4, 15151),
        (6, 15151),
        (8, 3701),
        (11, 15151),
    ]


TRANSACTIONS = {
    "COMMIT": (f"BEGIN TRAN {A} COMMIT", {"a"}, []),
    "ROLLBACK": (f"BEGIN TRAN {A} ROLLBACK {B}", {"b"}, []),
    "ROLLBACK of what was dropped": ("BEGIN TRAN DROP ROUTE old ROLLBACK", set(), []),
    "COMMIT of the inner one ends nothing": (f"BEGIN TRAN BEGIN TRAN {A} COMMIT ROLLBACK", set(), []),
    "both are committed": (f"BEGIN TRAN BEGIN TRAN {A} COMMIT COMMIT ROLLBACK", {"a"}, []),
    "ROLLBACK undoes all levels": (f"BEGIN TRAN {A} BEGIN TRAN {B} ROLLBACK {C}", {"c"}, []),
    "over batches": (f"BEGIN TRAN\nGO\n{A}\nGO\nROLLBACK\nGO\n{B}", {"b"}, []),
    "to a savepoint": (f"BEGIN TRAN {A} SAVE TRAN s {B} ROLLBACK TRAN s {C} COMMIT", {"a", "c"}, []),
    "to one of two savepoints": (
        f"BEGIN TRAN SAVE TRAN s {A} SAVE TRAN t {B} ROLLBACK TRAN s {C} COMMIT",
        {"c"},
        [],
    ),
    "to the newest savepoint of a name": (
        f"BEGIN TRAN SAVE TRAN s {A} SAVE TRAN s {B} ROLLBACK TRAN s COMMIT",
        {"a"},
        [],
    ),
    "to a savepoint that a variable names": (
        f"DECLARE @s char(1), @t varchar(9) = 's' BEGIN TRAN SAVE TRAN s {A} ROLLBACK TRAN @t COMMIT",
        set(),
        [],
    ),
    "by the name of the outermost": (f"BEGIN TRAN t {A} ROLLBACK TRAN t {B}", {"b"}, []),
    "by a name that is none": (f"BEGIN TRAN {A} ROLLBACK TRAN x COMMIT", {"a"}, []),
    "savepoint names tell case apart": (f"BEGIN TRAN SAVE TRAN s {A} ROLLBACK TRAN S COMMIT", {"a"}, []),
    "a ROLLBACK without a transaction leaves a TRY": (
        f"BEGIN TRY ROLLBACK {A} END TRY BEGIN CATCH {B} END CATCH",
        {"b"},
        [],
    ),
    "a COMMIT without a transaction leaves a TRY": (
        f"BEGIN TRY COMMIT {A} END TRY BEGIN CATCH {B} END CATCH",
        {"b"},
        [],
    ),
    "@@TRANCOUNT": (f"BEGIN TRAN {A} IF @@TRANCOUNT > 0 ROLLBACK IF @@TRANCOUNT = 0 {B}", {"b"}, []),
    "@@TRANCOUNT and @@ERROR": (
        f"BEGIN TRAN {A}\n{BAD}\nIF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK\nIF @@TRANCOUNT > 0 COMMIT",
        set(),
        [(2, 9744)],
    ),
    "the CATCH rolls back": (
        f"BEGIN TRY BEGIN TRAN {A}\n{BAD}\nCOMMIT END TRY BEGIN CATCH IF @@TRANCOUNT > 0 ROLLBACK {B} END CATCH",
        {"b"},
        [(2, 9744)],
    ),
    "XACT_STATE() where all went well": (
        f"BEGIN TRAN {A} IF XACT_STATE() = 1 COMMIT ELSE ROLLBACK",
        {"a"},
        [],
    ),
    "a transaction that is left open": (f"{A} BEGIN TRAN {B}", {"a"}, []),
    "implicit transactions": (f"SET IMPLICIT_TRANSACTIONS ON {A} COMMIT {B} ROLLBACK", {"a"}, []),
    "implicit transactions that are left open": (f"SET IMPLICIT_TRANSACTIONS ON {A}", set(), []),
    "implicit transactions, by ANSI_DEFAULTS": (f"SET ANSI_DEFAULTS ON {A} ROLLBACK", set(), []),
    "implicit transactions, off again": (
        f"SET IMPLICIT_TRANSACTIONS ON SET IMPLICIT_TRANSACTIONS OFF {A}",
        {"a"},
        [],
    ),
    "implicit transactions begun by data": (
        f"SET IMPLICIT_TRANSACTIONS ON INSERT t SELECT 1 {A} ROLLBACK",
        set(),
        [],
    ),
    "CREATE DATABASE": ("BEGIN TRAN\nCREATE DATABASE N\nCOMMIT", set(), [(2, 226)]),
    "ALTER DATABASE": ("BEGIN TRAN\nALTER DATABASE D SET DISABLE_BROKER\nCOMMIT", set(), [(2, 226)]),
    "ALTER DATABASE with another option": (
        (
            f"BEGIN TRY BEGIN TRAN\nALTER DATABASE D SET RECOVERY SIMPLE\n{A} COMMIT END TRY "
            f"BEGIN CATCH ROLLBACK {B} END CATCH"
        ),
        {"b"},
        [(2, 226)],
    ),
    "ALTER DATABASE SCOPED CONFIGURATION is allowed": (
        f"BEGIN TRAN ALTER DATABASE SCOPED CONFIGURATION SET MAXDOP = 1 {A} COMMIT",
        {"a"},
        [],
    ),
    "DROP DATABASE": ("BEGIN TRAN\nDROP DATABASE D\nCOMMIT", set(), [(2, 226)]),
    "sp_detach_db": ("BEGIN TRAN\nEXEC sp_detach_db 'D'\nCOMMIT", set(), [(2, 15002)]),
    "CREATE ENDPOINT": (
        "BEGIN TRAN\nCREATE ENDPOINT e AS TCP (LISTENER_PORT = 4022) FOR SERVICE_BROKER ()\nCOMMIT",
        set(),
        [(2, 574)],
    ),
    "ALTER ENDPOINT": ("BEGIN TRAN\nALTER ENDPOINT e STATE = STOPPED\nCOMMIT", set(), [(2, 574)]),
    "DROP ENDPOINT": ("BEGIN TRAN\nDROP ENDPOINT e\nCOMMIT", set(), [(2, 574)]),
    "after the transaction": ("BEGIN TRAN COMMIT\nALTER DATABASE D SET DISABLE_BROKER", set(), []),
    "an implicit one": (
        "SET IMPLICIT_TRANSACTIONS ON\nALTER DATABASE D SET DISABLE_BROKER",
        set(),
        [(2, 226)],
    ),
}


@pytest.mark.parametrize("form", TRANSACTIONS)
def test_transactions(read: ReadText, form: str) -> None:
    text, routes, refused = TRANSACTIONS[form]
    assert run(read, text) == (routes, refused)


def test_a_transaction_that_is_left_open_is_named(read: ReadText) -> None:
    applied = apply_script(STATE, read(f"BEGIN TRAN\n{A}", database="D"))
    (problem,) = applied.problems
    assert (problem.line, problem.counted) == (2, False)
    assert "sqlcmd rolls it back, SSMS leaves it open" in problem.why


def test_a_transaction_that_a_condition_commits_is_doubted(read: ReadText) -> None:
    applied = apply_script(STATE, read(f"BEGIN TRAN\n{A}\nIF @@SERVERNAME = 'x' COMMIT", database="D"))
    assert {route.name for route in applied.state.routes} == {"old", "a"}
    (problem,) = applied.problems
    assert (problem.line, problem.counted) == (2, True)
    assert "it counts only if the COMMIT in line 3 runs" in problem.why


CONNECTIONS = {
    "severity 20 ends the connection": (f"RAISERROR('x', 20, 1) WITH LOG\nGO\n{A}", set(), []),
    "severity 25, with other options": (f"RAISERROR('x', 25, 1) WITH NOWAIT, LOG {A}\nGO\n{B}", set(), []),
    "severity 20 in a TRY": (
        f"BEGIN TRY RAISERROR('x', 20, 1) WITH LOG END TRY BEGIN CATCH {A} END CATCH\nGO\n{B}",
        set(),
        [],
    ),
    "severity 20 without LOG is an error of its own": (
        f"RAISERROR('x', 20, 1)\nIF @@ERROR = 2754 {A}\nGO\n{B}",
        {"a", "b"},
        [],
    ),
    "severity 19 does not end it": (f"RAISERROR('x', 19, 1) WITH LOG\nGO\n{A}", {"a"}, []),
    "severity 20 rolls back": (f"BEGIN TRAN {A} RAISERROR('x', 20, 1) WITH LOG\nGO\nCOMMIT", set(), []),
    "severity 20 until the next connection": (
        f"RAISERROR('x', 20, 1) WITH LOG\nGO\n:CONNECT X\nUSE D\n{A}\nGO",
        {"a"},
        [],
    ),
    "severity 20 where the database is there": (
        f"IF DB_ID('D') IS NULL RAISERROR('x', 20, 1) WITH LOG\nGO\n{A}",
        {"a"},
        [],
    ),
    ":CONNECT rolls back": (f"BEGIN TRAN {A}\nGO\n:CONNECT X\nCOMMIT\nGO", set(), []),
    ":CONNECT forgets the database": (f":CONNECT X\nUSE D\n{A}\nGO\n:CONNECT X\n{B}\nGO", {"a"}, []),
    ":CONNECT forgets options": (
        f"SET XACT_ABORT, NOEXEC ON\nGO\n:CONNECT X\nUSE D\n{BAD}\n{A}\nGO",
        {"a"},
        [(5, 9744)],
    ),
    ":CONNECT forgets procedures of the connection": (
        f"CREATE PROC #p AS {A}\nGO\n:CONNECT X\nEXEC #p\nGO",
        set(),
        [],
    ),
    "NOEXEC": (f"SET NOEXEC ON\nGO\n{A}\nGO\nSET NOEXEC OFF\nGO\n{B}", {"b"}, []),
    "PARSEONLY": (f"SET PARSEONLY ON\nGO\n{A}\nGO\nSET PARSEONLY OFF\nGO\n{B}", {"b"}, []),
    "SHOWPLAN_XML": (f"SET SHOWPLAN_XML ON\nGO\n{A}\nGO\nSET SHOWPLAN_XML OFF\nGO\n{B}", {"b"}, []),
    "SHOWPLAN_ALL": (f"SET SHOWPLAN_ALL ON\nGO\n{A}\nGO\nSET SHOWPLAN_ALL OFF\nGO\n{B}", {"b"}, []),
    "SHOWPLAN_TEXT": (f"SET SHOWPLAN_TEXT ON\nGO\n{A}", set(), []),
    "SHOWPLAN runs no USE": (
        f"SET SHOWPLAN_TEXT ON\nGO\nUSE Other\nGO\nSET SHOWPLAN_TEXT OFF\nGO\n{A}",
        {"a"},
        [],
    ),
    "STATISTICS XML runs all": (f"SET STATISTICS XML ON\nGO\n{A}", {"a"}, []),
    "SHOWPLAN compiles": (f"SET SHOWPLAN_ALL ON\nGO\nSELECT @x {A}", set(), [(3, 137)]),
    "SHOWPLAN must be alone": (f"SET SHOWPLAN_ALL ON\n{A}\nGO\n{B}", {"b"}, [(1, 1067)]),
}


@pytest.mark.parametrize("form", CONNECTIONS)
def test_connections(read: ReadText, form: str) -> None:
    text, routes, refused = CONNECTIONS[form]
    assert run(read, text) == (routes, refused)


PROCEDURES = {
    "EXEC": (f"CREATE PROC p AS {A}\nGO\nEXEC p", {"a"}, []),
    "with schema": (f"CREATE PROCEDURE dbo.p AS {A}\nGO\nEXEC dbo.p", {"a"}, []),
    "with and without schema": (f"CREATE PROCEDURE dbo.p AS {A}\nGO\nEXECUTE p", {"a"}, []),
    "in brackets": (f"CREATE PROCEDURE [dbo].[my p] AS BEGIN {A} END\nGO\nEXEC [my p]", {"a"}, []),
    "without EXEC": (f"CREATE PROC p AS {A}\nGO\ndbo.p", {"a"}, []),
    "with a return value": (f"CREATE PROC p AS {A} RETURN 1\nGO\nDECLARE @r int EXEC @r = p", {"a"}, []),
    "of the connection": (f"CREATE PROC #p AS {A}\nGO\nEXEC #p", {"a"}, []),
    "of all connections": (f"CREATE PROC ##p AS {A}\nGO\nEXEC ##p", {"a"}, []),
    "another schema is another procedure": (f"CREATE PROC app.p AS {A}\nGO\nEXEC p", set(), []),
    "by database": (f"CREATE PROC p AS {A}\nGO\nUSE Other\nGO\nEXEC D.dbo.p", {"a"}, []),
    "by database without schema": (f"CREATE PROC p AS {A}\nGO\nUSE Other EXEC D..p", {"a"}, []),
    "another database has none": (f"CREATE PROC p AS {A}\nGO\nUSE Other\nGO\nEXEC p", set(), []),
    "by a variable": (f"CREATE PROC p AS {A}\nGO\nDECLARE @n sysname = 'dbo.p' EXEC @n", {"a"}, []),
    "by INSERT": (f"CREATE PROC p AS {A}\nGO\nINSERT t EXEC p", {"a"}, []),
    "in a text": (f"CREATE PROC p AS {A}\nGO\nEXEC('EXEC p')", {"a"}, []),
    "made by a text": (
        "EXEC('CREATE PROC p AS CREATE ROUTE a WITH ADDRESS = ''LOCAL''')\nEXEC p",
        {"a"},
        [],
    ),
    "a parameter": (
        "CREATE PROC p @n sysname AS EXEC('CREATE ROUTE ' + @n + ' WITH ADDRESS = ''LOCAL''')\nGO\nEXEC p 'a'",
        {"a"},
        [],
    ),
    "a parameter by name, of a bare word": (
        (
            "CREATE PROC p (@x int, @n sysname) AS\nEXEC('CREATE ROUTE ' + @n + ' WITH ADDRESS = ''LOCAL''')\nGO\n"
            "EXEC p @n = a, @x = 1"
        ),
        {"a"},
        [],
    ),
    "a default": (
        (
            "CREATE PROC p @n sysname = N'a' AS EXEC('CREATE ROUTE ' + @n + ' WITH ADDRESS = ''LOCAL''')\nGO\n"
            "EXEC p EXEC p DEFAULT EXEC p 'b'"
        ),
        {"a", "b"},
        [(1, 15530)],
    ),
    "a default of a text that is longer than the caller's": (
        (
            "CREATE PROC p @n nvarchar(60) = N'a' AS DECLARE @s nvarchar(max) = N'CREATE ROUTE ' + QUOTENAME(@n)"
            " + N' WITH ADDRESS = ''LOCAL''' EXEC sp_executesql @s\nGO\nEXEC p"
        ),
        {"a"},
        [],
    ),
    "a default without N, which sp_executesql refuses": (
        "CREATE PROC p @n varchar(60) = 'SELECT 1' AS EXEC sp_executesql @n\nGO\nEXEC p",
        set(),
        [(1, 214)],
    ),
    "a variable": (
        (
            "CREATE PROC p @n sysname AS EXEC('CREATE ROUTE ' + @n + ' WITH ADDRESS = ''LOCAL''')\nGO\n"
            "DECLARE @v sysname = 'a' EXEC p @v SET @v = 'b' EXEC p @n = @v"
        ),
        {"a", "b"},
        [],
    ),
    "a condition on a parameter": (
        f"CREATE PROC p @x int AS IF @x = 1 {A} ELSE {B}\nGO\nEXEC p 2",
        {"b"},
        [],
    ),
    "an argument too few": (f"CREATE PROC p @x int AS {A}\nGO\nEXEC p", set(), [(3, 201)]),
    "an argument too many": (f"CREATE PROC p AS {A}\nGO\nEXEC p 1", set(), [(3, 8144)]),
    "a parameter that there is not": (f"CREATE PROC p AS {A}\nGO\nEXEC p @x = 1", set(), [(3, 8145)]),
    "the database of the procedure": (
        f"CREATE PROC p AS {A}\nGO\nUSE Other\nGO\nEXEC D.dbo.p\nGO\nUSE D",
        {"a"},
        [],
    ),
    "ALTER": (f"CREATE PROC p AS {A}\nGO\nALTER PROC p AS {B}\nGO\nEXEC p", {"b"}, []),
    "CREATE OR ALTER": (f"CREATE PROC p AS {A}\nGO\nCREATE OR ALTER PROC p AS {B}\nGO\nEXEC p", {"b"}, []),
    "CREATE twice": (f"CREATE PROC p AS {A}\nGO\nCREATE PROC p AS {B}\nGO\nEXEC p", {"a"}, [(3, 2714)]),
    "DROP": (f"CREATE PROC p AS {A}\nGO\nDROP PROC p\nGO\nEXEC p", set(), [(5, 2812)]),
    "DROP IF EXISTS and CREATE": (
        f"DROP PROCEDURE IF EXISTS dbo.p\nGO\nCREATE PROC p AS {A}\nGO\nEXEC p\nGO\nDROP PROC p",
        {"a"},
        [],
    ),
    "what is rolled back was never made": (
        f"BEGIN TRAN\nGO\nCREATE PROC p AS {A}\nGO\nROLLBACK\nGO\nEXEC p",
        set(),
        [],
    ),
    "procedures that call others": (
        f"CREATE PROC q AS {B}\nGO\nCREATE PROC p AS EXEC q {A}\nGO\nEXEC p",
        {"a", "b"},
        [],
    ),
    "a RETURN ends the procedure alone": (f"CREATE PROC p AS RETURN {A}\nGO\nEXEC p {B}", {"b"}, []),
    "an error goes to the TRY of the call": (
        f"CREATE PROC p AS\n{BAD}\n{A}\nGO\nBEGIN TRY EXEC p {B} END TRY BEGIN CATCH {C} END CATCH",
        {"c"},
        [(2, 9744)],
    ),
    "SET ends with the procedure": (
        f"CREATE PROC p AS SET XACT_ABORT ON\nGO\nEXEC p\n{BAD}\n{A}",
        {"a"},
        [(4, 9744)],
    ),
    "its transaction is the caller's": (
        f"CREATE PROC p AS {A} ROLLBACK\nGO\nBEGIN TRAN {B} EXEC p {C}",
        {"c"},
        [],
    ),
    "what is bad in a body rejects its batch": (
        f"CREATE PROC p AS SET @x = 1 {A}\nGO\nEXEC p\n{B}",
        {"b"},
        [(1, 137)],
    ),
    "a parameter that is declared again": (
        f"CREATE PROC p @x int AS DECLARE @x int {A}\nGO\n{B}",
        {"b"},
        [(1, 134)],
    ),
    "USE in a body": (f"CREATE PROC p AS USE Other {A}\nGO\n{B}", {"b"}, [(1, 154)]),
}


@pytest.mark.parametrize("form", PROCEDURES)
def test_procedures_that_a_script_makes_and_calls(read: ReadText, form: str) -> None:
    text, routes, refused = PROCEDURES[form]
    assert run(read, text) == (routes, refused)


def test_procedures_that_call_themselves_come_to_an_end(read: ReadText) -> None:
    routes, refused = run(read, f"CREATE PROC p AS EXEC p\nGO\nEXEC p {A}")
    assert (routes, refused) == ({"a"}, [(1, 217)])
    routes, _ = run(read, f"CREATE PROC p AS EXEC p EXEC p EXEC p\nGO\nEXEC p\nGO\n{A}")
    assert routes == {"a"}


def test_calls_within_blocks_come_to_an_end(read: ReadText) -> None:
    """However deep the blocks of procedures and texts that call others are."""
    deep = "BEGIN " * 90 + "EXEC p" + " END" * 90
    assert run(read, f"CREATE PROC p AS {deep}\nGO\nEXEC p {A}")[0] == {"a"}
    text = "PRINT 1"
    for _ in range(4):
        text = "EXEC('" + ("BEGIN " * 90 + text + " END" * 90).replace("'", "''") + "')"
    assert run(read, f"{text}\n{A}")[0] == {"a"}


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (f"CREATE PROC p AS\n{A}", 2, "which the script only creates"),
        (f"CREATE TRIGGER t ON x FOR INSERT AS\n{A}", 2, "which the script only creates"),
        (f"CREATE PROC p AS\n{A}\nGO\nIF @@SPID = 1 EXEC p", 2, "depends on the IF in line 4"),
        (
            "CREATE PROC p @n sysname AS\nEXEC('CREATE ROUTE ' + @n)\nGO\nDECLARE @n sysname EXEC p @n",
            2,
            "EXEC of a text built",
        ),
    ],
)
def test_unknown_effects_of_a_procedure_are_named(read: ReadText, text: str, line: int, why: str) -> None:
    (problem,) = apply_script(STATE, read(text, database="D")).problems
    assert (problem.line, problem.counted) == (line, False)
    assert why in problem.why


@pytest.mark.parametrize(
    ("endpoint", "is_refused"),
    [
        (EndpointState(), False),
        (EndpointState(is_message_forwarding_enabled=True), True),
        (EndpointState("one", False), True),
        (None, False),
    ],
)
def test_an_instance_has_one_endpoint_for_service_broker(
    read: ReadText, endpoint: EndpointState | None, is_refused: bool
) -> None:
    text = "CREATE ENDPOINT two STATE = STARTED AS TCP (LISTENER_PORT = 4023) FOR SERVICE_BROKER ()"
    applied = apply_script(InstanceState(endpoint=endpoint), read(text))
    assert applied.state.endpoint == (endpoint if is_refused else EndpointState("two"))
    assert [problem.number for problem in applied.problems] == ([7862] if is_refused else [])
