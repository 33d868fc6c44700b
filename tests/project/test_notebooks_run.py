"""Each notebook runs from top to bottom: in a kernel over the demo's files, and where a session is given."""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from tests.spark.conftest import DemoRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("interpreted")
NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
# How many pictures each has, and what it prints of the demo.
PICTURES = {"routing-outcomes": 7, "what-if": 6}
PICTURES_IN_SPARK = 3
PRINTED = {
    "routing-outcomes": [
        "12,059 messages read, 12,050 resolved, 9 rejected",
        "5,227 DELIVERED, 3,920 SENT, 2,238 FORWARDED, 584 DELAYED, 81 DROPPED",
    ],
    "what-if": [
        "12 DELAYED BROKER_DISABLED, 9 DROPPED BROKER_DISABLED.",
        "database 'Archive' holds the service (id 'ab37b23d-c031-4ced-86aa-2691c368e777'): its broker is off",
        "12,059 messages compared: 30 change, none gets worse; 1 route in force differs",
    ],
}
# Lines of tables, whose columns are as wide as their longest value.
IN_SPARK = [
    "12,059 messages read, 12,050 resolved, 9 rejected",
    "|DELIVERED|LOCAL_SERVICE            |5227    |",
    "|DELAYED  |SERVICE_NOT_FOUND        |487     |",
    "|//larkfield.example/Orders/Archive       |12      |",
    # Every message that opens a request or waits has one route to ask by.
    "|            4|NULL|        22|     0|",
    "|hq-customers |Campaigns    |AutoCreatedLocal|54      |",
    "|fwd-south               |msdb         |ByName          |299     |",
]
LONGEST_CELL = 300
PNG = "image/png"
Outputs = dict[str, list[list[Any]]]


def _read(name: str) -> Any:
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]


def _code(notebook: Any, *, in_spark: bool | None = None) -> list[Any]:
    """The cells of code: all, or those that need Spark, or those that do not."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell for cell in cells if in_spark in (None, "spark" in cell.metadata.get("tags", ()))]


@pytest.fixture(scope="module")
def outputs(demo: DemoRun, tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    """The outputs of each notebook's cells, run in a kernel that finds no Java: files need no Spark."""
    folder = tmp_path_factory.mktemp("kernel")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SBROUTE_DEMO", str(demo.folder))
        patch.setenv("JAVA_HOME", str(folder / "no-java"))
        patch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(folder / "runtime"))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        # What this process's Java handed on must not reach the kernel.
        for variable in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE"):
            patch.delenv(variable, raising=False)
        kernel = _kernel_of_this_interpreter(folder / "jupyter")
        return {name: _executed(name, kernel, folder) for name in PICTURES}


def _kernel_of_this_interpreter(folder: Path) -> str:
    """A kernel's description in a folder for JUPYTER_PATH; nothing is installed."""
    name = "sbroute-tests"
    place = folder / "kernels" / name
    place.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    description = {"argv": command, "display_name": name, "language": "python"}
    (place / "kernel.json").write_text(json.dumps(description), encoding="utf-8")
    return name


def _executed(name: str, kernel: str, folder: Path) -> list[list[Any]]:
    from nbclient import NotebookClient

    notebook = _read(name)
    nbformat.validate(notebook)
    notebook.cells = [cell for cell in notebook.cells if "spark" not in cell.metadata.get("tags", ())]
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=LONGEST_CELL, kernel_name=kernel, resources=where).execute()
    return [cell.outputs for cell in _code(notebook)]


def _printed(outputs: list[list[Any]]) -> str:
    return "".join(out.text for cell in outputs for out in cell if out.output_type == "stream")


# What the Jupyter libraries warn of among themselves is not this project's.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("name", PICTURES)
def test_runs_from_top_to_bottom(name: str, outputs: Outputs, tmp_path: Path) -> None:
    shown = [out["data"][PNG] for cell in outputs[name] for out in cell if PNG in out.get("data", {})]
    pictures = [base64.b64decode(picture) for picture in shown]
    for number, picture in enumerate(pictures, start=1):
        (tmp_path / f"{name}-{number}.png").write_bytes(picture)
    assert len(pictures) == PICTURES[name]
    # One of axes alone is less.
    assert min(len(picture) for picture in pictures) > 40_000
    printed = _printed(outputs[name])
    assert [words for words in PRINTED[name] if words not in printed] == []


@pytest.fixture(scope="module")
def catalog(demo: DemoRun, spark: SparkSession) -> Iterator[list[str]]:
    """The demo's tables under names of a catalog, as what ``--set`` takes."""
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
def test_names_of_a_catalog_and_a_given_session_tell_the_same(
    name: str, outputs: Outputs, demo: DemoRun, catalog: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Databricks: the first cell gives another configuration, and the session is there."""
    from altair import TopLevelMixin

    import routing
    from routing.features.report.pictures.estate_picture import DrawnPicture

    monkeypatch.setenv("SBROUTE_DEMO", str(demo.folder))
    known: dict[str, Any] = {}
    first, *later = _code(_read(name), in_spark=False)
    _run(first.source, known)
    config = known["config"] = routing.load_config(str(demo.folder / "demo.yaml"), catalog)
    assert {location.is_name for location in (*config.tables.values(), *config.output.values())} == {True}
    shown, out = _run_all(later, known)
    assert out == _printed(outputs[name])
    assert sum(isinstance(one, TopLevelMixin | DrawnPicture) for one in shown) == PICTURES[name]


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("routing-outcomes", "5,227 DELIVERED, 3,920 SENT, 2,238 FORWARDED, 584 DELAYED, 81 DROPPED"),
        ("what-if", "12 DELAYED BROKER_DISABLED, 9 DROPPED BROKER_DISABLED"),
    ],
)
def test_spark_sql_shows_the_same_numbers(
    name: str, printed: str, spark: SparkSession, demo: DemoRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBROUTE_DEMO", str(demo.folder))
    [last] = _code(_read(name), in_spark=True)
    _, out = _run_all([_code(_read(name))[0], last], {})
    assert out == f"{printed}\n"
    assert printed in "\n".join(PRINTED[name])


@pytest.mark.parametrize("tables", ["of a catalog", pytest.param("in files", marks=pytest.mark.long)])
def test_in_spark_the_tables_of_a_run_answer(
    tables: str, spark: SparkSession, demo: DemoRun, catalog: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Databricks: after the first cell the notebook knows names, and no path."""
    from altair import TopLevelMixin

    import routing

    monkeypatch.setenv("SBROUTE_DEMO", str(demo.folder))
    known: dict[str, Any] = {}
    first, *later = _code(_read("spark-analysis"))
    _run(first.source, known)
    if tables == "of a catalog":
        config = known["config"] = routing.load_config(str(demo.folder / "demo.yaml"), catalog)
        known["names"] = routing.table_names(config)
    shown, out = _run_all(later, known)
    assert sum(isinstance(one, TopLevelMixin) for one in shown) == PICTURES_IN_SPARK
    assert [line for line in IN_SPARK if line not in out] == []


def _run_all(cells: list[Any], known: dict[str, Any]) -> tuple[list[Any], str]:
    """What cells show, and what they print."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        shown = [_run(cell.source, known) for cell in cells]
    return shown, out.getvalue()


def _run(source: str, known: dict[str, Any]) -> Any:
    """What a cell shows: the value of its last line, if that has one."""
    *body, last = ast.parse(source).body
    has_value = isinstance(last, ast.Expr)
    exec(compile(ast.Module(body if has_value else [*body, last], []), "cell", "exec"), known)
    return eval(ast.unparse(last), known) if has_value else None
