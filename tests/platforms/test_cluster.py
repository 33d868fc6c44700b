"""A standalone cluster of two workers: jobs/resolve.py by spark-submit with the wheel, and a worker that dies."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.frames import Tables, frame_of, rows_of
from tests.platforms.processes import end, running, until
from tests.platforms.standalone import Standalone, home, standalone
from tests.random_estates import assert_same
from tests.reference.estates import draw_estates, joined
from tests.reference.resolver import resolve as reference
from tests.stored import config_text, store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
ESTATES, MESSAGES = 40, 50
# The pair that the project locks; test_docs holds the README to it.
PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@dataclass
class Cluster:
    """A standalone cluster, and how a job is submitted to it: with a wheel, to a Python without this project."""

    standalone: Standalone
    python: Path
    wheel: Path

    def submit(self, *arguments: str) -> tuple[list[str], dict[str, str]]:
        """The command line and environment of one run of jobs/resolve.py."""
        settings = {
            **DELTA,
            "spark.executor.memory": "1g",
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "4",
            "spark.ui.enabled": "false",
        }
        command = [str(home() / "bin" / "spark-submit"), "--master", self.standalone.master]
        command += ["--packages", PACKAGE, "--py-files", str(self.wheel)]
        command += ["--driver-java-options", f"-Dlog4j2.configurationFile={ROOT / 'conf' / 'log4j2.properties'}"]
        command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        command += [str(ROOT / "jobs" / "resolve.py"), *arguments]
        environment = {**os.environ, "SPARK_HOME": str(home()), "PYSPARK_PYTHON": str(self.python)}
        environment.pop("PYTHONPATH", None)
        return command, environment


def _python_without_the_project(folder: Path) -> Path:
    """An interpreter with the installed libraries, in which the package comes from the wheel or not at all."""
    venv.create(folder, with_pip=False)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    # A path in a .pth file brings the libraries there, but not the .pth file of the editable install.
    (own / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    python = folder / "bin" / "python"
    probe = [str(python), "-c", "import yaml, rich, pyspark, routing"]
    found = subprocess.run(probe, capture_output=True, text=True, check=False, cwd=folder)
    assert "No module named 'routing'" in found.stderr, found.stderr
    return python


def _wheel(folder: Path) -> Path:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(ROOT)], check=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers."""
    folder = tmp_path_factory.mktemp("cluster")
    python, wheel = _python_without_the_project(folder / "python"), _wheel(folder / "wheel")
    with standalone(folder, workers=2) as found:
        yield Cluster(found, python, wheel)


@dataclass
class Estate:
    """Stored input tables and the expected results."""

    tables: Tables
    folder: Path

    def config(self, outputs: Path) -> Path:
        """A configuration for them."""
        file = outputs.with_suffix(".yaml")
        file.write_text(config_text(self.folder, outputs), encoding="utf-8")
        return file

    def assert_resolved(self, spark: SparkSession, outputs: Path) -> None:
        """Assert that the outputs equal the tests' own resolver, and that one run is recorded."""
        (run,) = rows_of(spark.read.format("delta").load(str(outputs / "runs")))
        expected = reference(self.tables, as_of=None, run_id=run["run_id"])
        for key in ("resolved_routes", "new_route_requests", "rejected_messages"):
            got = rows_of(spark.read.format("delta").load(str(outputs / key)))
            assert_same(got, getattr(expected, key), key)


@pytest.fixture(scope="module")
def estate(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Store estates that use every rule, with messages in many files, so that every worker reads some."""
    from routing.schemas import INPUTS

    tables = joined(draw_estates(random.Random(5), ESTATES, MESSAGES))
    folder = tmp_path_factory.mktemp("estate")
    for key, rows in tables.items():
        frame = frame_of(spark, rows, INPUTS[key])
        store(frame.repartition(8) if key == "messages" else frame.coalesce(1), folder / key)
    return Estate(tables, folder)


def test_a_run_by_spark_submit(spark: SparkSession, cluster: Cluster, estate: Estate, tmp_path: Path) -> None:
    command, environment = cluster.submit(
        "--config", str(estate.config(tmp_path / "out")), "--quiet", "--format", "json"
    )
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    row = json.loads(done.stdout.splitlines()[-1])
    assert row["rows_read"] == row["rows_resolved"] + row["rows_rejected"] == len(estate.tables["messages"])
    estate.assert_resolved(spark, tmp_path / "out")


def test_a_missing_table_exits_with_2_on_a_cluster(cluster: Cluster, estate: Estate, tmp_path: Path) -> None:
    """A fault that is found once the session has started."""
    file = estate.config(tmp_path / "out")
    command, environment = cluster.submit("--config", str(file), "--set", f"tables.routes={tmp_path}/nowhere")
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 2, done.stdout[-2000:] + done.stderr[-2000:]
    # The line is easy to see: Spark's log has no INFO.
    assert "sbroute: tables.routes: there is no Delta table at " in done.stdout
    assert " INFO " not in done.stdout + done.stderr
    assert not (tmp_path / "out").exists()


def test_a_worker_dies_during_a_run(spark: SparkSession, cluster: Cluster, estate: Estate, tmp_path: Path) -> None:
    """This test is the last one, because the cluster continues with one worker."""
    command, environment = cluster.submit("--config", str(estate.config(tmp_path / "out")), "--log-format", "json")
    log = tmp_path / "driver.log"
    with running(command, log, environment) as driver:
        until(lambda: '"message": "validate: ' in log.read_text(errors="replace"), "validation", log, 400)
        victim = cluster.standalone.workers[0]
        assert _executors(cluster, "worker-0"), "worker 0 has an executor"
        end(victim, signal.SIGKILL)
        driver.wait(timeout=600)
    text = log.read_text(errors="replace")
    assert driver.returncode == 0, text[-3000:]
    until(lambda: cluster.standalone.alive() == 1, "the master's notice of the loss", log)
    estate.assert_resolved(spark, tmp_path / "out")
    notes: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line.startswith('{"time"')]
    assert any(note["message"].startswith("write: ") for note in notes)


def _executors(cluster: Cluster, worker: str) -> list[Path]:
    """The folders of the executors that a worker has started."""
    return [path for path in (cluster.standalone.folder / worker).glob("app-*/*") if path.is_dir()]
