"""One message followed by `trace`, from tables to paths, text and JSON, also through the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routing.cases.questions import DescribedMessage, StoredMessage
from routing.cli import main
from routing.render.text import write_text
from routing.terms import Ending
from routing.views.trace.tracing import TraceResult, make_document, trace
from tests.frames import arrow, load_trace_cases, moment
from tests.golden_texts import assert_golden
from tests.stored import save_job

CASES = {case["case"]: case for case in load_trace_cases()}


def _tables(case: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The tables of a case, with its message stored."""
    ask = case["ask"]
    message = {
        "message_id": "m1",
        "conversation_id": ask["conversation_id"].upper(),
        "is_initiator": True,
        "enqueue_time": case["at"],
        "instance_name": ask["instance"],
        "database_name": ask["database"],
        "to_service_name": ask["service"],
        "from_service_name": ask["from_service"],
        "hops_remaining": ask.get("hops_remaining"),
    }
    return {**case["tables"], "messages": [message]}


def _described(case: dict[str, Any], **other: Any) -> DescribedMessage:
    ask = case["ask"]
    options = {
        "conversation_id": ask["conversation_id"],
        "from_service_name": ask["from_service"],
        "hops_remaining": ask.get("hops_remaining"),
    }
    return DescribedMessage(
        ask["instance"], ask["database"], ask["service"], moment(case["at"]), **{**options, **other}
    )


def _text(done: TraceResult) -> str:
    return write_text(make_document(done), width=100)


def _ends(done: TraceResult, direction: str) -> list[dict[str, Any]]:
    names = {"outcome": "end", "reason": "reason", "instance_name": "instance", "database_name": "database"}
    rows = [row for row in done.way_rows if row["direction"] == direction]
    return [{names[name]: row[name] for name in names} for row in rows]


def _expected(ways: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: way.get(name) for name in ("end", "reason", "instance", "database")} for way in ways]


@pytest.mark.parametrize("name", CASES)
def test_stored_and_described_messages_are_followed_alike(name: str) -> None:
    case = CASES[name]
    stored = trace(arrow(_tables(case)), StoredMessage("m1"))
    described = trace(arrow({**case["tables"], "messages": []}), _described(case))
    for done in (stored, described):
        assert _ends(done, "THERE") == _expected(case["ways"])
        if "back" in case:
            assert _ends(done, "BACK") == _expected(case["back"])
        numbers = [(row["direction"], row["way"], row["hop"]) for row in done.hop_rows]
        if "back" not in case:
            numbers = [number for number in numbers if number[0] == "THERE"]
        ways = [("THERE", case["ways"]), ("BACK", case.get("back", []))]
        assert numbers == [
            (direction, number, hop)
            for direction, told in ways
            for number, way in enumerate(told, 1)
            for hop in range(1, len(way["hops"]) + 1)
        ]
    assert stored.hop_rows == described.hop_rows


def test_every_case_prints_as_a_path() -> None:
    parts = []
    for name, case in CASES.items():
        parts.append(f"## {name}\n{_text(trace(arrow(_tables(case)), StoredMessage('m1')))}")
    assert_golden("trace_paths.txt", "\n\n".join(parts) + "\n")


def test_an_acknowledgement_received_by_a_copy_is_lost() -> None:
    """The copies come first among the remedies, and no sentence says that all is right."""
    tables = json.loads(json.dumps(_tables(CASES["There and back"])))
    [sender] = [row for row in tables["databases"] if (row["instance_name"], row["name"]) == ("a", "Sales")]
    [instance] = [row for row in tables["instances"] if row["instance_name"] == "a"]
    tables["instances"].append({**instance, "instance_name": "copy", "addresses": ["tcp://copy:4022"]})
    tables["databases"].append({**sender, "instance_name": "copy"})
    copied = [row for row in tables["services"] if row["instance_name"] == "a"]
    tables["services"] += [{**row, "instance_name": "copy"} for row in copied]
    [back] = [row for row in tables["routes"] if row["name"] == "ToSales"]
    back["address"] = "tcp://copy:4022"
    done = trace(arrow(tables), StoredMessage("m1"))
    answer = " ".join(_text(done).split("\n\n")[0].split())
    assert "no acknowledgement comes back" in answer
    assert "'Sales' of instance 'copy', which has the same broker instance" in answer
    assert [remedy.place for remedy in done.remedies] == [("copy", "master"), ("a", "master")]
    assert all("SET NEW_BROKER" in (remedy.statement or "") for remedy in done.remedies)


def test_a_route_to_another_port_of_a_known_machine_is_corrected() -> None:
    tables = json.loads(json.dumps(_tables(CASES["There and back"])))
    [there] = [row for row in tables["routes"] if row["name"] == "ToStock"]
    there["address"] = "tcp://b:4023"
    done = trace(arrow(tables), StoredMessage("m1"))
    assert [path.there.ending for path in done.paths] == [Ending.LEFT_ESTATE]
    [remedy] = done.remedies
    assert "'tcp://b:4023', but the endpoint of 'b' listens on port 4022" in remedy.cause
    assert "ALTER ROUTE [ToStock] WITH ADDRESS = N'tcp://b:4022';" in (remedy.statement or "")


