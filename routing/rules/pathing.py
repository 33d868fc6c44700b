"""Follow a message to its end, and its reply back to the sender."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from routing.rules.deciding import Decision, RoutingKey
from routing.rules.estate import ARRIVALS, SqlInstance
from routing.rules.following import (
    MOST_PATHS,
    Deciding,
    FollowedTrace,
    HopPath,
    MessageTrace,
    PathHop,
    TracedMessage,
    follow,
)
from routing.rules.judging import JudgedPath, Place, judge_path
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.resolving import Verdict, requested, requested_again, verdict_of
from routing.terms import Ending, MatchingStep, Outcome, Reason


@dataclass(frozen=True)
class PathSender:
    """The sender. ``database`` is None for an arrival. ``back_to`` is the sending service, or None if unknown.

    ``conversation_id`` is None if it is unknown or has no request on record (D10).
    """

    instance: SqlInstance
    database: str | None
    is_initiator: bool
    back_to: ServiceAddress | None = None
    conversation_id: str | None = None

    @property
    def broker(self) -> str | None:
        """The broker instance of the sending database, to which a reply is bound, or None."""
        return None if self.database is None else self.instance.databases[self.database].broker


@dataclass(frozen=True)
class PathWithReturn:
    """The path of a message and of its reply.

    ``back`` is None if no path delivers, or if ``is_back_unknown``. ``judged`` has the joint ending (D17).
    """

    there: MessageTrace
    judged: JudgedPath = field(compare=False, repr=False)
    back: MessageTrace | None = None
    is_back_unknown: bool = False

    @property
    def end(self) -> HopPath | None:
        """The first path, or None for TOO_MANY_WAYS."""
        return None if self.there.is_cut else self.there.hop_paths[0]

    @property
    def back_ending(self) -> Ending | None:
        """The ending of the reply, or None if no path delivers."""
        if self.back is None:
            return Ending.NOT_KNOWN if self.is_back_unknown else None
        return self.back.ending


class KeptMessage(NamedTuple):
    """The decision on messages that their own instance keeps or drops, independent of routes."""

    outcome: Outcome
    reason: Reason
    step: MatchingStep | None = None

    def path(self, instance: str, scope: str) -> PathWithReturn:
        """Return the path of these messages. ``scope`` is the searched database."""
        hop = PathHop(instance, scope, self.step, None, None, self.outcome, self.reason)
        trace = MessageTrace((HopPath((hop,), Ending(self.outcome), self.reason, instance),))
        return PathWithReturn(trace, judge_path(trace, (instance, scope), lambda _: None))


EXPIRED = KeptMessage(Outcome.DROPPED, Reason.DIALOG_EXPIRED)
"""A message of an expired dialog."""
REQUESTED = KeptMessage(Outcome.DELAYED, Reason.ROUTE_REQUESTED, MatchingStep.ROUTE_REQUEST)
"""A message that opens a request for a route."""


def trace_back(
    network: EstateNetwork, deciding: Deciding, sender: PathSender, forward: MessageTrace, t: int
) -> tuple[PathWithReturn, int | None]:
    """Return the path of a traced message with its reply, and the end of its validity.

    The table has the reply from the first delivery. The joint ending follows a reply from each place.
    """
    replies: dict[Place, FollowedTrace | None] = {}

    def follow_reply(delivered: HopPath) -> MessageTrace | None:
        place = delivered.instance, delivered.database
        if place not in replies:
            replies[place] = trace_reply(network, deciding, sender, delivered, t)
        reply = replies[place]
        return None if reply is None else reply.trace

    judged = judge_path(forward, (sender.instance.name, sender.database), follow_reply)
    first = forward.delivered
    back = None if first is None else follow_reply(first)
    until = earliest(*(reply.until for reply in replies.values() if reply is not None))
    return PathWithReturn(forward, judged, back, is_back_unknown=first is not None and back is None), until


def trace_reply(
    network: EstateNetwork,
    deciding: Deciding,
    sender: PathSender,
    delivered: HopPath,
    t: int,
    most_paths: int = MOST_PATHS,
) -> FollowedTrace | None:
    """Follow the reply from a delivery to the sending service, bound to the sender's broker instance.

    Returns None if the service or that broker instance is unknown.
    """
    back_to, broker = sender.back_to, sender.broker
    if back_to is None or broker is None or delivered.instance is None:
        return None
    receiver, database = network.instances[delivered.instance], delivered.database
    key = back_to.key(receiver, database, broker, is_initiator=not sender.is_initiator)
    timed = deciding(key, receiver, t)
    # A reply is bound to a broker instance, so step 3 picks nothing.
    [decision] = timed.choices
    message = TracedMessage(back_to, not sender.is_initiator, t, 0, sender.conversation_id)
    verdict, until = _reply(network, decision, receiver, key, message)
    reply = follow(network, deciding, message, receiver, verdict, key.scope, None, most_paths)
    return replace(reply, until=earliest(timed.valid_to, until, reply.until))


def _reply(
    network: EstateNetwork, decision: Decision, receiver: SqlInstance, key: RoutingKey, message: TracedMessage
) -> tuple[Verdict, int | None]:
    """Return the verdict of a reply at its own instance, and the end of its validity."""
    until: int | None = None
    if decision.asks:
        stops, until = network.is_requested(receiver, key.scope, message.to, message.t, message.endpoint)
        if stops:
            return requested(decision, key.broker, key.scope), until
    if decision.asks_again:
        stops, ends = network.is_requested(receiver, ARRIVALS, message.to, message.t, message.endpoint)
        until = earliest(until, ends)
        if stops:
            return requested_again(decision, key.broker), until
    return verdict_of(decision, key.broker, None, message.to.address), until


def earliest(*moments: int | None) -> int | None:
    """Return the earliest time. None means never."""
    return min((moment for moment in moments if moment is not None), default=None)


# The columns of ``message_paths`` that the rules decide.


class HopRow(NamedTuple):
    """A hop with the columns of the table."""

    instance_name: str
    scope: str
    matching_step: int | None
    route_name: str | None
    address: str | None
    outcome: str
    reason: str


class PathRow(NamedTuple):
    """A path with the columns of the table. ``reason`` and the place of the ending may be null (`HopPath`).

    ``joint_ending`` is the `PathEnd` over all paths. It is null in rows of releases before 0.3.0.
    """

    outcome: str
    reason: str | None
    final_instance_name: str | None
    final_database_name: str | None
    final_address: str | None
    hops: tuple[HopRow, ...]
    ways_agree: bool | None
    multiple_targets: bool
    return_outcome: str | None
    return_reason: str | None
    return_instance_name: str | None
    return_database_name: str | None
    return_ways_agree: bool | None
    joint_ending: str | None


def path_row(path: PathWithReturn) -> PathRow:
    """Return the row of a path. With too many paths it has the hops of the first one."""
    forward, back = path.there, path.back
    end = path.end
    reply = None if back is None or back.is_cut else back.hop_paths[0]
    back_ending = path.back_ending
    return PathRow(
        str(forward.ending),
        _text(None if end is None else end.reason),
        None if end is None else end.instance,
        None if end is None else end.database,
        None if end is None else end.address,
        tuple(_hop(hop) for hop in forward.hop_paths[0].hops),
        forward.ways_agree,
        forward.has_multiple_targets,
        _text(back_ending),
        _text(None if reply is None else reply.reason),
        None if reply is None else reply.instance,
        None if reply is None else reply.database,
        None if back is None else back.ways_agree,
        str(path.judged.end),
    )


def reads_address(forward: MessageTrace) -> bool:
    """Return True if the last hop of the first path takes its address from an unknown service name."""
    last = forward.hop_paths[0].hops[-1]
    return last.reads_address and last.address is None


def _hop(hop: PathHop) -> HopRow:
    plain = hop.plain()
    return HopRow(*(plain[name] for name in HopRow._fields))


def _text(word: Outcome | Ending | Reason | None) -> str | None:
    return None if word is None else str(word)
