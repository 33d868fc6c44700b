"""Rule book, section 5: find messages that open a route request or wait for one, and write the request."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple

from routing.rules import text

# The characters that XML 1.0 does not allow.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ConversationEndpoint(NamedTuple):
    """One endpoint of a conversation, which waits as a whole (D10).

    Of endpoints that ask with an equal (t, message_id), the smallest opens the request.
    """

    conversation_id: str
    is_initiator: bool

    @classmethod
    def of_row(cls, conversation_id: str | None, is_initiator: bool | None) -> ConversationEndpoint | None:
        """Return the endpoint of a row, or None if a value is missing or the id is not a GUID."""
        if conversation_id is None or is_initiator is None or not text.is_guid(conversation_id):
            return None
        return cls(text.fold(conversation_id), is_initiator)


@dataclass(frozen=True)
class RouteRequest:
    """A request for a route.

    ``ended_at`` is None while it is pending. ``endpoint`` is None if it is unknown.
    """

    requested_at: int
    message_id: str
    ended_at: int | None = None
    endpoint: ConversationEndpoint | None = None

    def is_pending(self, t: int, message_id: str) -> bool:
        """Return True if the request is pending for a message that is decided at ``t``."""
        is_earlier = (self.requested_at, self.message_id) < (t, message_id)
        return is_earlier and (self.ended_at is None or t < self.ended_at)

    def is_of(self, t: int, message_id: str) -> bool:
        """Return True if this message opened the request."""
        return (self.requested_at, self.message_id) == (t, message_id)


class RequestAction(Enum):
    """The action of a message that meets step 4."""

    OPENS = auto()
    """The message opens a request, or its own one again, and waits for the route."""
    WAITS = auto()
    """A request of its own conversation endpoint is pending, so the message waits (D10)."""
    GOES_ON = auto()
    """A request of another endpoint is pending, so the message continues with step 5 (D2)."""

    @property
    def stops(self) -> bool:
        """True if step 4 stops the message."""
        return self is not RequestAction.GOES_ON


@dataclass
class RequestScope:
    """The requests for one service in one database: on record, and opened by messages.

    Messages must ask in the order of (t, message_id, endpoint). After all have asked, any order is allowed.
    """

    on_record: tuple[RouteRequest, ...] = ()
    opened: RouteRequest | None = field(default=None, init=False)
    reopened: dict[tuple[int, str], RouteRequest] = field(default_factory=dict, init=False)
    """The requests on record that messages opened again, by position, with the endpoint of the message."""

    def ask(self, t: int, message_id: str, endpoint: ConversationEndpoint | None) -> RequestAction:
        """Return the action of a message in step 4. ``endpoint`` is None for a message without a dialog."""
        if self.find_awaited(t, message_id, endpoint) is not None:
            return RequestAction.WAITS
        if self.is_pending_on_record(t, message_id):
            return RequestAction.GOES_ON
        if self.opened is not None and self.opened.is_pending(t, message_id):
            return RequestAction.GOES_ON
        if self.is_on_record(t, message_id):
            self._reopen(t, message_id, endpoint)
        elif self.opened is None or not self.opened.is_of(t, message_id):
            self.opened = RouteRequest(t, message_id, None, endpoint)
        return RequestAction.OPENS

    def find_awaited(self, t: int, message_id: str, endpoint: ConversationEndpoint | None) -> RouteRequest | None:
        """Return a pending request of the message's own endpoint, or None."""
        if endpoint is None:
            return None
        opened = self.opened
        if opened is not None and opened.endpoint == endpoint and opened.is_pending(t, message_id):
            return opened
        return _find_pending(self._by_endpoint.get(endpoint, ()), t, message_id)

    def _reopen(self, t: int, message_id: str, endpoint: ConversationEndpoint | None) -> None:
        """Record the first endpoint that opens this message's request again."""
        position = (t, message_id)
        if position in self.reopened:
            return
        self.reopened[position] = RouteRequest(t, message_id, None, endpoint)
        if endpoint is not None:
            own_requests = (request for request in self.on_record if request.is_of(t, message_id))
            self._by_endpoint[endpoint] = _lasting([*self._by_endpoint.get(endpoint, ()), *own_requests])

    def is_pending_on_record(self, t: int, message_id: str) -> bool:
        """Return True if a request on record is pending for a message."""
        return _find_pending(self.lasting, t, message_id) is not None

    def is_on_record(self, t: int, message_id: str) -> bool:
        """Return True if a message's own request is on record."""
        return (t, message_id) in self._own_positions

    @cached_property
    def lasting(self) -> Sequence[RouteRequest]:
        """The requests on record that can be pending for a message, in order."""
        return _lasting(self.on_record)

    @cached_property
    def _by_endpoint(self) -> dict[ConversationEndpoint, Sequence[RouteRequest]]:
        """The requests on record by their endpoint, if that is known."""
        requests: dict[ConversationEndpoint, list[RouteRequest]] = {}
        for request in self.on_record:
            if request.endpoint is not None:
                requests.setdefault(request.endpoint, []).append(request)
        return {endpoint: _lasting(of_endpoint) for endpoint, of_endpoint in requests.items()}

    @cached_property
    def _own_positions(self) -> frozenset[tuple[int, str]]:
        return frozenset(map(_position, self.on_record))

    def is_settled(self, t: int, message_id: str) -> bool:
        """Return True if neither this message nor a later one opens a request."""
        unended = (request for request in self.lasting if request.ended_at is None)
        return self.opened is not None or any(request.is_pending(t, message_id) for request in unended)

    def all(self) -> tuple[RouteRequest, ...]:
        """Return the requests on record and the one that a message opened."""
        return self.on_record if self.opened is None else (*self.on_record, self.opened)

    def all_opened(self) -> Iterator[RouteRequest]:
        """Yield every request that messages opened, including those on record that were opened again."""
        yield from self.reopened.values()
        if self.opened is not None:
            yield self.opened


