"""`check` and `lint` on real project folders with migrations, environments, web files and other databases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from routing import cli
from routing.errors import InputError
from routing.importing.catalog import StandIns, read_export
from routing.importing.tsql.vocabulary import find_unfilled
from routing.views.check.checking import Check, check
from tests.unit.test_check_brought import DATABASES, QUEUE, WRITTEN, write

NOW = "2026-01-06T00:00:00Z"
ROUTE = (
    "IF EXISTS (SELECT * FROM sys.routes WHERE name = N'R') DROP ROUTE [R];\n"
    "CREATE ROUTE [R] WITH SERVICE_NAME = N'//billing', ADDRESS = N'TCP://{}:4022';\n"
)
PLAIN = "CREATE ROUTE [{}] WITH SERVICE_NAME = N'//billing', ADDRESS = N'TCP://h:4022';\n"
EXPORTS = {"HUB/queue.txt": QUEUE, "HUB/databases.txt": DATABASES}


def checked(folder: Path, scripts: Mapping[str, str], environment: str | None = None) -> Check:
    write(folder, {**EXPORTS, **{f"HUB/{name}": text for name, text in scripts.items()}})
    return check([str(folder)], database="Orders", environment=environment)


def linted(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> dict[str, Any]:
    assert cli.main(["lint", "--now", NOW, "--format", "json", *arguments]) == status
    done: dict[str, Any] = json.loads(capsys.readouterr().out)
    return done


def addresses(done: Check) -> list[str]:
    return [row["address"] for row in done.evidence.rows["routes"] if row["name"] == "R"]


def test_migrations_apply_in_their_order(tmp_path: Path) -> None:
    scripts = {
        "V2__route.sql": ROUTE.format("old"),
        "V10__route.sql": ROUTE.format("new"),
        "U10__route.sql": "DROP ROUTE [R];",
    }
    done = checked(tmp_path, scripts)
    assert addresses(done) == ["TCP://new:4022"]
    assert done.evidence.log.rejected == ()
    [undo] = [note for note in done.evidence.log.notes if "undo" in note]
    [twice] = [note for note in done.evidence.log.notes if "several scripts" in note]
    assert "U10__route.sql" in undo
    assert twice.index("V2__route.sql") < twice.index("V10__route.sql")
    assert "route 'R'" in twice


def test_only_the_chosen_environment_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scripts = {f"{name}.0002_routes.ENV.sql": ROUTE.format(name.lower()) for name in ("PROD", "TEST")}
    done = checked(tmp_path, scripts)
    assert addresses(done) == []
    [note] = [note for note in done.evidence.log.notes if "--environment" in note]
    assert "PROD, TEST" in note
    for name in ("prod", "TEST"):
        assert addresses(checked(tmp_path, scripts, name)) == [f"TCP://{name.lower()}:4022"]
    assert cli.main(["check", str(tmp_path), "--environment", "uat"]) == 2
    assert "PROD, TEST" in capsys.readouterr().err


def test_a_script_that_its_settings_switch_off_is_not_read(tmp_path: Path) -> None:
    settings = {"V2__b.sql.conf": "shouldExecute=false", "V3__c.sql.conf": "shouldExecute=${prod}"}
    scripts = {f"V{number}__{name}.sql": ROUTE.format(name) for number, name in enumerate("abc", start=1)}
    done = checked(tmp_path, {**scripts, **settings})
    assert addresses(done) == ["TCP://a:4022"]
    notes = [note.rpartition("/")[2] for note in done.evidence.log.notes if "shouldExecute" in note]
    assert sorted(notes) == [
        "V2__b.sql: skipped, since shouldExecute is false in its settings",
        "V3__c.sql: not read, it is not known whether its settings run it: shouldExecute=${prod}",
    ]


def test_settings_that_cannot_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(InputError, match=r"V1__a\.sql\.conf.*Permission denied"):
        checked(tmp_path, {"V1__a.sql": ROUTE.format("a"), "V1__a.sql.conf": ""})


@pytest.mark.parametrize(
    ("use", "exported", "is_applied"),
    [("", "Docs", True), ("USE docs;", "Orders", True), ("USE [Docs]", "Orders", True), ("", "Orders", False)],
)
def test_a_folder_of_a_database_holds_no_samples(
    use: str, exported: str, is_applied: bool, tmp_path: Path
) -> None:
    scripts = {"a.sql": PLAIN.format("A"), "Docs/b.sql": f"{use}\nGO\n{PLAIN.format('R')}"}
    scripts["services.csv"] = f"database_name,name,service_id\n{exported},//a,1\n"
    assert addresses(checked(tmp_path, scripts)) == ["TCP://h:4022"] * is_applied


def test_a_file_that_another_includes_is_read_once(tmp_path: Path) -> None:
    scripts = {
        "sub/R.sql": PLAIN.format("R"),
        "post.sql": ":setvar dir sub\n:r .\\$(dir)\\r.SQL\n",
        # Two that include each other are still read.
        "a.sql": "PRINT 'a';\n:r b.sql\n",
        "b.sql": "PRINT 'b';\n",
    }
    done = checked(tmp_path, scripts)
    assert done.evidence.log.rejected == ()
    [note] = [note for note in done.evidence.log.notes if ":r" in note]
    assert "R.sql" in note
    assert "b.sql" in note


def test_circular_includes_are_read_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        tmp_path,
        {"a.sql": "USE x\nGO\nCREATE ROUTE R WITH ADDRESS = N'x';\nGO\n:r b.sql\n", "b.sql": ":r a.sql\n"},
    )
    done = linted(capsys, str(tmp_path))
    assert {(one["code"], one["line"]) for one in done["findings"]} == {("SBR006", 3)}


@pytest.mark.parametrize(
    "delimiter", ["/", "\\n/\\s*\\n|\\n/\\s*$", "\\\\n/\\\\s*$", "@@", "&#10;@@|&#10;GO", "GO", ""]
)
def test_a_changelog_gives_the_delimiter_of_a_script(delimiter: str, tmp_path: Path) -> None:
    sign = next((sign for sign in ("@@", "GO", "/") if sign in delimiter), ";")
    changeset = f'<changeSet id="1"><sqlFile path="a.sql" endDelimiter="{delimiter}"/></changeSet>'
    text = f"{PLAIN.format('Old')}{sign}\nDROP ROUTE [Old];\n{sign}\n{PLAIN.format('R')}{sign}\n" * 2
    scripts = {"all.xml": f"<databaseChangeLog>{changeset}</databaseChangeLog>", "a.sql": text}
    done = checked(tmp_path, scripts)
    assert addresses(done) == ["TCP://h:4022"]
    [why] = done.evidence.log.rejected
    assert "a.sql, line 11: CREATE ROUTE 'R'" in why


WEB = {
    "routes.json": '{"GET /": "home.index"}',
    "services.json": '[{"name": "orders", "port": 8080}]',
    "databases.json": '{"dev": {"host": "x"}}',
    "sub/routes.json": "// comments\n[1, 2]",
    "api/services.json": "{}",
    "gtfs/routes.txt": "route_id,agency_id,route_short_name\n1,A,Line 1\n",
    "angular.json": '{"$schema": "x", "version": 1}',
    "package.json": '{"name": "shop"}',
    "services.csv": '"Name","DisplayName"\n"MSSQLSERVER","SQL Server (MSSQLSERVER)"\n',
    "win/services.csv": '"Status","Name","State"\n"Running","Spooler","Running"\n',
    "tls/certificates.csv": "Subject,Thumbprint\nCN=x,AB\n",
    "web/tcp_endpoints.json": '[{"name": "x", "port": 80}]',
    "win/sub/services.csv": '"Name"\n"Spooler"\n"MSSQLSERVER"\n',
    "win/table/services.txt": "\nName\n----\nSpooler\n\n",
    "win/json/services.json": '[{"Name": "Spooler"}]',
    "compose/services.json": '{"services": [{"name": "web"}]}',
    "node_modules/x/routes.json": "[]",
    "web/routes.json": '[{"path": "/", "name": "home", "address": "x"}]',
}
BAD = "USE Sales; CREATE ROUTE R WITH SERVICE_NAME = N'//a', ADDRESS = N'htp//h';\n"


def test_a_web_project_beside_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {**WEB, "r.sql": BAD})
    done = linted(capsys, str(tmp_path))
    assert [(one["code"], one["line"]) for one in done["findings"]] == [("SBR006", 1)]
    assert done["rejected"] == []
    named = {note.partition(": not read")[0] for note in (*done["unread"], *done["notes"])}
    assert named == {str(tmp_path / name) for name in (*WEB, "node_modules")} - {
        str(tmp_path / "node_modules/x/routes.json")
    }


def test_lint_refuses_a_named_script_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("<databaseChangeLog><changeSet/></databaseChangeLog>")
    assert cli.main(["lint", str(tmp_path / "a.sql")]) == 2
    assert cli.main(["lint", str(tmp_path)]) == 0


@pytest.mark.parametrize("name", ["routes.json", "services.json", "services.csv", "win/services.csv"])
def test_a_named_file_with_other_columns_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, WEB)
    assert cli.main(["lint", str(tmp_path / name)]) == 2
    assert "its columns are others" in capsys.readouterr().err


def test_a_list_of_names_says_which_columns_to_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"services.json": '[{"name": "//a"}]'})
    assert cli.main(["lint", str(tmp_path / "services.json")]) == 2
    assert "as sys.services it lacks service_queue_id" in capsys.readouterr().err


BROKEN = {
    "routes.json": '[{"remote_service_name": "//a"',
    "a.json": '[{"name": "R", "remote_service_name": "//a", "address": "x"},\n{"name',
    "routes.rtf.txt": "{\\rtf1 name\\tab remote_service_name\\tab address\\par\nR\\tab //a\\tab LOCAL\\par}",
    "routes.txt": "{\\rtf1\\ansi name, remote_service_name, address\\par\n}",
    "routes.csv": "name,remote_service_name,route_id\nR,//a,65536\n",
    "nested.json": '[{"d": "Shop", "r": [{"name": "R", "remote_service_name": "//a", "address": "x"}]}]',
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_export_in_a_folder_is_named_and_skipped(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {name: BROKEN[name], "r.sql": BAD})
    done = linted(capsys, str(tmp_path))
    assert [(one["code"], one["line"]) for one in done["findings"]] == [("SBR006", 1)]
    for key in ("unread", "notes"):
        told = [note.startswith(f"{tmp_path / name}: not read, ") for note in done[key]]
        assert told == [True] * (key == "unread")
    assert cli.main(["lint", str(tmp_path), "--format", "sarif"]) == 0
    assert f"not judged: {tmp_path / name}: not read, " in capsys.readouterr().out
    assert cli.main(["lint", str(tmp_path / name)]) == 2


BROKEN_QUEUE = '[{"to_service_name": "//b", "transmission_status": ""'
LIST = "conversation_handle : 1\nto_service_name     : //b\ntransmission_status : \n"


@pytest.mark.parametrize(
    ("name", "text"),
    [("transmission_queue.json", BROKEN_QUEUE), ("x.json", BROKEN_QUEUE), ("x.txt", LIST)],
)
def test_messages_of_a_broken_queue_count_as_unknown(name: str, text: str, tmp_path: Path) -> None:
    write(tmp_path, {**EXPORTS, f"HUB/{name}": text})
    assert check([str(tmp_path)]).evidence.log.unread_queues == (str(tmp_path / "HUB" / name),)


def test_an_object_for_the_handle_of_a_conversation_is_one_refused_row(tmp_path: Path) -> None:
    message = {"conversation_handle": {"Guid": "x"}, "to_service_name": "//b", "enqueue_time": {}}
    text = json.dumps([{**message, "message_sequence_number": 0}])
    write(tmp_path, {**EXPORTS, "HUB/a.json": text, "HUB/b.json": text})
    log = check([str(tmp_path)], database="Orders").evidence.log
    assert [" is not a GUID" in why for why in log.rejected] == [True]


@pytest.mark.parametrize("name", ["again.txt", "transmission_queue.csv"])
@pytest.mark.parametrize("target", ["HUB/HUB.txt", "../elsewhere.txt"])
def test_a_link_to_a_queue_is_unread_unless_its_target_is_read(name: str, target: str, tmp_path: Path) -> None:
    top = tmp_path / "top"
    write(top, {"HUB/databases.txt": DATABASES, "HUB/HUB.txt": QUEUE, "../elsewhere.txt": QUEUE})
    link = top / "HUB" / name
    link.symlink_to(top / target)
    log = check([str(top)]).evidence.log
    is_unread = target != "HUB/HUB.txt" and name != "again.txt"
    assert log.unread_queues == ((str(link),) if is_unread else ())
    assert any(f"{name}: not followed" in note for note in (*log.notes, *log.rejected))
    # The target may be in another PATH.
    assert check([str(top), str(tmp_path / "elsewhere.txt")]).evidence.log.unread_queues == ()


LACKING = b"PAR1 and no end"
FOREIGN = b"version https://git-lfs.github.com/spec/v1\n"


@pytest.mark.parametrize("content", [LACKING, FOREIGN, b""])
def test_a_broken_parquet_file_is_one_unread_file(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {**EXPORTS, "r.sql": BAD})
    file = tmp_path / "routes.parquet"
    file.write_bytes(content)
    done = linted(capsys, str(tmp_path))
    assert "SBR006" in {one["code"] for one in done["findings"]}
    assert sum(note.startswith(f"{file}: not read, ") for note in (*done["unread"], *done["notes"])) == 1
    assert cli.main(["lint", str(file)]) == 2
    # The messages of such a queue are not known.
    file.rename(tmp_path / "transmission_queue.parquet")
    assert cli.main(["check", str(tmp_path), "--fail-on", "not-known"]) == 1
    with pytest.raises(InputError, match="cannot be read"):
        read_export([str(tmp_path)], StandIns("HUB", "Orders"))


def test_a_folder_without_an_export_says_why(tmp_path: Path) -> None:
    write(tmp_path, {"README.adoc": "name"})
    with pytest.raises(InputError, match=r"no export of a view; .*README\.adoc: not read, its name does not end"):
        read_export([str(tmp_path)], StandIns("HUB", "Orders"))


def test_a_file_without_permission_is_one_unread_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {**EXPORTS, "routes.csv": "name,address\n", "routes.json": "[]", "r.sql": BAD})
    read_bytes = Path.read_bytes

    def refuse(self: Path) -> bytes:
        if self.stem == "routes":
            raise PermissionError(13, "Permission denied")
        return read_bytes(self)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    unread = [note for note in linted(capsys, str(tmp_path))["unread"] if "Permission denied" in note]
    assert len(unread) == 2


@pytest.mark.parametrize(
    ("name", "is_noted"),
    [
        *((name, True) for name in ("YourDatabase", "TODO", "REPLACE_ME", "your_db", "xxx", "ServerName")),
        *((name, False) for name in ("Yours", "Todos", "Youngstown", "GetServerNames", "x" * 20)),
    ],
)
def test_a_name_that_a_sample_wrote_is_noted(
    name: str, is_noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"a.sql": f"USE [{name}];\nCREATE ROUTE [{name}] WITH ADDRESS = N'TCP://h:4022';\n"})
    notes = [note for note in linted(capsys, str(tmp_path))["notes"] if "looks like a placeholder" in note]
    assert [note.count(repr(name)) > 0 for note in notes] == [True, True] * is_noted


def test_a_server_that_a_sample_wrote_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        tmp_path, {"a.sql": ":connect YOUR_SERVER\nUSE Shop;\nGO\nCREATE ROUTE R WITH ADDRESS = N'TCP://h:1';\n"}
    )
    [note] = linted(capsys, str(tmp_path))["notes"]
    assert "'YOUR_SERVER' of :connect looks like a placeholder" in note


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [("%DB%", True), ("%db%", True), ("%DB%Backup", True), ("a%FC%20b", False), ("%DB%A9", False)],
)
def test_two_letters_between_percent_signs_are_a_placeholder(name: str, is_refused: bool) -> None:
    assert (find_unfilled(name) is not None) == is_refused


def test_a_copy_of_a_queue_is_not_counted_again(tmp_path: Path) -> None:
    write(tmp_path, {**EXPORTS, "HUB/copy of queue.txt": QUEUE, "HUB/old/queue.txt": QUEUE})
    done = check([str(tmp_path)], database="Orders")
    assert len(done.results) == 1
    assert sum("it has the same rows as" in note for note in done.evidence.log.notes) == 2


@pytest.mark.parametrize("name", ["HUB/old/queue.txt", "HUB/2026-01-05/q.txt", "backup/queue.txt"])
@pytest.mark.parametrize("hour", [3, 18, 21])
@pytest.mark.parametrize("number", ["0", "7"])
def test_an_earlier_queue_in_another_folder_is_not_counted_again(
    name: str, hour: int, number: str, tmp_path: Path
) -> None:
    write(tmp_path, EXPORTS)
    earlier = QUEUE.replace("\t0\t", f"\t{number}\t")
    write(tmp_path, {name: earlier}, WRITTEN.replace(hour=hour))
    done = check([str(tmp_path)], database="Orders")
    assert len(done.results) == 1
    assert sum("not read" in note for note in done.evidence.log.notes) == 1


def test_accents_of_folders_may_be_taken_apart(tmp_path: Path) -> None:
    services = "instance_name,database_name,name,service_id\nS\u00dcD,K\u00f6ln,//a,1\n"
    routes = "name,remote_service_name,address\nr,//x,TCP://h:4022\n"
    write(tmp_path, {**EXPORTS, "services.csv": services, "Su\u0308d/Ko\u0308ln/routes.csv": routes})
    [row] = check([str(tmp_path)]).evidence.rows["routes"]
    assert (row["instance_name"], row["database_name"]) == ("S\u00dcD", "K\u00f6ln")


def test_a_folder_without_parquet_files_is_no_empty_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {**EXPORTS, "services.parquet/_SUCCESS": ""})
    assert any("services.parquet: not read" in note for note in linted(capsys, str(tmp_path))["unread"])


def test_scripts_of_other_databases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "a.sql": "DELIMITER $$\nBEGIN\nEND $$\n",
        "b.sql": "SELECT `x` FROM `t`;",
        "c.sql": "CREATE OR REPLACE FUNCTION f RETURN varchar2 IS BEGIN RETURN 1; END;\n/\n",
    }
    write(tmp_path, {**files, "r.sql": BAD})
    done = linted(capsys, str(tmp_path))
    assert [one["code"] for one in done["findings"]] == ["SBR006"]
    assert [note.partition(":")[0] for note in done["notes"]] == [
        "skipped, since they are scripts for MySQL",
        "skipped, since they are scripts for another database",
        "skipped, since they are scripts for Oracle",
    ]
    done = linted(capsys, str(tmp_path / "a.sql"))
    assert (done["findings"], len(done["unread"]), done["notes"]) == ([], 1, [])
    assert cli.main(["check", str(tmp_path / "a.sql"), *map(str, [write(tmp_path / "e", EXPORTS)])]) == 2
    assert "it is one of MySQL" in capsys.readouterr().err


PROJECT = (
    '<Project DefaultTargets="Build" xmlns="http://schemas.microsoft.com/developer/msbuild/2003">\n'
    "<PropertyGroup><Name>D</Name><ServiceBrokerOption>DisableBroker</ServiceBrokerOption></PropertyGroup>\n"
    '<ItemGroup><None Include="Routes\\R.sql" /><PostDeploy Include="post.sql" /></ItemGroup>\n'
    '<ItemGroup><SqlCmdVariable Include="Peer"><DefaultValue>{}</DefaultValue></SqlCmdVariable></ItemGroup>\n'
    "</Project>\n"
)


def test_lint_reads_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "db/D.sqlproj": PROJECT.format("hub.example"),
        "db/Routes/R.sql": "CREATE ROUTE [R]\n  WITH SERVICE_NAME = N'//a', ADDRESS = N'TCP://$(Peer)';\n",
        "db/post.sql": "/* post */\n:r .\\Routes\\R.sql\n",
        "db/scratch.sql": BAD,
        "other.sql": BAD,
    }
    write(tmp_path, files)
    for path in (tmp_path, tmp_path / "db/D.sqlproj"):
        done = linted(capsys, str(path))
        findings = {
            (one["code"], Path(one["file"]).name, one["database_name"], one["line"]) for one in done["findings"]
        }
        wanted = {("SBR031", "R.sql", "D", 1), ("SBR034", "D.sqlproj", "D", 2)}
        assert findings == wanted | ({("SBR006", "other.sql", None, 1)} if path == tmp_path else set())
        assert done["not_taken"] == []
    [unused] = [note for note in linted(capsys, str(tmp_path))["notes"] if "does not build" in note]
    assert "scratch.sql" in unused
    assert "R.sql" not in unused


def test_reports_list_skipped_statements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, {"r.sql": "CREATE ROUTE [R] WITH ADDRESS = N'TCP://$(Peer)';\n"}) / "r.sql"

    def report(form: str, *options: str, status: int) -> str:
        assert cli.main(["lint", str(file), "--now", NOW, "--format", form, *options]) == status
        return capsys.readouterr().out

    [run] = json.loads(report("sarif", status=0))["runs"]
    [invocation] = run["invocations"]
    [notification] = invocation["toolExecutionNotifications"]
    assert invocation["executionSuccessful"] is False
    assert "r.sql, line 1" in notification["message"]["text"]
    assert "'Peer' has no value" in notification["message"]["text"]
    suites = ElementTree.fromstring(report("junit", "--fail-on", "error", status=1))
    assert (suites.get("errors"), suites.get("failures")) == ("1", "0")
    [error] = suites.iter("error")
    assert "r.sql, line 1" in str(error.text)
    # With something judged, the gate is that of the findings.
    [run] = json.loads(report("sarif", "-v", "Peer=h:1", "--database", "D", "--fail-on", "error", status=0))[
        "runs"
    ]
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]
    file.write_text("-- nothing to do\n", encoding="utf-8")
    assert json.loads(report("sarif", "--fail-on", "error", status=0))["runs"]
    for unread in ("--liquibase formatted sql\nCREATE ROUTE R;\n", "# Notes\n\nCREATE ROUTE R\n"):
        file.write_text(unread, encoding="utf-8")
        [run] = json.loads(report("sarif", "--fail-on", "error", status=1))["runs"]
        [invocation] = run["invocations"]
        assert invocation["executionSuccessful"] is False
        assert "r.sql: not read" in invocation["toolExecutionNotifications"][0]["message"]["text"]
        assert ElementTree.fromstring(report("junit", "--fail-on", "error", status=1)).get("errors") == "1"


def test_a_gate_fails_if_every_file_was_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"r-dev.sql": PLAIN.format("R"), "undo.sql": PLAIN.format("U")})
    line = ["lint", str(tmp_path), "--now", NOW, "--fail-on", "error"]
    assert cli.main(line) == 1
    capsys.readouterr()
    for form, shown in (
        ("sarif", '"executionSuccessful": false'),
        ("junit", 'errors="1"'),
        ("sarif", "r-dev.sql"),
    ):
        assert cli.main([*line, "--format", form]) == 1
        assert shown in capsys.readouterr().out
    assert cli.main([*line, "--environment", "dev", "--database", "Shop"]) == 0


PORTS = (
    ":connect localhost,14331\nUSE Shop;\nGO\n" + PLAIN.format("ToStock") + "GO\n"
    ":connect localhost,14332\nUSE Shop;\nGO\n" + PLAIN.format("ToOrders") + "GO\n"
)


@pytest.mark.parametrize(
    ("instance", "owners"),
    [
        ("HUB,14331", ["HUB,14331", "localhost,14332"]),
        ("tcp:HUB,14331", ["HUB,14331", "localhost,14332"]),
        ("HUB", ["localhost,14331", "localhost,14332"]),
    ],
)
def test_two_ports_of_a_host_are_two_instances(
    instance: str, owners: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"queue.txt": QUEUE, "ports.sql": PORTS})
    arguments = [str(tmp_path), "--instance", instance, "--database", "Shop", "--format", "json"]
    assert cli.main(["check", *arguments]) == 0
    done = json.loads(capsys.readouterr().out)
    assert [one["instance_name"] for one in done["read"]["scripts"]] == owners
    assert sum("separate instance" in note for note in done["notes"]) == sum("localhost" in one for one in owners)
