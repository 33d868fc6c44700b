"""Group the results of messages: what is printed of a group is equal for all of its messages, or is counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from routing.advice.remedies import AskStuck, HopToMend, find_remedies, remedy_of, remedy_of_silence
from routing.advice.remedy import MessageRemedy, PlacedRemedy
from routing.advice.status_advice import StatusAdviser
from routing.advice.status_meanings import CONNECTION_TROUBLES, PASSING_TROUBLES, find_trouble
from routing.advice.stuck_groups import NewRouteNames, StuckGroup
from routing.cases.background import StatusText
from routing.cases.estate_addresses import EstateAddresses, list_route_addresses
from routing.cases.message_cases import CheckedEstate, MessageResult
from routing.cases.missing_knowledge import OF_ROUTES, KnowledgeGap
from routing.cases.near_misses import NOTHING_NEAR, KnownInstances, NearMiss, NearMisses, near_in_common
from routing.rules.estate import SharedTuple
from routing.rules.judging import IS_DROPPED, JudgedPath
from routing.rules.observed import NumberAgreement, ReasonComparison
from routing.rules.resolving import Verdict
from routing.terms import MSDB, Outcome, SortKey, Word


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
class GroupAdvice:
    """A remedy on an instance for some messages of a group.

    ``is_of_routes``: the rules ask for the remedy; else a status of SQL Server does.
    """

    instance: str
    remedy: MessageRemedy
    count: int
    is_of_routes: bool = False


@dataclass(frozen=True)
class MessageGroup:
    """Messages of one result, oldest first.

    ``near`` are routes and services that they just missed, ``advice`` what to do and where; there is none where
    nothing is wrong with the routing and SQL Server tells of no trouble. Where there is no verdict, both hold for
    each that is possible.
    """

    results: Sequence[MessageResult]
    near: Sequence[NearMiss]
    advice: Sequence[GroupAdvice]

    @property
    def remedy(self) -> MessageRemedy | None:
        """The first thing to do."""
        return self.advice[0].remedy if self.advice else None

    @property
    def first(self) -> MessageResult:
        """The oldest message."""
        return self.results[0]

    @property
    def verdict(self) -> Verdict | None:
        """What is the same for all of them: outcome, reason and route."""
        return self.first.verdict

    @property
    def oldest(self) -> datetime:
        """When the oldest was enqueued."""
        enqueue_time: datetime = self.first.row["enqueue_time"]
        return enqueue_time

    @property
    def path(self) -> JudgedPath | None:
        """Where they go from their instance, and their acknowledgements; None where they stay."""
        return self.first.path

    @property
    def brokers(self) -> Counter[str | None]:
        """How many are bound to each broker instance, to none first."""
        counts = Counter(
            None if result.verdict is None else result.verdict.broker_instance for result in self.results
        )
        return Counter(dict(sorted(counts.items(), key=lambda each: (each[0] is not None, each[0] or ""))))

    @property
    def steps(self) -> Counter[int]:
        """How many each step decided."""
        steps = (None if result.verdict is None else result.verdict.matching_step for result in self.results)
        counts = Counter(int(step) for step in steps if step is not None)
        return Counter(dict(sorted(counts.items())))

    @property
    def gaps(self) -> Sequence[KnowledgeGap]:
        """What would have to be known for a verdict."""
        return self.first.gaps

    @property
    def agreements(self) -> Counter[NumberAgreement]:
        """How many of SQL Server's statuses agree with the verdict, contradict it, or say nothing of it."""
        return Counter(result.compared.agreement for result in self.results if result.compared is not None)

    def compared(self, status_text: StatusText) -> ReasonComparison | None:
        """Compare a status text of SQL Server with the verdict; None without a verdict."""
        if self.verdict is None:
            return None
        return status_text.compared(self.verdict.reason, in_msdb=self.first.scope == MSDB)

    @property
    def status_texts(self) -> Counter[StatusText]:
        """How many messages have each status of SQL Server; a blank status is one of them."""
        return Counter(result.status_text for result in self.results)

    @cached_property
    def trouble(self) -> StatusText | None:
        """The trouble that SQL Server reports most often of messages that no rule keeps, or None.

        A status that contradicts the routing counts only where there is no other.
        """
        if self.verdict is not None and not self.first.is_on_its_way:
            return None
        reported_texts = [
            (status_text, count)
            for status_text, count in self.status_texts.most_common()
            if status_text.text is not None
        ]
        reported_texts.sort(key=lambda pair: self.contradicts(pair[0]))
        return reported_texts[0][0] if reported_texts else None

    def contradicts(self, status_text: StatusText) -> bool:
        """Return True if a status says that SQL Server routed the messages otherwise."""
        compared = self.compared(status_text)
        return compared is not None and compared.agreement is NumberAgreement.CONTRADICTS

    @property
    def unacknowledged(self) -> int:
        """How many messages were sent long ago and have a blank status."""
        return sum(result.is_unacknowledged for result in self.results)

    @property
    def is_silent(self) -> bool:
        """Return True if some messages should have arrived long ago and have a blank status."""
        return self.first.is_on_its_way and self.unacknowledged > 0

    @property
    def is_failing(self) -> bool:
        """Whether the messages leave their instance, and do not arrive or are not acknowledged."""
        return self.path is not None and bool(self.path.failing)

    @property
    def needs_somebody(self) -> bool:
        """Whether somebody has to act: the messages are not just on their way."""
        return self.kind is not ProblemKind.NOTHING

    @property
    def place(self) -> SortKey:
        """Its place in a list: by what is wrong, the most messages and the oldest first, then by outcome."""
        outcome = 0 if self.verdict is None else _OUTCOMES[self.verdict.outcome]
        return (_KINDS[self.kind], -len(self.results), self.oldest, outcome)

    @cached_property
    def kind(self) -> ProblemKind:
        """The kind of problem that the messages have."""
        if self.trouble is not None and not self.is_failing:
            return self._kind_of_trouble(self.trouble)
        if self.verdict is None:
            return ProblemKind.NOT_KNOWN
        if not self.first.is_on_its_way:
            is_dropped = self.verdict.outcome is Outcome.DROPPED
            return ProblemKind.DROPPED if is_dropped else ProblemKind.STUCK
        if self.path is not None and self.path.failing:
            return ProblemKind.DROPPED if self.path.end in IS_DROPPED else ProblemKind.STUCK
        if self.is_silent:
            return ProblemKind.NOT_ACKNOWLEDGED
        # Before messages on their way are tried, the only advice on them is about the connection.
        return ProblemKind.CONNECTION_FAILS if self.advice else ProblemKind.NOTHING

    def _kind_of_trouble(self, status_text: StatusText) -> ProblemKind:
        trouble = find_trouble(status_text.number, status_text.text)
        if trouble in PASSING_TROUBLES or self.contradicts(status_text):
            return ProblemKind.PASSING
        return ProblemKind.CONNECTION_FAILS if trouble in CONNECTION_TROUBLES else ProblemKind.REPORTED


