"""Fates of messages → groups of one outcome, reason, sender, service and route."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from routing.analysis.check.deciding import Estate, Fate
from routing.analysis.check.missing import Gap
from routing.analysis.check.near import NearMiss, NearMisses
from routing.analysis.check.remedies import remedy_of
from routing.analysis.check.reported import advice_on
from routing.analysis.check.stuck import Remedy, Stuck
from routing.analysis.explain.background import Status
from routing.rules.observed import Agreement, Compared, Topic, topic_of
from routing.rules.resolving import Verdict
from routing.terms import Outcome

_ORDER = (Outcome.DELAYED, Outcome.DROPPED, None, Outcome.SENT, Outcome.FORWARDED, Outcome.DELIVERED)
"""None stands for NOT_KNOWN."""
_LOOKED_AT = 20
"""So many broker instances of a group are asked for what helps their messages."""
_Key = tuple[str, str | None, str, str, str, str | None]


@dataclass(frozen=True)
class Group:
    """Messages that wait for the same reason, oldest first.

    ``near`` are routes and services that they just missed, ``remedy`` what to do; there is none where nothing is
    wrong with the routing and SQL Server tells of no trouble, nor where there is no verdict.
    """

    fates: Sequence[Fate]
    near: Sequence[NearMiss]
    remedy: Remedy | None

    @property
    def first(self) -> Fate:
        """The oldest message."""
        return self.fates[0]

    @property
    def verdict(self) -> Verdict | None:
        """What is the same for all of them: outcome, reason and route."""
        return self.first.verdict

    @property
    def oldest(self) -> datetime:
        """When the oldest was enqueued."""
        found: datetime = self.first.row["enqueue_time"]
        return found

    @property
    def brokers(self) -> list[str | None]:
        """The broker ids that they are bound to, None among them where some are open."""
        found = {None if fate.verdict is None else fate.verdict.broker_instance for fate in self.fates}
        return sorted(found, key=lambda each: (each is not None, each or ""))

    @property
    def steps(self) -> list[int]:
        """The steps that decided."""
        steps = (None if fate.verdict is None else fate.verdict.matching_step for fate in self.fates)
        return sorted({int(step) for step in steps if step is not None})

    @property
    def gaps(self) -> list[Gap]:
        """What would have to be known for a verdict."""
        return sorted({gap for fate in self.fates for gap in fate.gaps}, key=lambda gap: gap.place)

    @property
    def agreements(self) -> Counter[Agreement]:
        """How many of SQL Server's statements agree with the verdict, and so on."""
        return Counter(fate.compared.agreement for fate in self.fates if fate.compared is not None)

    def compared(self, said: Status) -> Compared | None:
        """What a statement of SQL Server's says of the verdict; None where there is no verdict."""
        found = (fate.compared for fate in self.fates if fate.said == said)
        return next(found, None)

    @property
    def said(self) -> Counter[Status]:
        """What SQL Server said, and of how many; blank among it."""
        return Counter(fate.said for fate in self.fates)

    @property
    def trouble(self) -> Status | None:
        """What SQL Server tells most of messages whose routing is right; None where it tells nothing.

        What contradicts the routing counts only where nothing else is told.
        """
        if not self.first.is_on_its_way:
            return None
        told = [(said, count) for said, count in self.said.most_common() if said.text is not None]
        told.sort(key=lambda pair: self._contradicts(pair[0]))
        return told[0][0] if told else None

    def _contradicts(self, said: Status) -> bool:
        compared = self.compared(said)
        return compared is not None and compared.agreement is Agreement.CONTRADICTS

    @property
    def needs_somebody(self) -> bool:
        """Whether it is more than on its way."""
        return self.trouble is not None or not self.first.is_on_its_way

    @property
    def place(self) -> tuple[int, int, datetime]:
        """Its place in a list: first where transport or target are the trouble; by outcome, most and oldest."""
        outcome = None if self.verdict is None else self.verdict.outcome
        trouble = self.trouble
        is_right = trouble is not None and not self._contradicts(trouble)
        rank = -1 if is_right else 0 if trouble is not None else _ORDER.index(outcome)
        return (rank, -len(self.fates), self.oldest)


