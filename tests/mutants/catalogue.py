"""Ways to get a rule, or the order of runs, wrong: each a small change of the package's text."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

# The worked cases first: they see most breaks. The random estates are few, and at one decision time.
RULES = (
    "tests/spark/test_cases.py",
    "tests/spark/test_random_estates.py::test_random_estates_agree[as_of-0]",
)
EXACTLY_ONCE = ("tests/unit/exactly_once/test_what_is_found.py", "tests/unit/exactly_once/test_every_state.py")


@dataclass(frozen=True)
class Mutant:
    """A rule and the change that breaks it: ``before``, which stands once in ``file``, becomes ``after``.

    ``tests`` must see it.
    """

    name: str
    rule: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...] = RULES

    def applied(self, root: Path) -> str:
        """The file's text with the change made. Raises ValueError where the list no longer fits the code."""
        text = (root / self.file).read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: {text.count(self.before)} times in {self.file}: {self.before!r}")
        changed = text.replace(self.before, self.after)
        ast.parse(changed, self.file)
        return changed


MUTANTS = (
    Mutant(
        name="initiator-is-a-reply",
        rule="1: only the target's message from outside is a reply",
        file="routing/locating.py",
        before="comes_back = is_from_network & ~is_initiator",
        after="comes_back = is_from_network",
    ),
    Mutant(
        name="step-2-takes-any-broker",
        rule="2.2: the route has no broker instance",
        file="routing/matching.py",
        before="return names_service(message, route) & route.broker.isNull()",
        after="return names_service(message, route)",
    ),
    Mutant(
        name="bound-message-is-balanced",
        rule="2.3: only an open message is balanced",
        file="routing/matching.py",
        before="route.broker.isNotNull() & message.broker.isNull()",
        after="route.broker.isNotNull()",
    ),
    Mutant(
        name="local-before-mirror",
        rule="3: routes with a mirror address come before LOCAL ones",
        file="routing/choosing.py",
        before="        F.when(mirrored, Tier.MIRROR.value)\n        .when(local, Tier.LOCAL.value)",
        after="        F.when(local, Tier.LOCAL.value)\n        .when(mirrored, Tier.MIRROR.value)",
    ),
    Mutant(
        name="local-without-destination",
        rule="3, D6: a LOCAL route is usable only where the destination is located",
        file="routing/choosing.py",
        before='route: route["kind"] == LOCAL_ADDRESS) & is_located',
        after='route: route["kind"] == LOCAL_ADDRESS)',
    ),
    Mutant(
        name="disabled-database-receives",
        rule="4: a database whose broker is off is passed over",
        file="routing/locating.py",
        before='able = F.filter(candidates, lambda holder: holder["is_enabled"])',
        after="able = candidates",
    ),
    Mutant(
        name="route-starts-late",
        rule="0: a route is in force from valid_from on, that moment included",
        file="routing/intervals.py",
        before="start <= valid_from",
        after="start < valid_from",
    ),
    Mutant(
        name="request-pends-at-its-end",
        rule="5: a request is pending until ended_at, that moment not included",
        file="routing/requests.py",
        before='(t < request["ended_at"])',
        after='(t <= request["ended_at"])',
    ),
    Mutant(
        name="acknowledged-too-late",
        rule="0: a dialog is bound from acknowledged_at on, that moment included",
        file="routing/keys.py",
        before='F.col("acknowledged_at") <= t',
        after='F.col("acknowledged_at") < t',
    ),
    Mutant(
        name="one-hop-too-many",
        rule="3: a message with no hops left is not forwarded",
        file="routing/resolving.py",
        before='F.col("hops_remaining") <= 0',
        after='F.col("hops_remaining") < 0',
    ),
    Mutant(
        name="restore-is-maintenance",
        rule="exactly once: a RESTORE counts",
        file="routing/protocol.py",
        before='*("OPTIMIZE", "REORG",',
        after='*("RESTORE", "OPTIMIZE", "REORG",',
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="last-run-before-versions",
        rule="exactly once: versions are read before the last run",
        file="routing/protocol.py",
        before="    found = {key: tables.newest(key) for key in tables.keys}\n    last = tables.last_run()\n",
        after="    last = tables.last_run()\n    found = {key: tables.newest(key) for key in tables.keys}\n",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="no-second-reading",
        rule="exactly once: versions are read again where the last run recorded newer ones",
        file="routing/protocol.py",
        before="            found[key] = tables.newest(key)\n",
        after="            pass\n",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="commits-of-any-time",
        rule="exactly once: commits that came after the versions were read are left alone",
        file="routing/protocol.py",
        before="if c.version <= current]",
        after="]",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="not-alone",
        rule="exactly once: whoever is not alone does not count",
        file="routing/protocol.py",
        before="if any(c.mark is None or c.mark.run_id",
        after="if False and any(c.mark is None or c.mark.run_id",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="restored-is-the-newest",
        rule="exactly once: a restore returns its own commit",
        file="routing/protocol.py",
        before="    return max((c.version for c in since if c.mark == mark), default=current)",
        after="    return max((c.version for c in since), default=current)",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="does-not-look-again",
        rule="exactly once: a run looks again once its row is in",
        file="routing/protocol.py",
        before="return whole, _see_that_it_stands(tables, start, written)",
        after="return whole, ()",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="refused-but-done",
        rule="exactly once: whoever is refused its row does not count",
        file="routing/protocol.py",
        before="if not tables.record(whole, start.run, turn):",
        after="if not tables.record(whole, start.run, turn) and False:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="another-job-is-ours",
        rule="exactly once: only runs of this job are taken back",
        file="routing/protocol.py",
        before='return found.mark.runs in (tables.place("runs"), last.runs)',
        after="return True",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="no-mark-is-ours",
        rule="exactly once: what has no mark is somebody else's",
        file="routing/protocol.py",
        before="return last.table_ids is None and is_bare",
        after="return is_bare",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="any-commit-of-that-number",
        rule="exactly once: the recorded commit is told by its identity",
        file="routing/protocol.py",
        before="tables.identity(key, recorded) != known:",
        after="tables.identity(key, recorded) is None:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="any-table-there",
        rule="exactly once: a table is told by its id",
        file="routing/protocol.py",
        before="known.get(key, table_id) != table_id:",
        after="known.get(key, table_id) is None:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="runs-from-anybody",
        rule="exactly once: nobody but runs writes to runs",
        file="routing/protocol.py",
        before="if counting and _writer(counting[-1]) != last.run_id:",
        after="if counting and _writer(counting[-1]) == last:",
        tests=EXACTLY_ONCE,
    ),
    Mutant(
        name="delete-anywhere",
        rule="exactly once: a DELETE is maintenance only where the pages allow it",
        file="routing/protocol.py",
        before="return key not in _MAY_BE_DELETED_FROM",
        after="return key == _MAY_BE_DELETED_FROM",
        tests=EXACTLY_ONCE,
    ),
)
