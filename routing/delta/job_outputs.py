"""The outputs of a job as the order of its runs sees them (`protocol`).

They have commits, runs leave their marks in these, and the last run that counts has recorded versions. Delta's
tables (`ledger`) and the tests' log in memory are such outputs.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from routing.terms import ReadRow

RUN, RESTORE = "run", "restore"
DELETE = "DELETE"
"""Delta's name of an operation that deletes rows."""
_OURS = "sbroute"
_RESTORE_OPERATION = RESTORE.upper()
# What brings no rows in and takes none away, by the names that Delta and delta-rs have. All else counts.
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

    ``kind`` is `RUN` or `RESTORE`, ``runs`` where the job keeps its table ``runs``, ``version`` what is restored.
    ``attempt`` tells apart what was tried under one run id.
    """

    kind: str
    run_id: str
    runs: str
    version: int | None = None
    attempt: str | None = None

    def as_text(self) -> str:
        """Return the mark as one line of JSON."""
        identity = {_OURS: self.kind, "run_id": self.run_id, "runs": self.runs}
        others = {"version": self.version, "attempt": self.attempt}
        return json.dumps({**identity, **{name: value for name, value in others.items() if value is not None}})

    def is_of_one_writer(self, other: CommitMark | None) -> bool:
        """Return True if both marks are of one attempt at one run."""
        return other is not None and (self.run_id, self.attempt) == (other.run_id, other.attempt)


def read_mark(text: str | None) -> CommitMark | None:
    """Return the mark that a commit's user metadata holds; None where it is somebody else's text."""
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
    """One commit of a table's history; ``metadata`` is its user metadata as it stands there.

    ``restored`` is the version to which a RESTORE brought the table back; None where its commit names none, as one
    to a time.
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
    """The last run that counts; ``read_at`` is the version of ``runs`` in which it was found.

    ``input_versions`` are those of the inputs that have versions. ``settings`` are JSON. ``now``,
    ``next_due_at`` and ``input_digests`` are those of an incremental run.
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
    settings: str = "{}"
    release: str = ""

    @property
    def turn(self) -> int:
        """The place in the order of runs of the one that comes after this."""
        micros = int(self.finished_at.timestamp()) * 1_000_000 + self.finished_at.microsecond
        return micros + 1


class OutputTables(Protocol):
    """The outputs of a job, as far as the order of its runs needs them."""

    @property
    def keys(self) -> Iterable[str]:
        """The configuration's keys of the outputs but ``runs``."""

    def place(self, key: str) -> str:
        """Return a table's location, for sentences and marks."""

    def newest(self, key: str) -> int | None:
        """Return the newest version; None where there is no table."""

    def commits(self, key: str, after: int) -> list[TableCommit]:
        """Return every commit after a version, in order.

        Raises HistoryGap where one of them cannot be told any more.
        """

    def history(self, key: str) -> Iterable[TableCommit]:
        """Return the commits of a table, the newest first, as far back as the log goes."""

    def table_id(self, key: str) -> str | None:
        """Return the id of a table, which no other has that stood or will stand there; None without a table."""

    def identity(self, key: str, version: int) -> str | None:
        """Return the digest of a commit's log file; None where the log does not go back so far."""

    def last_run(self, coming: str | None = None) -> LastRun | None:
        """Return the last run that counts.

        Raises RecordedAlready where the one that is to come does, by its id.
        """

    @abstractmethod
    def put(self, key: str, rows: Any, commit_mark: CommitMark, *, adds: bool) -> None:
        """Add rows to a table, or replace it by them, in one commit; none where nothing changes."""

    @abstractmethod
    def restore(self, key: str, version: int, commit_mark: CommitMark) -> None:
        """Restore a table to a version, in one commit; none where nothing changes."""

    @abstractmethod
    def record(self, row: ReadRow, commit_mark: CommitMark, turn: int, since: int | None = None) -> bool:
        """Add the row of a run; return False, and add nothing, where a run has had this turn, or a later one.

        With ``since``, a version of ``runs``, turns are those of runs that went on from that version.
        """


class MergingTables(OutputTables, Protocol):
    """Outputs of which single rows can be replaced, as incremental runs do it."""

    @abstractmethod
    def merge(self, key: str, rows: Any, commit_mark: CommitMark, on: Sequence[str]) -> None:
        """Merge rows into a table by the columns of their key, in one commit; none where nothing changes."""


class ErasingTables(OutputTables, Protocol):
    """Outputs of which single rows can be deleted."""

    @abstractmethod
    def erase(self, key: str, rows: Any, commit_mark: CommitMark) -> int:
        """Delete the rows that equal one of ``rows``, in one commit; none where there are none.

        Returns how many were deleted.
        """


def changes_content(key: str, table_commit: TableCommit) -> bool:
    """Return True if a commit changes what a table holds."""
    if table_commit.operation == DELETE:
        return key not in _MAY_BE_DELETED_FROM
    return not is_maintenance(table_commit.operation)


def is_maintenance(operation: str) -> bool:
    """Return True if commits of this operation bring no rows in and take none away, whatever they do to files."""
    return operation in _MAINTENANCE
