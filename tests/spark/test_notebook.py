"""The notebook runs from top to bottom on the demo tables, in a kernel and a Spark session of its own."""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.reference.cells import reachable_cells
from tests.spark.conftest import DemoRun

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "routing-outcomes.ipynb"
LONGEST_CELL = 300
PICTURES = 3


def _read() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def _code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _pictures(notebook: Any) -> list[bytes]:
    outputs = [output for cell in _code_cells(notebook) for output in cell.outputs]
    return [base64.b64decode(o["data"]["image/png"]) for o in outputs if "image/png" in o.get("data", {})]


def _kernel_of_this_interpreter(folder: Path) -> str:
    """A kernel's description in a folder for JUPYTER_PATH; nothing is installed."""
    name = "sbroute-tests"
    place = folder / "kernels" / name
    place.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    description = {"argv": command, "display_name": name, "language": "python"}
    (place / "kernel.json").write_text(json.dumps(description), encoding="utf-8")
    return name


def test_is_stored_without_outputs() -> None:
    notebook = _read()
    nbformat.validate(notebook)
    cells = _code_cells(notebook)
    assert [cell.outputs for cell in cells] == [[]] * len(cells)
    assert {cell.execution_count for cell in cells} == {None}


def test_has_a_colour_for_every_outcome_and_reason() -> None:
    text = "\n".join(cell.source for cell in _code_cells(_read()))
    words = {f'"{cell.outcome} · {cell.reason}"' for cell in reachable_cells()}
    assert {word for word in words if word not in text} == set()


# What the Jupyter libraries warn of among themselves is not this project's.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_runs_from_top_to_bottom(demo: DemoRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbclient import NotebookClient

    monkeypatch.setenv("SBROUTE_DEMO", str(demo.folder))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    # The notebook's session starts by itself: what this process's Java handed on must not reach it.
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    kernel = _kernel_of_this_interpreter(tmp_path / "jupyter")
    notebook = _read()
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=LONGEST_CELL, kernel_name=kernel, resources=where).execute()

    printed = "".join(o.text for cell in _code_cells(notebook) for o in cell.outputs if o.output_type == "stream")
    resolved = re.search(r"([0-9,]+) resolved", demo.out)
    assert resolved is not None
    assert resolved.group() in printed
    pictures = _pictures(notebook)
    for number, picture in enumerate(pictures, start=1):
        (tmp_path / f"picture-{number}.png").write_bytes(picture)
    assert len(pictures) == PICTURES
    # A picture without a bar or a line in it is a few thousand bytes.
    assert min(len(picture) for picture in pictures) > 10_000
