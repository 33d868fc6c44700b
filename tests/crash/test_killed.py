"""Runs killed at every commit and at random times. The next run leaves the same results as one clean run."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.crash.estate import NOW, OUTCOMES, Case, copied, ended, run_ids, started, state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# .ci/run has eight minutes for all of this.
SHORT = os.environ.get("SBROUTE_CRASH") == "short"
POINTS = [
    "before new_route_requests",
    "after new_route_requests",
    "after rejected_messages",
    "after resolved_routes",
    # The rows of the previous run are being rolled back.
    "restored resolved_routes",
    "after pending_messages",
    "before runs",
]
SHORT_POINTS = ["after resolved_routes"]
RANDOM_KILLS = int(os.environ.get("SBROUTE_CRASH_KILLS", "0" if SHORT else "5"))
SEED = int(os.environ.get("SBROUTE_CRASH_SEED", "20260105"))
KILLED = -signal.SIGKILL


@pytest.fixture(scope="module")
def clean(spark: SparkSession, case: Case, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return the results of a single run."""
    import routing

    single = copied(case, tmp_path_factory.mktemp("clean") / "case")
    routing.run(spark, single.config(), now=NOW)
    left = state(single)
    later = [row for row in left["resolved_routes"] if row["run_id"] == "later"]
    assert {(row["message_id"], row["attempt"]): row["reason"] for row in later} == OUTCOMES
    return dict(left)


def test_killed_at_every_commit(case: Case, clean: dict[str, object], tmp_path: Path) -> None:
    """Each run continues after a killed one. At the end two runs start at the same time."""
    again = copied(case, tmp_path / "case")
    for point in SHORT_POINTS if SHORT else POINTS:
        status, err = ended(started(again, point))
        assert status == KILLED, f"{point}: {status} {err}"
        assert run_ids(again) == ["first"], point
    _race(again)
    assert len(run_ids(again)) == 2
    assert state(again) == clean
    assert not (again.folder / "out" / "runs.lock").exists()


def _race(case: Case) -> None:
    """Start two runs at once. One succeeds, and the other reports that a run is at work."""
    both = [started(case), started(case)]
    done = [ended(process) for process in both]
    extra = dict(done)
    assert sorted(extra) == [0, 3], done
    assert "another run is at work on these tables" in extra[3]
    assert len([line for line in extra[3].splitlines() if line.startswith("sbroute: ")]) == 1


def test_killed_when_it_counts(case: Case, clean: dict[str, object], tmp_path: Path) -> None:
    if SHORT:
        pytest.skip("a long test: make test-crash")
    again = copied(case, tmp_path / "case")
    status, err = ended(started(again, "after runs"))
    assert status == KILLED, err
    assert len(run_ids(again)) == 2
    assert state(again) == clean


def test_tried_again_under_one_id(case: Case, clean: dict[str, object], tmp_path: Path) -> None:
    """The first try is killed in the middle, the second after recording the run. The third has nothing to do."""
    if SHORT:
        pytest.skip("a long test: make test-crash")
    again = copied(case, tmp_path / "case")
    for point, counted in (("after resolved_routes", ["first"]), ("after runs", ["first", "night"])):
        status, err = ended(started(again, point, "--run-id", "night"))
        assert status == KILLED, err
        assert run_ids(again) == counted
    status, err = ended(started(again, None, "--run-id", "night"))
    assert (status, err.startswith("note: run 'night' was already recorded")) == (0, True), err
    assert run_ids(again) == ["first", "night"]
    assert state(again) == clean


def test_killed_while_it_erases(spark: SparkSession, case: Case, tmp_path: Path) -> None:
    """The next run erases the rows that one clean run erases."""
    import routing

    if SHORT:
        pytest.skip("a long test: make test-crash")
    again = copied(case, tmp_path / "case")
    spark.sql(f"DELETE FROM delta.`{again.folder / 'in' / 'messages'}` WHERE message_id IN ('m3', 'm4')")
    single = copied(again, tmp_path / "single")
    routing.run(spark, single.config(), now=NOW, erase=True)
    status, err = ended(started(again, "erased resolved_routes", "--erase"))
    assert status == KILLED, err
    assert run_ids(again) == ["first"]
    status, err = ended(started(again, None, "--erase"))
    assert status == 0, err
    assert state(again) == state(single)
    assert {"m3", "m4"}.isdisjoint(row["message_id"] for rows in state(again).values() for row in rows)


@pytest.mark.parametrize("point", ["after resolved_routes", "after pending_messages", "before runs"])
def test_killed_over_a_window(spark: SparkSession, case: Case, tmp_path: Path, point: str) -> None:
    """The next run over the window leaves what one clean run leaves, and so does an incremental run after both."""
    import routing

    if SHORT:
        pytest.skip("a long test: make test-crash")
    ends = {"from": "2026-01-05T11:00:00Z", "to": "2026-01-05T12:15:00Z"}
    options = [text for name, time in ends.items() for text in (f"--{name}", time)]
    settings = [f"resolve.window_{name}={time}" for name, time in ends.items()]
    again, single = (copied(case, tmp_path / name) for name in ("case", "single"))
    routing.run(spark, single.config("resolve.mode=window", *settings))
    status, err = ended(started(again, point, *options, now=None))
    assert status == KILLED, err
    assert run_ids(again) == ["first"]
    status, err = ended(started(again, None, *options, now=None))
    assert status == 0, err
    assert state(again) == state(single)
    assert any(row["run_id"] == "later" for row in state(again)["resolved_routes"])
    for each in (again, single):
        routing.run(spark, each.config(), now=NOW)
    assert state(again) == state(single)


def test_killed_at_random_times(case: Case, clean: dict[str, object], tmp_path: Path) -> None:
    if not RANDOM_KILLS:
        pytest.skip("a long test: make test-crash")
    again = copied(case, tmp_path / "case")
    chance = random.Random(SEED)
    for number in range(RANDOM_KILLS):
        process = started(again)
        time.sleep(chance.uniform(8, 60))
        # Every other time the Java process outlives its driver for a moment, as it does in practice.
        os.kill(process.pid, signal.SIGKILL) if number % 2 else os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        if len(run_ids(again)) == 2:
            # The run ended before the kill. Another run would try the delayed messages again.
            break
    else:
        status, err = ended(started(again))
        assert status == 0, err
    assert state(again) == clean
