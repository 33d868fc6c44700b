"""Runs: their row, one version of every input, the order of outputs, and the leftovers of failures."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import routing
from routing import cli
from routing.delta.counted_runs import release
from routing.errors import InputError, StorageError
from routing.messages import results
from routing.runs import spark_runs
from routing.runs.run_work import InternalError
from tests.estate_rows import message, small_estate
from tests.frames import rows_of, with_moments
from tests.hooks import hooked
from tests.random_estates import assert_same
from tests.reference.resolver import resolve as reference
from tests.stored import OUTPUTS, config_of, config_text, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

pytestmark = pytest.mark.spark

AS_OF = datetime(2026, 1, 5, 13, tzinfo=timezone.utc)
RESULTS = ["new_route_requests", "rejected_messages", "resolved_routes"]


@dataclass
class Done:
    """Two finished runs over one set of outputs. Messages were appended during the first."""

    config: Config
    first: routing.Run
    second: dict[str, Any]
    second_notes: str
    commits: list[str]
    started: datetime
    finished: datetime


def _after(patch: pytest.MonkeyPatch, name: str, act: Callable[[], object]) -> None:
    """Make each run call ``act`` after a function of `spark_runs` has returned."""
    function = vars(spark_runs)[name]

    def call_and_act(*arguments: Any, **options: Any) -> object:
        result = function(*arguments, **options)
        act()
        return result

    patch.setattr(spark_runs, name, call_and_act)


LATER = [message(100, "//far"), message(101, "//garbage")]


def _append_messages(inputs: Path) -> None:
    save_estate({"messages": LATER}, inputs, files=1)


# One input and one output have catalog names. All others are paths.
NAMED = ("tables.routes=shop.far_routes", "output.resolved_routes=spark_catalog.shop.resolved")


@pytest.fixture(scope="module")
def inputs(spark: SparkSession, stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a copy of the small estate to append messages to, and create a schema that has its routes."""
    inputs = shutil.copytree(stored, tmp_path_factory.mktemp("runs") / "in")
    spark.sql("CREATE SCHEMA shop")
    try:
        spark.sql(f"CREATE TABLE shop.far_routes USING delta LOCATION '{inputs / 'routes'}'")
        yield inputs
    finally:
        spark.sql("DROP SCHEMA shop CASCADE")


@pytest.fixture(scope="module")
def done(spark: SparkSession, inputs: Path) -> Done:
    folder = inputs.parent
    config = config_of(inputs, folder / "out", *NAMED)
    commits: list[str] = []
    started = datetime.now(timezone.utc)

    def watch(moment: str) -> None:
        when, _, key = moment.partition(" ")
        if when == "after" and key in OUTPUTS:
            commits.append(key)

    with hooked(watch), pytest.MonkeyPatch.context() as patch:
        # Messages arrive after the keys are known, and before an output is written.
        _after(patch, "compile_messages", lambda: _append_messages(inputs))
        first = routing.run(spark, config, run_id="first")
    finished = datetime.now(timezone.utc)
    (folder / "job.yaml").write_text(config_text(inputs, folder / "out"), encoding="utf-8")
    second, notes = _by_command(folder / "job.yaml")
    return Done(config, first, second, notes, commits, started, finished)


def _by_command(file: Path) -> tuple[dict[str, Any], str]:
    """Run ``sbroute resolve --format json``, and return the row on standard output, and standard error."""
    import contextlib
    import io

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        line = ["resolve", "--config", str(file), "--format", "json", "--quiet", "--as-of", AS_OF.isoformat()]
        sets = [part for one in ("resolve.broadcast_limit=1B", *NAMED) for part in ("--set", one)]
        assert cli.main([*line, *sets]) == 0
    assert out.getvalue().count("\n") == 1
    row = json.loads(out.getvalue())
    assert isinstance(row, dict)
    return row, err.getvalue()


def _rows_of_runs(spark: SparkSession, done: Done) -> dict[str, dict[str, Any]]:
    runs = rows_of(spark.read.format("delta").load(done.config.output["runs"].text))
    return {row["run_id"]: row for row in runs}


