"""Fixtures of several Spark tests."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.conftest import INTERPRETED
from tests.estate_rows import small_estate
from tests.plans import printed_plan
from tests.stored import save_estate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

# In these modules, which test decisions, Spark generates and compiles code for each query as in production.
# Elsewhere Spark interprets queries, because compiling takes longer than running many queries over a few rows.
GENERATED = (
    *("test_candidates", "test_code_size", "test_dialog_hash", "test_not_utf8", "test_paths", "test_plan_law"),
    *("test_random_estates", "test_regex_in_java", "test_spark_forms"),
)
# In these modules Spark also plans the rest of a query again after each of its parts, which is the default. This
# takes about as long as everything else.
ADAPTIVE = ("test_paths", "test_plan_law", "test_random_estates")
_PLANNED_ONCE = {"spark.sql.adaptive.enabled": "false"}


@contextlib.contextmanager
def changed_settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Change settings of the session within a block."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, earlier in before.items():
            spark.conf.unset(key) if earlier is None else spark.conf.set(key, earlier)


@pytest.fixture
def planned_once(spark: SparkSession) -> Iterator[None]:
    """Turn off adaptive planning for the queries of one test."""
    with changed_settings(spark, _PLANNED_ONCE):
        yield


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Turn off adaptive planning and code generation for the queries of one test."""
    with changed_settings(spark, {**INTERPRETED, **_PLANNED_ONCE}):
        yield


@pytest.fixture(autouse=True, scope="module")
def _interpreted(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Make Spark plan the queries of most modules once, and interpret them."""
    name = request.module.__name__.rpartition(".")[2]
    settings = {**({} if name in GENERATED else INTERPRETED), **({} if name in ADAPTIVE else _PLANNED_ONCE)}
    with changed_settings(spark, settings):
        yield


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the small estate as Delta tables. Tests must not change it."""
    return save_estate(small_estate(), tmp_path_factory.mktemp("estate"), files=1)


class DemoRun(NamedTuple):
    """The demo as a user runs it: its folder, exit status and output."""

    folder: Path
    status: int
    out: str
    err: str


@pytest.fixture(scope="session")
def demo(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """Run ``sbroute demo`` once for all tests. Tests must not change its folder."""
    from routing.cli import main

    folder = tmp_path_factory.mktemp("made") / "sbroute-demo"
    out, err = io.StringIO(), io.StringIO()
    zone = spark.conf.get("spark.sql.session.timeZone")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["demo", "--all", "--out", str(folder)])
    # A given session is used as it is.
    assert spark.conf.get("spark.sql.session.timeZone") == zone
    return DemoRun(folder, status, out.getvalue(), err.getvalue())


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the jobs that `resolve` compiles."""
    from routing.runs import pipeline

    seen: list[Any] = []
    compile_tables = vars(pipeline)["compile_tables"]

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append(compile_tables(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(pipeline, "compile_tables", watched)
    return seen


@pytest.fixture
def written_plans(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Record the key of each output that Spark writes, with the printed plan of its rows."""
    from routing.delta import spark_tables

    seen: list[tuple[str, str]] = []
    put = spark_tables.put

    def watched(rows: DataFrame, key: str, *others: Any) -> None:
        seen.append((key, printed_plan(rows)))
        put(rows, key, *others)

    monkeypatch.setattr(spark_tables, "put", watched)
    return seen
