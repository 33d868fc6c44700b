"""Commit exactly once: the steps of a run on its outputs, their order, and its reactions to existing content.

A run counts once its row is in ``runs``, and the versions in that row are the truth. Later commits are either
maintenance, or marked by a run that does not count and then rolled back, or made by others. In the last case an
incremental run does not continue. Two runs may do this at the same time, and each may die at any moment.

This is plain Python over `OutputTables`. The tests explore every state of two runs with this code, on a log in
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from routing.delta.job_outputs import (
    DELETE,
    RESTORE,
    RUN,
    CommitMark,
    ErasingTables,
    LastRun,
    MergingTables,
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

    ``ids`` are those of the checked tables. ``left_over`` has the keys of outputs that differ from the last
    recorded run, for example by rows of unfinished runs, each with a phrase on it. They are rolled back before
    anything is read. ``runs_since`` is the version of ``runs`` with the last run. ``thinned`` has the keys of
    outputs with rows deleted since.
    """

    run: CommitMark
    last: LastRun | None
    versions: Mapping[str, int]
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
    # In this order: a run that ends in between has recorded versions that are newer than these, not older.
    newest_versions = {key: tables.newest(key) for key in tables.keys}
    last = tables.last_run(run_id)
    if last is None:
        account = _RunsAccount.of_no_rows(tables)
        unrecorded = _look_at_unrecorded(tables, newest_versions, {run.runs, *account.places})
        return RunStart(run, None, _existing(newest_versions), notes=unrecorded, runs_since=account.since)
    account = _RunsAccount.of(tables, last)
    if account.unknown_before is not None and not is_full:
        raise OutputError.runs_unknown(tables.place("runs"), last.run_id, account.unknown_before)
    if account.foreign is not None and not is_full:
        raise OutputError.runs_changed(
            tables.place("runs"), account.foreign.version, account.foreign.operation, account.restorable
        )
    for key, recorded in last.output_versions.items():
        seen = newest_versions.get(key)
        if seen is None or seen < recorded:
            newest_versions[key] = tables.newest(key)
    ids = _ids(tables, last, newest_versions)
    left_over, notes, thinned = dict[str, str](), account.notes(), set[str]()
    for key, recorded in last.output_versions.items():
        finding = _look_at(tables, last, key, recorded, newest_versions.get(key), account.places)
        if finding.why is not None and not is_full:
            raise OutputError.full_run_needed(key, tables.place(key), finding.why)
        if finding.why is not None:
            notes.append(f"output.{key}: {finding.why}; this run replaces it")
        elif finding.left_over is not None and not is_full:
            left_over[key] = finding.left_over
        if finding.is_thinned:
            thinned.add(key)
    versions = _existing(newest_versions)
    return RunStart(run, last, versions, ids, left_over, tuple(notes), account.since, frozenset(thinned))


def take_back(tables: OutputTables, start: RunStart) -> RunStart:
    """Restore every output that holds something else to its recorded version. Raises StorageError."""
    if start.last is None or not start.left_over:
        return start
    versions, notes = dict(start.versions), list(start.notes)
    for key in sorted(start.left_over):
        recorded = start.last.output_versions[key]
        versions[key] = _bring_back(tables, start.run, key, recorded, versions[key])
        notes.append(f"output.{key} {start.left_over[key]} and was brought back to version {recorded}")
    return replace(start, versions=versions, left_over={}, notes=tuple(notes))


def commit(tables: OutputTables, start: RunStart, key: str, rows: Any, *, adds: bool) -> int:
    """Commit rows to an output, and return the version of this run, in which all new rows are its own.

    Raises StorageError, also if another run wrote there in the meantime, such as another attempt at this one.
    """
    tables.put(key, rows, start.run, adds=adds)
    return _own_version(tables, start, key)


def merge(tables: MergingTables, start: RunStart, key: str, rows: Any, on: Sequence[str]) -> int:
    """Merge rows into an output by their key, and return the version as `commit` does. Raises StorageError."""
    tables.merge(key, rows, start.run, on)
    return _own_version(tables, start, key)


