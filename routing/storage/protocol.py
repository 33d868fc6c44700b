"""Exactly once: what a run does to its outputs, in which order, and what it makes of what it finds there.

A run counts once its row is in ``runs``, and the versions which that row records are the truth. What was
committed after them is maintenance, or was marked by a run that does not count and is taken back, or is somebody
else's: then an incremental run does not go on. Two runs may be at it at once, and each may die at any moment.

Plain Python over `Tables`: the tests explore every state of two runs with this very code, on a log in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from routing.errors import HistoryGap, OutputError, StorageError

RUN, RESTORE = "run", "restore"
_OURS = "sbroute"
# What brings no rows in and takes none away, by Delta's names of operations. Whatever is not listed counts.
_MAINTENANCE = frozenset(
    {
        *("OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", "COMPUTE STATS", "CLUSTER BY"),
        *("SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "UPGRADE PROTOCOL", "DROP FEATURE"),
        *("ADD COLUMNS", "CHANGE COLUMN", "CHANGE COLUMNS", "RENAME COLUMN", "DROP COLUMNS"),
        *("ADD CONSTRAINT", "DROP CONSTRAINT", "CREATE TABLE", "ROW TRACKING BACKFILL"),
    }
)
# Old rows of these may be deleted between runs (docs/operation.md).
_MAY_BE_DELETED_FROM = frozenset({"resolved_routes", "rejected_messages", "new_route_requests"})
_BY_ROWS_OF_0_1_0 = frozenset({"WRITE", "CREATE OR REPLACE TABLE AS SELECT", RESTORE.upper()})
FIRST_TURN = 1


@dataclass(frozen=True)
class Mark:
    """What a run writes into a commit's user metadata: whose it is.

    ``kind`` is `RUN` or `RESTORE`, ``runs`` where the job keeps its table ``runs``, ``version`` what is restored.
    ``attempt`` tells apart what was tried under one run id.
    """

    kind: str
    run_id: str
    runs: str
    version: int | None = None
    attempt: str | None = None

    def as_text(self) -> str:
        """The mark as one line of JSON."""
        told = {_OURS: self.kind, "run_id": self.run_id, "runs": self.runs}
        others = {"version": self.version, "attempt": self.attempt}
        return json.dumps({**told, **{name: value for name, value in others.items() if value is not None}})

    def is_of_one_writer(self, other: Mark | None) -> bool:
        """Whether both marks are of one attempt at one run."""
        return other is not None and (self.run_id, self.attempt) == (other.run_id, other.attempt)


def read_mark(text: str | None) -> Mark | None:
    """The mark that a commit's user metadata holds; None where it is somebody else's text."""
    try:
        told = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(told, dict) or not isinstance(told.get(_OURS), str):
        return None
    version, attempt = told.get("version"), told.get("attempt")
    return Mark(
        told[_OURS],
        str(told.get("run_id")),
        str(told.get("runs")),
        version if isinstance(version, int) else None,
        attempt if isinstance(attempt, str) else None,
    )


@dataclass(frozen=True)
class Commit:
    """One commit of a table's history; ``metadata`` is its user metadata as it stands there."""

    version: int
    operation: str
    metadata: str | None = None
    mark: Mark | None = None


@dataclass(frozen=True)
class LastRun:
    """The last run that counts; ``read_at`` is the version of ``runs`` in which it was found.

    Table ids and identities of commits are None in a row of release 0.1.0, which kept none.
    """

    run_id: str
    mode: str
    finished_at: datetime
    input_versions: Mapping[str, int]
    output_versions: Mapping[str, int]
    outcome_counts: Mapping[str, int]
    runs: str
    messages: str
    table_ids: Mapping[str, str] | None
    commit_identities: Mapping[str, str] | None
    read_at: int

    @property
    def turn(self) -> int:
        """The place in the order of runs of the one that comes after this."""
        micros = int(self.finished_at.timestamp()) * 1_000_000 + self.finished_at.microsecond
        return micros + 1


