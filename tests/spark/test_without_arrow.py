"""The main job needs neither pandas nor pyarrow. Without pyarrow, Python and Spark exchange plain rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.run_context import ResolveOptions, RunContext
from routing.runs.pipeline import resolve_with
from routing.tables import cached_frames
from routing.tables.cached_frames import FrameLimits
from tests.estate_rows import small_estate
from tests.frames import frames, rows_of, with_moments
from tests.random_estates import assert_same
from tests.reference.resolver import resolve as reference
from tests.stored import config_text, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.core, pytest.mark.matrix, pytest.mark.classic]
ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.parametrize("missing", ["pyarrow,pandas,numpy", "pandas,numpy"])
def test_the_job_runs_without_pyarrow_and_pandas(missing: str, spark: SparkSession, tmp_path: Path) -> None:
    inputs, file = save_estate(small_estate(), tmp_path / "in", files=1), tmp_path / "job.yaml"
    file.write_text(config_text(inputs, tmp_path / "out"), encoding="utf-8")
    line = [
        sys.executable,
        "-m",
        "tests.spark.without_arrow",
        missing,
        "resolve",
        "--config",
        str(file),
        "--engine",
        "spark",
        "--format",
        "json",
    ]
    done = subprocess.run(
        line,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # Spark 3.5 reports on standard output that it fetches its JARs.
    assert json.loads(done.stdout.splitlines()[-1])["rows_resolved"] == 5
    stored = spark.read.format("delta").load(str(tmp_path / "out" / "resolved_routes"))
    expected = reference(with_moments(small_estate()), as_of=None).resolved_routes
    assert_same(rows_of(stored.drop("run_id")), [_without_run(row) for row in expected], "resolved_routes")


def _without_run(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != "run_id"}


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(cached_frames.FRAME_LIMITS, id="small"),
        pytest.param(FrameLimits(held_rows=-1), id="as if large", marks=pytest.mark.long),
    ],
)
def test_rows_are_the_same_without_arrow(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, limits: FrameLimits
) -> None:
    monkeypatch.setattr(cached_frames, "has_arrow", lambda: False)
    without = resolve_with(frames(spark, small_estate()), RunContext(ResolveOptions("rows")), limits)
    try:
        expected = reference(with_moments(small_estate()), as_of=None, run_id="rows")
        assert_same(rows_of(without.resolved_routes), expected.resolved_routes, "resolved_routes")
        assert_same(rows_of(without.new_route_requests), expected.new_route_requests, "new_route_requests")
    finally:
        without.unpersist()
