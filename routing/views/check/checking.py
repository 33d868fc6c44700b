"""Check files: read PATHs, decide each waiting message, and find the actions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import product

from routing.advice.estate_troubles import find_brokers_off, find_troubles
from routing.advice.remedy import EstateTrouble, TroubleKind, withhold_refused
from routing.advice.stuck_messages import AdviceEstate
from routing.cases.evidence import FileEvidence, gather, try_scripts
from routing.cases.exported_files import FileOptions, no_queue
from routing.cases.judged_questions import RemedyFacts
from routing.cases.known_estate import EstateKnowledge, KnowledgeGap, gaps_on
from routing.cases.message_cases import CheckedEstate, MessageResult, decide_all
from routing.cases.near_misses import NearMiss
from routing.cases.path_following import APART, follow_results
from routing.importing.catalog import StandIns, TimeFormats
from routing.importing.catalog.typed_rows import PLAIN_TIMES
from routing.lint.catalogue import BY_CODE, Severity
from routing.lint.file_linting import FileKnowledge
from routing.lint.lint_estate import LintFinding
from routing.lint.lint_settings import DEFAULT_DAYS
from routing.lint.linting import find_all
from routing.lint.server_rules import find_in_servers
from routing.render.phrases import quote_name
from routing.render.wording import format_time
from routing.rules.following import PathHop
from routing.rules.judging import JudgedPath
from routing.rules.resolving import Verdict
from routing.rules.timeline import micros_of, moment_of
from routing.terms import Reason
from routing.views.check.grouping import MessageGroup, group
from routing.views.check.trial import Trial, forget_statuses

_LOST_REQUESTS, _NEEDLESS_REQUESTS = "SBR043", "SBR033"
_OF_BROKERS = ("SBR012", "SBR013", "SBR014")
_OF_ONE_DIALOG = "Conversation ID"
_Place = tuple[str | None, str | None, str | None]
_WORST_FIRST = {severity: place for place, severity in enumerate(Severity)}


def find_findings(estate: CheckedEstate) -> LintFindings:
    """Return all findings, as of the newest time at which messages are decided."""
    now = max(estate.times.values())
    findings = {
        *find_all(estate.evidence.columns, now),
        *find_in_servers(estate.evidence.server, now, DEFAULT_DAYS),
    }
    ordered = sorted(
        findings, key=lambda finding: (_WORST_FIRST[severity_of(finding)], *(str(part) for part in finding))
    )
    file_knowledge = FileKnowledge(estate.knowledge)
    certain: list[LintFinding] = []
    uncertain: list[LintFinding] = []
    for finding in ordered:
        (uncertain if file_knowledge.gaps_behind(finding) else certain).append(finding)
    return LintFindings(certain, uncertain)


def severity_of(finding: LintFinding) -> Severity:
    """Return the rank of a finding's severity."""
    return BY_CODE[finding.code].severity


