"""Remedies that change routes. Each function is one case, and returns None where it does not apply."""

from __future__ import annotations

from collections.abc import Iterable

from routing.advice import statements
from routing.advice.remedy import MessageRemedy, ready, to_fill_in
from routing.advice.status_meanings import WORDS, StatusTrouble
from routing.advice.stuck_groups import StuckGroup
from routing.cases.estate_addresses import TargetAddress
from routing.cases.near_misses import ROUTE, NearMiss
from routing.render.phrases import named
from routing.rules import text
from routing.rules.deciding import RouteSearch
from routing.rules.estate import AddressKind, EstateRoute
from routing.rules.locating import has_id
from routing.rules.matching import comes_before
from routing.rules.text import EXPIRED, OTHER_BROKER, SPELLINGS
from routing.terms import LOCAL_ADDRESS, MatchingStep, Reason

PLACEHOLDER = "tcp://<host>:<port>"
"""What stands for an address that must be found out first."""
_LOOKS = {
    AddressKind.LOCAL: ", which looks in this instance alone",
    AddressKind.TRANSPORT: ", which leads to the address in a service's name, and this one has none",
}
_NOT_THERE = (Reason.NO_ROUTE, Reason.SERVICE_NOT_FOUND, Reason.BROKER_INSTANCE_NOT_FOUND)
AUTO_CREATED = "AutoCreatedLocal"
"""The route to LOCAL that SQL Server puts into each new database."""


def correct_spelling(stuck: StuckGroup) -> MessageRemedy | None:
    """Correct a route that spells the service otherwise, where nothing known needs it as it is."""
    for near, _ in _missed(stuck):
        if set(near.differences) <= set(SPELLINGS) and not stuck.is_needed(near.service):
            words = (
                f"Route {named(near.name)} of {named(near.database)} names {named(near.service)}; the messages are"
                f" for {named(stuck.service)}. Names are compared exactly, and no known database holds a service"
                " of the route's spelling: if the messages are right, give the route theirs."
            )
            altered = statements.alter_route(near.name, statements.with_clause(service=stuck.service))
            return ready(words, near.database, altered)
    return None


def renew_route(stuck: StuckGroup) -> MessageRemedy | None:
    """Create an expired route for the service anew without a lifetime, which no ALTER can remove."""
    for near, route in _missed(stuck):
        if near.differences == (EXPIRED,):
            words = (
                f"Route {named(near.name)} of {named(near.database)} has expired, and still stands in sys.routes."
                " Make it anew without a lifetime."
            )
            options_clause = statements.with_clause(
                route.service, route.broker, route.address, route.mirror_address
            )
            return ready(words, near.database, *statements.replace_route(near.name, options_clause))
    return None


def correct_route_id(stuck: StuckGroup) -> MessageRemedy | None:
    """Replace a route's old id by the id that the messages are bound to and a holder has now."""
    for near, _ in _missed(stuck):
        is_old = near.differences == (OTHER_BROKER,) and not stuck.is_current(near.broker)
        if is_old and stuck.is_current(stuck.broker):
            words = (
                f"Route {named(near.name)} of {named(near.database)} has broker instance {named(near.broker)},"
                f" which no known database with the service has; one has {named(stuck.broker)}, which the messages"
                " are bound to."
            )
            altered = statements.alter_route(near.name, statements.with_clause(broker=stuck.broker))
            return ready(words, near.database, altered)
    return None


def renew_route_id(stuck: StuckGroup) -> MessageRemedy | None:
    """Replace a LOCAL route's old id by that of the only database here which holds the service."""
    search, holders = stuck.last, stuck.holders_here
    old = [
        route
        for route in _naming_service(stuck, search)
        if route.kind is AddressKind.LOCAL and route.broker is not None
    ]
    old = [route for route in old if route.broker not in stuck.here.brokers]
    if not old or len(holders) != 1 or holders[0].broker is None or not holders[0].is_enabled:
        return None
    now = holders[0].broker
    words = (
        f"Route {named(old[0].name)} of {named(search.scope)} has broker instance {named(old[0].broker)}; the"
        f" service is in {named(holders[0].name)}, whose broker instance is {named(now)} now. This helps dialogs"
        " that begin after it"
    )
    words += "." if search.pick else "; open ones are bound to the old one: END CONVERSATION, and begin them anew."
    lines = [statements.alter_route(route.name, statements.with_clause(broker=now)) for route in old]
    return ready(words, search.scope, *lines)


