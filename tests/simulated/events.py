"""SQL Server's output of a day: events as `sys.fn_xe_file_target_read_file` returns them, and rows of queues."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from xml.sax.saxutils import escape

from .day import Day, Hop, time_of
from .estate import Row

# sys.messages, by what holds a message up or has it dropped.
NUMBERS = {
    "NO_ROUTE": 9793,
    "SERVICE_NOT_FOUND": 9796,
    "BROKER_INSTANCE_NOT_FOUND": 9795,
    "FORWARDING_DISABLED": 9792,
    "SCOPE_BROKER_DISABLED": 9791,
    "BROKER_DISABLED": 28012,
}
QUEUED = 0.05
"""A share of tries after which somebody exports the queue."""
LOST = 0.02
"""A share of events that no session recorded."""


class Event(dict[str, Any]):
    """An event with its instance, time and name, and its fields by name as text."""


def events_of(rng: random.Random, day: Day) -> list[Event]:
    """Return the events of a day without a few lost ones."""
    events = []
    for hop, row in day.done:
        for event in _events(rng, day, hop, row):
            if rng.random() >= LOST:
                events.append(event)
    return sorted(events, key=lambda event: (event["instance"], event["at"]))


def _events(rng: random.Random, day: Day, hop: Hop, row: Row) -> Iterator[Event]:
    """Return SQL Server's events for one hop of a message."""
    is_arrival, outcome, reason = hop.row["database_name"] is None, row["outcome"], row["reason"]
    if is_arrival and outcome == "DROPPED" and reason == "BROKER_DISABLED":
        yield _event(day, hop, "broker_message_undeliverable", error_number=28012, message_drop_reason="off")
        return
    if is_arrival and outcome == "DROPPED" and reason == "HOP_LIMIT":
        dropped = {"remaining_hop_count": 0, "dropped_reason": "hops"}
        yield _event(day, hop, "broker_forwarded_message_dropped", to_service_name=_service(hop), **dropped)
        return
    fields: dict[str, Any] = {
        "route_type": {"DELIVERED": "Local", "SENT": "Remote", "FORWARDED": "Remote"}.get(outcome, "Delayed"),
        "delayed_error_number": _number(hop, row),
        "to_service_name": _service(hop),
        "to_broker_instance": row["broker_instance"] or "",
        "message_source": "network" if is_arrival else "local",
        "next_hop": _next_hop(rng, row) if rng.random() < 0.8 else None,
    }
    yield _event(day, hop, "broker_message_classify", **fields)
    if outcome == "FORWARDED":
        sent = {"remaining_hop_count": hop.hops, "time_to_live_sec": 86400, "live_time_sec": 1}
        named = {"to_service_name": _service(hop), "to_broker_name": row["broker_instance"] or ""}
        yield _event(day, hop, "broker_forwarded_message_sent", **named, **sent)


def _service(hop: Hop) -> str:
    return str(hop.row["to_service_name"])


def _number(hop: Hop, row: Row) -> int:
    scope_off = row["reason"] == "SCOPE_BROKER_DISABLED"
    if scope_off and hop.row["database_name"] in (None, "msdb"):
        return 9789
    return NUMBERS.get(row["reason"], 0) if row["outcome"] in ("DELAYED", "DROPPED") else 0


def _next_hop(rng: random.Random, row: Row) -> str | None:
    """The address that the transport takes: that of any route of the tier, or its mirror."""
    if row["outcome"] not in ("SENT", "FORWARDED"):
        return None
    tier = [row, *(row["alternative_routes"] or ())]
    chosen_route = rng.choice(tier)
    mirror = chosen_route["mirror_address"]
    return str(mirror) if mirror is not None and rng.random() < 0.3 else str(chosen_route["address"])


def _event(day: Day, hop: Hop, name: str, **fields: Any) -> Event:
    database = hop.row["database_name"]
    ids = {
        row["name"]: row["database_id"]
        for row in day.tables["databases"]
        if row["instance_name"] == hop.row["instance_name"]
    }
    event = {
        "conversation_id": hop.row["conversation_id"].upper(),
        "is_initiator": str(hop.row["is_initiator"]).lower(),
        **{key: str(value) for key, value in fields.items() if value is not None},
    }
    return Event(
        instance=hop.row["instance_name"],
        at=time_of(hop),
        name=name,
        database_id=None if database is None else ids[database],
        fields=event,
    )


def as_exported(events: list[Event]) -> list[Row]:
    """Events as rows of the function, with their instance."""
    return [
        {
            "instance_name": event["instance"],
            "object_name": event["name"],
            "event_data": as_xml(event),
            "file_name": r"D:\xe\broker_0.xel",
            "file_offset": str(512 * place),
        }
        for place, event in enumerate(events)
    ]


def as_xml(event: Event) -> str:
    """An event as the function's event_data."""
    at: datetime = event["at"]
    data = "".join(
        f'<data name="{name}"><value>{escape(value)}</value></data>' for name, value in event["fields"].items()
    )
    action = (
        ""
        if event["database_id"] is None
        else f'<action name="database_id" package="sqlserver"><value>{event["database_id"]}</value></action>'
    )
    stamp = at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return f'<event name="{event["name"]}" package="sqlserver" timestamp="{stamp}">{data}{action}</event>'


def queued(rng: random.Random, day: Day) -> list[Row]:
    """Return rows of transmission queues a second after a try, with the status of waiting messages."""
    rows = []
    for hop, row in day.done:
        if hop.row["database_name"] is None or row["outcome"] not in ("SENT", "DELAYED") or rng.random() > QUEUED:
            continue
        number = _number(hop, row) or None
        instance = hop.row["instance_name"]
        rows.append(
            {
                "instance_name": instance,
                "database_name": hop.row["database_name"],
                "conversation_id": hop.row["conversation_id"],
                "is_initiator": True,
                "message_id": hop.row["message_id"],
                "observed_at": time_of(hop) + timedelta(milliseconds=1),
                "source": "TRANSMISSION_QUEUE",
                "error_number": number,
                "status_text": None if number is None else f"number {number}",
                "outcome": None if number is None else "DELAYED",
            }
        )
    return rows
