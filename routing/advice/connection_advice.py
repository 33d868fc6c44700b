"""Advise on failed connections to another instance: on endpoints, ports, names and certificates."""

from __future__ import annotations

from dataclasses import replace

from routing.advice import (
    dialog_remedies,
    handshake_remedies,
    login_remedies,
    rival_routes,
    server_remedies,
    statements,
)
from routing.advice.address_remedies import ask_for_address, lead_to_managed, refuse_on_managed
from routing.advice.broker_copies import MASTER, NEW_BROKER, enable_database, name_twins, or_renew
from routing.advice.database_remedies import open_database, open_holder, own_database
from routing.advice.dialog_remedies import LIST_CERTIFICATES
from routing.advice.queue_remedies import QUEUE_RISK, name_queue, start_mail, turn_on
from routing.advice.remedy import (
    UNKNOWN_INSTANCE,
    AlteredDatabases,
    Confidence,
    Remedy,
    RemedyPlace,
    correct_route,
    ready,
    to_fill_in,
)
from routing.advice.service_remedies import list_queues
from routing.advice.status_facts import ReportedStatus
from routing.advice.status_meanings import StatusTrouble
from routing.advice.stuck_messages import TSQL_PORT
from routing.cases.estate_addresses import is_container
from routing.cases.known_estate import OF_ROUTES
from routing.render.phrases import named
from routing.rules import text
from routing.terms import MSDB, Reason

_LIST_ENDPOINTS = (
    "SELECT e.name, e.state_desc, e.connection_auth_desc, e.encryption_algorithm_desc, t.port FROM"
    " sys.service_broker_endpoints AS e JOIN sys.tcp_endpoints AS t ON t.endpoint_id = e.endpoint_id;"
)
_START = "ALTER ENDPOINT [<endpoint>] STATE = STARTED;"
_CREATE = (
    "CREATE ENDPOINT [ServiceBrokerEndpoint] STATE = STARTED AS TCP (LISTENER_PORT = 4022)"
    " FOR SERVICE_BROKER (AUTHENTICATION = WINDOWS);"
)
_WAY_TO_PORT = (
    "Check that the firewall lets the port through, and that a container or a load balancer publishes it.",
    "Check that the error log there says that the endpoint listens, and that the host name leads to this server.",
)
_NEW_ENDPOINT = ("Create an endpoint there with STATE = STARTED.",)
_TURN_ON, _DEFAULT_SCHEMA = "ALTER QUEUE {} WITH STATUS = ON;", "dbo"
_GRANT = "GRANT CONNECT ON ENDPOINT::[{}] TO [<login>];"
_SINGLE_USER_SENDER, _SINGLE_USER_MSDB, _MIRRORED = 28075, 9790, 28018
_GOES_OFF = "If the status stays, a poison message turns it off again: look at the program that receives from it."
_LOOK_THERE = "If the status stays, read the error log there: SQL Server may not start a broker that is on."
_AWAY = "The messages are for another instance."
_COMPARE = "The exports show this. The text itself could not be read here: compare it."
_OF_CONTAINER = "If the port is right after all, such as one that a container publishes, look further."
_NOT_HERE = frozenset([Reason.SERVICE_NOT_FOUND, Reason.BROKER_INSTANCE_NOT_FOUND])


def say(status: ReportedStatus) -> Remedy:
    """Return the catalogue's words on the status, if no statement helps."""
    entry = status.entry
    return Remedy(status.place, entry.cause, entry.actions, risk=entry.risk, confidence=Confidence.LIKELY)


def say_at_target(status: ReportedStatus) -> Remedy:
    """Return the catalogue's words on a trouble of the target's database."""
    return replace(say(status), place=status.place_at_target())


