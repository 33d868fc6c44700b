"""Groups of stuck messages, with the facts of the estate for their remedy: who holds their service, and where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from routing.document import SqlStatement
from routing.features.check import check_phrases
from routing.features.check.remedy_addresses import EstateAddresses, TargetAddress
from routing.importing.tsql.sqlcmd import write_server
from routing.rules import text
from routing.rules.deciding import Decision, RouteSearch
from routing.rules.estate import (
    AddressKind,
    Database,
    EstateRoute,
    ServiceHolders,
    SharedTuple,
    SqlInstance,
)
from routing.rules.locating import has_id
from routing.rules.matching import UNNAMED
from routing.rules.resolving import Verdict
from routing.rules.text import BROKER_OFF, EXPIRED, NOT_YET, OTHER_BROKER, likeness, list_name_differences
from routing.terms import SortKey

# Near misses: routes and services that a message missed by case, blanks, slashes, an old id or by time.


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


NOTHING_NEAR: SharedTuple[NearMiss] = SharedTuple()


class KnownInstances(dict[str, SqlInstance]):
    """All known instances, and which databases of them hold a service: found once for all messages."""

    @classmethod
    def of(cls, instances: Mapping[str, SqlInstance]) -> KnownInstances:
        """Return instances as such, themselves if they are already."""
        return instances if isinstance(instances, KnownInstances) else cls(instances)

    def holders_of(self, service: str | None, broker: str | None = None) -> Sequence[tuple[str, Database]]:
        """Return the databases that hold a service and have an id, with and by their instances' names."""
        place = service, broker
        if place not in self._fitting:
            holders = self._holders.get(service, ())
            self._fitting[place] = [one for one in holders if has_id(one[1], broker)]
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
    def _holders(self) -> dict[str | None, list[tuple[str, Database]]]:
        by_service: dict[str | None, list[tuple[str, Database]]] = {}
        for name, instance in sorted(self.items()):
            for service, holders in instance.holders.items():
                by_service.setdefault(service, []).extend((name, holder) for holder in holders)
        return by_service

    @cached_property
    def _fitting(self) -> dict[tuple[str | None, str | None], Sequence[tuple[str, Database]]]:
        return {}

    @cached_property
    def _holding(self) -> dict[tuple[str, str | None], frozenset[str]]:
        return {}

    @cached_property
    def _brokers(self) -> dict[str, frozenset[str | None]]:
        return {}


_HeldService = tuple[str, Database, str]


class _NearHolders(NamedTuple):
    """The databases that hold services of near names: by service, and by id, under None all of them."""

    by_service: dict[str, list[_HeldService]]
    by_broker: dict[str | None, list[_HeldService]]

    def add(self, held: _HeldService) -> None:
        """Add a database with a service."""
        _, holder, service = held
        self.by_service.setdefault(service, []).append(held)
        for broker in {None, holder.broker}:
            self.by_broker.setdefault(broker, []).append(held)


_NO_NEAR_HOLDERS = _NearHolders({}, {})


