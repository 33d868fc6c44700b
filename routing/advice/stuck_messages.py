"""Describe stuck messages with the facts for their remedy, such as the databases with their service."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from routing.advice import statements
from routing.advice.remedy import RemedyPlace
from routing.cases.estate_addresses import EstateAddresses, TargetAddress
from routing.cases.judged_questions import RemedyFacts
from routing.cases.message_cases import MessageCase
from routing.cases.near_misses import ROUTE, KnownInstances, NearMiss, NearMisses
from routing.groups import group_pairs
from routing.render.phrases import named
from routing.rules import text
from routing.rules.deciding import RouteSearch
from routing.rules.estate import AddressKind, Database, EstateRoute, ServiceHolders, SqlInstance
from routing.rules.following import PathHop
from routing.rules.locating import has_id
from routing.rules.network import EstateNetwork
from routing.rules.resolving import Verdict
from routing.terms import LOOPBACK_HOSTS, MSDB

TSQL_PORT = "1433"
"""The port of T-SQL connections, which a Service Broker endpoint cannot share."""


class AdviceEstate:
    """The estate for advice, built once. Every `StuckMessage` comes from it."""

    def __init__(self, facts: RemedyFacts) -> None:
        self.instances = KnownInstances.of(facts.instances)
        self.addresses: EstateAddresses = facts.addresses.completed_by(facts.server)
        self.server = facts.server
        self.services_in_use: Collection[str] = frozenset(facts.services_in_use)
        self.network = EstateNetwork(self.instances)
        self._near = NearMisses(self.instances)
        self._on_machine: dict[str | None, SqlInstance | None] = {}

    def find_instance(self, name: str) -> SqlInstance:
        """Return a known instance, or one without facts for any other name."""
        return self.instances.get(name) or SqlInstance(name)

    def find_instance_of_host(self, address: str | None) -> SqlInstance | None:
        """Find the only known instance on the machine that an address names, at any port."""
        if address not in self._on_machine:
            self._on_machine[address] = self.find_on_machine(text.host(address))
        return self._on_machine[address]

    def find_on_machine(self, host: str | None) -> SqlInstance | None:
        """Find the only known instance on a machine that another machine can reach."""
        if host is None or host in LOOPBACK_HOSTS:
            return None
        names = host, host.partition(".")[0]
        on_machine = {instance.name: instance for name in names for instance in self._by_machine.get(name, ())}
        return next(iter(on_machine.values())) if len(on_machine) == 1 else None

    @cached_property
    def _by_machine(self) -> Mapping[str, Sequence[SqlInstance]]:
        instances = self.instances.values()
        return group_pairs((name, instance) for instance in instances for name in instance.machine_names)

    def find_other_port(self, address: str) -> str | None:
        """Name the port of the known endpoint on an address's machine, if the address has another one."""
        machine = self.find_instance_of_host(address)
        endpoint_address = None if machine is None else self.find_endpoint_address(machine.name)
        if machine is None or endpoint_address is None or text.port(endpoint_address) == text.port(address):
            return None
        return f"the endpoint of {named(machine.name)} listens on port {text.port(endpoint_address)}"

    def find_endpoint_address(self, instance: str) -> str | None:
        """Return an address with a port for connections from another machine, or None if none is known."""
        for address in self.addresses.of(instance):
            if text.port(address) not in (None, TSQL_PORT) and text.host(address) not in LOOPBACK_HOSTS:
                return address
        return None

    def describe_stuck(self, sent: MessageCase, verdict: Verdict) -> StuckMessage:
        """Return the facts of messages that are stuck in the instance that sent or got them."""
        scope = sent.database or MSDB if verdict.last is None else verdict.last.scope
        near = self._near.find(sent.instance, scope, sent.service, verdict.broker_instance, sent.t)
        place = self, sent.instance, sent.database, scope, sent.service
        return StuckMessage(*place, verdict, near, from_service=sent.from_service)

    def describe_at_hop(
        self, sent: MessageCase, hop: PathHop, verdict: Verdict, *, is_return: bool
    ) -> StuckMessage:
        """Return the facts of messages, or of their acknowledgement, with a verdict at a hop of their path."""
        service = (sent.from_service or "") if is_return else sent.service
        near = self._near.find(hop.instance_name, hop.scope, service, verdict.broker_instance, sent.t)
        sender = RemedyPlace(sent.instance, sent.database)
        database = hop.scope if verdict.decision is None else verdict.decision.first.sender
        is_home = not is_return and sender == (hop.instance_name, database)
        place = self, hop.instance_name, database, hop.scope, service
        from_service = sent.from_service if is_home else None
        back_to = sender if is_return else None
        return StuckMessage(*place, verdict, near, back_to, from_service)


class UsedRoute(NamedTuple):
    """The address and service of messages with their route in the database ``place``."""

    estate: AdviceEstate
    address: str | None
    service: str
    place: RemedyPlace
    route: str | None


