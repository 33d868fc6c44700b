"""Find the instances at an address, and the route requests on record."""

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
    """The target service of a message: its name, and the address at the beginning of the name.

    ``name`` is None if no known object has it. ``holds_address`` without ``address`` means that the address
    belongs to no known instance.
    """

    name: str | None
    address: str | None
    holds_address: bool

    @classmethod
    def of_name(cls, name: str) -> ServiceAddress:
        """Return the address of a service name."""
        address = text.address_in_name(name)
        return cls(name, address, address is not None)

    def key(
        self, instance: SqlInstance, database: str | None, broker: str | None, *, is_initiator: bool
    ) -> RoutingKey:
        """Return the routing key of a message to this service at an instance."""
        return RoutingKey(database, self.name, broker, is_initiator, self._address_at(instance))

    def _address_at(self, instance: SqlInstance) -> NameAddress:
        if not self.holds_address:
            return NameAddress.NONE
        is_own = self.address is not None and text.comparable_address(self.address) in instance.own_addresses
        return NameAddress.OWN if is_own else NameAddress.ELSEWHERE


@dataclass(frozen=True)
class EstateNetwork:
    """All instances, and the requests on record by instance, database and service."""

    instances: Mapping[str, SqlInstance]
    on_record: Mapping[tuple[str, str, str], Sequence[RouteRequest]] = field(default_factory=dict)

    @cached_property
    def places(self) -> Mapping[str, tuple[SqlInstance, ...]]:
        """The instances at each address (in its form for comparison), by name."""
        return places_of(self.instances.values())

    def owners(self, address: str, sender: SqlInstance) -> tuple[SqlInstance, ...]:
        """Return the instances at an address that an instance sends to.

        A loopback address leads to the sender if the port is its own, otherwise to instances of its machine.
        """
        compared = text.comparable_address(address)
        if text.host(compared) not in LOOPBACK_HOSTS:
            return self.places.get(compared, ())
        return (sender,) if compared in sender.own_addresses else self._listening_beside(sender, compared)

    def _listening_beside(self, sender: SqlInstance, loopback: str) -> tuple[SqlInstance, ...]:
        """Return the other instances of the machine that listen on this port, by name."""
        return tuple(other for other in self._on_machine_of(sender) if loopback in other.own_addresses)

    def addresses_beside(self, sender: SqlInstance) -> frozenset[str]:
        """Return the addresses of the other instances of the machine, in their form for comparison."""
        return frozenset().union(*(other.own_addresses for other in self._on_machine_of(sender)))

    def _on_machine_of(self, instance: SqlInstance) -> list[SqlInstance]:
        """Return the other instances of the machine, by name."""
        near = (other for name in instance.machine_names for other in self._by_machine.get(name, ()))
        by_name = {other.name: other for other in near if other.name != instance.name}
        return [by_name[name] for name in sorted(by_name)]

    @cached_property
    def _by_machine(self) -> Mapping[str, Sequence[SqlInstance]]:
        by_machine: dict[str, list[SqlInstance]] = {}
        for instance in self.instances.values():
            for name in instance.machine_names:
                by_machine.setdefault(name, []).append(instance)
        return by_machine

    @cached_property
    def waiting_conversations(self) -> frozenset[str]:
        """The folded ids of conversations with a request on record. Each of them waits as a whole (D10)."""
        requests = (request for recorded in self.on_record.values() for request in recorded)
        return frozenset(request.endpoint.conversation_id for request in requests if request.endpoint is not None)

    def is_requested(
        self, instance: SqlInstance, scope: str, to: ServiceAddress, t: int, endpoint: ConversationEndpoint | None
    ) -> tuple[bool, int | None]:
        """Return whether step 4 stops a message in a database by requests on record, and the end of that state.

        A message stops if no request for the service is pending, or if its own conversation endpoint has one
        (D10). ``endpoint`` is None if unknown. Message ids are not compared: earlier requests count as pending.
        """
        on_record = self.on_record.get((instance.name, scope, to.name or ""), ())
        moments = (moment for request in on_record for moment in (request.requested_at + 1, request.ended_at))
        until = min((moment for moment in moments if moment is not None and moment > t), default=None)
        pending = [request for request in on_record if request.is_pending(t, "")]
        is_own = endpoint is not None and any(request.endpoint == endpoint for request in pending)
        return is_own or not pending, until
