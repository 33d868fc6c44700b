"""Near misses: routes and services that a message missed by case, blanks, slashes, an old id or by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from routing.features.near_differences import BROKER_OFF, EXPIRED, NOT_YET, OTHER_BROKER, differences, likeness
from routing.rules.estate import Database, EstateRoute, SqlInstance
from routing.rules.locating import has_id

ROUTE, SERVICE = "route", "service"


@dataclass(frozen=True)
class NearMiss:
    """A route or a service that a message just missed, and all that it differs in.

    ``what`` is ROUTE or SERVICE, ``name`` its own name. ``service`` is the service name that it has, ``broker``
    the route's broker instance or the id of the database that holds the service. ``differences`` are words of
    `differing`: SPELLINGS, OTHER_BROKER, then EXPIRED or NOT_YET of a route, BROKER_OFF of a service.
    """

    what: str
    instance: str
    database: str
    name: str
    service: str | None
    broker: str | None
    differences: tuple[str, ...]


_HeldService = tuple[str, Database, str]


class NearMisses:
    """Routes and services of all known instances, found by what near names have in common.

    Built once, in one pass over the estate; a question looks at what is near alone.
    """

    def __init__(self, instances: Mapping[str, SqlInstance]) -> None:
        self._instances = instances
        self._routes: dict[tuple[str, str], _Table] = {}

    @cached_property
    def _services(self) -> dict[str, list[_HeldService]]:
        holders_by_likeness: dict[str, list[_HeldService]] = {}
        for instance in self._instances.values():
            for service, holders in instance.holders.items():
                near = holders_by_likeness.setdefault(likeness(service), [])
                near += [(instance.name, holder, service) for holder in holders]
        return holders_by_likeness

    def of(self, instance: str, scope: str, service: str, broker: str | None, t: int) -> tuple[NearMiss, ...]:
        """Find the routes and services that a message just missed at a time (microseconds).

        ``scope`` is the database whose routes were searched, ``broker`` the id that the message is bound to, None
        while it is open. First routes of the scope, those with the fewest differences before others; then
        services, the instance's own before others. Each by its names.
        """
        routes = sorted(self._near_routes(instance, scope, service, broker, t), key=_few_first)
        services = sorted(self._near_services(instance, service, broker), key=_few_first)
        services.sort(key=lambda near: near.instance != instance)
        return (*dict.fromkeys(routes), *services)

    def _near_routes(
        self, instance: str, scope: str, service: str, broker: str | None, t: int
    ) -> Iterator[NearMiss]:
        table = self._table(instance, scope)
        for route in table.near(service):
            route_differences = differences(service, route.service or "")
            if broker is not None and route.broker not in (None, broker):
                route_differences.append(OTHER_BROKER)
            if not route.is_live(t):
                if table.is_live(route, t):
                    continue
                route_differences.append(
                    NOT_YET if route.live_from is not None and route.live_from > t else EXPIRED
                )
            if route_differences:
                name = route.name or ""
                yield NearMiss(ROUTE, instance, scope, name, route.service, route.broker, tuple(route_differences))

    def _near_services(self, instance: str, service: str, broker: str | None) -> Iterator[NearMiss]:
        near = self._services.get(likeness(service), [])
        # An id that a known holder of the service has is no old one.
        is_current = any(held_service == service and has_id(holder, broker) for _, holder, held_service in near)
        for where, holder, held_service in near:
            service_differences = differences(service, held_service)
            if not is_current and not has_id(holder, broker):
                service_differences.append(OTHER_BROKER)
            if where == instance and has_id(holder, broker) and not holder.is_enabled:
                service_differences.append(BROKER_OFF)
            if service_differences:
                yield NearMiss(
                    SERVICE,
                    where,
                    holder.name,
                    held_service,
                    held_service,
                    holder.broker,
                    tuple(service_differences),
                )

    def _table(self, instance: str, scope: str) -> _Table:
        place = (instance, scope)
        if place not in self._routes:
            known_instance = self._instances.get(instance)
            self._routes[place] = _Table({} if known_instance is None else known_instance.routes.get(scope, {}))
        return self._routes[place]


def near_in_common(near_lists: Sequence[Sequence[NearMiss]]) -> tuple[NearMiss, ...]:
    """Return the near misses that stand in every list, with the differences that all lists name."""
    if not near_lists:
        return ()
    others = [{replace(near, differences=()): near.differences for near in one} for one in near_lists[1:]]
    common = []
    for near in near_lists[0]:
        its = [other.get(replace(near, differences=()), ()) for other in others]
        shared = tuple(word for word in near.differences if all(word in words for words in its))
        if shared:
            common.append(replace(near, differences=shared))
    return tuple(common)


class _Table:
    """The routes of one database by what near service names have in common, and by their own names."""

    def __init__(self, by_service: Mapping[str | None, tuple[EstateRoute, ...]]) -> None:
        self._near: dict[str, list[EstateRoute]] = {}
        self._versions: dict[str | None, list[EstateRoute]] = {}
        for service, routes in by_service.items():
            if service is not None:
                self._near.setdefault(likeness(service), []).extend(routes)
            for route in routes:
                self._versions.setdefault(route.name, []).append(route)

    def near(self, service: str) -> list[EstateRoute]:
        """Return the routes that name a service like this one."""
        return self._near.get(likeness(service), [])

    def is_live(self, route: EstateRoute, t: int) -> bool:
        """Return True if another version of the route is in force: then this one is past, or still to come."""
        return any(version.is_live(t) for version in self._versions[route.name])


def _few_first(near: NearMiss) -> tuple[int, str, str, str]:
    return (len(near.differences), near.instance, near.database, near.name)
