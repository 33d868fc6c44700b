"""What is known besides a question: the estate, its dialogs, the requests on record, and the other messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from routing.rules import text
from routing.rules.estate import ARRIVALS, Instance
from routing.rules.rejecting import rejections
from routing.rules.requesting import Request, Requests
from routing.rules.resolving import DIALOG_COLUMNS, MESSAGE_COLUMNS, NO_DIALOG, Dialog, Message
from routing.storage.columns import Columns, instances_of
from routing.storage.networks import requests_of
from routing.terms import BROKER_CONFIGURATION_SERVICE

Row = Mapping[str, Any]
"""A row of messages; times are microseconds since 1970."""
Chunks = Callable[[str, str], Iterable[Mapping[str, Columns]]]
"""From an instance and a service to its messages (``messages``) and their dialogs (``dialogs``, if there are any).

In chunks by the order of (t, message_id); inside a chunk in any order.
"""
_End = tuple[str, str | None, str | None, bool]


def message_of(row: Row, as_of: int | None) -> Message:
    """A row without a fault as the rules read it (section 0); ``as_of`` is the time of all messages, if any."""
    return Message.of_row(*(row[name] for name in MESSAGE_COLUMNS), as_of=as_of)


@dataclass(frozen=True)
class Dialogs:
    """Dialogs by instance, database, conversation and end, each of which has one."""

    by_end: Mapping[_End, Dialog]

    @classmethod
    def of_columns(cls, dialogs: Columns | None) -> Dialogs:
        """The dialogs of a table's columns."""
        return cls({} if dialogs is None else {_end_of(row): _dialog_of(row) for row in dialogs.dicts()})

    def of(self, message: Message) -> Dialog:
        """The dialog of a message; one that is not listed says nothing."""
        end = (message.instance, message.database, message.conversation_id, message.is_initiator)
        return self.by_end.get(end, NO_DIALOG)


def _end_of(row: Row) -> _End:
    conversation = text.fold(row["conversation_id"] or "")
    return (row["instance_name"], row["database_name"], conversation, row["is_initiator"])


def _dialog_of(row: Row) -> Dialog:
    return Dialog.of_row(*(row[name] for name in DIALOG_COLUMNS))


def narrow_to(tables: Mapping[str, Columns], row: Row) -> dict[str, Columns]:
    """The columns of an instance without the routes and services that a message can have nothing to do with.

    Routes are told where the message may search, and decide other messages for its service wherever they name it,
    any service, or the one that is asked for routes.
    """
    service, searched = row["to_service_name"], (row["database_name"] or ARRIVALS, ARRIVALS)
    named = (service, None, "", BROKER_CONFIGURATION_SERVICE)
    routes, services = tables["routes"], tables["services"]
    told = enumerate(routes.rows("database_name", "remote_service_name"))
    near = [place for place, (database, name) in told if database in searched or name in named]
    held = [place for place, name in enumerate(services.values["name"]) if name == service]
    return {**tables, "routes": routes.take(near), "services": services.take(held)}


@dataclass(frozen=True)
class Known:
    """What a message is judged by; ``others`` is asked only where a request may be pending (section 5)."""

    instances: Mapping[str, Instance]
    dialogs: Dialogs
    on_record: Mapping[tuple[str, str], list[tuple[str, str, Request]]]
    chunks: Chunks

    @classmethod
    def of_columns(cls, tables: Mapping[str, Columns], chunks: Chunks) -> Known:
        """What columns of the configuration, dialogs and route_requests say, in rows without a fault."""
        on_record: dict[tuple[str, str], list[tuple[str, str, Request]]] = defaultdict(list)
        if "route_requests" in tables:
            for (instance, database, service), requests in requests_of(tables["route_requests"]).items():
                on_record[instance, service] += [(database, service, request) for request in requests]
        return cls(instances_of(tables), Dialogs.of_columns(tables.get("dialogs")), on_record, chunks)

    def requests(self, message: Message) -> Requests:
        """The requests on record for a message's service on its instance."""
        return Requests.on_record(self.on_record.get((message.instance, message.service), ()))

    def others(self, message: Message, as_of: int | None) -> Iterator[tuple[Message, Dialog]]:
        """All messages of its instance for its service that can be judged, by (t, message_id), with dialogs."""
        for chunk in self.chunks(message.instance, message.service):
            dialogs = Dialogs.of_columns(chunk.get("dialogs"))
            rows = chunk["messages"].dicts()
            sound = (row for row in rows if not rejections(row, self.instances.get(row["instance_name"])))
            read = sorted((message_of(row, as_of) for row in sound), key=lambda each: (each.t, each.message_id))
            yield from ((each, dialogs.of(each)) for each in read)
