"""Advise on services that client libraries create for themselves, and leave behind when a client fails."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from routing.advice import statements
from routing.advice.remedy import Confidence, EstateTrouble, RemedyPlace, TroubleKind, to_fill_in
from routing.cases.server_evidence import ServerEvidence
from routing.groups import group_pairs
from routing.render.phrases import join_words, named
from routing.render.wording import count
from routing.rules.text import GUID

_WMI_SERVICE = "SQL/Notifications/ProcessWMIEventProviderNotification/v1.0"
_NOTIFICATIONS, _TABLES, _WMI = "SqlDependency", "SqlTableDependency", "WMI events"
_OF_CLIENT = re.compile(rf"sqlquerynotificationservice(.+)|(.+_{GUID})_(?:sender|receiver)", re.IGNORECASE)
_RISK = "A client that still runs gets no more changes."
HABITS = {
    _NOTIFICATIONS: "Let clients of query notifications call SqlDependency.Start once, and Stop when they end.",
    _TABLES: "Let programs call Stop or Dispose when they end.",
    _WMI: "Find the program that queries WMI for events of SQL Server, such as an alert of its Agent, or SCOM.",
}
"""The advice to programs that use a library."""
CLIENT_ACTION = HABITS[_NOTIFICATIONS]
_ACTIONS = {
    _NOTIFICATIONS: (
        CLIENT_ACTION,
        "Drop the service, queue and procedure of each client that is gone: DROP SERVICE ends its dialogs.",
    ),
    _TABLES: (
        "Drop the trigger first: it stays on the table, and without its conversation every change there fails.",
        "Then drop the other objects: DROP SERVICE ends the dialogs. Drop the message types of this name too.",
        HABITS[_TABLES],
        "The library's watchdog drops what others leave, after 3 minutes, but not after a restart.",
    ),
    _WMI: (
        HABITS[_WMI],
        "Drop the event notifications that it left. Leave the service and its queue: SQL Server uses them again.",
    ),
}
_LOOK_FIRST = "First look at tasks_waiting in sys.dm_broker_queue_monitors: a live client waits at its queue."


class LibraryClient(NamedTuple):
    """A client: its library, and the part of the name that its objects share."""

    library: str
    name: str


@dataclass
class LeftObjects:
    """The objects of a client that nobody is known to use. ``is_watched`` is False if no readers were exported."""

    messages: int = 0
    open_dialogs: int = 0
    ended_dialogs: int = 0
    schema: str | None = None
    is_watched: bool = False


LeftClients = Mapping[tuple[RemedyPlace, LibraryClient], LeftObjects]


def find_client(*services: str | None) -> LibraryClient | None:
    """Return the client that created one of these services, or None."""
    for service in services:
        match = _OF_CLIENT.fullmatch(service or "")
        if match is not None and match.lastindex is not None:
            return LibraryClient((_NOTIFICATIONS, _TABLES)[match.lastindex - 1], match[match.lastindex])
        if service == _WMI_SERVICE:
            return LibraryClient(_WMI, "")
    return None


def drop_first(client: LibraryClient) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    """Return the actions for a client whose service is gone, and the statement to run before its dialogs end."""
    if client.library == _NOTIFICATIONS:
        return (CLIENT_ACTION,), ()
    return _ACTIONS[client.library], tuple(_drop(client, None))[:1]


def find_left(server: ServerEvidence, open_states: Collection[str], over_states: Collection[str]) -> LeftClients:
    """Return the objects of clients in each database, unless a program waits at their queue."""
    left: dict[tuple[RemedyPlace, LibraryClient], LeftObjects] = defaultdict(LeftObjects)
    live = set()
    for (instance, database), queue in server.list_queues():
        client = find_client(*queue.services)
        if client is not None:
            key = RemedyPlace(instance, database), client
            objects = left[key]
            objects.messages += queue.messages or 0
            objects.schema, objects.is_watched = queue.schema, queue.waiting is not None
            live |= {key} if queue.waiting else set()
    for counted in server.counts:
        client = find_client(counted.service, counted.far_service)
        if client is not None:
            objects = left[RemedyPlace(counted.instance, counted.database), client]
            objects.open_dialogs += counted.endpoints if counted.state in open_states else 0
            objects.ended_dialogs += counted.endpoints if counted.state in over_states else 0
    return {key: objects for key, objects in left.items() if key not in live}


def report_left(left: LeftClients, many_open: int, many_ended: int) -> Iterator[EstateTrouble]:
    """Yield the databases with unread messages, many ended or very many open dialogs of clients of a library."""
    placed = (((place, client.library), (client, objects)) for (place, client), objects in left.items())
    for (place, library), pairs in group_pairs(placed).items():
        numbers = [(objects.messages, objects.open_dialogs, objects.ended_dialogs) for _, objects in pairs]
        messages, opened, ended = map(sum, zip(*numbers, strict=True))
        if not messages and opened < many_open and ended < many_ended:
            continue
        client, largest = max(pairs, key=lambda pair: (pair[1].messages, pair[1].open_dialogs))
        subject = f"{count(len(pairs), 'client')} of {library} {'has' if len(pairs) == 1 else 'have'}"
        counts = (messages, "unread message"), (opened + ended, "dialog")
        subject += f" {join_words(count(number, noun) for number, noun in counts if number)}"
        watched = all(objects.is_watched for _, objects in pairs)
        reader = "no program waits for messages" if watched else "no export shows whether these still run"
        remedy = to_fill_in(
            place,
            f"{subject} in {named(place.database)}, and {reader}: a client that fails leaves its objects behind.",
            (*(() if watched else (_LOOK_FIRST,)), *_ACTIONS[library]),
            *_drop(client, largest.schema),
            risk=_RISK if library == _WMI else f"The statements delete the client's unread messages. {_RISK}",
            confidence=Confidence.LIKELY if watched else Confidence.TO_BE_CHECKED,
        )
        yield EstateTrouble(TroubleKind.CLIENTS_GONE, f"{subject} left", messages + opened + ended, remedy)


def _drop(client: LibraryClient, schema: str | None) -> Iterator[str | None]:
    """Yield the statements that drop the objects of a client, as its library names them."""
    if client.library == _WMI:
        yield f"SELECT name FROM sys.server_event_notifications WHERE service_name = N'{_WMI_SERVICE}';"
        yield "DROP EVENT NOTIFICATION [<name>] ON SERVER;"
        return
    name, owner = client.name, statements.identifier(schema) or "[<schema>]"
    objects: tuple[tuple[str, str], ...] = (
        ("SERVICE", f"SqlQueryNotificationService{name}"),
        ("QUEUE", f"SqlQueryNotificationQueue{name}"),
        ("PROCEDURE", f"SqlQueryNotificationStoredProcedure{name}"),
    )
    if client.library == _TABLES:
        ends = [(kind, f"{name}_{end}") for kind in ("SERVICE", "QUEUE") for end in ("Sender", "Receiver")]
        objects = (
            *(("TRIGGER", f"tr_{name}_Sender"), *ends),
            *(("CONTRACT", name), ("PROCEDURE", f"{name}_QueueActivationSender")),
        )
    for kind, object_name in objects:
        pasted = statements.identifier(object_name)
        prefix = "" if kind in ("SERVICE", "CONTRACT") else f"{owner}."
        yield None if pasted is None else f"DROP {kind} {prefix}{pasted};"
