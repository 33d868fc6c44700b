"""The outputs of a job on this machine's disk: `protocol.OutputTables` by delta-rs, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from routing import schemas
from routing.delta.data_files import DataFiles
from routing.delta.ledger import JobTables
from routing.delta.local_tables import LocalTable, append_once, find_log, open_to_write
from routing.delta.protocol import CommitMark
from routing.delta.spark_tables import ORDER_OF_RUNS, STATISTICS, order_since
from routing.errors import RoutingError, StorageError, first_sentence
from routing.tables.arrow_rows import table_of
from routing.terms import ReadRow

_SKIPPING = "delta.dataSkippingStatsColumns"


class RowSource(Protocol):
    """Rows that are made while they are written."""

    def write_to(self, files: DataFiles) -> None:
        """Write all rows to files of a table's folder."""


class LocalOutputs(JobTables):
    """A job's outputs that delta-rs writes."""

    def put(self, key: str, rows: RowSource, commit_mark: CommitMark, *, adds: bool) -> None:
        """Add rows to a table, or replace it by them. Raises StorageError."""
        location, metadata = self.config.output[key], commit_mark.as_text()
        schema, measured = schemas.OUTPUTS[key], STATISTICS.get(key, "")
        try:
            if self.newest(key) is None:
                # Before its files: a folder with files and no log is no table.
                properties = {_SKIPPING: measured} if measured else {}
                LocalTable.make(location, schema.optional(), properties=properties)
            names = measured.split(",") if measured else []
            with DataFiles(Path(location.text), names) as files:
                rows.write_to(files)
                written = files.close()
                # Opened now: whoever has tidied up meanwhile does no harm, and another run is told of afterwards.
                table = open_to_write(location)
                is_change = bool(written) or not (adds or table.is_empty())
            if is_change:
                # The log may name the files from now on: only it says whether they may be removed.
                with self._believe_log(key, commit_mark, table.version, files.remove):
                    table.commit_files(written, schema, adds=adds, metadata=metadata)
        except RoutingError:
            raise
        except Exception as error:
            raise self._failed(key, error) from error
        self.lacking.discard(key)

    def restore(self, key: str, version: int, commit_mark: CommitMark) -> None:
        """Restore a table to a version, by a commit that is marked. Raises StorageError."""
        location = self.config.output[key]
        try:
            table = open_to_write(location)
            if not table.holds_the_same(version):
                with self._believe_log(key, commit_mark, table.version):
                    table.restore(version, commit_mark.as_text())
        except Exception as error:
            raise StorageError.not_restored(key, str(location), version, first_sentence(error)) from error
        self.look_at_columns(key)

    def record(self, row: ReadRow, commit_mark: CommitMark, turn: int, since: int | None = None) -> bool:
        """Add the row of a run; return False where a run has had this turn (since a version of ``runs``)."""
        location = self.config.output["runs"]
        try:
            rows = table_of([row], schemas.RUNS.optional())
            newest = self.newest("runs")
            with self._believe_log("runs", commit_mark, -1 if newest is None else newest):
                append_once(location, rows, commit_mark.as_text(), order_since(ORDER_OF_RUNS, since), turn)
        except Exception as error:
            raise self._failed("runs", error) from error
        self.lacking.discard("runs")
        return find_log(location) is not None and any(
            commit.commit_mark == commit_mark for commit in self.latest("runs")
        )

    @contextmanager
    def _believe_log(
        self, key: str, commit_mark: CommitMark, known_version: int, clean_up: Callable[[], None] = lambda: None
    ) -> Iterator[None]:
        """Accept a commit that failed although the log has it, after the version that is known.

        delta-rs commits first, and then fails at what follows a commit, such as a checkpoint. A note says so.
        """
        try:
            yield
        except Exception as error:
            own_versions = [
                commit.version for commit in self.commits(key, known_version) if commit.commit_mark == commit_mark
            ]
            if not own_versions:
                clean_up()
                raise
            self.notes.append(
                f"output.{key}: version {own_versions[-1]} stands, but deltalake failed at what follows a commit:"
                f" {first_sentence(error)}"
            )

    def _failed(self, key: str, error: Exception) -> StorageError:
        doing = f"writing output.{key} to {self.config.output[key]}"
        return StorageError.failed(doing, first_sentence(error))