def deliver_here(stuck: StuckGroup) -> MessageRemedy | None:
    """Return the remedy where the service is in this instance and no route of the scope says so."""
    search = stuck.last
    route = search.reported
    destination = search.location.destination
    if destination is None or (route is not None and route.mirror_address is not None):
        return None
    words = f"The service is in {named(destination)} of this instance: "
    words += f"a route of {named(search.scope)} must say LOCAL."
    if stuck.verdict.reason is Reason.ROUTING_LOOP and route is not None and route.kind is AddressKind.NETWORK:
        altered = statements.alter_route(route.name, statements.with_clause(address=LOCAL_ADDRESS))
        return ready(words, search.scope, altered)
    names_in_use = stuck.here.route_names.get(search.scope, frozenset())
    if search.step is MatchingStep.NO_MATCH and text.collated(AUTO_CREATED) not in names_in_use:
        words += " This is the one that SQL Server makes with a database, and that somebody dropped."
        return ready(
            words,
            search.scope,
            statements.create_route(AUTO_CREATED, statements.with_clause(address=LOCAL_ADDRESS)),
        )
    broker = None if route is None else route.broker
    options_clause = statements.with_clause(stuck.service, broker, LOCAL_ADDRESS)
    return ready(words, search.scope, stuck.create_route(search.scope, options_clause))


def lead_elsewhere(stuck: StuckGroup) -> MessageRemedy | None:
    """Advise a route to the other instance with the service; with a statement if its address is known."""
    holders = stuck.holders_elsewhere()
    if not holders or (stuck.database is None and stuck.verdict.reason is Reason.FORWARDING_DISABLED):
        # Of what arrives the route is right, and forwarding is off.
        return None
    target = stuck.target()
    address = None if target is None else stuck.address_of(target)
    places = [f"{named(holder.name)} of instance {named(instance)}" for instance, holder in holders[:3]]
    more = f" and {len(holders) - 3} more" if len(holders) > 3 else ""
    words = f"The service is in {', '.join(places)}{more}{_caught(stuck)}."
    if address is not None:
        words += f"{_sleeping(stuck)}{_not_forwarding(stuck)}"
        return lead_to(stuck, address, words)
    words += " Which of them it is" if target is None else " Its address"
    return lead_to(stuck, None, f"{words} must be found out first.")


def lead_back(stuck: StuckGroup) -> MessageRemedy | None:
    """Return no route leads an acknowledgement back to the instance that sent."""
    if stuck.back_to is None:
        return None
    instance, database = stuck.back_to
    address = stuck.address_of(instance)
    words = (
        f"No acknowledgement comes back to service {named(stuck.service)} in {named(database)} of instance"
        f" {named(instance)}{_caught(stuck)}: the sender keeps its messages and sends them again and again."
    )
    if address is None:
        return lead_to(stuck, None, f"{words} Its address must be found out first.")
    return lead_to(stuck, address, f"{words}{_not_forwarding(stuck)}")


def lead_past(stuck: StuckGroup, stuck_there: StuckGroup) -> MessageRemedy | None:
    """Advise a route to the instance that holds the service, past the one where messages got stuck.

    ``stuck`` is where they were sent or forwarded from, ``stuck_there`` where that led.
    """
    target = stuck_there.target() if stuck_there.back_to is None else stuck_there.back_to[0]
    address = None if target is None or target == stuck.instance else stuck.address_of(target)
    if address is None or stuck_there.verdict.reason not in _NOT_THERE:
        return None
    words = (
        f"Or let route {named(stuck.verdict.route_name)} of {named(stuck.last.scope)} lead to instance"
        f" {named(target)} itself, which holds service {named(stuck.service)}; {named(stuck_there.instance)} does"
        " not."
    )
    return lead_to(stuck, address, words)


def pin_anew(stuck: StuckGroup, stuck_there: StuckGroup) -> MessageRemedy | None:
    """Correct a route's old broker instance where the instance that it leads to holds the service by another.

    Arguments as for `lead_past`. None where the dialog itself has the id.
    """
    decision, holders = stuck.verdict.decision, stuck_there.holders_here
    pick = None if decision is None else decision.pick
    is_old = stuck_there.verdict.reason is Reason.BROKER_INSTANCE_NOT_FOUND and not stuck_there.is_current(pick)
    if pick is None or not is_old or len(holders) != 1 or holders[0].broker is None:
        return None
    words = (
        f"Route {named(stuck.verdict.route_name)} of {named(stuck.last.scope)} has broker instance {named(pick)};"
        f" the service is in {named(holders[0].name)} of instance {named(stuck_there.instance)}, whose broker"
        f" instance is {named(holders[0].broker)} now."
    )
    altered = statements.alter_route(stuck.verdict.route_name, statements.with_clause(broker=holders[0].broker))
    return ready(words, stuck.last.scope, altered)


def answer_request(stuck: StuckGroup) -> MessageRemedy:
    """Return a route is being asked for: one that names the service comes before the question."""
    words = (
        f"{WORDS[StatusTrouble.ROUTE_REQUESTED]} A route that names the service is taken without a question,"
        " once the request has ended."
    )
    here = [holder for holder in stuck.holders_here if has_id(holder, stuck.broker) and holder.is_enabled]
    target = None if here else stuck.target()
    address = None if target is None else stuck.address_of(target)
    if here:
        address = TargetAddress(LOCAL_ADDRESS, is_certain=True)
    line = stuck.create_route(stuck.scope, _options(stuck.service, address=address))
    return _as_known(stuck, address, words, stuck.scope, line)


