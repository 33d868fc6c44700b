"""Make dialogs, messages and observed routing of conversation endpoints and the transmission queue."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from operator import itemgetter

from routing.importing.compact_rows import row_maker
from routing.importing.covered_rows import CoveredRows, name_message
from routing.rules.message_texts import PIECES
from routing.rules.observed import REFUSALS, NumberTopic, topic_of
from routing.terms import TRANSMISSION_QUEUE, Outcome, TableRow

# sys.transmission_queue.transmission_status → SQL Server's error number, and whether routing delays it.
# `routing.rules.observed` explains the numbers.


_OTHER_PIECES = ((9666, ("endpoint is in disabled or stopped state",)),)
"""Texts of the same numbers in other versions of SQL Server."""
_PIECES = [(number, sum(map(len, pieces)), pieces) for number, pieces in (*PIECES.items(), *_OTHER_PIECES)]
_STANDING_ALONE = re.compile(r"(?<![\w:.\-('\"])\d{4,5}(?![\w\-(]|\.\d)")
_AFTER_ERROR = re.compile(r"\b(?:error|msg)\b(?: number)?[: ]+(\d{3,5})\b(?!\()", re.IGNORECASE)
# In any language 28005 ends its first sentence, and goes on with "Error: 15517, State: 1.".
# Chinese and Japanese have wide colons and commas.
_COLON, _COMMA = r":\uff1a", r",;\uff0c\u3001"
_EXCEPTION = re.compile(rf"[^{_COLON}]*[{_COLON}]\s*\d{{3,5}}\s*[{_COMMA}][^{_COLON}\d]*[{_COLON}]\s*\d{{1,3}}\b")
_EXCEPTION_OF_TARGET = 28005


def error_number(status: str) -> int | None:
    """Return the error number in a status text, or the number of the known text in it, or None.

    A text may contain the text of its cause. The one that begins first counts, and the longer one if both begin
    together.
    """
    for match in _STANDING_ALONE.finditer(status):
        if topic_of(int(match.group(0))) is not None:
            return int(match.group(0))
    text = " ".join(status.lower().split())
    begins = [(_find(pieces, text), -longest, number) for number, longest, pieces in _PIECES]
    matches = [(start, length, number) for start, length, number in begins if start is not None]
    if matches:
        return min(matches)[-1]
    if _EXCEPTION.match(status):
        return _EXCEPTION_OF_TARGET
    named = _AFTER_ERROR.search(status)
    return int(named.group(1)) if named else None


def _find(pieces: tuple[str, ...], text: str) -> int | None:
    """Return the beginning of the first piece, or None unless all pieces follow in order."""
    first = end = text.find(pieces[0])
    for piece in pieces:
        begin = text.find(piece, end)
        if begin < 0:
            return None
        end = begin + len(piece)
    return first


def outcome(number: int | None) -> str | None:
    """Return DELAYED if routing makes the message wait, or None if the outcome is unknown."""
    waits = topic_of(number) is NumberTopic.ROUTING and number not in REFUSALS
    return str(Outcome.DELAYED) if waits else None


_SHOWN = 3


_DIALOG = (
    *("instance_name", "database_name", "conversation_id", "is_initiator", "conversation_group_id"),
    *("far_service", "far_broker_instance", "lifetime"),
)
_NOT_ACKNOWLEDGED = ("acknowledged_at", "acknowledged_broker_instance")
_ROW_OF_ENDPOINT = itemgetter("instance_name", "database_name", "conversation_handle")


def dialogs(covered: CoveredRows, rows: Sequence[TableRow]) -> None:
    """Add a row for each endpoint. Its far broker instance may come from BEGIN DIALOG or an acknowledgement."""
    seen_keys = set[tuple[object, ...]]()
    make_row, values_of = row_maker((*_DIALOG, *_NOT_ACKNOWLEDGED)), itemgetter(*_DIALOG)
    added = covered.rows.setdefault("dialogs", [])
    not_acknowledged = (None,) * len(_NOT_ACKNOWLEDGED)
    for row, values in zip(rows, map(values_of, rows), strict=True):
        key = values[:4]
        if key in seen_keys:
            covered.reject("conversation_endpoints", row, "the conversation endpoint appears twice")
            continue
        seen_keys.add(key)
        added.append(make_row(values + not_acknowledged))


def messages(covered: CoveredRows, rows: Mapping[str, Sequence[TableRow]]) -> None:
    """Add the messages of the queue, each with the endpoint of its handle, and note their statuses."""
    by_handle = {_ROW_OF_ENDPOINT(row): row for row in rows.get("conversation_endpoints", ())}
    seen_keys: set[tuple[str, str]] = set()
    make_message, added = row_maker(_MESSAGE), covered.rows.setdefault("messages", [])
    for row in rows.get("transmission_queue", ()):
        endpoint = by_handle.get(_ROW_OF_ENDPOINT(row))
        if endpoint is None:
            covered.without_endpoint.append(row)
            continue
        message = make_message((*_OF_ENDPOINT(endpoint), None, *_OF_QUEUE(row), None))
        message["message_id"] = name_message(message)
        key = (message["instance_name"], message["message_id"])
        if key in seen_keys:
            covered.reject("transmission_queue", row, f"the message {message['message_id']} appears twice")
            continue
        seen_keys.add(key)
        added.append(message)
        covered.queue.append(row)
    unknown = Counter[str]()
    for written, count in Counter(map(_STATUS_OF, covered.queue)).items():
        status, number = read_status(*written)
        if number is None:
            unknown[status or ""] += count
    _note_statuses(covered, unknown)


def observations(covered: CoveredRows) -> list[TableRow]:
    """Return the rows of ``observed_routing``: the status of each message in the queue, in their order."""
    make_row, read = row_maker(_OBSERVATION), cache(read_status)
    rows = list[TableRow]()
    for message, row in zip(covered.rows.get("messages", ()), covered.queue, strict=True):
        status, number = read(*_STATUS_OF(row))
        seen = row["conversation_handle"], TRANSMISSION_QUEUE, status, number, outcome(number)
        rows.append(make_row((*_OF_MESSAGE(message), *seen, *_NAMES_OF(row))))
    return rows


def reject_without_endpoint(covered: CoveredRows) -> None:
    """Reject the rows of queues without a known dialog, because their broker instance is unknown."""
    for row in covered.without_endpoint:
        instance, database = row["instance_name"], row["database_name"]
        why = f"no conversation endpoint has its handle {row['conversation_handle']}"
        if (instance, database) not in covered.units.get("conversation_endpoints", {}):
            why = f"sys.conversation_endpoints of {instance}.{database} is missing: export it as well"
        covered.reject("transmission_queue", row, why)


_KNOWN_BY = ("instance_name", "database_name", "conversation_id", "is_initiator")
_NAMES = ("to_service_name", "to_broker_instance", "from_service_name")
_OF_QUEUE = itemgetter("message_sequence_number", "enqueue_time", "exported_at", *_NAMES)
_NUMBERED = (*_KNOWN_BY, "message_id", "message_sequence_number")
_MESSAGE = (*_NUMBERED, "enqueue_time", "observed_at", *_NAMES, "hops_remaining")
_OF_MESSAGE = itemgetter(*_NUMBERED, "observed_at")
_OBSERVATION = (
    *(*_NUMBERED, "observed_at", "conversation_handle", "source", "status_text", "error_number", "outcome"),
    *_NAMES,
)
_OF_ENDPOINT, _NAMES_OF = itemgetter(*_KNOWN_BY), itemgetter(*_NAMES)
_STATUS_OF = itemgetter("transmission_status", "error_number")


def read_status(written: str | None, known_number: int | None) -> tuple[str | None, int | None]:
    """Return the text of a transmission_status, or None for a blank one, and its error number, if it has one.

    The number that the server found in its own messages comes first, because the text may be in any language.
    """
    status = (written or "").strip()
    return (status, known_number or error_number(status)) if status else (None, None)


def _note_statuses(covered: CoveredRows, statuses: Counter[str]) -> None:
    blank = statuses.pop("", 0)
    if blank:
        why = "not tried yet, or sent and not acknowledged"
        covered.notes.append(f"{_messages_have(blank)} a blank transmission_status: {why}")
    if statuses:
        texts = ", ".join(repr(text[:100]) for text, _ in statuses.most_common(_SHOWN))
        have = _messages_have(statuses.total())
        covered.notes.append(
            f"{have} a transmission_status that is not recognised, such as {texts}; if it is in another"
            " language than English, export the queue by sbroute import queries, which adds SQL Server's number"
        )


def _messages_have(number: int) -> str:
    return "1 message has" if number == 1 else f"{number} messages have"
