"""Decide a routing key by sections 1 to 4, for every time and every pick."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from routing.rules import choosing, locating, matching
from routing.rules.choosing import ChoiceEnd, ChoiceSituation, TierChoice
from routing.rules.estate import (
    ARRIVALS,
    IMPLIED_LOCAL,
    REPLY,
    AddressKind,
    EstateRoute,
    NameAddress,
    RoutesByBroker,
    ServiceHolders,
    SqlInstance,
    address_of_name,
)
from routing.rules.locating import DestinationLocation
from routing.rules.matching import UNNAMED, MatchKey, RouteMatch
from routing.rules.timeline import TimeInterval, TimeSpan, spans
from routing.terms import MatchingStep, Outcome, Reason


def scope_of(database: str | None) -> str:
    """Return the database with the routes to search: the sender, or msdb for an arrival (section 0)."""
    return ARRIVALS if database is None else database


class RoutingKey(NamedTuple):
    """The facts of a message that determine its route, except hash, time, pending requests and hops.

    ``database`` is the sender, or None for an arrival. ``service`` is None if nothing in the instance has that
    name. Then ``name_address`` describes the address in the name. ``broker`` is None for an open message.
    """

    database: str | None
    service: str | None
    broker: str | None
    is_initiator: bool
    name_address: NameAddress

    @property
    def scope(self) -> str:
        """The database with the routes to search."""
        return scope_of(self.database)

    @classmethod
    def of_names(
        cls, instance: SqlInstance, database: str | None, service: str, broker: str | None, *, is_initiator: bool
    ) -> RoutingKey:
        """Return the key of a message to a named service."""
        named = address_of_name(service, instance.own_addresses)
        return cls(database, service, broker, is_initiator, named)


def signature(key: RoutingKey, instance: SqlInstance) -> Hashable:
    """Return the facts that determine a key's decision. Keys with equal signatures get the same decision.

    The keys may belong to different databases and instances. Their decisions then differ only in these names.
    A database counts as msdb, as a holder of the service, or as any other. A service counts by its holders and its
    matching routes. Unknown broker instances are all alike, and cannot make a message a reply. Routes count by
    identity, so they must live as long as the signature.
    """
    message, scope, holders = MatchKey(key.service, key.broker), key.scope, instance.holders_of(key.service)
    named = matching.routes_naming(message, instance, scope)
    arriving = matching.routes_naming(message, instance, ARRIVALS)
    broker = _broker_that_counts(instance, key.broker, (*named, *arriving))
    return (
        scope == ARRIVALS,
        scope if scope in holders.names else None,
        instance.tie(named),
        instance.scope_facts(scope),
        None if key.database is None else instance.tie(arriving),
        None if key.database is None else instance.scope_facts(ARRIVALS),
        instance.is_forwarding,
        holders,
        key.name_address,
        broker,
        key.is_initiator or broker == UNNAMED,
    )


def named_broker(instance: SqlInstance, scope: str, service: str | None, broker: str | None) -> str | None:
    """Return a broker instance, or `UNNAMED` if no database and no route to the service has it.

    The routes are those of the scope, and those of msdb in case the message comes back.
    """
    message = MatchKey(service, broker)
    routes = [
        route
        for searched_scope in (scope, ARRIVALS)
        for route in matching.routes_naming(message, instance, searched_scope)
    ]
    return _broker_that_counts(instance, broker, routes)


def _broker_that_counts(instance: SqlInstance, broker: str | None, routes: Iterable[EstateRoute]) -> str | None:
    """Return the broker instance if the instance or a route has it, otherwise `UNNAMED`."""
    if broker is None or broker in instance.brokers or any(route.broker == broker for route in routes):
        return broker
    return UNNAMED


class RouteSearch(NamedTuple):
    """One search of a routing table: the message's own scope, or msdb after it came back.

    ``broker`` is the broker instance before the search, ``pick`` the one of step 3. ``match`` is None if the
    broker of the scope is disabled. ``routes`` are the distinct matches of the pick, by name.
    """

    scope: str
    sender: str | None
    is_from_network: bool
    broker: str | None
    match: RouteMatch | None
    pick: str | None
    routes: tuple[EstateRoute, ...]
    holders: ServiceHolders
    situation: ChoiceSituation
    choice: TierChoice
    end: ChoiceEnd

    @property
    def is_reply(self) -> bool:
        """True if the message is a reply, for which no routes are searched (section 1)."""
        return self.step is MatchingStep.REPLY

    @property
    def step(self) -> MatchingStep | None:
        """The step that ended the search, or None if the scope's broker is disabled."""
        return None if self.match is None else self.match.step

    @property
    def asks(self) -> bool:
        """True if the search reached step 4, where a message may open a request."""
        return self.match is not None and self.match.asks

    @property
    def known_broker(self) -> str | None:
        """The broker instance after matching."""
        return self.broker if self.pick is None else self.pick

    @property
    def location(self) -> DestinationLocation:
        """The database to which a LOCAL route would deliver."""
        return self.situation.location

    @property
    def reported(self) -> EstateRoute | None:
        """The reported route, or None if no route matched or a rule implied it."""
        first = self.choice.routes[0] if self.choice.routes else None
        return None if first is None or first.is_implied else first

    @property
    def route_name(self) -> str | None:
        """The name of the reported route."""
        return None if self.reported is None else self.reported.name

    @property
    def reads_address(self) -> bool:
        """True if the address comes from the message's service name (tier D)."""
        return self.choice.is_usable and self.choice.routes[0].kind is AddressKind.TRANSPORT

    @property
    def address(self) -> str | None:
        """The address in the route's spelling, or None if it is unused or comes from the service name."""
        return self.choice.routes[0].address if self.choice.is_usable and not self.reads_address else None

    @property
    def mirror_address(self) -> str | None:
        """The mirror address that is used."""
        return self.choice.routes[0].mirror_address if self.choice.is_usable else None

    @property
    def alternatives(self) -> tuple[EstateRoute, ...]:
        """The other routes of the tier."""
        return self.choice.routes[1:]

    def possible_addresses(self, address_in_name: str | None) -> Iterator[tuple[str | None, str | None]]:
        """Yield the routes and addresses that the transport may use, the reported one first.

        ``address_in_name`` is the address at the beginning of the service name.
        """
        yield self.route_name, address_in_name if self.reads_address else self.address
        if self.mirror_address is not None:
            yield self.route_name, self.mirror_address
        for route in self.alternatives:
            yield route.name, route.address
            if route.mirror_address is not None:
                yield route.name, route.mirror_address


