"""``sbroute diff`` as a user runs it, over hand-written tables and without Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from routing import cli
from routing.config import TableLocation
from routing.delta.local_tables import open_to_write
from routing.result_schemas import CHANGED_HOP, MESSAGE_CHANGES
from routing.schemas import ROUTES, ColumnKind, Field
from tests.estate_rows import database, instance, message, route, service, small_estate
from tests.frames import Tables, arrow_of
from tests.golden_texts import assert_golden
from tests.stored import config_text, job_file, save_estate, save_job, store_local, written

AT = ("--at", "2026-01-05T13:00:00Z")
SCRIPT = """USE Sales;
DROP ROUTE Far;
DROP ROUTE Gone;
CREATE ROUTE Nowhere WITH SERVICE_NAME = '//nowhere', ADDRESS = 'TCP://nowhere.example:4022';
GO
ALTER DATABASE Store SET DISABLE_BROKER;
"""
TRIED = ("--with-script", "change.sql", "--instance", "hub")


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the small estate, another configuration that differs only in routes, and a script."""
    monkeypatch.chdir(tmp_path)
    save_job(small_estate(), tmp_path)
    moved = [route("Far", "//far", "tcp://moved.example:4022"), *small_estate()["routes"][:2]]
    store_local(arrow_of(moved, ROUTES), tmp_path / "moved")
    other = config_text(tmp_path / "in", tmp_path / "out2", routes=tmp_path / "moved")
    (tmp_path / "moved.yaml").write_text(other, encoding="utf-8")
    (tmp_path / "change.sql").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


def ended(capsys: pytest.CaptureFixture[str], *line: str) -> tuple[int, str, str]:
    """Return the exit status and the output of a command."""
    try:
        status = cli.main(["diff", "--config", "job.yaml", *AT, *line])
    except SystemExit as end:
        status = int(end.code or 0)
    out, err = capsys.readouterr()
    return status, out, err