class _Facts(NamedTuple):
    """The printed facts that all messages of a group share; ``path`` is the number of an object."""

    outcome: str
    reason: str | None
    instance: str
    database: str | None
    service: str
    route: str | None
    scope: str
    address: str | None
    destination: str | None
    rerouted_from: str | None
    gaps: tuple[KnowledgeGap, ...]
    path: int

    @classmethod
    def of_result(cls, result: MessageResult) -> _Facts:
        """Collect the facts of a message's result, without near misses and remedies."""
        row, verdict = result.row, result.verdict
        who = row["instance_name"], row["database_name"], row["to_service_name"]
        if verdict is None:
            return cls(result.outcome, None, *who, None, result.scope, None, None, None, result.gaps, 0)
        return cls(
            result.outcome,
            str(verdict.reason),
            *who,
            verdict.route_name,
            result.scope,
            verdict.address,
            verdict.destination_database,
            verdict.rerouted_from,
            result.gaps,
            id(result.path),
        )


class _Help(NamedTuple):
    """The near misses of messages, and their remedies."""

    near: SharedTuple[NearMiss] = NOTHING_NEAR
    remedies: tuple[PlacedRemedy, ...] = ()


def _shared(near: Sequence[NearMiss]) -> SharedTuple[NearMiss]:
    return near if isinstance(near, SharedTuple) else SharedTuple(near)


