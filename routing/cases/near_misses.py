"""Find near misses: routes and services that a message missed by spelling, an old id or time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from routing.rules import text
from routing.rules.estate import Database, EstateRoute, SharedTuple, SqlInstance
from routing.rules.locating import has_id
from routing.rules.matching import UNNAMED
from routing.rules.text import BROKER_OFF, EXPIRED, NOT_YET, OTHER_BROKER, SpelledName, likeness
from routing.terms import SortKey

ROUTE, SERVICE = "route", "service"


@dataclass(frozen=True)
class NearMiss:
    """A route or a service that a message just missed, with all differences.

    ``object_type`` is ROUTE or SERVICE, ``name`` its own name. ``service`` is its service name. ``broker`` is the
    route's broker instance or the id of the service's database. ``differences`` are words of `differing`. They
    begin with SPELLINGS and OTHER_BROKER. Then come EXPIRED or NOT_YET for a route, BROKER_OFF for a service.
    """

    object_type: str
    instance: str
    database: str
    name: str
    service: str | None
    broker: str | None
    differences: tuple[str, ...]


NOTHING_NEAR: SharedTuple[NearMiss] = SharedTuple()


class KnownInstances(dict[str, SqlInstance]):
    """All known instances, and which databases of them hold a service: found once for all messages."""

    def __init__(self, instances: Mapping[str, SqlInstance]) -> None:
        super().__init__(instances)
        self._fitting: dict[tuple[str | None, str | None], Sequence[tuple[str, Database]]] = {}
        self._holding: dict[tuple[str, str | None], frozenset[str]] = {}
        self._brokers: dict[str, frozenset[str | None]] = {}

    @classmethod
    def of(cls, instances: Mapping[str, SqlInstance]) -> KnownInstances:
        """Return instances as such, themselves if they are already."""
        return instances if isinstance(instances, KnownInstances) else cls(instances)

    def holders_of(self, service: str | None, broker: str | None = None) -> Sequence[tuple[str, Database]]:
        """Return the databases that hold a service and have an id, with and by their instances' names."""
        place = service, broker
        if place not in self._fitting:
            holders = self._holders.get(service, ())
            self._fitting[place] = [holder for holder in holders if has_id(holder[1], broker)]
        return self._fitting[place]

    def instances_with(self, service: str, broker: str | None) -> frozenset[str]:
        """Return the instances of `holders_of`."""
        place = service, broker
        if place not in self._holding:
            self._holding[place] = frozenset(name for name, _ in self.holders_of(*place))
        return self._holding[place]

    def brokers_of(self, service: str) -> frozenset[str | None]:
        """Return the ids of the databases that hold a service."""
        if service not in self._brokers:
            self._brokers[service] = frozenset(holder.broker for _, holder in self.holders_of(service))
        return self._brokers[service]

    @cached_property
    def spellings(self) -> Counter[str]:
        """The number of held services by name, in the form of `text.collated`."""
        return Counter(text.collated(service) for service in self._holders if service is not None)

    @cached_property
    def _holders(self) -> dict[str | None, list[tuple[str, Database]]]:
        by_service: dict[str | None, list[tuple[str, Database]]] = {}
        for name, instance in sorted(self.items()):
            for service, holders in instance.holders.items():
                by_service.setdefault(service, []).extend((name, holder) for holder in holders)
        return by_service


_HeldService = tuple[str, Database, str]


class _NearHolders(NamedTuple):
    """The databases that hold services of near names: by service, and by id, under None all of them."""

    by_service: dict[str, list[_HeldService]]
    by_broker: dict[str | None, list[_HeldService]]

    def add(self, held_service: _HeldService) -> None:
        """Add a database with a service."""
        _, holder, service = held_service
        self.by_service.setdefault(service, []).append(held_service)
        for broker in {None, holder.broker}:
            self.by_broker.setdefault(broker, []).append(held_service)


_NO_NEAR_HOLDERS = _NearHolders({}, {})


