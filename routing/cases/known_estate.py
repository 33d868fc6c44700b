"""Name and find the gaps: missing exports by instance, and messages without a verdict because of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from routing.cases.evidence import FileEvidence
from routing.groups import group_pairs
from routing.render.phrases import where
from routing.rules import text
from routing.rules.deciding import RouteSearch
from routing.rules.estate import AddressKind, Database, SharedTuple, SqlInstance
from routing.rules.judging import JudgedPath
from routing.rules.locating import list_influential_holders
from routing.rules.resolving import Verdict
from routing.terms import LEAVES, LOOPBACK_HOSTS, MSDB, SYSTEM_DATABASES, MatchingStep, Reason


class MissingKnowledge(Enum):
    """The kinds of gaps, each with the view that would close it and the meaning of its lack."""

    NAME_ONLY = ("databases", "only the name of the instance is known")
    DATABASES = ("databases", "its databases are not known")
    UNREADABLE_DATABASE = ("databases", "not all of its databases are known: a row of them cannot be read")
    ENDPOINT = (
        "service_broker_endpoints",
        "its forwarding (assumed to be off) and its own addresses are not known",
    )
    FORWARDING = ("service_broker_endpoints", "its forwarding is not known (assumed to be off)")
    ADDRESSES = ("service_broker_endpoints", "its own addresses are not known")
    NAMES = ("service_broker_endpoints", "its own addresses are not known, since the view does not have them")
    ROUTES = ("routes", "its routes are not known")
    ALL_ROUTES = ("routes", "only the routes that scripts mention are known")
    SOME_ROUTES = (
        "routes",
        "its routes are not known: a script that mentions routes could not be read completely",
    )
    UNREADABLE_ROUTE = ("routes", "not all of its routes are known: a row of them cannot be read")
    SERVICES = ("services", "its services are not known")
    ALL_SERVICES = ("services", "only the services that scripts mention are known")
    UNREADABLE_SERVICE = ("services", "not all of its services are known: a row of them cannot be read")
    ENDPOINTS_OF_DIALOGS = ("conversation_endpoints", "the dialogs of the messages in its queue are not known")
    NOT_LISTED = ("databases", "sys.databases does not list it")
    ENDPOINT_OF_DIALOG = (
        "conversation_endpoints",
        "the export has no conversation endpoint with the message's handle",
    )

    OUTDATED = ("databases", "it was exported before the messages were sent, so their result there is not known")

    @property
    def view(self) -> str:
        """The view to export."""
        return f"sys.{self.value[0]}"

    @property
    def words(self) -> str:
        """The name of the missing knowledge."""
        return self.value[1]


OF_ROUTES = frozenset(
    [
        MissingKnowledge.ROUTES,
        MissingKnowledge.ALL_ROUTES,
        MissingKnowledge.SOME_ROUTES,
        MissingKnowledge.UNREADABLE_ROUTE,
    ]
)
"""The gaps in the knowledge of routes."""
OF_ADDRESSES = frozenset([MissingKnowledge.ENDPOINT, MissingKnowledge.ADDRESSES, MissingKnowledge.NAMES])
"""The gaps in the knowledge of an instance's own addresses."""


@dataclass(frozen=True)
class KnowledgeGap:
    """One missing fact. ``database`` is None for a fact of the instance."""

    instance: str
    database: str | None
    missing: MissingKnowledge

    @property
    def place(self) -> tuple[str, str, str]:
        """Its place in a list."""
        return (self.instance, self.database or "", self.missing.name)


def gaps_on(path: JudgedPath) -> list[KnowledgeGap]:
    """Return the gaps in the exports of instances on a path."""
    gaps = {gap for possible_path in path.all_paths for gap in possible_path.gaps if isinstance(gap, KnowledgeGap)}
    return sorted(gaps, key=lambda gap: gap.place)


