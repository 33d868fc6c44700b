"""The estate of crash tests, and the results of one clean run over it.

`before` is the state after a first run, with new messages appended. Each test copies it, kills runs there, and
compares the next run's results with those of a single run.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.estate_rows import endpoint, message, small_estate
from tests.frames import Tables
from tests.imports import rows_at
from tests.stored import OUTPUTS, save_estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing import Config

ROOT = Path(__file__).parents[2]
WRITTEN = ("new_route_requests", "rejected_messages", "resolved_routes", "pending_messages")
FIRST, NOW = (datetime(2026, 1, 5, hour, tzinfo=timezone.utc) for hour in (13, 14))
# A message with a route, one that opens a request, a doubled id, a row to be rejected, and a delayed message.
NEW = [
    message(11, "//far"),
    message(12, "//elsewhere-too"),
    message(1, "//stock"),
    message(13, "//far", conversation_id="no guid"),
    message(14, "//nowhere", enqueue_time="2026-01-05T12:30:00Z"),
]
# The decisions of a single run on these and on m4, which the first run left delayed. That on m8 is unchanged.
OUTCOMES = {
    ("m11", 1): "MIRROR_ADDRESS",
    ("m12", 1): "ROUTE_REQUESTED",
    ("m14", 1): "NO_ROUTE",
    ("m4", 2): "DIALOG_EXPIRED",
}


@dataclass(frozen=True)
class Case:
    """A folder with tables and its own configuration."""

    folder: Path

    @property
    def file(self) -> Path:
        """The configuration file with relative paths."""
        return self.folder / "job.yaml"

    def config(self, *overrides: str) -> Config:
        """Load the configuration."""
        import routing

        return routing.load_config(str(self.file), overrides)


def write_config(folder: Path) -> Case:
    """Write an incremental configuration of all tables in a folder."""
    keys = [*OUTPUTS, "pending_messages"]
    content = {
        "tables": {key.name: f"in/{key.name}" for key in sorted((folder / "in").iterdir())},
        "output": {key: f"out/{key}" for key in keys},
        "resolve": {"mode": "incremental"},
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return Case(folder)


def tables() -> Tables:
    """Return the input tables. m4 waits in a dialog that ends between the runs, m8 in one that stays."""
    found = small_estate()
    found["dialogs"].append(endpoint(4, lifetime="2026-01-05T13:30:00Z"))
    found["messages"].append(message(8, "//nowhere-either"))
    return found


def before(spark: SparkSession, folder: Path, *, run_first: bool = True) -> Case:
    """Create the estate, do a first run unless ``run_first`` is False, and append messages."""
    import routing

    save_estate(tables(), folder / "in", files=1)
    case = write_config(folder)
    if run_first:
        routing.run(spark, case.config(), run_id="first", now=FIRST)
    save_estate({"messages": NEW}, folder / "in", files=1)
    return case


def copied(case: Case, folder: Path) -> Case:
    """Copy the tables to another folder."""
    shutil.copytree(case.folder, folder)
    return Case(folder)


def started(case: Case, point: str | None = None, *more: str, now: datetime | None = NOW) -> subprocess.Popen[str]:
    """Start ``sbroute resolve`` in a separate process, as a scheduler does, killed at a point.

    ``more`` has further options.
    """
    at = [] if now is None else ["--now", now.isoformat()]
    module = ["routing"] if point is None else ["tests.crash.dying", point]
    line = ["resolve", "--config", str(case.file), "--format", "json", *at, *more]
    return subprocess.Popen(
        [sys.executable, "-m", *module, *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**{k: v for k, v in os.environ.items() if k != "SPARK_REMOTE"}, "PYTHONPATH": str(ROOT)},
        # A separate process group, so that a kill reaches its Java process too.
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str], seconds: float = 400) -> tuple[int, str]:
    """Wait for a run to end with its child processes, and return its exit status and standard error."""
    try:
        _, err = process.communicate(timeout=seconds)
    finally:
        end_group(process)
    return process.returncode, err


def end_group(process: subprocess.Popen[str]) -> None:
    """Kill -9 a run and its Java process."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def state(case: Case) -> dict[str, list[dict[str, Any]]]:
    """Return the output tables without the parts that differ between runs."""
    tables = {}
    for key in WRITTEN:
        rows = rows_at(case.config().output[key])
        plain = [{**row, "run_id": "first" if row["run_id"] == "first" else "later"} for row in rows]
        tables[key] = sorted(plain, key=repr)
    return tables


def run_ids(case: Case) -> list[str]:
    """Return the runs that count, in their order."""
    runs = sorted(rows_at(case.config().output["runs"]), key=lambda row: row["finished_at"])
    return [row["run_id"] for row in runs]
