"""The outputs of a job as Delta tables (`job_outputs`), and outputs that other commands replace completely.

delta-rs writes outputs on this machine's disk if it supports them, and Spark writes all others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from routing import schemas
from routing.config import Config, TableLocation
from routing.delta import commits, counted_runs, spark_tables
from routing.delta.counted_runs import release
from routing.delta.data_files import DataFiles, RowSource
from routing.delta.job_outputs import CommitMark, LastRun, OutputTables
from routing.delta.local_tables import LocalTable, UnreadableTable, append_once, open_to_write
from routing.delta.opening import OpenedTable, TableOpener, find_shape
from routing.delta.spark_tables import STATISTICS, order_since
from routing.delta.table_creation import creating, end_creation
from routing.delta.table_details import check_writable, relative_path
from routing.delta.table_log import TableLog
from routing.errors import InputError, StorageError, first_sentence
from routing.rules.timeline import TimeRange
from routing.run_context import reporting_failures
from routing.schemas import Schema
from routing.sessions.existing_session import ExistingSession, HasSession, find_setting, is_refusal
from routing.tables import sql_statements
from routing.tables.arrow_rows import table_of
from routing.tables.table_columns import Table
from routing.terms import ReadRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# This setting marks the commit of a statement without options, if the session accepts the setting.
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass
class JobTables(OutputTables):
    """A job's outputs as Delta tables, for one run or a reader, with either engine.

    ``notes`` of the run report unusual commits and columns that users added. ``lacking`` has the keys of tables
    from an older release, which get their new columns in the next write.
    """

    opener: TableOpener
    config: Config
    notes: list[str] = field(default_factory=list)
    lacking: set[str] = field(default_factory=set)
    _runs: OpenedTable | None = field(default=None, init=False)
    # The log of each output when it was last opened.
    _logs: dict[str, TableLog] = field(default_factory=dict, init=False)

    @property
    def spark(self) -> SparkSession:
        """The session, started now if necessary."""
        return self.opener.spark

    @property
    def keys(self) -> list[str]:
        """The keys of the outputs except ``runs``."""
        return [key for key in self.config.output if key != "runs"]

    def place(self, key: str) -> str:
        """Return a table's location."""
        return str(self.config.output[key])

    def open_logs(self, keys: Iterable[str]) -> dict[str, TableLog]:
        """Open the logs of the tables that exist, by key, as they are now. Raises OutputError, StorageError."""
        locations = {key: self.config.output[key] for key in keys}
        opened = spark_tables.call_concurrently(
            self, lambda key: spark_tables.open_output_log(self, locations[key]), locations
        )
        logs = {key: log for key, log in opened.items() if log is not None}
        self._logs |= logs
        return logs

    def last_run(self, coming: str | None = None) -> tuple[TableLog | None, LastRun | None]:
        """Open the current log of ``runs``, and return it with the last run that counts.

        Raises RecordedAlready if the run with the id ``coming`` already counts.
        """
        log = self.open_logs(["runs"]).get("runs")
        self._runs = None if log is None else self._open("runs")
        return log, counted_runs.read_last_run(self._runs, self.config.output["runs"], coming)

    @property
    def runs(self) -> Table | None:
        """The table ``runs`` as `last_run` opened it."""
        return None if self._runs is None else self._runs.rows

    def check(self) -> None:
        """Refuse locations that hold anything but the tables of this job. Raises OutputError."""
        for key in self.config.output:
            self._check_columns(key, self._runs if key == "runs" else self._open(key))

    def _open(self, key: str) -> OpenedTable | None:
        """Return a table at the version that was last seen, or None if it did not exist."""
        log = self._logs.get(key)
        return None if log is None else self.opener.find(f"output.{key}", self.config.output[key], log=log)

    def _is_recorded(self, commit_mark: CommitMark) -> bool:
        """Return True if a commit to ``runs`` since its log was last opened has this mark."""
        before = self._logs.get("runs")
        log = self.open_logs(["runs"]).get("runs")
        known_version = -1 if before is None else before.version
        newer = takewhile(lambda commit: commit.version > known_version, () if log is None else log.history())
        return any(commit.commit_mark == commit_mark for commit in newer)

    def note_missing_columns(self, key: str) -> None:
        """Remember a table that lacks columns, and note columns that users added.

        Raises OutputError if it is not a table of this job.
        """
        self.open_logs([key])
        self._check_columns(key, self._open(key))

    def _check_columns(self, key: str, opened: OpenedTable | None) -> None:
        setting, location = f"output.{key}", self.config.output[key]
        shape = find_shape(opened, setting, location, schemas.OUTPUTS[key], self.place("runs"))
        if shape is None:
            return
        end_creation(location)
        if shape.missing:
            self.lacking.add(key)
        note = shape.note(setting)
        if note is not None and note not in self.notes:
            self.notes.append(note)


