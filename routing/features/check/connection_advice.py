"""What to do where the connection to another instance fails: endpoints, ports, names, certificates."""

from __future__ import annotations

import re

from routing.features.check import pasting
from routing.features.check.pasting import named
from routing.features.check.serving import MASTER
from routing.features.check.status_facts import TSQL_PORT, ReportedStatus
from routing.features.check.stuck_groups import MessageRemedy, PlacedRemedy, ready, to_fill_in
from routing.features.status_meanings import WORDS
from routing.rules import text

_LIST_ENDPOINTS = (
    "SELECT e.name, e.state_desc, e.connection_auth_desc, e.encryption_algorithm_desc, t.port FROM"
    " sys.service_broker_endpoints AS e JOIN sys.tcp_endpoints AS t ON t.endpoint_id = e.endpoint_id;"
)
_START = "ALTER ENDPOINT [<endpoint>] STATE = STARTED;"
_CREATE = (
    "CREATE ENDPOINT [ServiceBrokerEndpoint] STATE = STARTED AS TCP (LISTENER_PORT = 4022)"
    " FOR SERVICE_BROKER (AUTHENTICATION = WINDOWS);"
)
_GRANT = "GRANT CONNECT ON ENDPOINT::[{}] TO [<login>];"
_LIST_CERTIFICATES = "SELECT name, start_date, expiry_date, pvt_key_encryption_type_desc FROM sys.certificates;"
_PRINCIPAL = re.compile(r"\(I[Dd]:? *(\d+)\)", re.ASCII)


def create_endpoint(status: ReportedStatus) -> PlacedRemedy:
    """Advise how the sender gets an endpoint, or starts the one that its export has."""
    words = WORDS[status.trouble]
    if status.evidence.was_exported("service_broker_endpoints", status.instance) and not status.has_no_endpoint(
        status.instance
    ):
        words += " These exports have an endpoint of it: see that it is STARTED."
        return PlacedRemedy(status.instance, to_fill_in(words, MASTER, _LIST_ENDPOINTS, _START))
    return PlacedRemedy(status.instance, new_endpoint(words))


def new_endpoint(words: str) -> MessageRemedy:
    """Return an endpoint to create, whose port and authentication somebody has to choose."""
    return to_fill_in(words, MASTER, _CREATE, _GRANT.format("ServiceBrokerEndpoint"))


def start_listening(status: ReportedStatus) -> PlacedRemedy:
    """Advise which endpoint has to listen at the address, or which address is the right one."""
    wrong_port = correct_port(status)
    if wrong_port is not None:
        return wrong_port
    target = status.find_target_instance() or status.find_instance_of_host()
    words = f"{_at(status)}{WORDS[status.trouble]}"
    if target is None:
        return PlacedRemedy(
            status.instance, to_fill_in(f"{words} On the other side:", MASTER, _LIST_ENDPOINTS, _START)
        )
    if status.has_no_endpoint(target.name):
        lacking = f"{_at(status)}{named(target.name)} has no Service Broker endpoint: nothing listens there."
        return PlacedRemedy(target.name, new_endpoint(lacking))
    return PlacedRemedy(target.name, to_fill_in(words, MASTER, _LIST_ENDPOINTS, _START))


def mend_connection(status: ReportedStatus) -> PlacedRemedy:
    """Advise to compare two endpoints, or the network between them, that do not come together."""
    wrong_port = correct_port(status)
    if wrong_port is not None:
        return wrong_port
    words = f"{_at(status)}{WORDS[status.trouble]}"
    return PlacedRemedy(status.instance, MessageRemedy(words))


def mend_endpoints(status: ReportedStatus) -> PlacedRemedy:
    """Advise what to compare at the endpoints, and how to give a login its permission."""
    wrong_port = correct_port(status)
    if wrong_port is not None:
        return wrong_port
    logins = [name for name in status.quoted_names if "\\" in name]
    login = pasting.identifier(logins[0]) if logins else "[<login>]"
    grant = None if login is None else f"GRANT CONNECT ON ENDPOINT::[<endpoint>] TO {login};"
    words = f"{_at(status)}{WORDS[status.trouble]} On both sides:"
    lines = (_LIST_ENDPOINTS, _LIST_CERTIFICATES, grant)
    return PlacedRemedy(status.instance, to_fill_in(words, MASTER, *lines))


