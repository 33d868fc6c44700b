"""A trouble of an estate that no waiting message shows, with its remedy."""

from __future__ import annotations

from dataclasses import dataclass

from routing.advice.remedy import Remedy
from routing.terms import JsonObject, Word


class TroubleKind(Word):
    """The kind of a trouble beside the messages that wait, the worst first."""

    BROKER_OFF = "BROKER_OFF"
    QUEUE_OFF = "QUEUE_OFF"
    QUEUE_NOT_READ = "QUEUE_NOT_READ"
    LOGIN_REFUSED = "LOGIN_REFUSED"
    TRANSPORT_FAILS = "TRANSPORT_FAILS"
    DIALOGS_IN_ERROR = "DIALOGS_IN_ERROR"
    ENDPOINTS_LEAK = "ENDPOINTS_LEAK"
    CLIENTS_GONE = "CLIENTS_GONE"
    KEY_CLOSED = "KEY_CLOSED"
    PORT_SHARED = "PORT_SHARED"


@dataclass(frozen=True)
class EstateTrouble:
    """A trouble in a database: ``count`` is its number of messages or endpoints, ``remedy`` the advice."""

    kind: TroubleKind
    summary: str
    count: int
    remedy: Remedy

    def as_object(self) -> JsonObject:
        """Return its JSON values. See docs/reference/json.md for the keys."""
        return {"kind": str(self.kind), "what": self.summary, "count": self.count, **self.remedy.as_object()}
