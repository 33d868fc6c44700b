"""Remedies for causes beside the routing, with the names of endpoints, certificates and replicas as exported.

Each function is one case: None where it is not the one at hand, or where its views were not exported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from routing.advice import statements
from routing.advice.address_remedies import END_GONE, ask_for_address, check_short_name
from routing.advice.broker_copies import MASTER
from routing.advice.database_remedies import trust
from routing.advice.remedy import Confidence, Remedy, RemedyPlace, correct_route, ready, to_fill_in
from routing.advice.status_facts import ReportedStatus
from routing.advice.status_meanings import StatusTrouble
from routing.advice.stuck_messages import AdviceEstate, StuckMessage, UsedRoute
from routing.advice.trouble_catalogue import STATUSES
from routing.cases.server_evidence import ServerEvidence
from routing.render.phrases import join_words, named, quote_log
from routing.rules import text
from routing.rules.estate import AddressKind
from routing.terms import LOOPBACK_HOSTS

PORT_RISK = "The endpoint closes its connections for a moment, and SQL Server connects again by itself."
"""The risk of another port or authentication of an endpoint."""
ANOTHER_PORT = "AS TCP (LISTENER_PORT = <port>)"
"""The option of an endpoint that gets another port."""
_OF_SECONDARIES = (976, 978, 979, 982, 983)
_WITH_INSTANCE = re.compile(
    r"tcp://(?P<machine>[\w.-]{1,253})\\(?P<instance>[^\\/:]{1,64})(?::(?P<port>\d{1,5}))?/?", re.IGNORECASE
)
_OWN_MACHINE = (*LOOPBACK_HOSTS, "(local)")
_EVERY_IP = ("0.0.0.0", "::")
_PORT_IN_USE = "in use by another process"


def name_endpoint(server: ServerEvidence, instance: str) -> str:
    """Return the endpoint of an instance as an identifier to paste, or a placeholder."""
    endpoint = server.endpoint(instance)
    return (None if endpoint is None else statements.identifier(endpoint.name)) or "[<endpoint>]"


def alter_endpoint(
    server: ServerEvidence,
    instance: str,
    option: str,
    cause: str,
    actions: Sequence[str],
    *,
    risk: str | None = PORT_RISK,
    confidence: Confidence = Confidence.LIKELY,
) -> Remedy:
    """Return ALTER ENDPOINT, as a comment if its name or a value of the option must be filled in."""
    name = name_endpoint(server, instance)
    build = to_fill_in if "<" in name or "<" in option else ready
    line = f"ALTER ENDPOINT {name} {option};"
    return build(RemedyPlace(instance, MASTER), cause, actions, line, risk=risk, confidence=confidence)


# The address: a listener, two instances on one port, or a partner that has failed over.


def correct_listener(status: ReportedStatus) -> Remedy | None:
    """Advise on a route to a listener with a current primary on another port."""
    listener = status.server.listener(text.host(status.address))
    if listener is None or status.address is None:
        return None
    ports = [f"{named(name)} {_port(status, name)}" for name in listener.replicas]
    primary = (
        "its current primary" if listener.primary is None else f"its current primary, {named(listener.primary)}"
    )
    leads = f"{named(status.address)} is a listener of an availability group and leads to {primary}."
    rule = (
        "Keep the route at the listener's name, and give the endpoint of every replica the same port:"
        f" {join_words(ports, len(ports))}."
    )
    moved = correct_listener_port(status)
    if moved is not None:
        return moved
    port = text.port(status.address)
    primary_first = sorted(listener.replicas, key=lambda name: name != listener.primary)
    on_other_ports = [name for name in primary_first if str(_port(status, name)) != port]
    with_endpoint = [name for name in on_other_ports if status.server.endpoint(name) is not None]
    stopped = None if listener.primary is None else start_endpoint(status.server, listener.primary, leads)
    if stopped is not None and str(_port(status, stopped.instance)) == port:
        return replace(stopped, actions=(*stopped.actions, rule))
    if not with_endpoint or port is None:
        check = "Check that the endpoint of the primary is STARTED, and that it listens on all addresses."
        place = RemedyPlace(listener.primary or status.instance, MASTER)
        starts = f"ALTER ENDPOINT {name_endpoint(status.server, place.instance)} STATE = STARTED;"
        return to_fill_in(place, f"{leads} Its endpoint was exported with this port.", (rule, check), starts)
    first = with_endpoint[0]
    cause = f"{leads} The endpoint of {named(first)} listens on port {_port(status, first)}, not on {port}."
    further_actions = [f"Do the same on {join_words(map(named, with_endpoint[1:]))}."] if with_endpoint[1:] else []
    option = f"AS TCP (LISTENER_PORT = {port})"
    return alter_endpoint(status.server, first, option, cause, (rule, *further_actions))


def correct_listener_port(status: ReportedStatus) -> Remedy | None:
    """Return ALTER ROUTE for a listener with replicas that all listen on one port, but not on the route's."""
    listener = status.server.listener(text.host(status.address))
    if listener is None or status.supposed is None or status.address is None:
        return None
    ports = [_port(status, name) for name in listener.replicas]
    if len(ports) < 2 or len(set(ports)) > 1 or not isinstance(ports[0], int):
        return None
    if str(ports[0]) == text.port(status.address):
        return None
    cause = (
        f"{named(status.address)} is a listener of an availability group, and the endpoints of its replicas listen"
        f" on port {ports[0]}."
    )
    action = f"Correct the port in route {named(status.route)}, and leave the endpoints unchanged."
    clause = statements.with_clause(address=f"TCP://{text.host(status.address)}:{ports[0]}")
    return correct_route(status.route_place, status.route, clause, cause, action)


