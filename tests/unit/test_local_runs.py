"""Runs of the local engine: killed at every commit, refused before anything is written, without Java."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake

import routing
from routing import cli
from routing.delta.counted_runs import last_run, open_left
from routing.delta.data_files import DataFiles
from routing.delta.opening import LocalOpener
from routing.errors import ContractError, StorageError
from routing.runs import local_runs
from routing.schemas import MESSAGES, OUTPUTS, ROUTES
from routing.tables.read_rows import read_rows
from tests.estate_rows import message, route, small_estate
from tests.frames import arrow_of, with_moments
from tests.hooks import Killed, hooked, kill, once
from tests.random_estates import assert_same
from tests.reference.resolver import Resolution
from tests.reference.resolver import resolve as reference
from tests.stored import config_of, job_file, save_estate, written
from tests.unit.test_local_engine import RESULTS
from tests.without import SPARK, without

KEYS = (*RESULTS, "runs")
MORE = [message(20, "//far"), message(21, "//nowhere-else"), message(22, "//far", conversation_id="no guid")]
NOT_ENDED = (
    "1 route request on record has no ended_at: until then, no new request is sent for the same service, and"
    " its messages wait"
)


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """After a run, with new messages."""
    folder = tmp_path_factory.mktemp("one")
    save_estate(small_estate(), folder / "in", files=1)
    routing.resolve_local(_config(folder), run_id="first")
    write_deltalake(str(folder / "in" / "messages"), arrow_of(MORE, MESSAGES), mode="append")
    return folder


@pytest.fixture
def folder(one_run: Path, tmp_path: Path) -> Path:
    return shutil.copytree(one_run, tmp_path / "case")


def _config(folder: Path, *overrides: str) -> routing.Config:
    return config_of(folder / "in", folder / "out", *overrides)


def test_a_run_opens_the_table_of_runs_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, find = list[str](), LocalOpener.find

    def watched(self: LocalOpener, key: str, *where: Any, **named: Any) -> Any:
        opened.append(key)
        return find(self, key, *where, **named)

    monkeypatch.setattr(LocalOpener, "find", watched)
    for was_recorded in (False, True):
        opened.clear()
        done = routing.resolve_local(_config(folder), run_id="second")
        assert (done.was_recorded, opened.count("output.runs")) == (was_recorded, 1)


def _expected(run_id: str, more: list[dict[str, Any]]) -> Resolution:
    estate = small_estate()
    return reference(with_moments({**estate, "messages": [*estate["messages"], *more]}), as_of=None, run_id=run_id)


def _assert_left(folder: Path, run_id: str, more: list[dict[str, Any]]) -> None:
    _assert_rows_left(folder, _expected(run_id, more))


def _assert_rows_left(folder: Path, expected: Resolution) -> None:
    """Assert that readers of the outputs find the rows of the last recorded run."""
    config, opener = _config(folder), LocalOpener()
    last = last_run(opener, config.output["runs"])
    assert last is not None
    for key in RESULTS:
        left = read_rows(open_left(opener, config, last, key), OUTPUTS[key])
        assert_same(left, getattr(expected, key), key)


# What stands there before a commit is what stood there after the one before it.
POINTS = [*(f"before {key}" for key in KEYS), "after runs"]


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_every_commit(folder: Path, point: str) -> None:
    with hooked(once(point, kill)), pytest.raises(Killed):
        routing.resolve_local(_config(folder), run_id="killed")
    has_counted = point == "after runs"
    _assert_left(folder, "killed" if has_counted else "first", MORE if has_counted else [])
    done = routing.resolve_local(_config(folder), run_id="next")
    assert done.row["rows_read"] == len(small_estate()["messages"]) + len(MORE)
    _assert_left(folder, "next", MORE)
    assert not (folder / "out" / "runs.lock").exists()


@pytest.mark.parametrize("point", POINTS[:-1])
def test_a_killed_first_run_can_be_repeated(tmp_path: Path, point: str) -> None:
    save_estate(small_estate(), tmp_path / "in", files=1)
    with hooked(once(point, kill)), pytest.raises(Killed):
        routing.resolve_local(_config(tmp_path), run_id="killed")
    routing.resolve_local(_config(tmp_path), run_id="next")
    _assert_left(tmp_path, "next", [])


@pytest.mark.parametrize(
    ("error", "is_left"),
    [(Killed(), True), (KeyboardInterrupt(), False), (OSError("No space left on device"), False)],
    ids=["killed", "interrupted", "a full disk"],
)
@pytest.mark.parametrize("is_first", [True, False], ids=["a first run", "a later run"])
def test_ended_while_files_are_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_first: bool, error: BaseException, is_left: bool
) -> None:
    """Files of a killed run belong to no table. A run that ends in another way removes its files."""
    if is_first:
        shutil.rmtree(folder / "out")
    was_written = local_runs.ResolvedRows.write_to

    def fail(self: local_runs.ResolvedRows, files: DataFiles) -> None:
        was_written(self, files)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(local_runs.ResolvedRows, "write_to", fail)
        if is_left:
            patch.setattr(DataFiles, "remove", lambda _: None)
        with pytest.raises((StorageError, type(error))):
            routing.resolve_local(_config(folder), run_id="ended")
    stored = len(list((folder / "out" / "resolved_routes").glob("*.parquet")))
    assert (stored > (0 if is_first else 1)) is is_left
    routing.resolve_local(_config(folder), run_id="next")
    _assert_left(folder, "next", MORE)


def _block_checkpoint(folder: Path, key: str) -> int:
    """Make delta-rs fail at the checkpoint after its next commit to an output, and return the commit's version."""
    place = folder / "out" / key
    DeltaTable(place).alter.set_table_properties({"delta.checkpointInterval": "1"})
    version: int = DeltaTable(place).version() + 1
    (place / "_delta_log" / f"{version:020d}.checkpoint.parquet").mkdir()
    return version


