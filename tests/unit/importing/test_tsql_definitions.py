"""Services, endpoints and databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from routing.importing.tsql.script_reader import ReadScript
from routing.importing.tsql.script_statements import (
    AlterDatabase,
    AlterDatabaseState,
    AlterEndpoint,
    AlterRoute,
    BrokerSetting,
    CreateDatabase,
    CreateEndpoint,
    CreateService,
    DetachDatabase,
    DropDatabase,
    DropEndpoint,
    DropService,
    RenameDatabase,
)

ReadText = Callable[..., ReadScript]
ENDPOINT_FIELDS = ("for_service_broker", "listener_port", "is_message_forwarding_enabled")


def test_services(read: ReadText) -> None:
    script = read(
        """create service [//shop/stock] authorization dbo
             on queue [shop].[stock queue] ([//c1], DEFAULT) create service s2 on queue q
           ALTER SERVICE s2 ON QUEUE q2 (ADD CONTRACT [//c2])
           DROP SERVICE [//shop/stock]"""
    )
    assert [(type(statement), statement.name, statement.line) for statement in script.statements] == [
        (CreateService, "//shop/stock", 1),
        (CreateService, "s2", 2),
        (DropService, "//shop/stock", 4),
    ]
    assert script.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SERVICE s",
        "CREATE SERVICE s ON q",
        "CREATE SERVICE a.b ON QUEUE q",
        "DROP SERVICE a, b",
    ],
)
def test_invalid_services_are_reported(read: ReadText, text: str) -> None:
    script = read(text + "\nGO\nDROP SERVICE last_one")
    assert [statement.name for statement in script.statements] == ["last_one"]
    assert [(problem.line, problem.number) for problem in script.problems] == [(1, 102)]


def test_the_endpoint(read: ReadText) -> None:
    script = read(
        """
        CREATE ENDPOINT broker AUTHORIZATION sa STATE = STARTED
          AS TCP (LISTENER_PORT = 4022, LISTENER_IP = (10.0.0.1))
          FOR SERVICE_BROKER (AUTHENTICATION = WINDOWS NEGOTIATE CERTIFICATE c,
                              ENCRYPTION = REQUIRED ALGORITHM AES, MESSAGE_FORWARDING = Enabled,
                              MESSAGE_FORWARD_SIZE = 10)
        CREATE ENDPOINT plain AS TCP (LISTENER_PORT = 4022, LISTENER_IP = ALL) FOR SERVICE_BROKER ()
        ALTER ENDPOINT broker FOR SERVICE_BROKER (MESSAGE_FORWARDING = DISABLED)
        ALTER ENDPOINT broker AS TCP (LISTENER_PORT = 4023)
        alter endpoint broker state = stopped
        DROP ENDPOINT broker
        CREATE ENDPOINT mirror AS TCP (LISTENER_PORT = 5022) FOR DATABASE_MIRRORING (ROLE = ALL)
        """
    )
    assert [
        (
            type(statement),
            statement.name,
            statement.line,
            *(getattr(statement, field, None) for field in ENDPOINT_FIELDS),
        )
        for statement in script.statements
    ] == [
        (CreateEndpoint, "broker", 2, True, 4022, True),
        (CreateEndpoint, "plain", 7, True, 4022, False),
        (AlterEndpoint, "broker", 8, True, None, False),
        (AlterEndpoint, "broker", 9, None, 4023, None),
        (AlterEndpoint, "broker", 10, None, None, None),
        (DropEndpoint, "broker", 11, None, None, None),
        (CreateEndpoint, "mirror", 12, False, 5022, False),
    ]
    assert script.problems == ()


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("e AS TCP (LISTENER_IP = ALL) FOR SERVICE_BROKER ()", "LISTENER_PORT is missing"),
        ("e AS TCP (LISTENER_PORT = 0) FOR SERVICE_BROKER ()", "0 is not a port"),
        ("e AS TCP (LISTENER_PORT = 99999) FOR SERVICE_BROKER ()", "99999 is not a port"),
        ("e AS TCP (LISTENER_PORT = @p) FOR SERVICE_BROKER ()", "not the variable '@p'"),
        ("e AS TCP (LISTENER_PORT = $(p)) FOR SERVICE_BROKER ()", "sqlcmd variable 'p'"),
        ("e AS TCP (LISTENER_PORT = 1, LISTENER_PORT = 2) FOR SERVICE_BROKER ()", "twice"),
        (
            "e AS TCP (LISTENER_PORT = 1) FOR SERVICE_BROKER (MESSAGE_FORWARDING = ON)",
            "ENABLED or DISABLED was expected, not 'ON'",
        ),
        (
            (
                "e AS TCP (LISTENER_PORT = 1) FOR SERVICE_BROKER "
                "(MESSAGE_FORWARDING = ENABLED, MESSAGE_FORWARDING = ENABLED)"
            ),
            "twice",
        ),
        ("e STATE = STARTED, AS TCP (LISTENER_PORT = 4022) FOR SERVICE_BROKER ()", "not ','"),
        ("e , STATE = STARTED AS TCP (LISTENER_PORT = 4022) FOR SERVICE_BROKER ()", "not ','"),
        ("e AFFINITY = ALL AS TCP (LISTENER_PORT = 4022) FOR SERVICE_BROKER ()", "NONE, ADMIN or a whole number"),
        (f"e AFFINITY = {2**64} AS TCP (LISTENER_PORT = 4022) FOR SERVICE_BROKER ()", "a whole number of 64 bits"),
        ("e AFFINITY = 1.5 AS TCP (LISTENER_PORT = 4022) FOR SERVICE_BROKER ()", "a whole number of 64 bits"),
        ("e AFFINITY = NONE, AFFINITY = 1 AS TCP (LISTENER_PORT = 4022) FOR SERVICE_BROKER ()", "twice"),
        ("e AS TCP LISTENER_PORT = 1 FOR SERVICE_BROKER ()", "a parenthesis and its end"),
        ("e AS TCP (LISTENER_PROT = 1) FOR SERVICE_BROKER ()", "it has no option 'LISTENER_PROT'"),
        ("e AS TCP (LISTENER_PORT = 1) FOR SERVICE_BORKER ()", "not 'SERVICE_BORKER'"),
        ("e STAET = STARTED AS TCP (LISTENER_PORT = 1) FOR TSQL ()", "not 'STAET'"),
        ("e STATE = RUNNING AS TCP (LISTENER_PORT = 1) FOR TSQL ()", "not 'RUNNING'"),
    ],
)
def test_invalid_endpoints_are_reported(read: ReadText, rest: str, why: str) -> None:
    script = read(f"CREATE ENDPOINT {rest}\nGO\nDROP ENDPOINT last_one")
    assert [statement.name for statement in script.statements] == ["last_one"]
    (problem,) = script.problems
    assert problem.line == 1
    assert why in problem.why


@pytest.mark.parametrize(
    ("clauses", "state", "port"),
    [
        ("STATE = DISABLED, AFFINITY = ADMIN", "DISABLED", None),
        ("AFFINITY = NONE, STATE = STARTED", "STARTED", None),
        ("AUTHORIZATION sa, AFFINITY = 0x00FF STATE = STARTED", "STARTED", None),
        ("AFFINITY = 3", None, None),
        (f"STATE = STOPPED, AFFINITY = {2**64 - 1} AS TCP (LISTENER_PORT = 4022)", "STOPPED", 4022),
        ("AS TCP (LISTENER_PORT = 4022) FOR SERVICE_BROKER (), AFFINITY = NONE, STATE = STARTED", "STARTED", 4022),
    ],
)
def test_the_affinity_of_an_endpoint(read: ReadText, clauses: str, state: str | None, port: int | None) -> None:
    script = read(f"ALTER ENDPOINT broker {clauses}\nDROP ROUTE last_one")
    altered, _ = script.statements
    assert isinstance(altered, AlterEndpoint)
    assert (altered.state, altered.listener_port) == (state, port)
    assert script.problems == ()


def test_the_affinity_of_a_new_endpoint(read: ReadText) -> None:
    script = read("CREATE ENDPOINT e AFFINITY = NONE, STATE = STARTED AS TCP (LISTENER_PORT = 4022) FOR TSQL ()")
    assert [getattr(statement, "state", None) for statement in script.statements] == ["STARTED"]
    assert script.problems == ()


@pytest.mark.parametrize(
    ("port", "is_noted"),
    [
        (1, True),
        (443, True),
        (1023, True),
        (1024, False),
        (32767, False),
        (32768, True),
        (55555, True),
        (65535, True),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "CREATE ENDPOINT e STATE = STARTED AS TCP (LISTENER_PORT = {}) FOR SERVICE_BROKER ()",
        "CREATE ENDPOINT e STATE = STARTED FOR SERVICE_BROKER () AS TCP (LISTENER_PORT = {})",
        "ALTER ENDPOINT e AS TCP (LISTENER_PORT = {})",
    ],
)
def test_ports_outside_the_documented_range_are_applied(
    read: ReadText, text: str, port: int, is_noted: bool
) -> None:
    script = read(text.format(port))
    assert [getattr(statement, "listener_port", None) for statement in script.statements] == [port]
    assert [problem.counted for problem in script.problems] == [True] * is_noted
    assert all(f"LISTENER_PORT {port} is outside 1024 to 32767" in problem.why for problem in script.problems)


def test_ports_of_other_endpoints_are_not_noted(read: ReadText) -> None:
    assert (
        read("CREATE ENDPOINT m AS TCP (LISTENER_PORT = 55555) FOR DATABASE_MIRRORING (ROLE = ALL)").problems == ()
    )


def test_broker_options_of_databases(read: ReadText) -> None:
    script = read(
        """
        ALTER DATABASE shop SET ENABLE_BROKER WITH ROLLBACK IMMEDIATE
        ALTER DATABASE [my shop] SET DISABLE_BROKER WITH ROLLBACK AFTER 5 SECONDS;
        alter database current set recovery simple, new_broker with no_wait
        ALTER DATABASE shop SET ERROR_BROKER_CONVERSATIONS
        ALTER DATABASE shop SET COMPATIBILITY_LEVEL = 150
        ALTER DATABASE shop SET CHANGE_TRACKING = ON (CHANGE_RETENTION = 2 DAYS)
        ALTER DATABASE $(unknown) SET READ_COMMITTED_SNAPSHOT ON
        ALTER DATABASE SCOPED CONFIGURATION SET MAXDOP = 1
        DROP ROUTE r
        """
    )
    assert [
        (statement.name, statement.line, statement.setting)
        for statement in script.statements
        if isinstance(statement, AlterDatabase)
    ] == [
        ("shop", 2, BrokerSetting.ENABLE),
        ("my shop", 3, BrokerSetting.DISABLE),
        ("db", 4, BrokerSetting.NEW),
        ("shop", 5, BrokerSetting.ERROR),
    ]
    assert script.statements[-1].name == "r"
    assert script.problems == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ALTER DATABASE [$(name)] SET ENABLE_BROKER", "sqlcmd variable 'name' has no value"),
        ("ALTER DATABASE $(name) SET ENABLE_BROKER", "sqlcmd variable 'name' has no value"),
        ("ALTER DATABASE a SET $(option)", "sqlcmd variable 'option' has no value"),
        ("ALTER DATABASE @name SET ENABLE_BROKER", "not the variable '@name'"),
        ("ALTER DATABASE a.b SET ENABLE_BROKER", "must have one part"),
        ("ALTER DATABASE a SET ENABLE_BORKER", "a database has no option 'ENABLE_BORKER', but ENABLE_BROKER"),
        ("ALTER DATABASE a SET ENABLE_BROKER ON", "ENABLE_BROKER is followed by 'ON'"),
        ("ALTER DATABASE a SET ENABLE_BROKER WITH ROLBACK IMMEDIATE", "not 'ROLBACK'"),
        ("ALTER DATABASE a SET ENABLE_BROKER WITH ROLLBACK NOW", "IMMEDIATE or AFTER was expected, not 'NOW'"),
        ("ALTER DATABASE a ENABLE_BROKER", "has no SET before it"),
        ("ALTER DATABASE $(name) MODIFY NAME = b", "sqlcmd variable 'name' has no value"),
        ("ALTER DATABASE a MODIFY NAME = $(name)", "sqlcmd variable 'name' has no value"),
        ("CREATE DATABASE a AS COPY OF b", "copied"),
        ("CREATE DATABASE a ON (FILENAME = 'x') FOR ATTACH WITH ENABLE_BROKER", "attached"),
        ("CREATE DATABASE a ON (NAME = x, FILENAME = 'y') AS SNAPSHOT OF b", "snapshot"),
        ("RESTORE DATABASE a FROM DISK = 'x' WITH NEW_BROKER, MOVE 'a' TO 'b'", "restored"),
        ("RESTORE LOG a FROM DISK = 'x' WITH RECOVERY", "restored"),
        ("DBCC CLONEDATABASE (a, b) WITH SERVICEBROKER", "cloned"),
        ("EXEC master.dbo.sp_attach_db @dbname = N'a', @filename1 = N'a.mdf'", "attached database 'a'"),
        ("exec sp_attach_single_file_db 'a', 'a.mdf'", "attached database 'a'"),
        ("DECLARE @name sysname EXEC sp_detach_db @name", "'@name' is known only to the server"),
        ("EXEC sp_detach_db '$(name)'", "sqlcmd variable 'name' has no value"),
        ("EXEC sp_renamedb 'a'", "its argument @newname is missing"),
    ],
)
def test_unknown_facts_of_a_database_are_reported(read: ReadText, text: str, why: str) -> None:
    script = read(text + "\nGO\nDROP ROUTE last_one")
    assert [statement.name for statement in script.statements] == ["last_one"]
    (problem,) = script.problems
    assert problem.line == 1
    assert why in problem.why


