"""`resolve --engine local` as a process that a signal ends, and the lineage event that it sends."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from routing import cli
from routing.delta.counted_runs import last_run
from routing.delta.opening import LocalOpener
from tests.estate_rows import small_estate
from tests.signalled import SIGNAL_WORDS, ended, started
from tests.stored import config_of, save_job, written

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
# The command, which prints a line at a moment and waits there for a signal.
_COMMAND = """
import sys, time
from routing import __main__
from routing.engines.arrow.resolved_batches import BatchResolver
from tests.hooks import hooked, once

point, seconds = sys.argv.pop(1), float(sys.argv.pop(1))

def wait():
    print("ready", flush=True)
    time.sleep(seconds)

def resolve(*arguments, resolve=BatchResolver.resolve):
    for rows in resolve(*arguments):
        yield rows
        hook("while rows are written")

hook = once(point, wait)
BatchResolver.resolve = resolve
with hooked(hook):
    __main__.script()
"""
DOES_NOT_COUNT = "the run does not count (start it again)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The configuration of a job without a run."""
    return save_job(small_estate(), tmp_path, files=1)


def _resolve(file: Path, run_id: str) -> int:
    return cli.main(["resolve", "--engine", "local", "--quiet", "--config", str(file), "--run-id", run_id])


def _end(file: Path, number: signal.Signals, point: str, seconds: float) -> tuple[int, str]:
    line = ["resolve", "--engine", "local", "--quiet", "--config", str(file), "--run-id", "ended"]
    process = started(["-c", _COMMAND, point, str(seconds), *line])
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", ended(process)
    process.send_signal(number)
    done = ended(process)
    assert done.left == {}
    return done.code, done.err


def _counting_run(file: Path) -> str | None:
    config = config_of(file.parent / "in", file.parent / "out")
    recorded = last_run(LocalOpener(), config.output["runs"]) if (file.parent / "out" / "runs").exists() else None
    return None if recorded is None else recorded.run_id


# Each signal at a moment of its own: which one it is does not matter to the run.
@pytest.mark.parametrize(
    ("point", "number"), [("while rows are written", signal.SIGINT), ("after resolved_routes", signal.SIGTERM)]
)
def test_a_run_that_a_signal_ends_does_not_count(file: Path, point: str, number: signal.Signals) -> None:
    done = _end(file, number, point, 60)
    assert done == (128 + number, f"sbroute: {SIGNAL_WORDS[number]}: {DOES_NOT_COUNT}\n")
    assert _counting_run(file) is None
    assert not list(file.parent.rglob("*.lock"))
    assert _resolve(file, "next") == 0
    assert _counting_run(file) == "next"
    rows = {key: _stored_runs(file, key) for key in ("resolved_routes", "new_route_requests", "rejected_messages")}
    assert rows == {
        "resolved_routes": ["next"] * 5,
        "new_route_requests": ["next"],
        "rejected_messages": ["next"] * 2,
    }


def _stored_runs(file: Path, key: str) -> list[str]:
    """Return the run id of each row in an output."""
    from deltalake import DeltaTable

    table = DeltaTable(file.parent / "out" / key)
    return list(table.to_pyarrow_table(columns=["run_id"])["run_id"].to_pylist())


def test_a_run_being_recorded_is_completed(file: Path) -> None:
    done = _end(file, signal.SIGTERM, "before runs", 0.3)
    assert done == (143, "sbroute: ended by SIGTERM: run ended had already been recorded\n")
    assert _counting_run(file) == "ended"
    before = written(file.parent / "out")
    assert _resolve(file, "ended") == 0
    assert written(file.parent / "out") == before


def _events(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (file.parent / "events.jsonl").read_text(encoding="utf-8").splitlines()]


def _names(tables: list[dict[str, Any]]) -> set[str]:
    return {Path(table["name"]).name for table in tables}


def test_each_run_sends_one_event(file: Path) -> None:
    pytest.importorskip("openlineage")
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    content["lineage"] = {"file": str(file.parent / "events.jsonl")}
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert _resolve(file, "first") == 0
    # It counts already.
    assert _resolve(file, "first") == 0
    (file.parent / "in" / "routes" / "_delta_log" / f"{0:020d}.json").unlink()
    assert _resolve(file, "second") != 0
    done, failed = _events(file)
    assert (done["eventType"], failed["eventType"]) == ("COMPLETE", "FAIL")
    facet = done["run"]["facets"]["sbroute_run"]
    assert (facet["run_id"], facet["mode"]) == ("first", "full")
    assert _names(done["inputs"]) == set(small_estate())
    assert _names(done["outputs"]) == {"resolved_routes", "new_route_requests", "rejected_messages", "runs"}
    rows = {Path(one["name"]).name: one["outputFacets"].get("outputStatistics") for one in done["outputs"]}
    assert rows["resolved_routes"]["rowCount"] == 5
    assert failed["run"]["facets"]["sbroute_run"]["run_id"] == "second"
