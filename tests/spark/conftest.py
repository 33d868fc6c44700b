"""What several Spark tests read."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.plans import printed_plan
from tests.stored import small_estate, store_estate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

# Modules of many small queries about a few rows: Spark interprets these, for the code that it would generate and
# compile for each takes longer than all that it does. What resolves messages is tested as it runs, generated.
OF_FEW_ROWS = (
    *("test_bad_input", "test_demo", "test_explain"),
    *(
        "test_faults",
        "test_fixed_cost",
        "test_hostile_estate",
        "test_import",
        "test_incremental",
        "test_incremental_random",
        "test_joining",
        "test_keeping",
        "test_lint",
    ),
    *(
        "test_lint_command",
        "test_log_in_memory",
        "test_older_release",
        "test_put_back",
        "test_readers",
        "test_run_id",
        "test_runs",
    ),
    *("test_check_equals_resolve", "test_messages", "test_new_rows", "test_notebook", "test_past_runs"),
    "test_reconcile",
    "test_statements",
    "test_stored_release",
    "test_tables",
    "test_without_versions",
)


@pytest.fixture(autouse=True, scope="module")
def _interpreted(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Have the queries of some modules interpreted."""
    from routing.sessions.session import INTERPRETED

    settings = INTERPRETED if request.module.__name__.rpartition(".")[2] in OF_FEW_ROWS else {}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield
    for key in settings:
        spark.conf.unset(key)


@pytest.fixture(scope="session")
def stored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small estate as Delta tables; not to be changed."""
    return store_estate(spark, small_estate(), tmp_path_factory.mktemp("estate"))


class DemoRun(NamedTuple):
    """The demo, run as a user would: its folder, exit status, and what it printed."""

    folder: Path
    status: int
    out: str
    err: str


@pytest.fixture(scope="session")
def demo(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """One run of ``sbroute demo`` for all tests; its folder is not to be changed."""
    from routing.cli import main

    folder = tmp_path_factory.mktemp("made") / "demo"
    out, err = io.StringIO(), io.StringIO()
    zone = spark.conf.get("spark.sql.session.timeZone")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["demo", "--out", str(folder)])
    # A given session is used as it is.
    assert spark.conf.get("spark.sql.session.timeZone") == zone
    return DemoRun(folder, status, out.getvalue(), err.getvalue())


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The jobs that `resolve` compiles."""
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
    """The output tables that are written by Spark, by key, each with the printed plan of its rows."""
    from routing.storage import tables

    seen: list[tuple[str, str]] = []
    put = tables.put

    def watched(rows: DataFrame, key: str, *others: Any) -> None:
        seen.append((key, printed_plan(rows)))
        put(rows, key, *others)

    monkeypatch.setattr(tables, "put", watched)
    return seen