class DeltaTables(JobTables):
    """A job's outputs that Spark writes."""

    def put(self, key: str, rows: DataFrame, commit_mark: CommitMark, *, adds: bool) -> None:
        """Append rows to a table, or replace its rows."""
        columns = self.config.cluster_by if key == "resolved_routes" else ()
        if columns and not adds and key in self._logs:
            spark_tables.cluster_output(self.spark, key, self._logs[key], columns)
        widens = key in self.lacking
        self._put(key, rows, spark_tables.WriteOptions(commit_mark.as_text(), adds, widens, columns))

    def replace(self, key: str, rows: DataFrame, commit_mark: CommitMark, within: TimeRange) -> None:
        """Replace the rows within a time range by others within it, in a marked commit."""
        options = spark_tables.WriteOptions(commit_mark.as_text(), widens=key in self.lacking, within=within)
        self._put(key, rows, options)

    def merge(self, key: str, rows: DataFrame, commit_mark: CommitMark, on: Sequence[str]) -> None:
        """Merge rows into a table by their key, in a marked commit. Raises StorageError."""
        location = self.config.output[key]
        with _marking(self.spark, location, commit_mark):
            spark_tables.merge(rows, f"output.{key}", location, on)

    def erase(self, key: str, rows: DataFrame, commit_mark: CommitMark) -> int:
        """Delete the rows that equal one of ``rows``, and return their number. Raises StorageError.

        Only the columns of ``rows`` are compared, and conversation ids without regard to case.
        """
        location = self.config.output[key]
        with (
            reporting_failures(f"deleting rows from output.{key} at {location}"),
            _marking(self.spark, location, commit_mark),
        ):
            return sql_statements.delete_matching(rows, location, folded=["conversation_id"])

    def restore(self, key: str, version: int, commit_mark: CommitMark) -> None:
        """Restore a table to a version, by a commit that is marked. Raises StorageError.

        The columns of that version come back with it, which may be those of an older release.
        """
        location = self.config.output[key]
        try:
            with _marking(self.spark, location, commit_mark):
                sql_statements.restore(self.spark, location, version)
        except Exception as error:
            raise StorageError.not_restored(key, str(location), version, first_sentence(error)) from error
        self.note_missing_columns(key)

    def record(self, row: ReadRow, commit_mark: CommitMark, turn: int, since: int | None = None) -> bool:
        """Add the row of a run. Return False if a run already had this turn (since a version of ``runs``)."""
        from routing.tables import frames

        frame = frames.frame_of(self.spark, [row], schemas.RUNS)
        options = spark_tables.WriteOptions(
            commit_mark.as_text(), True, "runs" in self.lacking, turn=turn, order=order_since(since)
        )
        self._put("runs", frame, options)
        return self._is_recorded(commit_mark)

    def _put(self, key: str, rows: DataFrame, options: spark_tables.WriteOptions) -> None:
        schema = None if key in self._logs else schemas.OUTPUTS[key]
        spark_tables.write_output(rows, key, self.config.output[key], options, self.place("runs"), schema)
        self.lacking.discard(key)


@contextmanager
def _marking(spark: SparkSession, location: TableLocation, commit_mark: CommitMark) -> Iterator[None]:
    """Mark the commit of a statement by a setting, or by an earlier commit if the session refuses the setting."""
    from pyspark.errors import PySparkException

    before = find_setting(spark, _METADATA)
    try:
        spark.conf.set(_METADATA, commit_mark.as_text())
    except PySparkException as error:
        if not is_refusal(error):
            raise
        sql_statements.set_properties(spark, location, {commits.ANNOUNCEMENT: commit_mark.as_text()})
        yield
        return
    try:
        yield
    finally:
        # Leave the session as its user had it.
        if before is None:
            spark.conf.unset(_METADATA)
        else:
            spark.conf.set(_METADATA, before)