class Histories(Protocol):
    """What was committed to the outputs of a job."""

    def commits(self, key: str, after: int) -> list[Commit]:
        """Every commit after a version, in order. Raises HistoryGap where one of them cannot be told any more."""


class Tables(Histories, Protocol):
    """The outputs of a job, as far as the order of its runs needs them."""

    @property
    def keys(self) -> Iterable[str]:
        """The configuration's keys of the outputs but ``runs``."""

    def place(self, key: str) -> str:
        """A table's location, for sentences and marks."""

    def newest(self, key: str) -> int | None:
        """The newest version; None where there is no table."""

    def latest(self, key: str) -> list[Commit]:
        """The newest commits, in order: some twenty, or as many as the log still has."""

    def table_id(self, key: str) -> str | None:
        """What tells this table from any other that stood or will stand there; None where there is none."""

    def identity(self, key: str, version: int) -> str | None:
        """What tells this commit from any other of that number; None where the log does not go back so far."""

    def last_run(self, coming: str | None = None) -> LastRun | None:
        """The last run that counts. Raises RecordedAlready where the one that is to come does, by its id."""

    def put(self, key: str, rows: Any, mark: Mark, *, adds: bool) -> None:
        """Add rows to a table, or replace it by them, in one commit; none where nothing changes."""

    def restore(self, key: str, version: int, mark: Mark) -> None:
        """Bring a table back to a version, in one commit; none where nothing changes."""

    def record(self, row: Mapping[str, Any], mark: Mark, turn: int) -> bool:
        """Add the row of a run; False, and nothing is added, where another run has had this turn."""


@dataclass(frozen=True)
class Start:
    """What a run begins with: the last one that counts, and the outputs as they stand, by key.

    ``ids`` are those of the tables that were looked at. ``left_over`` are the keys of outputs that hold what
    unfinished runs left, each to be taken back before anything is read.
    """

    run: Mark
    last: LastRun | None
    versions: Mapping[str, int]
    ids: Mapping[str, str] = field(default_factory=dict)
    left_over: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Finding:
    """What became of an output since it was recorded: why nobody can go on from it, or that rows are left over."""

    why: str | None = None
    is_left_over: bool = False


def begin(tables: Tables, run_id: str, *, is_full: bool, attempt: str | None = None) -> Start:
    """Look at what the runs so far left; nothing is written.

    ``attempt`` tells this run from others that were given the same id. Raises RecordedAlready where one of them
    counts, OutputError where a table is another than the recorded one and, for an incremental run, where somebody
    else has committed to it, or what was recorded is gone. A full run, which replaces all, notes that.
    """
    run = Mark(RUN, run_id, tables.place("runs"), attempt=attempt)
    # In this order: a run that ends in between has recorded versions that are newer than these, not older.
    found = {key: tables.newest(key) for key in tables.keys}
    last = tables.last_run(run_id)
    if last is None:
        return Start(run, None, _existing(found), notes=_look_at_unrecorded(tables, found, run))
    _check_runs(tables, last)
    for key, recorded in last.output_versions.items():
        seen = found.get(key)
        if seen is None or seen < recorded:
            found[key] = tables.newest(key)
    ids = _ids(tables, last, found)
    left_over, notes = set(), []
    for key, recorded in last.output_versions.items():
        finding = _look_at(tables, last, key, recorded, found.get(key))
        if finding.why is not None and not is_full:
            raise OutputError.full_run_needed(key, tables.place(key), finding.why)
        if finding.why is not None:
            notes.append(f"output.{key}: {finding.why}; this run replaces it")
        elif finding.is_left_over and not is_full:
            left_over.add(key)
    if last.table_ids is None:
        notes.append(
            f"run {last.run_id!r} is one of release 0.1.0, which did not record what tells its tables from others:"
            " they are trusted this once"
        )
    return Start(run, last, _existing(found), ids, frozenset(left_over), tuple(notes))