def replace_where(tables: MergingTables, start: RunStart, key: str, rows: Any, where: str) -> int:
    """Replace the rows of an output for which a condition holds; returns the version as `commit` does."""
    tables.replace(key, rows, start.run, where)
    return _own_version(tables, start, key)


def erase(tables: ErasingTables, start: RunStart, key: str, rows: Any) -> tuple[int, int]:
    """Delete rows from an output, and return this run's version and the number of deleted rows.

    Like every commit of a run, it counts with the row in ``runs``. Otherwise the next run rolls it back. Raises
    StorageError as `commit` does.
    """
    count = tables.erase(key, rows, start.run)
    return _own_version(tables, start, key), count


def _own_version(tables: OutputTables, start: RunStart, key: str) -> int:
    since = _own_commits(tables, start, key)
    # Delta leaves out a commit that changes nothing; a new table has one in any case.
    return max(
        (c.version for c in since if c.commit_mark == start.run), default=max(start.versions.get(key, -1), 0)
    )


def finish(
    tables: OutputTables, start: RunStart, written: Mapping[str, int], row: ReadRow
) -> tuple[TableRow, tuple[str, ...]]:
    """Record a run in ``runs``, and check that its outputs still have its rows.

    Returns the recorded row and notes. ``written`` has the versions of this run. ``row`` has table_ids and
    commit_identities of inputs by key, and those of the outputs are added here. Raises StorageError if another run
    was faster.
    """
    for key in written:
        _own_commits(tables, start, key)
    ids = {key: start.ids.get(key) or tables.table_id(key) for key in (*tables.keys, "runs")}
    identities = {key: tables.identity(key, version) for key, version in written.items()}
    whole = {
        **row,
        "table_ids": {**row["table_ids"], **_without_missing(ids)},
        "commit_identities": {**row["commit_identities"], **_without_missing(identities)},
    }
    if not _record(tables, start, whole):
        raise StorageError.overtaken("runs", tables.place("runs"))
    return whole, _see_that_it_stands(tables, start, written)


def _record(tables: OutputTables, start: RunStart, row: ReadRow) -> bool:
    """Add the row of a run. Return False if another run has been recorded since this one began.

    A RESTORE, a DELETE or a backup removes rows from ``runs``, but not the turns of these runs. All runs that
    continue from there then have separate turns.
    """
    turn = FIRST_TURN if start.last is None else start.last.turn
    if tables.record(row, start.run, turn):
        return True
    if _newest_content(tables.history("runs")) != start.runs_since:
        return False
    return tables.record(row, start.run, turn, start.runs_since)


def _own_commits(tables: OutputTables, start: RunStart, key: str) -> list[TableCommit]:
    """Return the commits to an output since a run began. Raises StorageError where one is not the run's.

    Raises StorageError where others' rows are among it.
    """
    since = tables.commits(key, start.versions.get(key, -1))
    if any(not start.run.is_of_one_writer(c.commit_mark) for c in since if changes_content(key, c)):
        raise StorageError.overtaken(key, tables.place(key))
    return since


