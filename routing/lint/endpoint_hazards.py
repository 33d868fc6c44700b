"""Prove which open dialogs get several target endpoints, by following a message to all ends that it may have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from routing.lint.lint_estate import LintEstate, LintFinding, finding, is_users, list_names, sender_of
from routing.lint.message_rules import DialogGroup
from routing.plan.paths import trace_open_messages
from routing.rules import text
from routing.rules.choosing import is_local, is_transport
from routing.rules.deciding import Decision, RoutingKey
from routing.rules.estate import ARRIVALS, EstateRoute, NameAddress, SqlInstance
from routing.rules.following import OPEN_STEPS, HopPath, MessageTrace
from routing.rules.network import EstateNetwork
from routing.terms import LEAVES, MatchingStep

# Open messages followed through the estate to all ends that they may have.


class OpenChoice(NamedTuple):
    """The scope of routes among which the transport chooses for open messages to a service."""

    instance: str
    scope: str
    service: str


class OpenMessageFollower:
    """Follows open messages through the instances that the tables list."""

    def __init__(self, estate: LintEstate) -> None:
        self.network = estate.network
        self._now = estate.now
        self._decide = estate.decisions.at

    def traces(self, choice: OpenChoice) -> Iterator[MessageTrace]:
        """Follow messages of a choice, with one trace for each hash that makes a difference.

        Messages that first ask for a route have no trace, because lint does not read pending requests.
        """
        instance = self.network.instances[choice.instance]
        return trace_open_messages(
            self.network, self._decide, instance, sender_of(choice.scope), choice.service, self._now
        )

    def of_any_service(self, instance: SqlInstance, scope: str) -> Decision:
        """Decide in a scope for a service that has no route by name and no holder here."""
        key = RoutingKey(sender_of(scope), None, None, True, NameAddress.NONE)
        # Only routes for the service balance an open message, and there are none here.
        return self._decide(key, instance, self._now).choices[0]

    def target(self, path: HopPath) -> tuple[str, str] | None:
        """Return the database and broker instance at the end of a branch, or None if it has no broker instance."""
        if path.instance is None or path.database is None:
            return None
        broker = self.network.instances[path.instance].databases[path.database].broker
        return None if broker is None else (f"{path.instance}.{path.database}", broker)


Ends = tuple[tuple[str, str], ...]
"""Targets by name, each with its broker instance."""


class ProvedHazard(NamedTuple):
    """The proof for a choice: its routes, the first one being reported, and the targets that they lead to."""

    routes: tuple[str, ...]
    ends: Ends


Hazards = Mapping[OpenChoice, ProvedHazard]


def prove_hazards(estate: LintEstate, follower: OpenMessageFollower) -> dict[OpenChoice, ProvedHazard]:
    """Find the choices with messages that end at different broker instances. One hash is enough as proof."""
    proofs = _Proofs(_Reach(estate, follower.network), follower)
    proved: dict[OpenChoice, ProvedHazard] = {}
    for instance in follower.network.instances.values():
        for scope in instance.routes:
            if scope == ARRIVALS or scope in instance.databases:
                proved.update(proofs.of_named(instance, scope))
                proved.update(proofs.of_others(instance, scope))
    return proved


class _Proofs:
    """Follows messages that may end at several targets. Paths that many scopes share are followed once."""

    def __init__(self, reach: _Reach, follower: OpenMessageFollower) -> None:
        self._reach, self._follower = reach, follower
        self._shared: dict[tuple[tuple[str | None, ...], str], Ends] = {}

    def of_named(self, instance: SqlInstance, scope: str) -> Iterator[tuple[OpenChoice, ProvedHazard]]:
        """Yield the choices of routes that name a service."""
        by_service = instance.routes[scope]
        for service in self._reach.spread & by_service.keys():
            if service in self._reach.of_routes(by_service[service], service, instance):
                choice = OpenChoice(instance.name, scope, service)
                hazard = self._follow(choice)
                if hazard is not None:
                    yield choice, hazard

    def of_others(self, instance: SqlInstance, scope: str) -> Iterator[tuple[OpenChoice, ProvedHazard]]:
        """Yield the choices of routes for any service, for the services that no other route of the scope names."""
        by_service = instance.routes[scope]
        routes = by_service.get(None, ())
        candidates = set(self._reach.of_routes(routes, None, instance))
        if any(is_transport(route) for route in routes):
            candidates |= self._reach.addressed
        candidates -= by_service.keys()
        if not candidates:
            return
        shared_routes = self._routes_for_any_service(instance, scope)
        for service in filter(is_users, candidates):
            choice = OpenChoice(instance.name, scope, service)
            is_shared = bool(shared_routes) and service not in instance.holders
            hazard = self._share(choice, shared_routes) if is_shared else self._follow(choice)
            if hazard is not None:
                yield choice, hazard

    def _routes_for_any_service(self, instance: SqlInstance, scope: str) -> Sequence[EstateRoute]:
        """Return the possible routes for any service not held here. Empty if more than their addresses counts."""
        decision = self._follower.of_any_service(instance, scope)
        search = decision.first
        is_sent = search.end.outcome in LEAVES and decision.second is None
        if not is_sent or search.asks or search.reads_address or search.step is not MatchingStep.ANY_SERVICE:
            return ()
        routes = search.choice.routes
        compared = {address for route in routes for address in (route.compared, route.compared_mirror)}
        return () if compared & instance.own_addresses else routes

    def _share(self, choice: OpenChoice, shared_routes: Sequence[EstateRoute]) -> ProvedHazard | None:
        """Find the hazard of a choice that depends only on the addresses."""
        addresses_and_service = (
            tuple(address for route in shared_routes for address in (route.compared, route.compared_mirror)),
            choice.service,
        )
        if addresses_and_service not in self._shared:
            followed = self._follow(choice)
            self._shared[addresses_and_service] = () if followed is None else followed.ends
        ends = self._shared[addresses_and_service]
        return ProvedHazard(tuple(route.name or "" for route in shared_routes), ends) if ends else None

    def _follow(self, choice: OpenChoice) -> ProvedHazard | None:
        for trace in self._follower.traces(choice):
            ends = self._ends(trace, choice) if trace.has_multiple_targets else ()
            if ends:
                names = dict.fromkeys(path.hops[0].route_name or "" for path in trace.hop_paths)
                return ProvedHazard(tuple(names), ends)
        return None

    def _ends(self, trace: MessageTrace, choice: OpenChoice) -> Ends:
        """Return the targets if several of the transport's choices lead to different broker instances.

        The result is empty if only one choice leads to them, because another hop then makes the choice. A message
        that comes back to its own instance chooses in msdb.
        """
        first = trace.hop_paths[0].hops[0]
        if (first.scope, first.broker_instance) != (choice.scope, None) or first.matching_step not in OPEN_STEPS:
            return ()
        first_targets, ends = set(), {}
        for path in trace.hop_paths:
            target = self._follower.target(path)
            if target is not None:
                first_targets.add((path.hops[0].address, path.hops[1].instance_name))
                ends[target[0]] = target[1]
        return tuple(sorted(ends.items())) if len(first_targets) > 1 and len(set(ends.values())) > 1 else ()


class _Reach:
    """The targets that messages can reach at all, so that few messages must be followed.

    ``spread`` are the services in databases with different broker instances. ``addressed`` are the spread services
    with names that begin with an address.
    """

    def __init__(self, estate: LintEstate, network: EstateNetwork) -> None:
        self._network = network
        brokers_by_service: dict[str, set[str]] = {}
        self._held_at: dict[str, list[tuple[str, str]]] = {}
        for instance, database, service in estate.holders:
            if database.broker is not None and instance in estate.listed:
                brokers_by_service.setdefault(service, set()).add(database.broker)
                self._held_at.setdefault(instance, []).append((service, database.broker))
        self.spread = {service for service, brokers in brokers_by_service.items() if len(brokers) > 1}
        self.addressed = {service for service in self.spread if text.address_in_name(service) is not None}
        self._next: dict[str, frozenset[str]] = {}
        self._services: dict[frozenset[str], set[str]] = {}

    def of_routes(self, routes: Iterable[EstateRoute], service: str | None, sender: SqlInstance) -> set[str]:
        """Return the services that open ones of some routes may lead to several targets of."""
        open_routes = [route for route in routes if route.broker is None and not is_local(route)]
        owners = self._owners(open_routes, service, sender)
        is_apart = len(open_routes) > 1 or len(owners) > 1 or any(route.mirror_address for route in open_routes)
        return self._services_from(frozenset(owners)) if owners and is_apart else set()

    def _owners(self, routes: Iterable[EstateRoute], service: str | None, sender: SqlInstance) -> set[str]:
        owners: set[str] = set()
        for route in routes:
            named = None if service is None else text.address_in_name(service)
            address = named if is_transport(route) else route.address
            for target in (address, route.mirror_address):
                if target is not None:
                    owners.update(owner.name for owner in self._network.owners(target, sender))
        return owners

    def _services_from(self, owners: frozenset[str]) -> set[str]:
        """Return the services that arrivals may reach and databases of different broker instances hold."""
        if owners not in self._services:
            reached, ahead = set(owners), list(owners)
            while ahead:
                newly_reached = self._onward(ahead.pop()) - reached
                reached |= newly_reached
                ahead += newly_reached
            brokers_by_service: dict[str, set[str]] = {}
            for name in reached:
                for service, broker in self._held_at.get(name, ()):
                    brokers_by_service.setdefault(service, set()).add(broker)
            spread_services = {service for service, brokers in brokers_by_service.items() if len(brokers) > 1}
            # Names of hosts are not looked up.
            self._services[owners] = spread_services | self.addressed
        return self._services[owners]

    def _onward(self, name: str) -> frozenset[str]:
        if name not in self._next:
            instance = self._network.instances[name]
            arrivals = instance.routes.get(ARRIVALS, {}) if instance.is_forwarding else {}
            routes = [
                route
                for routes_of_service in arrivals.values()
                for route in routes_of_service
                if not is_local(route)
            ]
            self._next[name] = frozenset(self._owners(routes, None, instance))
        return self._next[name]


# Describe open dialogs that get several target endpoints, and count them.


OpenDialogsOf = Callable[[Collection[str]], Sequence[DialogGroup]]
"""The open dialogs of messages to some services."""
_SHOWN = 3


def several_targets(
    follower: OpenMessageFollower, hazards: Hazards, dialogs_of: OpenDialogsOf | None
) -> Iterator[LintFinding]:
    """Find SBR041: one finding for the routes of a scope that lead to the same ends, for any services.

    With messages, the finding counts the open dialogs that take such a choice, wherever they were sent.
    """
    risks = {} if dialogs_of is None or not hazards else _dialogs_at_risk(follower, hazards, dialogs_of)
    grouped: dict[tuple[tuple[str, str], ProvedHazard], list[OpenChoice]] = {}
    for choice, hazard in hazards.items():
        grouped.setdefault((choice[:2], hazard), []).append(choice)
    for (place, hazard), choices in grouped.items():
        shown, hidden = hazard.ends[:_SHOWN], len(hazard.ends) - _SHOWN
        sentence = "open dialogs to '%s' end at " + ", ".join(["%s (%s)"] * len(shown))
        sentence += f" and {hidden} more, by %s" if hidden > 0 else ", by %s"
        values = [list_names(choice.service for choice in choices), *chain(*shown), list_names(hazard.routes)]
        own_risks = [risks[choice] for choice in choices if choice in risks]
        if own_risks:
            phrase_of_dialogs, counts = _Risk.together(own_risks).phrased()
            sentence, values = sentence + phrase_of_dialogs, values + counts
        yield finding("SBR041", place, hazard.routes[0], sentence, *values)


class _Risk(NamedTuple):
    """Open dialogs that take a choice: their number and the first id.

    ``is_sure`` is True if they take it regardless of later choices.
    """

    dialogs: int
    first: str
    is_sure: bool

    def phrased(self) -> tuple[str, list[str]]:
        """Return the end of a finding's message, and the values for its placeholders."""
        if self.is_sure:
            return "; dialogs at risk: %s, such as %s", [str(self.dialogs), self.first]
        return "; dialogs at risk: up to %s, depending on the picks of forwarders", [str(self.dialogs)]

    @classmethod
    def together(cls, risks: Sequence[_Risk]) -> _Risk:
        """Add up risks."""
        dialogs, firsts, are_sure = zip(*risks, strict=True)
        return cls(sum(dialogs), min(firsts), all(are_sure))


