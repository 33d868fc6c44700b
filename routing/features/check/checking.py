"""Check files: from PATHs to what becomes of each message that waits, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from routing.features.check.bearing_findings import BearingFindings, LintFindings, count_severities, find_findings
from routing.features.check.evidence import FileEvidence, gather, try_scripts
from routing.features.check.gaps import EstateKnowledge
from routing.features.check.grouping import MessageGroup, group
from routing.features.check.message_results import CheckedEstate, MessageResult, decide_all
from routing.features.check.missing_knowledge import KnowledgeGap
from routing.features.check.path_following import follow_results
from routing.features.check.sources import PLAIN_TIMES, FileOptions
from routing.features.lint.lint_finding import LintFinding
from routing.importing.catalog import StandIns, TimeFormats
from routing.tables.times import micros_of, moment_of


@dataclass(frozen=True)
class Check:
    """The results of all waiting messages, by files.

    ``at``: the one time that was asked for. ``estate``: what was read, and each instance's time. ``results``: one
    for each message. ``tried``: the same messages in the same order with scripts in force; None where none was to
    be tried.
    """

    at: datetime | None
    estate: CheckedEstate
    results: Sequence[MessageResult]
    tried: Check | None = None

    @property
    def evidence(self) -> FileEvidence:
        """What was read."""
        return self.estate.evidence

    @cached_property
    def groups(self) -> list[MessageGroup]:
        """The messages in groups, those first that need somebody."""
        return group(self.estate, self.results)

    @property
    def knowledge(self) -> EstateKnowledge:
        """What is known of what was read."""
        return self.estate.knowledge

    @cached_property
    def gaps(self) -> list[KnowledgeGap]:
        """What is not known."""
        return self.knowledge.list_gaps()

    @cached_property
    def findings(self) -> Sequence[LintFinding]:
        """lint's findings that bear on messages which are not simply on their way, the worst first."""
        met = {finding for one in self.groups if one.needs_somebody for finding in self.findings_on(one)}
        return [one for one in (*self._lint.certain, *self._lint.uncertain) if one in met]

    def findings_on(self, group: MessageGroup) -> Sequence[LintFinding]:
        """Return lint's findings about what the messages of a group meet, the worst first."""
        return self._bearing.on(group)

    @cached_property
    def _bearing(self) -> BearingFindings:
        return BearingFindings(self._lint)

    @property
    def other_findings(self) -> Counter[str]:
        """How many others lint has, by severity."""
        return count_severities(set(self.every_finding) - set(self.findings))

    @property
    def outcomes(self) -> Counter[str]:
        """How many messages have each outcome, NOT_KNOWN among them."""
        return Counter(result.outcome for result in self.results)

    @property
    def ends(self) -> Counter[str]:
        """How many messages have each end (`MessageResult.end`)."""
        return Counter(result.end for result in self.results)

    @property
    def every_finding(self) -> Sequence[LintFinding]:
        """All findings of lint in what was read, the worst first, except those that rest on missing views."""
        return self._lint.certain

    @cached_property
    def _lint(self) -> LintFindings:
        return find_findings(self.estate)


def check(
    paths: Sequence[str],
    *,
    instance: str | None = None,
    database: str | None = None,
    exported_at: datetime | None = None,
    times: TimeFormats = PLAIN_TIMES,
    variables: Mapping[str, str] | None = None,
    addresses: Sequence[str] = (),
    at: datetime | None = None,
    then: Sequence[str] = (),
    clock: datetime | None = None,
) -> Check:
    """Decide every message of the transmission queues among exports and scripts (docs/how-to/check.md).

    ``paths`` are files and folders; ``instance``, ``database``, ``exported_at``, ``times`` and ``addresses`` say
    what files do not, ``variables`` are sqlcmd's. All messages of an instance are decided as of its newest export,
    or ``at`` (UTC where it has no zone). ``then`` are scripts to try: everything is decided again with them in
    force. ``clock`` is the time of now: a note names what says that it is of a later time. Raises InputError where
    no queue is among the files, one cannot be read, or nothing tells whose a script is.
    """
    options = FileOptions(
        StandIns(instance, database, exported_at), times, variables or {}, addresses, clock=clock
    )
    evidence = gather(paths, options)
    estate = CheckedEstate.of(evidence, _times(evidence, at))
    results = follow_results(estate, decide_all(estate))
    return Check(at, estate, results, _try(estate, then, options, at) if then else None)


def _times(evidence: FileEvidence, at: datetime | None) -> dict[str, int]:
    """Return when each instance's messages are decided; one known from scripts alone has the newest time."""
    newest = {name: at or evidence.newest(name) for name in evidence.instances}
    last = max(time for time in newest.values() if time is not None)
    return {name: micros_of(time or last) for name, time in newest.items()}


def _try(estate: CheckedEstate, then: Sequence[str], options: FileOptions, at: datetime | None) -> Check:
    """Decide the messages once more, with scripts in force as of the newest time of all."""
    last = max(estate.times.values())
    evidence = try_scripts(estate.evidence, then, options, moment_of(last))
    changed = CheckedEstate.of(evidence, {**dict.fromkeys(evidence.instances, last), **estate.times})
    return Check(at, changed, follow_results(changed, decide_all(changed)))