def create_endpoint(status: ReportedStatus) -> Remedy:
    """Advise how the sender gets an endpoint, or starts the one that its export has."""
    existing = refuse_on_managed(status) or server_remedies.start_endpoint(status.server, status.instance, _AWAY)
    if existing is not None:
        return existing
    entry, place = status.entry, RemedyPlace(status.instance, MASTER)
    if status.has_no_endpoint(status.instance):
        cause = f"{named(status.instance)} has no Service Broker endpoint to reach another instance."
        return new_endpoint(place, cause, _NEW_ENDPOINT)
    if status.server.was_exported("service_broker_endpoints", status.instance):
        actions = ("These exports have an endpoint of this instance: check that it is STARTED.",)
        return to_fill_in(place, entry.cause, actions, _LIST_ENDPOINTS, _START)
    return new_endpoint(place, entry.cause, entry.actions)


def new_endpoint(place: RemedyPlace, cause: str, actions: tuple[str, ...]) -> Remedy:
    """Advise to create an endpoint. The reader must choose its port and authentication."""
    risk = "The endpoint opens its port to the network."
    return to_fill_in(place, cause, actions, _CREATE, _GRANT.format("ServiceBrokerEndpoint"), risk=risk)


def start_listening(status: ReportedStatus) -> Remedy:
    """Advise which endpoint has to listen at the address, or which address is the right one."""
    corrected = correct_connection(status) or _mend_peer(status) or rival_routes.drop_dead_route(status)
    if corrected is not None:
        return corrected
    entry, cause = status.entry, _at(status)
    target = status.find_peer()
    if target is None:
        there = RemedyPlace(UNKNOWN_INSTANCE, MASTER)
        remedy = server_remedies.lead_to_holder(status)
        return remedy or to_fill_in(there, cause, entry.actions, _LIST_ENDPOINTS, _START)
    place = RemedyPlace(target.name, MASTER)
    endpoint = status.server.endpoint(target.name)
    if endpoint is not None and endpoint.state is not None:
        listening = f"By its export the endpoint of {named(target.name)} is STARTED"
        listening += "." if endpoint.port is None else f" on port {endpoint.port}."
        return to_fill_in(place, cause, (listening, *_WAY_TO_PORT), _LIST_ENDPOINTS, confidence=Confidence.LIKELY)
    start = _START.replace("[<endpoint>]", server_remedies.name_endpoint(status.server, target.name))
    return to_fill_in(place, cause, entry.actions, _LIST_ENDPOINTS, start)


def _mend_peer(status: ReportedStatus) -> Remedy | None:
    """Advise on the endpoint at the address if it is missing, stopped, or cannot listen there by its export."""
    peer, cause = status.find_peer_name(), _at(status)
    # A host refuses connections to an address at which nothing listens: a time-out is the network's.
    is_refused = status.trouble is StatusTrouble.NOTHING_LISTENS
    if peer is None:
        return None
    if status.has_no_endpoint(peer):
        lacking = f"Nothing listens at {named(status.address)}: {named(peer)} has no Service Broker endpoint."
        return new_endpoint(RemedyPlace(peer, MASTER), lacking, _NEW_ENDPOINT)
    return (
        server_remedies.start_endpoint(status.server, peer, cause)
        or (server_remedies.listen_on_all(status, peer) if is_refused else None)
        or server_remedies.free_endpoint(status.server, peer)
    )


def mend_connection(status: ReportedStatus) -> Remedy:
    """Advise to compare two endpoints, or the network between them, that do not come together."""
    is_named = status.trouble is not StatusTrouble.NAME_NOT_RESOLVED
    remedy = correct_connection(status) or (_mend_peer(status) if is_named else None)
    remedy = remedy or rival_routes.drop_dead_route(status) or server_remedies.lead_to_holder(status)
    if remedy is not None:
        return remedy
    actions = (*rival_routes.list_tests(status), *status.entry.actions)
    if status.find_peer() is None:
        actions += (ask_for_address(server_remedies.find_holder(status), status.service, status.broker),)
    return Remedy(status.place, _at(status), actions, confidence=Confidence.LIKELY)


