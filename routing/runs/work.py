"""What a run by Spark works with: its inputs at one version each, and its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from routing.delta import protocol, spark_tables
from routing.delta.ledger import DeltaTables
from routing.delta.opening import TableOpener
from routing.runs.run_work import RunWork
from routing.schemas import OUTPUTS, TRAFFIC
from routing.tables import frames
from routing.tables.declared_columns import conform, no_rows
from routing.tables.frame_cache import FrameCache
from routing.tables.table_columns import Table


def open_inputs(
    opener: TableOpener, inputs: Mapping[str, spark_tables.Input], keeper: FrameCache
) -> dict[str, Table]:
    """Return the inputs without the messages, each at its version: dialogs as a frame, others as they are opened.

    What has no version is read as it is. Several passes read the dialogs: those are kept then, so that all see the
    same rows as long as the session keeps them; the others are read once.
    """
    tables = dict[str, Table]()
    for key, snapshot in inputs.items():
        if isinstance(snapshot, spark_tables.AsItIs):
            opener.tell(f"tables.{key}: as it is, at no version")
        if key == "messages":
            continue
        if isinstance(snapshot, spark_tables.AsItIs):
            rows = snapshot.read(opener.spark)
            tables[key] = keeper.store(rows) if key == "dialogs" else rows
        elif key == "dialogs":
            tables[key] = snapshot.read(opener.spark)
        else:
            tables[key] = opener.open_at(f"tables.{key}", snapshot.location, snapshot.version)
    return tables


def open_traffic(opener: TableOpener, inputs: Mapping[str, spark_tables.Input]) -> dict[str, Table] | None:
    """Open messages and dialogs by Arrow, each at its version; None where Spark reads any of them.

    Where a session has other machines these have read them sooner than this one.
    """
    if not opener.is_of_one_machine:
        return None
    tables = dict[str, Table]()
    for key in inputs.keys() & TRAFFIC:
        snapshot = inputs[key]
        rows = None if snapshot.version is None else opener.open_without_spark(snapshot.location, snapshot.version)
        if rows is None:
            return None
        tables[key] = rows
    return tables


@dataclass(frozen=True)
class SparkWork(RunWork):
    """A run by Spark."""

    outputs: DeltaTables
    keeper: FrameCache

    def open_tables(self) -> dict[str, Table]:
        """Return the inputs without the messages (`open_inputs`)."""
        return open_inputs(self.opener, self.inputs, self.keeper)

    def open_settings(self) -> dict[str, Table]:
        """Open the configuration tables, without the dialogs."""
        settings = {key: snapshot for key, snapshot in self.inputs.items() if key not in TRAFFIC}
        return open_inputs(self.opener, settings, self.keeper)

    def read_messages(self) -> DataFrame:
        """Return all messages, in their declared columns."""
        return self._read("messages")

    def read_dialogs(self) -> DataFrame | None:
        """Return all dialogs, in their declared columns; None where there is no such table."""
        return self._read("dialogs") if "dialogs" in self.inputs else None

    def _read(self, key: str) -> DataFrame:
        return conform(self.inputs[key].read(self.spark), key)

    @property
    def spark(self) -> SparkSession:
        """The session that it runs in."""
        return self.outputs.spark

    def commit(self, outputs: Mapping[str, DataFrame | None], *, adds: bool) -> dict[str, int]:
        """Commit rows to tables, to what stands there or in its place; the versions by key.

        None is no rows: a table that has none is left alone then. All at once, for none depends on another, and no
        run counts before its row in ``runs``.
        """

        def commit_one(key: str) -> int:
            rows = outputs[key]
            if rows is None:
                if self.is_empty(key):
                    return self.start.versions[key]
                rows = no_rows(self.spark, OUTPUTS[key])
            return protocol.commit(self.outputs, self.start, key, rows, adds=adds)

        return dict(zip(outputs, frames.at_once(self.spark, commit_one, list(outputs)), strict=True))