def group(estate: Estate, fates: Iterable[Fate]) -> list[Group]:
    """The groups of all messages, in the order in which they are shown."""
    found: dict[_Key, list[Fate]] = defaultdict(list)
    for fate in fates:
        found[_key(fate)].append(fate)
    adviser = _Adviser(
        estate,
        NearMisses(estate.instances),
        {row["instance_name"]: row["addresses"] or () for row in estate.evidence.rows["instances"]},
        frozenset(service for _, _, _, _, service, _ in found),
    )
    return sorted(map(adviser.make, found.values()), key=lambda each: (each.place, _key(each.first)[2:5]))


def _key(fate: Fate) -> _Key:
    verdict, row = fate.verdict, fate.row
    reason = None if verdict is None else str(verdict.reason)
    route = None if verdict is None else verdict.route_name
    return (fate.outcome, reason, row["instance_name"], row["database_name"], row["to_service_name"], route)


@dataclass(frozen=True)
class _Adviser:
    """Makes groups, with what is near and what is to be done."""

    estate: Estate
    index: NearMisses
    addresses: Mapping[str, Sequence[str]]
    services: frozenset[str]

    def make(self, fates: Iterable[Fate]) -> Group:
        """The group of messages with one fate."""
        ordered = sorted(fates, key=lambda fate: (fate.row["enqueue_time"], fate.row["message_sequence_number"]))
        bare, first = Group(ordered, (), None), ordered[0]
        if first.verdict is None or not bare.needs_somebody:
            return bare
        stuck = self._stuck(first, first.verdict)
        remedy = remedy_of(stuck)
        if bare.trouble is None:
            return Group(ordered, stuck.near, self._for_whom(remedy, ordered))
        return Group(ordered, (), _after(bare.trouble, remedy))

    def _for_whom(self, remedy: Remedy, fates: Sequence[Fate]) -> Remedy:
        """The remedy of the oldest message, which says so where others are bound to ids that it does not help."""
        bound: dict[str | None, list[Fate]] = defaultdict(list)
        for fate in fates:
            bound[None if fate.verdict is None else fate.verdict.broker_instance].append(fate)
        if len(bound) == 1:
            return remedy
        looked_at = islice(bound.values(), _LOOKED_AT)
        helped = [theirs for theirs in looked_at if self._remedy(theirs[0]) == remedy]
        if len(helped) == len(bound):
            return remedy
        whose = f"{sum(map(len, helped)):,} of these {len(fates):,} messages"
        words = (
            f"{remedy.words} (This is for {whose}; the others are bound to another broker instance, or to none,"
            " and --then shows what becomes of them.)"
        )
        return replace(remedy, words=words)

    def _remedy(self, fate: Fate) -> Remedy | None:
        return None if fate.verdict is None else remedy_of(self._stuck(fate, fate.verdict))

    def _stuck(self, fate: Fate, verdict: Verdict) -> Stuck:
        name, service, broker = fate.row["instance_name"], fate.row["to_service_name"], verdict.broker_instance
        return Stuck(
            instances=self.estate.instances,
            addresses=self.addresses,
            instance=name,
            database=fate.row["database_name"],
            scope=fate.scope,
            service=service,
            broker=broker,
            verdict=verdict,
            near=self.index.of(name, fate.scope, service, broker, self.estate.times[name]),
            services_in_use=self.services - {service},
        )


def _after(trouble: Status, remedy: Remedy) -> Remedy:
    """What to do about what SQL Server reports, and then what there is to look at where the messages arrive."""
    topic = topic_of(trouble.number)
    if topic is None:
        return remedy
    return Remedy(advice_on(topic), remedy.statement if topic is Topic.TARGET else None)
