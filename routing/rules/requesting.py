"""Rule book, section 5: which messages open a request for a route, and what they ask."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

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

    Messages must come by `opens` in the order of (t, message_id); once all have come, they may come again in any.
    """

    on_record: tuple[Request, ...] = ()
    opened: Request | None = field(default=None, init=False)

    def opens(self, t: int, message_id: str) -> bool:
        """Whether a message that meets step 4 opens a request; else it finds one pending, and goes on."""
        if self.is_pending_on_record(t, message_id):
            return False
        if self.opened is not None and self.opened.is_pending(t, message_id):
            return False
        if not self.is_on_record(t, message_id):
            self.opened = Request(t, message_id)
        return True

    def is_pending_on_record(self, t: int, message_id: str) -> bool:
        """Whether a message finds a request on record pending."""
        after = bisect_left(self._lasting, (t, message_id), key=_position)
        near = self._lasting[max(after - 1, 0) : after + 1]
        return any(request.is_pending(t, message_id) for request in near)

    def is_on_record(self, t: int, message_id: str) -> bool:
        """Whether a message's own request is on record."""
        return (t, message_id) in self._own

    @cached_property
    def _lasting(self) -> Sequence[Request]:
        """The requests on record in their order, each of which ends later than all before it.

        Whoever finds another one pending finds one of these, and finds the last that was made before.
        """
        found: list[Request] = []
        for request in sorted(self.on_record, key=_position):
            last = found[-1] if found else None
            if last is None or _lasts_longer(request, last):
                found.append(request)
        return found

    @cached_property
    def _own(self) -> frozenset[tuple[int, str]]:
        return frozenset(map(_position, self.on_record))

    def is_settled(self, t: int, message_id: str) -> bool:
        """Whether no message from this one on opens a request that is not on record: one without end is there."""
        unended = (request for request in self._lasting if request.ended_at is None)
        return self.opened is not None or any(request.is_pending(t, message_id) for request in unended)

    def all(self) -> tuple[Request, ...]:
        """Every request: those on record, and the one that was opened besides."""
        return self.on_record if self.opened is None else (*self.on_record, self.opened)


def _position(request: Request) -> tuple[int, str]:
    return request.requested_at, request.message_id


def _lasts_longer(request: Request, other: Request) -> bool:
    """Whether a request ends after another, or never and the other does."""
    if request.ended_at is None or other.ended_at is None:
        return other.ended_at is not None
    return request.ended_at > other.ended_at


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
