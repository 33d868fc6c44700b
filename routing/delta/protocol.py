"""Commit exactly once: the steps of a run on its outputs, their order, and its reactions to existing content.

A run counts once its row is in ``runs``, and the versions in that row are the truth. Later commits are either
maintenance, or marked by a run that does not count and then rolled back, or made by others. In the last case an
incremental run does not continue. Two runs may do this at the same time, and each may die at any moment.

This is plain Python over `OutputTables`. The tests explore every state of two runs with this code, on a log in
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from routing.delta.job_outputs import (
    DELETE,
    RESTORE,
    RUN,
    CommitMark,
    LastRun,
    OutputLog,
    OutputTables,
    TableCommit,
    changes_content,
)
from routing.errors import HistoryGap, OutputError, StorageError
from routing.terms import ReadRow, TableRow

FIRST_TURN = 1


@dataclass(frozen=True)
class RunStart:
    """The start of a run: the last recorded one, and the current outputs by key.

    ``logs`` has the logs of the outputs and of ``runs``, and ``ids`` the ids of these tables. ``left_over`` has
    the keys of outputs that differ from the last recorded run, for example by rows of unfinished runs, each with
    a phrase that describes the difference. They are rolled back before anything is read. ``runs_since`` is the
    version of the newest commit to ``runs`` apart from maintenance (`_newest_content`). ``thinned`` has the keys
    of outputs with rows deleted since.
    """

    run: CommitMark
    last: LastRun | None
    versions: Mapping[str, int]
    logs: Mapping[str, OutputLog] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    left_over: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    runs_since: int | None = None
    thinned: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Finding:
    """The state of an output since it was recorded.

    ``why`` is the reason why an incremental run cannot continue from it, and ``left_over`` describes the changes
    to roll back. With ``is_thinned``, rows have been deleted from it.
    """

    why: str | None = None
    left_over: str | None = None
    is_thinned: bool = False


def begin(tables: OutputTables, run_id: str, *, is_full: bool, attempt: str | None = None) -> RunStart:
    """Check the outputs of earlier runs without writing.

    ``attempt`` distinguishes this run from others with the same id. Raises RecordedAlready if a run with this id
    is recorded, and OutputError if a table is not the recorded one. For an incremental run, OutputError is also
    raised if another writer committed to it or to ``runs``, or if recorded rows are missing. A full run replaces
    all rows, so it only notes this. Raises StorageError if another run is recorded in the meantime.
    """
    run = CommitMark(RUN, run_id, tables.place("runs"), attempt=attempt)
    # Open the outputs before ``runs``: a run that ends in between then records newer versions than these.
    logs = dict(tables.open_logs(tables.keys))
    runs, last = tables.last_run(run_id)
    if last is None or runs is None:
        account = _RunsAccount.of_no_rows(tables, runs)
        unrecorded = _look_at_unrecorded(tables, logs, {run.runs, *account.places})
        versions = _versions(logs)
        logs |= {} if runs is None else {"runs": runs}
        return RunStart(run, None, versions, logs, notes=unrecorded, runs_since=account.since)
    # A full run may leave out an output that the last run had.
    named = {key: recorded for key, recorded in last.output_versions.items() if key in tables.keys}
    older = [key for key, recorded in named.items() if key not in logs or logs[key].version < recorded]
    logs |= tables.open_logs(older) if older else {}
    versions, account = _versions(logs), _RunsAccount.of(runs, last, logs)
    if account.unknown_before is not None and not is_full:
        raise OutputError.runs_unknown(tables.place("runs"), last.run_id, account.unknown_before)
    if account.foreign is not None and not is_full:
        raise OutputError.runs_changed(
            tables.place("runs"), account.foreign.version, account.foreign.operation, account.restorable
        )
    logs["runs"] = runs
    ids = _ids(tables, last, logs, account)
    left_over, notes, thinned = dict[str, str](), account.notes(), set[str]()
    for key, recorded in named.items():
        finding = _find_rows_of_run(last, key, recorded, logs.get(key), {tables.place("runs"), *account.places})
        if finding.why is not None and not is_full:
            raise OutputError.full_run_needed(key, tables.place(key), finding.why)
        if finding.why is not None:
            notes.append(f"output.{key}: {finding.why}; this run replaces it")
        elif finding.left_over is not None and not is_full:
            left_over[key] = finding.left_over
        if finding.is_thinned:
            thinned.add(key)
    return RunStart(run, last, versions, logs, ids, left_over, tuple(notes), account.since, frozenset(thinned))


def take_back(tables: OutputTables, start: RunStart) -> RunStart:
    """Restore every output that differs from its recorded version. Raises StorageError."""
    if start.last is None or not start.left_over:
        return start
    versions, logs, notes = dict(start.versions), dict(start.logs), list(start.notes)
    for key in sorted(start.left_over):
        recorded = start.last.output_versions[key]
        versions[key], logs[key] = _bring_back(tables, start.run, key, recorded, versions[key])
        notes.append(f"output.{key} {start.left_over[key]} and was brought back to version {recorded}")
    return replace(start, versions=versions, logs=logs, left_over={}, notes=tuple(notes))


def commit(tables: OutputTables, start: RunStart, key: str, rows: Any, *, adds: bool) -> int:
    """Commit rows to an output, and return the version with this run's rows and no other new rows.

    Raises StorageError, also if another run or another attempt at this one wrote to the output in the meantime.
    """
    tables.put(key, rows, start.run, adds=adds)
    return own_version(tables, start, key)


def own_version(tables: OutputTables, start: RunStart, key: str) -> int:
    """Return the version of an output after this run's commit with its mark, as `commit` does.

    Call it after every other kind of commit: a merge, a replacement of some rows, a deletion. Each counts once the
    run's row is in ``runs``. Without that row, the next run rolls it back. Raises StorageError as `commit` does.
    """
    since = _own_commits(tables, start, key, tables.open_logs([key]).get(key))
    # Delta makes no commit if nothing changes, but a new table always has one.
    return max(
        (c.version for c in since if c.commit_mark == start.run), default=max(start.versions.get(key, -1), 0)
    )


def finish(
    tables: OutputTables, start: RunStart, written: Mapping[str, int], row: ReadRow
) -> tuple[TableRow, tuple[str, ...]]:
    """Record a run in ``runs``, and check that its outputs still have its rows.

    Returns the recorded row and notes. ``written`` has the versions of this run. ``row`` has table_ids and
    commit_identities of inputs by key. This function adds those of the outputs. Raises StorageError if another
    run wrote to a changed output or was recorded in the meantime.

    An output that this run did not change is not looked up again. Any later commit to it comes after the recorded
    version, so the next run judges it.
    """
    changed = [key for key, version in written.items() if version != start.versions.get(key)]
    now = tables.open_logs(changed) if changed else {}
    for key in changed:
        _own_commits(tables, start, key, now.get(key))
    logs = {**start.logs, **now}
    ids = {key: start.ids.get(key) or logs[key].table_id for key in (*tables.keys, "runs") if key in logs}
    identities = {key: logs[key].identity(version) for key, version in written.items() if key in logs}
    whole = {
        **row,
        "table_ids": {**row["table_ids"], **ids},
        "commit_identities": {
            **row["commit_identities"],
            **{key: text for key, text in identities.items() if text is not None},
        },
    }
    if not _record(tables, start, whole):
        raise StorageError.overtaken("runs", tables.place("runs"))
    return whole, _see_that_it_stands(tables, start, {key: written[key] for key in changed})


def _record(tables: OutputTables, start: RunStart, row: ReadRow) -> bool:
    """Add the row of a run. Return False if another run has been recorded since this one began.

    A RESTORE, a DELETE or a backup may remove rows from ``runs``, but the turns of these runs remain taken. Runs
    that continue from such a version have separate turns.
    """
    turn = FIRST_TURN if start.last is None else start.last.turn
    if tables.record(row, start.run, turn):
        return True
    runs = tables.open_logs(["runs"]).get("runs")
    if _newest_content(runs.history() if runs else ()) != start.runs_since:
        return False
    return tables.record(row, start.run, turn, start.runs_since)


def _own_commits(tables: OutputTables, start: RunStart, key: str, log: OutputLog | None) -> list[TableCommit]:
    """Return the commits to an output since this run began. Raises StorageError if another writer changed rows."""
    if log is None:
        return []
    since = log.commits_after(start.versions.get(key, -1))
    if any(not start.run.is_of_one_writer(c.commit_mark) for c in since if changes_content(key, c)):
        raise StorageError.overtaken(key, tables.place(key))
    return since


def settled_version(log: OutputLog, key: str, recorded: int) -> int:
    """Return the version with the result of a run: the recorded one, or that of maintenance right after it."""
    try:
        since = log.commits_after(recorded)
    except HistoryGap:
        return recorded
    version = recorded
    for table_commit in since:
        if changes_content(key, table_commit):
            break
        version = table_commit.version
    return version


def _see_that_it_stands(tables: OutputTables, start: RunStart, written: Mapping[str, int]) -> tuple[str, ...]:
    """Restore outputs that another run restored just before this one was recorded, and return notes."""
    logs = tables.open_logs(written) if written else {}
    touched = {
        key for key, log in logs.items() if any(changes_content(key, c) for c in log.commits_after(written[key]))
    }
    if not touched:
        return ()
    _, last = tables.last_run()
    if last is None or last.run_id != start.run.run_id:
        # Another run has been recorded since, and it continued from this one.
        return ()
    notes = []
    for key in sorted(touched):
        log = tables.open_logs([key]).get(key)
        finding = _find_rows_of_run(last, key, written[key], log, {tables.place("runs")})
        if finding.why is not None:
            notes.append(f"output.{key}: {finding.why}")
        elif finding.left_over is not None and log is not None:
            _bring_back(tables, start.run, key, written[key], log.version)
            notes.append(f"output.{key} was changed by a run that does not count, and was brought back")
    return tuple(notes)


def _bring_back(
    tables: OutputTables, run: CommitMark, key: str, version: int, current: int
) -> tuple[int, OutputLog]:
    """Restore a version in a marked commit, and return the version of that commit and the new log."""
    restore_mark = replace(run, kind=RESTORE, version=version)
    tables.restore(key, version, restore_mark)
    log = tables.open_logs([key])[key]
    since = log.commits_after(current)
    return max((c.version for c in since if c.commit_mark == restore_mark), default=current), log


def _find_rows_of_run(
    last: LastRun, key: str, recorded: int, log: OutputLog | None, places: Collection[str]
) -> _Finding:
    """Judge an output by its commits since a run recorded it. ``places`` are the locations of ``runs``."""
    if log is None:
        return _Finding(f"the rows of run {last.run_id!r} no longer exist")
    if log.version < recorded:
        return _Finding(f"version {recorded} of run {last.run_id!r} no longer exists: the table was restored")
    try:
        since = log.commits_after(recorded)
    except HistoryGap as gap:
        return _Finding(str(gap))
    recorded_identity = last.commit_identities.get(key)
    if recorded_identity is not None and not log.is_commit(recorded, recorded_identity):
        return _Finding(
            f"version {recorded} is not the one that run {last.run_id!r} wrote: the table was restored"
        )
    finding = _content_after(since, key, recorded, lambda c: _is_of_a_run(c, last, places))
    return replace(finding, is_thinned=any(c.operation == DELETE for c in since))


def _content_after(
    since: Iterable[TableCommit], key: str, recorded: int, is_of_a_run: Callable[[TableCommit], bool]
) -> _Finding:
    """Judge the content of an output by all commits since a recorded version.

    A RESTORE only brings back an earlier version, so that version decides, not the author of the RESTORE.
    """
    holds, now = {recorded: _Finding()}, _Finding()
    for c in since:
        if c.is_restore:
            now = _content_restored(c, holds)
        elif changes_content(key, c) and not is_of_a_run(c):
            now = _Finding(f"version {c.version} ({c.operation}) was not written by a run of this job")
        elif changes_content(key, c) and now.why is None:
            now = _Finding(left_over="held rows of a run that does not count")
        holds[c.version] = now
    return now


def _content_restored(restore: TableCommit, holds: Mapping[int, _Finding]) -> _Finding:
    """Judge a table after a RESTORE. ``holds`` has the versions from the recorded one up to the RESTORE."""
    version = restore.restored
    if version is None:
        # It restored a time, which may be that of any version.
        foreign = next((finding for finding in holds.values() if finding.why is not None), None)
        return foreign or _Finding(left_over="had been restored to another time")
    return holds.get(version, _Finding(left_over=f"had been restored to version {version}"))


def _look_at_unrecorded(
    tables: OutputTables, logs: Mapping[str, OutputLog], places: Collection[str]
) -> tuple[str, ...]:
    """Return notes on outputs that have content although no run is recorded.

    ``places`` has the locations of this job's table ``runs``. Raises OutputError if another job wrote the content,
    or if the log no longer shows who did.
    """
    notes = []
    for key, log in logs.items():
        past = _read_past(key, log)
        if not past.shows_content:
            raise OutputError.unknown_content(key, tables.place(key), past.oldest)
        counting = [c for c in past.commits if changes_content(key, c)]
        for found_mark in (
            c.commit_mark for c in counting if c.commit_mark is not None and c.commit_mark.runs not in places
        ):
            raise OutputError.other_job(key, tables.place(key), found_mark.runs)
        if any(c.commit_mark is None for c in counting):
            notes.append(f"output.{key} held rows that no run had written; this run replaces them")
    return tuple(notes)


@dataclass(frozen=True)
class _Past:
    """The newest commits to a table, in order, back to the origin of its content.

    ``shows_content`` is false if the log has been cleaned up, so that the commits that wrote the content are
    missing.
    """

    commits: tuple[TableCommit, ...] = ()
    shows_content: bool = True

    @property
    def oldest(self) -> int:
        """The version of the oldest of these commits."""
        return self.commits[0].version


def _read_past(key: str, log: OutputLog) -> _Past:
    """Read the commits to a table back to the newest content of a run.

    After a RESTORE, the content is that of an older version, or of any version for a RESTORE to a time.
    """
    past = list[TableCommit]()
    content_of: int | None = None
    is_of_any_time, shows_content = False, False
    for c in log.history():
        past.append(c)
        shows_content |= c.version == 0
        if is_of_any_time or not changes_content(key, c) or (content_of is not None and c.version > content_of):
            continue
        if c.is_restore and c.commit_mark is None:
            content_of, is_of_any_time = c.restored, c.restored is None
            continue
        shows_content = True
        # An unmarked commit may have changed rows that a run wrote.
        if c.commit_mark is not None:
            break
    return _Past(tuple(reversed(past)), shows_content or not past)


_NOT_IN_LOG = -1


def _newest_content(newest_first: Iterable[TableCommit]) -> int | None:
    """Return the version of the last commit to ``runs`` apart from maintenance.

    Returns None if there is none, and `_NOT_IN_LOG` if it may be in the cleaned-up part of the log.
    """
    oldest = 0
    for c in newest_first:
        if changes_content("runs", c):
            return c.version
        oldest = c.version
    return None if oldest == 0 else _NOT_IN_LOG


def _places_in(commits: Iterable[TableCommit]) -> frozenset[str]:
    """Return the locations of ``runs`` in the marks of these commits."""
    return frozenset(c.commit_mark.runs for c in commits if c.commit_mark is not None)


@dataclass(frozen=True)
class _RunsAccount:
    """The state of ``runs``. A run continues from its newest row.

    ``since`` is the version of the newest commit apart from maintenance. ``foreign`` is the commit that changed
    the rows of runs, and ``restorable`` is the newest earlier version without such a change. ``places`` has the
    locations of ``runs`` in the marks of its commits, because the tables may have been moved. ``unknown_before``
    is the oldest version in the log if the writer of the newest row is unknown. ``is_of_last`` is True if the run
    in the newest row also made the newest commit apart from maintenance.
    """

    since: int | None
    foreign: TableCommit | None = None
    restorable: int | None = None
    places: frozenset[str] = frozenset()
    unknown_before: int | None = None
    is_of_last: bool = False

    @classmethod
    def of_no_rows(cls, tables: OutputTables, runs: OutputLog | None) -> _RunsAccount:
        """Read the newest commits to ``runs`` if it is missing or has no rows.

        Raises StorageError if a run has been recorded in the meantime.
        """
        past = _Past() if runs is None else _read_past("runs", runs)
        newest = next((c for c in reversed(past.commits) if changes_content("runs", c)), None)
        if newest is not None and newest.commit_mark is not None and not newest.is_restore:
            raise StorageError.overtaken("runs", tables.place("runs"))
        return cls(_newest_content(reversed(past.commits)), places=_places_in(past.commits))

    @classmethod
    def of(cls, runs: OutputLog, last: LastRun, logs: Mapping[str, OutputLog]) -> _RunsAccount:
        """Read the newest commits up to the version with the last run. ``logs`` has the logs of the outputs."""
        past = _read_past("runs", runs)
        since, places = _newest_content(reversed(past.commits)), _places_in(past.commits)
        # For each version, the foreign commit that changed its rows, or None if runs wrote all of them.
        foreign_in = dict[int, TableCommit | None]()
        newest, foreign = None, None
        for c in past.commits:
            if c.is_restore and c.restored is not None:
                foreign = foreign_in.get(c.restored)
            elif c.is_restore:
                foreign = next((f for f in foreign_in.values() if f is not None), None)
            elif changes_content("runs", c):
                foreign = None if c.commit_mark is not None else c
            foreign_in[c.version] = foreign
            newest = c if changes_content("runs", c) else newest
        if foreign is None and not past.shows_content and not _are_recorded(runs, last, logs):
            return cls(since, places=places, unknown_before=past.oldest)
        writer = None if newest is None or newest.commit_mark is None else newest.commit_mark.run_id
        if newest is None or (foreign is None and writer == last.run_id):
            return cls(since, is_of_last=newest is not None and not newest.is_restore)
        if foreign is None and not newest.is_restore:
            foreign = newest
        own_versions = [
            version for version, c in foreign_in.items() if c is None and foreign and version < foreign.version
        ]
        return cls(since, foreign, max(own_versions, default=None), places)

    def notes(self) -> list[str]:
        """Return the notes that a full run prints on foreign commits to ``runs``."""
        if self.unknown_before is not None:
            finding = f"its log has been cleaned up before version {self.unknown_before}"
            doubt = f"{finding}, and its newest row may be no run's"
            return [f"output.runs: {doubt}; from now on the row of this run counts"]
        if self.foreign is None:
            return []
        finding = f"version {self.foreign.version} ({self.foreign.operation}) was not written by a run"
        return [f"output.runs: {finding}; from now on the row of this run counts"]


def _are_recorded(runs: OutputLog, last: LastRun, logs: Mapping[str, OutputLog]) -> bool:
    """Return whether ``runs`` and each output are the tables of the last run, at its versions or later."""
    recorded_ids = last.table_ids
    # The first run records its row before the table has an id.
    if recorded_ids.get("runs", runs.table_id) != runs.table_id:
        return False
    return all(
        key in logs and recorded_ids.get(key) == logs[key].table_id and logs[key].version >= version
        for key, version in last.output_versions.items()
    )


def _ids(
    tables: OutputTables, last: LastRun, logs: Mapping[str, OutputLog], account: _RunsAccount
) -> dict[str, str]:
    """Return the ids of the existing tables, without a lookup if the log confirms the recorded id.

    Raises OutputError if an id differs from the recorded one.
    """
    ids = {}
    for key, log in logs.items():
        recorded = last.table_ids.get(key)
        if recorded is not None and (account.is_of_last if key == "runs" else _is_of_recorded(last, key, log)):
            ids[key] = recorded
            continue
        ids[key] = log.table_id
        if recorded not in (None, ids[key]):
            raise OutputError.other_table(key, tables.place(key), last.run_id)
    return ids


def _is_of_recorded(last: LastRun, key: str, log: OutputLog) -> bool:
    """Return True if a log has the recorded commit with a run's mark, which no other table has."""
    version, identity = last.output_versions.get(key), last.commit_identities.get(key)
    if version is None or identity is None or not log.is_commit(version, identity):
        return False
    recorded_commit = log.commit(version)
    return recorded_commit is not None and recorded_commit.commit_mark is not None


def _is_of_a_run(table_commit: TableCommit, last: LastRun, places: Collection[str]) -> bool:
    """Return whether a run of this job marked a commit."""
    return table_commit.commit_mark is not None and table_commit.commit_mark.runs in (*places, last.runs)


def _versions(logs: Mapping[str, OutputLog]) -> dict[str, int]:
    return {key: log.version for key, log in logs.items()}
