"""Remedies that let a route lead to the right address, or add one. Each is one case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from routing.advice import statements
from routing.advice.remedy import AlteredRoute, Confidence, Remedy, RemedyPlace, correct_route, ready, to_fill_in
from routing.advice.status_facts import ReportedStatus
from routing.advice.stuck_messages import StuckMessage, UsedRoute
from routing.advice.trouble_catalogue import REASONS
from routing.cases.estate_addresses import TargetAddress
from routing.render.phrases import join_words, named
from routing.rules import text
from routing.rules.estate import AddressKind, EstateRoute, SqlInstance
from routing.rules.locating import has_id
from routing.terms import LOCAL_ADDRESS, MSDB, MatchingStep, Reason

PLACEHOLDER = "tcp://<host>:<port>"
"""The placeholder for an unknown address."""
_LOOKS = {
    AddressKind.LOCAL: ", which looks only in this instance",
    AddressKind.TRANSPORT: ", which leads to the address in a service's name, and this name has none",
}
END_GONE = "If the service is gone, END CONVERSATION … WITH CLEANUP ends its dialogs and discards their messages."
_NOT_THERE = (Reason.NO_ROUTE, Reason.SERVICE_NOT_FOUND, Reason.BROKER_INSTANCE_NOT_FOUND)
_OPEN_PORT = "Open port 4022 of both subnets in their network security groups."
_MANAGED_PORT, _MANAGED_HOST = "4022", ".database.windows.net"
AUTO_CREATED = "AutoCreatedLocal"
"""The route to LOCAL that SQL Server puts into each new database."""
_OWN_ADDRESS = (
    "SELECT SERVERPROPERTY('MachineName'), port FROM sys.tcp_endpoints WHERE type_desc = 'SERVICE_BROKER';"
)
_TO_LOCAL = statements.with_clause(address=LOCAL_ADDRESS)
_DEFAULT_RISK = "Other services at that address lose their route: first give each its own route."


def deliver_here(stuck: StuckMessage) -> Remedy | None:
    """Return the remedy for a service in this instance without a route in the scope."""
    search = stuck.last
    route = search.reported
    destination = search.location.destination
    if destination is None or (route is not None and route.mirror_address is not None):
        return None
    place = stuck.place(search.scope)
    is_loop = stuck.verdict.reason is Reason.ROUTING_LOOP
    is_only_here = stuck.instances.instances_with(stuck.service, None) <= {stuck.instance}
    if (
        route is not None
        and route.kind is AddressKind.NETWORK
        and (is_loop or is_default(route.name) or (is_only_here and route.service == stuck.service))
    ):
        cause = (
            f"Route {named(route.name)} of {named(search.scope)} leads to {named(route.address)}, but the service"
            f" is in {named(destination)} of this instance."
        )
        clause, action = _TO_LOCAL, "Correct the route: its address must be LOCAL."
        return correct_route(place, route.name, clause, cause, action, confidence=Confidence.CERTAIN)
    cause = (
        f"The service is in {named(destination)} of this instance, but no LOCAL route of {named(search.scope)}"
        " leads to it."
    )
    names_in_use = stuck.sql_instance.route_names.get(search.scope, frozenset())
    if search.step is MatchingStep.NO_MATCH and text.collated(AUTO_CREATED) not in names_in_use:
        created = statements.create_route(AUTO_CREATED, _TO_LOCAL)
        action = "Create the LOCAL route that SQL Server makes with a database, and that somebody dropped."
        return ready(place, cause, (action,), created)
    broker = None if route is None else route.broker
    options_clause = statements.with_clause(stuck.service, broker, LOCAL_ADDRESS)
    created = stuck.create_route(search.scope, options_clause, broker)
    return ready(place, cause, ("Create a LOCAL route for the service.",), created)


def is_default(route: str | None) -> bool:
    """Return True for the name of the route to LOCAL that SQL Server puts into each new database."""
    return route is not None and text.collated(route) == text.collated(AUTO_CREATED)


def restore_default(use: UsedRoute) -> Remedy | None:
    """Advise ALTER ROUTE for an AutoCreatedLocal that was altered to lead away, and a route for the service.

    Return None if an instance at its address holds the service, or if the route has a mirror address: the address
    LOCAL cannot have one (error 9743).
    """
    estate, address, service, place, route = use
    sender = estate.find_instance(place.instance)
    if address is None or place.database is None or not is_default(route):
        return None
    if any(owner.holders_of(service) for owner in estate.network.owners(address, sender)):
        return None
    scope_routes = chain.from_iterable(sender.routes.get(place.database, {}).values())
    if any(is_default(other.name) and other.mirror_address is not None for other in scope_routes):
        return None
    cause = (
        f"Somebody altered route {named(route)} of {named(place.database)}: it leads to {named(address)}, and"
        f" takes all messages without another route, such as those for {named(service)}."
    )
    restored = statements.alter_route(route, _TO_LOCAL)
    risk, altered = _DEFAULT_RISK, AlteredRoute(route)
    restoring = f"Let {named(route)} lead to LOCAL again."
    if sender.holders_of(service):
        return ready(
            place, cause, (restoring,), restored, risk=risk, confidence=Confidence.LIKELY, altered=altered
        )
    holders = estate.instances.instances_with(service, None)
    chosen = estate.addresses.choose(next(iter(holders)), sender) if len(holders) == 1 else None
    clause = _options(service, address=chosen)
    in_use = sender.route_names.get(place.database, frozenset())
    created = statements.create_route(
        statements.new_name(service, clause, in_use, is_one_of_many=len(holders) > 1), clause
    )
    actions = [restoring, f"Create a route that names {named(service)}."]
    if chosen is None:
        actions.append("Find out the address of the instance that holds it.")
    elif not chosen.is_certain:
        actions.append(check_short_name(chosen.written, sender.name))
    build = ready if chosen is not None and chosen.is_certain else to_fill_in
    return build(
        place, cause, actions, restored, created, risk=risk, confidence=Confidence.LIKELY, altered=altered
    )


def lead_elsewhere(stuck: StuckMessage) -> Remedy | None:
    """Advise a route to the other instance with the service, or return None if no route helps.

    The remedy has a statement if the address is known.
    """
    holders = stuck.holders_elsewhere()
    if stuck.last.step is MatchingStep.REPLY:
        # A reply needs no route.
        return None
    if not holders or (stuck.database is None and stuck.verdict.reason is Reason.FORWARDING_DISABLED):
        # For arrivals the route is right, and forwarding is off.
        return None
    target = stuck.target()
    address = None if target is None else stuck.address_of(target)
    places = [f"{named(holder.name)} of instance {named(instance)}" for instance, holder in holders]
    cause = f"The service is in {join_words(places)}{_state_matched_route(stuck)}."
    if address is not None:
        return _lead_to_after(stuck, address, cause, (*_enable_there(stuck), *_enable_forwarding_too(stuck)))
    unknown = "which instance it is" if target is None else "its address"
    return lead_to(stuck, None, cause, (f"Find out {unknown} first.",))


def lead_back(stuck: StuckMessage) -> Remedy | None:
    """Advise a route that leads an acknowledgement back to the instance that sent."""
    if stuck.back_to is None or stuck.last.step is MatchingStep.REPLY:
        return None
    instance, database = stuck.back_to
    address = stuck.address_of(instance)
    cause = (
        f"No acknowledgement comes back to service {named(stuck.service)} in {named(database)} of instance"
        f" {named(instance)}{_state_matched_route(stuck)}: the sender keeps its messages and sends them again and"
        " again."
    )
    if address is None:
        return lead_to(stuck, None, cause, ("Find out its address first.",))
    return _lead_to_after(stuck, address, cause, _enable_forwarding_too(stuck))


def _lead_to_after(
    stuck: StuckMessage, address: TargetAddress, cause: str, further_actions: Sequence[str]
) -> Remedy:
    """Advise a route to an address. The remedy is at most likely if more must be done."""
    remedy = lead_to(stuck, address, cause, further_actions)
    return remedy.with_confidence_at_most(Confidence.LIKELY) if further_actions else remedy


def lead_past(stuck: StuckMessage, stuck_there: StuckMessage) -> Remedy | None:
    """Advise a route to the instance that holds the service, past the one where messages got stuck.

    ``stuck`` are the messages before that hop, ``stuck_there`` after it.
    """
    target = stuck_there.target() if stuck_there.back_to is None else stuck_there.back_to.instance
    address = None if target is None or target == stuck.instance else stuck.address_of(target)
    if address is None or stuck_there.verdict.reason not in _NOT_THERE:
        return None
    if text.comparable_address(address.written) == text.comparable_address(stuck.verdict.address or ""):
        # Several instances share the address, as behind a listener.
        return None
    cause = (
        f"Route {named(stuck.verdict.route_name)} of {named(stuck.last.scope)} leads to"
        f" {named(stuck.verdict.address)}: {named(stuck_there.instance)} listens there and does not hold service"
        f" {named(stuck.service)}, but instance {named(target)} does."
    )
    return _correct_route(stuck, address, cause) or lead_to(stuck, address, cause)


def is_wrong_address(stuck: StuckMessage, stuck_there: StuckMessage) -> bool:
    """Return True if a route that names the service leads to an instance that neither holds it nor routes on.

    Arguments as for `lead_past`.
    """
    is_named = any(route.service == stuck.service for route in _reported(stuck))
    is_dead_end = stuck_there.sql_instance.is_forwarding_known and not stuck_there.sql_instance.is_forwarding
    has_near = any(near.instance == stuck_there.instance for near in stuck_there.near_misses)
    return is_named and is_dead_end and not stuck_there.holders_here and not has_near


def correct_address(stuck: StuckMessage) -> Remedy | None:
    """Correct a route with an address that the estate shows to be wrong, or return None."""
    route = next(iter(_reported(stuck)), None)
    if route is None:
        return None
    fault = _find_address_fault(stuck, route)
    if fault is None:
        return None
    cause = f"Route {named(route.name)} of {named(stuck.last.scope)} leads to {named(route.address)}, but {fault}."
    target = stuck.target() if stuck.back_to is None else stuck.back_to.instance
    address = None if target is None else stuck.address_of(target)
    actions = ("Find out the right address first.",) if address is None else ()
    remedy = _correct_route(stuck, address, cause, actions) or lead_to(stuck, address, cause, actions)
    if stuck.cannot_forward:
        forwarding_action = (
            "Message forwarding is off here: enable it too, or let the sender's route lead to the right address."
        )
        remedy = replace(remedy, actions=(*remedy.actions, forwarding_action))
    return remedy.with_confidence_at_most(Confidence.LIKELY)


def _find_address_fault(stuck: StuckMessage, route: EstateRoute) -> str | None:
    if route.kind is not AddressKind.NETWORK or route.mirror_address is not None or route.address is None:
        return None
    owners = stuck.estate.network.owners(route.address, stuck.sql_instance)
    if not owners:
        return stuck.estate.find_other_port(route.address)
    if stuck.back_to is not None:
        # The acknowledgement may end there.
        return None
    if any(_may_lead_on(stuck, owner) for owner in owners):
        return None
    names = join_words(named(owner.name) for owner in owners)
    return f"{names} listens there and neither holds service {named(stuck.service)} nor has a route for it"


def _may_lead_on(stuck: StuckMessage, owner: SqlInstance) -> bool:
    """Return True if an instance may hold the service or lead its messages on."""
    if owner.is_only_addressed or owner.name == stuck.instance or owner.holders_of(stuck.service):
        return True
    arrivals = (*owner.naming(MSDB, stuck.service), *owner.unnamed(MSDB))
    return any(route.kind is not AddressKind.LOCAL for route in arrivals)


def answer_request(stuck: StuckMessage) -> Remedy:
    """Advise an answer to a request for a route, or a route that names the service and needs no request."""
    entry = REASONS[Reason.ROUTE_REQUESTED]
    actions = (
        *entry.actions,
        (
            "Or create a route that names the service: once the request has ended, SQL Server takes it and does"
            " not ask again."
        ),
    )
    enabled_holders = [
        holder for holder in stuck.holders_here if has_id(holder, stuck.broker) and holder.is_enabled
    ]
    target = None if enabled_holders else stuck.target()
    address = None if target is None else stuck.address_of(target)
    if enabled_holders:
        address = TargetAddress(LOCAL_ADDRESS, is_certain=True)
    line = stuck.create_route(stuck.scope, _options(stuck.service, address=address))
    remedy = _with_address(stuck, address, entry.cause, actions, stuck.scope, line)
    return remedy.with_confidence_at_most(Confidence.LIKELY)


def find_address(stuck: StuckMessage) -> Remedy:
    """Advise a route to a service that no known database has. The reader must find its address first."""
    cause = f"No known database holds service {named(stuck.service)}"
    cause += "" if stuck.last.known_broker is None else f" with broker instance {named(stuck.last.known_broker)}"
    actions = (
        "Find out which instance holds it, and let a route lead there.",
        "Names are compared exactly.",
        *((END_GONE,) if stuck.database is not None and stuck.back_to is None else ()),
    )
    return lead_to(stuck, None, f"{cause}{_state_matched_route(stuck)}.", actions)


def lead_to(
    stuck: StuckMessage, address: TargetAddress | None, cause: str, further_actions: Sequence[str] = ()
) -> Remedy:
    """Advise a route to an address: alter the route that matched by the service's name, else add one."""
    search = stuck.first
    route = search.reported
    # If this instance holds the service under another id, routes without an id still find it.
    is_shared = search.known_broker is not None and bool(stuck.holders_here)
    is_own = route is not None and route.service == stuck.service and route.mirror_address is None
    if (
        route is not None
        and is_own
        and route.kind is not AddressKind.TRANSPORT
        and not (is_shared and search.step is MatchingStep.SERVICE)
    ):
        return _alter_address(stuck, route, search.scope, address, cause, further_actions)
    broker = search.known_broker if is_shared else None
    line = stuck.create_route(search.scope, _options(stuck.service, broker, address), broker)
    action = f"Create a route for the service in {named(search.scope)}."
    return _with_address(stuck, address, cause, (*further_actions, action), search.scope, line)


