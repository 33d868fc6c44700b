"""What a run works with: its options, its inputs at one version each, and its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from routing.config import Config
from routing.messages.job import Options
from routing.runs.stages import Stages
from routing.storage import protocol, tables
from routing.storage.columns import Table
from routing.storage.conform import conform
from routing.storage.keeping import Keeper
from routing.storage.ledger import DeltaTables
from routing.storage.opening import Opener
from routing.storage.protocol import Start


@dataclass(frozen=True)
class Work:
    """A run: ``start`` is what the runs before it left, ``notes`` grow until it ends."""

    outputs: DeltaTables
    start: Start
    options: Options
    inputs: Mapping[str, tables.Snapshot]
    clock: Stages
    keeper: Keeper
    notes: list[str]

    def open_tables(self) -> dict[str, Table]:
        """The inputs but for the messages, each at its version: dialogs as a frame, others as they are opened."""
        opener, found = Opener.of_session(self.spark), dict[str, Table]()
        for key, snapshot in self.inputs.items():
            if key == "dialogs":
                found[key] = snapshot.read(self.spark)
            elif key != "messages":
                found[key] = opener.open_at(key, snapshot.location, snapshot.version)
        return found

    def read_messages(self) -> DataFrame:
        """All messages, in their declared columns."""
        return conform(self.inputs["messages"].read(self.spark), "messages")

    @property
    def spark(self) -> SparkSession:
        """The session that it runs in."""
        return self.outputs.spark

    @property
    def config(self) -> Config:
        """What was asked for."""
        return self.outputs.config

    def replace(self, key: str, rows: DataFrame) -> tuple[int, DataFrame]:
        """Put rows in the place of a table's; returns its version, and the rows as they are stored."""
        version = protocol.commit(self.outputs, self.start, key, rows, adds=False)
        return version, self._read(key, version)

    def add(self, key: str, rows: DataFrame) -> tuple[int, DataFrame]:
        """Add rows to a table; returns its version, and the rows of this run as they are stored."""
        version = protocol.commit(self.outputs, self.start, key, rows, adds=True)
        return version, self._read(key, version).where(F.col("run_id") == self.options.run_id)

    def _read(self, key: str, version: int) -> DataFrame:
        return tables.Snapshot(self.config.output[key], version).read(self.spark)
