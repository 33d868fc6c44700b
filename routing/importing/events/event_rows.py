"""Convert an event into a row of ``observed_routing`` or an acknowledgement. Fields have several names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from xml.parsers import expat

from routing.config import parse_time
from routing.errors import quote
from routing.rules import text
from routing.terms import CLASSIFY_EVENT, FORWARD_DROPPED, FORWARD_SENT, UNDELIVERABLE, Outcome, ReadRow, TableRow

# The XML of one event → its fields by name. No document type, no entity and no file is ever opened.
#
# By expat of the standard library, whose handlers see a document type before anything of it is read: it is
# refused.


LONGEST = 1_000_000
"""The character limit of an event of Service Broker."""
_DEEPEST = 20


class EventField(NamedTuple):
    """A field or an action: its value, and its text in a map or None."""

    value: str | None
    text: str | None


@dataclass
class ParsedEvent:
    """One event: its name and time as they are written, its fields and actions by their names in lower case."""

    name: str = ""
    timestamp: str | None = None
    fields: dict[str, EventField] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """The same for one event in every file."""
        fields = [(name, *event_field) for name, event_field in sorted(self.fields.items())]
        written = json.dumps([self.name, self.timestamp, fields])
        return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()

    def first(self, *names: str) -> EventField | None:
        """Return the first of some fields that has a value or a text."""
        candidates = (self.fields.get(name) for name in names)
        return next(
            (
                event_field
                for event_field in candidates
                if event_field is not None and (event_field.value or event_field.text)
            ),
            None,
        )


class BrokenEventError(ValueError):
    """The reason why a text is not a readable event."""


def parse_event(text: str) -> ParsedEvent:
    """Return the event that a text of XML is. Raises BrokenEventError."""
    if len(text) > LONGEST:
        raise BrokenEventError(f"it has {len(text):,} characters, more than {LONGEST:,}")
    reader = _Reader()
    try:
        reader.parser.Parse(text, True)
    except expat.ExpatError as error:
        raise BrokenEventError(f"it is not well-formed XML: {error}") from None
    # Characters that no encoding can write.
    except UnicodeEncodeError:
        raise BrokenEventError("it contains half of a character") from None
    if reader.event is None:
        raise BrokenEventError("it has no event")
    return reader.event


class _Reader:
    """The handlers of expat for one document."""

    def __init__(self) -> None:
        self.event: ParsedEvent | None = None
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._path: list[str] = []
        self._field: str | None = None
        self._parts: dict[str, list[str]] = {}

    def _refuse(self, *_: object) -> None:
        raise BrokenEventError("it declares a document type or an entity, which no event does")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(tag)
        if len(self._path) > _DEEPEST:
            raise BrokenEventError(f"it is more than {_DEEPEST} elements deep")
        if tag == "event" and self.event is None:
            self.event = ParsedEvent(attributes.get("name", "").strip().lower(), attributes.get("timestamp"))
        elif tag in ("data", "action") and self._path[-2:-1] == ["event"]:
            self._field, self._parts = attributes.get("name", "").strip().lower(), {}

    def _text(self, text: str) -> None:
        tag = self._path[-1]
        if self._field is not None and tag in ("value", "text") and self._path[-2] in ("data", "action"):
            self._parts.setdefault(tag, []).append(text)

    def _end(self, tag: str) -> None:
        self._path.pop()
        if tag in ("data", "action") and self._field is not None and self.event is not None:
            event_field = EventField(self._joined("value"), self._joined("text"))
            # A field before an action of the same name.
            self.event.fields.setdefault(self._field, event_field)
            self._field = None

    def _joined(self, tag: str) -> str | None:
        return "".join(self._parts[tag]).strip() if tag in self._parts else None


ACKNOWLEDGEMENT = "ACKNOWLEDGEMENT"

# By the names of Extended Events and of the trace classes before them.
SOURCES = {
    "broker_message_classify": CLASSIFY_EVENT,
    "broker:message classify": CLASSIFY_EVENT,
    "broker_forwarded_message_sent": FORWARD_SENT,
    "broker:forwarded message sent": FORWARD_SENT,
    "broker_forwarded_message_dropped": FORWARD_DROPPED,
    "broker:forwarded message dropped": FORWARD_DROPPED,
    "broker_message_undeliverable": UNDELIVERABLE,
    "broker:message undeliverable": UNDELIVERABLE,
    "broker_remote_message_acknowledgement": ACKNOWLEDGEMENT,
    "broker:remote message acknowledgement": ACKNOWLEDGEMENT,
}
ROUTE_TYPES = {"1": "LOCAL", "2": "REMOTE", "3": "DELAYED"}
"""The numbers of the trace class. Extended Events also give a text."""
_OUTCOMES = {"LOCAL": Outcome.DELIVERED, "REMOTE": Outcome.SENT, "DELAYED": Outcome.DELAYED}
_YES, _NO = ("true", "1", "initiator"), ("false", "0", "target")
_NUMBERS = ("delayed_error_number", "error_number", "error", "dropped_error_number")
_REASONS = ("dropped_reason", "message_drop_reason", "error_message", "delayed_reason")
_NEXT_HOPS = ("next_hop", "target_user_name", "targetusername", "target_login_name", "targetloginname")
_INT, _BIGINT = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True)
class ReadEvent:
    """The result of an event: a row, or the acknowledgement (``is_acknowledgement``) of the dialog that it names.

    ``database_id`` is that of the event, None where it tells none or the database's name.
    """

    row: TableRow
    database_id: int | None
    is_acknowledgement: bool = False


def read_event(event: ParsedEvent, instance: str) -> ReadEvent | None:
    """Convert an event of an instance into a row, or return None if it does not concern routes.

    Raises BrokenEventError.
    """
    source = SOURCES.get(event.name)
    if source is None:
        return None
    fields = ("acknowledgement_type", "event_subclass", "eventsubclass")
    # A sent acknowledgement does not concern the own dialog.
    if source == ACKNOWLEDGEMENT and any("sent" in word for word in _words(event, *fields)):
        return None
    row = _common(event, instance, source)
    if source == ACKNOWLEDGEMENT:
        return ReadEvent(row, _database_id(event), is_acknowledgement=True)
    row |= _OF_SOURCE[source](event, row)
    return ReadEvent(row, _database_id(event))


def _common(event: ParsedEvent, instance: str, source: str) -> TableRow:
    conversation = _text(event, "conversation_id")
    conversation_id = None if conversation is None else text.printed_guid(conversation)
    if conversation_id is None:
        raise BrokenEventError(f"its conversation_id is {quote(conversation)} and not a GUID")
    handle = _text(event, "conversation_handle")
    role, number = (
        _flag(event, "is_initiator", "role_name", "rolename"),
        _number(event, "message_sequence", most=_BIGINT),
    )
    number = _number(event, "message_sequence_number", "sequence", most=_BIGINT) if number is None else number
    return {
        "instance_name": instance,
        "database_name": _text(event, "database_name"),
        "conversation_id": conversation_id,
        "conversation_handle": None if handle is None else text.printed_guid(handle),
        "is_initiator": role,
        "message_sequence_number": number,
        # Named once the database of its id is known.
        "message_id": None,
        "observed_at": _time(event),
        "source": source,
        "status_text": _text(event, *_REASONS),
        "error_number": _number(event, *_NUMBERS) or None,
        "to_service_name": _text(event, "to_service_name", "target_service_name"),
        "to_broker_instance": _text(event, "to_broker_instance", "to_broker_name"),
        "from_service_name": _text(event, "from_service_name"),
        "from_broker_instance": _text(event, "from_broker_instance", "from_broker_name"),
        "event_hash": event.hash,
        "next_hop": _text(event, *_NEXT_HOPS),
        "fragment_number": _number(event, "fragment_number", most=_BIGINT),
        "remaining_hop_count": _number(event, "remaining_hop_count", "hop_count", "hops_remaining"),
        "time_to_live_seconds": _number(event, "time_to_live_sec", "time_to_live", most=_BIGINT),
        "live_time_seconds": _number(event, "live_time_sec", "live_time", most=_BIGINT),
        "error_state": _number(event, "error_state"),
        "error_severity": _number(event, "error_severity"),
    }


def _classified(event: ParsedEvent, row: ReadRow) -> TableRow:
    route_field = event.first("route_type", "event_subclass", "eventsubclass")
    kind = None if route_field is None else _mapped(route_field.text, route_field.value)
    if kind is None:
        shown = None if route_field is None else route_field.text or route_field.value
        raise BrokenEventError(f"its route_type is {quote(shown)} and not Local, Remote or Delayed")
    is_from_network = _is_from_network(event)
    outcome = Outcome.FORWARDED if kind == "REMOTE" and is_from_network else _OUTCOMES[kind]
    return {"route_type": kind, "is_from_network": is_from_network, "outcome": str(outcome)}


def _mapped(*texts: str | None) -> str | None:
    words = [text.strip().upper() for text in texts if text]
    route_types = (ROUTE_TYPES.get(text, text) for text in words)
    return next((route_type for route_type in route_types if route_type in _OUTCOMES), None)


def _is_from_network(event: ParsedEvent) -> bool | None:
    words = _words(event, "message_source", "role_name", "rolename")
    return True if "network" in words else False if "local" in words else None


_OF_SOURCE: dict[str, Callable[[ParsedEvent, ReadRow], TableRow]] = {
    CLASSIFY_EVENT: _classified,
    FORWARD_SENT: lambda event, row: {"outcome": str(Outcome.FORWARDED), "is_from_network": True},
    FORWARD_DROPPED: lambda event, row: {"outcome": str(Outcome.DROPPED), "is_from_network": True},
    UNDELIVERABLE: lambda event, row: {
        "outcome": str(Outcome.DROPPED),
        "is_from_network": _is_from_network(event),
    },
}


def _database_id(event: ParsedEvent) -> int | None:
    return None if event.first("database_name") is not None else _number(event, "database_id")


def _time(event: ParsedEvent) -> datetime:
    try:
        return parse_time(event.timestamp)
    except ValueError:
        raise BrokenEventError(f"its timestamp is {quote(event.timestamp)} and not an ISO 8601 time") from None


def _text(event: ParsedEvent, *names: str) -> str | None:
    """Return a field's mapped text or its value, or None if it is blank."""
    event_field = event.first(*names)
    return None if event_field is None else event_field.text or event_field.value


def _flag(event: ParsedEvent, *names: str) -> bool | None:
    words = _words(event, *names)
    return True if any(word in _YES for word in words) else False if any(word in _NO for word in words) else None


def _words(event: ParsedEvent, *names: str) -> list[str]:
    return [text.lower() for text in event.first(*names) or () if text]


def _number(event: ParsedEvent, *names: str, most: int = _INT) -> int | None:
    """Return a whole number, or None if the field has none or one that does not fit."""
    event_field = event.first(*names)
    if event_field is None or event_field.value is None or len(event_field.value) > 20:
        return None
    try:
        number = int(event_field.value)
    except ValueError:
        return None
    return number if -most <= number <= most else None