def test_current_needs_a_known_database(read: ReadText) -> None:
    script = read("ALTER DATABASE CURRENT SET ENABLE_BROKER", database=None)
    assert script.statements == ()
    assert "the database in use is not known" in script.problems[0].why


def test_databases_are_created_and_dropped(read: ReadText) -> None:
    script = read(
        """CREATE DATABASE a
           CREATE DATABASE [b c] CONTAINMENT = NONE ON PRIMARY (NAME = n, SIZE = 8MB) COLLATE x
           DROP DATABASE a, [b c];
           DROP DATABASE IF EXISTS d
           CREATE DATABASE AUDIT SPECIFICATION s FOR SERVER AUDIT t
           DROP DATABASE ENCRYPTION KEY"""
    )
    assert [(type(statement), statement.name, statement.line) for statement in script.statements] == [
        (CreateDatabase, "a", 1),
        (CreateDatabase, "b c", 2),
        (DropDatabase, "a", 3),
        (DropDatabase, "b c", 3),
        (DropDatabase, "d", 4),
    ]
    assert script.problems == ()


def test_databases_are_renamed_and_detached(read: ReadText) -> None:
    """As SSMS, administrators and old scripts write it."""
    script = read(
        """sp_renamedb 'a', N'[b]'
        GO
        USE [db] DECLARE @a sysname, @b sysname
        ALTER DATABASE [db] MODIFY NAME = [new db]
        ALTER ROUTE r WITH ADDRESS = 'LOCAL'
        EXEC sp_rename 'c', 'd', 'DATABASE'
        EXEC sp_rename 'dbo.t', 'u'; EXEC sp_rename @a, @b, N'COLUMN'
        EXEC master.dbo.sp_detach_db @dbname = N'e', @keepfulltextindexfile = N'true'
        EXEC sp_detach_db @skipchecks = 'true', @dbname = [f]
        EXEC sp_dbremove g;
        EXEC sp_dboption N'h', N'offline', N'true'; EXEC sp_dboption 'h', 'trunc. log on chkpt.', 'true'"""
    )
    assert [
        (type(statement), statement.name, getattr(statement, "new_name", ""), statement.line, statement.database)
        for statement in script.statements
    ] == [
        (RenameDatabase, "a", "b", 1, "db"),
        (RenameDatabase, "db", "new db", 4, "db"),
        (AlterRoute, "r", "", 5, "new db"),
        (RenameDatabase, "c", "d", 6, "new db"),
        (DetachDatabase, "e", "", 8, "new db"),
        (DetachDatabase, "f", "", 9, "new db"),
        (DropDatabase, "g", "", 10, "new db"),
        (AlterDatabaseState, "h", "", 11, "new db"),
    ]
    assert script.problems == ()


