"""Group results of messages. The printed facts of a group are equal for all its messages, or are counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, TypeVar

from routing.advice.path_remedies import find_remedies
from routing.advice.remedies import remedy_of
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, withhold_refused
from routing.advice.server_remedies import lead_from_loopback
from routing.advice.status_advice import CountedRemedy, StatusAdviser
from routing.advice.status_meanings import CONNECTION_TROUBLES, PASSING_TROUBLES, find_trouble
from routing.advice.stuck_messages import AdviceEstate, UsedRoute
from routing.cases.background import StatusText
from routing.cases.judged_questions import RemedyFacts
from routing.cases.known_estate import OF_ROUTES, KnowledgeGap
from routing.cases.message_cases import CheckedEstate, MessageCase, MessageResult
from routing.cases.near_misses import NOTHING_NEAR, NearMiss, near_in_common
from routing.groups import group_pairs
from routing.rules.estate import SharedTuple
from routing.rules.judging import IS_DROPPED, JudgedPath
from routing.rules.observed import NumberAgreement
from routing.rules.resolving import Verdict
from routing.terms import Outcome, SortKey, Word

T = TypeVar("T")


class ProblemKind(Word):
    """The kind of a problem, in the order of reports: broken first, then slow."""

    STUCK = "STUCK"
    DROPPED = "DROPPED"
    CONNECTION_FAILS = "CONNECTION_FAILS"
    REPORTED = "REPORTED"
    NOT_KNOWN = "NOT_KNOWN"
    NOT_ACKNOWLEDGED = "NOT_ACKNOWLEDGED"
    PASSING = "PASSING"
    NOTHING = "NOTHING"


STUCK_KINDS = frozenset([ProblemKind.STUCK, ProblemKind.DROPPED, ProblemKind.CONNECTION_FAILS])
"""The kinds of messages that are stuck: they do not arrive, or a connection on their way fails."""
_KINDS = {kind: place for place, kind in enumerate(ProblemKind)}
_OUTCOMES = {outcome: place for place, outcome in enumerate(Outcome)}


@dataclass(frozen=True)
class MessageGroup:
    """Messages with one result, oldest first.

    ``near_misses`` are routes and services that almost matched. ``advice`` are the remedies with their places, and
    is empty if the routing is correct and SQL Server reports no trouble. Without a verdict, both hold for each
    possible one.
    """

    results: Sequence[MessageResult]
    near_misses: Sequence[NearMiss]
    advice: Sequence[CountedRemedy]

    @property
    def remedy(self) -> Remedy | None:
        """The first thing to do."""
        return self.advice[0].remedy if self.advice else None

    @property
    def first(self) -> MessageResult:
        """The oldest message."""
        return self.results[0]

    @property
    def case(self) -> MessageCase:
        """The case of the oldest message. Those of the others differ only in facts that are counted."""
        return self.results[0].case

    @property
    def verdict(self) -> Verdict | None:
        """What is the same for all of them: outcome, reason and route."""
        return self.case.verdict

    @property
    def oldest(self) -> datetime:
        """When the oldest was enqueued."""
        enqueue_time: datetime = self.first.row["enqueue_time"]
        return enqueue_time

    @property
    def path(self) -> JudgedPath | None:
        """The path of the messages and acknowledgements, or None if they stay on their instance."""
        return self.case.path

    @cached_property
    def _cases(self) -> Counter[MessageCase]:
        return Counter(result.case for result in self.results)

    def _count(self, value: Callable[[MessageCase], T]) -> Counter[T]:
        """Count the messages by a value of their cases."""
        counts = Counter[T]()
        for case, number in self._cases.items():
            counts[value(case)] += number
        return counts

    @cached_property
    def broker_instances(self) -> frozenset[str | None]:
        """The broker instances that messages are bound to, with None for unbound ones."""
        return frozenset(None if case.verdict is None else case.verdict.broker_instance for case in self._cases)

    @property
    def brokers(self) -> Counter[str | None]:
        """The number of messages bound to each broker instance, unbound ones first."""
        counts = self._count(lambda case: None if case.verdict is None else case.verdict.broker_instance)
        return Counter(dict(sorted(counts.items(), key=lambda one: (one[0] is not None, one[0] or ""))))

    @property
    def steps(self) -> Counter[int]:
        """The number of messages that each step decided."""
        counts = self._count(lambda case: None if case.verdict is None else case.verdict.matching_step)
        return Counter(dict(sorted((int(step), number) for step, number in counts.items() if step is not None)))

    @property
    def agreements(self) -> Counter[NumberAgreement]:
        """The numbers of SQL Server's statuses that agree, contradict, or say nothing about the verdict."""
        counts = self._count(lambda case: None if case.compared is None else case.compared.agreement)
        return Counter({agreement: number for agreement, number in counts.items() if agreement is not None})

    @property
    def status_texts(self) -> Counter[StatusText]:
        """The number of messages with each status of SQL Server, including a blank one."""
        return self._count(lambda case: case.status_text)

    @cached_property
    def trouble(self) -> StatusText | None:
        """The trouble that SQL Server reports most often of messages that no rule keeps, or None.

        A status that contradicts the routing counts only if there is no other.
        """
        if self.verdict is not None and not self.case.is_on_its_way:
            return None
        texts = (status_text for status_text, _ in self.status_texts.most_common() if status_text.text is not None)
        # The first of equal ones is the most frequent.
        return min(texts, key=self.contradicts, default=None)

    def contradicts(self, status_text: StatusText) -> bool:
        """Return True if a status shows that SQL Server routed the messages differently."""
        compared = self.case.compare(status_text)
        return compared is not None and compared.agreement is NumberAgreement.CONTRADICTS

    @property
    def unacknowledged(self) -> int:
        """The number of messages that were sent long ago and have a blank status."""
        return sum(result.is_unacknowledged for result in self.results)

    @property
    def needs_somebody(self) -> bool:
        """True if the messages need attention, because they are not just on their way."""
        return self.kind is not ProblemKind.NOTHING

    @property
    def place(self) -> SortKey:
        """The sort key in a list: by kind of problem, then most messages, oldest message, and outcome."""
        outcome = 0 if self.verdict is None else _OUTCOMES[self.verdict.outcome]
        return (_KINDS[self.kind], -len(self.results), self.oldest, outcome)

    @cached_property
    def kind(self) -> ProblemKind:
        """The kind of problem that the messages have."""
        if self.trouble is not None and not self.case.is_failing:
            return self._kind_of_trouble(self.trouble)
        if self.verdict is None:
            return ProblemKind.NOT_KNOWN
        if not self.case.is_on_its_way:
            is_dropped = self.verdict.outcome is Outcome.DROPPED
            return ProblemKind.DROPPED if is_dropped else ProblemKind.STUCK
        if self.path is not None and self.path.failing_paths:
            return ProblemKind.DROPPED if self.path.end in IS_DROPPED else ProblemKind.STUCK
        if self.unacknowledged:
            return ProblemKind.NOT_ACKNOWLEDGED
        # The only advice about messages on their way is on the connection.
        return ProblemKind.CONNECTION_FAILS if self.advice else ProblemKind.NOTHING

    def _kind_of_trouble(self, status_text: StatusText) -> ProblemKind:
        trouble = find_trouble(status_text.number, status_text.text)
        if trouble in PASSING_TROUBLES or self.contradicts(status_text):
            return ProblemKind.PASSING
        return ProblemKind.CONNECTION_FAILS if trouble in CONNECTION_TROUBLES else ProblemKind.REPORTED


