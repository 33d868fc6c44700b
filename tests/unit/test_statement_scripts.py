"""The script of `check --format sql` runs in sqlcmd and `--then`, but never as plain T-SQL."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from routing import cli
from routing.document import SqlStatement
from routing.importing.tsql.servers import find_instance, read_server, write_server
from routing.importing.tsql.sqlcmd import find_comments
from routing.render.text import write_sql
from routing.views.check.check_report import list_statements
from routing.views.check.checking import Check, check
from tests.check_texts import lines_to_run
from tests.exported import database, route, waiting, whole_shop
from tests.exported_estates import write_estates
from tests.exported_networks import exported_network, write_network
from tests.reference.networks import Tables

SEED = 20260512
NETWORKS = 14
# Names of machines with several instances, ports and other languages; then such as no :CONNECT takes.
SERVERS = ("n0,1435", "n1\\two,1436", "n0,1436", "ZÜRICH\\Ä1", "db-7.corp.example", "(local)\\x", "n#$&@_\\in$t")
NO_SERVERS = ("the hub", "it's", "a]b", "a,b", "-S", '"q"', "x;y", "$(x)", "a\\b\\c", "h\\MSSQLSERVER", "\u202eab")
DATABASES = ("a]b", "it's", "a b, c", "Ünï", "[q]", "a;b--", "x'); DROP ROUTE y; --", "$(v)", "<d", "GO", ":r x")
SERVICES = ("//it's/a]b", "//a; DROP ROUTE b", "//$(x)", "//Ü/é", "GO", "<s>", "//'")
VERBS = re.compile(r"-- *(?:CREATE|ALTER|DROP|GRANT|OPEN|END CONVERSATION) .*;")


def renamed(rng: random.Random, tables: Tables) -> Tables:
    """Give the objects of a network hostile names that try to break out of quotes."""
    new: dict[tuple[str, str], str] = {}

    def name_of(kind: str, name: str, names: tuple[str, ...]) -> str:
        used = {other for (its_kind, _), other in new.items() if its_kind == kind}
        left = [one for one in names if one not in used]
        if (kind, name) not in new:
            new[kind, name] = rng.choice(left) if left and rng.random() < 0.7 and name != "msdb" else name
        return new[kind, name]

    def rename(table: str, column: str, value: object) -> object:
        if not isinstance(value, str):
            return value
        if column == "instance_name":
            return name_of("instance", value, SERVERS + NO_SERVERS)
        if column == "database_name" or (table == "databases" and column == "name"):
            return name_of("database", value, DATABASES)
        if column.endswith("service_name") or (table == "services" and column == "name"):
            return value if value.startswith("SQL/") else name_of("service", value, SERVICES)
        return value

    return {
        table: [{column: rename(table, column, value) for column, value in row.items()} for row in rows]
        for table, rows in tables.items()
    }


@dataclass
class Tried:
    """A check, the script that it wrote, and the same check with that script in force."""

    done: Check
    statements: list[SqlStatement]
    script: str
    after: Check


def try_own_statements(folder: Path) -> Tried:
    """Check a folder of exports, then try the proposed statements."""
    done = check([str(folder)])
    statements = list_statements(done)
    file = folder.parent / f"{folder.name}.sql"
    file.write_text(write_sql(statements, "There is nothing to paste."), encoding="utf-8")
    after = check([str(folder)], then=[str(file)]).with_scripts
    assert after is not None
    return Tried(done, statements, file.read_text(encoding="utf-8"), after)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> list[Tried]:
    """Scripts of random networks with hostile names, and of random estates."""
    folder = tmp_path_factory.mktemp("scripts")

    def folders() -> Iterator[Path]:
        for number in range(NETWORKS):
            rng = random.Random(SEED + number)
            own = folder / f"network{number}"
            write_network(own, renamed(rng, exported_network(rng, 30)))
            yield own
        write_estates(random.Random(SEED), folder / "estates", range(5), less=1, scripted=2)
        yield folder / "estates"

    return [try_own_statements(own) for own in folders()]


def test_check_accepts_its_own_statements(tried: list[Tried]) -> None:
    """Every statement counts for its instance, and statements in comments are named."""
    applied = commented = 0
    for one in tried:
        evidence = one.after.evidence
        assert evidence.log.rejected == ()
        lines = one.script.split("\n")
        meant = [line for line in lines if re.match(r"(?:CREATE|ALTER|DROP) (?:ROUTE|DATABASE) ", line)]
        assert sum(script.statements for script in evidence.log.scripts) >= len(meant)
        assert {script.instance for script in evidence.log.scripts} <= set(one.done.evidence.instances)
        notes = [note for note in evidence.log.notes if ": a comment, so it is not applied: " in note]
        assert [note.partition("applied: ")[2] for note in notes] == [
            line.removeprefix("--").strip() for line in lines if VERBS.fullmatch(line)
        ]
        applied += len(meant)
        commented += len(notes)
    assert min(applied, commented) > 20


def test_a_block_for_each_server_and_nothing_runs_without_sqlcmd(tried: list[Tried]) -> None:
    """SSMS and others send batch by batch: each has a line that is no T-SQL."""
    blocks = unknown = 0
    for one in tried:
        if not one.statements:
            continue
        assert one.script.startswith(":on error exit\n")
        assert one.script.endswith("\nGO")
        for batch in re.split(r"^GO$", one.script, flags=re.MULTILINE)[:-1]:
            assert any(line.startswith(":") for line in batch.split("\n")) or not code_of(batch)
        servers = re.findall(r"^:CONNECT (.*)$", one.script, re.MULTILINE)
        assert len(servers) == len(set(servers))
        assert set(servers) <= set(one.done.evidence.instances)
        for block in re.split(r"^(?:-- )?:CONNECT ", one.script, flags=re.MULTILINE)[1:]:
            assert block.rstrip().endswith("\nGO")
            is_known = not block.startswith("<the server of '")
            assert is_known or not code_of(block.partition("\n")[2].replace("\nGO", ""))
            blocks, unknown = blocks + is_known, unknown + (not is_known)
    assert min(blocks, unknown) > 5


def code_of(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip() and not line.startswith("--")]


def test_statements_to_run_get_messages_moving(tried: list[Tried]) -> None:
    """With all of it in force fewer messages are stuck."""

    def count_moving(done: Check) -> int:
        return sum(result.case.is_on_its_way for result in done.results)

    assert sum(count_moving(one.after) for one in tried) > sum(count_moving(one.done) for one in tried)


@pytest.mark.parametrize("name", SERVERS)
def test_names_of_servers_round_trip(name: str) -> None:
    assert write_server(name) == name
    assert read_server(f"{name} -l 30") == name
    assert find_instance(name, ["n0", "n0,1435", "n0,1436", "n1\\two", *SERVERS]) == name


@pytest.mark.parametrize("name", [*NO_SERVERS, "", " ", "a\nb", "tcp:x", "x,", "x,123456", "<x>", "a'b"])
def test_an_invalid_server_name_is_not_written(name: str) -> None:
    assert write_server(name) is None


@pytest.mark.parametrize(
    ("server", "instances", "instance"),
    [
        ("hub", ["HUB"], "HUB"),
        ("hub,1435", ["HUB"], None),
        ("hub,1433", ["HUB"], "HUB"),
        ("hub", ["HUB,1433"], "HUB,1433"),
        ("tcp:hub,1433", ["HUB", "HUB,1433"], "HUB"),
        ("hub,1433", ["HUB", "HUB,1433"], "HUB,1433"),
        ("hub\\a,1433", ["HUB\\A"], None),
        ("hub\\mssqlserver", ["HUB"], "HUB"),
        ("hub,1435", ["HUB", "HUB,1435"], "HUB,1435"),
        ("hub,1436", ["HUB", "HUB,1435"], None),
        ("hub,1436", ["HUB,1435"], None),
        ("hub", ["HUB,1435"], None),
        ("localhost", ["localhost"], "localhost"),
        ("localhost", ["HUB"], None),
    ],
)
def test_the_instance_of_a_server(server: str, instances: list[str], instance: str | None) -> None:
    assert find_instance(server, instances) == instance


@pytest.mark.parametrize(
    ("text", "statements", "is_all"),
    [
        ("-- ALTER ROUTE [a] WITH ADDRESS = N'<x>';", [(1, "ALTER ROUTE [a] WITH ADDRESS = N'<x>';")], True),
        (":CONNECT X\n--DROP ROUTE a;\nGO", [(2, "DROP ROUTE a;")], True),
        ("USE x;\n  -- end conversation '<h>';", [(2, "end conversation '<h>';")], False),
        ("-- ALTER ROUTE as the manual says\n-- SELECT 1;", [], True),
        ("SELECT '\n-- DROP ROUTE a;\n';", [], False),
        ("/*\n-- DROP ROUTE a;\n*/", [], True),
        ("DROP ROUTE a; -- DROP ROUTE b;", [(1, "DROP ROUTE b;")], False),
        ("", [], False),
        ("GO\n", [], False),
        ("prose", [], False),
    ],
)
def test_statements_in_comments(text: str, statements: list[tuple[int, str]], is_all: bool) -> None:
    comments = find_comments(text)
    assert (list(comments.statements), comments.is_all) == (statements, is_all)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["check", *arguments, "--width", "1000"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("queue", "note"),
    [
        ([waiting(1, "//nowhere")], ": a comment, so it is not applied: CREATE ROUTE [Route to //nowhere]"),
        ([], "it has only comments, so nothing is applied"),
    ],
    ids=["all of it needs a value", "nothing to paste"],
)
def test_a_script_of_comments_changes_nothing(
    queue: list[dict[str, object]], note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(whole_shop(tmp_path / "exports", queue))
    fix = tmp_path / "fix.sql"
    fix.write_text(run(capsys, folder, "--format", "sql"), encoding="utf-8")
    tried = run(capsys, folder, "--then", str(fix))
    assert f"- note: {fix}" in tried
    assert note in tried


def test_a_route_is_replaced_in_one_transaction(tmp_path: Path) -> None:
    expired = route("ToStock", "//stock", "TCP://hub.example:4022", lifetime="2026-01-01T00:00:00")
    folder = whole_shop(tmp_path / "exports", [waiting(1, "//stock")], routes={"Orders": [expired], "msdb": []})
    tried = try_own_statements(folder)
    replaced = "SET XACT_ABORT ON;\nBEGIN TRANSACTION;\nDROP ROUTE [ToStock];\nCREATE ROUTE [ToStock] WITH "
    assert replaced in tried.script
    [routes] = [row for row in tried.after.evidence.rows["routes"] if row["name"] == "ToStock"]
    assert (routes["lifetime"], routes["address"]) == (None, "TCP://hub.example:4022")
    assert [result.case.outcome for result in tried.after.results] == ["SENT"]


def test_different_routes_have_different_names(tmp_path: Path) -> None:
    """Names of routes are compared without case, names of services are not. Other messages change no name."""

    def check_messages(name: str, *services: str) -> Tried:
        folder = whole_shop(
            tmp_path / name,
            [waiting(number, service) for number, service in enumerate(services, 1)],
            databases=[database("Orders", "0d0d0d0d"), database("Stock", "0e0e0e0e")],
            routes={"Orders": [route("AutoCreatedLocal", "//x", "TCP://x:1")], "msdb": [], "Stock": []},
            services={"Stock": [{"name": "//stock"}, {"name": "//Stock"}], "Orders": [], "msdb": []},
        )
        return try_own_statements(folder)

    tried = check_messages("exports", "//Stock", "//stock")
    created = re.findall(r"CREATE ROUTE \[Route to (//stock [0-9a-f]{8})\]", tried.script, re.IGNORECASE)
    assert [name[:-9] for name in created] == ["//Stock", "//stock"]
    assert len({name.lower() for name in created}) == 2
    assert tried.after.evidence.log.rejected == ()
    assert {result.case.outcome for result in tried.after.results} == {"DELIVERED"}
    assert f"CREATE ROUTE [Route to {created[1]}] " in check_messages("second", "//stock").script


def test_a_statement_for_a_database_that_no_export_names_is_a_comment(tmp_path: Path) -> None:
    """In a script it would run in the database of the statement before it."""
    folder = tmp_path / "exports"
    folder.mkdir()
    handle = "e0000001-0000-4000-8000-000000000000"
    files = {
        "queue.csv": "conversation_handle,to_service_name,to_broker_instance,from_service_name,enqueue_time,"
        f"message_sequence_number,transmission_status\n{handle},//billing,,//orders,2026-01-05T14:03:22,0,\n",
        "routes.csv": "name,remote_service_name,broker_instance,lifetime,address,mirror_address\n"
        "R,//Billing,,,TCP://far.example:4022,\n",
        "services.csv": "name,service_id\n//orders,65537\n",
        "endpoints.csv": "conversation_handle,conversation_id,is_initiator,conversation_group_id,lifetime,"
        f"far_service,far_broker_instance\n{handle},c{handle[1:]},1,,2090-01-01T00:00:00,//billing,\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    tried = try_own_statements(folder)
    altered = "ALTER ROUTE [R] WITH SERVICE_NAME = N'//billing';"
    assert f"\n-- USE [<database>];\n-- {altered}\nGO" in tried.script
    assert lines_to_run(tried.script) == []
    assert "put a value into each place <…>" in tried.script
    assert [note.endswith(altered) for note in tried.after.evidence.log.notes] == [True]
