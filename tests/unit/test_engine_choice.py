"""The engine that a command takes: one table of cases, and whole commands."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake

import routing
from routing.commands.command_context import choose_run_engine
from routing.errors import ContractError
from routing.schemas import OUTPUTS
from tests.estate_rows import small_estate
from tests.frames import arrow_of
from tests.stored import config_of, job_file, save_estate
from tests.without import SPARK, CommandsWithout, run_python

pytest.importorskip("deltalake")


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    save_estate(small_estate(), folder / "in", files=1)
    routing.resolve_local(config_of(folder / "in", folder / "out"), run_id="first")
    return folder


@pytest.fixture
def folder(one_run: Path, tmp_path: Path) -> Path:
    return shutil.copytree(one_run, tmp_path / "case")


def _feature(place: str, feature: TableFeatures) -> Callable[[Path], None]:
    return lambda folder: DeltaTable(folder / place).alter.add_feature(
        feature, allow_protocol_versions_increase=True
    )


def _partitioned(folder: Path) -> None:
    place, schema = folder / "out" / "resolved_routes", OUTPUTS["resolved_routes"]
    shutil.rmtree(place)
    write_deltalake(str(place), arrow_of([], schema), partition_by=["instance_name"])


def _nothing(_: Path) -> None:
    """Leave the tables unchanged."""


ELSEWHERE = "it is no path of this machine's disk"
DELETIONS = _feature("in/messages", TableFeatures.DeletionVectors)
IN_SESSION = "cannot be used in a Spark session"
# Overrides, a change to the tables, what Spark is taken for, and how the local engine refuses it if it is named.
CASES: dict[str, tuple[tuple[str, ...], Callable[[Path], None], str | None, str | None]] = {
    "tables on this disk": ((), _nothing, None, None),
    "null": (("resolve.engine=null",), _nothing, None, None),
    "settings of Spark": (("spark.spark.driver.memory=4g",), _nothing, None, None),
    "a table that is missing": (("tables.routes=/nowhere", "output.runs=/nowhere/runs"), _nothing, None, None),
    "incremental": (
        ("resolve.mode=incremental", "output.pending_messages=pending"),
        _nothing,
        "resolve.mode is incremental",
        r"does not support resolve\.mode: incremental \(resolve with --engine spark",
    ),
    "the hash in Python": (
        ("resolve.dialog_hash=udf",),
        _nothing,
        "resolve.dialog_hash is udf",
        r"does not support resolve\.dialog_hash: udf",
    ),
    "a clustered table": (
        ("output.cluster_by=enqueue_time",),
        _nothing,
        "output.cluster_by is set",
        r"does not support output\.cluster_by \(resolve with --engine spark, or leave it out",
    ),
    "an input on an object store": (
        ("tables.routes=s3a://bucket/routes",),
        _nothing,
        f"tables.routes cannot be read by the local engine, {ELSEWHERE}",
        f"tables.routes cannot be read by the local engine: {ELSEWHERE}",
    ),
    "an output of a catalog": (
        ("output.runs=main.broker.runs",),
        _nothing,
        f"output.runs cannot be written by the local engine, {ELSEWHERE}",
        f"output.runs cannot be written by the local engine: {ELSEWHERE}",
    ),
    "what import keeps, on an object store": (
        ("tables.imports=s3a://bucket/imports",),
        _nothing,
        f"tables.imports cannot be read by the local engine, {ELSEWHERE}",
        "tables.imports cannot be read",
    ),
    "deletion vectors": (
        (),
        DELETIONS,
        "tables.messages cannot be read by the local engine, its reader version is 3",
        "tables.messages cannot be read by the local engine: its reader version is 3",
    ),
    "a change feed of an output": (
        (),
        _feature("out/resolved_routes", TableFeatures.ChangeDataFeed),
        "output.resolved_routes cannot be written by the local engine, its writer version is 7",
        "output.resolved_routes cannot be written",
    ),
    "an output with partitions": (
        (),
        _partitioned,
        "output.resolved_routes cannot be written by the local engine, it is partitioned",
        "output.resolved_routes cannot be written",
    ),
    "another file system by default": (
        ("spark.spark.hadoop.fs.defaultFS=hdfs://name:8020",),
        _nothing,
        "tables.routes: its path may be one of another file system than this machine's",
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_engine_is_chosen_by_tables_and_settings(
    case: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine depends on the tables, on a named engine, on a session and on running as a job."""
    overrides, change, why, refused = CASES[case]
    change(folder)

    def choose(engine: str | None = None, *, is_job: bool = False) -> str:
        named = () if engine is None else (f"resolve.engine={engine}",)
        return str(choose_run_engine(config_of(folder / "in", folder / "out", *overrides, *named), is_job=is_job))

    monkeypatch.setattr("routing.sessions.session.is_given", lambda: False)
    chosen = "local engine: all tables are on this disk" if why is None else f"Spark: {why}"
    assert (choose(), choose("auto"), choose("spark")) == (chosen, chosen, "Spark: resolve.engine is spark")
    if refused is None:
        assert choose("local") == "local engine: resolve.engine is local"
    else:
        with pytest.raises(ContractError, match=refused):
            choose("local")
    assert choose(is_job=True) == "Spark: the command was started as a job"
    with pytest.raises(ContractError, match=IN_SESSION):
        choose("local", is_job=True)
    monkeypatch.setattr("routing.sessions.session.is_given", lambda: True)
    assert choose() == "Spark: a Spark session is given"
    with pytest.raises(ContractError, match=IN_SESSION):
        choose("local")


