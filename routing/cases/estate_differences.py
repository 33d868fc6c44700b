"""Find messages that may be decided or routed differently on two sides, by the settings only.

No message is decided here. The decision on a message depends on its instance's row and databases, on the holders
of its service and on the requests on record for it. It also depends on the routes for its service, for any service
and for the BrokerConfiguration service (rule book, sections 1 to 5). If these are equal, the decision is equal.
The path is equal if this holds for every instance in both directions, and addresses lead to the same instances.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from routing.cases.estate_sides import DiffSides, OneSide
from routing.cases.near_misses import KnownInstances
from routing.plan.checked_inputs import instances_of, network_of, requests_of
from routing.plan.paths import PathPlanner
from routing.rules import text
from routing.rules.estate import AddressKind, SqlInstance, own_addresses
from routing.rules.judging import JudgedPath, PossiblePath
from routing.rules.network import EstateNetwork, ServiceAddress
from routing.rules.pathing import PathSender, PathWithReturn
from routing.rules.requesting import RouteRequest
from routing.tables.table_columns import TableColumns
from routing.terms import BROKER_CONFIGURATION_SERVICE, PathEnd

Only = Mapping[str, Collection[str]]
"""The values by column of some messages."""

# Names that messages invent take no more room than this, of each instance.
_MOST_SERVICES = 100_000
# Above this many keys of messages, they are not followed for instances without an address.
_MOST_KEYS = 1_000
_OF_ALL_SERVICES = (None, BROKER_CONFIGURATION_SERVICE)


@dataclass(frozen=True)
class AffectedServices:
    """The affected services of instances, and the instances of which all messages may differ."""

    instances: set[str] = field(default_factory=set)
    services: dict[str, set[str]] = field(default_factory=dict)

    def add(self, instance: str, service: str) -> None:
        """Add a service of an instance. Above a limit of services, all messages of the instance count."""
        if instance in self.instances:
            return
        services = self.services.setdefault(instance, set())
        services.add(service)
        if len(services) > _MOST_SERVICES:
            self.instances.add(instance)
            del self.services[instance]

    def join(self, other: AffectedServices) -> None:
        """Add the instances and services of another difference."""
        self.instances.update(other.instances)
        for instance, services in other.services.items():
            for service in services:
                self.add(instance, service)

    def may_differ(self, instance: str | None, service: str | None) -> bool:
        """Return True if messages of an instance to a service may be decided otherwise."""
        return instance in self.instances or (instance is not None and service in self.services.get(instance, ()))

    @property
    def filters(self) -> list[dict[str, list[str]]]:
        """The values by column that changed messages have: all that may differ, and each of them once.

        Maybe some more, all messages of an instance to a service each time.
        """
        value_sets = [{"instance_name": sorted(self.instances)}] if self.instances else []
        partly = {name: services for name, services in self.services.items() if name not in self.instances}
        if partly:
            services = sorted(set().union(*partly.values()))
            value_sets.append({"instance_name": sorted(partly), "to_service_name": services})
        return value_sets


def find_affected(diff_sides: DiffSides) -> AffectedServices:
    """Return the services with messages that may be decided differently because of the sides or their times."""
    before, after = diff_sides.before, diff_sides.after
    near = _near(diff_sides)
    first = instances_of(near[0])
    second = first if near[1] is near[0] else instances_of(near[1])
    old, new = (
        {name: instance.at(one_side.at) for name, instance in instances.items()}
        for one_side, instances in ((before, first), (after, second))
    )
    affected = AffectedServices()
    for name in old.keys() | new.keys():
        services = _services(old.get(name), new.get(name))
        if services is None:
            affected.instances.add(name)
        else:
            for service in services:
                affected.add(name, service)
    for name, service in _find_changed_requests(before, after):
        affected.add(name, service)
    return affected


def _near(diff_sides: DiffSides) -> tuple[Mapping[str, TableColumns], Mapping[str, TableColumns]]:
    """Return the settings of both sides, at one time only for instances with different rows."""
    before, after = diff_sides.before.settings, diff_sides.after.settings
    if not diff_sides.is_one_time:
        return before, after if diff_sides.differing else before
    names = {row[0] for rows in diff_sides.differing.values() for row in rows}
    return narrow(before, names), narrow(after, names)


def narrow(settings: Mapping[str, TableColumns], names: Iterable[str]) -> dict[str, TableColumns]:
    """Select the settings of some instances."""
    instance_names = set(names)
    return {key: columns.naming("instance_name", instance_names) for key, columns in settings.items()}


def _services(old: SqlInstance | None, new: SqlInstance | None) -> set[str] | None:
    """Return the services with messages that may differ, or None if any message may.

    Both instances have only their valid routes.
    """
    if old is None or new is None or _instance_facts(old) != _instance_facts(new):
        return None
    services = _differing(old.holders, new.holders)
    for database in old.routes.keys() | new.routes.keys():
        services |= _differing(old.routes.get(database, {}), new.routes.get(database, {}))
    return (
        None
        if services.intersection(_OF_ALL_SERVICES)
        else {service for service in services if service is not None}
    )


def _instance_facts(instance: SqlInstance) -> tuple[Any, ...]:
    """Return the properties of an instance that decide all its messages."""
    return instance.is_forwarding, instance.own_addresses, dict(instance.databases), instance.has_routes


def _differing(old: Mapping[Any, Any], new: Mapping[Any, Any]) -> set[str | None]:
    return {service for service in old.keys() | new.keys() if old.get(service) != new.get(service)}


def _find_changed_requests(before: OneSide, after: OneSide) -> Iterator[tuple[str, str]]:
    """Yield the instances and services with requests on record that count differently on one side."""
    first, second = (one_side.settings.get("route_requests") for one_side in (before, after))
    if first is second and before.at == after.at:
        return
    old, new = _states(first, before.at), _states(second, after.at)
    yield from {scope[::2] for scope in old.keys() | new.keys() if old.get(scope) != new.get(scope)}


def _states(requests: TableColumns | None, at: int) -> dict[tuple[str, str, str], set[tuple[Any, ...]]]:
    """Return the states of requests on record at a time, by instance, database and service.

    A request that is pending for every message counts by its waiting conversation endpoint (D10). A request of
    this exact time also counts by the compared id of its message (section 5) and whether it is still open.
    """
    states: dict[tuple[str, str, str], set[tuple[Any, ...]]] = {}
    for scope, on_record in ({} if requests is None else requests_of(requests)).items():
        state = {ended_request for request in on_record for ended_request in _state(request, at)}
        if state:
            states[scope] = state
    return states


def _state(request: RouteRequest, at: int) -> Iterator[tuple[Any, ...]]:
    is_open = request.ended_at is None or at < request.ended_at
    if request.requested_at < at and is_open:
        yield (request.endpoint,)
    elif request.requested_at == at:
        yield request.endpoint, request.message_id, is_open


@dataclass(frozen=True)
class PathDifference:
    """The reasons for different decisions and paths on two sides, each found once."""

    sides: DiffSides
    _leads_elsewhere_by_route: dict[tuple[str, str], bool] = field(default_factory=dict, init=False)

    @cached_property
    def affected(self) -> AffectedServices:
        """The services with messages that may be decided differently."""
        return find_affected(self.sides)

    @cached_property
    def before(self) -> EstateNetwork:
        """The whole estate of the side before."""
        return network_of(self.sides.before.settings)

    @cached_property
    def after(self) -> EstateNetwork:
        """The whole estate of the side after."""
        before, other = self.sides.both
        return network_of(other.settings) if other.differs_in(before) else self.before

    def may_differ(self, path: PathWithReturn, sender: PathSender, to: ServiceAddress) -> bool:
        """Return True if the path of a sender's messages before may be another one after."""
        back_to = None if sender.back_to is None else sender.back_to.name
        return any(
            self._may_path_differ(possible_path, back_to if possible_path.is_return else to.name)
            for possible_path in path.judged.all_paths
        )

    def _may_path_differ(self, possible_path: PossiblePath, service: str | None) -> bool:
        path = possible_path.hop_path
        if any(self.affected.may_differ(hop.instance_name, service) for hop in path.hops):
            return True
        if self.affected.may_differ(path.instance, service):
            return True
        return any(
            self._leads_elsewhere(hop.instance_name, hop.address) for hop in path.hops if hop.address is not None
        )

    def select(
        self, touched: AffectedServices, find_services: Callable[[Only], Iterable[str]]
    ) -> list[dict[str, list[str]]]:
        """Return filters by column that select all messages with a possible difference at any hop.

        They may select too many, because a filter covers all messages of an instance to a service. ``touched`` are
        the messages that may differ at their first hop. ``find_services`` returns the target services of selected
        messages, for acknowledgements that may take another path.
        """
        selections = touched.filters
        whole = self._reaching({*self.affected.instances, *self._senders_elsewhere})
        if whole:
            selections.append({"instance_name": whole})
        if self.affected.services:
            names = sorted(set().union(*self.affected.services.values()))
            near = {"instance_name": self._reaching(self.affected.services)}
            selections.append({**near, "to_service_name": names})
            answered = sorted(find_services({**near, "from_service_name": names}))
            selections += [{**near, "to_service_name": answered}] if answered else []
        return selections

    def list_unaddressed(self, read_keys: Callable[[], Iterable[PathKey]]) -> list[str]:
        """Return the instances without a known address where messages may get another path at a time after.

        Any of them may listen at any address of no known instance. ``read_keys`` returns the keys of all messages.
        Every such instance counts if there are too many keys or paths.
        """
        settings = self.sides.before.settings, self.sides.after.settings
        if all(any(addresses or ()) for one in settings for addresses in one["instances"].values["addresses"]):
            return []
        keys = self._affected_keys(read_keys)
        if not keys:
            return []
        networks, times = (self.before, self.after), [side.at for side in self.sides.both]
        hidden = {name for network in networks for name in _without_address(network)}
        if len(keys) > _MOST_KEYS:
            return sorted(hidden)
        unknown = {text.address_in_name(service) for key in keys for service in (key.to, key.back_to)}
        unknown.update(
            address for one in networks for sender in one.instances.values() for address in sender.route_addresses
        )
        hiding: set[str] = set()
        # A route of an instance to its own address ends there, so each instance is also tried without these.
        for is_own in (True, False):
            planners = [
                PathPlanner(_place(network, unknown, is_own=is_own), is_exact=True) for network in networks
            ]
            for key in keys:
                old, new = (_list_passed_paths(*of, key) for of in zip(planners, times, strict=True))
                if old is None or new is None:
                    return sorted(hidden)
                steps = (step for path in old ^ new for step in pairwise(path.instances))
                hiding.update(name for sender, name in steps if name is not None and name != sender)
        return sorted(hiding & hidden)

    def _affected_keys(self, read_keys: Callable[[], Iterable[PathKey]]) -> list[PathKey]:
        if self.affected.instances or self._senders_elsewhere:
            return list(read_keys())
        services = set().union(*self.affected.services.values())
        return [key for key in read_keys() if {key.to, key.back_to} & services] if services else []

    def _reaching(self, targets: Collection[str]) -> list[str]:
        """Return these instances and all instances with messages or answers that may pass through them."""
        reached = {*targets, *(self._senders_by_service_name if targets else ())}
        waiting = list(reached)
        while waiting:
            new = self._senders_by_receiver.get(waiting.pop(), set()) - reached
            reached |= new
            waiting += new
        return sorted(reached)

    @cached_property
    def _senders_by_receiver(self) -> Mapping[str, set[str]]:
        """Instances by the instance that their routes lead to, on either side."""
        led_from: dict[str, set[str]] = defaultdict(set)
        for network in {id(network): network for network in (self.before, self.after)}.values():
            for sender in network.instances.values():
                for address in sender.route_addresses:
                    for owner in network.owners(address, sender):
                        led_from[owner.name].add(sender.name)
        return led_from

    @cached_property
    def _senders_by_service_name(self) -> set[str]:
        """The instances with a route that reads its address from the service name."""
        return {
            sender.name
            for network in (self.before, self.after)
            for sender in network.instances.values()
            if any(route.kind is AddressKind.TRANSPORT for route in sender.every_route)
        }

    @cached_property
    def _senders_elsewhere(self) -> set[str]:
        """The instances from which some address leads to other instances on the other side."""
        if self._are_addresses_same:
            return set()
        senders = {name for name in self.before.instances if name not in self.after.instances}
        for network in (self.before, self.after):
            for name, sender in network.instances.items():
                if any(self._leads_elsewhere(name, address) for address in sender.route_addresses):
                    senders.add(name)
        return senders | self._senders_by_service_name

    @cached_property
    def _are_addresses_same(self) -> bool:
        old, new = (
            {name: instance.own_addresses for name, instance in network.instances.items()}
            for network in (self.before, self.after)
        )
        return old == new

    def _leads_elsewhere(self, sender: str, address: str) -> bool:
        """Return True if an address leads to other instances on the other side."""
        if self._are_addresses_same:
            return False
        led = self._leads_elsewhere_by_route.get((sender, address))
        if led is None:
            led = self._leads_elsewhere_by_route[sender, address] = self._owners(
                self.before, sender, address
            ) != self._owners(self.after, sender, address)
        return led

    @staticmethod
    def _owners(network: EstateNetwork, sender: str, address: str) -> list[str] | None:
        instance = network.instances.get(sender)
        return None if instance is None else [owner.name for owner in network.owners(address, instance)]