def have_different_ports(status: ReportedStatus) -> bool:
    """Return True if the address is that of a listener, and the endpoints of its replicas have different ports."""
    listener = status.server.listener(text.host(status.address))
    endpoints = () if listener is None else map(status.server.endpoint, listener.replicas)
    return len({endpoint.port for endpoint in endpoints if endpoint is not None and endpoint.port is not None}) > 1


def _port(status: ReportedStatus, instance: str) -> int | str:
    endpoint = status.server.endpoint(instance)
    return "(not known)" if endpoint is None or endpoint.port is None else endpoint.port


def part_endpoints(use: UsedRoute) -> Remedy | None:
    """Advise on instances of one machine that share the port of an address. Only one of them can use it."""
    estate, address, service, sender, route = use
    sharing = estate.server.sharing_port(text.host(address), text.port(address))
    if not sharing:
        return None
    holding = [name for name in sharing if estate.instances[name].holders_of(service)]
    moved = holding[0] if len(holding) == 1 else sharing[-1]
    cause = (
        f"{join_words(map(named, sharing))} are on one machine, and their endpoints all have port"
        f" {text.port(address)}: only one can listen there, and the error log of the others has error 9692."
    )
    actions = (
        f"Give the endpoint of {named(moved)} its own port.",
        (
            f"Then correct route {named(route)} of {named(sender.database)} on {named(sender.instance)}: give its"
            " address that port."
        ),
    )
    return alter_endpoint(estate.server, moved, ANOTHER_PORT, cause, actions)


def lead_to_neighbour(use: UsedRoute) -> Remedy | None:
    """Return ALTER ROUTE to the only instance of the address's machine that holds the service, at another port."""
    estate, address, service, sender, route = use
    host, port = text.host(address) or "", text.port(address)
    machine = text.fold(host.partition(".")[0])
    names = {name for name, _ in estate.instances.holders_of(service) if text.machine_of(name) == machine}
    holder = names.pop() if len(names) == 1 else ""
    endpoint = estate.server.endpoint(holder)
    if endpoint is None or port is None or str(endpoint.port or port) == port:
        return None
    cause = (
        f"Service {named(service)} is in {named(holder)}, whose endpoint listens on port {endpoint.port}, but"
        f" the address {named(address)} has port {port}."
    )
    action = f"Correct route {named(route)}, unless an instance at port {port} forwards the messages."
    return correct_route(
        sender, route, statements.with_clause(address=f"TCP://{host}:{endpoint.port}"), cause, action
    )