def take_back(tables: Tables, start: Start) -> Start:
    """Bring every output that holds rows of unfinished runs back to its recorded version. Raises StorageError."""
    if start.last is None or not start.left_over:
        return start
    versions, notes = dict(start.versions), list(start.notes)
    for key in sorted(start.left_over):
        recorded = start.last.output_versions[key]
        versions[key] = _bring_back(tables, start.run, key, recorded, versions[key])
        notes.append(f"output.{key} held rows of an unfinished run and was brought back to version {recorded}")
    return replace(start, versions=versions, left_over=frozenset(), notes=tuple(notes))


def commit(tables: Tables, start: Start, key: str, rows: Any, *, adds: bool) -> int:
    """Commit rows to an output; returns the version as this run leaves it, in which all new rows are its own.

    Raises StorageError, where another run has written there meanwhile too: it may be another attempt at this one.
    """
    tables.put(key, rows, start.run, adds=adds)
    since = _own_commits(tables, start, key)
    # Delta leaves out a commit that changes nothing; a new table has one in any case.
    return max((c.version for c in since if c.mark == start.run), default=max(start.versions.get(key, -1), 0))


def finish(
    tables: Tables, start: Start, written: Mapping[str, int], row: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Make a run count by its row in ``runs``, and see whether what it wrote still stands.

    Returns the row as it is recorded, and notes.

    ``written`` are the versions as this run leaves them. ``row`` has table_ids and commit_identities of inputs,
    by key; those of the outputs are added here. Raises StorageError where another run was faster.
    """
    for key in written:
        _own_commits(tables, start, key)
    ids = {key: start.ids.get(key) or tables.table_id(key) for key in (*tables.keys, "runs")}
    identities = {key: tables.identity(key, version) for key, version in written.items()}
    whole = {
        **row,
        "table_ids": {**row["table_ids"], **_settle_given(ids)},
        "commit_identities": {**row["commit_identities"], **_settle_given(identities)},
    }
    turn = FIRST_TURN if start.last is None else start.last.turn
    if not tables.record(whole, start.run, turn):
        raise StorageError.overtaken("runs", tables.place("runs"))
    return whole, _see_that_it_stands(tables, start, written)


def _own_commits(tables: Tables, start: Start, key: str) -> list[Commit]:
    """What was committed to an output since a run began. Raises StorageError where others' rows are among it."""
    since = tables.commits(key, start.versions.get(key, -1))
    if any(not start.run.is_of_one_writer(c.mark) for c in since if _counts(key, c)):
        raise StorageError.overtaken(key, tables.place(key))
    return since


def settle(tables: Histories, key: str, recorded: int) -> int:
    """The version to read for what a run left: the recorded one, or that of maintenance right after it."""
    try:
        since = tables.commits(key, recorded)
    except HistoryGap:
        return recorded
    version = recorded
    for found in since:
        if _counts(key, found):
            break
        version = found.version
    return version


def _see_that_it_stands(tables: Tables, start: Start, written: Mapping[str, int]) -> tuple[str, ...]:
    """Bring back what another run took back while this one was about to count; returns notes."""
    touched = {
        key for key, version in written.items() if any(_counts(key, c) for c in tables.commits(key, version))
    }
    if not touched:
        return ()
    last = tables.last_run()
    if last is None or last.run_id != start.run.run_id:
        # Another run has counted since: it began with what this one recorded.
        return ()
    notes = []
    for key in sorted(touched):
        current = tables.newest(key)
        finding = _look_at(tables, last, key, written[key], current)
        if finding.why is not None:
            notes.append(f"output.{key}: {finding.why}")
        elif finding.is_left_over and current is not None:
            _bring_back(tables, start.run, key, written[key], current)
            notes.append(f"output.{key} was changed by a run that does not count, and was brought back")
    return tuple(notes)


def _bring_back(tables: Tables, run: Mark, key: str, version: int, current: int) -> int:
    """Restore a version, by a commit that is marked; returns the version of that commit."""
    mark = replace(run, kind=RESTORE, version=version)
    tables.restore(key, version, mark)
    since = tables.commits(key, current)
    return max((c.version for c in since if c.mark == mark), default=current)


def _look_at(tables: Tables, last: LastRun, key: str, recorded: int, current: int | None) -> _Finding:
    """What became of an output since a run recorded it."""
    if current is None:
        return _Finding(f"what run {last.run_id!r} wrote is no longer there")
    if current < recorded:
        return _Finding(f"version {recorded} of run {last.run_id!r} is no longer there: the table was put back")
    try:
        since = [c for c in tables.commits(key, recorded) if c.version <= current]
    except HistoryGap as gap:
        return _Finding(str(gap))
    known = (last.commit_identities or {}).get(key)
    if known is not None and tables.identity(key, recorded) != known:
        return _Finding(
            f"version {recorded} is not the one that run {last.run_id!r} wrote: the table was put back"
        )
    counting = [c for c in since if _counts(key, c)]
    others = [c for c in counting if not _is_of_a_run(c, last, tables)]
    if others:
        return _Finding(
            f"version {others[0].version} ({others[0].operation}) was not written by a run of this job"
        )
    return _Finding(is_left_over=bool(counting))


def _look_at_unrecorded(tables: Tables, found: Mapping[str, int | None], run: Mark) -> tuple[str, ...]:
    """Notes on what stands at the outputs before any run counts. Raises OutputError where it is another job's."""
    notes = []
    for key, version in found.items():
        counting = [] if version is None else [c for c in tables.latest(key) if _counts(key, c)]
        for found_mark in (c.mark for c in counting if c.mark is not None and c.mark.runs != run.runs):
            raise OutputError.other_job(key, tables.place(key), found_mark.runs)
        if any(c.metadata is None for c in counting):
            notes.append(f"output.{key} held rows that no run had written; this run replaces them")
    return tuple(notes)


def _check_runs(tables: Tables, last: LastRun) -> None:
    """Refuse a table ``runs`` that was put back or changed: runs go on from its newest row. Raises OutputError."""
    counting = [c for c in tables.latest("runs") if c.version <= last.read_at and _counts("runs", c)]
    if counting and _writer(counting[-1]) != last.run_id:
        raise OutputError.runs_changed(tables.place("runs"), counting[-1].version, counting[-1].operation)


def _writer(found: Commit) -> str | None:
    return found.metadata if found.mark is None else found.mark.run_id


def _ids(tables: Tables, last: LastRun, found: Mapping[str, int | None]) -> dict[str, str]:
    """The ids of the tables that are there. Raises OutputError where one is another than the recorded one."""
    known = last.table_ids or {}
    ids = _settle_given({key: tables.table_id(key) for key in ("runs", *_existing(found))})
    for key, table_id in ids.items():
        if known.get(key, table_id) != table_id:
            raise OutputError.other_table(key, tables.place(key), last.run_id)
    return ids


def _is_of_a_run(found: Commit, last: LastRun, tables: Tables) -> bool:
    """Whether a run of this job marked a commit; release 0.1.0 wrote its bare id, and nothing for a RESTORE."""
    if found.mark is not None:
        return found.mark.runs in (tables.place("runs"), last.runs)
    is_bare = found.metadata is not None or found.operation == "RESTORE"
    return last.table_ids is None and is_bare and found.operation in _BY_ROWS_OF_0_1_0


def _counts(key: str, found: Commit) -> bool:
    """Whether a commit changes what a table holds."""
    if found.operation == "DELETE":
        return key not in _MAY_BE_DELETED_FROM
    return found.operation not in _MAINTENANCE


def _existing(found: Mapping[str, int | None]) -> dict[str, int]:
    return {key: version for key, version in found.items() if version is not None}


def _settle_given(found: Mapping[str, str | None]) -> dict[str, str]:
    return {key: text for key, text in found.items() if text is not None}
