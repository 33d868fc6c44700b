"""Who is measured: each turns the same stored tables into a ``resolved_routes`` table in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

import routing
from benchmarks import naive
from benchmarks.memory import java_process, peak_of
from benchmarks.stored import Stored
from routing.config import Location
from routing.schemas import RESOLVED_ROUTES
from routing.storage.kinds import spark_schema
from routing.storage.tables import overwrite

NAIVE_UP_TO = 10_000_000
TABLE = "resolved_routes"


class Contender(Protocol):
    """One way from the tables to a result."""

    name: str

    def run(self, out: Path) -> None:
        """Write ``resolved_routes`` into the folder; returns when it is committed."""

    def peak(self) -> int:
        """The peak memory of the process that does it, so far, in bytes."""

    def close(self) -> None:
        """End what was started for it."""


@dataclass
class InSpark:
    """A contender that works in the benchmark's own session."""

    name: str
    spark: SparkSession
    stored: Stored

    def peak(self) -> int:
        """That of the Java process, which all of these share."""
        return peak_of(java_process(self.spark))

    def close(self) -> None:
        """The session ends with the benchmark."""


@dataclass
class Resolve(InSpark):
    """The package, as users run it."""

    dialog_hash: str = "builtin"
    broadcast_limit: str = "512MB"
    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def run(self, out: Path) -> None:
        """``sbroute resolve`` without its start-up."""
        file = self.stored.config(out, self.dialog_hash, self.broadcast_limit)
        done = routing.run(self.spark, routing.load_config(str(file)))
        self.rows.append(done.row)
        self.notes = done.notes


@dataclass
class Copy(InSpark):
    """The limit: read a result and write it again with the same table settings."""

    source: Path = Path()

    def run(self, out: Path) -> None:
        """Copy the result of another contender."""
        frame = self.spark.read.format("delta").load(str(self.source / TABLE))
        overwrite(frame, TABLE, Location(str(out / TABLE)), "copy")


@dataclass
class Naive(InSpark):
    """The textbook's way."""

    def run(self, out: Path) -> None:
        """Resolve, and write with the same table settings."""
        frames = {k: self.spark.read.format("delta").load(where) for k, where in self.stored.tables.items()}
        result = naive.resolved_routes(frames, spark_schema(RESOLVED_ROUTES))
        overwrite(result, TABLE, Location(str(out / TABLE)), "naive")


class InProcess:
    """An engine that works in a process of its own, started at the first run and kept for the next ones.

    ``start_up`` is the time that this start took, in seconds.
    """

    def __init__(self, name: str, engine: str, stored: Stored, threads: int) -> None:
        self.name, self._stored, self._threads = name, stored, threads
        self._module = engine
        self._process: subprocess.Popen[str] | None = None
        self._peak = 0
        self.start_up = 0.0

    def run(self, out: Path) -> None:
        """Have the engine write the table; raises RuntimeError with its own message where it fails."""
        if self._process is None:
            self._process = self._started()
        out.mkdir(parents=True, exist_ok=True)
        answer = self._ask({"tables": self._stored.tables, "out": str(out / TABLE)})
        self._peak = answer["peak"]

    def _started(self) -> subprocess.Popen[str]:
        begun = time.monotonic()
        threads = {name: str(self._threads) for name in ("POLARS_MAX_THREADS", "SBROUTE_BENCH_THREADS")}
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads},
        )
        if process.stdout is None or process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{self.name} did not start: see its message above")
        self.start_up = time.monotonic() - begun
        return process

    def _ask(self, job: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeError(f"{self.name} is not running")
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} failed: see its message above")
        found: dict[str, Any] = json.loads(answer)
        return found

    def peak(self) -> int:
        """That of its own process."""
        return self._peak

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None
