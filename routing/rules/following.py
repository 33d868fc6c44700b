"""Follow a message from instance to instance, over every path that the transport may use.

Each instance decides an arrival by sections 1 to 5 of the rule book, with the broker instance that the message
has by then. After the first hop only requests on record are pending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from math import lcm
from typing import NamedTuple

from routing.rules.deciding import Decision, RouteSearch, RoutingKey
from routing.rules.estate import ARRIVALS, SqlInstance
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.requesting import ConversationEndpoint
from routing.rules.resolving import Verdict, names_of, plain_columns, requested, verdict_of
from routing.rules.timeline import TimeInterval
from routing.terms import Ending, MatchingStep, Outcome, Reason, TableRow


@dataclass(frozen=True)
class HopColumns:
    """The columns of a hop. Tables and rows derive from these fields.

    ``scope`` is the database of the last search. ``address`` is the next address, or that of the decision at the
    last hop. ``broker_instance`` is the one after this hop, or None while the message is open.
    """

    instance_name: str
    scope: str
    matching_step: MatchingStep | None
    route_name: str | None
    address: str | None
    outcome: Outcome
    reason: Reason
    broker_instance: str | None = None
    rerouted_from: str | None = None


HOP_COLUMNS = names_of(HopColumns)


@dataclass(frozen=True)
class PathHop(HopColumns):
    """The decision of one instance on a message.

    ``reads_address``: the address comes from the message's service name. ``verdict`` is the cause, and is ignored
    when hops are compared.
    """

    reads_address: bool = False
    verdict: Verdict | None = field(default=None, compare=False, repr=False)

    def plain(self) -> TableRow:
        """Return its columns by name, with values as tables hold them."""
        return plain_columns(self, HOP_COLUMNS)


@dataclass(frozen=True)
class HopPath:
    """One possible path of a message to its end.

    ``reason`` belongs to DELIVERED, DELAYED and DROPPED. ``instance`` is the last one (for LOOP the repeated one),
    or None for LEFT_ESTATE, which has an ``address``. ``database`` belongs to DELIVERED.
    """

    hops: tuple[PathHop, ...]
    ending: Ending
    reason: Reason | None = None
    instance: str | None = None
    database: str | None = None
    address: str | None = None

    @property
    def place(self) -> tuple[Ending, str | None, str | None]:
        """The ending, instance and database, by which paths are compared."""
        return self.ending, self.instance, self.database


@dataclass(frozen=True)
class MessageTrace:
    """All possible paths of a message. The first of ``hop_paths`` uses the reported routes.

    ``has_multiple_targets``: the transport may choose between paths of an open dialog that end at different
    broker instances. ``is_cut``: more paths exist than were followed, so the result is uncertain.
    """

    hop_paths: tuple[HopPath, ...]
    has_multiple_targets: bool = False
    is_cut: bool = False

    @property
    def ending(self) -> Ending:
        """The ending of the first path, or TOO_MANY_WAYS."""
        return Ending.TOO_MANY_WAYS if self.is_cut else self.hop_paths[0].ending

    @property
    def ways_agree(self) -> bool | None:
        """True if all paths end in the same place. None if unfollowed paths decide this."""
        agree = len({path.place for path in self.hop_paths}) == 1
        return None if agree and self.is_cut else agree

    @property
    def delivered(self) -> HopPath | None:
        """The first path that ends DELIVERED."""
        return next((path for path in self.hop_paths if path.ending is Ending.DELIVERED), None)


MOST_PATHS = 100
"""The most paths that are followed for one message."""
MOST_PICKS = 1000
"""The most combined picks (section 2.3) that distinguish the dialogs of a key."""
Deciding = Callable[[RoutingKey, SqlInstance, int], TimeInterval[Decision]]
"""Returns the decisions of a key at an instance and a time, and how long they are valid."""
_ENDINGS = {Outcome.DELIVERED: Ending.DELIVERED, Outcome.DELAYED: Ending.DELAYED, Outcome.DROPPED: Ending.DROPPED}
# The steps in which an open message may match routes to several targets.
OPEN_STEPS = (MatchingStep.SERVICE, MatchingStep.ANY_SERVICE)
_Search = tuple[str, "str | None", str]


@dataclass(frozen=True)
class TracedMessage:
    """The facts of a message that stay the same on its path.

    ``t`` is the time of all decisions. ``hashed`` is the dialog-ID hash, or a number that leads to the same picks.
    ``conversation_id`` is None if it is unknown or has no request on record.
    """

    to: ServiceAddress
    is_initiator: bool
    t: int
    hashed: int
    conversation_id: str | None = None

    @property
    def endpoint(self) -> ConversationEndpoint | None:
        """The conversation endpoint that sends the message, or None if it has no request on record."""
        conversation = self.conversation_id
        return None if conversation is None else ConversationEndpoint(conversation, self.is_initiator)


@dataclass(frozen=True)
class FollowedTrace:
    """A trace with its validity.

    It applies until ``until`` (None: for ever), to every hash congruent modulo ``picks``, and to messages with at
    least ``hops`` remaining hops.
    """

    trace: MessageTrace
    until: int | None
    picks: int
    hops: int


class _Ahead(NamedTuple):
    """A message between two hops. ``owner`` is None outside the estate. ``nodes`` are earlier open choices."""

    hops: tuple[PathHop, ...]
    owner: SqlInstance | None
    broker: str | None
    hops_remaining: int | None
    tested: int
    searches: tuple[_Search, ...]
    nodes: tuple[int, ...]


def follow(
    network: EstateNetwork,
    deciding: Deciding,
    message: TracedMessage,
    instance: SqlInstance,
    verdict: Verdict,
    scope: str,
    hops_remaining: int | None,
    most_paths: int = MOST_PATHS,
) -> FollowedTrace:
    """Follow a message after the decision of its first instance, with all hops decided at one time.

    ``scope`` is the database of the first search. At most ``most_paths`` paths are followed, in the order of the
    rules: the chosen route before its alternatives, an address before its mirror, instances by name.
    """
    walk = _Walk(network, deciding, message, most_paths)
    searches = _searches(verdict, instance)
    start = _Ahead((), instance, verdict.broker_instance, hops_remaining, 0, searches, ())
    return walk.run(start, verdict, scope)


def _searches(verdict: Verdict, instance: SqlInstance) -> tuple[_Search, ...]:
    """Return the searches of the first instance.

    Messages with different broker instances may share a decision, so the verdict provides the broker instance.
    """
    decision = verdict.decision
    if decision is None:
        return ()
    broker = verdict.broker_instance if decision.pick is None else None
    first_search = (instance.name, broker, decision.first.scope)
    if decision.second is None:
        return (first_search,)
    picked = decision.first.pick
    return first_search, (instance.name, broker if picked is None else picked, decision.second.scope)


def follow_dialogs(first: int, follow_one: Callable[[int], FollowedTrace | None]) -> Iterator[FollowedTrace]:
    """Yield a trace for each dialog-ID hash that may make a difference.

    ``first`` is the number of decisions at the first hop. ``follow_one`` follows a message with this hash, or
    returns None. Later hops may distinguish more dialogs, up to `MOST_PICKS`.
    """
    hashed, picks = 0, first
    while hashed < max(first, min(picks, MOST_PICKS)):
        followed = follow_one(hashed)
        if followed is not None:
            picks = lcm(picks, followed.picks)
            yield followed
        hashed += 1


class _Walk:
    """Follows paths depth first. ``targets`` collects the broker instances after each choice of an open dialog."""

    def __init__(
        self, network: EstateNetwork, deciding: Deciding, message: TracedMessage, most_paths: int
    ) -> None:
        self.network, self.deciding, self.message, self._most_paths = network, deciding, message, most_paths
        self.paths: list[HopPath] = []
        self.targets: list[set[str | None]] = []
        self.until: int | None = None
        self.picks, self.tested = 1, 0

    def run(self, start: _Ahead, verdict: Verdict, scope: str) -> FollowedTrace:
        """Follow all paths after the first verdict."""
        ahead = self._leave(start, verdict, scope)
        while ahead and len(self.paths) < self._most_paths:
            ahead += self._arrive(ahead.pop())
        is_cut = bool(ahead) or self.picks > MOST_PICKS
        has_several_targets = any(len(reached) > 1 for reached in self.targets)
        return FollowedTrace(
            MessageTrace(tuple(self.paths), has_several_targets, is_cut), self.until, self.picks, self.tested
        )

    def _arrive(self, ahead: _Ahead) -> list[_Ahead]:
        """Decide an arrival, and return its next steps, the first one last."""
        instance, t = ahead.owner, self.message.t
        if instance is None:
            self.paths.append(HopPath(ahead.hops, Ending.LEFT_ESTATE, address=ahead.hops[-1].address))
            return []
        search = (instance.name, ahead.broker, ARRIVALS)
        if search in ahead.searches or instance.is_only_addressed:
            ending = Ending.LOOP if search in ahead.searches else Ending.NOT_KNOWN
            self.paths.append(HopPath(ahead.hops, ending, instance=instance.name))
            return []
        key = self.message.to.key(instance, None, ahead.broker, is_initiator=self.message.is_initiator)
        timed = self.deciding(key, instance, t)
        self._ends_at(timed.valid_to)
        self.picks = lcm(self.picks, len(timed.choices))
        decision = timed.pick(self.message.hashed)
        verdict = self._judge(decision, instance, ahead)
        arrived = ahead._replace(searches=(*ahead.searches, search), broker=verdict.broker_instance)
        return self._leave(arrived, verdict, ARRIVALS)

    def _judge(self, decision: Decision, instance: SqlInstance, ahead: _Ahead) -> Verdict:
        if decision.asks:
            message = self.message
            stops, until = self.network.is_requested(instance, ARRIVALS, message.to, message.t, message.endpoint)
            self._ends_at(until)
            if stops:
                return requested(decision, ahead.broker, ARRIVALS)
        return verdict_of(decision, ahead.broker, ahead.hops_remaining, self.message.to.address)

    def _ends_at(self, moment: int | None) -> None:
        if moment is not None:
            self.until = moment if self.until is None else min(self.until, moment)

    def _leave(self, step: _Ahead, verdict: Verdict, scope: str) -> list[_Ahead]:
        """Return the next steps after a verdict, the first one last, or none if the path ends here."""
        decision, instance = verdict.decision, step.owner
        if instance is None:
            raise ValueError("nothing leaves from outside the estate")
        last = None if decision is None else decision.last
        tested = step.tested + (last is not None and last.end.counts_hops)
        self.tested = max(self.tested, tested)
        hop = _hop_of(verdict, instance, scope)
        if verdict.outcome in _ENDINGS:
            self._end(step, instance, hop, verdict)
            return []
        hops_remaining = step.hops_remaining
        if verdict.outcome is Outcome.FORWARDED and hops_remaining is not None:
            hops_remaining -= 1
        onward = step._replace(hops_remaining=hops_remaining, tested=tested, nodes=self._nodes(step, last))
        # Each step is at least one path, so one step above the limit shows that there are more.
        remaining_paths = self._most_paths - len(self.paths) + 1
        return list(islice(self._onward(onward, instance, hop, last), remaining_paths))[::-1]

    def _onward(
        self, onward: _Ahead, instance: SqlInstance, hop: PathHop, last: RouteSearch | None
    ) -> Iterator[_Ahead]:
        """Yield a step to each address that the transport may use, and to each instance there."""
        for name, address in () if last is None else last.possible_addresses(self.message.to.address):
            is_reported = (name, address) == (hop.route_name, hop.address)
            taken_hop = hop if is_reported else replace(hop, route_name=name, address=address)
            hops = (*onward.hops, taken_hop)
            yield from (onward._replace(hops=hops, owner=owner) for owner in self._owners(address, instance))

    def _owners(self, address: str | None, sender: SqlInstance) -> tuple[SqlInstance | None, ...]:
        # The address is None if it comes from an unknown service name. No known instance has it.
        return (address is not None and self.network.owners(address, sender)) or (None,)

    def _end(self, step: _Ahead, instance: SqlInstance, hop: PathHop, verdict: Verdict) -> None:
        database = verdict.destination_database
        ending = _ENDINGS[verdict.outcome]
        self.paths.append(HopPath((*step.hops, hop), ending, verdict.reason, instance.name, database))
        if database is not None:
            for node in step.nodes:
                self.targets[node].add(instance.databases[database].broker)

    def _nodes(self, step: _Ahead, search: RouteSearch | None) -> tuple[int, ...]:
        """Return the choices of an open dialog up to this hop. Bound or balanced dialogs have none."""
        if search is None or search.step not in OPEN_STEPS or search.broker is not None:
            return step.nodes
        self.targets.append(set())
        return (*step.nodes, len(self.targets) - 1)


def _hop_of(verdict: Verdict, instance: SqlInstance, scope: str) -> PathHop:
    last = verdict.last
    return PathHop(
        instance.name,
        scope if last is None else last.scope,
        verdict.matching_step,
        verdict.route_name,
        verdict.address,
        verdict.outcome,
        verdict.reason,
        verdict.broker_instance,
        verdict.rerouted_from,
        reads_address=last is not None and verdict.requested_in is None and last.reads_address,
        verdict=verdict,
    )