@pytest.mark.parametrize("key", KEYS)
def test_a_completed_commit_is_not_a_failure(folder: Path, key: str) -> None:
    # Rows in every output; the first run has opened its request.
    routing.resolve_local(_config(folder), run_id="before")
    version = _block_checkpoint(folder, key)
    done = routing.resolve_local(_config(folder), run_id="done")
    expected = f"output.{key}: version {version} is written, but deltalake failed after the commit: "
    assert [note.startswith(expected) for note in done.notes if note.startswith("output.")] == [True]
    _assert_left(folder, "done", MORE)
    routing.resolve_local(_config(folder), run_id="next")
    _assert_left(folder, "next", MORE)


@pytest.mark.parametrize("is_damaged", [False, True], ids=["not in the log", "perhaps in the log"])
def test_files_of_a_commit_that_failed(folder: Path, monkeypatch: pytest.MonkeyPatch, is_damaged: bool) -> None:
    """They are removed, unless the log cannot say that it does not name them."""
    place = folder / "out" / "resolved_routes"
    before = written(place)
    was_committed = DeltaTable.create_write_transaction

    def fail(self: DeltaTable, *arguments: Any, **named: Any) -> None:
        if Path(self.table_uri.removeprefix("file://")) != place:
            was_committed(self, *arguments, **named)
            return
        if is_damaged:
            (place / "_delta_log" / f"{self.version() + 1:020d}.json").write_text("{\n", encoding="utf-8")
        raise OSError("Input/output error")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", fail)
    expected = "a line of version 2 is not JSON" if is_damaged else "writing output.resolved_routes to .*: Input"
    with pytest.raises(StorageError, match=expected):
        routing.resolve_local(_config(folder), run_id="failed")
    left = set(written(place)) - set(before)
    assert {Path(name.split()[0]).suffix for name in left} == ({".json", ".parquet"} if is_damaged else set())


def test_a_counted_run_is_not_repeated(folder: Path) -> None:
    routing.resolve_local(_config(folder), run_id="once")
    before = written(folder / "out")
    again = routing.resolve_local(_config(folder, "resolve.engine=local"), run_id="once")
    assert again.was_recorded
    assert written(folder / "out") == before


def test_of_two_concurrent_runs_the_last_one_fails(folder: Path) -> None:
    """As on a file system without locks: the one that comes last does not count."""

    def other() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("routing.delta.run_lock.fcntl", None)
            routing.resolve_local(_config(folder), run_id="other")

    with hooked(once("after resolved_routes", other)), pytest.raises(StorageError, match="another run"):
        routing.resolve_local(_config(folder), run_id="slow")
    _assert_left(folder, "other", MORE)


@pytest.mark.parametrize("key", RESULTS)
def test_an_output_restored_by_hand_is_replaced(folder: Path, key: str) -> None:
    routing.resolve_local(_config(folder), run_id="second")
    table = DeltaTable(folder / "out" / key)
    table.restore(table.version() - 1)
    routing.resolve_local(_config(folder), run_id="third")
    _assert_left(folder, "third", MORE)


def _lacking(key: str, column: str) -> Callable[[Path], None]:
    def make_older(folder: Path) -> None:
        """As an older release wrote the table: without a column that may be null."""
        place = folder / "out" / key
        rows = DeltaTable(place).to_pyarrow_table().drop_columns([column])
        write_deltalake(str(place), rows, mode="overwrite", schema_mode="overwrite")

    return make_older