class LintFindings:
    """Findings of lint, the worst first: the certain ones, then those that depend on missing exports.

    Groups find them by their objects, except defaults of every instance.
    """

    def __init__(self, certain: Sequence[LintFinding], uncertain: Sequence[LintFinding]) -> None:
        self.certain, self.all = certain, (*certain, *uncertain)
        self._findings = [finding for finding in self.all if not BY_CODE[finding.code].is_default]
        self._uncertain = set(uncertain)
        self._by_place: dict[_Place, list[int]] = defaultdict(list)
        self._by_broker: dict[str, list[int]] = defaultdict(list)
        self._by_group: dict[int, list[LintFinding]] = {}
        self._by_near: dict[Sequence[NearMiss], frozenset[int]] = {}
        # Ids of objects are unique here, because the groups and their paths live as long as this object.
        self._by_path: dict[int, tuple[set[int], set[tuple[str, str | None]]]] = {}
        for number, finding in enumerate(self._findings):
            self._by_place[finding.instance_name, finding.database_name, finding.object].append(number)
            if finding.code in (_LOST_REQUESTS, _NEEDLESS_REQUESTS):
                # Messages that wait for a route have no route, so they are found by the code.
                self._by_place[finding.instance_name, finding.database_name, finding.code].append(number)
            if finding.code in _OF_BROKERS and finding.object is not None:
                # The finding has the first of the databases with that id.
                self._by_broker[finding.object].append(number)

    def findings_on(self, group: MessageGroup) -> list[LintFinding]:
        """Return the findings about objects on the paths of a group there and back, the worst first.

        Findings that depend on missing exports count if the reason of stuck messages is certain.
        """
        if id(group) not in self._by_group:
            self._by_group[id(group)] = list(self._find_bearing(group))
        return self._by_group[id(group)]

    def _find_bearing(self, group: MessageGroup) -> Iterator[LintFinding]:
        numbers = self._at(_own_places(group, _names(group) & self._objects)) | self._near(group.near_misses)
        if group.path is not None:
            sender = group.first.row.get("from_service_name")
            names = {group.case.service, sender, *group.broker_instances} & self._objects
            numbers |= self._on_path(group.path, names)
        numbers |= {number for broker in _brokers(group) for number in self._by_broker.get(broker, ())}
        for finding in (self._findings[number] for number in sorted(numbers)):
            # Even if a message certainly waits for a route, the path of its request may be uncertain.
            if finding not in self._uncertain or (_is_known(group) and finding.code != _LOST_REQUESTS):
                yield finding

    def _at(self, places: Iterable[_Place]) -> set[int]:
        return {number for place in set(places) for number in self._by_place.get(place, ())}

    def _near(self, near: Sequence[NearMiss]) -> frozenset[int]:
        """Return the findings about near misses of messages. Groups with equal near misses share the result."""
        if near not in self._by_near:
            places = ((miss.instance, miss.database, name) for miss in near for name in (miss.name, miss.service))
            self._by_near[near] = frozenset(self._at(places))
        return self._by_near[near]

    def _on_path(self, path: JudgedPath, names: Collection[str | None]) -> set[int]:
        """Return the findings about objects on a path. Groups share paths, but not these names of objects."""
        if id(path) not in self._by_path:
            hops = [hop for possible_path in path.all_paths for hop in possible_path.hop_path.hops]
            self._by_path[id(path)] = self._at(_places_on(hops)), _databases_on(hops)
        numbers, databases = self._by_path[id(path)]
        return self._at((instance, database, name) for instance, database in databases for name in names) | numbers

    @cached_property
    def _objects(self) -> frozenset[str | None]:
        return frozenset(name for _, _, name in self._by_place)


def _is_known(group: MessageGroup) -> bool:
    """Return True if all that decides was read of messages that are stuck, at home or on their path."""
    if group.path is None:
        return group.verdict is not None and not group.case.is_on_its_way
    return group.case.is_failing and not gaps_on(group.path)


def _own_places(group: MessageGroup, names: Collection[str | None]) -> Iterator[_Place]:
    """Yield instance, database and name of each object at their sender that messages may use."""
    case = group.case
    databases = {None, case.database, case.scope}
    yield from ((case.instance, database, name) for database, name in product(databases, names))


def _places_on(hops: Iterable[PathHop]) -> Iterator[_Place]:
    """Yield instance, database and name of every object that any message passes on hops."""
    for hop in hops:
        if hop.reason is Reason.ROUTE_REQUESTED:
            yield from ((hop.instance_name, hop.scope, code) for code in _codes_of_requests(hop.verdict))
        scopes = {None, hop.scope, *_databases_at(hop)}
        names = {*scopes, hop.route_name, hop.address, hop.rerouted_from}
        yield from ((hop.instance_name, database, name) for database, name in product(scopes, names))


def _databases_on(hops: Iterable[PathHop]) -> set[tuple[str, str | None]]:
    """Return the databases on hops with their instances. None is the instance itself."""
    return {(hop.instance_name, database) for hop in hops for database in (None, hop.scope, *_databases_at(hop))}


def _databases_at(hop: PathHop) -> Iterator[str]:
    decision = None if hop.verdict is None else hop.verdict.decision
    if decision is not None:
        yield decision.first.scope
        yield from (holder.name for holder in decision.last.holders)


def _brokers(group: MessageGroup) -> set[str]:
    return_paths = () if group.path is None else group.path.return_paths
    verdicts = (hop.verdict for possible_path in return_paths for hop in possible_path.hop_path.hops)
    ids = (None if verdict is None else verdict.broker_instance for verdict in verdicts)
    return {broker for broker in (*group.broker_instances, *ids) if broker is not None}


def _names(group: MessageGroup) -> set[str | None]:
    """Return the names that these messages use. None is the whole database or instance."""
    case, verdict = group.case, group.verdict
    names = {None, case.service, case.database, *group.broker_instances}
    if verdict is not None:
        names |= {verdict.route_name, verdict.address, verdict.rerouted_from, verdict.destination_database}
        if verdict.reason is Reason.ROUTE_REQUESTED:
            names.update(_codes_of_requests(verdict))
    return names


def _codes_of_requests(verdict: Verdict | None) -> tuple[str, ...]:
    is_needless = verdict is not None and verdict.decision is not None and bool(verdict.decision.last.holders)
    return (_LOST_REQUESTS, _NEEDLESS_REQUESTS) if is_needless else (_LOST_REQUESTS,)