def _lead_to_published_port(status: ReportedStatus) -> Remedy | None:
    """Advise on a route to a service in a container. No export has the port that its host publishes."""
    peer = status.find_peer_name() or server_remedies.find_holder(status)
    if status.address is None or peer is None or not is_container(text.machine_of(peer)):
        return None
    if status.has_no_endpoint(peer):
        return new_endpoint(RemedyPlace(peer, MASTER), f"{named(peer)} has no endpoint.", _NEW_ENDPOINT)
    endpoint, machine, host = status.server.endpoint(peer), text.machine_of(peer), text.host(status.address)
    port = "<port>" if endpoint is None or endpoint.port is None else endpoint.port
    cause = (
        f"{status.entry.cause} The service is in {named(peer)}, which reads like a container: other"
        " machines reach it by the name of its host, and by the port that the host publishes."
    )
    actions = (
        f"On the host, look which port it publishes: docker port {machine} {port}.",
        f"Correct route {named(status.route)} if it has another one. Without one, publish the endpoint's port.",
    )
    clause = statements.lead_to(None if is_container(host) else host, None)
    return server_remedies.start_endpoint(status.server, peer, status.entry.cause) or correct_route(
        status.route_place, status.route, clause, cause, *actions, is_open=True
    )


def mend_endpoints(status: ReportedStatus) -> Remedy:
    """Advise a comparison of the endpoints, and a permission for a login."""
    corrected = (
        lead_to_managed(status)
        or login_remedies.read_wrapped(status)
        or server_remedies.correct_listener_port(status)
        or _lead_to_neighbour(status)
        or correct_port(status)
        or handshake_remedies.agree_on_encryption(status)
        or handshake_remedies.agree_on_authentication(status)
        or login_remedies.find_refusal(status)
        or login_remedies.explain_logon(status)
        or handshake_remedies.compare_certificates(status.server, status.instance, status.find_peer_name())
        or login_remedies.open_endpoint(status)
        or server_remedies.link_express(status.server, status.instance, status.find_peer_name())
        or server_remedies.follow_primary(status)
    )
    if corrected is not None:
        return corrected
    grant = (
        f"GRANT CONNECT ON ENDPOINT::{server_remedies.name_endpoint(status.server, status.instance)} TO [<login>];"
    )
    remedy = _on_both_sides(status, _LIST_ENDPOINTS, LIST_CERTIFICATES, grant)
    logins = login_remedies.list_logins(status)
    return remedy if logins is None else replace(remedy, actions=(*remedy.actions, logins))


def correct_address(status: ReportedStatus) -> Remedy:
    """Advise the address of the endpoint that is known on the machine of an invalid address."""
    return server_remedies.drop_instance_name(status) or correct_port(status) or say(status)


def grant_connect(status: ReportedStatus) -> Remedy:
    """Advise GRANT CONNECT for a login that the status names, or a comparison of the endpoints."""
    return login_remedies.grant_connect(status) or mend_endpoints(status)


def correct_connection(status: ReportedStatus) -> Remedy | None:
    """Advise on an address that does not answer, or return None if the exports do not show why."""
    return (
        refuse_on_managed(status)
        or _listen_at_primary(status)
        or server_remedies.correct_listener(status)
        or server_remedies.follow_primary(status)
        or server_remedies.part_endpoints(status.on_route)
        or _lead_to_published_port(status)
        or _lead_to_neighbour(status)
        or correct_port(status)
        or server_remedies.lead_to_partner(status)
    )


def _listen_at_primary(status: ReportedStatus) -> Remedy | None:
    """Advise an endpoint for the current primary behind a listener, if it is known to have none."""
    listener = status.server.listener(text.host(status.address))
    if listener is None or listener.primary is None or not status.has_no_endpoint(listener.primary):
        return None
    cause = (
        f"{named(status.address)} is a listener of an availability group and leads to its current primary,"
        f" {named(listener.primary)}, which has no Service Broker endpoint."
    )
    actions = ("Give every replica an endpoint with the port of the route.",)
    return new_endpoint(RemedyPlace(listener.primary, MASTER), cause, actions)


def read_views(status: ReportedStatus) -> Remedy:
    """Return the remedy by the exported views, for a status with an unreadable text."""
    shown = _look_at_target(status) or _look_at_connection(status)
    if shown is None:
        return say(status)
    return replace(
        shown.with_confidence_at_most(Confidence.LIKELY),
        actions=(*shown.actions, _COMPARE, *status.entry.actions[:1]),
    )


