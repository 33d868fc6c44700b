"""How listed messages look: tables for people, one object for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from routing import show
from routing.analysis.messages.listing import Messages
from routing.render.wording import count

if TYPE_CHECKING:
    from rich.console import RenderableType

Row = Mapping[str, Any]
_SHOWN_TEXT = 1_000
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_LIST = ("instance", "database", "service", "outcome", "reason", "age", "message", "conversation", "SQL Server")
_GROUPS = ("instance", "service", "outcome", "reason", "messages", "listed")
_SAID = ("number", "says", "of", "listed", "text", "why")


def as_json(done: Messages, now: datetime) -> str:
    """One line: now, total, more, counts, groups, held and messages (docs/reference/json.md)."""
    document = {
        "now": now,
        "total": done.total,
        "more": done.total - len(done.messages),
        "held": done.held,
        "counts": [dict(row) for row in done.counts],
        "groups": [dict(row) for row in done.groups],
        "messages": [dict(row) for row in done.messages],
    }
    return json.dumps(document, default=_plain)


def as_text(done: Messages) -> Iterator[RenderableType]:
    """What is printed: messages, their groups, what SQL Server said of them, and how many there are in all."""
    if not done.total:
        yield _nothing(done)
        return
    yield show.table("Messages", _LIST, [_line(row) for row in done.messages], ("age",))
    more = done.total - len(done.messages)
    if more:
        yield f"and {more:,} more; --limit N lists more"
    yield ""
    yield show.table("Groups of these", _GROUPS, _groups(done), ("messages", "listed"))
    said = _said(done)
    if said:
        yield ""
        yield show.table("What SQL Server said of these", _SAID, said, ("number", "listed"))
    yield ""
    yield _total(done)


def age(seconds: int) -> str:
    """An age by its two largest units, such as ``3 d 4 h``; a minus is before a time that is yet to come."""
    parts: list[tuple[int, str]] = []
    rest = abs(seconds)
    for unit, size in _UNITS:
        number, rest = divmod(rest, size)
        if number or parts or unit == "s":
            parts.append((number, unit))
    told = " ".join(f"{number} {unit}" for number, unit in parts[:2] if number or len(parts) == 1)
    return f"-{told}" if seconds < 0 else told


def _line(row: Row) -> tuple[Any, ...]:
    names = ("instance_name", "database_name", "to_service_name", "outcome", "reason")
    number, agreement, outcome = row["status_number"], row["agreement"], row["status_outcome"]
    # None at all, or a text without a number that is known, which is told below.
    is_blank = row["status_text"] is None and outcome is None
    told = None if agreement is None or is_blank else f"{number or outcome or 'a text'} {agreement}"
    return (
        *(row[name] for name in names),
        age(row["age_seconds"]),
        row["message_id"],
        row["conversation_id"],
        told,
    )


def _groups(done: Messages) -> list[tuple[Any, ...]]:
    names = ("instance_name", "to_service_name", "outcome", "reason")
    listed = Counter(tuple(row[name] for name in names) for row in done.messages)
    groups = ((tuple(row[name] for name in names), row["messages"]) for row in done.groups)
    return [(*group, messages, listed[group]) for group, messages in groups]


def _said(done: Messages) -> list[tuple[Any, ...]]:
    """Each text of a status or event, with what it says of a reason, most first; numbers are no amounts."""
    found = Counter(
        (row["status_number"], row["agreement"], row["reason"], text, row["agreement_why"])
        for row in done.messages
        if (text := _told(row)) is not None
    )
    ordered = sorted(found.items(), key=lambda item: (-item[1], str(item[0])))
    return [
        (None if number is None else str(number), agreement, reason, messages, _cut(text), why)
        for (number, agreement, reason, text, why), messages in ordered
    ]


def _told(row: Row) -> str | None:
    """What SQL Server told besides a number: the outcome of an event and where to, or the text of a status."""
    if row["status_outcome"] is None:
        told: str | None = row["status_text"]
        return told
    hop = "" if row["status_next_hop"] is None else f" to {row['status_next_hop']}"
    text = "" if row["status_text"] is None else f": {row['status_text']}"
    return f"event: {row['status_outcome']}{hop}{text}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT]}…"


def _total(done: Messages) -> str:
    counts = ", ".join(f"{row['messages']:,} {row['outcome']} {row['reason']}" for row in done.counts)
    what = f"{count(done.total, 'message')}: {counts}"
    missing = 0 if done.held is None or done.asked.only else done.held - done.total
    if missing <= 0:
        return what
    return (
        f"{what}\nthe newest exports hold {missing:,} more that the outputs do not: imported since the last run,"
        " or rejected by it"
    )


def _nothing(done: Messages) -> str:
    """Why no message is listed."""
    if done.held is not None and not done.exported:
        return "no export of a transmission queue was imported, so no message is known to wait"
    if done.held == 0:
        return "no message waits: the newest exports of the transmission queues are empty"
    if done.held is not None:
        return (
            f"none of the {done.held:,} messages in the newest exports is one that was asked for;"
            " what was imported since the last run is not in the outputs yet"
        )
    if done.asked.only:
        return "no message in the outputs is one that was asked for"
    return "the outputs hold no message"


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
