"""A run is repeated with its id after a crash, while the first attempt works, and after it counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import routing
from routing import cli
from routing.delta import run_lock
from routing.errors import RunError, StorageError
from tests.crash.estate import NOW, WRITTEN, Case, before, copied, run_ids
from tests.frames import assert_same_frames
from tests.hooks import Killed, hooked, kill, once
from tests.stored import written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# tests/unit/exactly_once visits every state of the protocol without Spark.
pytestmark = pytest.mark.long
NIGHT = "scheduled__2026-01-05T14:00:00+00:00"
# A full run does not write the fourth table.
OVERRIDES: dict[str, tuple[str, ...]] = {"incremental": (), "full": ("resolve.mode=full",)}
Stored = dict[str, "DataFrame"]


@pytest.fixture(scope="module")
def case(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Return the estate after a first run, with new messages. Tests must copy it."""
    return before(spark, tmp_path_factory.mktemp("run_id") / "case")


@pytest.fixture(scope="module")
def clean(spark: SparkSession, case: Case, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stored]:
    """Return the results of one run with this id, by mode."""
    found = {}
    for mode in OVERRIDES:
        single = copied(case, tmp_path_factory.mktemp(mode) / "case")
        _run(spark, single, mode)
        found[mode] = _stored(spark, single)
    return found


def _run(spark: SparkSession, case: Case, mode: str) -> routing.Run:
    now = NOW if mode == "incremental" else None
    return routing.run(spark, case.config(*OVERRIDES[mode]), run_id=NIGHT, now=now)


def _stored(spark: SparkSession, case: Case) -> Stored:
    return {key: spark.read.format("delta").load(str(case.folder / "out" / key)) for key in WRITTEN}


def _assert_stored(spark: SparkSession, case: Case, expected: Stored) -> None:
    for key, frame in _stored(spark, case).items():
        assert_same_frames(frame, expected[key])


@pytest.mark.parametrize("point", ["after resolved_routes", "before runs"])
@pytest.mark.parametrize("mode", OVERRIDES)
def test_a_run_is_repeated_after_a_crash(
    spark: SparkSession, case: Case, clean: dict[str, Stored], tmp_path: Path, mode: str, point: str
) -> None:
    again = copied(case, tmp_path / "case")
    with hooked(once(point, kill)), pytest.raises(Killed):
        _run(spark, again, mode)
    assert run_ids(again) == ["first"]
    assert not _run(spark, again, mode).was_recorded
    assert run_ids(again) == ["first", NIGHT]
    _assert_stored(spark, again, clean[mode])


@pytest.mark.parametrize(
    ("mode", "at"),
    # While outputs are committed in parallel, both attempts may lose, so such moments are not tested.
    [("incremental", "before runs"), ("incremental", "before pending_messages"), ("full", "before runs")],
)
def test_two_attempts_at_once(
    spark: SparkSession,
    case: Case,
    clean: dict[str, Stored],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    at: str,
) -> None:
    """As on an object store, no lock separates the attempts. The second one ends during the first."""
    monkeypatch.setattr(run_lock, "lock_file", lambda *_: None)
    again = copied(case, tmp_path / "case")
    second: list[routing.Run] = []

    def try_again() -> None:
        second.append(_run(spark, again, mode))

    with (
        hooked(once(at, try_again)),
        pytest.raises(StorageError, match=r"another run wrote to output\."),
    ):
        _run(spark, again, mode)
    assert not second[0].was_recorded
    # Rows that the first attempt added later are not recorded. A retry and readers find the recorded run.
    third = _run(spark, again, mode)
    assert (third.was_recorded, third.row) == (True, second[0].row)
    assert run_ids(again) == ["first", NIGHT]
    read = routing.read_run(spark, again.config(*OVERRIDES[mode]), NIGHT)
    own = clean[mode]["resolved_routes"].where(F.col("run_id") == NIGHT)
    assert_same_frames(read.resolved_routes, own)


def test_the_other_attempt_ends_while_this_one_begins(
    spark: SparkSession, case: Case, clean: dict[str, Stored], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lock, "lock_file", lambda *_: None)
    again = copied(case, tmp_path / "case")
    first: list[routing.Run] = []

    def come_first() -> None:
        first.append(_run(spark, again, "incremental"))

    with hooked(once("before last_run", come_first)):
        assert _run(spark, again, "incremental").was_recorded
    _assert_stored(spark, again, clean["incremental"])


def test_the_output_is_that_of_the_first_run(
    spark: SparkSession, case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text and the JSON are the same, and the retry writes nothing."""
    again = copied(case, tmp_path / "case")
    line = ["resolve", "--config", str(again.file), "--now", NOW.isoformat(), "--run-id", NIGHT, "--quiet"]
    assert cli.main([*line, "--format", "json", "--log-format", "json"]) == 0
    first = capsys.readouterr().out
    assert json.loads(first)["run_id"] == NIGHT
    before = written(again.folder)
    assert cli.main([*line, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert out == first
    assert err.startswith(f"note: run '{NIGHT}' was already recorded at 20")
    assert cli.main(line) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith(f"run {NIGHT}: 7 messages read, 4 resolved, 1 still delayed, 2 rejected")
    config = again.config("resolve.broadcast_limit=1MB")
    with pytest.raises(RunError, match=r"resolve.broadcast_limit was '512MB' and is '1MB'"):
        routing.run(spark, config, run_id=NIGHT)
    assert written(again.folder) == before


def test_the_lines_of_a_run_as_json(
    spark: SparkSession, case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = copied(case, tmp_path / "case")
    line = ["--now", NOW.isoformat(), "--run-id", "r'1", "--log-format", "json", "--verbose"]
    assert cli.main(["resolve", "--config", str(again.file), *line]) == 0
    events = [json.loads(text) for text in capsys.readouterr().err.splitlines()]
    assert {one["run_id"] for one in events} == {"r'1"}
    rows = {one["stage"]: one.get("rows") for one in events if "stage" in one}
    # One of five new messages has a duplicate id. Four and m4 get keys, and one of these is rejected.
    assert (rows["keys"], rows["counts"], rows["write"]) == (5, 4, None)
    assert rows["plan"] in range(1, 5)
    assert all(one["seconds"] >= 0 for one in events if "stage" in one)