@dataclass(frozen=True)
class StuckMessage:
    """The facts of messages with one key that are stuck with one verdict.

    ``instance`` is the one where they are stuck. ``database`` is the sender there, or None if they came from the
    network. ``scope`` is the database with the last searched routes: the sender or msdb. ``near_misses`` are the
    `NearMisses` of the scope. ``back_to`` is the target of acknowledgements, or None for messages.
    ``from_service`` is the sending service, or None if it is unknown.
    """

    estate: AdviceEstate = field(compare=False)
    instance: str
    database: str | None
    scope: str
    service: str
    verdict: Verdict
    near_misses: Sequence[NearMiss]
    back_to: RemedyPlace | None = None
    from_service: str | None = None

    @property
    def instances(self) -> KnownInstances:
        """All known instances."""
        return self.estate.instances

    @property
    def broker(self) -> str | None:
        """The broker instance that the messages are bound to."""
        return self.verdict.broker_instance

    @property
    def sql_instance(self) -> SqlInstance:
        """The instance where the messages are stuck."""
        return self.estate.find_instance(self.instance)

    @property
    def first(self) -> RouteSearch:
        """The search of the sender's routes. Only for verdicts that have a decision."""
        if self.verdict.decision is None:
            raise ValueError("no routes were searched")
        return self.verdict.decision.first

    @property
    def last(self) -> RouteSearch:
        """The search that decided. Only for verdicts that have a decision."""
        if self.verdict.last is None:
            raise ValueError("no routes were searched")
        return self.verdict.last

    @property
    def came_back(self) -> bool:
        """True if a route of the sender led back to its own instance, so that msdb's routes were searched."""
        return self.verdict.decision is not None and self.verdict.decision.second is not None

    @property
    def cannot_forward(self) -> bool:
        """Return True if they arrived from the network, and no route leads them on while forwarding is off."""
        return self.database is None and not self.sql_instance.is_forwarding

    @property
    def holders_here(self) -> ServiceHolders:
        """The databases of the instance with the service, regardless of their ids."""
        return self.sql_instance.holders_of(self.service)

    @property
    def fitting_here(self) -> list[Database]:
        """The holders that the messages may be delivered to once their brokers are on."""
        return list(self.holders_here.by_broker.get(self.last.known_broker, ()))

    def place(self, database: str | None) -> RemedyPlace:
        """Return a database of the instance as the place of a remedy."""
        return RemedyPlace(self.instance, database)

    def holders_elsewhere(self) -> list[tuple[str, Database]]:
        """List databases of other known instances that hold the service and have the id, with instances."""
        holders = self.estate.instances.holders_of(self.service, self.last.known_broker)
        return [(name, holder) for name, holder in holders if name != self.instance]

    def target(self) -> str | None:
        """Return the only other instance with the service, or None unless there is exactly one."""
        holding_instances = self.estate.instances.instances_with(self.service, self.last.known_broker)
        if len(holding_instances) > 2:
            return None
        elsewhere = holding_instances - {self.instance}
        return next(iter(elsewhere)) if len(elsewhere) == 1 else None

    def create_route(self, database: str, clause: str | None, broker: str | None = None) -> str | None:
        """Write CREATE ROUTE for a new route to the service, or return None if a name cannot be pasted.

        ``broker`` is the broker instance in the clause. The name depends only on the estate and the clause.
        """
        homes = self.instances.instances_with(self.service, None)
        is_one_of_many = (
            broker is not None
            or len(homes) > 1
            or (self.back_to is not None and self.back_to.instance not in homes)
            or self.instances.spellings[text.collated(self.service)] > 1
        )
        names_in_use = self.sql_instance.route_names.get(database, frozenset())
        name = statements.new_name(self.service, clause, names_in_use, is_one_of_many=is_one_of_many)
        return statements.create_route(name, clause)

    def address_of(self, instance: str) -> TargetAddress | None:
        """Return an address under which this instance reaches another: with a port, and not its own."""
        return self.estate.addresses.choose(instance, self.sql_instance)

    def is_needed(self, service: str | None) -> bool:
        """Return True if a service of this very name is in use, or any known instance holds it."""
        is_in_use = service in self.estate.services_in_use and service != self.service
        return is_in_use or bool(self.estate.instances.holders_of(service))

    def is_current(self, broker: str | None) -> bool:
        """Return True if a known database that holds the service has this id today."""
        return broker is not None and broker in self.estate.instances.brokers_of(self.service)

    def missed_route(self, near: NearMiss) -> EstateRoute | None:
        """Return the last version of the route of a near miss, or None if it is not about a route."""
        if near.object_type != ROUTE:
            return None
        naming = self.sql_instance.routes.get(near.database, {}).get(near.service, ())
        route_versions = [route for route in naming if (route.name, route.broker) == (near.name, near.broker)]
        return route_versions[-1] if route_versions else None

    def would_lead_on(self, route: EstateRoute) -> bool:
        """Return whether a route would, if it matched, take the messages to a known holder of the service.

        A route back to this instance does not help, and neither does a route to another instance than the
        holder's.
        """
        if route.kind is AddressKind.LOCAL:
            broker = self.last.broker or route.broker
            return any(holder.is_enabled and has_id(holder, broker) for holder in self.holders_here)
        if (
            route.kind is not AddressKind.NETWORK
            or route.compared in self.sql_instance.own_addresses
            or self.cannot_forward
        ):
            return False
        target = self.target()
        addresses = self.estate.addresses
        if target is None or not addresses.of(target):
            return True
        return route.compared in {text.comparable_address(address) for address in addresses.of(target)}