def group(estate: CheckedEstate, results: Iterable[MessageResult]) -> list[MessageGroup]:
    """Return the groups of all messages, in the order in which they are shown."""
    every = list(results)
    adviser = _Adviser(
        estate,
        NearMisses(estate.instances),
        EstateAddresses(
            {row["instance_name"]: row["addresses"] or () for row in estate.evidence.rows["instances"]},
            list_route_addresses(estate.instances),
        ),
        {result.row["to_service_name"] for result in every},
    )
    results_by_facts: dict[tuple[_Facts, _Help], list[MessageResult]] = defaultdict(list)
    for result in every:
        facts = _Facts.of_result(result)
        results_by_facts[facts, adviser.help_for(result, facts)].append(result)
    groups_with_facts = [
        (adviser.make(theirs, helped), facts) for (facts, helped), theirs in results_by_facts.items()
    ]
    groups_with_facts.sort(key=lambda one: (one[0].place, one[1].instance, one[1].database or "", one[1].service))
    return [each for each, _ in groups_with_facts]


class _Adviser:
    """Finds near misses and remedies for messages."""

    def __init__(
        self,
        estate: CheckedEstate,
        index: NearMisses,
        addresses: EstateAddresses,
        services: Iterable[str],
    ) -> None:
        self._estate, self._index, self._addresses = estate, index, addresses
        self._services = frozenset(services)
        self._new_names = NewRouteNames()
        self._instances = KnownInstances.of(estate.instances)
        self._statuses = StatusAdviser(estate, index, addresses, self._services, self._new_names)
        self._known: dict[tuple[object, ...], _Help] = {}
        self._about_routes: dict[tuple[KnowledgeGap, ...], bool] = {}

    def help_for(self, result: MessageResult, facts: _Facts) -> _Help:
        """Find near misses and remedies for a message, here or on its path."""
        verdict = result.verdict
        if verdict is None:
            return self._help_in_common(result, facts)
        if result.is_on_its_way and (result.path is None or not result.path.failing):
            return _Help()
        alike = (facts, verdict.broker_instance, verdict.matching_step, result.row["from_service_name"])
        if alike not in self._known:
            self._known[alike] = self._help(result, verdict)
        return self._known[alike]

    def _help(self, result: MessageResult, verdict: Verdict) -> _Help:
        if result.path is not None:
            near, remedies = find_remedies(result.path, result.row["instance_name"], self._on_path_of(result))
            return _Help(_shared(near), tuple(remedies))
        stuck = self._stuck(result, verdict)
        return _Help(_shared(stuck.near), (PlacedRemedy(stuck.instance, remedy_of(stuck)),))

    def _help_in_common(self, result: MessageResult, facts: _Facts) -> _Help:
        """Find the near misses and remedies that all possible verdicts of a message have in common.

        There are none where SQL Server contradicts all of these verdicts: then more is unknown than the dialog.
        """
        supposed = [(replace(result, verdict=verdict), verdict) for verdict in result.possible]
        alike = (facts, tuple(map(id, result.possible)), result.row["from_service_name"])
        if alike not in self._known:
            helps = [_Help() if one.is_on_its_way else self._help(one, verdict) for one, verdict in supposed]
            remedies = {helped.remedies for helped in helps} if self._knows_routes(supposed) else set()
            common = remedies.pop() if len(remedies) == 1 else ()
            self._known[alike] = _Help(_shared(near_in_common([helped.near for helped in helps])), common)
        helped = self._known[alike]
        is_contradicted = all(
            one.compared is not None and one.compared.agreement is NumberAgreement.CONTRADICTS
            for one, _ in supposed
        )
        return helped._replace(remedies=()) if is_contradicted else helped

    def _knows_routes(self, supposed: Iterable[tuple[MessageResult, Verdict]]) -> bool:
        """Return True if all routes that decide are known; other things may be unknown."""
        knowledge = self._estate.knowledge
        return not any(
            self._is_about_routes(knowledge.of_verdict(result.row["instance_name"], verdict))
            for result, verdict in supposed
        )

    def _is_about_routes(self, gaps: tuple[KnowledgeGap, ...]) -> bool:
        if gaps not in self._about_routes:
            self._about_routes[gaps] = any(gap.what in OF_ROUTES for gap in gaps)
        return self._about_routes[gaps]

    def make(self, results: Iterable[MessageResult], helped: _Help) -> MessageGroup:
        """Return the group of messages with one result."""
        ordered = sorted(
            results, key=lambda result: (result.row["enqueue_time"], result.row["message_sequence_number"])
        )
        bare = MessageGroup(ordered, helped.near, ())
        on_path = [GroupAdvice(*placed, len(ordered), is_of_routes=True) for placed in helped.remedies]
        answers = self._statuses.answer(ordered, is_failing=bare.is_failing, has_remedy=bool(on_path))
        status_remedies = [GroupAdvice(*placed, count) for placed, count in answers]
        if bare.is_silent and not status_remedies and not on_path:
            status_remedies = [GroupAdvice(*self._break_silence(bare), bare.unacknowledged)]
        if bare.first.is_on_its_way:
            return MessageGroup(ordered, helped.near, (*status_remedies, *on_path))
        return MessageGroup(ordered, helped.near, (*on_path, *status_remedies))

    def _break_silence(self, bare: MessageGroup) -> PlacedRemedy:
        first, instance = bare.first, bare.first.row["instance_name"]
        if bare.path is not None:
            return remedy_of_silence(bare.path, instance, self._on_path_of(first))
        if first.verdict is None:
            raise ValueError("messages on their way have a verdict")
        return PlacedRemedy(instance, remedy_of(self._stuck(first, first.verdict)))

    def _on_path_of(self, result: MessageResult) -> AskStuck:
        return lambda hop, is_return: self._at_hop(result, hop, is_return)

    def _at_hop(self, result: MessageResult, mended: HopToMend, is_return: bool) -> StuckGroup:
        row, hop = result.row, mended.hop
        service = row["from_service_name"] if is_return else row["to_service_name"]
        broker = mended.verdict.broker_instance
        near = self._index.of(hop.instance_name, hop.scope, service, broker, self._time_of(result))
        return StuckGroup(
            instances=self._instances,
            addresses=self._addresses,
            instance=hop.instance_name,
            database=mended.database,
            scope=hop.scope,
            service=service,
            broker=broker,
            verdict=mended.verdict,
            near=near,
            services_in_use=self._services,
            back_to=(row["instance_name"], row["database_name"]) if is_return else None,
            new_names=self._new_names,
        )

    def _stuck(self, result: MessageResult, verdict: Verdict) -> StuckGroup:
        name, service, broker = result.row["instance_name"], result.row["to_service_name"], verdict.broker_instance
        return StuckGroup(
            instances=self._instances,
            addresses=self._addresses,
            instance=name,
            database=result.row["database_name"],
            scope=result.scope,
            service=service,
            broker=broker,
            verdict=verdict,
            near=self._index.of(name, result.scope, service, broker, self._time_of(result)),
            services_in_use=self._services,
            from_service=result.row["from_service_name"],
            new_names=self._new_names,
        )

    def _time_of(self, result: MessageResult) -> int:
        return self._estate.times[result.row["instance_name"]]
