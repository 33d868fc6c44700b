"""Follow a message there and back: `follow` goes there, `trace_reply` follows the reply."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from routing.rules.deciding import Decision, RoutingKey
from routing.rules.estate import ARRIVALS, SqlInstance
from routing.rules.following import (
    MOST_WAYS,
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
from routing.terms import Ending, MatchingStep, Outcome, PathEnd, Reason


@dataclass(frozen=True)
class PathSender:
    """The sender: ``database`` None for an arrival. ``back_to`` is the service that sent, None where unknown.

    ``conversation_id`` is None where the conversation is not known, or no request on record is of it (D10).
    """

    instance: SqlInstance
    database: str | None
    is_initiator: bool
    back_to: ServiceAddress | None = None
    conversation_id: str | None = None

    @property
    def broker(self) -> str | None:
        """The id of the database that sent, to which a reply is bound; None where it is not known, or has none."""
        return None if self.database is None else self.instance.databases[self.database].broker


@dataclass(frozen=True)
class PathWithReturn:
    """The path of a message, and that of the reply to it.

    ``back`` is None if there is no trace of it: nothing was delivered, or ``is_back_unknown``. ``judged`` is the
    same path judged over all its ways (D17).
    """

    there: MessageTrace
    judged: JudgedPath = field(compare=False, repr=False)
    back: MessageTrace | None = None
    is_back_unknown: bool = False

    @property
    def end(self) -> HopPath | None:
        """The way that counts: the first; None for TOO_MANY_WAYS."""
        return None if self.there.is_cut else self.there.hop_paths[0]

    @property
    def back_ending(self) -> Ending | None:
        """How the reply ends; None where nothing was delivered."""
        if self.back is None:
            return Ending.NOT_KNOWN if self.is_back_unknown else None
        return self.back.ending


def trace_back(
    network: EstateNetwork, deciding: Deciding, sender: PathSender, there: MessageTrace, t: int
) -> tuple[PathWithReturn, int | None]:
    """Return the path of a message that was traced there, with its reply; and the time before which it holds.

    The reply in the table goes from where the first way was delivered; the joint end follows one from each place.
    """
    replies: dict[Place, FollowedTrace | None] = {}

    def follow_reply(delivered: HopPath) -> MessageTrace | None:
        place = delivered.instance, delivered.database
        if place not in replies:
            replies[place] = trace_reply(network, deciding, sender, delivered, t)
        reply = replies[place]
        return None if reply is None else reply.trace

    judged = judge_path(there, (sender.instance.name, sender.database), follow_reply)
    first = there.delivered
    back = None if first is None else follow_reply(first)
    until = earliest(*(reply.until for reply in replies.values() if reply is not None))
    return PathWithReturn(there, judged, back, is_back_unknown=first is not None and back is None), until


def trace_reply(
    network: EstateNetwork,
    deciding: Deciding,
    sender: PathSender,
    delivered: HopPath,
    t: int,
    most_ways: int = MOST_WAYS,
) -> FollowedTrace | None:
    """Follow the reply from where a way was delivered to the service that sent, bound to the sender's id.

    None where the service, or the id of its database, is not known.
    """
    back_to, broker = sender.back_to, sender.broker
    if back_to is None or broker is None or delivered.instance is None:
        return None
    here, database = network.instances[delivered.instance], delivered.database
    key = back_to.key(here, database, broker, is_initiator=not sender.is_initiator)
    timed = deciding(key, here, t)
    # Bound to an id there is nothing to pick.
    [decision] = timed.choices
    message = TracedMessage(back_to, not sender.is_initiator, t, 0, sender.conversation_id)
    verdict, until = _reply(network, decision, here, key, message)
    back = follow(network, deciding, message, here, verdict, key.scope, None, most_ways)
    return replace(back, until=earliest(timed.valid_to, until, back.until))


def _reply(
    network: EstateNetwork, decision: Decision, here: SqlInstance, key: RoutingKey, message: TracedMessage
) -> tuple[Verdict, int | None]:
    """Return the verdict of a reply where it is sent, by the requests on record; and until when it holds."""
    until: int | None = None
    if decision.asks:
        stops, until = network.is_requested(here, key.scope, message.to, message.t, message.endpoint)
        if stops:
            return requested(decision, key.broker, key.scope), until
    if decision.asks_again:
        stops, ends = network.is_requested(here, ARRIVALS, message.to, message.t, message.endpoint)
        until = earliest(until, ends)
        if stops:
            return requested_again(decision, key.broker), until
    return verdict_of(decision, key.broker, None, message.to.address), until


def earliest(*moments: int | None) -> int | None:
    """Return the first of some times, None for never."""
    return min((moment for moment in moments if moment is not None), default=None)


# What a table says of a path: the columns of ``message_paths`` that the rules decide.


class HopRow(NamedTuple):
    """A hop as the table has it."""

    instance_name: str
    scope: str
    matching_step: int | None
    route_name: str | None
    address: str | None
    outcome: str
    reason: str


class PathRow(NamedTuple):
    """A path as the table has it. ``reason`` and the end's place are null where there is none (`HopPath`).

    ``joint_ending`` is the `PathEnd` over all ways there and back; null in rows of releases before 0.3.0.
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
    """Return the row of a path. Where there are too many ways its hops are still those of the first."""
    there, back = path.there, path.back
    end = path.end
    reply = None if back is None or back.is_cut else back.hop_paths[0]
    back_ending = path.back_ending
    return PathRow(
        str(there.ending),
        _text(None if end is None else end.reason),
        None if end is None else end.instance,
        None if end is None else end.database,
        None if end is None else end.address,
        tuple(_hop(hop) for hop in there.hop_paths[0].hops),
        there.ways_agree,
        there.has_multiple_targets,
        _text(back_ending),
        _text(None if reply is None else reply.reason),
        None if reply is None else reply.instance,
        None if reply is None else reply.database,
        None if back is None else back.ways_agree,
        str(path.judged.end),
    )


def reads_address(there: MessageTrace) -> bool:
    """Return True if the last hop of the first way has the address of a service name that is not known."""
    last = there.hop_paths[0].hops[-1]
    return last.reads_address and last.address is None


class FirstHop(NamedTuple):
    """The end of a message at its first hop, whatever the routes: why, and in which step."""

    ending: Ending
    reason: Reason
    step: MatchingStep | None
    joint_ending: PathEnd


EXPIRED = FirstHop(Ending.DROPPED, Reason.DIALOG_EXPIRED, None, PathEnd.DROPPED)
"""A message of an expired dialog."""
REQUESTED = FirstHop(Ending.DELAYED, Reason.ROUTE_REQUESTED, MatchingStep.ROUTE_REQUEST, PathEnd.DELAYED)
"""A message that opens a request for a route."""


def end_at_first_hop(first: FirstHop, instance: str, scope: str) -> PathRow:
    """Return the row of a path that ends at its first hop; ``scope``: the database whose routes were searched."""
    step = None if first.step is None else int(first.step)
    ending, reason = str(first.ending), str(first.reason)
    hops = (HopRow(instance, scope, step, None, None, ending, reason),)
    end = str(first.joint_ending)
    return PathRow(ending, reason, instance, None, None, hops, True, False, None, None, None, None, None, end)


def _hop(hop: PathHop) -> HopRow:
    plain = hop.plain()
    return HopRow(*(plain[name] for name in HopRow._fields))


def _text(word: Outcome | Ending | Reason | None) -> str | None:
    return None if word is None else str(word)
