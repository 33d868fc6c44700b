"""``sbroute runs`` as a user runs it, over a hand-written table of runs and without Spark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from routing.delta.counted_runs import check_release
from routing.errors import OutputError, RunError
from routing.result_schemas import LISTED_RUNS, ONE_RUN
from routing.schemas import RUNS as SCHEMA
from routing.views import run_documents
from tests.frames import arrow_of
from tests.golden_texts import assert_golden
from tests.stored import job_without_tables, store_local

FULL = "4c1d0f6e-0000-4000-8000-000000000001"
SLOW = "4c1d77aa-0000-4000-8000-000000000002"
EMPTY = "9b00c3d2-0000-4000-8000-000000000003"
SETTINGS = {"resolve": {"mode": "full", "as_of": None}, "tables": {"routes": "/data/routes"}, "spark": {}}


def recorded(run_id: str, started: str, finished: str, **columns: Any) -> dict[str, Any]:
    """A row of ``runs``."""
    return {
        "run_id": run_id,
        "mode": "full",
        "started_at": started,
        "finished_at": finished,
        "input_versions": {"routes": 3, "services": None, "messages": 1200},
        "output_versions": {"resolved_routes": 7, "rejected_messages": 7, "new_route_requests": 7},
        "rows_read": 2_000,
        "rows_resolved": 1_990,
        "rows_rejected": 10,
        "rows_unchanged": 0,
        "outcome_counts": {"SENT": 995, "DELIVERED": 995},
        "reason_counts": {"NETWORK_ADDRESS": 995, "LOCAL_SERVICE": 995},
        "dialog_hash": "builtin",
        "settings": json.dumps(SETTINGS),
        "stage_seconds": {"read": 1.5, "keys": 6.0, "resolved_routes": 3.0},
        "release": "0.2.0",
        "table_ids": {},
        "commit_identities": {},
        **columns,
    }


# In no order; the second of two that began at once is the one with the greater id.
RUNS = [
    recorded(FULL, "2026-01-05T10:00:00Z", "2026-01-05T10:00:12Z"),
    recorded(
        EMPTY,
        "2026-01-05T12:00:00.250000Z",
        "2026-01-05T12:00:00.250000Z",
        rows_read=0,
        rows_resolved=0,
        rows_rejected=0,
        outcome_counts={},
        reason_counts={},
        stage_seconds={"read": 0.0},
        as_of="2026-01-01T00:00:00Z",
        release="unknown",
    ),
    recorded(
        SLOW,
        "2026-01-05T11:00:00Z",
        "2026-01-05T12:00:00Z",
        # What the first release let through.
        settings=json.dumps({**SETTINGS, "spark": {"spark.ssl.keyPassword": "Hunter2", "spark.x": "y"}}),
    ),
]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a configuration over these runs. No other table exists or is needed."""
    folder = tmp_path_factory.mktemp("recorded")
    store_local(arrow_of(RUNS, SCHEMA), folder / "out" / "runs")
    return job_without_tables(folder)


def phrase(capsys: pytest.CaptureFixture[str], job: Path, *line: str, status: int = 0) -> str:
    return output_over(capsys, job, "runs", *line, status=status)


def output_over(capsys: pytest.CaptureFixture[str], job: Path, command: str, *line: str, status: int = 0) -> str:
    """Return a command's output without the folder's name."""
    assert cli.main([command, "--config", str(job), *line]) == status
    out, err = capsys.readouterr()
    assert (err if status == 0 else out) == ""
    shown = "\n".join(text.rstrip() for text in (out + err).splitlines())
    return re.sub(re.escape(str(job.parent)), "FOLDER", shown)