def _look_at_target(status: ReportedStatus) -> Remedy | None:
    place = status.find_target()
    if place is None:
        return None
    queue = status.server.queue_of(*place, status.service)
    return (
        (None if queue is None else turn_on(status.server, place, queue, status.service))
        or open_database(status.server, place)
        or own_database(status.server, place)
    )


def _look_at_connection(status: ReportedStatus) -> Remedy | None:
    if status.address is None:
        return None
    place, peer = status.find_target(), status.find_peer()
    sent_to = f"The messages are sent to {named(status.address)}."
    return (
        server_remedies.start_endpoint(status.server, status.instance, _AWAY)
        or (None if peer is None else server_remedies.start_endpoint(status.server, peer.name, sent_to))
        or correct_port(status)
        or handshake_remedies.agree_on_encryption(status)
        or handshake_remedies.agree_on_authentication(status)
        or handshake_remedies.compare_certificates(status.server, status.instance, status.find_peer_name())
        or (_open_holder(status) if place is None or place.database is None else None)
    )


def _lead_to_neighbour(status: ReportedStatus) -> Remedy | None:
    """Advise on a route to another instance of the machine than the one that holds the service."""
    return None if status.find_peer() else server_remedies.lead_to_neighbour(status.on_route)


def correct_port(status: ReportedStatus) -> Remedy | None:
    """Advise the port of the endpoint for the route, or return None if the port may be right.

    Port 1433 is for T-SQL connections, so it is never right. Another port is wrong if the endpoint of the known
    instance on the machine, or of the primary behind a listener, has a different one. After a failover the port of
    the primary would be wrong if the replicas have different ports.
    """
    address = status.address
    if address is None or status.leads_to_mirror or status.find_target_instance() is not None:
        return None
    port, entry = text.port(address), status.entry
    target = None if server_remedies.have_different_ports(status) else status.find_peer()
    target_port = None if target is None else text.port(status.estate.find_endpoint_address(target.name))
    if port == TSQL_PORT:
        cause = (
            f"The address {named(address)} has port 1433, which is for T-SQL connections: the endpoint of Service"
            " Broker listens on its own port (mostly 4022)."
        )
    elif target_port not in (None, port) and target is not None:
        cause = (
            f"The address {named(address)} has {'no port' if port is None else f'port {port}'}, but the endpoint"
            f" of {named(target.name)} listens on port {target_port}."
        )
    else:
        return None
    further = () if port is None else (_OF_CONTAINER, *entry.actions)
    is_open = target_port is None
    return correct_route(
        status.route_place,
        status.route,
        statements.lead_to(text.host(address), target_port),
        cause,
        f"Correct route {named(status.route)}.",
        *further,
        is_open=is_open,
        confidence=Confidence.TO_BE_CHECKED if is_open else Confidence.LIKELY,
    )


def _at(status: ReportedStatus) -> str:
    """Return the cause with the address that the messages are sent to."""
    place = " or ".join(map(named, status.addresses))
    place += ", the partner that holds the service" if status.leads_to_mirror else ""
    return f"{f'At {place}: ' if place else ''}{status.entry.cause}"


def _on_both_sides(status: ReportedStatus, *lines: str | None) -> Remedy:
    entry, place = status.entry, RemedyPlace(status.instance, MASTER)
    return to_fill_in(place, _at(status), (*entry.actions, "Do this on both sides."), *lines, risk=entry.risk)


def renew_certificate(status: ReportedStatus) -> Remedy:
    """Advise how to renew a certificate: that of a dialog's user, else that of the endpoint."""
    if status.case.status_text.number in (28024, 28025):
        return dialog_remedies.renew_dialog_certificate(status)
    return handshake_remedies.renew_peer_certificate(status) or renew_endpoint_certificate(status)


def renew_endpoint_certificate(status: ReportedStatus) -> Remedy:
    """Advise how to inspect the endpoints' certificates, which are in master, and set them."""
    return (
        handshake_remedies.install_certificate(status)
        or handshake_remedies.renew_own_certificate(status)
        or handshake_remedies.open_private_key(status)
        or handshake_remedies.compare_certificates(status.server, status.instance, status.find_peer_name())
        or _on_both_sides(status, LIST_CERTIFICATES)
    )


