"""Commands and bare processes over kept tables, each a process from its start to its end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.bare import GROWING, REPLACED, SCANNED, TABLE, opened
from benchmarks.gates import (
    COPY,
    DIFF,
    DUCKDB,
    EXPLAIN,
    GROUP_BY,
    LINT,
    LOCAL,
    POLARS,
    READER,
    RECONCILE,
    REPORT,
    RESOLVE,
    RUNS,
    SPARK,
    UNCHANGED,
)
from benchmarks.moved import move_routes
from benchmarks.observed import observe
from benchmarks.rounds import first_result
from benchmarks.shape import Shape
from benchmarks.stored import Stored, placed, stored
from benchmarks.taken import Taken, taken_by

_SBROUTE = (sys.executable, "-m", "routing")
_LOCALLY, _BY_SPARK = ("--engine", "local"), ("--engine", "spark")
_BARE = (sys.executable, "-m", "benchmarks.bare")
# So that findings do not depend on the day on which they are looked for.
_NOW = "2026-01-06T00:00:00Z"
# It asks for a route, so that explain looks at the messages of its service as well (rule book, section 5).
_ASKS = "d00747-i0"
_HEAP = "4g"
_CONFIGURATION = ("routes", "databases", "services", "instances")


@dataclass(frozen=True)
class Process:
    """A contender. ``command`` returns its command line for an output folder.

    ``starts_from`` is a folder to copy to the output folder before it begins.
    ``after`` is the contender with the same first result. If it ``writes`` no table, it reads that result.
    ``taken`` grows with each run. For `resolve` the row of `runs` is added to ``runs``.
    """

    name: str
    command: Callable[[Path], Sequence[str]]
    starts_from: Path | None = None
    after: str | None = None
    writes: bool = True
    taken: list[Taken] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)

    def timed(self, out: Path) -> float:
        """Run it to its end, and return the seconds. Raises RuntimeError after a failure, which it has printed."""
        if self.starts_from is not None:
            shutil.copytree(self.starts_from, out)
        self.taken.append(taken_by(self.name, self.command(out)))
        if self.name == RESOLVE:
            self.runs.append(_last_run(out))
        return self.taken[-1].seconds


def _last_run(out: Path) -> dict[str, Any]:
    """The newest row of `runs`, its stages by name."""
    rows = opened(str(out / GROWING)).to_table(columns=["started_at", "finished_at", "stage_seconds"]).to_pylist()
    row: dict[str, Any] = max(rows, key=lambda row: row["finished_at"])
    return {**row, "stage_seconds": dict(row["stage_seconds"])}


def engine(name: str, stored_tables: Stored) -> Process:
    """Polars or DuckDB, doing the plain part of the same work on all cores."""
    threads = str(os.cpu_count() or 1)
    command = (sys.executable, "-m", "benchmarks.worker", name, threads, json.dumps(stored_tables.tables))
    return Process(name, lambda out: [*command, str(out / TABLE)], after=RESOLVE)


def over_demo(demo: Path) -> dict[str, Process]:
    """Return all contenders over the demo's tables, and build missing tables.

    Contenders that write start from a copy of the output of the demo's run, so all rounds have the same state.
    """
    written = demo / "out"
    if not Path(written, GROWING, "_delta_log").exists():
        subprocess.run([*_SBROUTE, "demo", *_BY_SPARK, "--out", str(demo)], stdout=subprocess.DEVNULL, check=True)
    data, config = demo / "data", demo / "demo.yaml"
    tables = [*(str(data / key) for key in (*_CONFIGURATION, *SCANNED)), str(written / GROWING)]
    processes = (
        Process(SPARK, lambda out: [*_BARE, "spark", str(data), str(out)], written),
        Process(RESOLVE, lambda out: _with_outputs(RESOLVE, config, out, *_BY_SPARK), written),
        Process(LOCAL, lambda out: _with_outputs(RESOLVE, config, out, *_LOCALLY), written),
        Process(READER, lambda out: [*_BARE, "reader", *tables]),
        *_analysis(config, lambda: _ASKS),
        Process(RUNS, lambda out: [*_SBROUTE, "runs", "--config", str(config)]),
    )
    return {process.name: process for process in processes}


def _with_outputs(command: str, config: Path, out: Path, *options: str) -> list[str]:
    settings = [f"--set=output.{key}={out / key}" for key in (*REPLACED, GROWING)]
    return [*_SBROUTE, command, "--config", str(config), *settings, *options]


def _analysis(config: Path, message: Callable[[], str]) -> tuple[Process, Process]:
    explain = [*_SBROUTE, "explain", "--config", str(config), "--message-id"]
    lint = [*_SBROUTE, "lint", "--config", str(config), "--now", _NOW]
    return Process(EXPLAIN, lambda out: [*explain, message()]), Process(LINT, lambda out: lint)


def _reporting(config: Path, resolved: Path) -> tuple[Process, Process]:
    """Over a first result of `resolve`: the page about it, and one group-by of Spark."""
    report = _with_outputs(REPORT, config, resolved)
    group = [*_BARE, "group", str(resolved / TABLE)]
    return (
        Process(GROUP_BY, lambda out: group, after=RESOLVE, writes=False),
        Process(REPORT, lambda out: [*report, f"--out={out}.html"], after=RESOLVE, writes=False),
    )


def _reconciling(config: Path, resolved: Path, observed: Path) -> Process:
    """Over as many observations as there are messages, made of the first result of `resolve`."""
    line = [*_SBROUTE, RECONCILE, "--config", str(config)]

    def command(out: Path) -> list[str]:
        observation_count = observe(resolved / TABLE, observed)
        return [*line, f"--set=tables.observed_routing={observation_count}", f"--set=output.reconciliation={out}"]

    return Process(RECONCILE, command, after=RESOLVE, writes=False)


def _comparing(config: Path, stored_tables: Stored) -> tuple[Process, Process]:
    """All messages beside moved routes, and beside the same tables at a later time."""
    line = [*_SBROUTE, "diff", "--config", str(config), "--at", _NOW]

    def beside_moved(out: Path) -> list[str]:
        routes = move_routes(stored_tables.tables["routes"], stored_tables.results / "moved_routes")
        moved = stored_tables.results / "moved.yaml"
        lines = config.read_text(encoding="utf-8").replace(stored_tables.tables["routes"], str(routes))
        moved.write_text(lines, encoding="utf-8")
        return [*line, "--against", str(moved)]

    later = [*line, "--against-time", "2026-01-07T00:00:00Z"]
    return (
        Process(DIFF, beside_moved, writes=False),
        Process(UNCHANGED, lambda out: later, writes=False),
    )


def over_large(shape: Shape, folder: Path) -> tuple[dict[str, Process], Path]:
    """Return all contenders over the benchmark's tables, and a folder for results. Missing tables are made.

    Engines that are not installed are left out. The local engine is left out if one of them is missing.
    """
    stored_tables = placed(shape, folder)
    if stored_tables.missing:
        # In a process of its own, so that no Java is left when the measurement begins.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            pool.submit(_make, shape, folder).result()
    results = stored_tables.results / "floor"
    config = stored_tables.config(results, "builtin", "512MB", _HEAP)
    first = first_result(results, RESOLVE)

    def locally(out: Path) -> list[str]:
        return _with_outputs(RESOLVE, config, out, *_LOCALLY)

    processes = (
        Process(RESOLVE, lambda out: _with_outputs(RESOLVE, config, out, *_BY_SPARK)),
        Process(
            COPY, lambda out: [*_BARE, "copy", str(config), str(first / TABLE), str(out / TABLE)], after=RESOLVE
        ),
        *(engine(name, stored_tables) for name in (POLARS, DUCKDB) if find_spec(name)),
        *(Process(LOCAL, locally, after=RESOLVE) for _ in range(all(map(find_spec, (POLARS, DUCKDB))))),
        *_analysis(config, cache(lambda: _last_id(stored_tables))),
        *_reporting(config, first),
        _reconciling(config, first, stored_tables.results / "observed_routing"),
        *_comparing(config, stored_tables),
    )
    return {process.name: process for process in processes}, results


def _make(shape: Shape, folder: Path) -> None:
    from routing.sessions.session import start

    stored(start({}), shape, folder)


def _last_id(stored_tables: Stored) -> str:
    """The greatest id of a message."""
    import pyarrow.compute

    batches = opened(stored_tables.tables["messages"]).to_batches(columns=["message_id"])
    return str(max(pyarrow.compute.max(batch.column(0)).as_py() for batch in batches if batch.num_rows))


def results_differ(process: Process, out: Path) -> list[str]:
    """Return the differences of a first result from that of its partner, or from the size of its start."""
    if process.after is not None and process.writes:
        tables = (str(folder / TABLE) for folder in (out, first_result(out.parent, process.after)))
        # In a process of its own, for it starts Java.
        comparing = [sys.executable, "-m", "benchmarks.comparing", *tables]
        found = subprocess.run(comparing, stdout=subprocess.PIPE, text=True, check=True).stdout
        return [str(fault) for fault in json.loads(found)]
    return [] if process.starts_from is None else _sizes_differ(process.starts_from, out)


def _sizes_differ(started_from: Path, out: Path) -> list[str]:
    faults = []
    for key in (*REPLACED, GROWING):
        before, after = (opened(str(folder / key)).count_rows() for folder in (started_from, out))
        wanted = before + 1 if key == GROWING else before
        if after != wanted:
            faults.append(f"{key} has {after} rows, not {wanted}")
    return faults
