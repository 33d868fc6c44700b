"""Plan the paths of messages over hops, there and back: for a key at every time, or for single messages.

Names and broker instances that are unknown in the estate are equivalent, so that invented names cost little.
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
    MOST_PATHS,
    MOST_PICKS,
    Deciding,
    FollowedTrace,
    HopPath,
    MessageTrace,
    TracedMessage,
    follow,
    follow_dialogs,
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

    ``decision`` is that of the first hop. From ``hops`` on, further hops make no difference. ``paths`` has one
    path for each requested number of remaining hops. They are valid if step 4 does not end the path at the first
    hop, and if the dialog has not ended.
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

        If all messages are decided ``at`` one time, its interval represents every time.
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
        """Return the paths at a time and the end of their interval, with one choice for each hash."""
        decided = self.deciding(self.key, self.sender.instance, t)
        one = _PathsAtTime(self, t)
        picks = _count_picks(one, decided)
        is_cut = picks is None
        # With too many paths, the paths of single dialogs are not determined, because all of them have too many.
        hashes = range(len(decided.choices) if picks is None else picks)
        choices = tuple([one.choice(decided.pick(hashed), hashed, left, is_cut=is_cut) for hashed in hashes])
        return TimeInterval(t, earliest(decided.valid_to, one.until), choices)


def _count_picks(one: _PathsAtTime, decided: TimeInterval[Decision]) -> int | None:
    """Return the number of hashes that distinguish all dialogs of a key, or None if there are too many."""
    picks = len(decided.choices)
    while True:
        # With too many paths, the picks of a dialog may hide those of others.
        met = (one.follow(decided.pick(hashed), hashed, None).picks for hashed in range(picks))
        more = lcm(picks, *met)
        if more == picks:
            return picks
        if more > MOST_PICKS:
            return None
        picks = more


class _PathsAtTime:
    """Follows the messages of a key at a time. The results are valid until ``until``."""

    def __init__(self, timeline: PathTimeline, t: int) -> None:
        self.timeline, self.t = timeline, t
        self.until: int | None = None
        self._followed: dict[tuple[int, int | None], FollowedTrace] = {}

    def choice(self, decision: Decision, hashed: int, left: Sequence[int | None], *, is_cut: bool) -> PathChoice:
        """Return the paths of a hash, by the hops that its messages have left."""
        paths = tuple([self._path(decision, hashed, hops, is_cut=is_cut) for hops in left])
        return PathChoice(decision, self.follow(decision, hashed, None).hops, paths)

    def _path(self, decision: Decision, hashed: int, left: int | None, *, is_cut: bool) -> PathWithReturn:
        """Return the path of the messages of a hash with these hops left."""
        trace = self.follow(decision, hashed, left).trace
        return self.add_reply(replace(trace, is_cut=True) if is_cut else trace)

    def follow(self, decision: Decision, hashed: int, left: int | None) -> FollowedTrace:
        """Follow a message with these hops left past step 4. ``decision`` is that of its hash."""
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

    def add_reply(self, forward: MessageTrace) -> PathWithReturn:
        """Return the path of a trace with the reply to it."""
        whose = self.timeline
        path, until = trace_back(whose.network, whose.deciding, whose.sender, forward, self.t)
        self.until = earliest(self.until, until)
        return path


class PathPlanner:
    """The paths of messages of an estate. Equivalent keys share decisions.

    ``is_exact`` is that of `Planner`. At most ``most_paths`` paths of a message or a reply are followed.
    """

    def __init__(
        self,
        network: EstateNetwork,
        *,
        is_exact: bool = False,
        most_paths: int = MOST_PATHS,
        most_keys: int = MOST_KEYS,
    ) -> None:
        self.network, self._most_paths = network, most_paths
        self._deciding = Planner(is_exact=is_exact, most_keys=most_keys).at

    def timeline(self, sender: PathSender, to: ServiceAddress, broker: str | None) -> PathTimeline:
        """Return the paths of a sender's messages to a service, bound to a broker instance or to none."""
        return PathTimeline(self.network, self._deciding, sender, to, broker)

    def follow(self, sender: PathSender, message: RoutedMessage, verdict: Verdict, hashed: int) -> FollowedTrace:
        """Follow one message from the decision of its first instance."""
        to = ServiceAddress.of_name(message.service)
        traced_message = TracedMessage(to, message.is_initiator, message.t, hashed, sender.conversation_id)
        scope = scope_of(message.database)
        args = (traced_message, sender.instance, verdict, scope, message.hops_remaining, self._most_paths)
        return follow(self.network, self._deciding, *args)

    def paths(
        self, sender: PathSender, message: RoutedMessage, verdicts: Sequence[Verdict]
    ) -> Iterator[PathWithReturn]:
        """Yield the paths of a message. Its dialog's hash picks one of the verdicts.

        A message of an unknown dialog has one path for each hash that may make a difference.
        """

        def follow_one(hashed: int) -> FollowedTrace:
            return self.follow(sender, message, verdicts[hashed % len(verdicts)], hashed)

        if message.conversation_id is None:
            followed = follow_dialogs(len(verdicts), follow_one)
        else:
            followed = iter([follow_one(hashing.dialog_id_hash(message.conversation_id))])
        return (self.add_reply(sender, one.trace, message.t) for one in followed)

    def add_reply(self, sender: PathSender, forward: MessageTrace, t: int) -> PathWithReturn:
        """Return the path of a trace with the reply to it."""
        return trace_back(self.network, self._deciding, sender, forward, t)[0]

    def follow_reply(self, sender: PathSender, delivered: HopPath, t: int) -> MessageTrace | None:
        """Return the trace of the reply from the end of a path, or None if the sender is unknown."""
        reply = trace_reply(self.network, self._deciding, sender, delivered, t, self._most_paths)
        return None if reply is None else reply.trace


def trace_open_messages(
    network: EstateNetwork, deciding: Deciding, instance: SqlInstance, database: str | None, service: str, t: int
) -> Iterator[MessageTrace]:
    """Yield a trace of open messages to a service at a time for each relevant hash.

    ``database`` begins their dialogs, or is None for arrivals. Messages that first ask for a route are left out,
    because a trace knows no pending request of its first instance.
    """
    to = ServiceAddress.of_name(service)
    key = to.key(instance, database, None, is_initiator=True)
    decided = deciding(key, instance, t)

    def follow_one(hashed: int) -> FollowedTrace | None:
        decision = decided.pick(hashed)
        if decision.asks or decision.asks_again:
            return None
        verdict = verdict_of(decision, None, None, to.address)
        return follow(network, deciding, TracedMessage(to, True, t, hashed), instance, verdict, key.scope, None)

    return (one.trace for one in follow_dialogs(len(decided.choices), follow_one))


def trace_request(
    network: EstateNetwork, deciding: Deciding, instance: SqlInstance, database: str, t: int
) -> Iterator[MessageTrace]:
    """Yield the traces of a request for a route (section 5): its database begins an open dialog."""
    return trace_open_messages(network, deciding, instance, database, BROKER_CONFIGURATION_SERVICE, t)
