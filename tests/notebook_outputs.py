"""Run the notebooks over the demo, and store their outputs: `make notebooks`.

Parts that differ between runs or machines are not stored, such as the run's id and time, Java's output, and
versions.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import nbformat

from routing import cli
from tests.small_png import shrink_png

ROOT = Path(__file__).parents[1]
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
PNG = "image/png"
MOST_BYTES = 100_000
"""Of a stored picture."""
_LONGEST_CELL = 300
_KERNEL = "sbroute-tests"
_OF_ONE_RUN = (re.compile(r"\bRun \S+ ended \S+:"), "Run RUN_ID ended FINISHED_AT:")


class CellResult(NamedTuple):
    """The output of a cell: its text and the number of pictures."""

    text: str
    pictures: int


def read_notebook(name: str) -> Any:
    """Return a notebook, which must be valid."""
    notebook = nbformat.read(NOTEBOOKS[name], as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    return notebook


def is_for_spark(cell: Any) -> bool:
    """Return True if a cell needs Spark."""
    return "spark" in cell.metadata.get("tags", ())


def code_cells(notebook: Any, *, in_spark: bool | None = None) -> list[Any]:
    """Return all code cells, or only those that need Spark, or only those that do not."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell for cell in cells if in_spark in (None, is_for_spark(cell))]


def normalize(text: str) -> str:
    """Return a text without the id of the demo's run and the time when it ended."""
    return _OF_ONE_RUN[0].sub(_OF_ONE_RUN[1], text)


def result_of(outputs: Sequence[Any]) -> CellResult:
    """Return the output of a cell. The value of its last line counts as printed if it is a text."""
    texts = [out.text for out in outputs if out.output_type == "stream" and out.name == "stdout"]
    values = [out.data for out in outputs if out.output_type in ("display_data", "execute_result")]
    texts += [data["text/plain"] for data in values if PNG not in data]
    return CellResult(normalize("".join(texts)), sum(PNG in data for data in values))


def execute(name: str, demo: Path, environment: Mapping[str, str | None], *, has_spark: bool) -> list[list[Any]]:
    """Return the outputs of each code cell, run in a kernel of this interpreter beside the demo's folder.

    Without Spark, the cells that need it are left out. ``environment`` has additional variables of the kernel, or
    None for those to remove.
    """
    from nbclient import NotebookClient

    notebook = read_notebook(name)
    notebook.cells = [cell for cell in notebook.cells if has_spark or not is_for_spark(cell)]
    # The notebooks look for the demo where their own folder stands.
    place = demo.parent / "notebooks"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        _describe_kernel(Path(folder))
        jupyter = {
            "JUPYTER_PATH": folder,
            "JUPYTER_RUNTIME_DIR": f"{folder}/runtime",
            "IPYTHONDIR": f"{folder}/own",
        }
        variables = {**jupyter, "SBROUTE_DEMO": None, **environment}
        with mock.patch.dict(os.environ, {key: value for key, value in variables.items() if value is not None}):
            for key in variables.keys() & os.environ.keys():
                if variables[key] is None:
                    del os.environ[key]
            resources = {"metadata": {"path": str(place)}}
            NotebookClient(notebook, timeout=_LONGEST_CELL, kernel_name=_KERNEL, resources=resources).execute()
    return [cell.outputs for cell in code_cells(notebook)]


def _describe_kernel(folder: Path) -> None:
    """Write a kernel's description into a folder for JUPYTER_PATH, without installing anything."""
    place = folder / "kernels" / _KERNEL
    place.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    description = {"argv": command, "display_name": _KERNEL, "language": "python"}
    (place / "kernel.json").write_text(json.dumps(description), encoding="utf-8")


def _stored_outputs(outputs: Sequence[Any], number: int) -> list[dict[str, Any]]:
    """Return the stored outputs of a cell: its text first, then its pictures, reduced in size."""
    text, _ = result_of(outputs)
    stored: list[dict[str, Any]] = []
    if text:
        stored.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    for out in outputs:
        if PNG in out.get("data", {}):
            picture = shrink_png(base64.b64decode(out.data[PNG]), MOST_BYTES)
            stored.append(
                {
                    "data": {PNG: base64.b64encode(picture).decode()},
                    "execution_count": number,
                    "metadata": {PNG: dict(out.metadata[PNG])},
                    "output_type": "execute_result",
                }
            )
    return stored


def store(name: str, outputs: Sequence[Sequence[Any]]) -> None:
    """Write the outputs of all cells of code into the notebook's file."""
    stored = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))
    cells = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    for number, (cell, shown) in enumerate(zip(cells, outputs, strict=True), 1):
        cell |= {"execution_count": number, "outputs": _stored_outputs(shown, number)}
    text = json.dumps(stored, indent=1, ensure_ascii=False)
    NOTEBOOKS[name].write_text(f"{text}\n", encoding="utf-8")


def main() -> None:
    """Make the demo without Spark, run each notebook over it, and store its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder) / "sbroute-demo"
        with contextlib.redirect_stdout(io.StringIO()):
            status = cli.main(["demo", "--engine", "local", "--out", str(demo)])
        if status != 0:
            raise SystemExit(status)
        for name, file in NOTEBOOKS.items():
            store(name, execute(name, demo, {}, has_spark=True))
            sys.stdout.write(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
