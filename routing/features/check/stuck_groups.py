"""Groups of stuck messages, with the facts of the estate for their remedy: who holds their service, and where."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from routing.document import SqlStatement
from routing.features.check import check_phrases
from routing.importing.tsql.sqlcmd import write_server
from routing.rules import text
from routing.rules.deciding import Decision, RouteSearch
from routing.rules.estate import AddressKind, Database, EstateRoute, SqlInstance
from routing.rules.locating import has_id
from routing.rules.resolving import Verdict
from routing.rules.text import BROKER_OFF, EXPIRED, NOT_YET, OTHER_BROKER, likeness, list_name_differences
from routing.terms import LOOPBACK_HOSTS, SortKey

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
            route_differences = list_name_differences(service, route.service or "")
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
            service_differences = list_name_differences(service, held_service)
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


def _few_first(near: NearMiss) -> SortKey:
    return (len(near.differences), near.instance, near.database, near.name)


# Addresses for remedies: as the estate's own routes write them, else with a full name.


class TargetAddress(NamedTuple):
    """An address as it is written into a route.

    ``is_certain``: a route of the estate has it, or its host is an IP address or a name with a domain. A short
    machine name may not be found from elsewhere.
    """

    written: str
    is_certain: bool


class EstateAddresses:
    """The own addresses of instances, and how routes write them.

    ``own`` has the addresses of each instance as written, ``in_routes`` the addresses of routes, each with the
    instance of the route. Routes are read once, and not before an address is chosen.
    """

    def __init__(self, own: Mapping[str, Sequence[str]], in_routes: Iterable[tuple[str, str | None]] = ()) -> None:
        self._own, self._in_routes = own, in_routes

    def of(self, instance: str) -> Sequence[str]:
        """Return an instance's own addresses as written."""
        return self._own.get(instance, ())

    def choose(self, instance: str, here: SqlInstance) -> TargetAddress | None:
        """Return the address under which ``here`` reaches an instance; None where none with a port is known.

        The addresses in routes of ``here`` come first, then those in most routes. Others follow by their host: a
        name with a domain, an IP address, a short name.
        """
        usable = [address for address in self.of(instance) if _leads_away(address, here)]
        if not usable:
            return None
        best = min(usable, key=lambda address: (*self._count_uses(address, here), _rank_host(address)))
        uses = self._uses.get(text.comparable_address(best))
        if uses is None:
            return TargetAddress(best, _rank_host(best) < _SHORT_NAME)
        _, writing = min(uses, key=lambda use: (use[0] != here.name, -uses[use], use))
        return TargetAddress(writing, True)

    def _count_uses(self, address: str, here: SqlInstance) -> tuple[int, int]:
        """Return how many routes of ``here``, and of all, have an address, as negative numbers."""
        uses = self._uses.get(text.comparable_address(address), Counter())
        return -sum(many for (user, _), many in uses.items() if user == here.name), -sum(uses.values())

    @cached_property
    def _uses(self) -> Mapping[str, Counter[tuple[str, str]]]:
        """How many routes have each address that an instance has, by the route's instance and writing."""
        uses: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        owned = {text.comparable_address(address) for addresses in self._own.values() for address in addresses}
        for user, address in self._in_routes:
            if address is not None and text.comparable_address(address) in owned:
                uses[text.comparable_address(address)][user, address.strip().rstrip("/")] += 1
        return uses


def list_route_addresses(instances: Mapping[str, SqlInstance]) -> Iterator[tuple[str, str | None]]:
    """Yield the addresses and mirror addresses of the routes of instances, each with the route's instance."""
    for name, instance in instances.items():
        for by_service in instance.routes.values():
            for route in chain.from_iterable(by_service.values()):
                yield name, route.address
                yield name, route.mirror_address


def _leads_away(address: str, here: SqlInstance) -> bool:
    is_own = text.comparable_address(address) in here.own_addresses
    return text.port(address) is not None and text.host(address) not in LOOPBACK_HOSTS and not is_own


_SHORT_NAME = 2


def _rank_host(address: str) -> int:
    """Return the rank of an address by its host: a name with a domain, an IP address, a short name."""
    host = text.host(address) or ""
    if ":" in host or host.replace(".", "").isdecimal():
        return 1
    return 0 if "." in host else _SHORT_NAME


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
    names of services that messages are sent to: a route that names one stays. ``back_to`` is the instance and the
    database that acknowledgements go back to, None for messages; ``from_service`` the service that sent them, None
    where that is not known.
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
    def holders_here(self) -> tuple[Database, ...]:
        """The databases of the sender's instance that hold the service, whatever their ids."""
        return self.here.holders_of(self.service)

    @property
    def fitting_here(self) -> list[Database]:
        """Those of them that the messages may be delivered to, once their brokers are on."""
        return [holder for holder in self.holders_here if has_id(holder, self.last.known_broker)]

    def holders_elsewhere(self) -> list[tuple[str, Database]]:
        """List databases of other known instances that hold the service and have the id, with instances."""
        return [
            (name, holder)
            for name, instance in sorted(self.instances.items())
            if name != self.instance
            for holder in instance.holders_of(self.service)
            if has_id(holder, self.last.known_broker)
        ]

    def target(self) -> str | None:
        """Return the only other instance that holds the service; None where none or several do."""
        holding_instances = {name for name, _ in self.holders_elsewhere()}
        return holding_instances.pop() if len(holding_instances) == 1 else None

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
        is_held = any(instance.holders_of(service) for instance in self.instances.values())
        return is_held or service in self.services_in_use

    def is_current(self, broker: str | None) -> bool:
        """Return True if a known database that holds the service has this id today."""
        holders = (each for instance in self.instances.values() for each in instance.holders_of(self.service))
        return broker is not None and any(holder.broker == broker for holder in holders)

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
