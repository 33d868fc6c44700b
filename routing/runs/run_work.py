"""What a run works with, whichever engine does it: its options, its inputs and its outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from routing.config import Config
from routing.delta.ledger import JobTables
from routing.delta.opening import TableOpener
from routing.delta.protocol import RunStart
from routing.delta.spark_tables import Input
from routing.engines.traffic_tables import count_by
from routing.plan.options import ResolveOptions
from routing.runs.stages import Stages
from routing.tables.input_columns import earliest_by
from routing.tables.table_columns import Table, as_dataset, is_frame


@dataclass(frozen=True)
class RunWork:
    """A run.

    ``start`` is what the runs before it left, ``newest`` when what has no history was imported (`imported`), by
    instance; ``notes`` grow until it ends.
    """

    outputs: JobTables
    start: RunStart
    options: ResolveOptions
    inputs: Mapping[str, Input]
    newest: Mapping[str, int]
    clock: Stages
    opener: TableOpener
    notes: list[str]

    @property
    def config(self) -> Config:
        """What was asked for."""
        return self.outputs.config

    def is_empty(self, key: str) -> bool:
        """Return True if an output stands there and has no rows; False for one that Spark reads."""
        version = self.start.versions.get(key)
        if version is None or key in self.outputs.lacking:
            return False
        stored = self._written(key, version)
        return not is_frame(stored) and as_dataset(stored).count_rows() == 0

    def count_written(self, key: str, version: int, *names: str) -> Counter[tuple[Any, ...]]:
        """Count the rows of this run that are stored in an output, by the values of some columns."""
        return count_by(self._written(key, version), names, {"run_id": [self.options.run_id]})

    def earliest_decided(self, version: int, before: int) -> dict[str, int]:
        """Return this run's first decision of each instance that has any before a moment (microseconds)."""
        stored = self._written("resolved_routes", version)
        return earliest_by(stored, "instance_name", "decided_at", before, {"run_id": [self.options.run_id]})

    def _written(self, key: str, version: int) -> Table:
        """Open an output as it is stored."""
        return self.opener.open_at(f"output.{key}", self.config.output[key], version)
