"""Workers without the package receive it. A session without Python workers is refused before reading."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pytest

from routing.errors import EnvironmentFault
from routing.run_context import ResolveOptions
from routing.runs.spark_outputs import trace_all
from routing.sessions.python_workers import map_by_workers, prepare_workers
from routing.tables.cached_frames import FrameCache
from routing.views.diff import spark_diff

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.core, pytest.mark.classic]


@pytest.fixture
def workers(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return new sessions with workers that run a given Python program."""

    def start(script: str) -> SparkSession:
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        python.chmod(0o755)
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
        return spark.newSession()

    return start


def test_workers_without_the_package_are_sent_it(workers: Any) -> None:
    # Without site, an editable installation is not found. From another folder, this one is not found either.
    packages = os.pathsep.join(place for place in sys.path if place.endswith("site-packages"))
    session = workers(f'cd / && PYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"')

    def where(batches: Any) -> Any:
        import pyarrow

        for batch in batches:
            try:
                import routing

                file = routing.__file__
            except ImportError:
                file = None
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array([file] * len(batch), pyarrow.string())], ["file"])

    from pyspark.sql.types import StringType, StructField, StructType

    asked = map_by_workers(session.range(0, 1, 1, 1), where, StructType([StructField("file", StringType())]))
    assert asked.first() == (None,)
    prepare_workers(session)
    row = asked.first()
    assert row is not None
    assert "routing.zip" in row[0]


def test_a_session_without_python_is_refused_before_anything_is_read(workers: Any) -> None:
    session = workers("echo no Python here >&2; exit 1")
    # The tables are empty, because they are never read.
    settings: Any = dict.fromkeys(("routes", "databases", "services", "instances"), pyarrow.table({}))
    with pytest.raises(EnvironmentFault, match="no Python workers") as refused:
        trace_all(session, {**settings, "messages": session.range(1)})
    assert "--set resolve.engine=local" in (refused.value.hint or "")
    traffic: Any = spark_diff.SideMessages(session.range(1), None)
    difference: Any = None
    with pytest.raises(EnvironmentFault, match="no Python workers"):
        spark_diff.compare(traffic, difference, ResolveOptions(""), FrameCache(), [])
