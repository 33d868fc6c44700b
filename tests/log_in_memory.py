"""A job's tables as logs in memory, with the operations of Delta that the order of runs rests on.

`tests/spark/test_log_in_memory.py` holds them equal to Delta, operation by operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import Any

from routing.delta.job_outputs import RUN, CommitMark, LastRun, TableCommit, read_mark
from routing.errors import HistoryGap, RecordedAlready, StorageError

Rows = frozenset[Any]
_FIRST = datetime(2026, 1, 5, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Entry:
    """One commit, and the table's rows after it."""

    operation: str
    rows: Rows
    metadata: str | None = None
    turn: int = 0
    order: int | None = None
    restored: int | None = None


@dataclass(frozen=True)
class Log:
    """All commits of one table, which are never removed."""

    id: str
    entries: tuple[Entry, ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash((self.id, self.entries))

    def __hash__(self) -> int:
        """Computed once: the explorer asks for it in each of its states."""
        return self._hash

    def rows(self, version: int = -1) -> Rows:
        """Return the table's rows at a version, by default the newest."""
        return self.entries[version].rows

    def and_then(self, operation: str, rows: Rows, metadata: str | None = None, **more: int | None) -> Log:
        """Return the log with one commit more."""
        return Log(self.id, (*self.entries, Entry(operation, rows, metadata, **more)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class OpenedLog:
    """`job_outputs.OutputLog` of a log as it was; commits before ``cleaned`` are gone."""

    key: str
    log: Log
    cleaned: int = 0

    def __repr__(self) -> str:
        """Tells this log from others: the explorer asks for it in each of its states."""
        return f"{self.key} {self.cleaned} {hash(self.log)}"

    @property
    def version(self) -> int:
        return len(self.log.entries) - 1

    @property
    def table_id(self) -> str:
        return self.log.id

    def commits_after(self, version: int) -> list[TableCommit]:
        if version + 1 < self.cleaned:
            raise HistoryGap.cleaned(self.key, version)
        return [c for c in self._every() if c.version > version]

    def commit(self, version: int) -> TableCommit | None:
        return next((c for c in self.history() if c.version == version), None)

    def history(self) -> Iterable[TableCommit]:
        return [c for c in reversed(self._every()) if c.version >= self.cleaned]

    def _every(self) -> list[TableCommit]:
        return [
            TableCommit(version, entry.operation, entry.metadata, read_mark(entry.metadata), entry.restored)
            for version, entry in enumerate(self.log.entries)
        ]

    def identity(self, version: int) -> str | None:
        """As in Delta, where a mark names one attempt at one run, no other table has such a commit."""
        is_in_log = self.cleaned <= version <= self.version
        return str(hash((self.log.id, self.log.entries[: version + 1]))) if is_in_log else None

    def is_commit(self, version: int, identity: str) -> bool:
        return self.identity(version) == identity


class LogsInMemory:
    """`job_outputs.OutputTables` over such logs. ``logs`` is the whole state: it may be copied and compared.

    ``by_name``: tables of a catalog, which are made before their rows are committed, as the local engine makes its
    own (``creates_first``).
    """

    def __init__(
        self,
        keys: Iterable[str],
        logs: Mapping[str, Log] | None = None,
        by_name: bool = False,
        creates_first: bool = False,
    ) -> None:
        self.keys = tuple(keys)
        self.logs = dict(logs or {})
        self.by_name, self.creates_first = by_name, by_name or creates_first
        # By key the first version whose commit is still in the log.
        self.cleaned: dict[str, int] = {}

    def place(self, key: str) -> str:
        return f"out/{key}"

    def newest(self, key: str) -> int | None:
        return len(self.logs[key].entries) - 1 if key in self.logs else None

    def look_at(self, key: str) -> OpenedLog | None:
        """Open one log, None if there is no table: `look` opens one after the other."""
        return OpenedLog(key, self.logs[key], self.cleaned.get(key, 0)) if key in self.logs else None

    def open_logs(self, keys: Iterable[str]) -> dict[str, OpenedLog]:
        return {key: log for key in keys if (log := self.look_at(key)) is not None}

    def last_run(self, coming: str | None = None) -> tuple[OpenedLog | None, LastRun | None]:
        return self.look_at("runs"), self._last_run(coming)

    def _last_run(self, coming: str | None) -> LastRun | None:
        rows = self.logs["runs"].rows() if "runs" in self.logs else ()
        if any(dict(row)["run_id"] == coming for _, row in rows):
            raise RecordedAlready.by_id(str(coming), self.place("runs"))
        if not rows:
            return None
        number, found = max(rows)
        run = dict(found)
        return LastRun(
            run_id=run["run_id"],
            mode=run["mode"],
            finished_at=_FIRST + timedelta(seconds=number),
            input_versions={"messages": run["messages"]},
            output_versions=dict(run["output_versions"]),
            outcome_counts={},
            runs=self.place("runs"),
            messages="in/messages",
            table_ids=dict(run["table_ids"]),
            commit_identities=dict(run["commit_identities"]),
            read_at=len(self.logs["runs"].entries) - 1,
        )

    def rows(self, key: str, version: int) -> Rows:
        """Return a table's rows at a version."""
        return self.logs[key].rows(version)

    def put(self, key: str, rows: Rows, commit_mark: CommitMark, *, adds: bool) -> None:
        self._put(key, rows, commit_mark.as_text(), adds=adds)

    def _put(self, key: str, rows: Rows, metadata: str | None, *, adds: bool, **turn: int | None) -> None:
        if key not in self.logs and self.creates_first:
            self.logs[key] = Log(f"id of {key}").and_then("CREATE TABLE", frozenset())
        if key not in self.logs:
            self.logs[key] = Log(f"id of {key}").and_then("WRITE", rows, metadata, **turn)
            return
        log = self.logs[key]
        # To add nothing is no commit; nor is it to replace nothing by nothing, but for tables of a catalog.
        if not rows and (adds or not (log.rows() or self.by_name)):
            return
        self.logs[key] = log.and_then("WRITE", log.rows() | rows if adds else rows, metadata, **turn)

    def erase(self, key: str, rows: Rows, commit_mark: CommitMark) -> int:
        log = self.logs[key]
        erased = log.rows() & rows
        if erased:
            self.logs[key] = log.and_then("MERGE", log.rows() - rows, commit_mark.as_text())
        return len(erased)

    def replace(self, key: str, rows: Rows, commit_mark: CommitMark, within: frozenset[int]) -> None:
        """Replace the rows whose first value is in ``within``."""
        log = self.logs[key]
        after = frozenset(row for row in log.rows() if row[0] not in within) | rows
        if after != log.rows():
            self.logs[key] = log.and_then("WRITE", after, commit_mark.as_text())

    def restore(self, key: str, version: int, commit_mark: CommitMark) -> None:
        log = self.logs[key]
        if log.rows(version) != log.rows():
            self.logs[key] = log.and_then("RESTORE", log.rows(version), commit_mark.as_text(), restored=version)

    def record(self, row: Mapping[str, Any], commit_mark: CommitMark, turn: int, since: int | None = None) -> bool:
        entries = self.logs["runs"].entries if "runs" in self.logs else ()
        if any(entry.turn >= turn and entry.order == since for entry in entries):
            return False
        plain = {k: tuple(sorted(v.items())) if isinstance(v, Mapping) else v for k, v in row.items()}
        number = len(self.logs["runs"].rows()) if "runs" in self.logs else 0
        rows = frozenset({(number, tuple(sorted(plain.items())))})
        self._put("runs", rows, commit_mark.as_text(), adds=True, turn=turn, order=since)
        return True

    def restore_by_hand(self, key: str, version: int) -> None:
        """Bring a table back to a version, as an operator does: with no mark."""
        log = self.logs[key]
        self.logs[key] = log.and_then("RESTORE", log.rows(version), restored=version)

    def commit_next(self, key: str, before: int | None, rows: Rows) -> int:
        """Make the commit after a version. As in Delta, it is refused if another writer made one."""
        if self.newest(key) != before:
            raise StorageError.imported_meanwhile(key, self.place(key))
        self.logs[key] = self.logs.get(key, Log(f"id of {key}")).and_then("WRITE", rows)
        return len(self.logs[key].entries) - 1

    def by_hand(self, key: str, operation: str, rows: Rows | None = None) -> None:
        """Commit as a user, without a mark. Without given rows, they stay unchanged."""
        log = self.logs[key]
        self.logs[key] = log.and_then(operation, log.rows() if rows is None else rows)


def run_mark(run_id: str) -> CommitMark:
    """The mark of a run of this job."""
    return CommitMark(RUN, run_id, "out/runs")