def _correct_route(
    stuck: StuckMessage, address: TargetAddress | None, cause: str, further_actions: Sequence[str] = ()
) -> Remedy | None:
    """Correct the address of the route that decided, in its own scope.

    Return None if the route serves other services too.
    """
    route = next(iter(_reported(stuck)), None)
    if route is None or route.service != stuck.service or route.mirror_address is not None:
        return None
    return _alter_address(stuck, route, stuck.last.scope, address, cause, further_actions)


def _alter_address(
    stuck: StuckMessage,
    route: EstateRoute,
    database: str,
    address: TargetAddress | None,
    cause: str,
    further_actions: Sequence[str],
) -> Remedy:
    line = statements.alter_route(route.name, _options(address=address))
    action = f"Correct the address of route {named(route.name)} of {named(database)}."
    actions, altered = (*further_actions, action), AlteredRoute(route.name)
    return _with_address(stuck, address, cause, actions, database, line, altered)


def _reported(stuck: StuckMessage) -> Sequence[EstateRoute]:
    """Return the route that decided, if a row of the tables has it."""
    route = None if stuck.verdict.decision is None else stuck.last.reported
    return () if route is None or route.is_implied else (route,)


def _with_address(
    stuck: StuckMessage,
    address: TargetAddress | None,
    cause: str,
    actions: Sequence[str],
    database: str,
    line: str | None,
    altered: AlteredRoute | None = None,
) -> Remedy:
    """Build a remedy that is complete if its address is certain. Otherwise the reader must check the address."""
    if address is not None and not address.is_certain:
        actions = (*actions, check_short_name(address.written, stuck.instance))
    build = ready if address is not None and address.is_certain else to_fill_in
    return build(stuck.place(database), cause, actions, line, altered=altered)