@pytest.mark.core
def test_the_row_of_a_run(spark: SparkSession, done: Done) -> None:
    expected = reference(with_moments(small_estate()), as_of=None, run_id="first")
    row = _rows_of_runs(spark, done)["first"]
    assert row == done.first.row
    assert done.started <= row["started_at"] < row["finished_at"] <= done.finished
    seconds = row["stage_seconds"]
    assert {"read", "write"} <= set(seconds)
    assert all(value >= 0 for value in seconds.values())
    assert sum(seconds.values()) <= (row["finished_at"] - row["started_at"]).total_seconds() + 0.1
    # This row creates the table `runs`, so it has no id yet.
    assert set(row["table_ids"]) == {"messages", "dialogs", *RESULTS}
    assert set(row["commit_identities"]) == {"messages", "dialogs", *RESULTS}
    others = ("started_at", "finished_at", "stage_seconds", "table_ids", "commit_identities")
    assert {name: row[name] for name in row if name not in others} == {
        "run_id": "first",
        "mode": "full",
        "as_of": None,
        "now": None,
        "input_versions": dict.fromkeys(done.config.tables, 0),
        # A table with a catalog name is created before its rows are written.
        "output_versions": {key: done.commits.count(key) - 1 for key in RESULTS} | {"resolved_routes": 1},
        "rows_read": len(small_estate()["messages"]),
        "rows_resolved": len(expected.resolved_routes),
        "rows_rejected": len(expected.rejected_messages),
        "rows_unchanged": 0,
        **dict.fromkeys(("rows_erased", "next_due_at", "input_digests", "window_from", "window_to")),
        **dict.fromkeys(("rows_quarantined", "quarantined_instances")),
        "outcome_counts": Counter(r["outcome"] for r in expected.resolved_routes),
        "reason_counts": Counter(r["reason"] for r in expected.resolved_routes),
        "dialog_hash": "builtin",
        "engine": "spark",
        "settings": done.config.as_json(),
        "release": release(),
    }


@pytest.mark.core
def test_every_pass_of_a_run_reads_the_same_version(spark: SparkSession, done: Done) -> None:
    """Messages were appended between the passes of the first run. Only the second run read them."""
    assert done.first.row["input_versions"]["messages"] == 0
    assert done.second["input_versions"]["messages"] == 1
    assert done.second["rows_read"] == done.first.row["rows_read"] + 2
    for row in (done.first.row, done.second):
        assert row["rows_read"] == row["rows_resolved"] + row["rows_rejected"]
        assert sum(row["outcome_counts"].values()) == sum(row["reason_counts"].values()) == row["rows_resolved"]


@pytest.mark.core
def test_read_run_gives_the_rows_of_that_run(spark: SparkSession, done: Done) -> None:
    """The second run replaced the outputs, but the first run's rows are still available."""
    estate = with_moments(small_estate())
    expected = reference(estate, as_of=None, run_id="first")
    first = routing.read_run(spark, done.config, "first")
    assert_same(rows_of(first.resolved_routes), expected.resolved_routes, "resolved_routes")
    assert_same(rows_of(first.new_route_requests), expected.new_route_requests, "new_route_requests")
    assert_same(rows_of(first.rejected_messages), expected.rejected_messages, "rejected_messages")
    second = routing.read_run(spark, done.config, done.second["run_id"])
    # The second run has one decision time, exceeds broadcast_limit, and reads messages of two commits.
    estate = with_moments({**small_estate(), "messages": [*small_estate()["messages"], *LATER]})
    expected = reference(estate, as_of=AS_OF, run_id=done.second["run_id"])
    resolved = rows_of(second.resolved_routes)
    assert {row["decided_at"] for row in resolved} == {AS_OF}
    assert_same(resolved, expected.resolved_routes, "resolved_routes")
    assert_same(rows_of(second.new_route_requests), expected.new_route_requests, "new_route_requests")
    assert_same(rows_of(second.rejected_messages), expected.rejected_messages, "rejected_messages")
    now = spark.table("shop.resolved")
    assert {row["run_id"] for row in rows_of(now)} == {done.second["run_id"]}


