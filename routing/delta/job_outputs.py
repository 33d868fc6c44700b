"""The interface to the outputs of a job that `protocol` uses.

Runs mark their commits to outputs, and the last run that counts has recorded versions. Delta tables (`ledger`) and
the tests' log in memory implement the interface.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from routing.rules.timeline import micros_of
from routing.terms import ReadRow

RUN, RESTORE = "run", "restore"
DELETE = "DELETE"
"""Delta's name of an operation that deletes rows."""
_OURS = "sbroute"
_RESTORE_OPERATION = RESTORE.upper()
# Operations that add and remove no rows, as Delta and delta-rs name them. Any other operation changes content.
_MAINTENANCE = frozenset(
    {
        *("OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", "COMPUTE STATS", "CLUSTER BY"),
        *("SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "UPGRADE PROTOCOL", "DROP FEATURE"),
        *("ADD COLUMNS", "CHANGE COLUMN", "CHANGE COLUMNS", "RENAME COLUMN", "DROP COLUMNS"),
        *("ADD COLUMN", "UPDATE FIELD METADATA", "UPDATE TABLE METADATA"),
        *("ADD CONSTRAINT", "DROP CONSTRAINT", "CREATE TABLE", "ROW TRACKING BACKFILL"),
    }
)
# Old rows of these may be deleted between runs (docs/how-to/maintain-tables.md).
_MAY_BE_DELETED_FROM = frozenset({"resolved_routes", "rejected_messages", "new_route_requests"})


@dataclass(frozen=True)
class CommitMark:
    """The mark of a run in a commit's user metadata.

    ``kind`` is `RUN` or `RESTORE`. ``runs`` is the location of the job's table ``runs``, and ``version`` is the
    restored version. ``attempt`` distinguishes the attempts with one run id.
    """

    kind: str
    run_id: str
    runs: str
    version: int | None = None
    attempt: str | None = None

    def as_text(self) -> str:
        """Return the mark as one line of JSON."""
        identity = {_OURS: self.kind, "run_id": self.run_id, "runs": self.runs}
        optional = {"version": self.version, "attempt": self.attempt}
        return json.dumps({**identity, **{name: value for name, value in optional.items() if value is not None}})

    def is_of_one_writer(self, other: CommitMark | None) -> bool:
        """Return True if both marks are of one attempt at one run."""
        return other is not None and (self.run_id, self.attempt) == (other.run_id, other.attempt)


def read_mark(text: str | None) -> CommitMark | None:
    """Return the mark in a commit's user metadata, or None for other text."""
    try:
        metadata = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(metadata, dict) or not isinstance(metadata.get(_OURS), str):
        return None
    version, attempt = metadata.get("version"), metadata.get("attempt")
    return CommitMark(
        metadata[_OURS],
        str(metadata.get("run_id")),
        str(metadata.get("runs")),
        version if isinstance(version, int) else None,
        attempt if isinstance(attempt, str) else None,
    )


@dataclass(frozen=True)
class TableCommit:
    """One commit of a table's history. ``metadata`` is its unchanged user metadata.

    ``restored`` is the version that a RESTORE brought back. It is None if the commit names no version, such as a
    RESTORE to a time.
    """

    version: int
    operation: str
    metadata: str | None = None
    commit_mark: CommitMark | None = None
    restored: int | None = None

    @property
    def is_restore(self) -> bool:
        """Return whether the commit brought the table back to an older version."""
        return self.operation == _RESTORE_OPERATION


@dataclass(frozen=True)
class LastRun:
    """The last recorded run. ``read_at`` is the version of ``runs`` that has it.

    ``input_versions`` has the inputs with versions. ``settings`` are JSON. ``now``, ``next_due_at`` and
    ``input_digests`` belong to an incremental run. Rows of ``quarantined_instances`` had faults.
    """

    run_id: str
    mode: str
    finished_at: datetime
    input_versions: Mapping[str, int]
    output_versions: Mapping[str, int]
    outcome_counts: Mapping[str, int]
    runs: str
    messages: str
    table_ids: Mapping[str, str]
    commit_identities: Mapping[str, str]
    read_at: int
    now: datetime | None = None
    next_due_at: datetime | None = None
    input_digests: Mapping[str, str] | None = None
    rows_quarantined: int | None = None
    quarantined_instances: Sequence[str] | None = None
    settings: str = "{}"
    release: str = ""

    @property
    def turn(self) -> int:
        """The turn of the run after this one: its place in the order of runs, as microseconds since 1970."""
        return micros_of(self.finished_at) + 1


class OutputLog(Protocol):
    """The commits of one output at the time when its log was opened."""

    @property
    def version(self) -> int:
        """The newest version."""

    @property
    def table_id(self) -> str:
        """The unique id of the table."""

    def commits_after(self, version: int) -> list[TableCommit]:
        """Return every commit after a version, in order. Raises HistoryGap if one is no longer in the log."""

    def commit(self, version: int) -> TableCommit | None:
        """Return one commit, or None if it is not in the log."""

    def history(self) -> Iterable[TableCommit]:
        """Return the commits, the newest first, as far back as the log goes."""

    def identity(self, version: int) -> str | None:
        """Return the digest of a commit to record, or None if the commit is not in the log."""

    def is_commit(self, version: int, identity: str) -> bool:
        """Return True if a recorded digest is that of the commit of this version."""


class OutputTables(Protocol):
    """The outputs of a job, with the operations that every run needs."""

    @property
    def keys(self) -> Iterable[str]:
        """The configuration's keys of the outputs except ``runs``."""

    def place(self, key: str) -> str:
        """Return a table's location, for messages and marks."""

    def open_logs(self, keys: Iterable[str]) -> Mapping[str, OutputLog]:
        """Open the current logs of the tables that exist, by key and in any order."""

    def last_run(self, coming: str | None = None) -> tuple[OutputLog | None, LastRun | None]:
        """Open the current log of ``runs``, and return it with the last run that counts.

        Raises RecordedAlready if the run with the id ``coming`` already counts.
        """

    @abstractmethod
    def put(self, key: str, rows: Any, commit_mark: CommitMark, *, adds: bool) -> None:
        """Append rows to a table or replace its rows in one commit, or make none without changes."""

    @abstractmethod
    def restore(self, key: str, version: int, commit_mark: CommitMark) -> None:
        """Restore a table to a version in one commit, or make none without changes."""

    @abstractmethod
    def record(self, row: ReadRow, commit_mark: CommitMark, turn: int, since: int | None = None) -> bool:
        """Add the row of a run. Return False without adding it if a run already had this turn or a later one.

        With ``since``, a version of ``runs``, only the turns of runs that continued from that version count.
        """


def changes_content(key: str, table_commit: TableCommit) -> bool:
    """Return whether a commit changes the content of a table."""
    if table_commit.operation == DELETE:
        return key not in _MAY_BE_DELETED_FROM
    return not is_maintenance(table_commit.operation)


def is_maintenance(operation: str) -> bool:
    """Return whether commits of this operation change files, but never rows."""
    return operation in _MAINTENANCE
