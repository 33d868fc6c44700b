"""``sbroute messages`` as a user runs it, over hand-written tables and without Spark."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

import routing
from routing.schemas import IMPORTS as IMPORTS_SCHEMA
from routing.schemas import OBSERVED_ROUTING, RESOLVED_ROUTES, RUNS
from tests.frames import arrow_of
from tests.golden_texts import assert_golden
from tests.listed_messages import IMPORTS, OBSERVED, RESOLVED, resolved
from tests.stored import job_without_tables, store_local
from tests.unit.test_runs_command import output_over, recorded

NOW = ("--now", "2026-01-05T12:00:00Z")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a configuration over the outputs of one run and the leftovers of an unfinished one."""
    folder = tmp_path_factory.mktemp("listed")
    made(folder)
    return folder / "job.yaml"


def made(folder: Path) -> None:
    from deltalake import write_deltalake

    configured(folder)
    out, settings = folder / "out", {"output": {"runs": "out/runs"}, "tables": {"messages": "messages"}}
    store_local(arrow_of(RESOLVED, RESOLVED_ROUTES), out / "resolved_routes")
    left_over = arrow_of([resolved("x1", "//stock", "01:00:00", "DELAYED NO_ROUTE")], RESOLVED_ROUTES)
    write_deltalake(str(out / "resolved_routes"), left_over, mode="append")
    run = recorded("run-1", "2026-01-05T11:00:00Z", "2026-01-05T11:00:01Z", settings=json.dumps(settings))
    store_local(arrow_of([{**run, "output_versions": {"resolved_routes": 0}}], RUNS), out / "runs")
    store_local(arrow_of(OBSERVED, OBSERVED_ROUTING), folder / "observed_routing")
    store_local(arrow_of(IMPORTS, IMPORTS_SCHEMA), folder / "imports")


def configured(folder: Path, *, without: tuple[str, ...] = ()) -> Path:
    imported = {key: folder / key for key in ("observed_routing", "imports") if key not in without}
    return job_without_tables(folder, **imported)


def phrase(capsys: pytest.CaptureFixture[str], job: Path, *line: str, status: int = 0) -> str:
    return output_over(capsys, job, "messages", *NOW, *line, status=status)


