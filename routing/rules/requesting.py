"""Rule book, section 5: which messages open a request for a route, and what they ask."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

# What XML 1.0 does not allow as a character.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Request:
    """A request on record; ``ended_at`` is None while it has no end."""

    requested_at: int
    message_id: str
    ended_at: int | None = None

    def is_pending(self, t: int, message_id: str) -> bool:
        """Whether a message that is decided at ``t`` finds it pending."""
        is_earlier = (self.requested_at, self.message_id) < (t, message_id)
        return is_earlier and (self.ended_at is None or t < self.ended_at)

    def is_of(self, t: int, message_id: str) -> bool:
        """Whether it is this message's own."""
        return (self.requested_at, self.message_id) == (t, message_id)


@dataclass
class Scope:
    """The requests for one service in one database: those on record, and the one that messages open besides.

    Messages must come by `opens` in the order of (t, message_id).
    """

    on_record: tuple[Request, ...] = ()
    opened: Request | None = field(default=None, init=False)

    def opens(self, t: int, message_id: str) -> bool:
        """Whether a message that meets step 4 opens a request; else it finds one pending, and goes on."""
        if any(request.is_pending(t, message_id) for request in self.on_record):
            return False
        if self.opened is not None:
            return self.opened.is_of(t, message_id)
        if not any(request.is_of(t, message_id) for request in self.on_record):
            self.opened = Request(t, message_id)
        return True

    def is_settled(self, t: int, message_id: str) -> bool:
        """Whether no message from this one on opens a request that is not on record: one without end is there."""
        unended = (request for request in self.on_record if request.ended_at is None)
        return self.opened is not None or any(request.is_pending(t, message_id) for request in unended)

    def all(self) -> tuple[Request, ...]:
        """Every request: those on record, and the one that was opened besides."""
        return self.on_record if self.opened is None else (*self.on_record, self.opened)


@dataclass
class Requests:
    """The requests of one instance, by database and service; what is not there has none."""

    scopes: dict[tuple[str, str], Scope] = field(default_factory=dict)

    @classmethod
    def on_record(cls, rows: Iterable[tuple[str, str, Request]]) -> Requests:
        """Requests from rows of (database, service, request)."""
        found: dict[tuple[str, str], list[Request]] = {}
        for database, service, request in rows:
            found.setdefault((database, service), []).append(request)
        return cls({scope: Scope(tuple(requests)) for scope, requests in found.items()})

    def of(self, database: str, service: str) -> Scope:
        """The requests for a service in a database."""
        return self.scopes.setdefault((database, service), Scope())


def missing_route(service_name: str, namespace: str) -> str:
    """The MissingRoute message for a service (D7)."""
    name = _NOT_XML.sub("\ufffd", service_name)
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        name = name.replace(character, entity)
    return (
        f'<MissingRoute xmlns="{escaped_attribute(namespace)}"><SERVICE_NAME>{name}</SERVICE_NAME></MissingRoute>'
    )


def escaped_attribute(namespace: str) -> str:
    """A namespace as an attribute of XML holds it."""
    return namespace.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