def test_a_message_of_any_dialog_has_every_distinct_path() -> None:
    case = CASES["Balanced by broker instance"]
    done = trace(arrow({**case["tables"], "messages": []}), _described(case, conversation_id=None))
    there = [row for row in done.way_rows if row["direction"] == "THERE"]
    assert [(row["path"], row["instance_name"], row["database_name"]) for row in there] == [
        (1, "b", "Stock"),
        (2, "c", "Stock"),
    ]
    text = _text(done)
    assert "Path 2 of 2; the dialog-ID hash picks one" in text
    assert "of any dialog" in text


def test_without_its_sender_the_path_back_is_not_known() -> None:
    case = CASES["There and back"]
    done = trace(arrow({**case["tables"], "messages": []}), _described(case, from_service_name=None))
    [path] = done.paths
    assert path.back_ending is Ending.NOT_KNOWN
    assert "And back: NOT_KNOWN, because the sending service is not known (from_service_name)." in _text(done)


def test_names_cannot_move_the_cursor() -> None:
    case = CASES["There and back"]
    tables = json.loads(json.dumps(_tables(case)).replace("ToStock", "To\\u001b[2JStock"))
    text = _text(trace(arrow(tables), StoredMessage("m1")))
    assert "\x1b" not in text
    assert "\\x1b[2JStock" in text


def test_the_command_prints_a_path_as_text_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = _stored(tmp_path, CASES["By a forwarder"])
    assert main(["trace", "--config", config, "--message-id", "m1", "--width", "120"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(
        "DELIVERED: the message reaches database 'Stock' of instance 'b', and its acknowledgement"
    )
    assert "  2. 'gate', 'msdb': step 2, route 'On', FORWARDED to 'tcp://b:4022' (NETWORK_ADDRESS)" in text
    assert text.rstrip().endswith("3. 'a', 'msdb': step 0, DELIVERED to database 'Sales'")
    described = [
        *("--instance", "a", "--database", "Sales", "--service", "//example.com/stock", "--hops", "0"),
        *("--from-service", "//example.com/sales", "--at", "2026-01-05T12:00:00Z"),
    ]
    assert main(["trace", "--config", config, *described, "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["paths"] == [
        {
            "end": "DROPPED",
            "outcome": "DROPPED",
            "ways_agree": True,
            "multiple_targets": False,
            "return_outcome": None,
            "return_ways_agree": None,
        }
    ]
    assert [(hop["instance_name"], hop["reason"]) for hop in answer["hops"]] == [
        ("a", "NETWORK_ADDRESS"),
        ("gate", "HOP_LIMIT"),
    ]


def test_the_command_follows_all_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = _stored(tmp_path, CASES["By a forwarder"])
    paths = f"output.message_paths={tmp_path / 'out' / 'message_paths'}"
    assert main(["trace", "--all", "--config", config, "--set", paths]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 of 1 message is DELIVERED."
    assert lines[4].split() == ["DELIVERED", "1"]
    assert lines[-1].startswith("1 message read = 1 followed + 0 rejected; version ")
    assert main(["trace", "--all", "--config", config, "--set", paths, "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {**answer, "version": None} == {
        "version": None,
        "read": 1,
        "followed": 1,
        "rejected": 0,
        "ends": {"DELIVERED": 1},
        "outcomes": {"DELIVERED": 1},
    }
    assert main(["trace", "--all", "--config", config]) == 2
    assert "output.message_paths" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--all", "--message-id", "m1"], "--all follows every message, --message-id only one"),
        (["--message-id", "m1", "--hops", "0"], "--message-id names a stored message, which --hops cannot change"),
        (
            ["--all", "--hops", "2", "--from-network"],
            "--all follows every message, --from-network and --hops only one",
        ),
        ([], "no message is named"),
        (["--message-id", "m1", "--from-service", "s"], "--from-service"),
        (["--message-id", "m2"], "no message 'm2' is stored"),
        (["--instance", "x", "--database", "y", "--service", "s"], "no instance 'x' is listed"),
        (["--from-service", "s"], "needs --instance and --database or --from-network and --service"),
    ],
)
def test_invalid_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], expected: str
) -> None:
    assert main(["trace", "--config", _stored(tmp_path, CASES["There and back"]), *options]) == 2
    assert expected in capsys.readouterr().err


def test_a_faulty_row_of_another_instance_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES["There and back"]
    routes = [*case["tables"]["routes"], {**case["tables"]["routes"][1], "name": "x", "address": "nowhere"}]
    config = _stored(tmp_path, {**case, "tables": {**case["tables"], "routes": routes}})
    assert main(["trace", "--config", config, "--message-id", "m1"]) == 2
    assert "nowhere" in capsys.readouterr().err


def _stored(folder: Path, case: dict[str, Any]) -> str:
    return str(save_job(_tables(case), folder))
