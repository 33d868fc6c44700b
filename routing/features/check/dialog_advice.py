"""What to do where a dialog is over: its other end is gone, and nobody will answer."""

from __future__ import annotations

from routing.features.check import pasting
from routing.features.check.pasting import named
from routing.features.check.stuck_groups import MessageRemedy, ready, to_fill_in

QUERY_NOTIFICATION = "sqlquerynotificationservice"
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


def end_conversations(words: str, database: str, service: str) -> MessageRemedy:
    """Advise how to find the conversations with a service, and end one of them."""
    name = pasting.literal(service)
    query = None
    if name is not None:
        query = (
            "SELECT conversation_handle, state_desc, far_broker_instance FROM sys.conversation_endpoints"
            f" WHERE far_service = {name};"
        )
    return to_fill_in(words, database, query, "END CONVERSATION '<conversation_handle>' WITH CLEANUP;")


def end_dead_dialog(database: str, service: str) -> MessageRemedy | None:
    """Advise on messages for a notification service that is gone; None for any other service."""
    name = service.casefold()
    if name.startswith(QUERY_NOTIFICATION):
        words = (
            f"A client of query notifications (SqlDependency) made service {named(service)} for itself, and the"
            " service is dropped when the client goes: nobody waits for these messages. End the dialogs, and do"
            " not create the service. A client that calls SqlDependency.Stop leaves none."
        )
        literal = pasting.literal(service)
        lines = [None if literal is None else line.replace("{}", literal) for line in _END_ALL]
        return ready(words, database, *lines)
    if is_of_event_notifications(service):
        return make_event_notification(
            "These are answers to an event notification that is gone", database, service
        )
    return None


def is_of_event_notifications(service: str | None) -> bool:
    """Return True if a service is the one from which SQL Server sends event notifications."""
    return service is not None and service.casefold().endswith(EVENT_NOTIFICATION)


def make_event_notification(words: str, database: str, service: str) -> MessageRemedy:
    """Advise how to create an event notification anew, and end its old dialogs."""
    words += (
        ", or that has another broker id than the target's database has now. DROP EVENT NOTIFICATION and CREATE"
        " EVENT NOTIFICATION make it anew, with the broker id of today; then end the old dialogs. Do not create a"
        " service for it."
    )
    return end_conversations(words, database, service)
