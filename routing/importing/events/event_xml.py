"""The XML of one event → its fields by name. No document type, no entity and no file is ever opened.

By expat of the standard library, whose handlers see a document type before anything of it is read: it is refused.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat

LONGEST = 1_000_000
"""An event of more characters is none of the broker's."""
_DEEPEST = 20


class EventField(NamedTuple):
    """A field or an action: its value, and the text that a map gives for it; None where there is none."""

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
        """The same for one event, whichever file it is read from."""
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
    """Why a text is no event that is read."""


def parse_event(text: str) -> ParsedEvent:
    """Return the event that a text of XML is. Raises BrokenEventError."""
    if len(text) > LONGEST:
        raise BrokenEventError(f"it has {len(text):,} characters, more than {LONGEST:,}")
    reader = _Reader()
    try:
        reader.parser.Parse(text, True)
    except expat.ExpatError as error:
        raise BrokenEventError(f"it is not well-formed XML: {error}") from None
    # What no encoding can write.
    except UnicodeEncodeError:
        raise BrokenEventError("it holds half of a character") from None
    if reader.event is None:
        raise BrokenEventError("it holds no event")
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