_Facts = tuple[object, ...]


def _facts_of(case: MessageCase, path: int) -> _Facts:
    """Return the printed facts that all messages of a group share. ``path`` is a number of `_PathNumbers`."""
    facts = case.outcome, case.instance, case.database, case.service, case.scope, case.gaps, path
    verdict = case.verdict
    if verdict is None:
        return facts
    route = verdict.reason, verdict.route_name, verdict.address, verdict.destination_database
    return (*facts, *route, verdict.rerouted_from)


class _PathNumbers:
    """Numbers paths. Equal paths have one number, and each path is compared once.

    The verdicts on the hops of equal paths may differ, for example in the broker instance.
    """

    def __init__(self) -> None:
        self._by_path: dict[JudgedPath | None, int] = {}
        self._by_id: dict[int, int] = {}

    def find(self, path: JudgedPath | None) -> int:
        """Return the number of a path, which must be kept."""
        if id(path) not in self._by_id:
            self._by_id[id(path)] = self._by_path.setdefault(path, len(self._by_path))
        return self._by_id[id(path)]


class _NearMissesAndRemedies(NamedTuple):
    near_misses: SharedTuple[NearMiss] = NOTHING_NEAR
    remedies: tuple[Remedy, ...] = ()


def _shared(near: Sequence[NearMiss]) -> SharedTuple[NearMiss]:
    return near if isinstance(near, SharedTuple) else SharedTuple(near)