def gap_sentence(gap: KnowledgeGap) -> str:
    """Write a gap as a sentence, with the view to export."""
    remedy = f"export {gap.missing.view}"
    if gap.missing is MissingKnowledge.NAMES:
        remedy = "give --address, or export by sbroute import queries"
    if gap.missing is MissingKnowledge.OUTDATED:
        remedy = "export it again, at one time with their sender"
    return f"{where(gap.instance, gap.database)}: {gap.missing.words}; {remedy}"


# Steps without a route that names the service: a database that was not exported may hold it.
_NAMES_NO_SERVICE = (
    *(MatchingStep.ROUTE_REQUEST, MatchingStep.ANY_SERVICE),
    *(MatchingStep.SERVICE_OF_THIS_INSTANCE, MatchingStep.NO_MATCH),
)


@dataclass(frozen=True)
class EstateKnowledge:
    """The views that were read of each instance and database, and the gaps between them."""

    evidence: FileEvidence
    instances: Mapping[str, SqlInstance]
    _ordered: dict[Hashable, tuple[KnowledgeGap, ...]] = field(default_factory=dict, init=False)
    _influential: dict[Hashable, tuple[KnowledgeGap, ...]] = field(default_factory=dict, init=False)
    _unread: dict[str, Sequence[tuple[Database, KnowledgeGap]]] = field(default_factory=dict, init=False)

    def list_gaps(self) -> list[KnowledgeGap]:
        """List all gaps, in the order of instances and databases."""
        return sorted(
            {gap for name in self.evidence.instances for gap in self._of_instance(name)}, key=lambda gap: gap.place
        )

    def _of_instance(self, name: str) -> Iterator[KnowledgeGap]:
        if self._is_name_alone(name):
            yield KnowledgeGap(name, None, MissingKnowledge.NAME_ONLY)
            return
        yield from filter(None, (self.databases(name), self.endpoint(name)))
        database_names = {*self.instances[name].databases, MSDB}
        waiting = self.evidence.views.units.get("transmission_queue", ())
        queues = {database for instance, database in waiting if instance == name and database is not None}
        for database in sorted(database_names | queues):
            yield from self._of_database(name, database)

    def _of_database(self, instance: str, database: str) -> Iterator[KnowledgeGap]:
        if database not in SYSTEM_DATABASES - {MSDB}:
            yield from filter(None, [self.routes(instance, database)])
        if database not in SYSTEM_DATABASES:
            yield from filter(None, [self.services(instance, database)])
        if (instance, database) in self._queues and not self.evidence.views.was_exported(
            "conversation_endpoints", instance, database
        ):
            yield KnowledgeGap(instance, database, MissingKnowledge.ENDPOINTS_OF_DIALOGS)

    def routes(self, instance: str, database: str) -> KnowledgeGap | None:
        """Return the gap in the knowledge of a database's routes."""
        is_in_part = instance in self.evidence.views.in_part
        some = MissingKnowledge.SOME_ROUTES if is_in_part else MissingKnowledge.ALL_ROUTES
        whats = (MissingKnowledge.ROUTES, some, MissingKnowledge.UNREADABLE_ROUTE)
        return self._of_view("routes", instance, database, whats)

    def services(self, instance: str, database: str) -> KnowledgeGap | None:
        """Return the gap in the knowledge of a database's services."""
        whats = (MissingKnowledge.SERVICES, MissingKnowledge.ALL_SERVICES, MissingKnowledge.UNREADABLE_SERVICE)
        return self._of_view("services", instance, database, whats)

    def databases(self, instance: str) -> KnowledgeGap | None:
        """Return the gap in the knowledge of an instance's databases."""
        whats = (MissingKnowledge.DATABASES, MissingKnowledge.DATABASES, MissingKnowledge.UNREADABLE_DATABASE)
        return self._of_view("databases", instance, None, whats)

    def _of_view(
        self,
        view: str,
        instance: str,
        database: str | None,
        whats: tuple[MissingKnowledge, MissingKnowledge, MissingKnowledge],
    ) -> KnowledgeGap | None:
        """Return the gap of a view: no export, unreadable rows, or rows only from scripts."""
        missing_entirely, missing_some, in_part = whats
        if self.evidence.views.was_exported(view, instance, database):
            is_doubtful = self.evidence.views.is_doubtful(view, instance, database)
            return KnowledgeGap(instance, database, in_part) if is_doubtful else None
        is_scripted = (instance, database) in self.evidence.views.scripted.get(view, ())
        return KnowledgeGap(instance, database, missing_some if is_scripted else missing_entirely)

    def _is_name_alone(self, name: str) -> bool:
        instance = self.instances[name]
        return instance.is_only_named and not (instance.routes or instance.holders)

    def endpoint(self, instance: str) -> KnowledgeGap | None:
        """Return the gap in the knowledge of an instance's forwarding and addresses."""
        missing_view = self._endpoint(instance)
        return None if missing_view is None else KnowledgeGap(instance, None, missing_view)

    def _endpoint(self, name: str) -> MissingKnowledge | None:
        row = self._rows[name]
        forwarding, addresses = row["is_message_forwarding_enabled"] is not None, bool(row["addresses"])
        # An instance without an endpoint has no address, and the view of an endpoint has none.
        has_none = (
            self.evidence.views.was_exported("service_broker_endpoints", name, None)
            and name not in self.evidence.views.endpoints
        )
        addresses = addresses or has_none
        if forwarding:
            return None if addresses else self._addresses(name)
        return MissingKnowledge.FORWARDING if addresses else MissingKnowledge.ENDPOINT

    def _addresses(self, name: str) -> MissingKnowledge:
        """Return the gap of an instance without known addresses: only the queries export its network names."""
        was_read = self.evidence.views.was_exported("service_broker_endpoints", name, None)
        return MissingKnowledge.NAMES if was_read else MissingKnowledge.ADDRESSES

    def may_be_at(self, address: str) -> list[str]:
        """Return the instances with the name of an address's host that have no known address."""
        host = text.host(address)
        if host is None:
            return []
        machines = dict.fromkeys((host.partition(".")[0], host))
        return sorted(name for machine in machines for name in self._without_addresses.get(machine, ()))

    def at_other_ports(self, address: str) -> list[tuple[str, str]]:
        """Return the instances of an address's host that listen at other ports only, each with a port."""
        host = text.host(address)
        if host is None or host in LOOPBACK_HOSTS:
            return []
        machines = {host, host.partition(".")[0]}
        ports = (
            (name, text.port(own_address))
            for name, instance in self.instances.items()
            if machines & instance.machine_names
            for own_address in instance.own_addresses
        )
        return sorted({name: port for name, port in ports if port is not None}.items())

    @cached_property
    def _without_addresses(self) -> dict[str, list[str]]:
        names = (name for name in self.instances if self._endpoint(name) in OF_ADDRESSES)
        return group_pairs((text.machine_of(name), name) for name in names)

    @cached_property
    def _rows(self) -> dict[str, dict[str, object]]:
        return {row["instance_name"]: row for row in self.evidence.rows["instances"]}

    @cached_property
    def _queues(self) -> set[tuple[str, str]]:
        rows = [*self.evidence.rows["messages"], *self.evidence.without_endpoint]
        return {(row["instance_name"], row["database_name"]) for row in rows}

    def of_verdict(self, instance: str, verdict: Verdict) -> tuple[KnowledgeGap, ...]:
        """Return the gaps behind a verdict, or no gap if it is certain. Equal gaps are one object."""
        decision = verdict.decision
        if decision is None:
            # An expired dialog comes before anything else.
            return ()
        searches = [decision.first]
        is_requested = verdict.requested_in is not None
        if decision.second is not None and verdict.last is decision.second:
            searches.append(decision.second)
        gaps = {gap for search in searches for gap in self._of_search(instance, search, is_requested=is_requested)}
        if verdict.outcome in LEAVES and self._may_be_own(instance, verdict):
            gaps.add(KnowledgeGap(instance, None, self._addresses(instance)))
        holders = [] if is_requested else [self._unread_holders(instance, search) for search in searches]
        return self._in_order(frozenset(gaps), tuple(gap for gap in holders if gap))

    def _in_order(
        self, gaps: frozenset[KnowledgeGap], holders: tuple[tuple[KnowledgeGap, ...], ...]
    ) -> tuple[KnowledgeGap, ...]:
        """Return gaps in their order. Equal gaps of other verdicts are the same object."""
        place = gaps, tuple(map(id, holders))
        if place not in self._ordered:
            self._ordered[place] = SharedTuple(sorted(gaps.union(*holders), key=lambda gap: gap.place))
        return self._ordered[place]

    def _of_search(self, name: str, search: RouteSearch, *, is_requested: bool) -> Iterator[KnowledgeGap]:
        if search.match is None:
            # The scope's broker is off: nothing is searched.
            return
        if not search.is_reply:
            routes = self.routes(name, search.scope)
            if routes is not None and (
                routes.missing is not MissingKnowledge.ALL_ROUTES
                or (is_requested or search.step in _NAMES_NO_SERVICE)
            ):
                yield routes
        if is_requested:
            # A message that requests a route waits for the answer in any case.
            return
        databases = self.databases(name)
        if databases is not None and _hangs_on_services(search) and search.location.destination is None:
            yield databases
        lacks_forwarding = self._endpoint(name) in (MissingKnowledge.ENDPOINT, MissingKnowledge.FORWARDING)
        if lacks_forwarding and search.end.reason is Reason.FORWARDING_DISABLED:
            yield KnowledgeGap(name, None, MissingKnowledge.FORWARDING)

    def _may_be_own(self, name: str, verdict: Verdict) -> bool:
        """Return True if the address reads like one of the instance's own, which are not known."""
        if verdict.mirror_address is not None or self._endpoint(name) not in OF_ADDRESSES:
            return False
        host = text.host(verdict.address)
        machine = text.machine_of(name)
        return host is not None and (host in LOOPBACK_HOSTS or host.partition(".")[0] == machine)

    def _unread_holders(self, name: str, search: RouteSearch) -> tuple[KnowledgeGap, ...]:
        """Return the gaps of databases that may hold the service, if that would make a difference."""
        if search.match is None or not self._unread_services(name) or not _hangs_on_services(search):
            return ()
        is_located, is_free = search.location.destination is not None, search.step is MatchingStep.NO_MATCH
        sender = search.sender if is_located and search.known_broker is None else None
        place = name, is_located, is_free, search.known_broker, search.holders, sender
        if place not in self._influential:
            unread = {
                database: gap
                for database, gap in self._unread_services(name)
                if not is_located or gap.missing is not MissingKnowledge.ALL_SERVICES
            }
            # Without a match a LOCAL route is implied, for any id of the holder (step 6).
            search_facts = search.holders, search.sender, search.known_broker
            influential = (
                unread if is_free else list_influential_holders(self.instances[name], unread, *search_facts)
            )
            self._influential[place] = tuple(unread[database] for database in influential)
        return self._influential[place]

    def _unread_services(self, name: str) -> Sequence[tuple[Database, KnowledgeGap]]:
        """Return the user databases of an instance that may have a service, with their gaps."""
        if name not in self._unread:
            gaps = ((one, self.services(name, one.name)) for one in self.instances[name].databases.values())
            self._unread[name] = [
                (one, gap) for one, gap in gaps if gap is not None and one.name not in SYSTEM_DATABASES
            ]
        return self._unread[name]


def _hangs_on_services(search: RouteSearch) -> bool:
    """Return True if the outcome depends on the holders of the service (sections 3, 4 and step 6)."""
    if search.step is MatchingStep.NO_MATCH:
        return search.broker is not None
    tries_local = search.choice.tier is None or search.choice.tier.letter != "A"
    return search.is_reply or (tries_local and any(route.kind is AddressKind.LOCAL for route in search.routes))