def count_severities(findings: Iterable[LintFinding]) -> Counter[str]:
    """Write the number of findings of each severity, the worst first."""
    counts = Counter(str(severity_of(finding)) for finding in findings)
    return Counter({str(severity): counts[str(severity)] for severity in Severity if counts[str(severity)]})


@dataclass(frozen=True)
class Check:
    """The results of all waiting messages in files.

    ``at`` is the requested time. ``estate`` has the exports and the time of each instance. ``results`` has one
    item for each message. ``with_scripts`` has the same messages in the same order with the scripts applied, or is
    None without scripts.
    """

    at: datetime | None
    estate: CheckedEstate
    results: Sequence[MessageResult]
    with_scripts: Check | None = None

    @property
    def described(self) -> Check:
        """The state that is described: with the scripts in force, if there are any to try."""
        return self.with_scripts or self

    @cached_property
    def trial(self) -> Trial | None:
        """The changes by scripts, or None without scripts."""
        if self.with_scripts is None:
            return None
        return Trial.of(self.results, self.groups, self.with_scripts.results, self.with_scripts.groups)

    @property
    def evidence(self) -> FileEvidence:
        """The files that were read."""
        return self.estate.evidence

    @cached_property
    def groups(self) -> list[MessageGroup]:
        """The messages in groups, the most urgent first."""
        return group(self.estate, self.results)

    @property
    def knowledge(self) -> EstateKnowledge:
        """The extent of the exports."""
        return self.estate.knowledge

    @cached_property
    def gaps(self) -> list[KnowledgeGap]:
        """The missing exports."""
        return self.knowledge.list_gaps()

    @cached_property
    def findings(self) -> Sequence[LintFinding]:
        """Findings of lint about messages with problems, the worst first."""
        groups = (message_group for message_group in self.groups if message_group.needs_somebody)
        bearing = {finding for message_group in groups for finding in self.findings_on(message_group)}
        return [finding for finding in self._lint.all if finding in bearing]

    def findings_on(self, group: MessageGroup) -> Sequence[LintFinding]:
        """Return the findings of lint about objects on the path of a group, the worst first."""
        return self._lint.findings_on(group)

    @property
    def other_findings(self) -> Counter[str]:
        """The number of other findings of lint by severity."""
        return count_severities(set(self.every_finding) - set(self.findings))

    @property
    def messages(self) -> int | None:
        """The number of messages in the transmission queues, or None if no queue was exported."""
        return len(self.results) if self.evidence.has_queue else None

    @cached_property
    def troubles(self) -> Sequence[EstateTrouble]:
        """The troubles other than waiting messages, without those that a group's remedy covers."""
        facts = RemedyFacts(self.estate.instances, server=self.evidence.server)
        # Without a queue, no status of a message names a broker that is off.
        all_troubles = find_brokers_off(AdviceEstate(facts), in_use_only=self.evidence.has_queue)
        all_troubles += find_troubles(self.evidence.server)
        if not all_troubles:
            return []
        remedies = [advice.remedy for message_group in self.groups for advice in message_group.advice]
        advised = {(remedy.place, remedy.statement or remedy.cause) for remedy in remedies}
        actions = {action for remedy in remedies for action in remedy.actions}
        # Advice on messages may already quote the line of the error log that shows a trouble.
        allowed = ((trouble, withhold_refused(self.evidence.server, trouble.remedy)) for trouble in all_troubles)
        return [
            replace(trouble, remedy=remedy)
            for trouble, remedy in allowed
            if (remedy.place, remedy.statement or remedy.cause) not in advised
            and not (trouble.kind is TroubleKind.TRANSPORT_FAILS and remedy.actions[0] in actions)
            and not self._is_reported(trouble)
        ]

    def _is_reported(self, trouble: EstateTrouble) -> bool:
        """Return True if statuses of messages have all texts by which an error log shows a trouble."""
        texts = self._reported_texts[trouble.remedy.instance] if trouble.logged else ()
        return bool(texts) and all(any(text in line for text in texts) for line in trouble.logged)

    @cached_property
    def _reported_texts(self) -> defaultdict[str, set[str]]:
        """The texts of statuses that are answered, by the instances of their messages and of the answers."""
        texts = defaultdict[str, set[str]](set)
        for message_group in self.groups:
            # The rest of such a text is about one dialog.
            starts = {(status.text or "").partition(_OF_ONE_DIALOG)[0] for status in message_group.status_texts}
            answers = [advice.remedy for advice in message_group.advice if not advice.is_of_routes]
            places = [message_group.case.instance, *(remedy.instance for remedy in answers)]
            for instance in places if answers else ():
                texts[instance] |= starts - {""}
        return texts

    @property
    def outcomes(self) -> Counter[str]:
        """The number of messages with each outcome, including NOT_KNOWN."""
        return Counter(result.case.outcome for result in self.results)

    @property
    def ends(self) -> Counter[str]:
        """The number of messages with each end (`MessageCase.end`)."""
        return Counter(result.case.end for result in self.results)

    @property
    def every_finding(self) -> Sequence[LintFinding]:
        """All findings of lint in the files, the worst first, except findings that depend on missing exports."""
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
    notes: Sequence[str] = (),
    clock: datetime | None = None,
    environment: str | None = None,
    on_progress: Callable[[str], None] = lambda text: None,
) -> Check:
    """Decide every message of the transmission queues among exports and scripts (docs/how-to/check.md).

    ``paths`` are files and folders. ``instance``, ``database``, ``exported_at``, ``times`` and ``addresses``
    complete files that lack them. ``variables`` are those of sqlcmd. The messages of an instance are decided at
    the time of its newest export, or ``at`` (UTC without a zone). ``then`` are scripts to try: everything is
    decided again after them. ``notes`` name inputs that are missing. ``clock`` returns the current time, for notes
    on times in the future. ``environment`` selects the scripts of one environment in folders. ``on_progress`` is
    called with the progress.

    Raises InputError if there is no queue among the files and the other exports show no trouble, if a queue cannot
    be read, or if the instance and database of a script cannot be determined.
    """
    options = FileOptions(
        StandIns(instance, database, exported_at),
        times,
        variables or {},
        addresses,
        clock=clock,
        environment=environment,
    )
    evidence = gather(paths, options)
    evidence = replace(evidence, log=replace(evidence.log, notes=(*notes, *evidence.log.notes)))
    estate = CheckedEstate.of(evidence, _times(evidence, at))
    results = follow_results(estate, decide_all(estate, on_progress), on_progress=on_progress)
    done = Check(at, estate, results, _try(estate, results, then, options, at) if then else None)
    if not evidence.has_queue and not done.troubles:
        raise no_queue(paths, evidence.log.notes[1:])
    return done