@pytest.mark.parametrize("name", ["DB", "CURRENT"])
def test_a_name_that_may_have_changed_is_not_known(read: ReadText, name: str) -> None:
    script = read(f"IF @@SPID = 1 ALTER DATABASE {name} MODIFY NAME = b\nDROP ROUTE r")
    assert [(statement.name, statement.database) for statement in script.statements] == [("r", None)]
    assert [problem.line for problem in script.problems] == [1, 1]


def test_states_of_databases_are_named(read: ReadText) -> None:
    """Options without a table column, in lists and with termination clauses, among options without effect."""
    script = read(
        """ALTER DATABASE [shop] SET SINGLE_USER WITH ROLLBACK IMMEDIATE
        ALTER DATABASE shop SET OFFLINE, READ_ONLY, RECOVERY SIMPLE WITH NO_WAIT
        alter database shop set partner failover
        ALTER DATABASE shop SET HONOR_BROKER_PRIORITY ON, TRUSTWORTHY ON, READ_COMMITTED_SNAPSHOT ON"""
    )
    assert [
        (statement.line, statement.state)
        for statement in script.statements
        if isinstance(statement, AlterDatabaseState)
    ] == [
        (1, "SINGLE_USER"),
        (2, "OFFLINE"),
        (2, "READ_ONLY"),
        (3, "PARTNER"),
    ]
    assert len(script.statements) == 4
    assert script.problems == ()