def check_short_name(address: str, instance: str) -> str:
    """Return the action for an address with a host that an instance may not find."""
    return (
        f"{named(text.host(address))} is a short machine name: check that {named(instance)} finds it, or write the"
        " full name."
    )


def ask_for_address(holder: str | None, service: str, broker: str | None) -> str:
    """Return the action that finds the address of an instance: the query, and the server to run it on."""
    with_broker = "" if broker is None else f" with service_broker_guid {broker} in sys.databases"
    where = f"the server that holds {named(service)}{with_broker}" if holder is None else named(holder)
    return f"Run this on {where}: {_OWN_ADDRESS}"


def _options(
    service: str | None = None, broker: str | None = None, address: TargetAddress | None = None
) -> str | None:
    """Write the options of a route, with a placeholder if the address is unknown."""
    options_clause = statements.with_clause(service, broker, None if address is None else address.written)
    if options_clause is None or address is not None:
        return options_clause
    filled = f"ADDRESS = N'{PLACEHOLDER}'"
    return f"{options_clause}, {filled}" if service or broker else f"{options_clause}{filled}"


def _state_matched_route(stuck: StuckMessage) -> str:
    """Write the route that took the messages instead, and its target."""
    route = stuck.last.reported
    if route is None:
        return ""
    looks = _LOOKS.get(route.kind, "") if route.kind is not None else ""
    if route.kind is AddressKind.NETWORK:
        looks = f", which leads to {named(route.address)}"
    return f"; route {named(route.name)} of {named(stuck.last.scope)} took the messages{looks}"


