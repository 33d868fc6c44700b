"""Follow the messages that leave their instance, hop by hop and back, as far as the exports show."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from routing.cases.evidence import FileEvidence
from routing.cases.known_estate import EstateKnowledge, KnowledgeGap, MissingKnowledge
from routing.cases.message_cases import SAID_EVERY, ChangedCases, CheckedEstate, MessageResult, message_of
from routing.groups import group_pairs
from routing.importing.catalog.cell_values import UnknownTime
from routing.plan.paths import PathPlanner
from routing.rules import text
from routing.rules.estate import SqlInstance, own_addresses, places_of
from routing.rules.following import MOST_PATHS, HopPath, MessageTrace
from routing.rules.hashing import dialog_id_hash
from routing.rules.judging import NO_PATH_FOLLOWED, JudgedPath, PossiblePath, judge_path
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import PathSender
from routing.rules.resolving import RoutedMessage, Verdict
from routing.terms import LEAVES, MSDB, Ending

APART = timedelta(hours=1)
"""Exports of two ends that are further apart do not show one state of the estate."""
_PORT_OF_LOGINS = "1433"
"""Where SQL Server itself listens, and no Service Broker endpoint."""


@dataclass(frozen=True)
class AssumedAddresses:
    """Normalized addresses, each with the instance that is assumed to listen there."""

    owners: Mapping[str, str]

    @classmethod
    def of_estate(cls, knowledge: EstateKnowledge) -> AssumedAddresses:
        """Collect written addresses that name the machine of exactly one known instance.

        None is taken to have several ports, nor where another instance of the machine is known.
        """
        known_addresses = places_of(knowledge.instances.values())
        by_instance: dict[str, set[str]] = defaultdict(set)
        for address in _written_addresses(knowledge.evidence):
            compared = text.comparable_address(address)
            if compared in known_addresses or text.port(compared) in (None, _PORT_OF_LOGINS):
                continue
            for instance in knowledge.may_be_at(address):
                by_instance[instance].add(compared)
        machines = Counter(map(text.machine_of, knowledge.instances))
        return cls(
            {
                address: instance
                for instance, addresses in by_instance.items()
                if machines[text.machine_of(instance)] == 1 and len(set(map(text.port, addresses))) == 1
                for address in addresses
            }
        )

    def owner_of(self, address: str | None) -> str | None:
        """Return the instance that is assumed to listen at an address."""
        return None if address is None else self.owners.get(text.comparable_address(address))

    def added_to(self, instances: Mapping[str, SqlInstance]) -> dict[str, SqlInstance]:
        """Return all instances, some with assumed addresses."""
        assumed = group_pairs((name, address) for address, name in self.owners.items())
        return {
            name: replace(instance, own_addresses=own_addresses(assumed[name])) if name in assumed else instance
            for name, instance in instances.items()
        }


def _written_addresses(evidence: FileEvidence) -> Iterator[str]:
    """Yield the addresses in routes and at the beginning of service names."""
    for row in evidence.rows["routes"]:
        yield from (address for address in (row["address"], row["mirror_address"]) if text.is_tcp(address))
    services = {
        row.get(name) for row in evidence.rows["messages"] for name in ("to_service_name", "from_service_name")
    }
    for service in services:
        address = text.address_in_name(service)
        if address is not None:
            yield address


_Names = tuple[Hashable, ...]


@dataclass
class _AskedPath:
    """A message to follow, and the instances that were exported before it was sent."""

    message: RoutedMessage
    verdict: Verdict
    from_service: str | None
    outdated: frozenset[str]

    @cached_property
    def hashed(self) -> int:
        """The hash of its dialog."""
        return dialog_id_hash(self.message.conversation_id or "")

    @property
    def names(self) -> _Names:
        """The facts that decide its path, apart from its dialog."""
        message, verdict = self.message, self.verdict
        group = message.instance, message.database, message.service, verdict.route_name
        verdict_facts = verdict.rerouted_from, verdict.matching_step, verdict.broker_instance
        return (*group, *verdict_facts, message.is_initiator, self.from_service, self.outdated)


def follow_results(
    estate: CheckedEstate,
    results: Sequence[MessageResult],
    most_paths: int = MOST_PATHS,
    *,
    on_progress: Callable[[str], None] = lambda text: None,
) -> list[MessageResult]:
    """Return the results. Messages that leave their instance get their paths.

    At most ``most_paths`` branches are followed for messages of one database to one service by one route.
    ``on_progress`` gets the number of followed messages.
    """
    follower, followed, cases = MessageFollower(estate, most_paths), list[MessageResult](), ChangedCases()
    for number, result in enumerate(results):
        if number % SAID_EVERY == 0:
            on_progress(f"followed {number:,} of {len(results):,} messages")
        path = follower.follow(result)
        followed.append(result if path is None else cases.change(result, path, path=path))
    return followed


class MessageFollower:
    """Follows messages of an estate. Messages with the same path share it as one object."""

    def __init__(self, estate: CheckedEstate, most_paths: int = MOST_PATHS) -> None:
        self._knowledge: EstateKnowledge = estate.knowledge
        self._assumed = AssumedAddresses.of_estate(estate.knowledge)
        self._network = EstateNetwork(self._assumed.added_to(estate.instances))
        self._planner = PathPlanner(self._network, is_exact=True, most_paths=most_paths)
        self._found: dict[_Names, list[tuple[int, int, JudgedPath]]] = defaultdict(list)
        self._paths_left: dict[_Names, int] = defaultdict(lambda: most_paths)
        self._of_unnamed: dict[_Names, list[tuple[int, int, JudgedPath]]] = defaultdict(list)
        self._shared: dict[Hashable, JudgedPath] = {}
        self._ages = ExportAges(estate.evidence)
        # The routing of a service does not depend on its name if no object names it.
        self._named_services = set().union(*(one.service_names for one in estate.instances.values()))

    def follow(self, result: MessageResult) -> JudgedPath | None:
        """Return the path of a message, or None if it stays on its instance or has no verdict."""
        row, case = result.row, result.case
        if case.verdict is None or case.verdict.outcome not in LEAVES:
            return None
        outdated = self._ages.find_outdated(case.instance, row["enqueue_time"])
        alike = case, row["is_initiator"], outdated
        shared = self._shared.get(alike)
        if shared is not None:
            return shared
        asked = _AskedPath(message_of(row, case.t), case.verdict, case.from_service or None, outdated)
        names = asked.names
        followed_paths = self._found[names]
        # Most messages meet no choice that their dialog makes.
        if followed_paths and followed_paths[0][0] == 1:
            return self._shared.setdefault(alike, followed_paths[0][2])
        for picks, remainder, path in followed_paths:
            if asked.hashed % picks == remainder:
                return path
        group = names[:4]
        if self._paths_left[group] <= 0:
            return NO_PATH_FOLLOWED
        picks, path = self._follow_once(asked)
        self._paths_left[group] -= len(path.forward_paths)
        followed_paths.append((picks, asked.hashed % picks, path))
        return path

    def _follow_once(self, asked: _AskedPath) -> tuple[int, JudgedPath]:
        """Follow a message. Services that no object names share their paths, because they are routed equally."""
        service, names, hashed = asked.message.service, asked.names, asked.hashed
        is_named = service in self._named_services or text.address_in_name(service) is not None
        place = (*names[:2], *names[3:], asked.message.hops_remaining, id(asked.verdict.decision))
        for picks, remainder, path in () if is_named else self._of_unnamed[place]:
            if hashed % picks == remainder:
                return picks, path
        picks, path = self._follow(asked)
        if not is_named:
            self._of_unnamed[place].append((picks, hashed % picks, path))
        return picks, path

    def _follow(self, asked: _AskedPath) -> tuple[int, JudgedPath]:
        """Return the path of a message and a number of picks. Hashes congruent by it have the same path."""
        message, outdated = asked.message, asked.outdated
        instance = self._network.instances[message.instance]
        back_to = None if asked.from_service is None else ServiceAddress.of_name(asked.from_service)
        sender = PathSender(instance, message.database, message.is_initiator, back_to)
        followed = self._planner.follow(sender, message, asked.verdict, asked.hashed)
        path = judge_path(
            followed.trace,
            (instance.name, message.database),
            lambda delivered: self._planner.follow_reply(sender, delivered, message.t),
            lambda trace, is_return: cut_ways(self._knowledge, trace, is_return=is_return, outdated=outdated),
        )
        return followed.picks, replace(path, assumed=tuple(dict.fromkeys(self._assumed_on(path.all_paths))))

    def _assumed_on(self, possible_paths: Iterable[PossiblePath]) -> Iterator[tuple[str, str]]:
        """Yield the addresses on branches with instances that are known only by name, and these instances."""
        for possible_path in possible_paths:
            # A return path with an unknown start has no hop.
            hops = possible_path.hop_path.hops
            receivers = [*(hop.instance_name for hop in hops[1:]), possible_path.hop_path.instance]
            for hop, receiver in zip(hops, receivers, strict=False):
                owner = self._assumed.owner_of(hop.address)
                if owner is not None and owner == receiver and hop.address is not None:
                    yield hop.address, owner


class ExportAges:
    """Finds the instances that were exported long before a message was sent."""

    def __init__(self, evidence: FileEvidence) -> None:
        newest = {name: evidence.views.newest(name) for name in evidence.instances}
        self._newest = {name: at for name, at in newest.items() if at is not None}
        self._older: dict[str, list[tuple[datetime, str]]] = {}

    def find_outdated(self, sender: str, sent_at: datetime) -> frozenset[str]:
        """Return the instances with an export older than a message, and far older than that of its sender."""
        if isinstance(sent_at, UnknownTime):
            return frozenset()
        if sender not in self._older:
            last = self._newest.get(sender)
            times = () if last is None else self._newest.items()
            self._older[sender] = [(at, name) for name, at in times if last is not None and last - at > APART]
        return frozenset(name for at, name in self._older[sender] if at < sent_at)


def cut_ways(
    knowledge: EstateKnowledge, trace: MessageTrace, *, is_return: bool = False, outdated: Collection[str] = ()
) -> list[PossiblePath]:
    """Return the branches of a trace, each once, up to the first hop that lacks exports.

    ``outdated`` are instances that were exported before the message was sent.
    """
    # The sender's knowledge is complete, otherwise there would be no verdict.
    first = 0 if is_return else 1
    # Paths share their first hops.
    verdicts = {
        id(hop.verdict): (hop.instance_name, hop.verdict)
        for hop_path in trace.hop_paths
        for hop in hop_path.hops[first:]
    }
    gaps = {key: _gaps_at(knowledge, name, verdict, outdated) for key, (name, verdict) in verdicts.items()}
    return list(
        dict.fromkeys(
            _cut_branch(knowledge, hop_path, first, gaps, is_return=is_return) for hop_path in trace.hop_paths
        )
    )


def _gaps_at(
    knowledge: EstateKnowledge, name: str, verdict: Verdict | None, outdated: Collection[str]
) -> Sequence[KnowledgeGap]:
    if name in outdated:
        return [KnowledgeGap(name, None, MissingKnowledge.OUTDATED)]
    return () if verdict is None else knowledge.of_verdict(name, verdict)


def _cut_branch(
    knowledge: EstateKnowledge,
    hop_path: HopPath,
    first: int,
    gaps: Mapping[int, Sequence[KnowledgeGap]],
    *,
    is_return: bool,
) -> PossiblePath:
    """Return a branch up to the first hop with missing exports (``gaps``), counted from ``first``."""
    for number, hop in enumerate(hop_path.hops[first:], first):
        unread_gaps = gaps[id(hop.verdict)]
        if unread_gaps:
            known_part = HopPath(hop_path.hops[:number], Ending.NOT_KNOWN, instance=hop.instance_name)
            return _complete_branch(known_part, unread_gaps, is_return=is_return)
    unread: list[KnowledgeGap | None] = []
    if hop_path.ending is Ending.NOT_KNOWN and hop_path.instance is not None:
        unread = [knowledge.databases(hop_path.instance), knowledge.routes(hop_path.instance, MSDB)]
    return _complete_branch(hop_path, [gap for gap in unread if gap is not None], is_return=is_return)


def _complete_branch(hop_path: HopPath, gaps: Iterable[KnowledgeGap], *, is_return: bool) -> PossiblePath:
    """Return a complete branch.

    Hops have no broker instances, and the first hop of a message has no step. Messages with different ids may then
    share a branch.
    """
    hops = [replace(hop, broker_instance=None) for hop in hop_path.hops]
    if hops and not is_return:
        hops[0] = replace(hops[0], matching_step=None)
    possible_path = PossiblePath.of(replace(hop_path, hops=tuple(hops)), is_return=is_return)
    return replace(possible_path, gaps=tuple(gaps))