def _times(evidence: FileEvidence, at: datetime | None) -> dict[str, int]:
    """Return the decision time of each instance. Instances known only from scripts get the newest time."""
    newest = {name: at or evidence.views.newest(name) for name in evidence.instances}
    last = max(time for time in newest.values() if time is not None)
    return {name: micros_of(time or last) for name, time in newest.items()}


def _try(
    estate: CheckedEstate,
    results: Sequence[MessageResult],
    scripts: Sequence[str],
    options: FileOptions,
    at: datetime | None,
) -> Check:
    last = max(estate.times.values())
    evidence = try_scripts(estate.evidence, scripts, options, moment_of(last))
    changed = CheckedEstate.of(evidence, {**dict.fromkeys(evidence.instances, last), **estate.times})
    return Check(at, changed, forget_statuses(results, follow_results(changed, decide_all(changed))))


_PRESENT = ("routes", "databases", "services", "service_broker_endpoints", "tcp_endpoints")


def find_notes(done: Check) -> list[str]:
    """List the notes on the files and their times. An earlier time uses only dates in the export itself."""
    return [
        *done.evidence.log.notes,
        *notes_on_times(done, done.evidence.instances),
        *_note_older_exports(done.described),
    ]


def _note_older_exports(done: Check) -> Iterator[str]:
    passed_pairs = {
        (message_group.case.instance, hop.instance_name)
        for message_group in done.groups
        for possible_path in (() if message_group.path is None else message_group.path.all_paths)
        for hop in possible_path.hop_path.hops
    }
    for sender, name in sorted(passed_pairs):
        sent_at, exported_at = (done.evidence.views.newest(instance_name) for instance_name in (sender, name))
        if sent_at is not None and exported_at is not None and sent_at - exported_at > APART:
            yield (
                f"{quote_name(name)} was exported at {format_time(exported_at)}, long before {quote_name(sender)}"
                f" at {format_time(sent_at)}: the state of the messages there since then is not known"
            )


def notes_on_times(done: Check, instances: Iterable[str]) -> list[str]:
    """Note each instance that is decided at a time before its export."""
    notes = []
    for name in instances:
        newest = done.evidence.views.newest(name, *_PRESENT)
        if done.at is not None and newest is not None and done.estate.times[name] < micros_of(newest):
            notes.append(
                f"{quote_name(name)}: its routes, databases, services and endpoint are those exported at"
                f" {format_time(newest)}, after the time of the decision"
            )
    return notes
