"""Ways to get the order of runs wrong."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

EXACTLY_ONCE = ("tests/unit/exactly_once/test_what_is_found.py", "tests/unit/exactly_once/test_every_state.py")

MUTANTS = (
    Mutant(
        name="restore-is-maintenance",
        rule="exactly once: a RESTORE counts",
        file="routing/storage/protocol.py",
        before='*("OPTIMIZE", "REORG",',
        after='*("RESTORE", "OPTIMIZE", "REORG",',
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="last-run-before-versions",
        rule="exactly once: versions are read before the last run",
        file="routing/storage/protocol.py",
        before="    found = {key: tables.newest(key) for key in tables.keys}\n    last = tables.last_run()\n",
        after="    last = tables.last_run()\n    found = {key: tables.newest(key) for key in tables.keys}\n",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="no-second-reading",
        rule="exactly once: versions are read again where the last run recorded newer ones",
        file="routing/storage/protocol.py",
        before="            found[key] = tables.newest(key)\n",
        after="            pass\n",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="commits-of-any-time",
        rule="exactly once: commits that came after the versions were read are left alone",
        file="routing/storage/protocol.py",
        before="if c.version <= current]",
        after="]",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="not-alone",
        rule="exactly once: whoever is not alone does not count",
        file="routing/storage/protocol.py",
        before="if any(c.mark is None or c.mark.run_id",
        after="if False and any(c.mark is None or c.mark.run_id",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="restored-is-the-newest",
        rule="exactly once: a restore returns its own commit",
        file="routing/storage/protocol.py",
        before="    return max((c.version for c in since if c.mark == mark), default=current)",
        after="    return max((c.version for c in since), default=current)",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="does-not-look-again",
        rule="exactly once: a run looks again once its row is in",
        file="routing/storage/protocol.py",
        before="return whole, _see_that_it_stands(tables, start, written)",
        after="return whole, ()",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="refused-but-done",
        rule="exactly once: whoever is refused its row does not count",
        file="routing/storage/protocol.py",
        before="if not tables.record(whole, start.run, turn):",
        after="if not tables.record(whole, start.run, turn) and False:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="another-job-is-ours",
        rule="exactly once: only runs of this job are taken back",
        file="routing/storage/protocol.py",
        before='return found.mark.runs in (tables.place("runs"), last.runs)',
        after="return True",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="no-mark-is-ours",
        rule="exactly once: what has no mark is somebody else's",
        file="routing/storage/protocol.py",
        before="return last.table_ids is None and is_bare",
        after="return is_bare",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="any-commit-of-that-number",
        rule="exactly once: the recorded commit is told by its identity",
        file="routing/storage/protocol.py",
        before="tables.identity(key, recorded) != known:",
        after="tables.identity(key, recorded) is None:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="any-table-there",
        rule="exactly once: a table is told by its id",
        file="routing/storage/protocol.py",
        before="known.get(key, table_id) != table_id:",
        after="known.get(key, table_id) is None:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="runs-from-anybody",
        rule="exactly once: nobody but runs writes to runs",
        file="routing/storage/protocol.py",
        before="if counting and _writer(counting[-1]) != last.run_id:",
        after="if counting and _writer(counting[-1]) == last:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="delete-anywhere",
        rule="exactly once: a DELETE is maintenance only where the pages allow it",
        file="routing/storage/protocol.py",
        before="return key not in _MAY_BE_DELETED_FROM",
        after="return key == _MAY_BE_DELETED_FROM",
        tests=EXACTLY_ONCE,
    ),
)