# Advice if the target cannot take a message: queue, owner, keys, broker, permissions.


def turn_queue_on(status: ReportedStatus) -> Remedy:
    """Advise ALTER QUEUE in the target's database.

    The queue's name comes from the text, and the database from the exports.
    """
    entry, place, lines = status.entry, status.find_target(), _turn_on_named(status)
    if place is None or place.database is None or not lines:
        lines = lines or [_TURN_ON.format("[<schema>].[<queue>]")]
        return to_fill_in(
            status.place_at_target(), entry.cause, entry.actions, list_queues(status.service), *lines
        )
    exported = status.server.queue_of(*place, status.service)
    off = None if exported is None else turn_on(status.server, place, exported, status.service)
    if off is not None:
        return off
    if exported is not None and exported.is_receiving and exported.is_enqueueing and _is_newer_at(status, place):
        return _wait_for(place, f"Queue {named(exported.name)}", _GOES_OFF)
    actions = (*entry.actions, f"The queue is in {named(place.database)}.")
    if exported is None and len(lines) > 1:
        return to_fill_in(place, entry.cause, actions, list_queues(status.service), *lines, risk=QUEUE_RISK)
    name = None if exported is None else name_queue(exported)
    line = lines[0] if name is None else _TURN_ON.format(name)
    mail = start_mail(place, status.quoted_names[0].rpartition(".")[2])
    return ready(place, entry.cause, actions, line, *mail, risk=QUEUE_RISK, confidence=Confidence.LIKELY)


def _is_newer_at(status: ReportedStatus, place: RemedyPlace) -> bool:
    """Return True if a place was exported at the same time as the status, or later."""
    sent_at, taken_at = (status.server.exported_at(instance) for instance in (status.instance, place.instance))
    return sent_at is not None and taken_at is not None and sent_at <= taken_at


def _wait_for(place: RemedyPlace, what: str, action: str) -> Remedy:
    cause = f"{what} was off at the last attempt, and is on by this export."
    actions = ("Wait: SQL Server tries again by itself.", action)
    return Remedy(place, cause, actions, confidence=Confidence.LIKELY)


def _turn_on_named(status: ReportedStatus) -> list[str]:
    """Return ALTER QUEUE for the queue that the text names: two if its name may have a point."""
    if not status.quoted_names:
        return []
    whole, (schema, name) = status.quoted_names[0], status.quoted_names[0].rpartition(".")[::2]
    schema = schema.rpartition(".")[2]
    readings = [[whole], [schema, name]] if schema else [[whole]]
    pasted = [[statements.identifier(part) for part in parts] for parts in readings]
    names = [".".join(map(str, parts)) for parts in pasted if None not in parts]
    return [_TURN_ON.format(name) for name in (names[-1:] if schema == _DEFAULT_SCHEMA else names)]


def enable_target_broker(status: ReportedStatus) -> Remedy:
    """Return ENABLE_BROKER for the target's database. If several have the service, one of these must be off."""
    place = status.find_target()
    if place is not None and place.database is None:
        holders = status.list_holders(status.estate.find_instance(place.instance))
        off = [holder.name for holder in holders if not holder.is_enabled]
        place = RemedyPlace(place.instance, off[0]) if len(off) == 1 else None
    if place is None or place.database is None:
        return _open_holder(status) or say_at_target(status)
    closed, facts = open_database(status.server, place), status.server.database(*place)
    if closed is not None:
        return closed
    if facts is not None and facts.is_broker_on and _is_newer_at(status, place):
        return _wait_for(place, f"The broker of {named(place.database)}", _LOOK_THERE)
    instance = status.estate.instances[place.instance]
    return enable_database(status.estate, instance, place.database, status.entry.cause)


