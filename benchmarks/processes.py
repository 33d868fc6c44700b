"""Commands and bare processes over kept tables, each a process from its start to its end."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.bare import GROWING, REPLACED, SCANNED, opened
from benchmarks.gates import EXPLAIN, LINT, READER, RESOLVE, RUNS, SPARK
from benchmarks.shape import Shape
from benchmarks.stored import Stored, placed, stored

_SBROUTE = (sys.executable, "-m", "routing")
_BARE = (sys.executable, "-m", "benchmarks.bare")
# So that findings do not depend on the day on which they are looked for.
_NOW = "2026-01-06T00:00:00Z"
# It asks for a route, so that explain looks at the messages of its service as well (rule book, section 5).
_ASKS = "d00747-i0"
_CONFIGURATION = ("routes", "databases", "services", "instances")


@dataclass(frozen=True)
class Process:
    """A contender: ``command`` is told where it writes. ``starts_from`` is what stands there before it begins."""

    name: str
    command: Callable[[Path], Sequence[str]]
    starts_from: Path | None = None

    def run(self, out: Path) -> None:
        """Run it to its end. Raises RuntimeError where it fails; it has said why."""
        if self.starts_from is not None:
            shutil.copytree(self.starts_from, out)
        done = subprocess.run(self.command(out), stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise RuntimeError(f"{self.name} ended with exit code {done.returncode}")


def over_demo(demo: Path) -> dict[str, Process]:
    """All contenders over the demo's tables, which are built where they are missing.

    What writes starts from a copy of what the demo's own run wrote: the same state for both, in every round.
    """
    written = demo / "out"
    if not Path(written, GROWING, "_delta_log").exists():
        subprocess.run([*_SBROUTE, "demo", "--out", str(demo)], stdout=subprocess.DEVNULL, check=True)
    data, config = demo / "data", demo / "demo.yaml"
    tables = [*(str(data / key) for key in (*_CONFIGURATION, *SCANNED)), str(written / GROWING)]
    processes = (
        Process(SPARK, lambda out: [*_BARE, "spark", str(data), str(out)], written),
        Process(RESOLVE, lambda out: _resolve(config, out), written),
        Process(READER, lambda out: [*_BARE, "reader", *tables]),
        *_analysis(config, _ASKS),
        Process(RUNS, lambda out: [*_SBROUTE, "runs", "--config", str(config)]),
    )
    return {process.name: process for process in processes}


def _resolve(config: Path, out: Path) -> list[str]:
    settings = [f"--set=output.{key}={out / key}" for key in (*REPLACED, GROWING)]
    return [*_SBROUTE, "resolve", "--config", str(config), *settings]


def _analysis(config: Path, message: str) -> tuple[Process, Process]:
    explain = [*_SBROUTE, "explain", "--config", str(config), "--message-id", message]
    lint = [*_SBROUTE, "lint", "--config", str(config), "--now", _NOW]
    return Process(EXPLAIN, lambda out: explain), Process(LINT, lambda out: lint)


def over_large(shape: Shape, folder: Path) -> tuple[dict[str, Process], Path]:
    """`explain` and `lint` over the benchmark's tables, made where they are missing; and a folder for results."""
    kept = placed(shape, folder)
    if kept.missing:
        # In a process of its own, so that no Java is left when the measurement begins.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            pool.submit(_make, shape, folder).result()
    results = kept.results / "floor"
    config = kept.config(kept.results / "floor", "builtin", "512MB")
    return {process.name: process for process in _analysis(config, _last_id(kept))}, results


def _make(shape: Shape, folder: Path) -> None:
    from routing.sessions.session import start

    stored(start({}), shape, folder)


def _last_id(kept: Stored) -> str:
    """The greatest id of a message."""
    import pyarrow.compute

    batches = opened(kept.tables["messages"]).to_batches(columns=["message_id"])
    return str(max(pyarrow.compute.max(batch.column(0)).as_py() for batch in batches if batch.num_rows))


def rows_differ(process: Process, out: Path) -> list[str]:
    """Where the numbers of rows that a process wrote are not those of the run that it started from."""
    if process.starts_from is None:
        return []
    faults = []
    for key in (*REPLACED, GROWING):
        before, after = (opened(str(folder / key)).count_rows() for folder in (process.starts_from, out))
        wanted = before + 1 if key == GROWING else before
        if after != wanted:
            faults.append(f"{key} has {after} rows, not {wanted}")
    return faults
