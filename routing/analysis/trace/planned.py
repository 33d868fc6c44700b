"""The paths that messages of one key share, found once and as they are asked for.

Names and broker ids that nothing in the estate names count alike, so that what messages invent costs little.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from routing.analysis.bulk.remembering import remember
from routing.rules import hashing, text
from routing.rules.deciding import UNNAMED, scope_of
from routing.rules.estate import Instance
from routing.rules.following import Errand, follow
from routing.rules.network import Addressee, Network
from routing.rules.path_rows import PathRow, path_row, reads_address
from routing.rules.pathing import Path, Paths, Sender, Timelines, plan_paths
from routing.rules.resolving import Message, Verdict
from routing.terms import Ending

_EVER = -(2**63)


@dataclass
class Planned:
    """The paths of messages of one key, by the time at which they are decided, the dialog, and the hops left."""

    _coming: Iterator[Paths]
    _found: list[Paths] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _rows: dict[tuple[int, int, int], tuple[PathRow, bool]] = field(default_factory=dict)

    def find(self, message: Message) -> tuple[PathRow, bool]:
        """The row of a message's path, and whether its last address is that of the message's service name."""
        part = self._part(message.t)
        choices = self._found[part].choices
        number = 0
        if len(choices) > 1 and message.conversation_id is not None:
            number = hashing.pick(range(len(choices)), message.conversation_id)
        most = len(choices[number].paths) - 1
        left = most if message.hops_remaining is None else min(max(message.hops_remaining, 0), most)
        row = self._rows.get((part, number, left))
        if row is None:
            path = choices[number].paths[left]
            row = self._rows[part, number, left] = path_row(path), reads_address(path.there)
        return row

    def _part(self, t: int) -> int:
        """The place of what holds at a time."""
        while not self._found or self._ends_before(t):
            part = next(self._coming)
            self._found.append(part)
            self._starts.append(_EVER if part.valid_from is None else part.valid_from)
        return bisect_right(self._starts, t) - 1

    def _ends_before(self, t: int) -> bool:
        until = self._found[-1].valid_to
        return until is not None and until <= t


@dataclass
class Plan:
    """The paths of all messages of an estate; ``as_of`` is the time of all decisions, if it is one."""

    network: Network
    as_of: int | None
    _deciding: Timelines = field(default_factory=Timelines)
    _by_names: dict[Hashable, Planned] = field(default_factory=dict)
    _by_key: dict[Hashable, Planned] = field(default_factory=dict)
    _ended: dict[Hashable, PathRow] = field(default_factory=dict)

    def find(self, message: Message, broker: str | None, from_service: str | None) -> PathRow:
        """The path of a message that is bound to a broker id, opens no request, and has no dialog that ended."""
        names = message.instance, message.database, message.service, broker, message.is_initiator, from_service
        planned = self._by_names.get(names)
        if planned is None:
            planned = self._planned(message, broker, from_service)
            remember(self._by_names, names, planned)
        row, reads_name = planned.find(message)
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

    def _planned(self, message: Message, broker: str | None, from_service: str | None) -> Planned:
        to = self._addressee(message.service)
        back_to = None if from_service is None else self._addressee(from_service)
        named = broker if broker is None or broker in self._brokers else UNNAMED
        key = message.instance, message.database, message.is_initiator, to, back_to, named
        found = self._by_key.get(key)
        if found is None:
            instance = self.network.instances[message.instance]
            sender = Sender(instance, message.database, message.is_initiator, back_to)
            found = Planned(plan_paths(self.network, self._deciding, sender, to, named, self.as_of))
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