@pytest.mark.core
def test_a_run_that_is_not_recorded(spark: SparkSession, done: Done) -> None:
    with pytest.raises(InputError, match=r"no run 'third' is recorded in .*runs"):
        routing.read_run(spark, done.config, "third")


@pytest.mark.core
def test_outputs_are_committed_in_order(done: Done) -> None:
    """The results are written side by side, then the rejected messages if needed, and the run last."""
    assert sorted(done.commits[:3]) == RESULTS
    assert done.commits[3:] in (["runs"], ["rejected_messages", "runs"])


@pytest.mark.core
def test_the_command_prints_the_row_of_the_run(spark: SparkSession, done: Done) -> None:
    from routing.schemas import RUNS

    row = _rows_of_runs(spark, done)[done.second["run_id"]]
    assert list(done.second) == RUNS.names
    times = ("started_at", "finished_at", "as_of", "now")
    plain = {name: value for name, value in row.items() if name not in times}
    assert plain == {name: value for name, value in done.second.items() if name not in times}
    assert datetime.fromisoformat(done.second["as_of"]) == row["as_of"] == AS_OF
    assert json.loads(row["settings"])["resolve"]["broadcast_limit"] == "1B"
    # Three kinds of names in the configuration, the dialogs, the plan, names in messages, the request on record by
    # service and by conversation, the request of m4, the waiting messages, and the databases in messages.
    assert done.second_notes.count("shuffled hash join") == 11
    assert all(line.startswith("note: ") for line in done.second_notes.splitlines())


def test_lost_messages_are_noticed(
    spark: SparkSession, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved_routes = results.resolved_routes

    def lossy(*arguments: Any, **options: Any) -> Any:
        return resolved_routes(*arguments, **options).where("message_id <> 'm1'")

    monkeypatch.setattr(results, "resolved_routes", lossy)
    with pytest.raises(InternalError, match=r"7 .* but 4 resolved, 0 unchanged and 2 rejected") as caught:
        routing.run(spark, config_of(stored, tmp_path / "out"))
    assert caught.value.exit_code == 3
    assert not (tmp_path / "out" / "runs").exists()


# test_every_state covers all points of failure on a log in memory. The test below covers the sentence.
@pytest.mark.long
def test_storage_that_fails_at_the_end(
    spark: SparkSession, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is not recorded, and the next one replaces its files."""
    config = config_of(stored, tmp_path / "out")
    writer: Any = type(spark.range(0).write)
    save = writer.save

    def full_disk(self: Any, path: str, *rest: Any) -> None:
        if path == config.output["runs"].text:
            raise OSError(28, "No space left on device")
        save(self, path, *rest)

    monkeypatch.setattr(writer, "save", full_disk)
    with pytest.raises(StorageError) as caught:
        routing.run(spark, config, run_id="failed")
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"the run failed while writing output.runs to {tmp_path}/out/runs: No space left on device"
        " (run again once there is free space)"
    )
    assert (tmp_path / "out" / "resolved_routes").exists()
    monkeypatch.undo()
    again = routing.run(spark, config, run_id="again")
    assert again.row["rows_read"] == 7
    assert routing.read_run(spark, config, "again").resolved_routes.count() == 5
    with pytest.raises(InputError, match="no run 'failed' is recorded"):
        routing.read_run(spark, config, "failed")


def test_storage_that_fails_part_way(
    spark: SparkSession,
    stored: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The messages' files vanish before the first pass."""
    inputs = shutil.copytree(stored, tmp_path / "in")
    file = tmp_path / "job.yaml"
    file.write_text(config_text(inputs, tmp_path / "out"), encoding="utf-8")

    def lose_files() -> None:
        for part in (inputs / "messages").glob("*.parquet"):
            part.unlink()

    _after(monkeypatch, "open_source", lose_files)
    assert cli.main(["resolve", "--config", str(file), "--quiet"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sbroute: the run failed while ")
    assert err.endswith(" (run again once the cause is gone)\n")
    assert err.count("\n") == 1
    assert not (tmp_path / "out" / "runs").exists()
