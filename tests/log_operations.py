"""Operations on one table's log, step by step, to compare any storage with the log in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from routing.delta.job_outputs import RESTORE, CommitMark, OutputLog, OutputTables, TableCommit
from tests.log_in_memory import LogsInMemory, run_mark

KEY = "new_route_requests"
A, B = run_mark("a"), run_mark("b")


class TableLog(Protocol):
    """A table with texts as rows, and its operations."""

    @property
    def tables(self) -> OutputTables:
        """The table, as a run sees it."""

    def write(self, rows: frozenset[str], commit_mark: CommitMark, *, adds: bool) -> None:
        """Append rows, or replace all rows."""

    def by_hand(self, operation: str) -> None:
        """Make a commit of somebody else, with no mark: OPTIMIZE, or a property that is set."""

    def restore_by_hand(self, version: int) -> None:
        """Bring the table back to a version, with no mark."""

    def rows(self) -> frozenset[str]:
        """Return the table's rows."""


class LogInMemory:
    """The operations on the log in memory."""

    def __init__(self, *, by_name: bool = False, creates_first: bool = False) -> None:
        self.tables = LogsInMemory([KEY], by_name=by_name, creates_first=creates_first)

    def write(self, rows: frozenset[str], commit_mark: CommitMark, *, adds: bool) -> None:
        self.tables.put(KEY, rows, commit_mark, adds=adds)

    def by_hand(self, operation: str) -> None:
        self.tables.by_hand(KEY, operation)

    def restore_by_hand(self, version: int) -> None:
        self.tables.restore_by_hand(KEY, version)

    def rows(self) -> frozenset[str]:
        return frozenset(self.tables.logs[KEY].rows())


def back_to(version: int) -> CommitMark:
    """The mark of a restore."""
    return CommitMark(RESTORE, "b", "out/runs", version)


Step = Callable[[TableLog, int], None]
# What is done to a log, and the version that its first write made.
STEPS: list[tuple[str, Step]] = [
    ("made", lambda on, first: on.write(frozenset({"m1", "m2"}), A, adds=False)),
    ("added to", lambda on, first: on.write(frozenset({"m3"}), A, adds=True)),
    ("nothing added", lambda on, first: on.write(frozenset(), A, adds=True)),
    ("optimized", lambda on, first: on.by_hand("OPTIMIZE")),
    ("replaced", lambda on, first: on.write(frozenset({"m4"}), B, adds=False)),
    ("restored", lambda on, first: on.tables.restore(KEY, first + 1, back_to(first + 1))),
    ("restored to what is there", lambda on, first: on.tables.restore(KEY, first + 4, back_to(first + 4))),
    ("replaced by nothing", lambda on, first: on.write(frozenset(), B, adds=False)),
    ("nothing replaced by nothing", lambda on, first: on.write(frozenset(), A, adds=False)),
    ("a property set", lambda on, first: on.by_hand("SET TBLPROPERTIES")),
    ("restored by another", lambda on, first: on.tables.restore(KEY, first + 1, back_to(first + 1))),
    ("added to again", lambda on, first: on.write(frozenset({"m5"}), B, adds=True)),
    ("restored by hand", lambda on, first: on.restore_by_hand(first + 3)),
]


def assert_like_the_log_in_memory(stored: TableLog, memory: LogInMemory, first: int) -> list[TableCommit]:
    """Compare the rows after each step and the commits at the end, and return the stored commits.

    ``first`` is the version of each log's first write.
    """
    for name, step in STEPS:
        step(stored, first)
        step(memory, first)
        assert stored.rows() == memory.rows(), name
        assert _log(stored.tables).version == _log(memory.tables).version, name
    # A commit stays as it is, so the last state tells of all before it.
    assert _commits_of(stored.tables) == _commits_of(memory.tables)
    log = _log(stored.tables)
    commits, numbers = log.commits_after(-1), range(log.version + 1)
    ids = [log.identity(version) or "" for version in numbers]
    assert len({*ids} - {""}) == len(commits)
    again = _log(stored.tables)
    assert [[again.is_commit(version, commit_id) for commit_id in ids] for version in numbers] == [
        [version == number for number in numbers] for version in numbers
    ]
    assert [again.commit(version) for version in (0, log.version + 1)] == [commits[0], None]
    return commits


def _log(tables: OutputTables) -> OutputLog:
    return tables.open_logs([KEY])[KEY]


def _commits_of(tables: OutputTables) -> list[tuple[int, str, CommitMark | None, int | None]]:
    return [(c.version, _kind(c.operation), c.commit_mark, c.restored) for c in _log(tables).commits_after(-1)]


def _kind(operation: str) -> str:
    """Delta's names of the same operation by path and by name."""
    return "WRITE" if operation == "CREATE OR REPLACE TABLE AS SELECT" else operation