def test_the_printed_answer(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (
        " ".join(TRIED),
        "--against moved.yaml",
        "--against-version 0",
        "--against-time 2026-01-06",
        "--against job.yaml",
    )
    answers = []
    for line in lines:
        status, out, err = ended(capsys, *line.split())
        assert status == 0
        shown = "\n".join(text.rstrip() for text in (out + err).splitlines())
        answers.append(f"sbroute diff {line}\n\n{shown}")
    assert_golden("diff_table.txt", "\n\n\n".join(answers))


def test_as_json(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = ended(capsys, *TRIED, "--format", "json", "--quiet")
    assert (status, out.count("\n")) == (0, 1)
    assert err.startswith("rejected: change.sql, line 3: DROP ROUTE 'Gone'")
    answer = json.loads(out)
    assert list(answer) == [
        *("before", "after", "compared", "changed", "worse", "not_known", "unaddressed"),
        *("counts", "keys", "routes", "findings", "script"),
    ]
    assert answer["before"] == {"what": "job.yaml", "at": "2026-01-05T13:00:00Z"}
    assert answer["after"]["what"] == "job.yaml with change.sql on hub"
    assert (answer["compared"], answer["changed"], answer["worse"]) == (7, 4, 3)
    assert answer["counts"][0] == {
        "outcome_before": "DELIVERED",
        "reason_before": "LOCAL_SERVICE",
        "ending_before": "DELIVERED",
        "ending_reason_before": "LOCAL_SERVICE",
        "outcome_after": "DELAYED",
        "reason_after": "BROKER_DISABLED",
        "ending_after": "DELAYED",
        "ending_reason_after": "BROKER_DISABLED",
        "messages": 2,
        "examples": [
            {
                "instance_name": "hub",
                "message_id": f"m{n}",
                "conversation_id": f"C000000{n}-1111-2222-3333-444444444444",
            }
            for n in (1, 2)
        ],
    }
    assert [row["messages"] for row in answer["keys"]] == [2, 1, 1]
    assert [(row["change"], row["name"]) for row in answer["routes"]] == [("removed", "Far"), ("added", "Nowhere")]
    assert [(row["change"], row["code"], row["severity"]) for row in answer["findings"]] == [
        ("comes", "SBR034", "warning")
    ]
    assert answer["script"]["rejected"] == [err.removeprefix("rejected: ").rstrip("\n")]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--fail-on", "delayed"], 1),
        (["--fail-on", "dropped,delayed"], 1),
        (["--fail-on", "dropped", "--fail-on", "rejected"], 0),
        ([], 0),
    ],
)
def test_fail_on_sets_the_exit_code(
    words: list[str], status: int, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(capsys, *TRIED, *words)[0] == status


# A sends by the hub to B; what the script does to the hub and to B is seen only there.
SERVERS = """:CONNECT HUB
USE msdb;
ALTER ROUTE ToB WITH ADDRESS = 'TCP://{address}:4022';
GO
:CONNECT b
USE Stock;
{of_b}
"""
LEAVE_B = "DROP ROUTE Back;"
NAMES = ("a", "hub", "b")


def _network() -> Tables:
    """Three instances: orders of A go by the hub to B, and the acknowledgements back the same way."""
    ids = {name: f"0000000{n}-0000-4000-8000-000000000000" for n, name in enumerate(NAMES)}
    databases = {"a": "Sales", "b": "Stock"}
    routes = [
        *(
            route("ToB", "//stock", "TCP://hub:4022", instance_name="a", database_name=at)
            for at in ("Sales", "msdb")
        ),
        route("ToB", "//stock", "TCP://b:4022", instance_name="hub", database_name="msdb"),
        route("ToA", "//sales", "TCP://a:4022", instance_name="hub", database_name="msdb"),
        route("Back", "//sales", "TCP://hub:4022", instance_name="b", database_name="Stock"),
        *(route("Local", None, "LOCAL", instance_name=name, database_name="msdb") for name in databases),
    ]
    return {
        "instances": [instance(name, f"tcp://{name}:4022", is_message_forwarding_enabled=True) for name in NAMES],
        "databases": [
            *(database(name, ids[at], instance_name=at) for at, name in databases.items()),
            *(database("msdb", f"{n}" * 8, instance_name=name) for n, name in enumerate(NAMES, 1)),
        ],
        "services": [
            service("Sales", "//sales", instance_name="a"),
            service("Stock", "//stock", instance_name="b"),
        ],
        "routes": routes,
        "messages": [message(n, "//stock", instance_name="a", from_service_name="//sales") for n in (1, 2)],
    }


@pytest.mark.parametrize(
    ("address", "of_b", "ending", "hop", "fails", "passes"),
    [
        ("dead", "", ["NOT_KNOWN", None, None], ["THERE", 2, "hub", "msdb"], ["not-known"], ["delayed,dropped"]),
        ("hub", "", ["DROPPED", "ROUTING_LOOP", "hub"], ["THERE", 2, "hub", "msdb"], ["dropped"], ["loop"]),
        ("a", "", ["LOOP", None, "hub"], ["THERE", 2, "hub", "msdb"], ["dropped", "loop"], ["delayed"]),
        (
            "b",
            "DROP SERVICE [//stock];",
            ["DROPPED", "SERVICE_NOT_FOUND", "b"],
            ["THERE", 3, "b", "msdb"],
            ["dropped"],
            ["delayed,loop"],
        ),
        (
            "b",
            LEAVE_B,
            ["NO_RETURN_PATH", "NO_ROUTE", "b"],
            ["BACK", 1, "b", "Stock"],
            ["delayed", "no-return-path"],
            ["dropped,loop", "rejected"],
        ),
    ],
)
def test_endings_that_get_worse_at_later_hops(
    address: str,
    of_b: str,
    ending: list[str | None],
    hop: list[object],
    fails: list[str],
    passes: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A script for several servers, of which none is the senders' own."""
    monkeypatch.chdir(tmp_path)
    save_estate(_network(), tmp_path / "in")
    job_file(tmp_path, dialogs=None, route_requests=None)
    (tmp_path / "change.sql").write_text(SERVERS.format(address=address, of_b=of_b), encoding="utf-8")
    line = ("--with-script", "change.sql", "--quiet")
    for words, status in ((fails, 1), (passes, 0)):
        for word in words:
            assert ended(capsys, *line, "--fail-on", word)[0] == status, word
    answer = json.loads(ended(capsys, *line, "--format", "json")[1])
    is_known = ending[0] != "NOT_KNOWN"
    assert (answer["changed"], answer["worse"], answer["not_known"]) == (2, 2 * is_known, 2 * (not is_known))
    [key] = answer["keys"]
    assert (key["outcome_before"], key["outcome_after"]) == ("SENT", "SENT")
    names = ("ending", "ending_reason", "ending_instance_name")
    assert [key[f"{name}_before"] for name in names] == ["DELIVERED", "LOCAL_SERVICE", "b"]
    assert [key[f"{name}_after"] for name in names] == ending
    assert [key[name] for name in CHANGED_HOP] == hop


def test_every_changed_message_is_written(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from deltalake import DeltaTable

    before = written(job / "in")
    for line, ids in ((TRIED, ["m1", "m2", "m3", "m4"]), (("--against", "moved.yaml"), ["m3", "m4"])):
        status, _, err = ended(capsys, *line, "--out", "changes", "--quiet")
        assert status == 0, err
        rows = DeltaTable("changes").to_pyarrow_dataset().to_table()
        assert rows.schema.names == MESSAGE_CHANGES.names
        assert sorted(rows["message_id"].to_pylist()) == ids
    # Made, and replaced as a whole in one commit each.
    assert DeltaTable("changes").version() == 2
    [far] = [row for row in rows.to_pylist() if row["message_id"] == "m3"]
    assert (far["address_before"], far["address_after"]) == ("TCP://far.example:4022", "tcp://moved.example:4022")
    assert far["enqueue_time"].isoformat() == "2026-01-05T12:00:00+00:00"
    assert written(job / "in") == before
    open_to_write(TableLocation("changes")).add_columns([Field("remark", ColumnKind.STRING)])
    assert ended(capsys, "--against", "job.yaml", "--out", "changes")[0] == 0
    changes = DeltaTable("changes")
    assert changes.to_pyarrow_dataset().count_rows() == 0
    # Columns that users add are kept, as in every table that a command replaces.
    assert changes.to_pyarrow_dataset().schema.names == [*MESSAGE_CHANGES.names, "remark"]
    assert changes.history(1)[0]["userMetadata"] == "sbroute diff"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--out in/routes", r"--out: 'FOLDER/in/routes' is tables\.routes of the configuration"),
        ("--out moved", r"--out: 'FOLDER/moved' is tables\.routes of the configuration"),
        ("--out ./in/../out2/runs", r"is output\.runs of the configuration"),
        ("--out in", r"--out: 'FOLDER/in' is not empty and is not a Delta table"),
        ("--out copy", r"--out: 'FOLDER/copy' is a table with another schema, \d+ differences: "),
        ("--out job.yaml/new", r"--out: 'FOLDER/job.yaml/new' cannot be written: FOLDER/job.yaml is not a folder"),
    ],
)
def test_other_tables_are_not_overwritten(
    line: str, expected: str, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_local(arrow_of(small_estate()["routes"], ROUTES), job / "copy")
    before = written(job)
    status, out, err = ended(capsys, "--against", "moved.yaml", *line.split())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert re.search(expected, err.replace(str(job), "FOLDER"))
    assert written(job) == before


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "one of the arguments --against --against-version --against-time --with-script is required"),
        ("--against a.yaml --against-time 2026-01-05", "not allowed with argument --against"),
        ("--with-script change.sql", "the instance of the script is unknown (give --instance"),
        ("--against moved.yaml --instance hub", "--instance works only with --with-script"),
        ("--against moved.yaml -v a=b", "-v works only with --with-script"),
        ("--against moved.yaml --fail-on delaid", "--fail-on: unknown word 'delaid' (did you mean delayed?)"),
        ("--against-version 4", "has no version 4, its newest is 1"),
        ("--against-time noon", "--against-time: 'noon' is not an ISO 8601 time"),
        ("--against none.yaml", "the configuration 'none.yaml' cannot be read"),
        ("--with-script none.sql --instance hub", "none.sql"),
    ],
)
def test_invalid_arguments(line: str, expected: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = ended(capsys, *line.split())
    assert (status, out) == (2, "")
    assert expected in err
    assert err.count("\n") == 1


def test_verbose_names_the_engine_of_each_table(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = ended(capsys, "--against", "moved.yaml", "--verbose")
    assert "tables.routes: read by deltalake\n" in err
    assert "messages, dialogs: compared without Spark\n" in err
    # A table of both sides is opened once.
    assert err.count("tables.services: ") == 1
    assert err.count("tables.routes: ") == 2


def test_names_with_control_characters_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    evil = "\x1b[2Jevil\u202e\n[red]"
    tables = small_estate()
    tables["messages"][2] |= {"message_id": evil, "to_service_name": evil}
    tables["routes"][2] |= {"name": evil, "remote_service_name": evil}
    save_job(tables, tmp_path)
    (tmp_path / "a.sql").write_text(
        "USE Sales;\nALTER ROUTE Store WITH ADDRESS = 'TCP://a:1';\n", encoding="utf-8"
    )
    store_local(arrow_of(tables["routes"][:2], ROUTES), tmp_path / "few")
    other = config_text(tmp_path / "in", tmp_path / "out", routes=tmp_path / "few")
    (tmp_path / "few.yaml").write_text(other, encoding="utf-8")
    for line in (("--against", "few.yaml"), ("--with-script", "a.sql", "--instance", evil)):
        status, out, err = ended(capsys, *line)
        assert status == 0
        assert not any(mark in out + err for mark in ("\x1b", "\u202e"))
    assert "evil" in out
