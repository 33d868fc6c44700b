"""Troubles that no waiting message shows: queues that nobody reads, endpoints that leak, dialogs in error."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from routing.advice import statements
from routing.advice.broker_copies import MASTER, enable_database
from routing.advice.client_services import CLIENT_ACTION, HABITS, LeftClients, find_client, find_left, report_left
from routing.advice.database_remedies import open_key
from routing.advice.login_remedies import is_anonymous, risk_of_connect, unite_accounts
from routing.advice.queue_remedies import find_failures, read_queue, turn_on, unlock_queue
from routing.advice.remedy import Confidence, EstateTrouble, Remedy, RemedyPlace, TroubleKind, ready, to_fill_in
from routing.advice.server_remedies import ANOTHER_PORT, alter_endpoint, free_endpoint
from routing.advice.service_remedies import count_losses
from routing.advice.status_meanings import StatusTrouble
from routing.advice.stuck_messages import AdviceEstate
from routing.advice.transport_remedies import find_logged_errors
from routing.advice.trouble_catalogue import CLEANUP_RISK, END_RISK, STATUSES
from routing.cases.server_evidence import ServerEvidence
from routing.cases.server_facts import EndpointCount, Grants
from routing.groups import group_pairs
from routing.importing.catalog.covering import CLOSED, CONVERSING, IN_ERROR
from routing.lint.lint_estate import is_users
from routing.render.phrases import join_words, named, quote_log
from routing.render.wording import count
from routing.rules.text import machine_of
from routing.terms import MSDB, SYSTEM_DATABASES

_WITHOUT_CONNECT = re.compile(r"login '([^']+)' does not have CONNECT permission", re.IGNORECASE)
_OF_KEY = re.compile(r"master key in the database '([^']+)'")
_NOTIFICATIONS = (
    (
        ("-8490", "-8470", "'The conversation handle"),
        TroubleKind.CLIENTS_GONE,
        "to clients that have ended, whose services or dialogs no longer exist",
        "No message is lost that anybody waits for, and these dialogs have ended: do not create the services.",
    ),
    (
        ("-8494",),
        TroubleKind.LOGIN_REFUSED,
        "to services to which it has no permission to send",
        "Let the user of the query own the service, or run GRANT SEND ON SERVICE::[<service>] TO [guest].",
    ),
    (
        ("-8408", "-8425"),
        TroubleKind.DIALOGS_IN_ERROR,
        "to services that do not take their contract",
        (
            "Run ALTER SERVICE [<service>] (ADD CONTRACT"
            " [http://schemas.microsoft.com/SQL/Notifications/PostQueryNotification])."
        ),
    ),
)
"""Codes or words of a query notification that failed, the kind of trouble, the services, and the action."""
_USE_AGAIN = (
    "Let the programs on both sides run END CONVERSATION when a dialog is done.",
    "Let senders use a dialog again, or give BEGIN DIALOG a LIFETIME.",
)
_CODES = (
    "Frequent codes: -8425 the target lacks the contract, -8408 its service does not take it, -8428 it lacks the"
    " message type, -8490 it lacks the service, -8494 the sender has no permission, -8489 the lifetime is over."
)
_OF_MSDB = "Database Mail, event notifications and messages from other instances wait."
MANY = 100
"""So many endpoints of one service that are over, and still there, are a leak."""
MANY_OPEN = 500
"""So many open dialogs of one pair of services are worth a look."""
ENDED_THERE, ENDED_HERE = "DI", "DO"
"""States of endpoints that only the other side has ended, and that only this side has ended."""
_OPEN = (CONVERSING, "SO")
"""States of dialogs that are open, and of those in which nobody has sent yet."""
_OVER = (CLOSED, ENDED_THERE, ENDED_HERE)


def find_troubles(server: ServerEvidence) -> list[EstateTrouble]:
    """Return the troubles that an export shows, the worst first, and of each kind the largest."""
    left = find_left(server, _OPEN, _OVER)
    troubles = [
        *_queue_troubles(server, left),
        *_endpoint_troubles(server, left),
        *report_left(left, MANY_OPEN, MANY),
        *_refused_logins(server),
        *find_logged_errors(server),
        *_refused_notifications(server),
        *_closed_keys(server),
        *_shared_ports(server),
    ]
    order = list(TroubleKind)
    return sorted(troubles, key=lambda trouble: (order.index(trouble.kind), -trouble.count, trouble.remedy.place))


def find_brokers_off(estate: AdviceEstate, *, in_use_only: bool) -> list[EstateTrouble]:
    """Return the disabled brokers of msdb and of users' databases.

    With ``in_use_only``, a user's database counts only if somebody made a service in it.
    """
    troubles = []
    in_use = {
        (row["instance_name"], row["database_name"])
        for row in estate.server.rows.get("services", ())
        if is_users(row["name"])
    }
    for (instance, database), facts in estate.server.databases.items():
        holder = estate.instances.get(instance)
        is_unused = database in SYSTEM_DATABASES or (in_use_only and (instance, database) not in in_use)
        if estate.server.is_managed(instance) if database == MSDB else is_unused:
            continue
        if facts.is_broker_on is not False or holder is None:
            continue
        is_replica = facts.is_in_group and not estate.server.is_primary(instance)
        if is_replica or not facts.may_be_enabled:
            continue
        summary = f"the broker of {named(database)} is off"
        effect = _OF_MSDB if database == MSDB else "it sends and takes no messages."
        cause = f"The broker of {named(database)} is off: {effect}"
        troubles.append(
            EstateTrouble(TroubleKind.BROKER_OFF, summary, 1, enable_database(estate, holder, database, cause))
        )
    return troubles


def _queue_troubles(server: ServerEvidence, left: LeftClients) -> Iterator[EstateTrouble]:
    for (instance, database), queue in server.list_queues():
        if database is None or not (queue.services or (queue.is_off and not queue.has_known_services)):
            continue
        place, service = RemedyPlace(instance, database), next(iter(queue.services), None)
        if service is not None and not is_users(service):
            # SQL Server's own queues of errors need no reader.
            continue
        is_left = bool(queue.messages) and (place, find_client(service)) in left
        if is_left and not find_failures(server, place, queue):
            continue
        off = turn_on(server, place, queue, service)
        if off is not None:
            summary = f"queue {named(queue.name)} is off"
            yield EstateTrouble(TroubleKind.QUEUE_OFF, summary, queue.messages or 0, off)
            continue
        waiting = f"{count(queue.messages or 0, 'message')} in queue {named(queue.name)}"
        unread, locked = read_queue(server, place, queue), unlock_queue(place, queue)
        if unread is not None:
            whole = f"{waiting}, and nobody reads it"
            if queue.messages is None:
                whole = f"the procedure of queue {named(queue.name)} fails"
            yield EstateTrouble(TroubleKind.QUEUE_NOT_READ, whole, queue.messages or 0, unread)
        elif locked is not None:
            whole = f"{waiting}, and its readers do not take them"
            yield EstateTrouble(TroubleKind.QUEUE_NOT_READ, whole, queue.messages or 0, locked)


def _endpoint_troubles(server: ServerEvidence, left: LeftClients) -> Iterator[EstateTrouble]:
    every = ((RemedyPlace(counted.instance, counted.database), counted) for counted in server.counts)
    placed = [
        (place, counted)
        for place, counted in every
        if counted.state == IN_ERROR or (place, find_client(counted.service, counted.far_service)) not in left
    ]
    opened = (((place, _pair(counted)), counted) for place, counted in placed if counted.state in _OPEN)
    open_roles = {}
    for (place, pair), pair_counts in group_pairs(opened).items():
        # Both ends of a dialog may be in one database.
        by_role = group_pairs((_role(counted), counted) for counted in pair_counts)
        most = max(by_role.values(), key=_sum)
        senders = {(one.instance, one.database, one.far_service or "") for one in most}
        waiting = sum(server.count_waiting(*sender) for sender in senders)
        # Dialogs with a message that waits are open because of it.
        if _sum(most) - waiting >= MANY_OPEN:
            open_roles[place, pair] = _role(most[0])
            yield _report_open_dialogs(place, most)
    for place, counts in group_pairs(pair for pair in placed if pair[1].state == IN_ERROR).items():
        yield _in_error(server, place, counts)
    over = (
        (place, counted)
        for place, counted in placed
        # The other ends of open dialogs are over when the program there ends them.
        if counted.state in _OVER
        and (counted.state == CLOSED or open_roles.get((place, _pair(counted)), _role(counted)) == _role(counted))
    )
    for place, counts in group_pairs(over).items():
        if _sum(counts) >= MANY:
            yield _report_leak(server, place, counts)


def _pair(counted: EndpointCount) -> frozenset[str | None]:
    """Return the two services of dialogs, the same for both ends."""
    return frozenset((counted.service, counted.far_service))


def _role(counted: EndpointCount) -> bool | str | None:
    """Return which end of their dialogs endpoints are: is_initiator, or their service if that is unknown."""
    return counted.service if counted.is_initiator is None else counted.is_initiator


def _report_open_dialogs(place: RemedyPlace, counts: list[EndpointCount]) -> EstateTrouble:
    total = _sum(counts)
    remedy = to_fill_in(
        place,
        f"{count(total, 'dialog')} of {_services(counts)[0]} are open in {named(place.database)}:"
        " programs may begin one for each message, and never end it.",
        _advise_clients(counts) or _USE_AGAIN,
        "SELECT far_service, is_initiator, COUNT(*), MIN(security_timestamp) FROM sys.conversation_endpoints",
        "WHERE state IN ('CO', 'SO') GROUP BY far_service, is_initiator;",
    )
    subject = f"{count(total, 'conversation endpoint')} that are open"
    return EstateTrouble(TroubleKind.ENDPOINTS_LEAK, subject, total, remedy)


def _advise_clients(counts: Iterable[EndpointCount]) -> tuple[str, ...]:
    """Return the advice to programs on each client library that the endpoints belong to."""
    clients = (find_client(counted.service, counted.far_service) for counted in counts)
    return tuple(dict.fromkeys(HABITS[client.library] for client in clients if client is not None))


def _sum(counts: Iterable[EndpointCount]) -> int:
    return sum(counted.endpoints for counted in counts)


def _in_error(server: ServerEvidence, place: RemedyPlace, counts: list[EndpointCount]) -> EstateTrouble:
    total, services = _sum(counts), join_words(_services(counts))
    actions = (
        f"Read the message of type …/ServiceBroker/Error in the queue of {services}: it has the code.",
        _CODES,
        "If the messages of the dialog are still needed, send them again in a new dialog. Then end this one.",
    )
    remedy = to_fill_in(
        place,
        f"{count(total, 'dialog')} of {services} ended with an error, and nobody has read it.",
        actions,
        "SELECT conversation_handle, far_service FROM sys.conversation_endpoints WHERE state = 'ER';",
        "END CONVERSATION '<conversation_handle>';",
        risk=f"{END_RISK}{_count_losses(server, place, counts)}",
        confidence=Confidence.LIKELY,
    )
    return EstateTrouble(TroubleKind.DIALOGS_IN_ERROR, f"{count(total, 'dialog')} in error", total, remedy)


def _services(counts: Iterable[EndpointCount]) -> list[str]:
    by_service = Counter[str]()
    for counted in counts:
        by_service[counted.service or counted.far_service or ""] += counted.endpoints
    return [named(name) for name, _ in by_service.most_common() if name] or ["its services"]


def _count_losses(server: ServerEvidence, place: RemedyPlace, counts: list[EndpointCount]) -> str:
    services = {counted.service for counted in counts}
    return count_losses(server.count_messages(place.instance, place.database or "", services))


def _report_leak(server: ServerEvidence, place: RemedyPlace, counts: list[EndpointCount]) -> EstateTrouble:
    """Return the leak of a database: which side leaks, why, and how to clean up without losing open dialogs."""
    total, services = _sum(counts), join_words(_services(counts))
    closed, inbound, outbound = (
        _sum(counted for counted in counts if counted.state == state)
        for state in (CLOSED, ENDED_THERE, ENDED_HERE)
    )
    is_fire_and_forget = (
        2 * _sum(counted for counted in counts if counted.state == CLOSED and not counted.is_initiator) >= total
    )
    actions: tuple[str, ...]
    if is_fire_and_forget:
        of_closed = join_words(_services(counted for counted in counts if counted.state == CLOSED))
        cause = (
            f"{count(closed, 'closed conversation endpoint')} of {of_closed} stay in {named(place.database)}: the"
            " initiators end their dialogs right after they send (fire and forget), and the target keeps its own."
        )
        actions = (
            "Let the target end the dialog first: the initiator ends it when it gets the message EndDialog.",
            "Or give BEGIN DIALOG a LIFETIME, after which SQL Server removes the endpoint.",
            "Then remove leaked ones, in batches.",
        )
    else:
        cause = (
            f"{count(total, 'conversation endpoint')} of {services} in {named(place.database)} are over on only"
            f" one side: {closed:,} closed, {inbound:,} disconnected by the other side, {outbound:,} by this one."
        )
        actions = (
            "Let the program on each side run END CONVERSATION when it gets the message EndDialog or Error.",
            "Give BEGIN DIALOG a LIFETIME, after which SQL Server removes the endpoint.",
            *_advise_clients(counts),
            *_ending_actions(inbound, outbound),
        )
    state = CLOSED
    if not is_fire_and_forget and inbound + outbound:
        state = ENDED_THERE if inbound >= outbound else ENDED_HERE
    name = statements.identifier(place.database)
    cleanup = state != ENDED_THERE
    end = f"END CONVERSATION @handle{' WITH CLEANUP' if cleanup else ''}"
    lines = (
        "DECLARE @handle uniqueidentifier, @left int;",
        "SET @left = <number of endpoints>;",
        "WHILE @left > 0",
        "BEGIN",
        "    SET @handle = NULL;",
        "    SELECT TOP (1) @handle = e.conversation_handle FROM sys.conversation_endpoints AS e",
        f"    WHERE e.state = '{state}' AND NOT EXISTS (SELECT 1 FROM sys.transmission_queue AS q",
        "        WHERE q.conversation_handle = e.conversation_handle);",
        "    IF @handle IS NULL BREAK;",
        f"    {end};",
        "    SET @left = @left - 1;",
        "END;",
    )
    remedy = to_fill_in(
        place,
        cause,
        actions,
        *(lines if name is not None else (None,)),
        risk=f"{CLEANUP_RISK if cleanup else END_RISK}{_count_losses(server, place, counts)}",
        confidence=Confidence.LIKELY,
    )
    subject = f"{count(total, 'conversation endpoint')} that are over and stay"
    return EstateTrouble(TroubleKind.ENDPOINTS_LEAK, subject, total, remedy)


def _ending_actions(inbound: int, outbound: int) -> Iterator[str]:
    if inbound:
        yield "End those that the other side disconnected with a plain END CONVERSATION."
    if outbound:
        yield (
            "This side has ended the others, and the acknowledgement of the other side is missing: check that side"
            " and its route back. Only if it is gone, end them WITH CLEANUP."
        )
    if not outbound:
        yield "Only closed ones need WITH CLEANUP."


def _refused_logins(server: ServerEvidence) -> Iterator[EstateTrouble]:
    """Yield the logins without CONNECT that the error log of an instance names, unless they have it by now."""
    for instance, endpoint in server.endpoints.items():
        lines = server.log_lines(instance, "Service Broker login attempt failed")
        logins = {match[1]: line for line in reversed(lines) if (match := _WITHOUT_CONNECT.search(line))}
        granted, _ = server.connect_grants(instance) or Grants()
        for login, line in logins.items():
            pasted, name = statements.identifier(login), statements.identifier(endpoint.name)
            if login in granted or pasted is None or name is None:
                continue
            if is_anonymous(login):
                remedy = unite_accounts(server, instance, None)
            else:
                remedy = ready(
                    RemedyPlace(instance, MASTER),
                    f"Login {named(login)} has no CONNECT permission on the endpoint of {named(instance)}.",
                    (quote_log(instance, line), "Grant it CONNECT."),
                    f"GRANT CONNECT ON ENDPOINT::{name} TO {pasted};",
                    risk=risk_of_connect(login),
                    confidence=Confidence.LIKELY,
                )
            yield EstateTrouble(TroubleKind.LOGIN_REFUSED, f"login {named(login)} is refused", 1, remedy)


def _refused_notifications(server: ServerEvidence) -> Iterator[EstateTrouble]:
    """Yield the instances that could not send query notifications, by their error log."""
    for instance in server.logging_instances:
        lines = server.log_lines(instance, "query notification dialog", "Query notification delivery")
        for codes, kind, sent_to, action in _NOTIFICATIONS:
            failed = [line for line in lines if any(code in line for code in codes)]
            if failed:
                cause = f"{named(instance)} sends query notifications (SqlDependency) {sent_to}."
                actions = (quote_log(instance, failed[0]), action, CLIENT_ACTION)
                remedy = Remedy(RemedyPlace(instance), cause, actions, confidence=Confidence.LIKELY)
                what = f"{count(len(failed), 'query notification')} {sent_to}"
                yield EstateTrouble(kind, what, len(failed), remedy)


def _closed_keys(server: ServerEvidence) -> Iterator[EstateTrouble]:
    for instance in server.logging_instances:
        lines = server.log_lines(instance, "Service Broker needs to access the master key")
        databases = Counter(match[1] for line in lines if (match := _OF_KEY.search(line)))
        for database, number in databases.items():
            entry = STATUSES[StatusTrouble.NO_SESSION_KEY]
            remedy = open_key(server, RemedyPlace(instance, database), entry)
            actions = (f"The error log of {named(instance)} says so {count(number, 'time')}.", *remedy.actions)
            what = f"Service Broker cannot open the master key of {named(database)}"
            yield EstateTrouble(TroubleKind.KEY_CLOSED, what, number, replace(remedy, actions=actions))


def _shared_ports(server: ServerEvidence) -> Iterator[EstateTrouble]:
    """Yield the machines on which several started endpoints, or an endpoint and another process, have one port."""
    for name, endpoint in server.endpoints.items():
        port = None if endpoint.port is None else str(endpoint.port)
        names = server.sharing_port(machine_of(name), port)
        if name not in names[-1:]:
            continue
        remedy = alter_endpoint(
            server,
            name,
            ANOTHER_PORT,
            f"The endpoints of {join_words(map(named, names))} have port {port} of one machine, and only"
            " one can listen there (error 9692 in the log of the others).",
            ("Give one of them another port, and correct the routes that lead to it.",),
        )
        yield EstateTrouble(TroubleKind.PORT_SHARED, f"port {port} is shared", len(names), remedy)
    for name in server.endpoints:
        blocked = free_endpoint(server, name)
        if blocked is not None:
            summary = f"the endpoint of {named(name)} cannot listen on its port"
            yield EstateTrouble(TroubleKind.PORT_SHARED, summary, 1, blocked)
