"""The paths that messages of one key share, found once and as they are asked for.

Names and broker ids that nothing in the estate names count alike, so that what messages invent costs little.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import lcm

from routing.analysis.bulk.remembering import remember
from routing.rules import hashing, text
from routing.rules.deciding import UNNAMED, scope_of
from routing.rules.estate import Instance
from routing.rules.following import Deciding, Errand, Followed, follow
from routing.rules.network import Addressee, Network
from routing.rules.path_rows import PathRow, path_row, reads_address
from routing.rules.pathing import Path, Sender, Timelines, trace_back
from routing.rules.resolving import Message, Verdict, settled
from routing.terms import Ending


@dataclass
class _Found:
    """A path that was found: for times from ``since`` to before ``until`` (None: for ever).

    For messages that have ``hops`` left or more, or where ``is_exact`` for those that have just so many.
    ``reads_name``: the last address is that of the message's own service name.
    """

    since: int
    until: int | None
    hops: int
    is_exact: bool
    row: PathRow
    reads_name: bool

    def fits(self, t: int, left: int | None) -> bool:
        """Whether it is that of a message that is decided at a time, and has so many hops left."""
        in_time = self.since <= t and (self.until is None or t < self.until)
        if not in_time or self.is_exact:
            return in_time and left == self.hops
        return left is None or left >= self.hops


@dataclass
class Keyed:
    """The paths of the messages of one key, as far as messages asked for them.

    ``_found`` has them by a number of picks and what is left of the dialog's hash, divided by it.
    """

    network: Network
    deciding: Deciding
    sender: Sender
    to: Addressee
    broker: str | None
    _found: dict[int, dict[int, list[_Found]]] = field(default_factory=dict)

    def find(self, message: Message) -> tuple[PathRow, bool]:
        """The row of a message's path, and whether its last address is that of the message's service name."""
        left = None if message.hops_remaining is None else max(message.hops_remaining, 0)
        hashed: int | None = None
        for picks, by_rest in self._found.items():
            if picks > 1 and hashed is None:
                hashed = hashing.dialog_id_hash(message.conversation_id or "")
            for found in by_rest.get((hashed or 0) % picks, ()):
                if found.fits(message.t, left):
                    return found.row, found.reads_name
        return self._follow(message.t, hashing.dialog_id_hash(message.conversation_id or ""), left)

    def _follow(self, t: int, hashed: int, left: int | None) -> tuple[PathRow, bool]:
        """Follow a message, and the reply to it; remember for which others that is right."""
        sender, to = self.sender, self.to
        key = to.key(sender.instance, sender.database, self.broker, is_initiator=sender.is_initiator)
        timed = self.deciding(key, sender.instance, t)
        decision = timed.decisions[hashed % len(timed.decisions)]
        errand = Errand(to, sender.is_initiator, t, hashed)

        def follow_with(hops: int | None) -> Followed:
            verdict = settled(decision, self.broker, hops, to.address)
            return follow(self.network, self.deciding, errand, sender.instance, verdict, key.scope, hops)

        one = follow_with(None)
        hops, is_exact = one.hops, left is not None and left < one.hops
        if left is not None and is_exact:
            one, hops = follow_with(left), left
        path, until = trace_back(self.network, self.deciding, sender, one.trace, t)
        ends = [moment for moment in (timed.valid_to, one.until, until) if moment is not None]
        row, reads_name = path_row(path), reads_address(path.there)
        found = _Found(t, min(ends, default=None), hops, is_exact, row, reads_name)
        picks = lcm(len(timed.decisions), one.picks)
        _add(self._found.setdefault(picks, {}).setdefault(hashed % picks, []), found)
        return row, reads_name


def _add(there: list[_Found], found: _Found) -> None:
    """Add a path; one that was found before, at a later time until the same moment, is right since this time."""
    for other in there:
        if (other.until, other.hops, other.is_exact) == (found.until, found.hops, found.is_exact):
            other.since = min(other.since, found.since)
            return
    there.append(found)


@dataclass
class Plan:
    """The paths of all messages of an estate."""

    network: Network
    _deciding: Timelines = field(default_factory=Timelines)
    _by_names: dict[Hashable, Keyed] = field(default_factory=dict)
    _by_key: dict[Hashable, Keyed] = field(default_factory=dict)
    _ended: dict[Hashable, PathRow] = field(default_factory=dict)

    def find(self, message: Message, broker: str | None, from_service: str | None) -> PathRow:
        """The path of a message that is bound to a broker id, opens no request, and has no dialog that ended."""
        names = message.instance, message.database, message.service, broker, message.is_initiator, from_service
        keyed = self._by_names.get(names)
        if keyed is None:
            keyed = self._keyed(message, broker, from_service)
            remember(self._by_names, names, keyed)
        row, reads_name = keyed.find(message)
        return _with_address(row, message.service) if reads_name else row

    def find_ended(self, message: Message, verdict: Verdict) -> PathRow:
        """The path of a message that its own instance keeps or drops, whatever the routes; of its verdict."""
        key = message.instance, message.database, verdict.opens_in, verdict.reason
        row = self._ended.get(key)
        if row is None:
            instance, scope = self.network.instances[message.instance], scope_of(message.database)
            errand = Errand(Addressee.of_name(message.service), message.is_initiator, message.t, 0)
            found = follow(self.network, self._deciding, errand, instance, verdict, scope, None)
            row = path_row(Path(found.trace))
            remember(self._ended, key, row)
        return row

    def _keyed(self, message: Message, broker: str | None, from_service: str | None) -> Keyed:
        to = self._addressee(message.service)
        back_to = None if from_service is None else self._addressee(from_service)
        named = broker if broker is None or broker in self._brokers else UNNAMED
        key = message.instance, message.database, message.is_initiator, to, back_to, named
        found = self._by_key.get(key)
        if found is None:
            instance = self.network.instances[message.instance]
            sender = Sender(instance, message.database, message.is_initiator, back_to)
            found = Keyed(self.network, self._deciding, sender, to, named)
            remember(self._by_key, key, found)
        return found

    def _addressee(self, name: str) -> Addressee:
        """What the rules are told of a name; of one that nothing names only its address, if somebody has it."""
        if name in self._services:
            return Addressee.of_name(name)
        address = text.address_in_name(name)
        is_known = address is not None and text.comparable_address(address) in self._addresses
        return Addressee(None, address if is_known else None, address is not None)

    @cached_property
    def _services(self) -> frozenset[str]:
        """The services that anything in the estate names."""
        on_record = {service for _, _, service in self.network.on_record}
        return frozenset(on_record.union(*(_services(instance) for instance in self._instances)))

    @cached_property
    def _brokers(self) -> frozenset[str]:
        """The broker ids that anything in the estate has."""
        of_routes = {
            route.broker
            for instance in self._instances
            for by_service in instance.routes.values()
            for routes in by_service.values()
            for route in routes
            if route.broker is not None
        }
        return frozenset(of_routes.union(*(instance.brokers for instance in self._instances)))

    @cached_property
    def _addresses(self) -> frozenset[str]:
        return frozenset[str]().union(*(instance.own_addresses for instance in self._instances))

    @property
    def _instances(self) -> Iterable[Instance]:
        return self.network.instances.values()


def _services(instance: Instance) -> set[str]:
    """The services that the routes and databases of an instance name."""
    named: set[str] = set(instance.holders)
    for by_service in instance.routes.values():
        named.update(service for service in by_service if service is not None)
    return named


def _with_address(row: PathRow, service: str) -> PathRow:
    """The row with the address in a service's name where its last hop reads it."""
    address = text.address_in_name(service)
    *before, last = row.hops
    leaves = row.outcome == str(Ending.LEFT_ESTATE)
    return row._replace(
        hops=(*before, last._replace(address=address)),
        final_address=address if leaves else row.final_address,
    )
