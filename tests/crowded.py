"""An estate with everything that `explain` has to tell apart, and questions about it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from routing.analysis.explain.asked import Described, Question, Stored
from tests.frames import Tables
from tests.stored import conversation, message, route, small_estate

NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
BROKEN = "broken"


def crowded() -> Tables:
    """The small estate with a message that asks after m4, one on two instances, and all times there are.

    The rows of an instance of their own are faulty.
    """
    tables = small_estate()
    twin = message(1, "//far", message_id="twin")
    tables["messages"] += [
        message(9, "//nowhere", enqueue_time="2026-01-05T12:00:01Z"),
        message(4, "//nowhere", instance_name=BROKEN),
        message(1, "//old", message_id="early", enqueue_time="0001-01-01T00:00:00Z"),
        message(1, "//old", message_id="late", enqueue_time="9999-12-31T23:59:59.999999Z"),
        twin,
        {**twin, "instance_name": "spoke"},
    ]
    tables["routes"] += [
        route("Bad", "a", "no address", instance_name=BROKEN),
        route("", None, "", instance_name=BROKEN),
        route("Old", "//old", "LOCAL", valid_from="0001-01-01T00:00:00.000001Z"),
        route("New", "//old", "tcp://new:4022", lifetime="9999-12-31T23:59:59.999999Z"),
    ]
    tables["observed_routing"] = list(STATUSES)
    tables["imports"] = list(IMPORTS)
    return tables


def _observed(number: int, minute: int, error: int | None, text: str | None, **columns: Any) -> dict[str, Any]:
    """What the queue of hub said of message m<number> some minutes after noon."""
    return {
        "instance_name": "hub",
        "conversation_id": conversation(number).lower(),
        "message_id": f"m{number}",
        "observed_at": f"2026-01-05T12:{minute:02}:00Z",
        "source": "TRANSMISSION_QUEUE",
        "status_text": text,
        "error_number": error,
        **columns,
    }


STATUSES = [
    _observed(1, 1, 9793, "old"),
    _observed(1, 3, 9754, "Connection attempt failed with error."),
    _observed(1, 2, 9791, "older"),
    _observed(1, 4, 9796, "of another instance", instance_name="spoke"),
    _observed(1, 4, 9795, "of an event", source="CLASSIFY_EVENT"),
    _observed(2, 1, None, "Gest\u00f6rt \x1b[31m"),
    _observed(3, 1, None, None),
    _observed(3, 0, 9754, "before it was tried again"),
    _observed(9, 1, 9793, "No route."),
]
"""What SQL Server said of some messages of hub, older and newer."""
IMPORTS = [
    {
        "instance_name": instance,
        "database_name": None if view == "databases" else "Sales",
        "view_or_file": view,
        "exported_at": f"2026-01-05T{time}Z",
        "imported_at": "2026-01-07T00:00:00Z",
    }
    for instance, view, time in (
        ("hub", "databases", "12:00:00"),
        ("hub", "services", "12:00:00.5"),
        ("hub", "routes", "15:00:00"),
        ("hub", "transmission_queue", "15:00:00"),
        ("spoke", "databases", "15:00:00"),
    )
]
"""Of hub what has no history was last imported half a second after noon."""
_STORED = ("m1", "m2", "m3", "m5", "m9", "early", "late")
QUESTIONS: list[Question] = [
    *(Stored(name) for name in _STORED),
    Stored("m4", "hub"),
    Stored("m9", at=NOON),
    Described("hub", "Sales", "//stock", NOON),
    Described("hub", "Sales", "//stock", NOON, conversation_id=conversation(2)),
    Described("hub", None, "//elsewhere", NOON),
]
"""What can be answered."""
WRONG: dict[str, Question] = {
    "unknown message": Stored("m77"),
    "on two instances": Stored("twin"),
    "no guid": Stored("m6"),
    "unknown instance": Described("Hub", None, "S", NOON),
    "unknown database": Described("hub", "sales", "S", NOON),
    "dialog id that is no guid": Described("hub", None, "S", NOON, conversation_id="42"),
}
"""What cannot, by what is wrong with it."""
