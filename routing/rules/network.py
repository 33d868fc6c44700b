"""Instances as a message meets them: who has an address, what is asked of each, which requests are pending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from routing.rules import text
from routing.rules.deciding import RoutingKey
from routing.rules.estate import NameAddress, SqlInstance, places_of
from routing.rules.requesting import ConversationEndpoint, RouteRequest
from routing.terms import LOOPBACK_HOSTS


@dataclass(frozen=True)
class ServiceAddress:
    """The service that a message is for: its name, and the address that the name begins with, as it is written.

    ``name`` is None for a name that nothing known names; ``holds_address`` without ``address``: it begins with
    one that no known instance has.
    """

    name: str | None
    address: str | None
    holds_address: bool

    @classmethod
    def of_name(cls, name: str) -> ServiceAddress:
        """Return the addressee of a message."""
        address = text.address_in_name(name)
        return cls(name, address, address is not None)

    def key(
        self, instance: SqlInstance, database: str | None, broker: str | None, *, is_initiator: bool
    ) -> RoutingKey:
        """Return the key of a message for it at an instance."""
        return RoutingKey(database, self.name, broker, is_initiator, self._address_at(instance))

    def _address_at(self, instance: SqlInstance) -> NameAddress:
        if not self.holds_address:
            return NameAddress.NONE
        is_own = self.address is not None and text.comparable_address(self.address) in instance.own_addresses
        return NameAddress.OWN if is_own else NameAddress.ELSEWHERE


@dataclass(frozen=True)
class EstateNetwork:
    """The instances, and the requests that are on record: by instance, database and service."""

    instances: Mapping[str, SqlInstance]
    on_record: Mapping[tuple[str, str, str], Sequence[RouteRequest]] = field(default_factory=dict)

    @cached_property
    def places(self) -> Mapping[str, tuple[SqlInstance, ...]]:
        """Who has an address, as it is compared; by the instances' names."""
        return places_of(self.instances.values())

    def owners(self, address: str, here: SqlInstance) -> tuple[SqlInstance, ...]:
        """Return the instances at an address that one of them sends to.

        A loopback name leads to the instance of the sender's machine that listens on the port: the sender itself
        where the port is its own, else any other.
        """
        compared = text.comparable_address(address)
        if text.host(compared) not in LOOPBACK_HOSTS:
            return self.places.get(compared, ())
        return (here,) if compared in here.own_addresses else self._listening_beside(here, compared)

    def _listening_beside(self, here: SqlInstance, loopback: str) -> tuple[SqlInstance, ...]:
        """Return the other instances of a machine that listen on the port of a loopback address, by name."""
        return tuple(other for other in self._on_machine_of(here) if loopback in other.own_addresses)

    def addresses_beside(self, here: SqlInstance) -> frozenset[str]:
        """Return the addresses of the other instances of a machine, as they are compared."""
        return frozenset().union(*(other.own_addresses for other in self._on_machine_of(here)))

    def _on_machine_of(self, here: SqlInstance) -> list[SqlInstance]:
        """Return the other instances of a machine, by name."""
        near = (other for name in here.machine_names for other in self._by_machine.get(name, ()))
        others = {other.name: other for other in near if other.name != here.name}
        return [others[name] for name in sorted(others)]

    @cached_property
    def _by_machine(self) -> Mapping[str, Sequence[SqlInstance]]:
        by_machine: dict[str, list[SqlInstance]] = {}
        for instance in self.instances.values():
            for name in instance.machine_names:
                by_machine.setdefault(name, []).append(instance)
        return by_machine

    @cached_property
    def waiting_conversations(self) -> frozenset[str]:
        """The conversations, by id as compared, whose requests are on record: each waits by itself (D10)."""
        requests = (request for recorded in self.on_record.values() for request in recorded)
        return frozenset(one.endpoint.conversation_id for one in requests if one.endpoint is not None)

    def is_requested(
        self, here: SqlInstance, scope: str, to: ServiceAddress, t: int, endpoint: ConversationEndpoint | None
    ) -> tuple[bool, int | None]:
        """Return whether step 4 ends the way of a message in a database, by requests on record; and until when.

        It does where none is pending for the service, or one of the message's own conversation endpoint (D10),
        which is None where it is not known. Ids of messages are not compared: what was made before is pending.
        """
        on_record = self.on_record.get((here.name, scope, to.name or ""), ())
        moments = (moment for request in on_record for moment in (request.requested_at + 1, request.ended_at))
        until = min((moment for moment in moments if moment is not None and moment > t), default=None)
        pending = [request for request in on_record if request.is_pending(t, "")]
        is_own = endpoint is not None and any(request.endpoint == endpoint for request in pending)
        return is_own or not pending, until
