"""Define the contenders for a warm session. Each turns the same stored tables into its own ``resolved_routes``."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import routing
from benchmarks import naive
from benchmarks.bare import TABLE
from benchmarks.stored import Stored
from routing.config import TableLocation
from routing.delta.spark_tables import WriteOptions, write_output
from routing.schemas import RESOLVED_ROUTES
from routing.tables.frames import spark_schema

NAIVE_UP_TO = 10_000_000


@dataclass
class InSpark(ABC):
    """A contender that works in the benchmark's own session."""

    name: str
    spark: SparkSession
    stored: Stored

    def timed(self, out: Path) -> float:
        """The seconds of a run."""
        begun = time.monotonic()
        self.run(out)
        return time.monotonic() - begun

    @abstractmethod
    def run(self, out: Path) -> None:
        """Write ``resolved_routes`` into the folder, and return after the commit."""


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
        write_output(frame, TABLE, TableLocation(str(out / TABLE)), WriteOptions("copy"), "copy")


@dataclass
class Naive(InSpark):
    """The textbook's way."""

    def run(self, out: Path) -> None:
        """Resolve, and write with the same table settings."""
        frames = {k: self.spark.read.format("delta").load(location) for k, location in self.stored.tables.items()}
        result = naive.resolved_routes(frames, spark_schema(RESOLVED_ROUTES))
        write_output(result, TABLE, TableLocation(str(out / TABLE)), WriteOptions("naive"), "naive")
