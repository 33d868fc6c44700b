"""An estate with everything that `explain` has to tell apart, and questions about it."""

from __future__ import annotations

from datetime import datetime, timezone

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
    return tables


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
