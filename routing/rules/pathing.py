"""The whole path of a message, there and back: `follow` goes there, `trace_reply` follows the reply."""

from __future__ import annotations

from dataclasses import dataclass, replace

from routing.rules.deciding import Decision, Key
from routing.rules.estate import ARRIVALS, Instance
from routing.rules.following import MOST_WAYS, Deciding, Errand, Followed, follow
from routing.rules.network import Addressee, Network
from routing.rules.resolving import Verdict, requested, requested_again, settled
from routing.rules.ways import Trace, Way
from routing.terms import Ending


@dataclass(frozen=True)
class Sender:
    """Who sends: ``database`` None for an arrival. ``back_to`` is the service that sent, None where unknown.

    ``conversation_id`` is None where the conversation is not known, or no request on record is of it (D10).
    """

    instance: Instance
    database: str | None
    is_initiator: bool
    back_to: Addressee | None = None
    conversation_id: str | None = None

    @property
    def broker(self) -> str | None:
        """The id of the database that sent, to which a reply is bound; None where it is not known, or has none."""
        return None if self.database is None else self.instance.databases[self.database].broker


@dataclass(frozen=True)
class Path:
    """Where a message ends, and the reply to it.

    ``back`` is None where there is no trace of it: nothing was delivered, or ``is_back_unknown``.
    """

    there: Trace
    back: Trace | None = None
    is_back_unknown: bool = False

    @property
    def end(self) -> Way | None:
        """The way that counts: the first; None for TOO_MANY_WAYS."""
        return None if self.there.is_cut else self.there.ways[0]

    @property
    def back_ending(self) -> Ending | None:
        """How the reply ends; None where nothing was delivered."""
        if self.back is None:
            return Ending.NOT_KNOWN if self.is_back_unknown else None
        return self.back.ending


def trace_back(
    network: Network, deciding: Deciding, sender: Sender, there: Trace, t: int
) -> tuple[Path, int | None]:
    """Return the path of a message that was traced there, with its reply; and the time before which it holds.

    The reply goes from where the first way was delivered.
    """
    delivered = there.delivered
    if delivered is None:
        return Path(there), None
    back = trace_reply(network, deciding, sender, delivered, t)
    if back is None:
        return Path(there, is_back_unknown=True), None
    return Path(there, back.trace), back.until


def trace_reply(
    network: Network, deciding: Deciding, sender: Sender, delivered: Way, t: int, most_ways: int = MOST_WAYS
) -> Followed | None:
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
    errand = Errand(back_to, not sender.is_initiator, t, 0, sender.conversation_id)
    verdict, until = _reply(network, decision, here, key, errand)
    back = follow(network, deciding, errand, here, verdict, key.scope, None, most_ways)
    return replace(back, until=earliest(timed.valid_to, until, back.until))


def _reply(
    network: Network, decision: Decision, here: Instance, key: Key, errand: Errand
) -> tuple[Verdict, int | None]:
    """Return the verdict of a reply where it is sent, by the requests on record; and until when it holds."""
    until: int | None = None
    if decision.asks:
        stops, until = network.is_requested(here, key.scope, errand.to, errand.t, errand.endpoint)
        if stops:
            return requested(decision, key.broker, key.scope), until
    if decision.asks_again:
        stops, ends = network.is_requested(here, ARRIVALS, errand.to, errand.t, errand.endpoint)
        until = earliest(until, ends)
        if stops:
            return requested_again(decision, key.broker), until
    return settled(decision, key.broker, None, errand.to.address), until


def earliest(*moments: int | None) -> int | None:
    """Return the first of some times, None for never."""
    return min((moment for moment in moments if moment is not None), default=None)
