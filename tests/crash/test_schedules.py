"""Two runs at the same time without a lock, as on an object store, in selected schedules on Delta in one session.

`tests/unit/exactly_once` explores every schedule on a log in memory. These tests show that Delta behaves the same.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import routing
from routing.delta import run_lock
from routing.errors import StorageError
from tests.crash.estate import FIRST, NEW, NOW, WRITTEN, Case, copied, tables
from tests.frames import rows_of, with_moments
from tests.hooks import Killed, hooked, kill, once
from tests.random_estates import assert_same, without_marks
from tests.reference.increments import Increments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT = os.environ.get("SBROUTE_CRASH") == "short"
CLEAN = NOW.replace(hour=15)


class Schedule(NamedTuple):
    """Run A pauses at a moment. Then B runs and may die. Then A continues unless it is killed."""

    at: str
    dies: str | None
    # The runs that count before the clean one, and how A ended.
    counted: tuple[str, ...]
    a: str = "done"


LOST = "another run wrote to output."
SCHEDULES = {
    # B rolls back commits of A and dies, and A counts.
    "taken back while about to count": Schedule("before runs", "restored resolved_routes", ("A",)),
    "both to the end": Schedule("before runs", None, ("B",), f"{LOST}runs"),
    "taken back in the middle": Schedule("after resolved_routes", "restored resolved_routes", (), LOST),
    "B in the middle of A": Schedule("before resolved_routes", None, ("B",), LOST),
    "B dies in the middle of A": Schedule("before resolved_routes", "after resolved_routes", (), LOST),
    "B dies before it counts": Schedule("before rejected_messages", "before runs", (), LOST),
    "between A's readings": Schedule("before last_run", None, ("B", "A")),
    "after A's readings": Schedule("after last_run", None, ("B",), LOST),
    "B dies after A's readings": Schedule("after last_run", "after new_route_requests", (), LOST),
    "B dies when it counts": Schedule("before pending_messages", "after runs", ("B",), LOST),
    "once A counts": Schedule("after runs", "after resolved_routes", ("A",)),
    "A dies when B has taken back": Schedule("after pending_messages", "restored resolved_routes", (), "dead"),
}


@pytest.fixture(autouse=True)
def _without_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "lock_file", lambda *_: None)


def _run_b(spark: SparkSession, case: Case, dies: str | None) -> None:
    # A's hook applies to B as well, but it has done its work by then.
    with hooked(once(dies or "never", kill)):
        try:
            routing.run(spark, case.config(), run_id="B", now=NOW)
        except Killed:
            assert dies is not None


def _run_a(spark: SparkSession, case: Case, schedule: Schedule) -> str:
    def then() -> None:
        _run_b(spark, case, schedule.dies)
        if schedule.a == "dead":
            kill()

    with hooked(once(schedule.at, then)):
        try:
            routing.run(spark, case.config(), run_id="A", now=NOW)
        except StorageError as error:
            return str(error)
        except Killed:
            return "dead"
    return "done"


def _expected(counted: tuple[str, ...]) -> Increments:
    inputs = with_moments({**tables(), "new": NEW})
    messages, new = inputs.pop("messages"), inputs.pop("new")
    expected = Increments(inputs)
    expected.run(messages, FIRST, "first")
    for run_id in counted:
        expected.run(new, NOW, run_id)
        new = []
    expected.run(new, CLEAN, "clean")
    return expected


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(spark: SparkSession, case: Case, tmp_path: Path, name: str) -> None:
    if SHORT and list(SCHEDULES).index(name) > 2:
        pytest.skip("a long test: make test-crash")
    schedule = SCHEDULES[name]
    again = copied(case, tmp_path / "case")
    ended = _run_a(spark, again, schedule)
    assert ended == schedule.a or (schedule.a.startswith(LOST) and ended.startswith(schedule.a)), ended
    routing.run(spark, again.config(), run_id="clean", now=CLEAN)
    read = {key: spark.read.format("delta").load(str(again.folder / "out" / key)) for key in (*WRITTEN, "runs")}
    runs = read["runs"].orderBy("finished_at").select("run_id").collect()
    assert [row["run_id"] for row in runs] == ["first", *schedule.counted, "clean"]
    expected = _expected(schedule.counted)
    for key in WRITTEN:
        assert_same(without_marks(rows_of(read[key])), getattr(expected, key), key)