def settled_version(read_commits: Callable[[str, int], Sequence[TableCommit]], key: str, recorded: int) -> int:
    """Return the version with the result of a run: the recorded one, or that of maintenance right after it.

    ``read_commits`` returns the commits to an output after a version, or raises HistoryGap.
    """
    try:
        since = read_commits(key, recorded)
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
    touched = {
        key
        for key, version in written.items()
        if any(changes_content(key, c) for c in tables.commits(key, version))
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
        elif finding.left_over is not None and current is not None:
            _bring_back(tables, start.run, key, written[key], current)
            notes.append(f"output.{key} was changed by a run that does not count, and was brought back")
    return tuple(notes)


def _bring_back(tables: OutputTables, run: CommitMark, key: str, version: int, current: int) -> int:
    """Restore a version by a marked commit, and return the version of that commit."""
    restore_mark = replace(run, kind=RESTORE, version=version)
    tables.restore(key, version, restore_mark)
    since = tables.commits(key, current)
    return max((c.version for c in since if c.commit_mark == restore_mark), default=current)


def _look_at(
    tables: OutputTables,
    last: LastRun,
    key: str,
    recorded: int,
    current: int | None,
    places: Collection[str] = (),
) -> _Finding:
    """Judge an output by its commits since a run recorded it. ``places`` is as in `_RunsAccount`."""
    if current is None:
        return _Finding(f"the rows of run {last.run_id!r} no longer exist")
    if current < recorded:
        return _Finding(f"version {recorded} of run {last.run_id!r} no longer exists: the table was restored")
    try:
        since = [c for c in tables.commits(key, recorded) if c.version <= current]
    except HistoryGap as gap:
        return _Finding(str(gap))
    recorded_identity = last.commit_identities.get(key)
    if recorded_identity is not None and tables.identity(key, recorded) != recorded_identity:
        return _Finding(
            f"version {recorded} is not the one that run {last.run_id!r} wrote: the table was restored"
        )
    finding = _content_after(
        since, key, recorded, lambda c: _is_of_a_run(c, last, {tables.place("runs"), *places})
    )
    return replace(finding, is_thinned=any(c.operation == DELETE for c in since))


def _content_after(
    since: Iterable[TableCommit], key: str, recorded: int, is_of_a_run: Callable[[TableCommit], bool]
) -> _Finding:
    """Judge the content of an output after the commits since a recorded version, which hold whole versions.

    A RESTORE brings in no row that was not there before: its content decides, not its author.
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
        # To a time, which may be that of any version.
        foreign = next((finding for finding in holds.values() if finding.why is not None), None)
        return foreign or _Finding(left_over="had been restored to another time")
    return holds.get(version, _Finding(left_over=f"had been restored to version {version}"))


def _look_at_unrecorded(
    tables: OutputTables, newest_versions: Mapping[str, int | None], places: Collection[str]
) -> tuple[str, ...]:
    """Return notes on content of the outputs before any recorded run. Raises OutputError for another job's.

    ``places`` has the locations of this job's table ``runs``.
    """
    notes = []
    for key, version in newest_versions.items():
        past = _Past() if version is None else _read_past(tables, key)
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


def _read_past(tables: OutputTables, key: str, newest: int | None = None) -> _Past:
    """Read the commits to a table back to the newest content of a run. ``newest`` is the version to start at.

    After a RESTORE, the content is that of an older version, or of any version for a RESTORE to a time.
    """
    past = list[TableCommit]()
    content_of, is_of_any_time, shows_content = newest, False, False
    for c in tables.history(key):
        if newest is not None and c.version > newest:
            continue
        past.append(c)
        shows_content |= c.version == 0
        if is_of_any_time or not changes_content(key, c) or (content_of is not None and c.version > content_of):
            continue
        if c.is_restore and c.commit_mark is None:
            content_of, is_of_any_time = c.restored, c.restored is None
            continue
        shows_content = True
        # What nobody has marked may be a change of rows that a run wrote.
        if c.commit_mark is not None:
            break
    return _Past(tuple(reversed(past)), shows_content or not past)


_NOT_IN_LOG = -1


def _newest_content(newest_first: Iterable[TableCommit]) -> int | None:
    """Return the version of the last commit to ``runs`` apart from maintenance.

    Returns None without any, and `_NOT_IN_LOG` if the log has been cleaned up that far.
    """
    oldest = 0
    for c in newest_first:
        if changes_content("runs", c):
            return c.version
        oldest = c.version
    return None if oldest == 0 else _NOT_IN_LOG


def _places_in(commits: Iterable[TableCommit]) -> frozenset[str]:
    """Return where the runs that made these commits to ``runs`` had that table."""
    return frozenset(c.commit_mark.runs for c in commits if c.commit_mark is not None)


@dataclass(frozen=True)
class _RunsAccount:
    """The state of ``runs``. A run continues from its newest row.

    ``since`` is the version of the newest commit that counts. ``foreign`` is the commit that changed the rows of
    runs, and ``restorable`` is the newest earlier version with these rows. ``places`` has the locations of
    ``runs`` in the marks of runs with missing rows, because the tables may have been moved. ``unknown_before`` is
    the oldest version in the log if the writer of the newest row is unknown.
    """

    since: int | None
    foreign: TableCommit | None = None
    restorable: int | None = None
    places: frozenset[str] = frozenset()
    unknown_before: int | None = None

    @classmethod
    def of_no_rows(cls, tables: OutputTables) -> _RunsAccount:
        """Read the newest commits of a table that has lost its rows, or is not there.

        Raises StorageError where a run counts that had no row before.
        """
        past = _Past() if tables.newest("runs") is None else _read_past(tables, "runs")
        newest = next((c for c in reversed(past.commits) if changes_content("runs", c)), None)
        if newest is not None and newest.commit_mark is not None and not newest.is_restore:
            raise StorageError.overtaken("runs", tables.place("runs"))
        return cls(_newest_content(reversed(past.commits)), places=_places_in(past.commits))

    @classmethod
    def of(cls, tables: OutputTables, last: LastRun) -> _RunsAccount:
        """Read the newest commits, up to the version in which the last run was found."""
        past = _read_past(tables, "runs", last.read_at)
        since, places = _newest_content(reversed(past.commits)), _places_in(past.commits)
        # By version the commit that no run made; None where the rows are those of runs.
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
        if foreign is None and not past.shows_content and not _are_recorded(tables, last):
            return cls(since, places=places, unknown_before=past.oldest)
        writer = None if newest is None or newest.commit_mark is None else newest.commit_mark.run_id
        if newest is None or (foreign is None and writer == last.run_id):
            return cls(since)
        if foreign is None and not newest.is_restore:
            foreign = newest
        own_versions = [
            version for version, c in foreign_in.items() if c is None and foreign and version < foreign.version
        ]
        return cls(since, foreign, max(own_versions, default=None), places)

    def notes(self) -> list[str]:
        """Return the notes that a full run prints on foreign commits to ``runs``."""
        if self.unknown_before is not None:
            what = f"its log has been cleaned up before version {self.unknown_before}"
            doubt = f"{what}, and its newest row may be no run's"
            return [f"output.runs: {doubt}; from now on the row of this run counts"]
        if self.foreign is None:
            return []
        what = f"version {self.foreign.version} ({self.foreign.operation}) was not written by a run"
        return [f"output.runs: {what}; from now on the row of this run counts"]


def _are_recorded(tables: OutputTables, last: LastRun) -> bool:
    """Return whether ``runs`` and each output are the tables that the last run recorded, not older than then."""
    recorded_ids = last.table_ids
    runs_id = tables.table_id("runs")
    # The first run records its row before the table has an id.
    if recorded_ids.get("runs", runs_id) != runs_id:
        return False
    if any(recorded_ids.get(key) != tables.table_id(key) for key in last.output_versions):
        return False
    newest_versions = {key: tables.newest(key) for key in last.output_versions}
    return all((newest_versions[key] or 0) >= version for key, version in last.output_versions.items())


def _ids(tables: OutputTables, last: LastRun, newest_versions: Mapping[str, int | None]) -> dict[str, str]:
    """Return the ids of the tables that are there.

    Raises OutputError where one is another than the recorded one.
    """
    recorded_ids = last.table_ids
    ids = _without_missing({key: tables.table_id(key) for key in ("runs", *_existing(newest_versions))})
    for key, table_id in ids.items():
        if recorded_ids.get(key, table_id) != table_id:
            raise OutputError.other_table(key, tables.place(key), last.run_id)
    return ids


def _is_of_a_run(table_commit: TableCommit, last: LastRun, places: Collection[str]) -> bool:
    """Return whether a run of this job marked a commit."""
    return table_commit.commit_mark is not None and table_commit.commit_mark.runs in (*places, last.runs)


def _existing(newest_versions: Mapping[str, int | None]) -> dict[str, int]:
    return {key: version for key, version in newest_versions.items() if version is not None}


def _without_missing(texts: Mapping[str, str | None]) -> dict[str, str]:
    return {key: text for key, text in texts.items() if text is not None}
