"""Plan the paths of messages over hops, there and back: of a key at every time, or as they are asked.

Names and broker instances that nothing in the estate names count alike, so that what senders invent costs little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm

from routing.plan.planner import MOST_KEYS, Planner
from routing.rules import hashing
from routing.rules.deciding import Decision, scope_of
from routing.rules.estate import SqlInstance
from routing.rules.following import (
    MOST_PICKS,
    MOST_WAYS,
    Deciding,
    FollowedTrace,
    HopPath,
    MessageTrace,
    TracedMessage,
    follow,
    follow_dialogs,
    follow_sent,
)
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import PathSender, PathWithReturn, earliest, trace_back, trace_reply
from routing.rules.resolving import RoutedMessage, Verdict, verdict_of
from routing.rules.timeline import TimeInterval
from routing.terms import BROKER_CONFIGURATION_SERVICE

_EVER = -(2**63)
"""Before every time (microseconds since 1970)."""


@dataclass(frozen=True)
class PathChoice:
    """The paths that a dialog's hash chooses.

    ``decision`` is that of the first hop; from ``hops`` left on, more change nothing. ``paths`` are those of the
    hops left that were asked for; they hold where step 4 does not end its way at the first hop, and its dialog has
    not ended.
    """

    decision: Decision
    hops: int
    paths: tuple[PathWithReturn, ...]


class PathTimeline:
    """The paths of the messages of a sender to a service, bound to one broker instance or to none."""

    def __init__(
        self,
        network: EstateNetwork,
        deciding: Deciding,
        sender: PathSender,
        to: ServiceAddress,
        broker: str | None,
    ) -> None:
        self.network, self.deciding, self.sender, self.to, self.broker = network, deciding, sender, to, broker
        self.key = to.key(sender.instance, sender.database, broker, is_initiator=sender.is_initiator)

    def intervals(self, left: Sequence[int | None], at: int | None = None) -> Iterator[TimeInterval[PathChoice]]:
        """Yield the paths of messages with these hops left (None: no limit), in the order of time.

        Where all messages are decided ``at`` one time, its interval stands for every time.
        """
        start: int | None = None
        while True:
            interval = self.at((_EVER if start is None else start) if at is None else at, left)
            ends = None if at is not None else interval.valid_to
            yield replace(interval, valid_from=start, valid_to=ends)
            start = ends
            if start is None:
                return

    def at(self, t: int, left: Sequence[int | None]) -> TimeInterval[PathChoice]:
        """Return the paths at a time, and until when they stay; one choice for each hash."""
        decided = self.deciding(self.key, self.sender.instance, t)
        one = _PathsAtTime(self, t)
        picks = _count_picks(one, decided)
        is_cut = picks is None
        # Which dialog goes which way is not found out where there are too many: all of them have too many.
        hashes = range(len(decided.choices) if picks is None else picks)
        choices = tuple([one.choice(decided.pick(hashed), hashed, left, is_cut=is_cut) for hashed in hashes])
        return TimeInterval(t, earliest(decided.valid_to, one.until), choices)


def _count_picks(one: _PathsAtTime, decided: TimeInterval[Decision]) -> int | None:
    """Return the number of hashes that tell all dialogs of a key apart; None where these are too many."""
    picks = len(decided.choices)
    while True:
        # What a dialog picks may hide from it what others pick, where there are too many ways.
        met = (one.follow(decided.pick(hashed), hashed, None).picks for hashed in range(picks))
        more = lcm(picks, *met)
        if more == picks:
            return picks
        if more > MOST_PICKS:
            return None
        picks = more


class _PathsAtTime:
    """Follows the messages of a key at a time; ``until`` is when what was found ends."""

    def __init__(self, timeline: PathTimeline, t: int) -> None:
        self.timeline, self.t = timeline, t
        self.until: int | None = None
        self._followed: dict[tuple[int, int | None], FollowedTrace] = {}

    def choice(self, decision: Decision, hashed: int, left: Sequence[int | None], *, is_cut: bool) -> PathChoice:
        """Return the paths of a hash, by the hops that its messages have left."""
        paths = tuple([self._path(decision, hashed, hops, is_cut=is_cut) for hops in left])
        return PathChoice(decision, self.follow(decision, hashed, None).hops, paths)

    def _path(self, decision: Decision, hashed: int, left: int | None, *, is_cut: bool) -> PathWithReturn:
        """Return the path of the messages of a hash that have so many hops left."""
        trace = self.follow(decision, hashed, left).trace
        return self.add_reply(replace(trace, is_cut=True) if is_cut else trace)

    def follow(self, decision: Decision, hashed: int, left: int | None) -> FollowedTrace:
        """Follow a message that has so many hops left, past step 4; ``decision`` is that of its hash."""
        remembered = self._followed.get((hashed, left))
        if remembered is not None:
            return remembered
        whose = self.timeline
        verdict = verdict_of(decision, whose.broker, left, whose.to.address)
        traced_message = TracedMessage(
            whose.to, whose.sender.is_initiator, self.t, hashed, whose.sender.conversation_id
        )
        args = (traced_message, whose.sender.instance, verdict, whose.key.scope, left)
        followed = follow(whose.network, whose.deciding, *args)
        self.until = earliest(self.until, followed.until)
        self._followed[hashed, left] = followed
        return followed

    def add_reply(self, there: MessageTrace) -> PathWithReturn:
        """Return the path of a trace with the reply to it."""
        whose = self.timeline
        path, until = trace_back(whose.network, whose.deciding, whose.sender, there, self.t)
        self.until = earliest(self.until, until)
        return path


class PathPlanner:
    """The paths of messages of an estate; keys that differ in nothing that counts share decisions.

    ``is_exact`` as `Planner` has it; ``most_ways`` of a message or a reply are followed.
    """

    def __init__(
        self,
        network: EstateNetwork,
        *,
        is_exact: bool = False,
        most_ways: int = MOST_WAYS,
        most_keys: int = MOST_KEYS,
    ) -> None:
        self.network, self._most_ways = network, most_ways
        self._deciding = Planner(is_exact=is_exact, most_keys=most_keys).at

    def timeline(self, sender: PathSender, to: ServiceAddress, broker: str | None) -> PathTimeline:
        """Return the paths of a sender's messages to a service, bound to a broker instance or to none."""
        return PathTimeline(self.network, self._deciding, sender, to, broker)

    def follow(self, sender: PathSender, message: RoutedMessage, verdict: Verdict, hashed: int) -> FollowedTrace:
        """Follow one message on from what its first instance does with it."""
        to = ServiceAddress.of_name(message.service)
        traced_message = TracedMessage(to, message.is_initiator, message.t, hashed, sender.conversation_id)
        scope = scope_of(message.database)
        args = (traced_message, sender.instance, verdict, scope, message.hops_remaining, self._most_ways)
        return follow(self.network, self._deciding, *args)

    def follow_sent(
        self, sender: SqlInstance, address: str, message: TracedMessage, broker: str | None
    ) -> Iterator[FollowedTrace]:
        """Yield the trace of a message that was sent to an address for each hash that may make a difference."""
        return follow_dialogs(
            1,
            lambda hashed: follow_sent(
                self.network, self._deciding, replace(message, hashed=hashed), sender, address, broker
            ),
        )

    def paths(
        self, sender: PathSender, message: RoutedMessage, verdicts: Sequence[Verdict]
    ) -> Iterator[PathWithReturn]:
        """Yield the paths of a message, of whose verdicts its dialog's hash picks one.

        Of a message of any dialog it is one for each hash that may make a difference.
        """

        def follow_one(hashed: int) -> FollowedTrace:
            return self.follow(sender, message, verdicts[hashed % len(verdicts)], hashed)

        if message.conversation_id is None:
            followed = follow_dialogs(len(verdicts), follow_one)
        else:
            followed = iter([follow_one(hashing.dialog_id_hash(message.conversation_id))])
        return (self.add_reply(sender, one.trace, message.t) for one in followed)

    def add_reply(self, sender: PathSender, there: MessageTrace, t: int) -> PathWithReturn:
        """Return the path of a trace with the reply to it."""
        return trace_back(self.network, self._deciding, sender, there, t)[0]

    def follow_reply(self, sender: PathSender, delivered: HopPath, t: int) -> MessageTrace | None:
        """Return the trace of the reply from where a way was delivered; None where the sender is not known."""
        back = trace_reply(self.network, self._deciding, sender, delivered, t, self._most_ways)
        return None if back is None else back.trace


def trace_open_messages(
    network: EstateNetwork, deciding: Deciding, here: SqlInstance, database: str | None, service: str, t: int
) -> Iterator[MessageTrace]:
    """Yield a trace of open messages to a service at a time for each hash that makes a difference.

    ``database`` begins their dialogs, None for those that arrive over the network. Messages that ask for a route
    first are left out: a trace knows no pending request of its first instance.
    """
    to = ServiceAddress.of_name(service)
    key = to.key(here, database, None, is_initiator=True)
    decided = deciding(key, here, t)

    def follow_one(hashed: int) -> FollowedTrace | None:
        decision = decided.pick(hashed)
        if decision.asks or decision.asks_again:
            return None
        verdict = verdict_of(decision, None, None, to.address)
        return follow(network, deciding, TracedMessage(to, True, t, hashed), here, verdict, key.scope, None)

    return (one.trace for one in follow_dialogs(len(decided.choices), follow_one))


def trace_request(
    network: EstateNetwork, deciding: Deciding, here: SqlInstance, database: str, t: int
) -> Iterator[MessageTrace]:
    """Yield the traces of a request for a route (section 5): its database begins an open dialog."""
    return trace_open_messages(network, deciding, here, database, BROKER_CONFIGURATION_SERVICE, t)
