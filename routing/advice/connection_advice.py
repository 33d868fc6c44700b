"""Advise where the connection to another instance fails: on endpoints, ports, names and certificates."""

from __future__ import annotations

import re

from routing.advice import statements
from routing.advice.remedy import MessageRemedy, PlacedRemedy, ready, to_fill_in
from routing.advice.service_remedies import MASTER, enable_database, list_queues
from routing.advice.status_facts import TSQL_PORT, KnownPlace, ReportedStatus
from routing.advice.status_meanings import WORDS
from routing.render.phrases import named
from routing.rules import text
from routing.terms import MSDB

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
_BOTH_SIDES = "On both sides:"
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
            status.instance, to_fill_in(words, MASTER, _LIST_ENDPOINTS, _START, lead="On the other side:")
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
    login = statements.identifier(logins[0]) if logins else "[<login>]"
    grant = None if login is None else f"GRANT CONNECT ON ENDPOINT::[<endpoint>] TO {login};"
    words = f"{_at(status)}{WORDS[status.trouble]}"
    lines = (_LIST_ENDPOINTS, _LIST_CERTIFICATES, grant)
    return PlacedRemedy(status.instance, to_fill_in(words, MASTER, *lines, lead=_BOTH_SIDES))


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
        clause = statements.with_clause(address=moved)
        return PlacedRemedy(
            status.instance, ready(words, database, statements.alter_route(verdict.route_name, clause))
        )
    clause = f" WITH ADDRESS = N'tcp://{text.host(address)}:<port>'"
    return PlacedRemedy(
        status.instance, to_fill_in(words, database, statements.alter_route(verdict.route_name, clause))
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
    words = f"{_at(status)}{WORDS[status.trouble]}"
    lines = (
        _LIST_CERTIFICATES,
        "CREATE CERTIFICATE [<certificate>] WITH SUBJECT = N'<subject>', EXPIRY_DATE = N'<date>';",
        "ALTER ENDPOINT [<endpoint>] FOR SERVICE_BROKER (AUTHENTICATION = CERTIFICATE [<certificate>]);",
    )
    return PlacedRemedy(status.instance, to_fill_in(words, MASTER, *lines, lead=_BOTH_SIDES))


def bind_user(status: ReportedStatus) -> PlacedRemedy:
    """Return the remote service binding that a dialog with encryption needs."""
    service = statements.literal(status.service)
    line = None
    if service is not None:
        line = f"CREATE REMOTE SERVICE BINDING [<binding>] TO SERVICE {service} WITH USER = [<user>];"
    return PlacedRemedy(status.instance, to_fill_in(WORDS[status.trouble], status.database, line))


# What to do where the target cannot take a message: queue, owner, keys, broker, permissions.


_UNKNOWN = "<database>"
_SCHEMA = "dbo."


def turn_queue_on(status: ReportedStatus) -> PlacedRemedy:
    """Return ALTER QUEUE in the target's database; the text has the queue's name, the exports the database's."""
    words, place = WORDS[status.trouble], status.find_target()
    queue = _queue(status)
    if place is None or place.database is None or queue is None:
        instance = status.instance if place is None else place.instance
        database = _UNKNOWN if place is None or place.database is None else place.database
        lines = (list_queues(status.service), f"ALTER QUEUE {queue or '[<schema>].[<queue>]'} WITH STATUS = ON;")
        where = "" if place is not None else " It is in the database that holds the service."
        return PlacedRemedy(instance, to_fill_in(f"{words}{where}", database, *lines))
    words += f" It is in {named(place.database)}."
    return PlacedRemedy(place.instance, ready(words, place.database, f"ALTER QUEUE {queue} WITH STATUS = ON;"))


def _queue(status: ReportedStatus) -> str | None:
    """Return the queue that the text names, as it is pasted; None where it names none."""
    names = status.quoted_names
    if not names:
        return None
    name, schema = names[0], ""
    if name.startswith(_SCHEMA):
        name, schema = name.removeprefix(_SCHEMA), "[dbo]."
    pasted = statements.identifier(name)
    return None if pasted is None else f"{schema}{pasted}"


def give_owner(status: ReportedStatus) -> PlacedRemedy:
    """Return ALTER AUTHORIZATION for the target's database, else for the sender's."""
    words = WORDS[status.trouble]
    place = _database_in_text(status) or status.find_target()
    if place is None or place.database is None:
        words += (
            " Which database holds the service is not known from these exports; where it is another one, change"
        )
        words += " the owner of that as well."
        place = KnownPlace(status.instance, status.database)
    elif place != (status.instance, status.database):
        words += f" Where the text stays, do the same for {named(status.database)}, which sends."
    login = "[sa]"
    database = statements.identifier(place.database)
    line = None if database is None else f"ALTER AUTHORIZATION ON DATABASE::{database} TO {login};"
    return PlacedRemedy(place.instance, ready(f"{words} Any valid login may own it; sa is one.", MASTER, line))


def make_master_key(status: ReportedStatus) -> PlacedRemedy:
    """Advise how to create the master key, or open it and encrypt it by the service master key."""
    place = _database_in_text(status) or KnownPlace(status.instance, status.database)
    return PlacedRemedy(place.instance, _master_key(WORDS[status.trouble], place))


def open_master_key(status: ReportedStatus) -> PlacedRemedy:
    """Advise on the master key of the database in which a message could not be enqueued: the target's."""
    place = _database_in_text(status) or status.find_target()
    if place is None or place.database is None:
        place = KnownPlace(status.instance, status.database)
    return PlacedRemedy(place.instance, _master_key(WORDS[status.trouble], place))


def _master_key(words: str, place: KnownPlace) -> MessageRemedy:
    return to_fill_in(
        words,
        place.database or "",
        "SELECT name FROM sys.symmetric_keys WHERE name = N'##MS_DatabaseMasterKey##';",
        "CREATE MASTER KEY ENCRYPTION BY PASSWORD = N'<password>';",
        "OPEN MASTER KEY DECRYPTION BY PASSWORD = N'<password>';",
        "ALTER MASTER KEY ADD ENCRYPTION BY SERVICE MASTER KEY;",
        lead=f"In {named(place.database)}: CREATE MASTER KEY where the query finds none; else the other two.",
    )


def _database_in_text(status: ReportedStatus) -> KnownPlace | None:
    """Return the database of the sender's instance that the text names; None where none is known."""
    known_databases = {*status.here.databases, status.database}
    quoted_databases = [name for name in status.quoted_names if name in known_databases]
    return KnownPlace(status.instance, quoted_databases[-1]) if quoted_databases else None


def grant_send(status: ReportedStatus) -> PlacedRemedy:
    """Return GRANT SEND in the target's database, to a user that somebody has to choose."""
    place = status.find_target()
    service = statements.identifier(status.service)
    lines: list[str | None] = [None, None]
    if service is not None:
        lines = [f"GRANT SEND ON SERVICE::{service} TO {user};" for user in ("[<user>]", "[public]")]
    database = _UNKNOWN if place is None or place.database is None else place.database
    instance = status.instance if place is None else place.instance
    return PlacedRemedy(instance, to_fill_in(WORDS[status.trouble], database, *lines))


def enable_target_broker(status: ReportedStatus) -> PlacedRemedy:
    """Return ENABLE_BROKER of the target's database."""
    place = status.find_target()
    words = WORDS[status.trouble]
    if place is None or place.database is None:
        return PlacedRemedy(status.instance, MessageRemedy(words))
    target = status.network.instances[place.instance]
    return PlacedRemedy(place.instance, enable_database(target, place.database, words))


def enable_own_broker(status: ReportedStatus) -> PlacedRemedy:
    """Return ENABLE_BROKER of the sending database."""
    return PlacedRemedy(status.instance, enable_database(status.here, status.database, WORDS[status.trouble]))


def enable_msdb_broker(status: ReportedStatus) -> PlacedRemedy:
    """Advise to enable the broker of msdb."""
    return PlacedRemedy(status.instance, enable_database(status.here, MSDB, WORDS[status.trouble]))


def look_at_target(status: ReportedStatus) -> PlacedRemedy:
    """Advise what to look at where the target takes no messages, and no hop is known to fail."""
    target, place = status.find_target_instance(), status.find_target()
    words = "" if status.address is None else f"At {named(status.address)}: "
    words += WORDS[status.trouble]
    if target is None or place is None or place.database is None:
        words += " Its exports beside these would tell which."
        return PlacedRemedy(status.instance if target is None else target.name, MessageRemedy(words))
    words += (
        f" By these exports {named(target.name)} has all that they need, in {named(place.database)}: see that the"
        " database is online, that the queue is on, and what the error log there says."
    )
    return PlacedRemedy(target.name, to_fill_in(words, place.database, list_queues(status.service)))