class PathKey(NamedTuple):
    """The facts that decide the path of messages, apart from their dialogs and times.

    ``broker`` is the broker instance in the messages, or None. ``back_to`` is the sending service, or None.
    """

    instance: str
    database: str | None
    to: str
    broker: str | None
    is_initiator: bool
    back_to: str | None


class _PassedPath(NamedTuple):
    """The instances that a message and its acknowledgement pass, and the ending."""

    instances: tuple[str | None, ...]
    end: PathEnd


def _without_address(network: EstateNetwork) -> Iterator[str]:
    return (one.name for one in network.instances.values() if one.databases and not one.own_addresses)


def _place(network: EstateNetwork, addresses: Iterable[str | None], *, is_own: bool) -> EstateNetwork:
    """Return an estate with its instances without an address at addresses of no known instance."""
    compared = {text.comparable_address(address) for address in addresses if address and text.is_tcp(address)}
    instances, unknown = KnownInstances(network.instances), compared - network.places.keys()
    for name in _without_address(network):
        led_to = () if is_own else map(text.comparable_address, instances[name].route_addresses)
        instances[name] = replace(instances[name], own_addresses=own_addresses(unknown.difference(led_to)))
    return EstateNetwork(instances, network.on_record)


def _list_passed_paths(planner: PathPlanner, t: int, key: PathKey) -> set[_PassedPath] | None:
    """Return the paths of the messages of a key, or None if there are too many.

    They are bound to each broker instance that their dialogs may have.
    """
    instances = KnownInstances.of(planner.network.instances)
    instance = instances.get(key.instance)
    if instance is None or (key.database is not None and key.database not in instance.databases):
        return set()
    back_to = None if key.back_to is None else ServiceAddress.of_name(key.back_to)
    sender, to = PathSender(instance, key.database, key.is_initiator, back_to), ServiceAddress.of_name(key.to)
    brokers = {None, *instances.brokers_of(key.to)} if key.broker is None else {key.broker}
    choices = (
        choice for broker in brokers for choice in planner.timeline(sender, to, broker).at(t, [None]).choices
    )
    paths = [path.judged for choice in choices for path in choice.paths]
    if any(path.is_cut for path in paths):
        return None
    return {passed for path in paths for passed in _passed_paths_of(path)}


def _passed_paths_of(path: JudgedPath) -> Iterator[_PassedPath]:
    for there in path.forward_paths:
        passed = _list_passed(there)
        yield _PassedPath(passed, there.end)
        for back in path.return_paths:
            if _list_passed(back)[0] == passed[-1]:
                yield _PassedPath(passed + _list_passed(back), back.end)


def _list_passed(possible_path: PossiblePath) -> tuple[str | None, ...]:
    """Return the instances that a path passes, with its end."""
    hop_path = possible_path.hop_path
    return (*(hop.instance_name for hop in hop_path.hops), hop_path.instance)
