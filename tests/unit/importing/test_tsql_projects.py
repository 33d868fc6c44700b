"""Scripts of real projects, with Liquibase, EF Core, templates and placeholders of other tools."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from routing.importing.other_formats import find_other_format, other_format_of
from routing.importing.script_rows import read_scripts
from routing.importing.tsql.instance_state import DatabaseState, InstanceState
from routing.importing.tsql.script_reader import AppliedScript, ReadScript, apply_script

ReadText = Callable[..., ReadScript]
STATE = InstanceState(databases=(DatabaseState("db", None), DatabaseState("Sales", "1", False)))
LOCAL = "WITH ADDRESS = 'LOCAL'"


def applied(script: ReadScript) -> AppliedScript:
    return apply_script(STATE, script)


def titles(done: AppliedScript) -> list[tuple[int, str]]:
    return [(one.line, one.title) for one in done.statements]


def problems(done: AppliedScript) -> list[tuple[int, bool]]:
    return [(one.line, one.counted) for one in done.problems]


def liquibase(read: ReadText, body: str, **options: object) -> AppliedScript:
    return applied(read(f"--liquibase formatted sql\n{body}", **options))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # Each changeset and each statement is a batch: variables end with it, a procedure may begin.
        (
            (
                f"--changeset a:1\nDROP ROUTE x;\n--changeset a:2\n"
                f"CREATE PROC p AS SELECT 1;\nCREATE ROUTE r {LOCAL};"
            ),
            [6],
        ),
        (
            (
                f"-- changeset a:1 splitStatements:false\nDECLARE @n int\n"
                f"--changeset a:2\nDECLARE @n int;\nCREATE ROUTE r {LOCAL}"
            ),
            [6],
        ),
        (f"--changeset a:1\nBEGIN\nCREATE ROUTE r {LOCAL};\nCREATE ROUTE s {LOCAL};\nEND", [4, 5]),
        (
            f"--changeset a:1 endDelimiter:/\n/* a */\nCREATE ROUTE r {LOCAL}\n /\nCREATE ROUTE s {LOCAL}\n/",
            [4, 6],
        ),
        (f"--changeset a:1\nCREATE ROUTE r {LOCAL}\n/\nCREATE ROUTE s {LOCAL}\n/\n", [3, 5]),
        (f'--changeset a:1 endDelimiter:"\\nGO"\nCREATE ROUTE r {LOCAL}\nGO\nCREATE ROUTE s {LOCAL}\ngo', [3, 5]),
        (
            f"--changeset a:1 endDelimiter:GO|;\nSELECT 1;\nCREATE ROUTE r {LOCAL}\nGO\nCREATE ROUTE s {LOCAL}",
            [4, 6],
        ),
        (
            f"--changeset a:1 endDelimiter:@@|/\nCREATE ROUTE r {LOCAL}@@\nCREATE ROUTE s {LOCAL}\n/",
            [3, 4],
        ),
        (
            f'--changeset a:1 endDelimiter:"&#10;GO"\nCREATE ROUTE r {LOCAL}\nGO\nCREATE ROUTE s {LOCAL}\nGO',
            [3, 5],
        ),
        ("--changeset a:1 endDelimiter:GO\nCREATE ROUTE Cargo\n WITH ADDRESS = N'LOCAL'\nGO", [3]),
        (f"--changeset a:1 stripComments:false runOnChange:true failOnError:true\nCREATE ROUTE r {LOCAL}", [3]),
        (f"--changeset a:1\nCREATE ROUTE r {LOCAL}\n--rollback DROP ROUTE r", [3]),
        (f"--changeset a:1 dbms:h2,mssql\nCREATE ROUTE r {LOCAL}", [3]),
        (f"--changeset a:1 dbms:!mssql\nCREATE ROUTE r {LOCAL}", []),
        (f"--changeset a:1 dbms:oracle,h2\nCREATE ROUTE r {LOCAL}", []),
        (f"--changeset a:1 dbms:!h2\nCREATE ROUTE r {LOCAL}", [3]),
        (f"--changeset a:1 ignore:true\nCREATE ROUTE r {LOCAL}", []),
        (
            (
                f"--changeset a:1\n--ignoreLines:start\nCREATE ROUTE r {LOCAL};\n"
                f"--ignoreLines:end\nCREATE ROUTE s {LOCAL}"
            ),
            [6],
        ),
        (f"--changeset a:1\n--ignoreLines:1\nCREATE ROUTE r {LOCAL};\nCREATE ROUTE s {LOCAL}", [5]),
        (f"--changeset a:1 runWith:sqlcmd\n:r x.sql\nCREATE ROUTE r {LOCAL}\n--changeset a:2 dbms:h2", [4]),
        (f"CREATE ROUTE r {LOCAL}\n--changeset a:1\nCREATE ROUTE s {LOCAL}", [4]),
        # What fails ends the update.
        (
            (
                f"--changeset a:1\nCREATE VIEW;\n--changeset a:2\n"
                f"DROP DATABASE My-Db;\n--changeset a:3\nCREATE ROUTE s {LOCAL}"
            ),
            [],
        ),
        (f"--changeset a:1 failOnError:false\nDROP DATABASE My-Db;\n--changeset a:2\nCREATE ROUTE s {LOCAL}", [5]),
    ],
)
def test_changesets(read: ReadText, body: str, expected: list[int]) -> None:
    done = liquibase(read, body)
    assert [line for line, title in titles(done) if title.startswith("CREATE ROUTE")] == expected
    assert (
        done.refused == 0
        or expected == []
        or body.startswith(("CREATE", "--changeset a:1\nDROP", "--changeset a:1 failOn", "--changeset a:1 run"))
    )


@pytest.mark.parametrize("selector", ["context:prod", "contextFilter:prod", "labels:v2"])
def test_a_changeset_of_a_context_is_applied_with_a_note(read: ReadText, selector: str) -> None:
    done = liquibase(read, f"--changeset a:1 {selector}\nCREATE ROUTE r {LOCAL}")
    assert titles(done) == [(3, "CREATE ROUTE 'r'")]
    assert problems(done) == [(3, True)]
    assert selector.replace("Filter", "filter").replace(":", " ") in done.problems[0].why
    again = liquibase(read, f"--changeset a:1\n--preconditions onFail:HALT\nCREATE ROUTE r {LOCAL}")
    assert problems(again) == [(4, True)]


def test_two_changesets_of_one_object(read: ReadText) -> None:
    prod, test = (f"--changeset a:{name} context:{name}\nCREATE ROUTE r {LOCAL}\n" for name in ("prod", "test"))
    done = liquibase(read, f"{prod}{test}--changeset a:3\nCREATE ROUTE s {LOCAL}")
    assert titles(done) == [(7, "CREATE ROUTE 's'")]
    assert problems(done) == [(3, False), (5, False)]
    assert all("'a:prod' and 'a:test'" in one.why for one in done.problems)
    # In one context the second fails as it does on the server.
    done = liquibase(read, f"{prod}{prod.replace('a:prod', 'a:4')}")
    assert [(one.line, one.number) for one in done.problems if not one.counted] == [(5, 15530)]


@pytest.mark.parametrize(
    ("properties", "address"),
    [
        ("--property name:p value:TCP://a:1", "TCP://a:1"),
        ('--property name:p value:"TCP://a:1" dbms:mssql,h2', "TCP://a:1"),
        ("--property name:p value:TCP://o:1 dbms:!mssql\n--property name:p value:TCP://a:1", "TCP://a:1"),
        ("--property name:p value:TCP://a:1\n--property name:p value:TCP://b:1", "TCP://a:1"),
        ("--property name:p value:TCP://a:1 context:x\n--property name:p value:TCP://b:1 context:y", None),
    ],
)
def test_properties(read: ReadText, properties: str, address: str | None) -> None:
    text = f"{properties}\n--changeset a:1\nCREATE ROUTE r WITH ADDRESS = '${{p}}'"
    done = liquibase(read, text)
    assert [route.address for route in done.state.routes] == ([] if address is None else [address])
    script = liquibase(read, text, variables={"p": "TCP://given:1"})
    assert [route.address for route in script.state.routes if address] == (["TCP://given:1"] if address else [])


UNFILLED = (
    *(
        "{0}",
        "{Name}",
        "{ServerName}",
        "__Name__",
        "__ENV__",
        "%Name%",
        "@Name@",
        "@@Name@@",
        "<name>",
        "<<Name>>",
    ),
    *("~Name~", "!Name!", "|Name|", "^Name^", "%(name)s", "((name))", "\u00abname\u00bb"),
    *("##Name##", "#Name#", "$$Name$$", "{% name %}", "*Name*", "__ENV__x"),
    *("<%= name %>", "{{x}}", "${x}", "#{x}", "$(x)"),
)
REAL = ("a$b$c", "MSSQL$X", "my__service__x", "a%20b", "{1F5DB6A9-20FA-4114-BFD9-35FE8B8BE40B}", "a@b.example")


@pytest.mark.parametrize("text", UNFILLED)
def test_a_placeholder_becomes_no_object(read: ReadText, text: str) -> None:
    script = read(
        f"CREATE ROUTE r WITH ADDRESS = 'TCP://{text}:4022'\nCREATE ROUTE [{text}] {LOCAL}\n"
        f"CREATE SERVICE [//{text}/s] ON QUEUE q\nCREATE ROUTE s WITH SERVICE_NAME = '{text}', ADDRESS = 'LOCAL'\n"
        f"GO\nUSE [{text}]\nGO\nCREATE SERVICE t ON QUEUE q"
    )
    done = applied(script)
    assert done.statements == ()
    assert problems(done) == [(1, False), (2, False), (3, False), (4, False), (6, False), (8, False)]
    assert all(re.search(r"placeholder|sqlcmd variable", one.why) for one in done.problems[:-1])


@pytest.mark.parametrize("text", REAL)
def test_a_name_like_a_placeholder_is_a_name(read: ReadText, text: str) -> None:
    done = applied(read(f"CREATE SERVICE [{text}] ON QUEUE q"))
    assert [service.name for service in done.state.services] == [text]


IDEMPOTENT = (
    "IF {}EXISTS (SELECT {} FROM {}[__EFMigrationsHistory] WHERE [MigrationId] = N'20240101_Broker')\n"
    "BEGIN\n{}\nEND;\nGO\n"
)


@pytest.mark.parametrize("table", ["", "[dbo].", "[app]."])
@pytest.mark.parametrize("what", ["*", "1"])
def test_migrations_of_ef_core(read: ReadText, table: str, what: str) -> None:
    route = "EXEC(N'CREATE ROUTE r WITH ADDRESS = ''LOCAL''')"
    insert = f"INSERT INTO {table}[__EFMigrationsHistory] ([MigrationId]) VALUES (N'20240101_Broker');"
    up = "".join(IDEMPOTENT.format("NOT ", what, table, body) for body in (route, insert))
    done = applied(read(f"BEGIN TRANSACTION;\nGO\n{up}COMMIT;\nGO\n"))
    assert titles(done) == [(5, "CREATE ROUTE 'r'")]
    assert problems(done) == [(5, True)]
    assert "'20240101_Broker'" in done.problems[0].why
    down = IDEMPOTENT.format("", what, table, "DROP ROUTE r")
    assert problems(applied(read(f"CREATE ROUTE r {LOCAL}\nGO\n{down}"))) == [(5, True)]


@pytest.mark.parametrize(
    ("setup", "condition", "is_applied"),
    [
        ("DECLARE @v bit SELECT @v = is_broker_enabled FROM sys.databases WHERE name = 'Sales'", "@v = 0", True),
        ("DECLARE @v bit = (SELECT is_broker_enabled FROM sys.databases WHERE name = 'Sales')", "@v = 1", False),
        ("DECLARE @v int SET @v = ISNULL((SELECT 1 FROM sys.databases WHERE name = 'Sales'), 0)", "@v = 0", False),
        ("DECLARE @v int SELECT @v = COUNT(*) FROM sys.routes WHERE name = 'r'", "@v = 0", True),
        ("DECLARE @v int = 7 SELECT @v = 1 FROM sys.databases WHERE name = 'None'", "@v = 7", True),
        ("DECLARE @v int SELECT @v = 1 FROM sys.databases WHERE name = 'None'", "@v IS NULL", True),
        ("DECLARE @v int = DB_ID('Sales')", "@v IS NOT NULL", True),
        (
            "DECLARE @v bit = CASE WHEN EXISTS (SELECT 1 FROM sys.databases WHERE name = 'X') THEN 1 ELSE 0 END",
            "@v = 1",
            False,
        ),
        # The value is of the time when it was read.
        (
            (
                "DECLARE @v int SELECT @v = COUNT(*) FROM sys.routes WHERE name = 'x'\n"
                "CREATE ROUTE x WITH ADDRESS = 'LOCAL'"
            ),
            "@v = 0",
            True,
        ),
    ],
)
def test_variables_of_catalog_views(read: ReadText, setup: str, condition: str, is_applied: bool) -> None:
    script = read(f"{setup}\nIF {condition} CREATE ROUTE r {LOCAL}")
    assert "CREATE ROUTE 'r'" in [one.title for one in script.statements]
    done = applied(script)
    assert ("CREATE ROUTE 'r'" in [title for _, title in titles(done)]) is is_applied
    assert done.refused == 0


@pytest.mark.parametrize(
    "condition",
    ["1 < (SELECT MAX(a) FROM t)", "@@ROWCOUNT = 0", "x IS NULL", "a IN (1)", "EXISTS (SELECT 1 FROM t)"],
)
def test_a_query_in_parentheses_behind_a_condition(read: ReadText, condition: str) -> None:
    done = applied(read(f"IF {condition}\n(SELECT 1 FROM t);\nELSE\n((SELECT 2));\nCREATE ROUTE r {LOCAL}"))
    assert (titles(done), problems(done)) == ([(5, "CREATE ROUTE 'r'")], [])


def test_numbered_procedures(read: ReadText) -> None:
    numbers = "".join(f"CREATE PROC p;{n} AS CREATE ROUTE r{n} {LOCAL}\nGO\n" for n in (1, 2))
    done = applied(read(f"{numbers}EXEC p;2\nEXEC p\nGO\nDROP PROC p\nGO\nEXEC p;2\n"))
    assert titles(done) == [(3, "CREATE ROUTE 'r2'"), (1, "CREATE ROUTE 'r1'")]
    assert [(one.line, one.number) for one in done.problems] == [(10, 2812)]


def test_templates_and_the_database_in_use(read: ReadText) -> None:
    done = applied(read("CREATE SERVICE [<s, sysname, a>] ON QUEUE dbo.<q, sysname, b> (<c, sysname, d>)"))
    assert (titles(done)[0][0], problems(done)) == (1, [(1, True), (1, True)])
    # No table has the queue of a service, so its place needs no default.
    done = applied(read("CREATE SERVICE [s] ON QUEUE <queue, , >"))
    assert (titles(done), problems(done)) == ([(1, "CREATE SERVICE 's'")], [(1, True)])
    done = applied(read("IF @@SERVERNAME = 'x' ALTER DATABASE CURRENT SET ENABLE_BROKER", database=None))
    assert "ALTER DATABASE CURRENT" in done.problems[0].why
    done = applied(read("USE Sales ALTER DATABASE CURRENT SET ENABLE_BROKER"))
    assert titles(done) == [(1, "ALTER DATABASE 'Sales'")]


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("a.xml", '<?xml version="1.0"?>\n<!-- x -->\n<databaseChangeLog xmlns="u">', "XML"),
        ("a.sql", "<databaseChangeLog>", "XML"),
        ("model.xml", '<DataSchemaModel FileFormatVersion="1.2">', "XML"),
        (
            "a.publish.xml",
            "<Project><TargetDatabaseName>Shop</TargetDatabaseName>",
            "profile of the database Shop",
        ),
        ("b.publish.xml", '<?xml version="1.0"?><Project/>', "a publish profile"),
        ("a.sql", "<schema, sysname, dbo>", None),
        ("a.yaml", "# x\n---\ndatabaseChangeLog:\n- changeSet:", "YAML"),
        ("a.json", '{\n "databaseChangeLog": [', "JSON"),
        ("a.ipynb", '{"cells": []}', "notebook"),
        ("a.sql", '{"metadata": {}, "cells": []}', "notebook"),
        ("a.dacpac", "PK\x03\x04", "DACPAC"),
        ("a.rtf", "DROP ROUTE r", "rich text"),
        ("a.sql", "{\\rtf1\\ansi DROP ROUTE r;\\par }", "rich text"),
        ("a.bacpac", "PK\x03\x04", "BACPAC"),
        ("a.sql", "PK\x03\x04", "ZIP"),
        (
            "a.txt",
            "Microsoft SQL Server 11.0.2100.60\r\nService Broker Diagnostic Utility\r\nD  29912",
            "ssbdiagnose",
        ),
        ("a.xml", '<?xml version="1.0"?>\n<DiagnosticInformation><Banner/>', "ssbdiagnose"),
        ("a.sql", "-- Service Broker Diagnostic Utility\nSELECT 1", None),
        ("a.sql", "-- databaseChangeLog:\nSELECT 1", None),
        ("a.sql", "\n\n/* <databaseChangeLog> */", None),
    ],
)
def test_other_formats(tmp_path: Path, name: str, text: str, word: str | None) -> None:
    reason = find_other_format(name, text.encode(), text)
    assert (reason is None) if word is None else (word in str(reason))
    if name.endswith((".xml", ".json")):
        (tmp_path / name).write_text(text, encoding="utf-16")
        assert other_format_of(tmp_path / name) == reason


def test_a_script_of_only_comments_is_noted(tmp_path: Path) -> None:
    empty, script = tmp_path / "a.sql", tmp_path / "b.sql"
    empty.write_text("/* pre-deployment */\n--CREATE ROUTE r\nGO\n")
    script.write_text(f"USE D CREATE ROUTE r {LOCAL}")
    notes: list[str] = []
    read = read_scripts([str(empty), str(script)], instance="HUB", note=notes.append)
    assert [Path(one.file).name for one in read] == ["b.sql"]
    assert any(str(empty) in note and "comments" in note for note in notes)
