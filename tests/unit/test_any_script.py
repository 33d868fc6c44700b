"""No statement in a script, valid or not, makes a command end with exit code 3."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routing import cli
from tests.estate_rows import small_estate
from tests.exported import waiting, whole_shop
from tests.stored import save_job

STATEMENTS = st.sampled_from(
    [
        "USE Sales",
        "USE My-Db",
        "USE Store",
        "CREATE ROUTE r WITH ADDRESS = 'TCP://h:4022'",
        "CREATE ROUTE r WITH ADDRESS = 'nonsense'",
        "CREATE ROUTE Primary WITH ADDRESS = 'LOCAL'",
        "CREATE ROUTE [r] WITH SERVICE_NAME = N'//s', ADDRESS = N'LOCAL', LIFETIME = 60",
        "ALTER ROUTE r WITH ADDRESS = 'LOCAL'",
        "ALTER ROUTE Far WITH ADDRESS = 'TCP://h2:4022' LIFETIME = 5",
        "DROP ROUTE r",
        "DROP ROUTE Far",
        "CREATE SERVICE s ON QUEUE q",
        "DROP SERVICE s",
        "CREATE ENDPOINT e STATE = STARTED AS TCP (LISTENER_PORT = 4022) FOR SERVICE_BROKER ()",
        "ALTER ENDPOINT e STATE = STOPPED",
        "ALTER ENDPOINT e SET STATE = STOPPED",
        "DROP ENDPOINT e",
        "CREATE DATABASE N",
        "USE N",
        "DROP DATABASE N",
        "DROP DATABASE IF EXISTS Store",
        "ALTER DATABASE Sales SET SINGLE_USER WITH ROLLBACK IMMEDIATE",
        "ALTER DATABASE CURRENT SET NEW_BROKER",
        "ALTER DATABASE Sales SET BROKER ON",
        "ALTER DATABASE Sales MODIFY NAME = Sold",
        "ALTER DATABASE Sales SET HADR OFF, MULTI_USER, OFFLINE",
        "EXEC sp_detach_db 'Store'",
        "EXEC sp_renamedb 'Sold', 'Sales'",
        "RESTORE DATABASE Sales FROM DISK = 'x'",
        "BEGIN TRAN",
        "SAVE TRAN s",
        "ROLLBACK TRAN s",
        "ROLLBACK",
        "COMMIT",
        "SET XACT_ABORT ON",
        "SET IMPLICIT_TRANSACTIONS ON",
        "SET NOEXEC ON",
        "SET SHOWPLAN_ALL ON",
        "IF DB_ID('Sales') IS NULL",
        "IF EXISTS (SELECT * FROM sys.routes WHERE name = 'Far')",
        "IF @@ERROR <> 0",
        "IF @@SPID = 1",
        "ELSE",
        "WHILE 1 = 1",
        "BEGIN",
        "END",
        "BEGIN TRY",
        "END TRY BEGIN CATCH",
        "END CATCH",
        "DECLARE @v nvarchar(max) = N'DROP ROUTE r'",
        "EXEC(@v)",
        "EXEC('CREATE ROUTE q WITH ADDRESS = ''LOCAL''')",
        "EXEC('SELECT (')",
        "CREATE PROCEDURE p @n sysname = 'x' AS DROP ROUTE r",
        "EXEC p",
        "DROP PROCEDURE p",
        "RAISERROR('x', 16, 1)",
        "RAISERROR('x', 20, 1) WITH LOG",
        "THROW 50000, 'x', 1;",
        "RETURN",
        "GOTO done",
        "done:",
        "MERGE t USING s ON 1 = 1 WHEN MATCHED THEN DELETE",
        ":on error exit",
        ":CONNECT hub",
        ":setvar v x",
    ]
)
SEPARATORS = st.sampled_from(["\n", "\n", "\nGO\n", ";\n", " "])
SCRIPTS = st.lists(st.tuples(STATEMENTS, SEPARATORS), min_size=1, max_size=14).map(
    lambda pairs: "".join(part for pair in pairs for part in pair)
)


COMMANDS = (
    (
        "import tsql any.sql --instance hub --database Sales --scripted-at 2026-02-01T00:00:00Z --config job.yaml"
        " --set tables.imports=in/imports --dry-run"
    ),
    "lint any.sql",
    "check exports any.sql --instance hub",
    "check exports --then any.sql --instance SHOP",
    "diff --with-script any.sql --instance hub --config job.yaml --at 2026-01-05T13:00:00Z",
)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of a small estate with their configuration, and exports of a queue."""
    folder = tmp_path_factory.mktemp("any_script")
    save_job(small_estate(), folder)
    whole_shop(folder / "exports", [waiting(1, "//stock")])
    return folder


def run_all(job: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> list[int]:
    """The exit codes of the commands that read a script."""
    monkeypatch.chdir(job)
    Path("any.sql").write_text(f"{text}\n", encoding="utf-8")
    codes = []
    for line in COMMANDS:
        try:
            codes.append(cli.main(line.split()))
        except SystemExit as end:
            codes.append(int(end.code or 0))
    return codes


@settings(
    max_examples=15, deadline=timedelta(seconds=30), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(SCRIPTS)
def test_no_script_ends_a_command_unexpectedly(
    job: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    codes = run_all(job, monkeypatch, text)
    assert set(codes) <= {0, 1, 2}, capsys.readouterr().err
    capsys.readouterr()


def test_all_commands_take_a_script(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above would also pass if every command refused all scripts."""
    assert run_all(job, monkeypatch, "USE Sales\nCREATE ROUTE r WITH ADDRESS = 'TCP://h:4022'") == [0, 0, 0, 0, 0]
