"""Ask the rules the questions that a configuration must answer, as if they were messages.

`routing.rules` decides them, so findings on outcomes need no other rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from routing.lint.lint_estate import LintEstate, LiveRoute, ServiceHolder, is_users, sender_of
from routing.rules import matching, text
from routing.rules.choosing import is_local, is_network
from routing.rules.deciding import RouteSearch, RoutingKey, scope_of
from routing.rules.estate import ARRIVALS, EstateRoute, NameAddress, SqlInstance
from routing.rules.matching import UNNAMED
from routing.terms import BROKER_CONFIGURATION_SERVICE, MatchingStep, Outcome


class ProbeQuestion(NamedTuple):
    """A question: ``database`` None for an arrival, ``service`` None for a name that nothing names."""

    instance: str
    database: str | None
    service: str | None
    broker: str | None


class RouteReferrer(NamedTuple):
    """The reason for a question: for arrivals a route that leads here, for replies the initiator's service."""

    instance: str
    database: str
    name: str

    @property
    def sender(self) -> str:
        """The database, with its instance."""
        return f"{self.instance}.{self.database}"


class ProbeVerdict(NamedTuple):
    """The answer to a question: a search for each broker instance that may be picked."""

    question: ProbeQuestion
    searches: tuple[RouteSearch, ...]
    referrer: RouteReferrer | None = None

    @property
    def place(self) -> tuple[str, str]:
        """The instance, and the database with the searched routes."""
        return self.question.instance, scope_of(self.question.database)


class RouteSelector(NamedTuple):
    """The scope, service and broker instance that routes may share."""

    instance: str
    database: str
    service: str | None
    broker: str | None


class ProbeAnswers(NamedTuple):
    """The verdicts by the reason for asking.

    ``routes`` are for routes, ``arrivals`` for arriving messages, and ``local`` for services of LOCAL routes, at
    their own databases.

    ``contested`` are routes with the same selector as another one of their scope, by selector. A route without
    such a rival always answers messages with its id, so only contested routes can be shadowed.
    """

    contested: Mapping[RouteSelector, Sequence[EstateRoute]]
    routes: Sequence[ProbeVerdict]
    arrivals: Sequence[ProbeVerdict]
    local: Sequence[ProbeVerdict]

    @property
    def arriving(self) -> Iterator[ProbeVerdict]:
        """All that was asked for arrivals of routes and others."""
        yield from (verdict for verdict in self.routes if verdict.question.database is None)
        yield from self.arrivals


def answers_of(estate: LintEstate) -> ProbeAnswers:
    """Probe all questions. Instances that the tables do not list answer no question."""
    routes_by_selector = _routes_by_selector(estate)
    return ProbeAnswers(
        {selector: routes for selector, routes in routes_by_selector.items() if len(routes) > 1},
        tuple(_for_routes(estate, routes_by_selector)),
        tuple(_for_arrivals(estate)),
        tuple(_for_local_routes(estate)),
    )


def searches_of(
    estate: LintEstate,
    question: ProbeQuestion,
    *,
    is_initiator: bool = True,
    unnamed: NameAddress = NameAddress.NONE,
) -> tuple[RouteSearch, ...]:
    """Return the first search of each decision. Another finding covers the second search."""
    instance, (_, database, service, broker) = estate.instances[question.instance], question
    if service is None:
        key = RoutingKey(database, None, broker, is_initiator, unnamed)
    else:
        key = RoutingKey.of_names(instance, database, service, broker, is_initiator=is_initiator)
    return tuple(decision.first for decision in estate.decisions.at(key, instance, estate.now).choices)


def owners_of(estate: LintEstate, search: RouteSearch, question: ProbeQuestion) -> dict[str, SqlInstance]:
    """Return the instances, by name, at all addresses that the transport may take."""
    named = None if question.service is None else text.address_in_name(question.service)
    addresses = (address for _, address in search.possible_addresses(named))
    return {owner.name: owner for address in addresses for owner in estate.owners(question.instance, address)}


def _routes_by_selector(estate: LintEstate) -> dict[RouteSelector, list[EstateRoute]]:
    """Return the valid routes that match in any step, of instances that the tables list."""
    routes_by_selector: dict[RouteSelector, list[EstateRoute]] = {}
    for instance, database, route in estate.live_routes:
        match_key = matching.MatchKey(route.service, route.broker)
        if instance in estate.listed and matching.step_of(match_key, route) is not None:
            selector = RouteSelector(instance, database, route.service, route.broker)
            routes_by_selector.setdefault(selector, []).append(route)
    return routes_by_selector


def _for_routes(
    estate: LintEstate, routes_by_selector: Mapping[RouteSelector, Sequence[EstateRoute]]
) -> Iterator[ProbeVerdict]:
    """Yield verdicts on messages for contested routes and those of msdb: open, bound to their id, to another.

    A route for any service is asked with names that nothing names, with and without an address in them.
    """
    questions: dict[ProbeQuestion, None] = {}
    for (instance, database, service, broker), routes in routes_by_selector.items():
        if len(routes) > 1 or database == ARRIVALS:
            for asked_broker in (None, UNNAMED, broker):
                questions[ProbeQuestion(instance, sender_of(database), service, asked_broker)] = None
    for question in questions:
        yield ProbeVerdict(question, searches_of(estate, question))
        if question.service is None:
            yield ProbeVerdict(question, searches_of(estate, question, unnamed=NameAddress.ELSEWHERE))


def _named_routes(estate: LintEstate) -> Iterator[LiveRoute]:
    return (live for live in estate.live_routes if is_network(live.route) and live.route.service is not None)