def correct_port(status: ReportedStatus) -> PlacedRemedy | None:
    """Return the route with the port of the endpoint; None where the port may be right.

    Port 1433 is that of T-SQL connections, and an instance that is known on the machine listens on its own.
    """
    address, verdict = status.address, status.supposed
    if address is None or verdict is None or status.find_target_instance() is not None:
        return None
    port = text.port(address)
    target = status.find_instance_of_host()
    target_address = None if target is None else status.find_address(target.name)
    if port == TSQL_PORT:
        words = (
            f"The address {named(address)} has port 1433, which is that of T-SQL connections: the endpoint of"
            " Service Broker listens on a port of its own (mostly 4022)."
        )
    elif target_address is not None and target is not None:
        words = (
            f"The address {named(address)} has {'no port' if port is None else f'port {port}'}; the endpoint of"
            f" {named(target.name)} listens on port {text.port(target_address)}."
        )
    else:
        return None
    words += f" Correct route {named(verdict.route_name)}. Where the port is right all the same: "
    words += WORDS[status.trouble]
    database = status.scope
    if target_address is not None and target is not None:
        moved = _with_port(address, text.port(target_address) or "")
        clause = pasting.with_clause(address=moved)
        return PlacedRemedy(
            status.instance, ready(words, database, pasting.alter_route(verdict.route_name, clause))
        )
    clause = f" WITH ADDRESS = N'tcp://{text.host(address)}:<port>'"
    return PlacedRemedy(
        status.instance, to_fill_in(words, database, pasting.alter_route(verdict.route_name, clause))
    )


def _with_port(address: str, port: str) -> str:
    """Return an address with another port, its host as it is written."""
    written = address.strip().rstrip("/")
    scheme, _, rest = written.partition("://")
    host = rest if text.port(address) is None else rest.rpartition(":")[0]
    return f"{scheme}://{host}:{port}"


def _at(status: ReportedStatus) -> str:
    return "" if status.address is None else f"At {named(status.address)}: "


def renew_certificate(status: ReportedStatus) -> PlacedRemedy:
    """Advise how to renew a certificate: that of a dialog's user, else that of the endpoint."""
    is_of_dialog = status.status_text.number in (28024, 28025)
    return renew_dialog_certificate(status) if is_of_dialog else renew_endpoint_certificate(status)


def renew_dialog_certificate(status: ReportedStatus) -> PlacedRemedy:
    """Advise how to inspect and create the certificates of a dialog's users."""
    number = _PRINCIPAL.search(status.status_text.text or "")
    lines = [_LIST_CERTIFICATES]
    if number is not None:
        lines.append(f"SELECT USER_NAME({number[1]});")
    lines.append(
        "CREATE CERTIFICATE [<certificate>] AUTHORIZATION [<user>] WITH SUBJECT = N'<subject>',"
        " START_DATE = N'<date>', EXPIRY_DATE = N'<date>';"
    )
    return PlacedRemedy(status.instance, to_fill_in(WORDS[status.trouble], status.database, *lines))


def renew_endpoint_certificate(status: ReportedStatus) -> PlacedRemedy:
    """Advise how to inspect the endpoints' certificates, which are in master, and set them."""
    words = f"{_at(status)}{WORDS[status.trouble]} On both sides:"
    lines = (
        _LIST_CERTIFICATES,
        "CREATE CERTIFICATE [<certificate>] WITH SUBJECT = N'<subject>', EXPIRY_DATE = N'<date>';",
        "ALTER ENDPOINT [<endpoint>] FOR SERVICE_BROKER (AUTHENTICATION = CERTIFICATE [<certificate>]);",
    )
    return PlacedRemedy(status.instance, to_fill_in(words, MASTER, *lines))


def bind_user(status: ReportedStatus) -> PlacedRemedy:
    """Return the remote service binding that a dialog with encryption needs."""
    service = pasting.literal(status.service)
    line = None
    if service is not None:
        line = f"CREATE REMOTE SERVICE BINDING [<binding>] TO SERVICE {service} WITH USER = [<user>];"
    return PlacedRemedy(status.instance, to_fill_in(WORDS[status.trouble], status.database, line))