def group(estate: CheckedEstate, results: Iterable[MessageResult]) -> list[MessageGroup]:
    """Return the groups of all messages, in the order in which they are shown."""
    all_results = list(results)
    evidence, services = estate.evidence, {result.case.service for result in all_results}
    facts_of_estate = RemedyFacts.of_instances(
        estate.instances, evidence.columns["instances"], services, evidence.server
    )
    adviser = _Adviser(estate, AdviceEstate(facts_of_estate))
    numbers = _PathNumbers()
    facts_numbers: dict[_Facts, int] = {}
    results_by_facts: dict[tuple[int, _NearMissesAndRemedies], list[MessageResult]] = defaultdict(list)
    for case, case_results in group_pairs((result.case, result) for result in all_results).items():
        facts = facts_numbers.setdefault(_facts_of(case, numbers.find(case.path)), len(facts_numbers))
        results_by_facts[facts, adviser.help_for(case, facts)] += case_results
    groups = [adviser.make(shared_results, helped) for (_, helped), shared_results in results_by_facts.items()]
    return sorted(groups, key=_order_of)


def _order_of(message_group: MessageGroup) -> SortKey:
    case = message_group.case
    return message_group.place, case.instance, case.database or "", case.service


class _Adviser:
    def __init__(self, checked: CheckedEstate, estate: AdviceEstate) -> None:
        self._checked, self._estate = checked, estate
        self._statuses = StatusAdviser(estate, checked)
        self._known: dict[tuple[object, ...], _NearMissesAndRemedies] = {}
        self._about_routes: dict[tuple[KnowledgeGap, ...], bool] = {}

    def help_for(self, case: MessageCase, facts: int) -> _NearMissesAndRemedies:
        """Find near misses and remedies for a case, at its own instance or on its path.

        ``facts`` is the number of its `_facts_of`.
        """
        verdict = case.verdict
        if verdict is None:
            return self._help_in_common(case, facts)
        if case.is_on_its_way and not case.is_failing:
            return _NearMissesAndRemedies()
        alike = (facts, verdict.broker_instance, verdict.matching_step, case.from_service)
        if alike not in self._known:
            self._known[alike] = self._advise(case, verdict)
        return self._known[alike]

    def _advise(self, case: MessageCase, verdict: Verdict) -> _NearMissesAndRemedies:
        if case.path is not None:
            near, remedies = find_remedies(case.path, case, self._estate)
            return _NearMissesAndRemedies(_shared(near), tuple(remedies))
        stuck = self._estate.describe_stuck(case, verdict)
        return _NearMissesAndRemedies(_shared(stuck.near_misses), (remedy_of(stuck),))

    def _help_in_common(self, case: MessageCase, facts: int) -> _NearMissesAndRemedies:
        """Find the near misses and remedies that all possible verdicts of a case have in common.

        There are no common ones if SQL Server contradicts all of these verdicts, since then more is unknown than
        the dialog.
        """
        supposed = [(replace(case, verdict=verdict), verdict) for verdict in case.possible]
        alike = (facts, tuple(map(id, case.possible)), case.from_service)
        if alike not in self._known:
            helps = [
                self._correct_loopback(counted, verdict)
                if counted.is_on_its_way
                else self._advise(counted, verdict)
                for counted, verdict in supposed
            ]
            remedies = {helped.remedies for helped in helps} if self._knows_routes(case) else set()
            common = remedies.pop() if len(remedies) == 1 else ()
            common = tuple(remedy.with_confidence_at_most(Confidence.LIKELY) for remedy in common)
            self._known[alike] = _NearMissesAndRemedies(
                _shared(near_in_common([helped.near_misses for helped in helps])), common
            )
        helped = self._known[alike]
        is_contradicted = all(counted.is_contradicted for counted, _ in supposed)
        return helped._replace(remedies=()) if is_contradicted else helped

    def _correct_loopback(self, case: MessageCase, verdict: Verdict) -> _NearMissesAndRemedies:
        sender, route = RemedyPlace(case.instance, case.scope), verdict.route_name
        remedy = lead_from_loopback(UsedRoute(self._estate, verdict.address, case.service, sender, route))
        return _NearMissesAndRemedies(remedies=() if remedy is None else (remedy,))

    def _knows_routes(self, case: MessageCase) -> bool:
        """Return True if all deciding routes are known, even if other facts are unknown."""
        knowledge = self._checked.knowledge
        return not any(
            self._is_about_routes(knowledge.of_verdict(case.instance, verdict)) for verdict in case.possible
        )

    def _is_about_routes(self, gaps: tuple[KnowledgeGap, ...]) -> bool:
        if gaps not in self._about_routes:
            self._about_routes[gaps] = any(gap.missing in OF_ROUTES for gap in gaps)
        return self._about_routes[gaps]

    def make(self, results: Iterable[MessageResult], helped: _NearMissesAndRemedies) -> MessageGroup:
        """Return the group of messages with one result."""
        ordered = sorted(results, key=lambda result: result.age_order)
        all_advice = self._statuses.advise(ordered, helped.remedies, has_remedy=bool(helped.remedies))
        server = self._estate.server
        allowed = tuple(advice.with_remedy(withhold_refused(server, advice.remedy)) for advice in all_advice)
        return MessageGroup(ordered, helped.near_misses, allowed)