def test_a_run_over_local_tables_needs_no_spark(folder: Path) -> None:
    """Although pyspark is installed."""
    program = (
        "import sys; from routing.cli import main; status = main(sys.argv[1:]);"
        " sys.exit(9 if 'pyspark' in sys.modules else status)"
    )
    done = run_python(program, "resolve", "--config", str(job_file(folder)), "--format", "json")
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, "local engine: all tables are on this disk")
    assert json.loads(done.stdout)["engine"] == "local"


ALL_MESSAGES = (
    "trace --all --set output.message_paths=paths",
    "diff --against-time 2026-02-01",
    "reconcile --set tables.observed_routing=observed",
    "messages",
    "candidates --set output.route_candidates=candidates",
)


def test_other_commands_choose_by_the_same_rules(folder: Path) -> None:
    """Without pyspark, each command explains why it needs Spark, before starting or writing anything."""
    config = ("--config", str(job_file(folder)))
    run_by_spark = "the command needs Spark (resolve.engine is spark), and the Python package pyspark is missing"
    read_by_spark = "tables.messages is read by Spark (its reader version is 3)"
    with CommandsWithout(SPARK) as commands:

        def run(line: str, engine: str) -> str:
            done = commands.run(*line.split(), *config, "--set", f"resolve.engine={engine}")
            return done.stderr if done.returncode else f"ended with {done.returncode}"

        for line in (*ALL_MESSAGES, "resolve"):
            assert run_by_spark in run(line, "spark"), line
        *_, candidates = ALL_MESSAGES
        assert "needs Spark (the local engine does not rank candidates)" in run(candidates, "auto")
        assert "the local engine does not rank candidates (add --set" in run(candidates, "local")
        for line in ("trace --all --set output.message_paths=paths", "messages"):
            assert run(line, "auto") == run(line, "local") == "ended with 0"
        DELETIONS(folder)
        unfit = "tables.messages cannot be read by the local engine"
        for line in ALL_MESSAGES[:2]:
            output = run(line, "auto")
            assert output.startswith(f"Spark: {unfit}, its reader version is 3\n"), line
            assert read_by_spark in output, line
            assert f"{unfit}: its reader version is 3" in run(line, "local"), line
        assert f"the command needs Spark ({unfit}, its reader" in run("resolve", "auto")