class Decision(NamedTuple):
    """The decision for a key, a time and a pick. ``second`` is the search of msdb if the message came back."""

    first: RouteSearch
    second: RouteSearch | None

    @property
    def last(self) -> RouteSearch:
        """The search that decides."""
        return self.first if self.second is None else self.second

    @property
    def pick(self) -> str | None:
        """The broker instance that step 3 picked in either search."""
        return self.last.pick if self.last.pick is not None else self.first.pick

    @property
    def destination(self) -> str | None:
        """The database that gets the message."""
        return self.last.location.destination if self.last.end.outcome is Outcome.DELIVERED else None

    @property
    def rerouted_from(self) -> str | None:
        """The route that led back to this instance."""
        return None if self.second is None else self.first.route_name

    @property
    def asks(self) -> bool:
        """True if the search of the message's own scope reached step 4."""
        return self.first.asks

    @property
    def asks_again(self) -> bool:
        """True if the search of msdb reached step 4 after the message came back."""
        return self.second is not None and self.second.asks


class ConcerningRoutes(NamedTuple):
    """The routes that can affect a key, by name: those of its scope, and of msdb if the message may come back."""

    key: RoutingKey
    instance: SqlInstance
    scope_routes: tuple[EstateRoute, ...]
    returned: tuple[EstateRoute, ...]

    @classmethod
    def of(cls, key: RoutingKey, instance: SqlInstance, *, keeps_unreached: bool = False) -> ConcerningRoutes:
        """Select the routes that can affect a key of an instance.

        ``keeps_unreached`` also selects routes that are never reached because another one always ends the search.
        """
        message = MatchKey(key.service, key.broker)
        scope_routes = matching.routes_to_search(message, instance, key.scope)
        if not keeps_unreached:
            scope_routes = matching.concerning(message, scope_routes)
        may_return = key.database is not None and _leads_back(key, instance, scope_routes)
        returned = matching.routes_to_search(message, instance, ARRIVALS) if may_return else ()
        return cls(key, instance, tuple(scope_routes), tuple(returned))

    def changes(self) -> list[int]:
        """Return the times at which the valid routes change, in order. Decisions change only there."""
        times = {
            time for route in (*self.scope_routes, *self.returned) for time in (route.live_from, route.live_to)
        }
        return sorted(time for time in times if time is not None)

    def decide(self, t: int) -> tuple[Decision, ...]:
        """Return the decisions at a time, one for each broker instance that step 3 may pick."""
        return _decisions(self.key, self.instance, _live(self.scope_routes, t), _live(self.returned, t))

    def decide_all(self) -> Iterator[TimeInterval[Decision]]:
        """Yield the decisions between all changes, in the order of time."""
        for span in self.spans():
            yield TimeInterval(span.valid_from, span.valid_to, self.decide_span(span))

    def spans(self) -> Iterator[TimeSpan]:
        """Yield the intervals between all changes, in order, with the valid routes of both tables."""
        return spans(self.scope_routes, self.returned)

    def decide_span(self, span: TimeSpan) -> tuple[Decision, ...]:
        """Return the decisions in one of these intervals."""
        return _decisions(self.key, self.instance, *span.tables)