def test_older_runs_gain_their_columns_in_the_commit_of_the_run(folder: Path) -> None:
    _lacking("runs", "engine")(folder)
    before = DeltaTable(folder / "out" / "runs").version()
    # Whoever wrote it anew has no mark: a full run notes that.
    done = routing.resolve_local(_config(folder), run_id="next")
    runs = DeltaTable(folder / "out" / "runs")
    assert runs.version() == before + 1
    assert {row["run_id"]: row["engine"] for row in runs.to_pyarrow_table().to_pylist()} == {
        "first": None,
        "next": "local",
    }
    assert done.row["engine"] == "local"


@pytest.mark.parametrize("key", KEYS)
def test_comments_of_columns_stay(folder: Path, key: str) -> None:
    place = folder / "out" / key
    DeltaTable(place).alter.set_column_metadata("run_id", {"comment": "which run"})
    DeltaTable(place).alter.set_table_description("of our job")
    done = routing.resolve_local(_config(folder), run_id="next")
    assert done.notes == (NOT_ENDED,)
    comments = {
        field["name"]: field["metadata"] for field in json.loads(DeltaTable(place).schema().to_json())["fields"]
    }
    assert comments["run_id"] == {"comment": "which run"}
    _assert_left(folder, "next", MORE)


def test_features_of_spark_are_refused_before_anything_is_written(folder: Path) -> None:
    """`test_engine_choice` has all that is refused."""
    DeltaTable(folder / "in" / "messages").alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )
    before = written(folder / "out")
    with pytest.raises(ContractError, match=r"tables\.messages cannot be read by the local engine"):
        routing.resolve_local(_config(folder))
    assert written(folder / "out") == before


def test_settings_that_do_not_apply_are_noted(folder: Path) -> None:
    overrides = ("spark.spark.driver.memory=4g", "resolve.broadcast_limit=1MB")
    done = routing.resolve_local(_config(folder, *overrides))
    assert list(done.notes) == [
        "the local engine takes no Spark settings: spark.driver.memory",
        "the local engine joins nothing: resolve.broadcast_limit does not apply",
        NOT_ENDED,
    ]


def test_the_command_needs_neither_spark_nor_java(folder: Path) -> None:
    done = without(SPARK, "resolve", "--config", str(job_file(folder)), "--format", "json")
    assert (done.returncode, done.stderr) == (
        0,
        f"local engine: all tables are on this disk\nnote: {NOT_ENDED}\n",
    )
    row = json.loads(done.stdout)
    assert (row["engine"], row["rows_read"]) == ("local", 10)
    _assert_left(folder, row["run_id"], MORE)


def test_a_given_session_is_refused(folder: Path) -> None:
    class SparkSession:
        """A stand-in for a session that must not be used."""

    with pytest.raises(ContractError, match="cannot be used in a Spark session"):
        routing.run(SparkSession(), _config(folder, "resolve.engine=local"))  # type: ignore[arg-type]


def test_the_local_engine_resolves_the_demo(tmp_path: Path) -> None:
    done = without(SPARK, "demo", "--engine", "local", "--out", str(tmp_path / "demo"), "--format", "json")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert (row["rows_read"], row["rows_rejected"], row["engine"]) == (12_059, 9, "local")


def test_times_of_all_years_and_long_names(tmp_path: Path) -> None:
    """Years 0001 and 9999, and a name of a million characters."""
    estate = small_estate()
    long = "//" + "n\u00e9" * 500_000
    estate["messages"] += [
        message(30, "//far", enqueue_time="0001-01-01T00:00:00Z"),
        message(31, "//far", enqueue_time="9999-12-31T23:59:59Z", instance_name="hub"),
        message(32, long),
    ]
    save_estate(estate, tmp_path / "in", files=1)
    routing.resolve_local(_config(tmp_path), run_id="r")
    _assert_rows_left(tmp_path, reference(with_moments(estate), as_of=None, run_id="r"))


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--fail-on", "quarantine"), 1)])
def test_an_instance_in_quarantine(
    folder: Path, options: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [
        route("bad", "//x", "http://nowhere", instance_name="far"),
        route("bad", None, "x", instance_name="far"),
    ]
    write_deltalake(str(folder / "in" / "routes"), arrow_of(bad, ROUTES), mode="append")
    line = ["resolve", "--config", str(job_file(folder)), "--set", "resolve.on_config_fault=quarantine", *options]
    assert cli.main(line) == code
    out, err = capsys.readouterr()
    assert (
        "note: in quarantine are the messages of 1 instance: far, because there are 3 faulty rows:"
        " routes (far, Sales, bad): several rows have this key and the same valid_from; routes (far, Sales, bad,"
        " NULL): address 'http://nowhere' is neither LOCAL, TRANSPORT nor tcp://HOST[:PORT]; routes"
    ) in " ".join(err.split())
    assert "in quarantine: 0 messages of 1 instance: far\n" in out