def lead_to_partner(status: ReportedStatus) -> Remedy | None:
    """Advise ALTER ROUTE with both partners, if the target database is on another known instance.

    The route has the broker instance, or its address is that of the database's mirror. The instance there must be
    unknown or have had the database too, because any other instance may be a forwarder.
    """
    verdict, broker = status.supposed, status.broker
    if verdict is None or verdict.decision is None or status.address is None or verdict.mirror_address is not None:
        return None
    route = verdict.decision.last.reported
    partners = [
        (name, holder, address)
        for name, holder in status.estate.instances.holders_of(status.service, broker)
        if holder.is_enabled
        and name != status.instance
        and (address := status.estate.find_endpoint_address(name)) is not None
    ]
    if route is None or len(partners) != 1:
        return None
    partner, holder, address = partners[0]
    target = status.find_peer()
    if target is not None and (target.name == partner or holder.name not in target.databases):
        return None
    facts = None if target is None else status.server.database(target.name, holder.name)
    is_mirror = facts is not None and facts.mirroring_role == "MIRROR" and route.service == status.service
    is_closed = status.trouble is StatusTrouble.TARGET_DATABASE_CLOSED
    if not is_mirror and (is_closed or broker is None or route.broker != broker):
        return None
    fails = "The mirror of the database is" if is_closed else "Nothing answers"
    same_broker = "" if broker is None else " with the same broker instance"
    cause = (
        f"{fails} at {named(status.address)}, and {named(holder.name)} of {named(partner)} holds service"
        f" {named(status.service)}{same_broker}: the database has failed over to it."
    )
    check = f"Check that {named(partner)} is the principal now, and that the sending server reaches its port."
    listeners = status.server.listeners_of(partner)
    if listeners:
        clause = statements.with_clause(address=f"TCP://{listeners[0].name}:{text.port(address)}")
        action = f"Let route {named(route.name)} lead to the listener, which follows the primary."
        return correct_route(status.route_place, route.name, clause, cause, action, check)
    pair = holder.broker, status.address, address
    return _name_partners(status.route_place, cause, route.name, status.service, pair, check)


def _name_partners(
    place: RemedyPlace,
    cause: str,
    route: str | None,
    service: str,
    pair: tuple[str | None, str, str],
    *checks: str,
) -> Remedy:
    """Return ALTER ROUTE with both partners. ``pair`` has the broker instance, and the addresses of both."""
    broker, address, mirror = pair
    action = f"Give route {named(route)} both partners: its address, and the other as mirror."
    clause = statements.with_clause(service, broker, address.strip().rstrip("/"), mirror)
    return correct_route(place, route, clause, cause, action, *checks, option="SERVICE_NAME")


def lead_to_principal(estate: AdviceEstate, reached: str, before: StuckMessage) -> Remedy | None:
    """Advise ALTER ROUTE with both partners if a route leads to the mirror of the database with the service.

    ``before`` are the messages at the hop before ``reached``, in the sender's database.
    """
    mirrors = {
        database
        for (instance, database), facts in estate.server.databases.items()
        if instance == reached and facts.mirroring_role == "MIRROR"
    }
    principals = [
        (name, holder)
        for name, holder in estate.instances.holders_of(before.service, before.broker)
        if name != reached and holder.name in mirrors
    ]
    address, verdict = before.verdict.address, before.verdict
    route = None if verdict.decision is None else before.last.reported
    if route is None or route.service != before.service:
        return None
    partner = estate.find_endpoint_address(principals[0][0]) if len(principals) == 1 else None
    if partner is None or address is None or verdict.mirror_address is not None:
        return None
    name, holder = principals[0]
    cause = (
        f"Route {named(verdict.route_name)} of {named(before.scope)} leads to {named(reached)}, where"
        f" {named(holder.name)} is the mirror: the principal is {named(name)}."
    )
    place, pair = RemedyPlace(before.instance, before.scope), (holder.broker, address, partner)
    return _name_partners(place, cause, verdict.route_name, before.service, pair)