def identities_of(
    session_owner: HasSession, inputs: Mapping[str, spark_tables.Input]
) -> dict[str, dict[str, str]]:
    """Return the table_ids and commit_identities of inputs in a row of ``runs``, by key.

    Inputs without versions are left out.
    """
    read = {key: snapshot for key, snapshot in inputs.items() if isinstance(snapshot, spark_tables.TableSnapshot)}
    logs = {key: snapshot.open_log(session_owner) for key, snapshot in read.items()}
    identities = {key: logs[key].identity(snapshot.version) for key, snapshot in read.items()}
    return {
        "table_ids": {key: log.table_id for key, log in logs.items()},
        "commit_identities": {key: text for key, text in identities.items() if text is not None},
    }


def is_same_input(session_owner: HasSession, last: LastRun, key: str, now: spark_tables.Input | None) -> bool:
    """Return whether an input is the table and version of the last run, or missing in both runs."""
    if now is None:
        return key not in last.input_versions and json.loads(last.settings)["tables"].get(key) is None
    if not isinstance(now, spark_tables.TableSnapshot) or now.version != last.input_versions.get(key):
        return False
    identities = identities_of(session_owner, {key: now})
    before = {"table_ids": last.table_ids, "commit_identities": last.commit_identities}
    return all(key in values and values[key] == before[name].get(key) for name, values in identities.items())


def check_versions(messages: spark_tables.Input) -> spark_tables.TableSnapshot:
    """Return the messages of an incremental run, which must have versions. Raises InputError."""
    if isinstance(messages, spark_tables.UnversionedTable):
        raise InputError.without_versions(str(messages.location))
    return messages


def check_succession(config: Config, last: LastRun) -> None:
    """Refuse to continue from a run that read other messages, other instances or a view. Raises InputError."""
    now = str(config.tables["messages"])
    if last.messages != now and relative_path(last.runs, last.messages) != relative_path(
        str(config.output["runs"]), now
    ):
        raise InputError.full_run_needed(f"the last run {last.run_id!r} read {last.messages!r}, not {now!r}")
    if "messages" not in last.input_versions:
        raise InputError.full_run_needed(f"the last run {last.run_id!r} read {now!r} at no version")
    patterns = json.loads(last.settings)["resolve"].get("instances")
    if patterns != (config.resolve.instances and list(config.resolve.instances)):
        raise InputError.full_run_needed(f"the last run {last.run_id!r} had other resolve.instances")


# The outputs of a job on this machine's disk, by delta-rs.


def _measured(key: str) -> list[str]:
    """Return the columns of an output whose minimum and maximum its log records."""
    return [*STATISTICS.get(key, ())]


def _make(key: str, location: TableLocation, schema: Schema) -> LocalTable:
    """Create an empty output by delta-rs."""
    return LocalTable.make(location, schema.optional(), properties=spark_tables.properties_of(key))


class LocalOutputs(JobTables):
    """A job's outputs that delta-rs writes."""

    def put(self, key: str, rows: RowSource, commit_mark: CommitMark, *, adds: bool) -> None:
        """Append rows to a table, or replace its rows. Raises StorageError."""
        location, schema = self.config.output[key], schemas.OUTPUTS[key]
        with self._reporting(key):
            with creating(location, self.place("runs")):
                # Create the table before its files, because a folder with files but no log is not a table.
                if not commits.has_commits(location):
                    _make(key, location, schema)
            with DataFiles(Path(location.text), _measured(key)) as files:
                rows.write_to(files)
                files.close()
                # Open it only now, so that earlier maintenance does no harm. `protocol` detects other runs.
                table = open_to_write(location)
                is_change = bool(files.written) or not (adds or table.is_empty())
            if is_change:
                with self._believe_log(key, commit_mark, table.version):
                    table.commit_files(files, schema, adds=adds, metadata=commit_mark.as_text())
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
        self.note_missing_columns(key)

    def record(self, row: ReadRow, commit_mark: CommitMark, turn: int, since: int | None = None) -> bool:
        """Add the row of a run. Return False if a run already had this turn (since a version of ``runs``)."""
        location = self.config.output["runs"]
        with self._reporting("runs"):
            rows = table_of([row], schemas.RUNS.optional())
            newest = self.open_logs(["runs"]).get("runs")
            known_version = -1 if newest is None else newest.version
            with creating(location, str(location)), self._believe_log("runs", commit_mark, known_version):
                append_once(location, rows, commit_mark.as_text(), order_since(since), turn)
        self.lacking.discard("runs")
        return self._is_recorded(commit_mark)

    @contextmanager
    def _believe_log(self, key: str, commit_mark: CommitMark, known_version: int) -> Iterator[None]:
        """Accept a failed commit that is in the log after the known version.

        delta-rs may fail after its commit, for example while writing a checkpoint. A note reports this.
        """
        try:
            yield
        except Exception as error:
            since = TableLog(self, self.config.output[key]).commits_after(known_version)
            own_versions = [commit.version for commit in since if commit.commit_mark == commit_mark]
            if not own_versions:
                raise
            self.notes.append(
                f"output.{key}: version {own_versions[-1]} is written, but deltalake failed after the commit:"
                f" {first_sentence(error)}"
            )

    def _reporting(self, key: str) -> AbstractContextManager[None]:
        return reporting_failures(f"writing output.{key} to {self.config.output[key]}")


