"""Find the pending route requests, and those that messages open (rule book, 5)."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from .text import is_guid, missing_route_body
from .times import utc

D7_NAMESPACE = "https://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRoute"

Asked = tuple[str, str, str]
"""The subject of a request: instance, database of the scope, service."""
Moment = tuple[datetime, str]
"""The order in which requests are opened: (requested_at or t, message_id)."""


End = tuple[str, bool]
"""The owner of a request: the conversation in lower case, and whether its initiator sent the message."""


def end_of(row: dict[str, Any]) -> End | None:
    """Return the endpoint that owns a request, or None if it is unknown."""
    conversation, is_initiator = row.get("conversation_id"), row.get("is_initiator")
    if is_initiator is None or conversation is None or not is_guid(conversation):
        return None
    return conversation.lower(), is_initiator


class RequestBook:
    """The requests on record and those of this run.

    Messages must come in the order of their times and endpoints. So every request that may be pending for a
    message is already open, by the smallest endpoint.
    """

    def __init__(self, rows: list[dict[str, Any]] | None) -> None:
        """Read the requests on record from rows of route_requests."""
        self._record: dict[Asked, list[tuple[Moment, datetime | None, End | None]]] = defaultdict(list)
        for row in rows or ():
            asked = (row["instance_name"], row["database_name"], row["service_name"])
            requested_at = utc(row["requested_at"])
            assert requested_at is not None
            moment = (requested_at, row["message_id"])
            self._record[asked].append((moment, utc(row.get("ended_at")), end_of(row)))
        self._new: dict[Asked, Moment] = {}
        self._opened: dict[tuple[Asked, Moment], End] = {}

    def stops(self, asked: Asked, moment: Moment, end: End) -> bool:
        """Return whether a message waits: it opens a request, or its conversation waits for a pending one.

        A new request has no end yet, so each subject has at most one.
        """
        pending = [
            (made, whose)
            for made, over, whose in self._record.get(asked, ())
            if made < moment and (over is None or moment[0] < over)
        ]
        new = self._new.get(asked)
        if new is not None and new < moment:
            pending.append((new, None))
        if pending:
            return any(end in (whose, self._opened.get((asked, made))) for made, whose in pending)
        if all(made != moment for made, _, _ in self._record.get(asked, ())):
            self._new[asked] = moment
        # Of messages with an equal moment, the first one has the smallest endpoint.
        self._opened.setdefault((asked, moment), end)
        return True

    def rows(self, namespace: str, run_id: str) -> list[dict[str, Any]]:
        """Return one row of new_route_requests for each opened request."""
        return [
            {
                "instance_name": instance,
                "database_name": database,
                "service_name": service,
                "requested_at": requested_at,
                "message_id": message_id,
                "conversation_id": conversation,
                "is_initiator": is_initiator,
                "message_type_name": namespace,
                "service_contract_name": namespace.removesuffix("/MissingRoute"),
                "body": missing_route_body(namespace, service),
                "run_id": run_id,
            }
            for asked, end in self._opened.items()
            for (instance, database, service), (requested_at, message_id) in [asked]
            for conversation, is_initiator in [end]
        ]