def start_endpoint(server: ServerEvidence, instance: str, cause: str) -> Remedy | None:
    """Return ALTER ENDPOINT for an endpoint that was exported as stopped."""
    endpoint = server.endpoint(instance)
    if endpoint is None or endpoint.state in (None, "STARTED"):
        return None
    why = f"{cause} The endpoint of {named(instance)} is {endpoint.state}."
    certain = Confidence.CERTAIN
    return alter_endpoint(server, instance, "STATE = STARTED", why, ("Start it.",), risk=None, confidence=certain)


def listen_on_all(status: ReportedStatus, instance: str) -> Remedy | None:
    """Return ALTER ENDPOINT for an endpoint that listens on one IP address, which the route does not name."""
    endpoint = status.server.endpoint(instance)
    ip_address = None if endpoint is None else endpoint.ip_address
    if endpoint is None or not ip_address or ip_address in _EVERY_IP or text.host(status.address) == ip_address:
        return None
    port = endpoint.port or text.port(status.address) or "<port>"
    return alter_endpoint(
        status.server,
        instance,
        f"AS TCP (LISTENER_PORT = {port}, LISTENER_IP = ALL)",
        f"The endpoint of {named(instance)} listens on IP address {ip_address} only, and the route's address"
        f" {named(status.address)} may lead to another one.",
        ("Let it listen on all addresses, or give the route this IP address.",),
    )


def find_holder(status: ReportedStatus) -> str | None:
    """Return the only known instance with the service beside the sender's, or None."""
    holders = status.estate.instances.instances_with(status.service, status.broker) - {status.instance}
    return next(iter(holders)) if len(holders) == 1 else None


def free_endpoint(server: ServerEvidence, instance: str) -> Remedy | None:
    """Advise another port for an endpoint if another process uses its port, by the error log."""
    lines = [
        line
        for line in server.log_lines(instance, "Service Broker", _PORT_IN_USE)
        if _PORT_IN_USE in line or "cannot listen" in line
    ]
    if not lines:
        return None
    return alter_endpoint(
        server,
        instance,
        ANOTHER_PORT,
        f"The endpoint of {named(instance)} cannot listen on its port, which another process uses (error 9692).",
        (
            quote_log(instance, lines[0]),
            "Find the process (netstat -ano) and stop it, or give the endpoint another port.",
            "Then correct the routes that lead to it.",
        ),
    )


def lead_to_holder(status: ReportedStatus) -> Remedy | None:
    """Advise ALTER ROUTE to the instance with the service, if no known instance has the route's address.

    A host name that cannot be resolved may still name the machine of an instance with another address.
    """
    is_unnamed, peer = status.trouble is StatusTrouble.NAME_NOT_RESOLVED, status.find_peer()
    is_right = peer is not None and (not is_unnamed or status.find_target_instance() is not None)
    if status.supposed is None or status.address is None or status.supposed.mirror_address is not None or is_right:
        return None
    if len(status.supposed.addresses) > 1 and not is_unnamed:
        return None
    holder = find_holder(status) if peer is None else peer.name
    endpoint = None if holder is None else status.server.endpoint(holder)
    if endpoint is not None and endpoint.ip_address == text.host(status.address):
        return None
    chosen = None if holder is None else status.estate.addresses.choose(holder, status.sender_instance)
    read = text.host if is_unnamed else text.comparable_address
    is_other = chosen is not None and read(chosen.written) != read(status.address)
    at_holder = chosen.written if chosen is not None and is_other else None
    address = at_holder or (_find_other_address(status) if peer is None else None)
    if is_unnamed:
        why = "The sending server cannot resolve the host name in"
        actions = [f"Correct route {named(status.route)}, or the name in the DNS."]
    elif address is not None:
        why = "Nothing answers at"
        actions = [f"Correct route {named(status.route)} if its host is another one.", *status.entry.actions]
    else:
        return None
    if address is None:
        source = f"These exports do not show the address of {named(holder or status.service)}."
        gone = () if holder is not None else (END_GONE,)
        actions += [*gone, ask_for_address(holder, status.service, status.broker)]
    elif at_holder is None:
        source = f"Another route for the service leads to {named(address)}."
    else:
        what = "The service is in" if peer is None else "The machine is that of"
        source = f"{what} {named(holder)}, which the route does not name by its host and port."
    return correct_route(
        status.route_place,
        status.route,
        statements.lead_to(None, None) if address is None else statements.with_clause(address=address),
        f"{why} {named(status.address)}. {source}",
        *actions,
        is_open=address is None or not is_unnamed,
    )