@dataclass(frozen=True)
class ReplacedOutput:
    """A table that a command replaces, checked before anything is computed.

    ``setting`` names its location: a key of section ``output``, or an option. ``job`` is the location of the job's
    table ``runs``, or names the command. ``writer`` writes the table without Spark, is None if the table must
    first be created, or has the reason why Spark must write it. ``version`` is None if no table exists. ``lacks``
    has columns that an older release did not write. ``notes`` names columns that users added.
    """

    key: str
    setting: str
    location: TableLocation
    schema: Schema
    job: str
    writer: LocalTable | UnreadableTable | None
    version: int | None = None
    lacks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def replace(self, rows: RowSource, metadata: str) -> LocalTable:
        """Replace all rows by delta-rs, and return the table at its new version.

        ``metadata`` is the commit's user metadata.

        Raises StorageError, and the errors of creating the rows.
        """
        if isinstance(self.writer, UnreadableTable):
            raise ValueError("the table is Spark's to write")
        with reporting_failures(self._writing):
            with creating(self.location, self.job):
                stored = self.writer or _make(self.key, self.location, self.schema)
            return stored.replace_rows(rows, self.schema, _measured(self.key), metadata)

    def replace_by_spark(self, spark: SparkSession, rows: DataFrame, metadata: str) -> int:
        """Replace all rows by Spark, and return the version of the table that has them. Raises StorageError."""
        options = spark_tables.WriteOptions(metadata, widens=bool(self.lacks))
        schema, before = (self.schema, 0) if self.version is None else (None, self.version)
        spark_tables.write_output(rows, self.key, self.location, options, self.job, schema)
        history = TableLog(ExistingSession(spark), self.location).history()
        newer = [*takewhile(lambda commit: commit.version >= before, history)]
        # Delta makes no commit for an empty table that stays empty.
        if newer and newer[0].version == before:
            return before
        ours = next((commit.version for commit in newer if commit.metadata == metadata), None)
        if ours is None:
            raise StorageError.failed(self._writing, "its commit is not in the table's history")
        return ours

    @property
    def _writing(self) -> str:
        return f"writing {self.setting} to {self.location}"


def open_output(opener: TableOpener, config: Config, key: str, schema: Schema) -> ReplacedOutput:
    """Open an output of a `placed` configuration to be replaced, as `open_replaced` does."""
    location, job = config.other_outputs[key], str(config.output["runs"])
    return open_replaced(opener, key, f"output.{key}", location, schema, job)


def open_replaced(
    opener: TableOpener, key: str, setting: str, location: TableLocation, schema: Schema, job: str
) -> ReplacedOutput:
    """Open a table to be replaced. Refuse a location with another table, or without write access.

    The location must be a `placed` one. Nullable columns may be missing, as in a table of an older release.
    Raises OutputError.
    """
    check_writable(setting, location)
    opened = opener.find(setting, location)
    shape = find_shape(opened, setting, location, schema, job)
    if opened is None or shape is None:
        return ReplacedOutput(key, setting, location, schema, job, opener.open_to_write(location, None))
    note = shape.note(setting)
    writer, notes = opener.open_to_write(location, opened.version), () if note is None else (note,)
    return ReplacedOutput(key, setting, location, schema, job, writer, opened.version, tuple(shape.missing), notes)


def metadata_of(command: str, versions: Mapping[str, int | None], as_of: datetime | None) -> str:
    """Return the user metadata of a commit as one line of JSON: the command, its release and its inputs."""
    run_facts = {"command": command, "release": release(), "as_of": as_of and as_of.isoformat()}
    return json.dumps({**run_facts, "input_versions": dict(versions)}, sort_keys=True)
