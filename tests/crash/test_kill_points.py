"""Each command completes its own work after an interruption at any write."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from routing import cli
from tests.crash.kill_points import KillPoint, build_library, kill_at, run_to_each_point
from tests.crash.test_killed import KILLED, SHORT
from tests.imports import rows_at
from tests.store_release import BESIDE, INPUTS, OUTPUTS, STORED_BY_0_2_0

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("deltalake")
TUESDAY = "2026-01-06T20:00:00Z"
# These differ between two undisturbed runs: times of the clock, ids and versions of tables.
_OF_ONE_RUN = {
    *("imported_at", "started_at", "finished_at", "stage_seconds"),
    *("table_ids", "commit_identities", "input_versions", "output_versions"),
}
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Step:
    """A command. If ``is_tried``, it is interrupted at each of its points first."""

    command: str
    is_tried: bool = True
    is_long: bool = False

    @property
    def arguments(self) -> list[str]:
        """The arguments, with the configuration."""
        return [*self.command.split(), "--config", "job.yaml", "--quiet"]


_IMPORTS = ("import catalog exported/monday", "import events exported/events.jsonl")
_LATER_IMPORTS = (
    "import tsql exported/tuesday.sql --instance SHOP --scripted-at 2026-01-06T09:00:00Z",
    "import catalog exported/tuesday",
)
WITHOUT_SPARK = [
    *(Step(command) for command in _IMPORTS),
    Step("resolve --engine local --run-id first"),
    Step("trace --all"),
    *(Step(command, is_long=number > 0) for number, command in enumerate(_LATER_IMPORTS)),
    Step("import events exported/thursday", is_long=True),
    Step("resolve --engine local --run-id second", is_long=True),
    Step("trace --all", is_long=True),
]
BY_SPARK = [
    *(Step(command, is_tried=False) for command in _IMPORTS),
    Step("resolve --engine spark --set resolve.mode=full --run-id first"),
    Step("candidates", is_long=True),
    *(Step(command, is_tried=False) for command in _LATER_IMPORTS),
    Step(f"resolve --engine spark --set resolve.mode=incremental --run-id second --now {TUESDAY}", is_long=True),
    Step(f"resolve --engine spark --from 2026-01-01T00:00:00Z --to {TUESDAY} --run-id third", is_long=True),
    Step("candidates", is_long=True),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled library."""
    if shutil.which("cc") is None:
        pytest.skip("a C compiler makes the library that finds the points")
    return build_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with exports and a configuration, in which commands run."""
    folder = tmp_path / "job"
    shutil.copytree(STORED_BY_0_2_0 / "exported", folder / "exported")
    content = {
        "tables": {key: f"in/{key}" for key in INPUTS},
        "output": {key: f"out/{key}" for key in (*OUTPUTS, *BESIDE)},
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the session of other tests, so that deltalake creates tables."""
    monkeypatch.setattr("routing.sessions.session.find_active", lambda: None)


@pytest.mark.usefixtures("_no_session")
def test_without_spark(library: Path, folder: Path) -> None:
    assert list(_find_faults(library, folder, WITHOUT_SPARK)) == []


def test_by_spark(library: Path, folder: Path, spark: SparkSession) -> None:
    assert list(_find_faults(library, folder, BY_SPARK, spark)) == []


@pytest.mark.usefixtures("_no_session")
def test_a_copy_is_what_a_kill_leaves(library: Path, folder: Path, tmp_path: Path) -> None:
    command = WITHOUT_SPARK[0].arguments
    shutil.copytree(folder, tmp_path / "start")
    points = run_to_each_point(library, folder, command, tmp_path / "copies")
    for number in range(0, len(points), 10):
        _replace(folder, shutil.copytree(tmp_path / "start", tmp_path / "again"))
        assert kill_at(library, folder, command, number) == KILLED
        assert _list_files(folder) == _list_files(points[number].copy), points[number].name


def _find_faults(
    library: Path, folder: Path, steps: Sequence[Step], spark: SparkSession | None = None
) -> Iterator[str]:
    """Run the steps in order, and yield each interrupted one that was not completed."""
    tried = 0
    for number, step in enumerate(steps):
        if SHORT and step.is_long:
            break
        if not step.is_tried:
            assert cli.main(step.arguments) == 0
            continue
        points = run_to_each_point(library, folder, step.arguments, folder.with_name(f"copies {number}"))
        shutil.copytree(folder, folder.with_name("whole"))
        expected = _read_state(folder)
        for point in _choose(points, is_by_spark=spark is not None):
            tried += 1
            _replace(folder, point.copy)
            _forget_logs(spark)
            status = cli.main(step.arguments)
            if status != 0 or (differing := _find_differing(_read_state(folder), expected)):
                yield f"{step.command}, {point.name}: {f'exit code {status}' if status else differing}"
        _replace(folder, folder.with_name("whole"))
        _forget_logs(spark)
    # Spark tries a few points, and the local engine nearly all.
    assert tried > (300 if spark is None else 20)


def _choose(points: Sequence[KillPoint], *, is_by_spark: bool) -> list[KillPoint]:
    """Choose all points. Spark takes seconds for each, so there at most ten among the data files are chosen."""
    if not is_by_spark:
        return list(points)
    of_data = [point for point in points if point.is_of_data]
    others = [point for point in points if not point.is_of_data]
    return [*others[:: 6 if SHORT else 1], *of_data[:: max(len(of_data) // (3 if SHORT else 10), 1)]]


def _replace(folder: Path, by: Path) -> None:
    """Replace the job's folder, in which commands run, by another one."""
    shutil.rmtree(folder)
    by.rename(folder)
    os.chdir(folder)


def _forget_logs(spark: SparkSession | None) -> None:
    """Make Delta read the logs again, because it caches them by path."""
    if spark is not None:
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]


def _read_state(folder: Path) -> dict[str, list[str]]:
    """Read the rows of all tables without the parts that differ between runs."""
    from routing.config import TableLocation

    state = {}
    for log in sorted(folder.glob("*/*/_delta_log")):
        rows = rows_at(TableLocation(str(log.parent)))
        state[f"{log.parent.parent.name}/{log.parent.name}"] = sorted(
            repr({name: value for name, value in row.items() if name not in _OF_ONE_RUN}) for row in rows
        )
    # A marker of an existing table does no harm, because the next run that writes there removes it.
    markers = (
        file for file in folder.rglob("*.creating") if not list(file.with_suffix("").glob("_delta_log/*.json"))
    )
    leftover = [str(file.relative_to(folder)) for file in markers]
    return {**{key: rows for key, rows in state.items() if rows}, "markers": leftover}


def _find_differing(state: dict[str, list[str]], expected: dict[str, list[str]]) -> list[str]:
    return [key for key in sorted({*state, *expected}) if state.get(key) != expected.get(key)]


def _list_files(folder: Path) -> list[str]:
    """List the files of a folder, without the ids in their names."""
    return sorted(_ID.sub("ID", str(file.relative_to(folder))) for file in folder.rglob("*"))