def compare_ids(stuck: StuckGroup) -> MessageRemedy | None:
    """Advise to compare a route's and the messages' ids with the target's, which no known database tells."""
    for near, _ in _missed(stuck):
        if near.differences == (OTHER_BROKER,):
            words = (
                f"Route {named(near.name)} of {named(near.database)} has broker instance {named(near.broker)}; the"
                f" messages are bound to {named(stuck.broker)}, and no known database says which of the two the"
                " service's database has today. Compare them with service_broker_guid of sys.databases there: if"
                " it is that of the messages, correct the route; if it is that of the route, the database has got"
                " a new id since, and the dialogs have to be ended and begun anew."
            )
            altered = statements.alter_route(near.name, statements.with_clause(broker=stuck.broker))
            return to_fill_in(words, near.database, altered)
    return None


def find_address(stuck: StuckGroup) -> MessageRemedy:
    """Advise a route to a service that no known database holds; its address must be found out first."""
    words = f"No known database holds service {named(stuck.service)}"
    words += "" if stuck.last.known_broker is None else f" with broker instance {named(stuck.last.known_broker)}"
    words += (
        f"{_caught(stuck)}. Where it is in another instance, a route must lead there; names are compared exactly."
    )
    return lead_to(stuck, None, words)


def lead_to(stuck: StuckGroup, address: TargetAddress | None, words: str) -> MessageRemedy:
    """Advise a route to an address: alter the route that matched by the service's name, else add one."""
    search = stuck.first
    route = search.reported
    # Held here under another id, the service goes on being found by routes that name it alone.
    is_shared = search.known_broker is not None and bool(stuck.holders_here)
    is_own = route is not None and route.service == stuck.service and route.mirror_address is None
    if (
        route is not None
        and is_own
        and route.kind is not AddressKind.TRANSPORT
        and not (is_shared and search.step is MatchingStep.SERVICE)
    ):
        line = statements.alter_route(route.name, _options(address=address))
    else:
        broker = search.known_broker if is_shared else None
        line = stuck.create_route(search.scope, _options(stuck.service, broker, address))
    return _as_known(stuck, address, words, search.scope, line)


def _as_known(
    stuck: StuckGroup, address: TargetAddress | None, words: str, database: str, line: str | None
) -> MessageRemedy:
    """Build a remedy to be run as it is where its address is certain; else one in which it is to be checked."""
    if address is None:
        return to_fill_in(words, database, line)
    if address.is_certain:
        return ready(words, database, line)
    lead = (
        f"{named(text.host(address.written))} is a short machine name: see that {named(stuck.instance)} finds it,"
        " or write the full name:"
    )
    return to_fill_in(words, database, line, lead=lead)


def _options(
    service: str | None = None, broker: str | None = None, address: TargetAddress | None = None
) -> str | None:
    """Write the options of a route; without an address, a place where it is to be filled in."""
    options_clause = statements.with_clause(service, broker, None if address is None else address.written)
    if options_clause is None or address is not None:
        return options_clause
    filled = f"ADDRESS = N'{PLACEHOLDER}'"
    return f"{options_clause}, {filled}" if service or broker else f"{options_clause}{filled}"


def _missed(stuck: StuckGroup) -> Iterable[tuple[NearMiss, EstateRoute]]:
    """Yield the sender's routes that the messages missed, and that would lead them on."""
    if stuck.came_back:
        return
    for near in stuck.near:
        route = stuck.missed_route(near) if near.what == ROUTE and near.database == stuck.last.scope else None
        if route is not None and stuck.would_lead_on(route) and _would_match(stuck, route):
            yield near, route


def _would_match(stuck: StuckGroup, route: EstateRoute) -> bool:
    """Return True if a route that names the service is searched no later than what matched."""
    ended = stuck.last.step
    if route.broker is None:
        step = MatchingStep.SERVICE
    else:
        step = MatchingStep.BALANCED if stuck.last.broker is None else MatchingStep.BROKER_INSTANCE
    # Among several ids the dialog's hash may pick another.
    is_one_of_many = ended is step is MatchingStep.BALANCED
    return ended is not None and not comes_before(ended, step) and not is_one_of_many


def _naming_service(stuck: StuckGroup, search: RouteSearch) -> list[EstateRoute]:
    matches = () if search.match is None else search.match.routes
    return [route for route in matches if route.service == stuck.service]


def _caught(stuck: StuckGroup) -> str:
    """Write which route took the messages instead."""
    route = stuck.last.reported
    if route is None:
        return ""
    looks = _LOOKS.get(route.kind, "") if route.kind is not None else ""
    return f"; route {named(route.name)} of {named(stuck.last.scope)} took the messages{looks}"


def _not_forwarding(stuck: StuckGroup) -> str:
    """Return a word on forwarding that is off where arrivals are to be led on."""
    if not stuck.cannot_forward:
        return ""
    return f" Message forwarding is off on {named(stuck.instance)}: enable it, too."


def _sleeping(stuck: StuckGroup) -> str:
    """Return a word on a broker that is off where the messages are sent."""
    off = [holder.name for _, holder in stuck.holders_elsewhere() if not holder.is_enabled]
    return f" The broker of {named(off[0])} is off there: enable it too." if off else ""