def test_the_printed_answer(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (
        *("", "--oldest --limit 2", "--waiting", "--waiting --reason no_route --reason BROKER_DISABLED"),
        *("--limit 1", "--reason BROKER_DISABLED", "--outcome delivered --limit 1"),
    )
    told = [f"sbroute messages {line}\n\n{phrase(capsys, job, *line.split())}" for line in lines]
    assert_golden("messages_table.txt", "\n\n".join(told))


def test_many_reasons_become_a_table(job: Path) -> None:
    config = routing.load_config(str(job))
    listed = routing.list_messages(config, routing.ask(), now=datetime(2026, 1, 5, 12, tzinfo=timezone.utc))
    ends = ["DELAYED NO_ROUTE", "DROPPED NO_ROUTE", "DROPPED HOP_LIMIT", "DROPPED ROUTING_LOOP"]
    counts = [{"outcome": end.split()[0], "reason": end.split()[1], "messages": 2} for end in ends]
    shown = routing.text_of(replace(listed, counts=replace(listed.counts, rows=tuple(counts))), width=80)
    assert shown.startswith("8 messages are stuck, ")
    assert "for 3 reasons.\n\nStuck messages\noutcome  reason" in shown
    assert ["DROPPED", "HOP_LIMIT", "2"] in [line.split() for line in shown.splitlines()]


def test_json_lists_the_messages(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = phrase(capsys, job, "--format", "json", "--reason", "NO_ROUTE", "--waiting", "--limit", "1")
    assert json.loads(answer) == {
        "now": "2026-01-05T12:00:00Z",
        "last_checked": None,
        "total": 2,
        "more": 1,
        "queued_messages": 5,
        "counts": [{"outcome": "DELAYED", "reason": "NO_ROUTE", "messages": 2}],
        "groups": [
            {
                "instance_name": "HUB",
                "to_service_name": "//stock",
                "reason": "NO_ROUTE",
                "outcome": "DELAYED",
                "messages": 2,
            }
        ],
        "messages": [
            {
                "instance_name": "HUB",
                "database_name": "Shop",
                "to_service_name": "//stock",
                "outcome": "DELAYED",
                "reason": "NO_ROUTE",
                "enqueue_time": "2026-01-05T08:00:00Z",
                "age_seconds": 14400,
                "delayed_since": "2026-01-05T12:00:00Z",
                "message_id": "a3",
                "conversation_id": "c0024883-1111-2222-3333-444444444444",
                "is_initiator": True,
                "message_sequence_number": None,
                "route_name": None,
                "is_waiting": True,
                "status_observed_at": "2026-01-06T12:00:00.654321Z",
                "status_source": "TRANSMISSION_QUEUE",
                "status_outcome": None,
                "status_number": 9793,
                "status_text": "The target service name could not be found. Ensure that the service name is"
                " specified correctly.",
                "status_next_hop": None,
                "agreement": "AGREES",
                "agreement_why": None,
                "conversation_handle": None,
            }
        ],
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--service //nowhere", "No message "),
        ("--waiting --instance SPOKE", "None of the 5 messages "),
    ],
)
def test_a_filter_without_matches_is_answered(
    line: str, expected: str, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert phrase(capsys, job, *line.split()).startswith(expected)
    assert json.loads(phrase(capsys, job, *line.split(), "--format", "json"))["messages"] == []


def test_missing_runs_and_exports_are_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = configured(tmp_path)
    assert "no run is recorded in 'FOLDER/out/runs'" in phrase(capsys, file, status=2)
    made(tmp_path)
    store_local(arrow_of([], IMPORTS_SCHEMA), tmp_path / "none" / "imports")
    never = ("--set", "tables.imports=none/imports", "--waiting")
    assert phrase(capsys, file, *never).startswith("No export of a transmission queue ")
    store_local(arrow_of([], OBSERVED_ROUTING), tmp_path / "none" / "observed_routing")
    empty = ("--set", "tables.observed_routing=none/observed_routing", "--waiting")
    assert phrase(capsys, file, *empty).startswith("No message waits: ")


def test_waiting_needs_the_tables_of_imports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path)
    file = configured(tmp_path, without=("observed_routing", "imports"))
    needs = "--waiting needs tables.observed_routing and tables.imports"
    assert needs in phrase(capsys, file, "--waiting", status=2)
    [first] = json.loads(phrase(capsys, file, "--format", "json", "--limit", "1"))["messages"]
    assert (first["is_waiting"], first["agreement"]) == (None, None)


def test_missing_outputs_of_a_run_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    made(tmp_path)
    shutil.rmtree(tmp_path / "out" / "resolved_routes")
    gone = "output.resolved_routes: the rows of run 'run-1' are not at 'FOLDER/out/resolved_routes'"
    assert gone in phrase(capsys, tmp_path / "job.yaml", status=2)


def test_another_table_is_refused(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_local(arrow_of(OBSERVED, OBSERVED_ROUTING), job.parent / "other")
    err = phrase(capsys, job, "--set", "output.resolved_routes=other", status=2)
    assert err.startswith("sbroute: output.resolved_routes: 'FOLDER/other' is a table with another schema")
    rows = arrow_of(OBSERVED, OBSERVED_ROUTING)
    place = rows.schema.get_field_index("observed_at")
    wrong = rows.set_column(place, "observed_at", [[1] * len(OBSERVED)])
    store_local(wrong, job.parent / "wrong")
    fault = "table observed_routing has 1 column fault: column observed_at is bigint, not timestamp"
    assert fault in phrase(capsys, job, "--set", "tables.observed_routing=wrong", status=2)


def test_an_unknown_word_is_reported_before_the_configuration_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    err = phrase(capsys, Path("/no/such.yaml"), "--outcome", "DELAID", status=2)
    assert err == "sbroute: there is no outcome 'DELAID' (did you mean DELAYED?)"


def test_hostile_names_are_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path)
    name = "[red]\x1b[31m\n\u202e//\r'`"
    hostile = {**RESOLVED[6], "to_service_name": name, "instance_name": name, "message_id": name}
    store_local(arrow_of([hostile], RESOLVED_ROUTES), tmp_path / "hostile")
    text = {"instance_name": name, "message_id": name, "status_text": name * 1_000}
    store_local(arrow_of([{**OBSERVED[0], **text}], OBSERVED_ROUTING), tmp_path / "said")
    where = ("--set", "output.resolved_routes=hostile", "--set", "tables.observed_routing=said")
    shown = phrase(capsys, tmp_path / "job.yaml", *where)
    assert not re.search(r"[\x1b\r\u202e]", shown)
    assert "[red]" in shown
    assert len(shown) < 5_000
    document = json.loads(phrase(capsys, tmp_path / "job.yaml", *where, "--format", "json"))
    assert document["messages"][0]["message_id"] == name