def _find_other_address(status: ReportedStatus) -> str | None:
    """Return the only other address that known routes have for the service, or None."""
    routes = (
        route
        for instance in status.estate.instances.values()
        for database in instance.routes
        for route in instance.naming(database, status.service)
    )
    addresses = {
        route.compared: route.address
        for route in routes
        if route.kind is AddressKind.NETWORK and route.broker in (None, status.broker)
    }
    addresses.pop(text.comparable_address(status.address or ""), None)
    return addresses.popitem()[1] if len(addresses) == 1 else None


def lead_from_loopback(use: UsedRoute) -> Remedy | None:
    """Advise ALTER ROUTE for a route to the sender's own machine, if one other machine holds the service.

    Return None if the sender, or another known instance that the address leads to, may take the messages.
    """
    estate, address, service, sender, route = use
    sender_instance = estate.instances.get(sender.instance)
    if address is None or sender_instance is None or text.host(address) not in _OWN_MACHINE:
        return None
    holders = estate.instances.instances_with(service, None)
    other_owners = [
        owner for owner in estate.network.owners(address, sender_instance) if owner.name != sender_instance.name
    ]
    if len(holders) != 1 or other_owners or service in sender_instance.holders:
        return None
    holder = next(iter(holders))
    machine = holder.partition("\\")[0]
    if text.fold(machine) in sender_instance.machine_names:
        return None
    chosen = estate.addresses.choose(holder, sender_instance)
    cause = (
        f"Route {named(route)} of {named(sender.database)} leads to {named(address)}, the machine of"
        f" {named(sender_instance.name)} itself, but service {named(service)} is in {named(holder)}."
    )
    actions = [f"Let the route lead to the endpoint of {named(holder)}."]
    if chosen is not None and not chosen.is_certain:
        actions.append(check_short_name(chosen.written, sender_instance.name))
    written = None if chosen is None else chosen.written
    clause = statements.lead_to(machine, None) if written is None else statements.with_clause(address=written)
    return correct_route(sender, route, clause, cause, *actions, is_open=chosen is None)


def link_express(server: ServerEvidence, sender: str, target: str | None) -> Remedy | None:
    """Say that two instances of Express or Web edition need one of another between them, or return None."""
    if target in (None, sender) or not (server.is_client_only(sender) and server.is_client_only(target)):
        return None
    cause = (
        f"{named(sender)} and {named(target)} are both of edition Express or Web: two such instances exchange"
        " messages only through an instance of Standard or Enterprise edition."
    )
    actions = STATUSES[StatusTrouble.LICENSE].actions
    return Remedy(RemedyPlace(target), cause, actions, confidence=Confidence.LIKELY)


# The target's database: its owner, or what its initiator may do.


