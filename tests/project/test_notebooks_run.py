"""Each notebook gives its stored outputs, in a kernel over the demo's files and with a given session."""

from __future__ import annotations

import ast
import base64
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.notebook_outputs import PNG, CellResult, code_cells, execute, normalize, read_notebook, result_of
from tests.spark.conftest import DemoRun, changed_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("interpreted")
# Those of which only the last cell needs Spark.
WITHOUT_SPARK = ("routing-outcomes", "what-if")
Outputs = dict[str, list[list[Any]]]


@pytest.fixture(scope="module")
def outputs(demo: DemoRun) -> Outputs:
    """The outputs of each notebook's cells, run in a kernel that finds no Java: files need no Spark."""
    # What this process's Java handed on must not reach the kernel.
    handed_on = dict.fromkeys(("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE"))
    environment = {**handed_on, "JAVA_HOME": str(demo.folder / "no-java")}
    return {name: execute(name, demo.folder, environment, has_spark=False) for name in WITHOUT_SPARK}


def _stored(name: str, *, in_spark: bool | None = None) -> list[CellResult]:
    return [result_of(cell.outputs) for cell in code_cells(read_notebook(name), in_spark=in_spark)]


# What the Jupyter libraries warn of among themselves is not this project's.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("name", WITHOUT_SPARK)
def test_the_output_of_a_notebook_equals_the_stored_one(name: str, outputs: Outputs, tmp_path: Path) -> None:
    """A difference that is wanted: `make notebooks` stores it."""
    shown = [out["data"][PNG] for cell in outputs[name] for out in cell if PNG in out.get("data", {})]
    pictures = [base64.b64decode(picture) for picture in shown]
    for number, picture in enumerate(pictures, start=1):
        (tmp_path / f"{name}-{number}.png").write_bytes(picture)
    # One of axes alone is less.
    assert min(len(picture) for picture in pictures) > 40_000
    assert list(map(result_of, outputs[name])) == _stored(name, in_spark=False)


@pytest.fixture(scope="module")
def catalog(demo: DemoRun, spark: SparkSession) -> Iterator[list[str]]:
    """Return the demo's tables under names of a catalog, as values for ``--set``."""
    import routing

    config = routing.load_config(str(demo.folder / "demo.yaml"))
    spark.sql("CREATE SCHEMA notebooks")
    found = []
    for section, locations in (("tables", config.tables), ("output", config.output)):
        for key, location in locations.items():
            if (Path(location.text) / "_delta_log").exists():
                spark.sql(f"CREATE TABLE notebooks.{key} USING delta LOCATION '{location.text}'")
            found.append(f"{section}.{key}=notebooks.{key}")
    yield found
    spark.sql("DROP SCHEMA notebooks CASCADE")


@pytest.mark.parametrize("name", ["routing-outcomes", pytest.param("what-if", marks=pytest.mark.long)])
def test_a_notebook_gives_the_same_output_with_tables_in_a_catalog(
    name: str, demo: DemoRun, catalog: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Databricks: the first cell gives another configuration, and the session is there."""
    import routing

    first, *later = code_cells(read_notebook(name), in_spark=False)
    known = _known_after(first, demo, monkeypatch)
    config = known["config"] = routing.load_config("../sbroute-demo/demo.yaml", catalog)
    assert {location.is_name for location in (*config.tables.values(), *config.output.values())} == {True}
    assert [_run(cell.source, known) for cell in later] == _stored(name, in_spark=False)[1:]


@pytest.mark.parametrize("name", WITHOUT_SPARK)
def test_spark_sql_shows_the_same_numbers(
    name: str, spark: SparkSession, demo: DemoRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_, last = code_cells(read_notebook(name))
    known = _known_after(first, demo, monkeypatch)
    assert _run(last.source, known) == _stored(name)[-1]


@pytest.mark.parametrize("tables", ["of a catalog", pytest.param("in files", marks=pytest.mark.long)])
def test_the_spark_notebook_runs_on_tables_of_a_run(
    tables: str, spark: SparkSession, demo: DemoRun, catalog: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Databricks: after the first cell the notebook knows names, and no path."""
    import routing

    first, *later = code_cells(read_notebook("spark-analysis"))
    known = _known_after(first, demo, monkeypatch)
    if tables == "of a catalog":
        config = known["config"] = routing.load_config("../sbroute-demo/demo.yaml", catalog)
        known["names"] = routing.table_names(config)
    # Spark shows times in the session's zone: that of a session that the commands start is UTC.
    with changed_settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        assert [_run(cell.source, known) for cell in later] == _stored("spark-analysis")[1:]


def _known_after(first: Any, demo: DemoRun, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the first cell beside the demo's folder, and return the names that it defines."""
    place = demo.folder.parent / "notebooks"
    place.mkdir(exist_ok=True)
    monkeypatch.chdir(place)
    monkeypatch.delenv("SBROUTE_DEMO", raising=False)
    known: dict[str, Any] = {}
    assert _run(first.source, known) == CellResult("", 0)
    return known


def _run(source: str, known: dict[str, Any]) -> CellResult:
    """Run a cell in this process. Its value is that of its last line, if that has one."""
    from altair import TopLevelMixin

    *body, last = ast.parse(source).body
    has_value = isinstance(last, ast.Expr)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(ast.Module(body if has_value else [*body, last], []), "cell", "exec"), known)
        value = eval(ast.unparse(last), known) if has_value else None
    return CellResult(normalize(out.getvalue()), int(isinstance(value, TopLevelMixin)))