def renew_id(status: ReportedStatus) -> Remedy:
    """Advise NEW_BROKER, or first ENABLE_BROKER if the export shows that the broker of the database is off."""
    place, entry = status.find_database_in_text() or status.find_target(), status.entry
    if place is None or place.database is None:
        return say_at_target(status)
    facts = status.server.database(*place)
    if facts is not None and facts.is_broker_on is False:
        instance, cause = status.estate.instances[place.instance], f"The broker of {named(facts.name)} is off."
        return or_renew(enable_database(status.estate, instance, facts.name, cause))
    return to_fill_in(
        RemedyPlace(place.instance, MASTER),
        entry.cause,
        entry.actions,
        statements.alter_database(place.database, NEW_BROKER),
        risk=entry.risk,
        altered=AlteredDatabases((place.database,)),
    )


def enable_own_broker(status: ReportedStatus) -> Remedy:
    """Return ENABLE_BROKER of the sending database, or of msdb."""
    database = MSDB if status.trouble is StatusTrouble.MSDB_BROKER_OFF else status.database
    return enable_database(status.estate, status.sender_instance, database, status.entry.cause)


def open_target(status: ReportedStatus) -> Remedy:
    """Return the statement that opens the target's database, if the export shows why it is closed."""
    place = status.find_target()
    if place is None or place.database is None:
        return server_remedies.lead_to_partner(status) or _open_holder(status) or say_at_target(status)
    return (
        _look_at_target(status)
        or server_remedies.leave_secondary(status, place)
        or _say_open(status, place)
        or say_at_target(status)
    )


def _say_open(status: ReportedStatus, place: RemedyPlace) -> Remedy | None:
    """Advise a look at the queue of a database that was exported as open, or return None for any other."""
    facts = status.server.database(*place)
    is_replica = status.case.status_text.number == _MIRRORED or (facts is not None and facts.is_in_group)
    if facts is None or facts.state is None or is_replica:
        return None
    cause = (
        f"{named(place.database)} of {named(place.instance)} did not take the messages, and was exported as open."
    )
    actions = (
        "Export again if the status stays: the database may have been closed at the time.",
        "Then check that the queue of the service is on, and read the error log there.",
    )
    return to_fill_in(place, cause, actions, list_queues(status.service))


def _open_holder(status: ReportedStatus) -> Remedy | None:
    """Advise on a closed database of the instance that should take the messages, or return None without one."""
    instance = status.instance if _is_missing_here(status) else status.find_peer_name()
    return None if instance is None else open_holder(status.server, instance, status.service)


def _is_missing_here(status: ReportedStatus) -> bool:
    """Return True if the known routes keep the messages on their instance, where no known database takes them."""
    case = status.case
    knows_routes = OF_ROUTES.isdisjoint(gap.missing for gap in case.gaps)
    return knows_routes and bool(case.verdicts) and all(verdict.reason in _NOT_HERE for verdict in case.verdicts)


def wait(status: ReportedStatus) -> Remedy:
    """Return the words for a trouble that passes, or the statement that opens a database in single-user mode."""
    number = status.case.status_text.number or 0
    database = {_SINGLE_USER_SENDER: status.database, _SINGLE_USER_MSDB: MSDB}.get(number)
    closed = None if database is None else open_database(status.server, RemedyPlace(status.instance, database))
    return closed or say(status)


def look_at_target(status: ReportedStatus) -> Remedy:
    """Advise a look at a target that takes no messages, although no hop is known to fail."""
    target, place, entry = status.find_target_instance(), status.find_target(), status.entry
    if target is None or place is None or place.database is None:
        actions = (*entry.actions, "Export its views beside these: they show which of these it is.")
        at = status.place_at_target() if target is None else RemedyPlace(target.name)
        return Remedy(at, _at(status), actions)
    closed = open_database(status.server, place) or own_database(status.server, place)
    if closed is not None:
        return closed
    actions = (
        *entry.actions,
        f"By these exports {named(target.name)} has all that the messages need, in {named(place.database)}.",
        *name_twins(status.estate, place, status.place),
        "Check that the database is online and the queue is on, and read the error log there.",
    )
    return to_fill_in(RemedyPlace(target.name, place.database), _at(status), actions, list_queues(status.service))