def trust_initiator(status: ReportedStatus, target: RemedyPlace | None, number: int) -> Remedy | None:
    """Advise TRUSTWORTHY for the sending database if an error denies it another one of its instance."""
    if target is None or target.database is None:
        return None
    if target.instance != status.instance or target.database == status.database:
        return None
    sender = status.server.database(status.instance, status.database)
    owner = status.server.database(target.instance, target.database)
    is_owner_wrong = owner is not None and not owner.has_valid_owner and owner.owner_sid is not None
    if is_owner_wrong or (sender is not None and sender.is_trustworthy):
        return None
    return trust(
        status.place,
        f"The sender acts in {named(target.database)} as a user of {named(status.database)}, which is not trusted"
        f" there (error {number}).",
        (
            f"Set TRUSTWORTHY for {named(status.database)}, the simplest way within one instance.",
            "Or secure the dialog with certificates: a user in each database, and a remote service binding.",
            "The owners of the databases are correct: leave them unchanged.",
        ),
    )


def leave_replica(use: UsedRoute, reached: str) -> Remedy | None:
    """Advise ALTER ROUTE to the listener if a route leads to a secondary replica of the service's database."""
    server = use.estate.server
    if reached not in server.secondaries():
        holders = use.estate.instances[reached].holders_of(use.service)
        in_group = [holder.name for holder in holders if server.is_secondary(reached, holder.name)]
        return _lead_to_listener(use, RemedyPlace(reached, in_group[0])) if in_group else None
    endpoint = server.endpoint(reached)
    port = None if endpoint is None else endpoint.port
    return _lead_to_listener(use, RemedyPlace(reached), server.listeners_of(reached)[0].name, port)


def _lead_to_listener(
    use: UsedRoute, reached: RemedyPlace, listener: str | None = None, port: int | None = None
) -> Remedy:
    """Advise to lead a route to the listener of an availability group. Its name may be unknown."""
    database = "" if reached.database is None else f"{named(reached.database)} of "
    route = "The route" if use.route is None else f"Route {named(use.route)}"
    cause = (
        f"{route} of {named(use.place.database)} leads to {database}{named(reached.instance)}, a"
        " secondary replica of an availability group, which takes no messages."
    )
    which = "the group's listener" if listener is None else f"the listener {named(listener)}"
    actions = (
        f"Let the route lead to {which}, which follows the primary.",
        "Give the endpoint of every replica the same port.",
        "Use the listener's name and not an IP address, of which it may have several.",
    )
    clause = statements.lead_to(listener, text.port(use.address) if listener is None else port)
    return correct_route(use.place, use.route, clause, cause, *actions, is_open=None in (listener, port))


def follow_primary(status: ReportedStatus) -> Remedy | None:
    """Advise ALTER ROUTE to the listener if the address is that of a secondary replica."""
    target = status.find_target_instance()
    if target is None or status.supposed is None:
        return None
    return leave_replica(status.on_route, target.name)


def leave_secondary(status: ReportedStatus, place: RemedyPlace) -> Remedy | None:
    """Advise a route to the listener if the target's database is a secondary replica of an availability group."""
    if status.numbers.isdisjoint(_OF_SECONDARIES):
        return None
    return follow_primary(status) or _lead_to_listener(status.on_route, place)


def drop_instance_name(status: ReportedStatus) -> Remedy | None:
    """Advise ALTER ROUTE for an address with the name of an instance, which has no place in an address."""
    written = None if status.supposed is None else status.supposed.address
    match = _WITH_INSTANCE.match(written or "")
    if match is None:
        return None
    machine, instance = match["machine"], match["instance"]
    names = {text.fold(name): name for name in status.estate.instances}
    holder = names.get(text.fold(f"{machine}\\{instance}"))
    address = None if holder is None else status.estate.find_endpoint_address(holder)
    cause = (
        f"The address {named(written)} names instance {named(instance)}: an address has only a host and"
        " the port of the Service Broker endpoint."
    )
    clause = (
        statements.lead_to(machine, match["port"]) if address is None else statements.with_clause(address=address)
    )
    action = f"Correct route {named(status.route)}: the port tells the instances of a machine apart."
    return correct_route(status.route_place, status.route, clause, cause, action, is_open=address is None)
