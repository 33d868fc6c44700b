"""Mutants of the order of runs."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

EXACTLY_ONCE = ("tests/unit/exactly_once/test_what_is_found.py", "tests/unit/exactly_once/test_every_state.py")

MUTANTS = (
    Mutant(
        name="restore-is-maintenance",
        rule="exactly once: a RESTORE counts",
        file="routing/delta/job_outputs.py",
        before='*("OPTIMIZE", "REORG",',
        after='*("RESTORE", "OPTIMIZE", "REORG",',
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="last-run-before-versions",
        rule="exactly once: versions are read before the last run",
        file="routing/delta/protocol.py",
        before="    newest_versions = {key: tables.newest(key) for key in tables.keys}\n"
        "    last = tables.last_run(run_id)",
        after="    last = tables.last_run(run_id)\n"
        "    newest_versions = {key: tables.newest(key) for key in tables.keys}",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="commits-of-any-time",
        rule="exactly once: commits that came after the versions were read are left alone",
        file="routing/delta/protocol.py",
        before="if c.version <= current]",
        after="]",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="not-alone",
        rule="exactly once: whoever is not alone does not count",
        file="routing/delta/protocol.py",
        before="if any(not start.run.is_of_one_writer(",
        after="if False and any(not start.run.is_of_one_writer(",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="attempts-of-one-id-are-one",
        rule="exactly once: two attempts at one run are two writers",
        file="routing/delta/job_outputs.py",
        before="(self.run_id, self.attempt) == (other.run_id, other.attempt)",
        after="self.run_id == other.run_id",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="restored-is-the-newest",
        rule="exactly once: a restore returns its own commit",
        file="routing/delta/protocol.py",
        before="    return max((c.version for c in since if c.commit_mark == restore_mark), default=current)",
        after="    return max((c.version for c in since), default=current)",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="does-not-look-again",
        rule="exactly once: a run looks again once its row is in",
        file="routing/delta/protocol.py",
        before="return whole, _see_that_it_stands(tables, start, written)",
        after="return whole, ()",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="refused-but-done",
        rule="exactly once: whoever is refused its row does not count",
        file="routing/delta/protocol.py",
        before="if not _record(tables, start, whole):",
        after="if not _record(tables, start, whole) and False:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="turns-of-runs-that-are-gone",
        rule="exactly once: a run counts although its turn was that of a run whose row is gone",
        file="routing/delta/protocol.py",
        before='    if _newest_content(tables.history("runs")) != start.runs_since:',
        after="    if start.run is not None:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="two-of-one-turn",
        rule="exactly once: of two runs that go on from one row of runs one counts",
        file="routing/delta/protocol.py",
        before='    if _newest_content(tables.history("runs")) != start.runs_since:',
        after="    if start.run is None:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="any-restore-is-what-was-recorded",
        rule="exactly once: a RESTORE to another version than the recorded one is taken back",
        file="routing/delta/protocol.py",
        before="return holds.get(version, _Finding(",
        after="return _Finding() or holds.get(version, _Finding(",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="another-job-is-ours",
        rule="exactly once: only runs of this job are taken back",
        file="routing/delta/protocol.py",
        before="table_commit.commit_mark is not None and table_commit.commit_mark.runs in (*places, last.runs)",
        after="table_commit.commit_mark is not None",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="no-mark-is-ours",
        rule="exactly once: what has no mark is somebody else's",
        file="routing/delta/protocol.py",
        before="return table_commit.commit_mark is not None and table_commit.commit_mark.runs in",
        after="return table_commit.commit_mark is None or table_commit.commit_mark.runs in",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="any-commit-of-that-number",
        rule="exactly once: the recorded commit is told by its identity",
        file="routing/delta/protocol.py",
        before="tables.identity(key, recorded) != recorded_identity:",
        after="tables.identity(key, recorded) is None:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="any-table-there",
        rule="exactly once: a table is told by its id",
        file="routing/delta/protocol.py",
        before="recorded_ids.get(key, table_id) != table_id:",
        after="recorded_ids.get(key, table_id) is None:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="runs-from-anybody",
        rule="exactly once: nobody but runs writes to runs",
        file="routing/delta/protocol.py",
        before="if newest is None or (foreign is None and writer == last.run_id):",
        after="if newest is None or foreign is None:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="delete-anywhere",
        rule="exactly once: a DELETE is maintenance only where the pages allow it",
        file="routing/delta/job_outputs.py",
        before="return key not in _MAY_BE_DELETED_FROM",
        after="return key == _MAY_BE_DELETED_FROM",
        tests=EXACTLY_ONCE,
    ),
)