def test_the_state_of_an_endpoint(read: ReadText) -> None:
    """As SSMS scripts an endpoint: commas at the beginning of lines, STATE first."""
    script = read(
        """CREATE ENDPOINT [Broker]
	STATE=STARTED
	AS TCP (LISTENER_PORT = 4022, LISTENER_IP = ALL)
	FOR SERVICE_BROKER (MESSAGE_FORWARDING = DISABLED
, MESSAGE_FORWARD_SIZE = 10
, AUTHENTICATION = WINDOWS NEGOTIATE
, ENCRYPTION = REQUIRED ALGORITHM AES)
CREATE ENDPOINT p AS TCP (LISTENER_PORT = 4023) FOR SERVICE_BROKER (AUTHENTICATION = WINDOWS ENCRYPTION = DISABLED)
ALTER ENDPOINT broker STATE = disabled AS TCP (LISTENER_IP = (::1), LISTENER_PORT = 4024)"""
    )
    assert [(statement.line, getattr(statement, "state", None)) for statement in script.statements] == [
        (1, "STARTED"),
        (8, "STOPPED"),
        (9, "DISABLED"),
    ]
    assert script.problems == ()


def test_a_database_as_ssms_scripts_it(read: ReadText) -> None:
    """Script Database As, CREATE To: options that say nothing are passed over, others applied or named."""
    script = read(
        """USE [master]
GO
/****** Object:  Database [Sales] ******/
CREATE DATABASE [Sales]
 CONTAINMENT = NONE
 ON  PRIMARY
( NAME = N'Sales', FILENAME = N'C:\\Data\\Sales.mdf' , SIZE = 8192KB , MAXSIZE = UNLIMITED, FILEGROWTH = 65536KB )
 LOG ON
( NAME = N'Sales_log', FILENAME = N'C:\\Data\\Sales_log.ldf' , SIZE = 8192KB , FILEGROWTH = 65536KB )
 WITH CATALOG_COLLATION = DATABASE_DEFAULT, LEDGER = OFF
GO
IF (1 = FULLTEXTSERVICEPROPERTY('IsFullTextInstalled'))
begin
EXEC [Sales].[dbo].[sp_fulltext_database] @action = 'enable'
end
GO
ALTER DATABASE [Sales] SET ANSI_NULL_DEFAULT OFF
GO
ALTER DATABASE [Sales] SET  ENABLE_BROKER
GO
ALTER DATABASE [Sales] SET HONOR_BROKER_PRIORITY OFF
GO
ALTER DATABASE [Sales] SET  MULTI_USER
GO
ALTER DATABASE [Sales] SET FILESTREAM( NON_TRANSACTED_ACCESS = OFF )
GO
ALTER DATABASE [Sales] SET TARGET_RECOVERY_TIME = 60 SECONDS
GO
ALTER DATABASE [Sales] SET QUERY_STORE (OPERATION_MODE = READ_WRITE, CLEANUP_POLICY = (X_DAYS = 30))
GO
ALTER DATABASE [Sales] SET  READ_WRITE
GO
"""
    )
    assert [(type(statement), statement.name) for statement in script.statements] == [
        (CreateDatabase, "Sales"),
        (AlterDatabase, "Sales"),
        (AlterDatabaseState, "Sales"),
        (AlterDatabaseState, "Sales"),
    ]
    assert script.problems == ()
