"""``sbroute resolve --run-id``: an existing run is shown again without any work, and without Java."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routing import cli
from routing.delta.counted_runs import check_run_id
from routing.schemas import RUNS
from tests.frames import arrow_of
from tests.golden_texts import assert_golden
from tests.stored import job_file, store_local, written
from tests.unit.test_runs_command import recorded
from tests.without import SPARK, without

RUN = "scheduled__2026-11-23T00:00:00+00:00"
INPUTS = ("routes", "databases", "services", "instances", "messages")
OUTPUTS = ("resolved_routes", "new_route_requests", "rejected_messages", "runs")
NAMESPACE = "https://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRoute"
NOTE = (
    "note: run 'scheduled__2026-11-23T00:00:00+00:00' was already recorded at 2026-11-23T01:00:12Z: this is its"
    " row, and the command did nothing (use a new run id for another run)\n"
)


def settings_of(folder: Path, **resolve: Any) -> dict[str, Any]:
    """Return the settings that a run over these tables records."""
    return {
        "tables": {key: f"{folder}/in/{key}" for key in INPUTS},
        "output": {key: f"{folder}/out/{key}" for key in OUTPUTS},
        "resolve": {
            "mode": "full",
            "as_of": None,
            "dialog_hash": "builtin",
            "broadcast_limit": "512MB",
            **resolve,
        },
        "dynamic_routing": {"missing_route_namespace": NAMESPACE},
        "spark": {},
    }


def row_of(folder: Path, **columns: Any) -> dict[str, Any]:
    """The recorded run."""
    own = {
        "input_versions": {"routes": 3, "messages": 1200},
        "output_versions": {"resolved_routes": 7, "rejected_messages": 6, "new_route_requests": 7},
        "outcome_counts": {"SENT": 1_000, "DELIVERED": 990},
        "reason_counts": {"NETWORK_ADDRESS": 1_000, "LOCAL_SERVICE": 990},
        "settings": json.dumps(settings_of(folder), sort_keys=True),
        "stage_seconds": {"session": 4.25, "read": 1.5, "write": 3.0},
        "table_ids": {"messages": "m-1"},
        "commit_identities": {"messages": "c-1"},
        "engine": "spark",
    }
    return recorded(RUN, "2026-11-23T01:00:00Z", "2026-11-23T01:00:12.500000Z", **{**own, **columns})


def prepared(folder: Path, **columns: Any) -> Path:
    """Return the configuration of a job with only a table of runs."""
    store_local(arrow_of([row_of(folder, **columns)], RUNS), folder / "out" / "runs")
    return job_file(folder, **{key: folder / "in" / key for key in INPUTS})


def retried(file: Path, *line: str, run_id: str = RUN) -> int:
    return cli.main(["resolve", "--config", str(file), "--run-id", run_id, *line])


def test_a_repeated_run_prints_the_first_result(tmp_path: Path) -> None:
    """The JSON row is the same, without Spark and Java. Nothing is changed."""
    file = prepared(tmp_path)
    before = written(tmp_path)
    done = without(SPARK, "resolve", "--config", str(file), "--run-id", RUN, "--format", "json")
    assert (done.returncode, done.stderr) == (0, NOTE)
    expected = {name: row_of(tmp_path).get(name) for name in RUNS.names}
    assert done.stdout == json.dumps(expected) + "\n"
    assert written(tmp_path) == before


def test_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    # Spark settings, suppressed findings and the like decide nothing that a run writes.
    assert retried(prepared(tmp_path), "--quiet", "--set", "spark.spark.driver.memory=4g") == 0
    out, err = capsys.readouterr()
    assert err == NOTE
    assert_golden("recorded_run.txt", "\n".join(line.rstrip() for line in out.splitlines()))


def test_the_note_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert retried(prepared(tmp_path), "--log-format", "json", "--format", "json") == 0
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    assert {**line, "time": ""} == {"time": "", "level": "warning", "message": NOTE.strip(), "run_id": RUN}


@pytest.mark.parametrize(
    ("line", "different"),
    [
        ("--as-of 2026-01-05", "resolve.as_of was not given and is '2026-01-05T00:00:00+00:00'"),
        ("--set resolve.broadcast_limit=1MB", "resolve.broadcast_limit was '512MB' and is '1MB'"),
        ("--set tables.routes=/data/routes", "tables.routes was 'FOLDER/in/routes' and is '/data/routes'"),
        ("--set tables.dialogs=in/dialogs", "tables.dialogs was not given and is 'FOLDER/in/dialogs'"),
        (
            "--set output.rejected_messages=main.broker.rejected",
            "output.rejected_messages was 'FOLDER/out/rejected_messages' and is 'main.broker.rejected'",
        ),
        (
            "--set dynamic_routing.missing_route_namespace=urn:x",
            f"dynamic_routing.missing_route_namespace was '{NAMESPACE}' and is 'urn:x'",
        ),
        # Of several the first is told.
        (
            "--set resolve.mode=incremental --set output.pending_messages=out/pending",
            "resolve.mode was 'full' and is 'incremental'",
        ),
    ],
)
def test_a_retry_with_other_settings_is_refused(
    line: str, different: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = prepared(tmp_path)
    before = written(tmp_path)
    assert retried(file, *line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.replace(str(tmp_path), "FOLDER") == (
        f"sbroute: run '{RUN}' is already recorded in 'FOLDER/out/runs' with another configuration: {different}"
        " (use a new run id; a retry needs the configuration of the first try)\n"
    )
    assert written(tmp_path) == before


def _incremental(folder: Path) -> Path:
    settings = settings_of(folder, mode="incremental")
    settings["output"]["pending_messages"] = f"{folder}/out/pending_messages"
    settings_row = {"mode": "incremental", "now": "2026-11-23T01:00:00Z", "settings": json.dumps(settings)}
    return prepared(folder, **settings_row)


@pytest.mark.parametrize(
    ("now", "status"),
    [([], 0), (["--now", "2026-11-23T02:00:00+01:00"], 0), (["--now", "2026-11-23T02:00:00Z"], 2)],
    ids=["not given", "the same", "another"],
)
def test_the_time_to_try_delayed_messages_again(
    now: list[str], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["--set", "resolve.mode=incremental", "--set", "output.pending_messages=out/pending_messages", *now]
    assert retried(_incremental(tmp_path), *line) == status
    different = "--now was '2026-11-23T01:00:00+00:00' and is '2026-11-23T02:00:00+00:00'"
    assert (different in capsys.readouterr().err) == (status == 2)


def test_a_moved_folder_keeps_its_recorded_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "first").mkdir()
    prepared(tmp_path / "first")
    moved = (tmp_path / "first").rename(tmp_path / "second")
    assert retried(job_file(moved, **{key: moved / "in" / key for key in INPUTS})) == 0
    capsys.readouterr()


def test_settings_of_an_older_release_are_hidden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {**settings_of(tmp_path), "spark": {"spark.ssl.keyPassword": "Hunter2"}}
    file = prepared(tmp_path, settings=json.dumps(settings))
    assert retried(file, "--format", "json") == 0
    assert "Hunter2" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("run_id", [RUN, "a", "a'b\"c; -- `d`", "Größe/1 2", "x" * 250])
def test_valid_run_ids_are_accepted(run_id: str) -> None:
    assert check_run_id(run_id) == run_id


@pytest.mark.parametrize("run_id", ["", " ", " a", "a\n", "a\nb", "a\x1b[2J", "a\u202eb", "x" * 251])
def test_invalid_run_ids_are_refused(run_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Told before the configuration is read."""
    assert cli.main(["resolve", "--config", "/no/such.yaml", "--run-id", run_id]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sbroute: ")
    assert err.count("\n") == 1
    assert "cannot be the id of a run: it has 1 to 250 printable characters, and no blank at its ends" in err
    assert len(err) < 450


def test_another_id_is_another_run(tmp_path: Path) -> None:
    """It comes as far as Spark, which is not there."""
    asked = ("resolve", "--config", str(prepared(tmp_path)), "--engine", "spark", "--run-id", RUN[:-1])
    done = without(SPARK, *asked)
    assert done.returncode == 2
    assert "the Python package pyspark is missing" in done.stderr
