"""Database projects in the old and the SDK style: the scripts that MSBuild would deploy."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

import pytest

from routing.cases.exported_files import FileOptions
from routing.importing.sql_projects import read_project
from routing.importing.tsql.script_reader import ReadScript, outline_of, read_file
from routing.importing.tsql.script_statements import CreateRoute
from routing.lint.file_linting import lint_files

OLD = '<Project ToolsVersion="4.0" xmlns="http://schemas.microsoft.com/developer/msbuild/2003">{}</Project>'
SDK = '<Project><Sdk Name="Microsoft.Build.Sql" Version="0.2.0" />{}</Project>'
SDK_ATTRIBUTE = '<Project Sdk="Microsoft.Build.Sql/1.0.0">\n{}</Project>'
NOW = datetime(2026, 1, 5, tzinfo=timezone.utc)
NO_FILES: Mapping[str, str] = {}
ROUTE = "CREATE ROUTE [{}] WITH SERVICE_NAME = N'//a', ADDRESS = N'TCP://$(Peer)';\n"


def project(folder: Path, text: str, files: Mapping[str, str] = NO_FILES) -> Path:
    for name, content in {**files, "Shop.sqlproj": text}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return folder / "Shop.sqlproj"


def routes(script: ReadScript) -> list[str | None]:
    return [one.name for one in script.statements if isinstance(one, CreateRoute)]


def addresses(script: ReadScript) -> list[str | None]:
    return [one.options.address for one in script.statements if isinstance(one, CreateRoute)]


def test_a_project_of_the_old_style_is_read(tmp_path: Path) -> None:
    text = OLD.format(
        "\n<PropertyGroup><Name>Shop.Db</Name><TargetDatabase>Shop</TargetDatabase>"
        "\n<ServiceBrokerOption>EnableBroker</ServiceBrokerOption></PropertyGroup>"
        '\n<ItemGroup><Build Include="Routes\\*.sql" Exclude="Routes\\Old.sql" />'
        '<Build Include="more\\A.SQL" /><None Include="Parts\\P.sql" />'
        '\n<PreDeploy Include="pre.sql" /><PostDeploy Include="post.sql" /></ItemGroup>'
        '\n<ItemGroup><SqlCmdVariable Include="Peer"><DefaultValue>hub:4022</DefaultValue>'
        "<Value>$(SqlCmdVar__1)</Value>"
        '</SqlCmdVariable><SqlCmdVariable Include="None"><DefaultValue /></SqlCmdVariable></ItemGroup>'
    )
    files = {
        **{f"Routes/{name}.sql": ROUTE.format(name) for name in ("R10", "R2", "Old")},
        "More/a.sql": ROUTE.format("A"),
        "Parts/P.sql": ROUTE.format("P"),
        "pre.sql": "/* first */\nUSE [$(DatabaseName)];\nDROP ROUTE [Gone];",
        "post.sql": ":r .\\parts\\P.sql\nGO\nCREATE ROUTE N WITH ADDRESS = N'TCP://$(None)'",
    }
    path = project(tmp_path, text, files)
    script = read_file(path, scripted_at=NOW)
    assert routes(script) == ["A", "R2", "R10", "P"]
    assert {statement.database for statement in script.statements if statement.database} == {"Shop"}
    option = next(one for one in script.statements if type(one).__name__.startswith("AlterDatabase"))
    assert (option.file, option.line) == (str(path), 3)
    assert addresses(script) == ["TCP://hub:4022"] * 4
    assert [(problem.file, problem.line) for problem in script.problems] == [(str(tmp_path / "post.sql"), 3)]
    assert "'None' has no value" in script.problems[0].why
    given = read_file(path, scripted_at=NOW, variables={"PEER": "x:1"}, database="Other")
    assert set(addresses(given)) == {"TCP://x:1"}
    assert given.first_database == "Shop"


def test_conditions_are_noted_and_names_of_items_evaluated(tmp_path: Path) -> None:
    text = OLD.format(
        '<ItemGroup Condition="x">\n<Build Include="$(MSBuildThisFileDirectory)a%20b%281%29.sql" /></ItemGroup>'
        '<Choose><When Condition="y"><ItemGroup>\n<Build Include="c.sql" /></ItemGroup></When></Choose>'
    )
    path = project(tmp_path, text, {"a b(1).sql": ROUTE.format("A"), "c.sql": ROUTE.format("C")})
    script = read_file(path, scripted_at=NOW, variables={"Peer": "h:1"})
    assert routes(script) == ["A", "C"]
    why = "the condition of <Build> is not evaluated, so its scripts are read"
    assert script.guesses == (f"{path}, line 2: {why}", f"{path}, line 3: {why}")


def test_a_publish_profile_is_named_once(tmp_path: Path) -> None:
    profile = OLD.format(
        "<PropertyGroup><TargetDatabaseName>Sales</TargetDatabaseName></PropertyGroup>"
        '<ItemGroup><SqlCmdVariable Include="Peer"><Value>h:2</Value></SqlCmdVariable></ItemGroup>'
    )
    path = project(tmp_path, SDK.format(""), {"Prod.publish.xml": profile, "R.sql": ROUTE.format("R")})
    why = "not read, it is a publish profile of the database Sales (give its values with -v): Peer"
    for named in (tmp_path, path):
        notes = lint_files([str(named)], FileOptions(), now=NOW).notes
        profiles = [note for note in notes if "Prod.publish.xml" in note]
        assert profiles == [f"{tmp_path}/Prod.publish.xml: {why}"], named


def test_the_scripts_of_a_project_count_as_read(tmp_path: Path) -> None:
    files = {"R.sql": ROUTE.format("R"), "post.sql": ":r .\\sub\\..\\n.sql\n", "n.sql": "SELECT 1", "old.sql": ""}
    items = '<PostDeploy Include="post.sql" /><Build Remove="n.sql" /><Build Remove="old.sql" />'
    path = project(tmp_path, SDK.format(f"<ItemGroup>{items}</ItemGroup>"), {**files, "sub/x.txt": "x"})
    for named, skipped in ((tmp_path, 2), (path, 0)):
        done = lint_files([str(named)], FileOptions(), now=NOW)
        assert (done.files_read, done.files_skipped) == (4, skipped), named


def test_a_project_in_the_working_directory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project(tmp_path / "db", SDK.format('<Build Include="..\\Shared\\S.sql" />')).parent)
    project(tmp_path, "", {"Shared/S.sql": ROUTE.format("S"), "db/sub/R.sql": ROUTE.format("R")})
    script = read_file(Path("Shop.sqlproj"), scripted_at=NOW, variables={"Peer": "h:1"})
    assert routes(script) == ["S", "R"]
    assert script.problems == ()


@pytest.mark.parametrize("style", [SDK, SDK_ATTRIBUTE])
def test_a_project_of_the_sdk_takes_the_files_in_its_folder(style: str, tmp_path: Path) -> None:
    files = {
        **{f"{name}.sql": ROUTE.format(name) for name in ("a", "sub/b", "sub/old/c", "bin/Debug/d", "obj/e", "n")},
        "post.sql": ":r n.sql\n",
    }
    items = '<PostDeploy Include="post.sql" /><Build Remove="sub\\old\\**" /><None Include="n.sql" />'
    path = project(tmp_path, style.format(f"<ItemGroup>{items}</ItemGroup>"), files)
    assert routes(read_file(path, database="x", scripted_at=NOW, variables={"Peer": "h:1"})) == ["a", "sub/b", "n"]
    assert read_project(path).database == "Shop"
    off = "<PropertyGroup><EnableDefaultSqlItems>False</EnableDefaultSqlItems></PropertyGroup>"
    off += f"<ItemGroup>{items}</ItemGroup>"
    path = project(tmp_path, style.format(off), files)
    assert [Path(file).name for file in outline_of(path).included] == ["post.sql", "n.sql"]


def test_an_sdk_that_builds_content_leaves_the_folders_of_deployments_out(tmp_path: Path) -> None:
    files = {
        **{f"{name}.sql": ROUTE.format(name) for name in ("a", "old/b", "Post-Deployment/c")},
        "Post-Deployment/post.sql": ":r c.sql\n",
    }
    items = '<PostDeploy Include="Post-Deployment\\post.sql" /><Content Remove="old\\**" />'
    path = project(
        tmp_path, f'<Project Sdk="MSBuild.Sdk.SqlProj/2.7.0"><ItemGroup>{items}</ItemGroup></Project>', files
    )
    assert routes(read_file(path, scripted_at=NOW, variables={"Peer": "h:1"})) == ["a", "Post-Deployment/c"]


@pytest.mark.parametrize(
    ("option", "state"),
    [("EnableBroker", "ENABLE_BROKER"), ("DisableBroker", "DISABLE_BROKER"), ("NewBroker", "NEW_BROKER")],
)
def test_the_broker_and_the_name_of_the_database(option: str, state: str, tmp_path: Path) -> None:
    properties = (
        f"<TargetDatabaseName>$(Base)_db</TargetDatabaseName><ServiceBrokerOption>{option}</ServiceBrokerOption>"
    )
    path = project(
        tmp_path,
        OLD.format(
            "<PropertyGroup><Base>Sh'o]p</Base></PropertyGroup>"
            f"<PropertyGroup Condition=\"'$(Configuration)' == 'Debug'\"><Base>Other</Base></PropertyGroup>"
            f"<PropertyGroup>{properties}</PropertyGroup>"
        ),
    )
    read = read_project(path)
    assert read.database == "Sh'o]p_db"
    assert f"[Sh'o]]p_db] SET {state};" in read.sources[0].text
    assert "DB_ID(N'Sh''o]p_db')" in read.sources[0].text


def test_a_missing_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = project(tmp_path, OLD.format('\n\n<ItemGroup><Build Include="gone.sql" /></ItemGroup>'))
    [problem] = read_file(path, scripted_at=NOW).problems
    assert (problem.file, problem.line) == (str(path), 3)
    assert "'gone.sql' of :r is not read" in problem.why


BOMB = '<!DOCTYPE p [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><Project><Name>&b;</Name></Project>'
EXTERNAL = '<!DOCTYPE p SYSTEM "file:///etc/passwd"><Project />'


@pytest.mark.parametrize(
    ("text", "why"),
    [(BOMB, "DTD"), (EXTERNAL, "DTD"), ("<Project>", "not XML"), ("no", "not XML"), ("<dacpac/>", "<dacpac>")],
)
def test_a_document_that_is_not_a_project_is_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=why):
        read_project(project(tmp_path, text))


def test_a_project_of_many_files(tmp_path: Path) -> None:
    """More than :r may read from one script."""
    files = {f"r{number}.sql": ROUTE.format(number) for number in range(1010)}
    script = read_file(project(tmp_path, SDK.format(""), files), scripted_at=NOW, variables={"Peer": "h:1"})
    assert len(routes(script)) == 1010