class NearMisses:
    """Routes and services of all known instances, found by what near names have in common.

    Built once, in one pass over the estate; a question looks at what is near alone, and is answered once.
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

    def of(self, instance: str, scope: str, service: str, broker: str | None, t: int) -> SharedTuple[NearMiss]:
        """Find the routes and services that a message just missed at a time (microseconds).

        ``scope`` is the database whose routes were searched, ``broker`` the id that the message is bound to, None
        while it is open. First routes of the scope, those with the fewest differences before others; then
        services, the instance's own before others. Each by its names.
        """
        routes, services = (
            self._routes_near(instance, scope, service, broker, t),
            self._services_near(instance, service, broker),
        )
        return SharedTuple((*routes, *services)) if routes else services

    def _routes_near(
        self, instance: str, scope: str, service: str, broker: str | None, t: int
    ) -> SharedTuple[NearMiss]:
        table = self._table(instance, scope)
        if not table.near(service):
            return NOTHING_NEAR
        counted = broker if broker is None or broker in table.brokers(service) else UNNAMED
        place = ROUTE, instance, scope, service, counted, t
        if place not in self._found:
            routes = sorted(self._near_routes(instance, scope, service, broker, t), key=_few_first)
            self._found[place] = SharedTuple(dict.fromkeys(routes))
        return self._found[place]

    def _services_near(self, instance: str, service: str, broker: str | None) -> SharedTuple[NearMiss]:
        near = self._near_holders(service)
        if not near.by_service:
            return NOTHING_NEAR
        # An id that nothing near has is as good as any other.
        place = SERVICE, instance, service, broker if broker in near.by_broker else UNNAMED
        if place not in self._found:
            services = sorted(self._near_services(instance, service, broker), key=_few_first)
            services.sort(key=lambda near: near.instance != instance)
            self._found[place] = SharedTuple(services)
        return self._found[place]

    def _near_holders(self, service: str) -> _NearHolders:
        return self._services.get(likeness(service), _NO_NEAR_HOLDERS)

    def _near_routes(
        self, instance: str, scope: str, service: str, broker: str | None, t: int
    ) -> Iterator[NearMiss]:
        table = self._table(instance, scope)
        live = table.live_names(t)
        for route in table.near(service):
            route_differences = list_name_differences(service, route.service or "")
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
        # An id that a known holder of the service has is no old one.
        with_id = near.by_broker.get(broker, [])
        is_current = any(held_service == service for _, _, held_service in with_id)
        spellings = {held: list_name_differences(service, held) for held in near.by_service}
        # Of holders of the service itself only those with the id can differ then.
        others = (one for held, holders in near.by_service.items() if held != service for one in holders)
        own = with_id if is_current else near.by_service.get(service, [])
        for where, holder, held_service in chain((one for one in own if one[2] == service), others):
            service_differences = list(spellings[held_service])
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
        self._every: list[EstateRoute] = []
        self._live: dict[int, frozenset[str | None]] = {}
        self._brokers: dict[str, frozenset[str | None]] = {}
        for service, routes in by_service.items():
            if service is not None:
                self._near.setdefault(likeness(service), []).extend(routes)
            self._every += routes

    def near(self, service: str) -> list[EstateRoute]:
        """Return the routes that name a service like this one."""
        return self._near.get(likeness(service), [])

    def brokers(self, service: str) -> frozenset[str | None]:
        """Return the ids of the routes that name a service like this one."""
        like = likeness(service)
        if like not in self._brokers:
            self._brokers[like] = frozenset(route.broker for route in self.near(service))
        return self._brokers[like]

    def live_names(self, t: int) -> frozenset[str | None]:
        """Return the names of which a version is in force: any other is past, or still to come."""
        if t not in self._live:
            self._live[t] = frozenset(route.name for route in self._every if route.is_live(t))
        return self._live[t]


def _few_first(near: NearMiss) -> SortKey:
    return (len(near.differences), near.instance, near.database, near.name)


class NewRouteNames:
    """The names of routes that remedies create: routes of a database that differ have different names."""

    def __init__(self) -> None:
        self._clauses: dict[tuple[str, str], dict[str, str | None]] = defaultdict(dict)

    def find(
        self, instance: str, database: str, service: str, clause: str | None, names_in_use: Collection[str]
    ) -> str:
        """Return the name of a new route to a service with these options; ``names_in_use`` are folded."""
        clauses = self._clauses[instance, database]
        name = check_phrases.new_name(
            service, lambda folded: folded in names_in_use or clauses.get(folded, clause) != clause
        )
        clauses[text.collated(name)] = clause
        return name


@dataclass(frozen=True)
class StuckGroup:
    """One group of messages with the same result.

    ``instances`` are all that are known, with their ``addresses``.
    ``instance`` is where they are stuck, ``database`` the one of it that sent them, None where they came from the
    network; ``scope`` is the database whose routes were searched last: the sender or msdb. ``broker`` is the id
    that the messages are bound to. ``near`` is what `NearMisses` finds for the scope. ``services_in_use`` are
    names of services that messages are sent to, their own too: a route that names another one stays. ``back_to``
    is the instance and the database that acknowledgements go back to, None for messages; ``from_service`` the
    service that sent them, None where that is not known.
    """

    instances: Mapping[str, SqlInstance]
    addresses: EstateAddresses
    instance: str
    database: str | None
    scope: str
    service: str
    broker: str | None
    verdict: Verdict
    near: Sequence[NearMiss]
    services_in_use: Collection[str] = frozenset()
    back_to: tuple[str, str] | None = None
    from_service: str | None = None
    new_names: NewRouteNames = field(default_factory=NewRouteNames, compare=False)

    @property
    def here(self) -> SqlInstance:
        """The sender's instance."""
        return self.instances.get(self.instance) or SqlInstance(self.instance)

    @property
    def first(self) -> RouteSearch:
        """The search of the sender's routes. Only for verdicts that have a decision."""
        return self._decision.first

    @property
    def last(self) -> RouteSearch:
        """The search that decided. Only for verdicts that have a decision."""
        return self._decision.last

    @property
    def came_back(self) -> bool:
        """Whether a route of the sender led back to its own instance, where msdb's routes were searched."""
        return self.verdict.decision is not None and self.verdict.decision.again is not None

    @property
    def cannot_forward(self) -> bool:
        """Return True if they arrived from the network, and no route leads them on while forwarding is off."""
        return self.database is None and not self.here.is_forwarding

    @property
    def holders_here(self) -> ServiceHolders:
        """The databases of the sender's instance that hold the service, whatever their ids."""
        return self.here.holders_of(self.service)

    @property
    def fitting_here(self) -> list[Database]:
        """Those of them that the messages may be delivered to, once their brokers are on."""
        return list(self.holders_here.by_broker.get(self.last.known_broker, ()))

    def holders_elsewhere(self) -> list[tuple[str, Database]]:
        """List databases of other known instances that hold the service and have the id, with instances."""
        holders = self._known.holders_of(self.service, self.last.known_broker)
        return [(name, holder) for name, holder in holders if name != self.instance]

    def target(self) -> str | None:
        """Return the only other instance that holds the service; None where none or several do."""
        holding_instances = self._known.instances_with(self.service, self.last.known_broker)
        if len(holding_instances) > 2:
            return None
        elsewhere = holding_instances - {self.instance}
        return next(iter(elsewhere)) if len(elsewhere) == 1 else None

    def create_route(self, database: str, clause: str | None) -> str | None:
        """Write CREATE ROUTE for a new route to the service; None where a name cannot be pasted."""
        names_in_use = self.here.route_names.get(database, frozenset())
        name = self.new_names.find(self.instance, database, self.service, clause, names_in_use)
        return check_phrases.create_route(name, clause)

    def address_of(self, instance: str) -> TargetAddress | None:
        """Return an address under which the sender's instance reaches another: with a port, and not its own."""
        return self.addresses.choose(instance, self.here)

    def is_needed(self, service: str | None) -> bool:
        """Return True if a service of this very name is in use, or any known instance holds it."""
        is_in_use = service in self.services_in_use and service != self.service
        return is_in_use or bool(self._known.holders_of(service))

    def is_current(self, broker: str | None) -> bool:
        """Return True if a known database that holds the service has this id today."""
        return broker is not None and broker in self._known.brokers_of(self.service)

    def missed_route(self, near: NearMiss) -> EstateRoute | None:
        """Return the route that a near miss tells of, the last of its versions."""
        if near.what != ROUTE:
            return None
        named = self.here.routes.get(near.database, {}).get(near.service, ())
        route_versions = [route for route in named if (route.name, route.broker) == (near.name, near.broker)]
        return route_versions[-1] if route_versions else None

    def would_lead_on(self, route: EstateRoute) -> bool:
        """Return whether a route would, if it matched, take the messages to a known holder of the service.

        Not one back to this very instance, where they do not get on, nor one to another instance than theirs.
        """
        if route.kind is AddressKind.LOCAL:
            broker = self.last.broker or route.broker
            return any(holder.is_enabled and has_id(holder, broker) for holder in self.holders_here)
        if (
            route.kind is not AddressKind.NETWORK
            or route.compared in self.here.own_addresses
            or self.cannot_forward
        ):
            return False
        target = self.target()
        if target is None or not self.addresses.of(target):
            return True
        return route.compared in {text.comparable_address(address) for address in self.addresses.of(target)}

    @cached_property
    def _known(self) -> KnownInstances:
        return KnownInstances.of(self.instances)

    @property
    def _decision(self) -> Decision:
        if self.verdict.decision is None:
            raise ValueError("no routes were searched")
        return self.verdict.decision


