"""Route requests: which are pending, and which a message opens (rule book, 5)."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from .text import missing_route_body
from .times import utc

D7_NAMESPACE = "https://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRoute"

Asked = tuple[str, str, str]
"""What a request is for: instance, database of the scope, service."""
Moment = tuple[datetime, str]
"""When and for whom: (requested_at or t, message_id), the order in which requests are opened."""


class RequestBook:
    """The requests on record and those of this run.

    Messages must come in the order of their moments: then every request of the run that could be
    pending for a message has been opened before it.
    """

    def __init__(self, rows: list[dict[str, Any]] | None) -> None:
        """Take the route_requests rows as the requests on record."""
        self._record: dict[Asked, list[tuple[Moment, datetime | None]]] = defaultdict(list)
        for row in rows or ():
            asked = (row["instance_name"], row["database_name"], row["service_name"])
            requested_at = utc(row["requested_at"])
            assert requested_at is not None
            moment = (requested_at, row["message_id"])
            self._record[asked].append((moment, utc(row.get("ended_at"))))
        self._new: dict[Asked, Moment] = {}
        self._opened: dict[tuple[Asked, Moment], None] = {}

    def opens(self, asked: Asked, moment: Moment) -> bool:
        """Open a request for a message, or tell by False that one is pending for it.

        A new request has no end yet, so there is one at most for each thing asked for.
        """
        record = self._record.get(asked, ())
        at = moment[0]
        if any(made < moment and (end is None or at < end) for made, end in record):
            return False
        new = self._new.get(asked)
        if new is not None and new < moment:
            return False
        if all(made != moment for made, _ in record):
            self._new[asked] = moment
        self._opened[asked, moment] = None
        return True

    def rows(self, namespace: str, run_id: str) -> list[dict[str, Any]]:
        """Write one new_route_requests row for each opened request."""
        return [
            {
                "instance_name": instance,
                "database_name": database,
                "service_name": service,
                "requested_at": requested_at,
                "message_id": message_id,
                "body": missing_route_body(namespace, service),
                "run_id": run_id,
            }
            for (instance, database, service), (requested_at, message_id) in self._opened
        ]