def _leading(estate: LintEstate) -> Iterator[tuple[LiveRoute, str]]:
    for live in _named_routes(estate):
        for place in estate.owners(live.instance, live.route.compared):
            if place.name != live.instance:
                yield live, place.name


def _for_arrivals(estate: LintEstate) -> Iterator[ProbeVerdict]:
    """Probe services that others route here, and every service here. The first route by name represents all."""
    first: dict[ProbeQuestion, RouteReferrer | None] = {}
    for live, instance in _leading(estate):
        question = ProbeQuestion(instance, None, live.route.service, live.route.broker)
        by = RouteReferrer(live.instance, live.database, live.route.name or "")
        earliest = first.get(question)
        first[question] = by if earliest is None else min(by, earliest)
    for name in estate.listed:
        for service in estate.services_of_users(estate.instances[name]):
            first.setdefault(ProbeQuestion(name, None, service, None), None)
    for question, leading in first.items():
        yield ProbeVerdict(question, searches_of(estate, question), leading)


def scopes_that_ask(estate: LintEstate) -> Iterable[tuple[str, str]]:
    """Return the scopes that have a BrokerConfiguration route, of instances that the tables list."""
    return {
        (live.instance, live.database): None
        for live in estate.live_routes
        if live.route.service == BROKER_CONFIGURATION_SERVICE and live.instance in estate.listed
    }


def _for_local_routes(estate: LintEstate) -> Iterator[ProbeVerdict]:
    questions = {
        ProbeQuestion(live.instance, sender_of(live.database), live.route.service, broker): None
        for live in estate.live_routes
        if live.instance in estate.listed and live.route.service is not None and is_local(live.route)
        for broker in (None, live.route.broker)
    }
    for question in questions:
        yield ProbeVerdict(question, searches_of(estate, question))


def probe_catching_routes(estate: LintEstate) -> Iterator[ProbeVerdict]:
    """Probe each service of an instance from a database with routes for any service that deliver it.

    Its own database comes first, then the others by name. A database treats all services that it does not name
    equally, so few questions are needed.
    """
    for name in estate.listed:
        instance = estate.instances[name]
        services = [
            service
            for service in estate.services_of_users(instance)
            # A route for this one makes its database ask for routes.
            if service != BROKER_CONFIGURATION_SERVICE
            and any(holder.is_enabled for holder in instance.holders_of(service))
        ]
        scopes = [database for database in sorted(instance.databases) if database != ARRIVALS]
        # Its own service comes first: it is asked for again below.
        own = {holder.name: service for service in services for holder in instance.holders_of(service)}
        catching = dict.fromkeys(
            scope
            for scope in scopes
            if _catches(estate, instance, scope, chain([own[scope]] if scope in own else [], services))
        )
        for service in services:
            holding_databases = (holder.name for holder in instance.holders_of(service) if holder.name in catching)
            candidates = chain(holding_databases, catching)
            scope = next((database for database in candidates if not instance.naming(database, service)), None)
            if scope is not None:
                question = ProbeQuestion(name, scope, service, None)
                yield ProbeVerdict(question, searches_of(estate, question))


def _catches(estate: LintEstate, instance: SqlInstance, scope: str, services: Iterable[str]) -> bool:
    """Return True if a database's routes for any service deliver the first service here that it does not name."""
    for service in services:
        if not instance.naming(scope, service):
            searches = searches_of(estate, ProbeQuestion(instance.name, scope, service, None))
            return any(is_caught(search) for search in searches)
    return False


def is_caught(search: RouteSearch) -> bool:
    """Return True if a message matches only routes for any service, and a LOCAL one of them delivers it."""
    return search.step is MatchingStep.ANY_SERVICE and search.end.outcome is Outcome.DELIVERED and not search.asks


def probe_returns(estate: LintEstate) -> Iterator[ProbeVerdict]:
    """Probe the services of databases that send here by a named route, by replies bound to its id."""
    initiators: dict[tuple[str, str], list[ServiceHolder]] = {}
    for holder in estate.holders:
        if is_users(holder.service) and holder.database.broker is not None:
            initiators.setdefault((holder.instance, holder.database.name), []).append(holder)
    for (by_instance, by_database), instance, database in _find_pinned_pairs(estate):
        for initiator in initiators.get((by_instance, by_database), ()):
            # The reply is sent from the database, even if that is msdb: a target's reply does not arrive there.
            question = ProbeQuestion(instance, database, initiator.service, initiator.database.broker)
            by = RouteReferrer(by_instance, by_database, initiator.service)
            yield ProbeVerdict(question, searches_of(estate, question, is_initiator=False), by)


def _find_pinned_pairs(estate: LintEstate) -> dict[tuple[tuple[str, str], str, str], None]:
    """Return the sending databases, each with an instance and a database that it sends to by a named route.

    The target of a route is known if the route has a broker instance, or if its address is the holder's own.
    """
    pinned: dict[tuple[str, str], list[ServiceHolder]] = {}
    for holder in estate.holders:
        if holder.database.broker is not None:
            pinned.setdefault((holder.service, holder.database.broker), []).append(holder)
    pairs: dict[tuple[tuple[str, str], str, str], None] = {}
    for live in _named_routes(estate):
        for holder in pinned.get((live.route.service or "", live.route.broker or ""), ()):
            pairs[(live.instance, live.database), holder.instance, holder.database.name] = None
    for live, instance in _leading(estate):
        if live.route.broker is None:
            for database in estate.instances[instance].holders_of(live.route.service):
                pairs[(live.instance, live.database), instance, database.name] = None
    return {
        (sender, instance, database): None
        for sender, instance, database in pairs
        if sender[0] != instance and sender[1] != ARRIVALS and instance in estate.listed
    }
