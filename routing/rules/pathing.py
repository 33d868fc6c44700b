"""The whole path of a message, there and back; and of all messages that have a key, at every time.

`follow` goes there, `trace_back` follows the reply; `plan_paths` does both once for all messages of a key.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from math import lcm

from routing.rules.deciding import Decision, Key, Timed, decide, signature
from routing.rules.estate import ARRIVALS, Instance
from routing.rules.following import MOST_PICKS, Deciding, Errand, Followed, follow
from routing.rules.network import Addressee, Network
from routing.rules.resolving import Verdict, requested, requested_again, settled
from routing.rules.ways import Trace, Way
from routing.terms import Ending

_EVER = -(2**63)
"""Before every time (microseconds since 1970)."""


@dataclass(frozen=True)
class Sender:
    """Who sends: ``database`` None for an arrival. ``back_to`` is the service that sent, None where unknown."""

    instance: Instance
    database: str | None
    is_initiator: bool
    back_to: Addressee | None = None

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
    """The path of a message that was traced there, with its reply; and the time before which it holds.

    The reply goes from where the first way was delivered to the service that sent, bound to the sender's id.
    """
    delivered = there.delivered
    if delivered is None:
        return Path(there), None
    back_to, broker = sender.back_to, sender.broker
    if back_to is None or broker is None or delivered.instance is None:
        return Path(there, is_back_unknown=True), None
    here, database = network.instances[delivered.instance], delivered.database
    key = back_to.key(here, database, broker, is_initiator=not sender.is_initiator)
    timed = deciding(key, here, t)
    # Bound to an id there is nothing to pick.
    [decision] = timed.decisions
    verdict, until = _reply(network, decision, here, key, back_to, t)
    errand = Errand(back_to, not sender.is_initiator, t, 0)
    back = follow(network, deciding, errand, here, verdict, key.scope, None)
    return Path(there, back.trace), _earliest(timed.valid_to, until, back.until)


def _reply(
    network: Network, decision: Decision, here: Instance, key: Key, back_to: Addressee, t: int
) -> tuple[Verdict, int | None]:
    """What becomes of a reply where it is sent, by the requests on record; and until when."""
    until: int | None = None
    if decision.asks:
        is_pending, until = network.is_pending(here, key.scope, back_to, t)
        if not is_pending:
            return requested(decision, key.broker, key.scope), until
    if decision.asks_again:
        is_pending, ends = network.is_pending(here, ARRIVALS, back_to, t)
        until = _earliest(until, ends)
        if not is_pending:
            return requested_again(decision, key.broker), until
    return settled(decision, key.broker, None, back_to.address), until


class Timelines:
    """Decisions that are made once for all times; keys that differ in nothing which counts share them."""

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[list[int], list[Timed]]] = {}

    def __call__(self, key: Key, instance: Instance, t: int) -> Timed:
        """The decisions of a key at a time."""
        shared = (instance.name, key.database, signature(key, instance))
        found = self._found.get(shared)
        if found is None:
            rows = list(decide(key, instance))
            starts = [_EVER if row.valid_from is None else row.valid_from for row in rows]
            found = self._found[shared] = (starts, rows)
        starts, rows = found
        return rows[bisect_right(starts, t) - 1]


@dataclass(frozen=True)
class Choice:
    """What a dialog's hash chooses.

    ``decision`` is that of the first hop. ``paths`` are those of messages with 0, 1, … hops left, the last one for
    all that have more; they hold where the message opens no request, and its dialog has not ended.
    """

    decision: Decision
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Paths:
    """The choices of a key from a time (inclusive) to another (exclusive); the hash by their number takes one."""

    valid_from: int | None
    valid_to: int | None
    choices: tuple[Choice, ...]


def plan_paths(
    network: Network, deciding: Deciding, sender: Sender, to: Addressee, broker: str | None
) -> Iterator[Paths]:
    """The paths of all messages of a sender to a service, bound to a broker id, in the order of time."""
    start: int | None = None
    while True:
        choices, until = _choices_at(network, deciding, sender, to, broker, _EVER if start is None else start)
        yield Paths(start, until, choices)
        if until is None:
            return
        start = until


def _choices_at(
    network: Network, deciding: Deciding, sender: Sender, to: Addressee, broker: str | None, t: int
) -> tuple[tuple[Choice, ...], int | None]:
    """The choices at a time, and until when they stay."""
    key = to.key(sender.instance, sender.database, broker, is_initiator=sender.is_initiator)
    timed = deciding(key, sender.instance, t)
    one = _Key(network, deciding, sender, to, key, t)
    count, picks = len(timed.decisions), _picks(one, timed)
    if picks is None:
        # Which dialog goes which way is not found out: all of them have too many.
        cut = tuple(one.choice(decision, hashed, is_cut=True) for hashed, decision in enumerate(timed.decisions))
        return cut, _earliest(timed.valid_to, one.until)
    choices = tuple(one.choice(timed.decisions[hashed % count], hashed) for hashed in range(picks))
    return choices, _earliest(timed.valid_to, one.until)


def _picks(one: _Key, timed: Timed) -> int | None:
    """How many hashes tell all dialogs of a key apart; None where these are too many."""
    count = picks = len(timed.decisions)
    while True:
        # What a dialog picks may hide from it what others pick, where there are too many ways.
        met = (one.follow(timed.decisions[hashed % count], hashed, None).picks for hashed in range(picks))
        more = lcm(picks, *met)
        if more == picks:
            return picks
        if more > MOST_PICKS:
            return None
        picks = more


class _Key:
    """Follows the messages of a key at a time; ``until`` is when what was found ends."""

    def __init__(
        self, network: Network, deciding: Deciding, sender: Sender, to: Addressee, key: Key, t: int
    ) -> None:
        self.network, self.deciding, self.sender, self.to = network, deciding, sender, to
        self.key, self.t = key, t
        self.until: int | None = None
        self._found: dict[tuple[int, int | None], Followed] = {}

    def choice(self, decision: Decision, hashed: int, *, is_cut: bool = False) -> Choice:
        """What the messages of a hash come to, by the hops that they have left."""
        unlimited = self.follow(decision, hashed, None)
        followed = [self.follow(decision, hashed, left) for left in range(unlimited.hops)]
        traces = (one.trace for one in (*followed, unlimited))
        cut = (replace(trace, is_cut=True) if is_cut else trace for trace in traces)
        return Choice(decision, tuple(self._with_reply(trace) for trace in cut))

    def follow(self, decision: Decision, hashed: int, left: int | None) -> Followed:
        """A message that opens no request, and has so many hops left; ``decision`` is that of its hash."""
        known = self._found.get((hashed, left))
        if known is not None:
            return known
        verdict = settled(decision, self.key.broker, left, self.to.address)
        errand = Errand(self.to, self.sender.is_initiator, self.t, hashed)
        args = (errand, self.sender.instance, verdict, self.key.scope, left)
        found = follow(self.network, self.deciding, *args)
        self.until = _earliest(self.until, found.until)
        self._found[hashed, left] = found
        return found

    def _with_reply(self, there: Trace) -> Path:
        path, until = trace_back(self.network, self.deciding, self.sender, there, self.t)
        self.until = _earliest(self.until, until)
        return path


def _earliest(*moments: int | None) -> int | None:
    """The first of some times, None for never."""
    return min((moment for moment in moments if moment is not None), default=None)