def test_the_list_and_one_run(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = phrase(capsys, job)
    latest = phrase(capsys, job, "--limit", "1")
    assert_golden("runs_table.txt", f"{everything}\n\n--limit 1\n\n{latest}\n\nRUN\n\n{phrase(capsys, job, SLOW)}")


def test_as_json(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(phrase(capsys, job, "--format", "json", "--limit", "2"))
    assert listed == {
        "runs": [
            {
                "run_id": EMPTY,
                "mode": "full",
                "started_at": "2026-01-05T12:00:00.250000Z",
                "seconds": 0.0,
                "rows_read": 0,
                "rows_resolved": 0,
                "rows_rejected": 0,
                "rows_unchanged": 0,
                "outcome_counts": {},
                "release": "unknown",
            },
            {
                "run_id": SLOW,
                "mode": "full",
                "started_at": "2026-01-05T11:00:00Z",
                "seconds": 3600.0,
                "rows_read": 2000,
                "rows_resolved": 1990,
                "rows_rejected": 10,
                "rows_unchanged": 0,
                "outcome_counts": {"SENT": 995, "DELIVERED": 995},
                "release": "0.2.0",
            },
        ],
        "more": True,
    }
    one = json.loads(phrase(capsys, job, "4c1d0", "--format", "json"))
    assert list(one) == [*SCHEMA.names, "seconds", "slow_stages"]
    assert one["run_id"] == FULL
    assert one["finished_at"] == "2026-01-05T10:00:12Z"
    assert json.loads(one["settings"]) == SETTINGS
    assert one["slow_stages"] == [
        {"stage": "keys", "seconds": 6.0, "share": 0.5},
        {"stage": "resolved_routes", "seconds": 3.0, "share": 0.25},
        {"stage": "read", "seconds": 1.5, "share": 0.125},
    ]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("4c1d", rf"sbroute: '4c1d' is the beginning of 2 runs: '{SLOW}'; '{FULL}' \(write more of the id\)"),
        (
            "9b00d3d2",
            rf"sbroute: no run '9b00d3d2' is recorded in 'FOLDER/out/runs' \(the nearest are '{EMPTY}'\)",
        ),
        ("zz", rf"sbroute: no run 'zz' .* \(the nearest are '{EMPTY}', '{SLOW}', '{FULL}'\)"),
        ("%", r"sbroute: no run '%' .*"),
        ("4c1d'\" or 1=1 --\n`\x1b[31m", r"""sbroute: no run '4c1d\\'" or 1=1 --\\n`\\x1b\[31m' .*"""),
    ],
)
def test_a_missing_run_is_an_error(asked: str, text: str, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.fullmatch(text, phrase(capsys, job, f"{asked}", status=2))


def test_a_missing_table_of_runs_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert phrase(capsys, job_without_tables(tmp_path), status=2) == (
        "sbroute: output.runs: there is no Delta table at 'FOLDER/out/runs' (sbroute resolve creates it)"
    )


def test_tables_of_a_newer_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table may have unknown columns. The error names the release instead of the columns."""
    import pyarrow

    runs = arrow_of([*RUNS, {**RUNS[0], "release": "99.10.1"}, {**RUNS[0], "release": "99.9"}], SCHEMA)
    tomorrow = runs.append_column("column_of_tomorrow", pyarrow.array([1] * len(runs)))
    store_local(tomorrow, tmp_path / "out" / "runs")
    assert re.fullmatch(
        r"sbroute: output.runs: 'FOLDER/out/runs' was written by release '99.10.1', this is \S+"
        r" \(install that release or a newer one, or name other outputs\)",
        phrase(capsys, job_without_tables(tmp_path), status=2),
    )
    with pytest.raises(OutputError, match=r"release '99.10.1'"):
        check_release(runs, "there")
    check_release(runs.slice(0, len(RUNS)), "there")


def test_another_table_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow

    runs = arrow_of(RUNS, SCHEMA).drop_columns(["mode"])
    runs = runs.set_column(
        runs.schema.get_field_index("rows_read"), "rows_read", runs["rows_read"].cast(pyarrow.int32())
    )
    store_local(runs.append_column("day", pyarrow.nulls(len(runs), pyarrow.date32())), tmp_path / "out" / "runs")
    assert phrase(capsys, job_without_tables(tmp_path), status=2) == (
        "sbroute: output.runs: 'FOLDER/out/runs' is a table with another schema, 2 differences: column mode is"
        " missing, not string; column rows_read is int, not bigint (name another location)"
    )


def test_runs_are_read_from_a_table_in_a_notebook() -> None:
    """The function takes a table and returns rows without a location."""
    runs = arrow_of(RUNS, SCHEMA)
    listed = run_documents.read_runs(runs)
    assert [row["run_id"] for row in listed] == [EMPTY, SLOW, FULL]
    assert listed.to_arrow().column_names == LISTED_RUNS.names
    run_row = run_documents.find_run(runs, EMPTY, "there")
    assert run_row.to_arrow().column_names == ONE_RUN.names
    # A run of no time has no shares.
    [row] = run_row
    assert row["slow_stages"] == [{"stage": "read", "seconds": 0.0, "share": None}]


def test_an_empty_table_has_no_runs() -> None:
    runs = arrow_of([], SCHEMA)
    assert list(run_documents.read_runs(runs)) == []
    with pytest.raises(RunError, match=r"no run 'x' is recorded in 'there' \(no run is recorded there\)"):
        run_documents.find_run(runs, "x", "there")


def test_an_ambiguous_prefix_lists_some_runs() -> None:
    runs = arrow_of([{**RUNS[0], "run_id": f"run {number}"} for number in range(1_500)], SCHEMA)
    with pytest.raises(RunError, match=r"'run' is the beginning of 1500 runs: 'run 999'; 'run 998'; "):
        run_documents.find_run(runs, "run", "there")