_USE_UNNAMED = "-- USE [<database>];"


@dataclass(frozen=True)
class MessageRemedy:
    """A remedy: words, a sentence or two, and the statement to paste.

    ``statement`` is T-SQL, `USE` on a line of its own before it; None where there are only words. Where
    ``is_complete`` it can be run as it is; else something must be found out first and every line is a comment.
    ``lead`` is the sentence that announces the statement. It is not shown without one.
    """

    words: str
    statement: str | None = None
    is_complete: bool = False
    lead: str = ""

    @property
    def text(self) -> str:
        """All that is said: the words, then the sentence that announces the statement."""
        return f"{self.words} {self.lead}" if self.lead and self.statement is not None else self.words

    def list_actions(self, *, has_explained_cause: bool) -> list[str]:
        """List the sentences on what to do, without the first one if it has explained the cause.

        If nothing is left, a sentence announces the statement. Without a statement the cause stays.
        """
        sentences = check_phrases.split_sentences(self.words)
        actions = sentences[1:] if has_explained_cause else sentences
        if self.statement is None:
            return actions or sentences
        if self.lead:
            return [*actions, self.lead]
        return actions or ["Run this:" if self.is_complete else "Uncomment what is right, and run it:"]

    def as_statement(self, instance: str, about: Sequence[str], indent: int = 0) -> SqlStatement:
        """Return the statement for an instance, as it stands among others; ``about`` says what it is for."""
        statement, is_complete = self.statement or "", self.is_complete
        if not statement.startswith(("USE ", "-- USE ")):
            # No export names the database: it would run in that of the statement before it.
            statement = f"{_USE_UNNAMED}\n{check_phrases.as_comment(statement) if is_complete else statement}"
            is_complete = False
        remedy = replace(self, statement=statement, is_complete=is_complete)
        # Where the statement is a comment the comments before it end with an empty one.
        purpose = [remedy.state_place(instance), *about, *([] if is_complete else [""])]
        server = write_server(instance) or f"<the server of {check_phrases.named(instance)}>"
        return SqlStatement(statement, "\n".join(purpose), indent, server)

    def state_place(self, instance: str) -> str:
        """Return the sentence that says where the statement is run, and what is done to it before."""
        if self.is_complete:
            return f"Run this on {check_phrases.named(instance)}."
        is_open = "<" in (self.statement or "")
        first = "put a value into each place <…>" if is_open else "uncomment what is right"
        return f"On {check_phrases.named(instance)}, {first} before you run this."


class PlacedRemedy(NamedTuple):
    """A remedy, and the instance that it is for."""

    instance: str
    remedy: MessageRemedy


def ready(words: str, database: str, *lines: str | None) -> MessageRemedy:
    """Build a remedy with statements to be run as they are; words alone where a name cannot be pasted."""
    statement = check_phrases.in_database(database, lines)
    return MessageRemedy(words, statement, True) if statement is not None else in_words(words)


def to_fill_in(words: str, database: str, *lines: str | None, lead: str = "") -> MessageRemedy:
    """Build a remedy whose statements need a value first; words alone where a name cannot be pasted."""
    statement = check_phrases.as_comment(check_phrases.in_database(database, lines))
    return MessageRemedy(words, statement, lead=lead) if statement is not None else in_words(words)


def in_words(words: str) -> MessageRemedy:
    """Build a remedy without a statement, since one of its names cannot be pasted."""
    return MessageRemedy(
        f"{words} There is no statement: a name in it cannot be pasted safely, or is too long for SQL Server."
    )