def _enable_forwarding_too(stuck: StuckMessage) -> tuple[str, ...]:
    return (f"Enable message forwarding on {named(stuck.instance)} too.",) if stuck.cannot_forward else ()


def _enable_there(stuck: StuckMessage) -> tuple[str, ...]:
    off = [holder.name for _, holder in stuck.holders_elsewhere() if not holder.is_enabled]
    return (f"Enable the broker of {named(off[0])} there too: it is off.",) if off else ()


def correct_managed_port(use: UsedRoute) -> Remedy | None:
    """Advise on a route from a Managed Instance to no other one, or to another one with a port other than 4022."""
    estate, address, _, sender, route = use
    host = text.host(address)
    if not estate.server.is_managed(sender.instance) or host is None:
        return None
    if not host.endswith(_MANAGED_HOST):
        return _reach_managed(sender)
    if text.port(address) == _MANAGED_PORT:
        return None
    cause = (
        f"The address {named(address)} is of a Managed Instance, whose Service Broker listens on port 4022 only."
    )
    clause = statements.with_clause(address=f"TCP://{host}:{_MANAGED_PORT}")
    return correct_route(sender, route, clause, cause, f"Correct route {named(route)}.", _OPEN_PORT)


def refuse_on_managed(status: ReportedStatus) -> Remedy | None:
    """Explain that a Managed Instance has no endpoint to change, or return None for other instances."""
    is_managed = status.server.is_managed(status.instance)
    return lead_to_managed(status) or (_reach_managed(status.route_place) if is_managed else None)


