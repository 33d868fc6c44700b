"""Advise on services, queues, endpoints and dialogs. These remedies change no route.

Each function handles one case, and returns None if the case does not apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from routing.advice import statements
from routing.advice.broker_copies import MASTER
from routing.advice.client_services import drop_first, find_client
from routing.advice.database_remedies import open_holder
from routing.advice.remedy import Remedy, RemedyPlace, ready, to_fill_in
from routing.advice.stuck_messages import StuckMessage
from routing.advice.trouble_catalogue import CLEANUP_RISK, END_RISK, REASONS
from routing.cases.near_misses import SERVICE
from routing.cases.server_evidence import ServerEvidence
from routing.render.phrases import join_words, named
from routing.render.wording import count
from routing.rules.locating import has_id
from routing.rules.text import OTHER_BROKER
from routing.terms import MSDB, Reason

EVENT_NOTIFICATION = "eventnotificationservice"
# WITH CLEANUP, since the other side does not answer any more.
_END_ALL = (
    "DECLARE @handle uniqueidentifier;",
    "WHILE 1 = 1",
    "BEGIN",
    "    SET @handle = NULL;",
    "    SELECT TOP (1) @handle = conversation_handle FROM sys.conversation_endpoints WHERE far_service = {};",
    "    IF @handle IS NULL BREAK;",
    "    END CONVERSATION @handle WITH CLEANUP;",
    "END;",
)


def state_losses(server: ServerEvidence, place: RemedyPlace, service: str, *, cleanup: bool) -> str:
    """Return the risk of ending the conversations with a service, with the messages that the export counts."""
    database = place.database or ""
    unread = server.count_unread(place.instance, database, service)
    waiting = server.count_waiting(place.instance, database, service) if cleanup else 0
    risk = CLEANUP_RISK if cleanup else END_RISK
    return f"{risk}{count_losses(unread, waiting)}"


def count_losses(unread: Mapping[str, int], waiting: int = 0) -> str:
    """Return a sentence on the messages that END CONVERSATION may discard, or an empty text."""
    waiting_texts = [f"{count(number, 'message')} in queue {named(queue)}" for queue, number in unread.items()]
    waiting_texts += [f"{count(waiting, 'message')} in the transmission queue"] if waiting else []
    return f" By this export: {join_words(waiting_texts)}." if waiting_texts else ""


def end_conversations(
    server: ServerEvidence,
    place: RemedyPlace,
    service: str,
    cause: str,
    actions: tuple[str, ...],
    *,
    cleanup: bool = True,
) -> Remedy:
    """Advise how to find the conversations with a service, and end one of them.

    ``cleanup`` is True if the other side can never acknowledge the end. Otherwise a plain END CONVERSATION works.
    """
    name = statements.literal(service)
    query = None
    if name is not None:
        query = (
            "SELECT conversation_handle, state_desc, far_broker_instance FROM sys.conversation_endpoints"
            f" WHERE far_service = {name};"
        )
    end = f"END CONVERSATION '<conversation_handle>'{' WITH CLEANUP' if cleanup else ''};"
    risk = state_losses(server, place, service, cleanup=cleanup)
    return replace(to_fill_in(place, cause, actions, query, end, risk=risk), discards_messages=cleanup)


def end_dead_dialog(server: ServerEvidence, place: RemedyPlace, service: str) -> Remedy | None:
    """Advise on messages for a client or notification service that is gone. Return None for any other service."""
    client = find_client(service)
    if client is not None and client.name:
        further_actions, drops = drop_first(client)
        gone = "if the service is gone, so is the client" if drops else "the client is gone with its service"
        cause = (
            f"A client of {client.library} made service {named(service)} for itself; {gone}, and nobody waits for"
            " these messages."
        )
        actions = (*further_actions, "End the dialogs, and do not create the service.")
        literal = statements.literal(service)
        lines = [None if literal is None else line.replace("{}", literal) for line in _END_ALL]
        risk = state_losses(server, place, service, cleanup=True)
        build = to_fill_in if drops else ready
        return replace(build(place, cause, actions, *drops, *lines, risk=risk), discards_messages=True)
    if is_of_event_notifications(service):
        return make_event_notification(server, place, service, "These are answers to an event notification")
    return None


def is_of_event_notifications(service: str | None) -> bool:
    """Return True if a service is the one from which SQL Server sends event notifications."""
    return service is not None and service.casefold().endswith(EVENT_NOTIFICATION)


def make_event_notification(server: ServerEvidence, place: RemedyPlace, service: str, subject: str) -> Remedy:
    """Advise how to recreate an event notification and end its old dialogs.

    ``subject`` begins the sentence of the cause.
    """
    cause = f"{subject} that is gone, or that has another broker instance than the target's database has now."
    actions = (
        "Run DROP EVENT NOTIFICATION and CREATE EVENT NOTIFICATION: the new one has the broker instance of today.",
        "Then end the old dialogs.",
        "Do not create a service for it.",
    )
    return end_conversations(server, place, service, cause, actions)


def name_spellings(stuck: StuckMessage) -> Remedy | None:
    """Advise senders to use the name of a nearly equal service, because a service cannot be renamed."""
    services = (miss for miss in stuck.near_misses if miss.object_type == SERVICE)
    miss = next((miss for miss in services if miss.service != stuck.service), None)
    if miss is None:
        return None
    cause = (
        f"The messages are for {named(stuck.service)}, but the service in {named(miss.database)} of instance"
        f" {named(miss.instance)} is called {named(miss.service)}."
    )
    actions = (
        "Use its name in BEGIN DIALOG and in the route, or create a service of the messages' spelling.",
        "Names are compared exactly, and a service cannot be renamed.",
    )
    return Remedy(stuck.place(stuck.database), cause, actions)


def begin_anew(stuck: StuckMessage) -> Remedy | None:
    """Advise to begin new dialogs for those bound to a broker instance which no known database has."""
    services = (miss for miss in stuck.near_misses if miss.object_type == SERVICE)
    miss = next((miss for miss in services if miss.differences == (OTHER_BROKER,)), None)
    if miss is None or stuck.last.pick is not None:
        return None
    cause = (
        f"The dialogs are bound to broker instance {named(stuck.broker)}, but {named(miss.database)} of instance"
        f" {named(miss.instance)}, which holds the service, has {named(miss.broker)}."
    )
    actions = (
        "END CONVERSATION, and begin them again without the old one: a dialog keeps its broker instance.",
        "If no database has the old one any more, nobody acknowledges that: END CONVERSATION … WITH CLEANUP.",
        "Correct routes that name the old one.",
    )
    place = stuck.place(stuck.database)
    risk = state_losses(stuck.estate.server, place, stuck.service, cleanup=True)
    return Remedy(place, cause, actions, risk=risk, discards_messages=True)


def notify_anew(stuck: StuckMessage) -> Remedy | None:
    """Advise how to recreate an event notification without a target, or return None for other messages."""
    if stuck.last.pick is not None or not is_of_event_notifications(stuck.from_service):
        return None
    if stuck.broker is None and open_closed(stuck) is not None:
        # A database that is not online may hold the service.
        return None
    subject = f"SQL Server sends these messages to service {named(stuck.service)} for an event notification"
    place = stuck.place(stuck.database or stuck.scope)
    return make_event_notification(stuck.estate.server, place, stuck.service, subject)


def open_closed(stuck: StuckMessage) -> Remedy | None:
    """Advise to open a database of the instance that is not online, if no known one holds the service."""
    return open_holder(stuck.estate.server, stuck.instance, stuck.service)


def end_refused(stuck: StuckMessage) -> Remedy | None:
    """Advise how to end dialogs bound to a database of the instance without the service."""
    broker = stuck.last.known_broker
    if broker is None or broker not in stuck.sql_instance.brokers:
        return None
    bound_databases = [one.name for one in stuck.sql_instance.databases.values() if has_id(one, broker)]
    cause = (
        f"The messages are bound to {named(min(bound_databases))}, which does not hold service"
        f" {named(stuck.service)}: SQL Server ends such a dialog with error 8490."
    )
    actions = (
        "End the dialog here too, and begin one that is not bound if there is more to send.",
        "Do not create the service for it: that does not bring the dialog back.",
    )
    place = stuck.place(stuck.database or stuck.scope)
    return end_conversations(stuck.estate.server, place, stuck.service, cause, actions, cleanup=False)


def end_dead(stuck: StuckMessage) -> Remedy | None:
    """Advise how to end dialogs with a notification service that has lost its client."""
    return end_dead_dialog(stuck.estate.server, stuck.place(stuck.database or stuck.scope), stuck.service)


def enable_forwarding(stuck: StuckMessage) -> Remedy:
    """Advise to enable forwarding on the endpoint. The reader must find its name first unless it was exported."""
    first = f"Route {named(stuck.verdict.rerouted_from)} of {named(stuck.database)} leads to this very instance"
    if stuck.database is None:
        first = "The messages come from the network"
    route = stuck.last.reported
    to = "" if route is None or route.address is None else f" to {named(route.address)}"
    forwarding = "is off" if stuck.sql_instance.is_forwarding_known else "is not known to be on"
    cause = (
        f"{first}, route {named(stuck.verdict.route_name)} of {named(MSDB)} leads on{to}, and message forwarding"
        f" {forwarding}."
    )
    endpoint = stuck.estate.server.endpoint(stuck.instance)
    name = None if endpoint is None else statements.identifier(endpoint.name)
    action = "Enable forwarding on the endpoint, or correct the routes."
    if name is None:
        action = (
            "Find out the name of the Service Broker endpoint and enable forwarding on it, or correct the routes."
        )
    return to_fill_in(
        stuck.place(MASTER),
        cause,
        (action,),
        *(("SELECT name FROM sys.service_broker_endpoints;",) if name is None else ()),
        f"ALTER ENDPOINT {name or '[<endpoint>]'} FOR SERVICE_BROKER (MESSAGE_FORWARDING = ENABLED);",
        risk=REASONS[Reason.FORWARDING_DISABLED].risk,
    )


def look_at_queue(stuck: StuckMessage) -> Remedy:
    """Advise a look at the target queue, because the routing is correct."""
    return look_for_queue(stuck.place(stuck.verdict.destination_database or stuck.scope), stuck.service)


def look_for_queue(place: RemedyPlace, service: str) -> Remedy:
    """Advise a look at the queue of a service. The reader must find its name first."""
    entry = REASONS[Reason.LOCAL_SERVICE]
    return to_fill_in(
        place,
        entry.cause,
        (*entry.actions, f"The queue is in {named(place.database)}."),
        list_queues(service),
        "ALTER QUEUE [<schema>].[<queue>] WITH STATUS = ON;",
    )


def list_queues(service: str) -> str | None:
    """Return the query for the queue of a service, or None if its name cannot be pasted."""
    name = statements.literal(service)
    query = "SELECT SCHEMA_NAME(q.schema_id), q.name, q.is_receive_enabled, q.is_enqueue_enabled"
    query += (
        " FROM sys.service_queues AS q JOIN sys.services AS s ON s.service_queue_id = q.object_id WHERE s.name = "
    )
    return None if name is None else f"{query}{name};"


def say(stuck: StuckMessage) -> Remedy:
    """Return the catalogue's words on the reason, if no statement helps."""
    entry = REASONS[stuck.verdict.reason]
    return Remedy(stuck.place(stuck.database), entry.cause, entry.actions)