class NearMisses:
    """Routes and services of all known instances, grouped by similar names.

    The groups are built once, in one pass over the estate. Each question reads only the similar names, and its
    answer is cached.
    """

    def __init__(self, instances: Mapping[str, SqlInstance]) -> None:
        self._instances = instances
        self._routes: dict[tuple[str, str], _Table] = {}
        self._found: dict[Hashable, SharedTuple[NearMiss]] = {}

    @cached_property
    def _services(self) -> dict[str, _NearHolders]:
        holders_by_likeness: dict[str, _NearHolders] = {}
        for instance in self._instances.values():
            for service, holders in instance.holders.items():
                near = holders_by_likeness.setdefault(likeness(service), _NearHolders({}, {}))
                for holder in holders:
                    near.add((instance.name, holder, service))
        return holders_by_likeness

    def find(self, instance: str, scope: str, service: str, broker: str | None, t: int) -> SharedTuple[NearMiss]:
        """Find the routes and services that a message just missed at a time (microseconds).

        ``scope`` is the database with the searched routes. ``broker`` is the id that the message is bound to, or
        None if it has none yet. Routes of the scope come first, ordered by their number of differences. Services
        follow, with those of the instance first.
        """
        routes = self._routes_near(instance, scope, service, broker, t)
        services = self._services_near(instance, service, broker)
        return SharedTuple((*routes, *services)) if routes else services

    def _routes_near(
        self, instance: str, scope: str, service: str, broker: str | None, t: int
    ) -> SharedTuple[NearMiss]:
        table = self._routes_of(instance, scope)
        if not table.find_similar(service):
            return NOTHING_NEAR
        counted = broker if broker is None or broker in table.brokers(service) else UNNAMED
        place = ROUTE, instance, scope, service, counted, t
        if place not in self._found:
            routes = sorted(self._near_routes(instance, scope, service, broker, t), key=_fewest_differences_first)
            self._found[place] = SharedTuple(dict.fromkeys(routes))
        return self._found[place]

    def _services_near(self, instance: str, service: str, broker: str | None) -> SharedTuple[NearMiss]:
        near = self._near_holders(service)
        if not near.by_service:
            return NOTHING_NEAR
        # An id that nothing near has is as good as any other.
        place = SERVICE, instance, service, broker if broker in near.by_broker else UNNAMED
        if place not in self._found:
            services = sorted(self._near_services(instance, service, broker), key=_fewest_differences_first)
            services.sort(key=lambda near: near.instance != instance)
            self._found[place] = SharedTuple(services)
        return self._found[place]

    def _near_holders(self, service: str) -> _NearHolders:
        return self._services.get(likeness(service), _NO_NEAR_HOLDERS)

    def _near_routes(
        self, instance: str, scope: str, service: str, broker: str | None, t: int
    ) -> Iterator[NearMiss]:
        table = self._routes_of(instance, scope)
        live = table.live_names(t)
        wanted_name, near = SpelledName(service), table.find_similar(service)
        spellings = {
            named: wanted_name.list_differences(named) for named in {route.service or "" for route in near}
        }
        for route in near:
            route_differences = list(spellings[route.service or ""])
            if broker is not None and route.broker not in (None, broker):
                route_differences.append(OTHER_BROKER)
            if not route.is_live(t):
                if route.name in live:
                    continue
                route_differences.append(
                    NOT_YET if route.live_from is not None and route.live_from > t else EXPIRED
                )
            if route_differences:
                name = route.name or ""
                yield NearMiss(ROUTE, instance, scope, name, route.service, route.broker, tuple(route_differences))

    def _near_services(self, instance: str, service: str, broker: str | None) -> Iterator[NearMiss]:
        near = self._near_holders(service)
        # An id that a known holder of the service has is current.
        with_id = near.by_broker.get(broker, [])
        is_current = any(held_service == service for _, _, held_service in with_id)
        wanted_name = SpelledName(service)
        spellings = {name: wanted_name.list_differences(name) for name in near.by_service}
        # Of holders of the service itself only those with the id can differ then.
        other_holders = (
            holder for name, holders in near.by_service.items() if name != service for holder in holders
        )
        same_name = with_id if is_current else near.by_service.get(service, [])
        for where, holder, held_service in chain((one for one in same_name if one[2] == service), other_holders):
            service_differences = list(spellings[held_service])
            if not is_current and not has_id(holder, broker):
                service_differences.append(OTHER_BROKER)
            if where == instance and has_id(holder, broker) and not holder.is_enabled:
                service_differences.append(BROKER_OFF)
            if service_differences:
                names = where, holder.name, held_service, held_service
                yield NearMiss(SERVICE, *names, holder.broker, tuple(service_differences))

    def _routes_of(self, instance: str, scope: str) -> _Table:
        place = (instance, scope)
        if place not in self._routes:
            known_instance = self._instances.get(instance)
            self._routes[place] = _Table({} if known_instance is None else known_instance.routes.get(scope, {}))
        return self._routes[place]


def near_in_common(near_lists: Sequence[Sequence[NearMiss]]) -> tuple[NearMiss, ...]:
    """Return the near misses that are in every list, with their common differences."""
    if not near_lists:
        return ()
    differences_elsewhere = [
        {replace(near, differences=()): near.differences for near in near_list} for near_list in near_lists[1:]
    ]
    common = []
    for near in near_lists[0]:
        its = [other.get(replace(near, differences=()), ()) for other in differences_elsewhere]
        shared = tuple(word for word in near.differences if all(word in words for words in its))
        if shared:
            common.append(replace(near, differences=shared))
    return tuple(common)


class _Table:
    """The routes of one database, grouped by similar service names and by their own names."""

    def __init__(self, by_service: Mapping[str | None, tuple[EstateRoute, ...]]) -> None:
        self._near: dict[str, list[EstateRoute]] = {}
        self._every: list[EstateRoute] = []
        self._live: dict[int, frozenset[str | None]] = {}
        self._brokers: dict[str, frozenset[str | None]] = {}
        for service, routes in by_service.items():
            if service is not None:
                self._near.setdefault(likeness(service), []).extend(routes)
            self._every += routes

    def find_similar(self, service: str) -> list[EstateRoute]:
        """Return the routes that name a service like this one."""
        return self._near.get(likeness(service), [])

    def brokers(self, service: str) -> frozenset[str | None]:
        """Return the ids of the routes that name a service like this one."""
        like = likeness(service)
        if like not in self._brokers:
            self._brokers[like] = frozenset(route.broker for route in self.find_similar(service))
        return self._brokers[like]

    def live_names(self, t: int) -> frozenset[str | None]:
        """Return the names of routes with a valid version. Other names are expired or not yet valid."""
        if t not in self._live:
            self._live[t] = frozenset(route.name for route in self._every if route.is_live(t))
        return self._live[t]


def _fewest_differences_first(near: NearMiss) -> SortKey:
    return (len(near.differences), near.instance, near.database, near.name)