def lead_to_managed(status: ReportedStatus) -> Remedy | None:
    """Advise on a route that leads a Managed Instance to a wrong port, or any other instance to a managed one."""
    return correct_managed_port(status.on_route) or _refuse_far_managed(status)


def _reach_managed(sender: RemedyPlace) -> Remedy:
    cause = (
        f"{named(sender.instance)} is a Managed Instance: it reaches only other managed instances, at port 4022,"
        " and its endpoint cannot be created or altered."
    )
    actions = (
        "Let the route lead to LOCAL, or to the host name of another managed instance with port 4022.",
        _OPEN_PORT,
    )
    return Remedy(sender, cause, actions)


def _refuse_far_managed(status: ReportedStatus) -> Remedy | None:
    is_other = status.server.endpoint(status.instance) is not None
    if (
        not is_other
        or status.server.is_managed(status.instance)
        or not (text.host(status.address) or "").endswith(_MANAGED_HOST)
    ):
        return None
    cause = (
        f"{named(status.address)} is the address of a Managed Instance, which exchanges messages only with other"
        f" managed instances, and {named(status.instance)} is none."
    )
    actions = ("Send the messages in another way, or host both services on managed instances.",)
    return Remedy(status.route_place, cause, actions, confidence=Confidence.LIKELY)