def _dialogs_at_risk(
    follower: OpenMessageFollower, hazards: Hazards, dialogs_of: OpenDialogsOf
) -> dict[OpenChoice, _Risk]:
    risks_by_choice: dict[OpenChoice, list[_Risk]] = {}
    for group in dialogs_of({choice.service for choice in hazards}):
        sender = follower.network.instances.get(group.instance)
        if sender is None or group.database not in sender.databases:
            continue
        traces = list(follower.traces(OpenChoice(group.instance, group.database, group.service)))
        passed = [_choices_on_path(trace, group.service, hazards) for trace in traces]
        for choice in set().union(*passed):
            is_sure = all(choice in of_hash for of_hash in passed)
            risks_by_choice.setdefault(choice, []).append(_Risk(group.dialogs, group.first, is_sure))
    return {choice: _Risk.together(risks) for choice, risks in risks_by_choice.items()}


def _choices_on_path(trace: MessageTrace, service: str, hazards: Hazards) -> set[OpenChoice]:
    """Return the proved choices on the path of a message while it is open."""
    if not trace.has_multiple_targets:
        return set()
    hops = (
        hop
        for path in trace.hop_paths
        for hop in path.hops
        if hop.matching_step in OPEN_STEPS and hop.broker_instance is None
    )
    return {OpenChoice(hop.instance_name, hop.scope, service) for hop in hops} & hazards.keys()