def _position(request: RouteRequest) -> tuple[int, str]:
    return request.requested_at, request.message_id


def _lasting(requests: Iterable[RouteRequest]) -> Sequence[RouteRequest]:
    """Return requests in order, without those that end no later than an earlier one.

    If any request is pending for a message, so is the last of these before it.
    """
    lasting: list[RouteRequest] = []
    for request in sorted(requests, key=_position):
        if not lasting or _lasts_longer(request, lasting[-1]):
            lasting.append(request)
    return lasting


def _find_pending(lasting: Sequence[RouteRequest], t: int, message_id: str) -> RouteRequest | None:
    """Return the last request before a message if it is pending, otherwise None."""
    before = bisect_left(lasting, (t, message_id), key=_position) - 1
    return lasting[before] if before >= 0 and lasting[before].is_pending(t, message_id) else None


def _lasts_longer(request: RouteRequest, other: RouteRequest) -> bool:
    """Return True if a request ends later than another, or never ends."""
    if request.ended_at is None or other.ended_at is None:
        return other.ended_at is not None
    return request.ended_at > other.ended_at


@dataclass
class InstanceRequests:
    """The requests of one instance by database and service."""

    scopes: dict[tuple[str, str], RequestScope] = field(default_factory=dict)

    @classmethod
    def on_record(cls, rows: Iterable[tuple[str, str, RouteRequest]]) -> InstanceRequests:
        """Return requests from rows of (database, service, request)."""
        by_scope: dict[tuple[str, str], list[RouteRequest]] = {}
        for database, service, request in rows:
            by_scope.setdefault((database, service), []).append(request)
        return cls({scope: RequestScope(tuple(requests)) for scope, requests in by_scope.items()})

    def of(self, database: str, service: str) -> RequestScope:
        """Return the requests for a service in a database, creating an empty scope if needed."""
        return self.scopes.setdefault((database, service), RequestScope())

    def all_opened(self) -> Iterator[tuple[str, str, RouteRequest]]:
        """Yield (database, service, request) for every request that messages opened."""
        for (database, service), scope in self.scopes.items():
            for request in scope.all_opened():
                yield database, service, request


def missing_route(service_name: str, namespace: str) -> str:
    """Return the MissingRoute message for a service (D7)."""
    name = _NOT_XML.sub("\ufffd", service_name)
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        name = name.replace(character, entity)
    return (
        f'<MissingRoute xmlns="{escaped_attribute(namespace)}"><SERVICE_NAME>{name}</SERVICE_NAME></MissingRoute>'
    )


def contract_of(namespace: str) -> str:
    """Return the contract of requests (D7). Their message type is the namespace of the bodies."""
    return namespace.removesuffix("/MissingRoute")


def escaped_attribute(namespace: str) -> str:
    """Return a namespace escaped for an XML attribute."""
    return namespace.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