def _live(routes: Iterable[EstateRoute], t: int) -> tuple[EstateRoute, ...]:
    return tuple(route for route in routes if route.is_live(t))


def _leads_back(key: RoutingKey, instance: SqlInstance, routes: Iterable[EstateRoute]) -> bool:
    """Return True if any of the routes may lead to this instance."""
    nowhere = ChoiceSituation(
        DestinationLocation(None, None), key.name_address, instance.own_addresses, False, False
    )
    tiers = ((choosing.tier_of(route), route) for route in routes)
    return any(tier is not None and tier.is_own(route, nowhere) for tier, route in tiers)


def _decisions(
    key: RoutingKey,
    instance: SqlInstance,
    scope_routes: tuple[EstateRoute, ...],
    returned: tuple[EstateRoute, ...],
) -> tuple[Decision, ...]:
    """Return the decisions at a time, in the order of their picks."""
    decisions: list[Decision] = []
    is_arrival, in_msdb = key.database is None, RoutesByBroker(returned, matching.required_broker)
    for search in route_searches(key, instance, scope_routes, key.broker, sender=key.database):
        if is_arrival or not search.end.is_own:
            decisions.append(Decision(search, None))
            continue
        # An address of this instance: the message is routed as if it had arrived from the network (section 3).
        second_searches = route_searches(
            key, instance, in_msdb.select(search.known_broker), search.known_broker, sender=None
        )
        decisions += [Decision(search, second) for second in second_searches]
    return tuple(decisions)


def route_searches(
    key: RoutingKey,
    instance: SqlInstance,
    routes: Sequence[EstateRoute],
    broker: str | None,
    *,
    sender: str | None,
) -> Iterator[RouteSearch]:
    """Yield the search of valid routes with its choice: one, or one for each pick of step 3.

    ``sender`` is None for an arrival. A reply searches no routes, and comes before the broker check (section 1).
    """
    scope, is_from_network = scope_of(sender), sender is None
    holders = instance.holders_of(key.service)
    match: RouteMatch | None
    if locating.is_reply(instance, broker, is_from_network=is_from_network, is_initiator=key.is_initiator):
        match = RouteMatch(MatchingStep.REPLY, (REPLY,), asks=False)
    elif instance.is_enabled(scope):
        implied = (IMPLIED_LOCAL,) if holders else ()
        match = matching.search(MatchKey(key.service, broker), (*routes, *implied))
    else:
        match = None
    for pick, matches in [(None, ())] if match is None else matching.picks(match):
        known_broker = broker if pick is None else pick
        situation = ChoiceSituation(
            locating.locate(instance, holders, sender, known_broker),
            key.name_address,
            instance.own_addresses,
            is_from_network,
            instance.is_forwarding,
        )
        distinct = tuple(choosing.distinct_routes(matches))
        choice = choosing.choose(distinct, situation)
        end = _SCOPE_IS_OFF if match is None else choosing.end_of(choice, situation)
        yield RouteSearch(
            scope, sender, is_from_network, broker, match, pick, distinct, holders, situation, choice, end
        )


# The scope's broker is checked before the search, for sent and arrived messages (section 2).
_SCOPE_IS_OFF = ChoiceEnd(Outcome.DELAYED, Reason.SCOPE_BROKER_DISABLED)
