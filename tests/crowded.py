"""An estate with everything that `explain` has to tell apart, and questions about it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from routing.cases.questions import DescribedMessage, Question, StoredMessage
from tests.estate_rows import conversation, message, observation, route, small_estate
from tests.frames import Tables

NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
BROKEN = "broken"


def crowded() -> Tables:
    """Return the small estate with a message that asks after m4, one on two instances, and all kinds of times.

    A separate instance has faulty rows.
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
    tables["messages"] += CONVERSING
    tables["observed_routing"] = [*STATUSES, *SEEN]
    tables["imports"] = list(IMPORTS)
    tables["unfinished_imports"] = tables["queues"] = tables["endpoint_counts"] = []
    return tables


def _observed(number: int, minute: int, error: int | None, text: str | None, **columns: Any) -> dict[str, Any]:
    """Return the status in hub's queue of message m<number> some minutes after noon."""
    unsaid = dict.fromkeys(("database_name", "is_initiator"))
    status = {**unsaid, "status_text": text, "error_number": error, **columns}
    return observation(number, f"2026-01-05T12:{minute:02}:00Z", **status)


_EVENT = {"source": "CLASSIFY_EVENT", "is_initiator": True, "is_from_network": False, "outcome": "DELAYED"}
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
    # Events of the conversation of m4: the newer one is another end's.
    _observed(4, 1, 9793, None, message_id=None, **_EVENT),
    _observed(4, 2, None, None, message_id=None, **_EVENT, next_hop="tcp://far:4022"),
    _observed(4, 3, 9795, None, message_id=None, **{**_EVENT, "is_initiator": False}),
]
"""What SQL Server said of some messages of hub, older and newer."""


def _sent(name: str, time: str, number: int | None, **columns: Any) -> dict[str, Any]:
    """A message of conversation 20 to //far."""
    row = message(20, "//far", message_id=name, enqueue_time=f"2026-01-05T{time}Z", **columns)
    return {**row, "message_sequence_number": number}


_STOCK_END = {"database_name": "Stock", "is_initiator": False}
CONVERSING = [
    _sent("a second", "12:01:00", 5),
    _sent("a fourth", "12:02:00", 1),
    _sent("first, later by its id", "12:01:00", 4),
    _sent("first", "12:01:00", 4, conversation_id=conversation(20).lower()),
    _sent("a third, of no number", "12:01:00", None),
    _sent("an answer", "11:00:00", 0, **_STOCK_END),
    message(21, "//far", message_id="arrived", database_name=None, enqueue_time="2026-01-05T12:00:01Z"),
    message(21, "//far", message_id="arrived first", database_name=""),
    message(22, "//far", message_id="sent"),
    message(22, "//far", message_id="passing", instance_name="spoke", database_name=None),
]
"""Messages of conversations: 20 has messages of both ends, 21 came over the network, 22 is on two instances."""


def handle(number: int) -> str:
    """The handle of an end of a conversation."""
    return f"e0{number:06d}-aaaa-bbbb-cccc-444444444444"


def _observed_under_handle(by: str, number: int, day: int, **columns: Any) -> dict[str, Any]:
    """A message of a conversation that an import saw under a handle."""
    columns_of_observation = {"conversation_handle": by, "message_id": f"seen on {day}", **columns}
    return observation(number, f"2026-01-{day:02}T12:00:00Z", **columns_of_observation)


SEEN = [
    _observed_under_handle(handle(20), 20, 5),
    # No import writes capitals, but somebody else may.
    _observed_under_handle(handle(20).upper(), 20, 6, conversation_id=conversation(20)),
    _observed_under_handle(handle(30), 20, 5, **_STOCK_END),
    _observed_under_handle(handle(2), 2, 5),
    _observed_under_handle(handle(40), 40, 5),
    _observed_under_handle(handle(50), 20, 5),
    _observed_under_handle(handle(50), 22, 5),
]
"""The handles 20 and 30 are those of conversation 20; no message is left of 40; 50 is one of two conversations."""
OF_CONVERSATIONS: list[tuple[Question, str, int]] = [
    (StoredMessage(conversation=conversation(2)), "m2", 0),
    (StoredMessage(conversation=f" {{{conversation(2).lower()}}}"), "m2", 0),
    (StoredMessage(conversation=handle(20)), "first", 4),
    (StoredMessage(conversation=f"{{{handle(20).upper()}}}"), "first", 4),
    (StoredMessage(conversation=handle(30)), "an answer", 0),
    (StoredMessage(conversation=conversation(21)), "arrived first", 1),
    (StoredMessage(conversation=conversation(22), instance_name="hub"), "sent", 0),
    (StoredMessage(conversation=conversation(1), instance_name="hub", at=NOON), "early", 3),
    (DescribedMessage("hub", "Sales", "//stock", NOON, conversation_id=handle(2).upper()), "described", 0),
]
"""Questions that name a conversation, the message that is meant, and how many more there are of its end."""
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
        ("hub", "services", "12:00:00.500"),
        ("hub", "routes", "15:00:00"),
        ("hub", "transmission_queue", "15:00:00"),
        ("spoke", "databases", "15:00:00"),
    )
]
"""Of hub what has no history was last imported half a second after noon."""
_STORED = ("m1", "m2", "m3", "m5", "m9", "early", "late")
QUESTIONS: list[Question] = [
    *(StoredMessage(name) for name in _STORED),
    StoredMessage("m4", "hub"),
    StoredMessage("m9", at=NOON),
    DescribedMessage("hub", "Sales", "//stock", NOON),
    DescribedMessage("hub", "Sales", "//stock", NOON, conversation_id=conversation(2)),
    *(question for question, _, _ in OF_CONVERSATIONS),
    DescribedMessage("hub", None, "//elsewhere", NOON),
]
"""What can be answered."""
WRONG: dict[str, Question] = {
    "unknown message": StoredMessage("m77"),
    "on two instances": StoredMessage("twin"),
    "no guid": StoredMessage("m6"),
    "unknown instance": DescribedMessage("Hub", None, "S", NOON),
    "unknown database": DescribedMessage("hub", "sales", "S", NOON),
    "dialog id that is no guid": DescribedMessage("hub", None, "S", NOON, conversation_id="42"),
    "unknown conversation": StoredMessage(conversation=conversation(77)),
    "conversation of elsewhere": StoredMessage(conversation=conversation(2), instance_name="spoke"),
    "handle of messages that are gone": StoredMessage(conversation=handle(40)),
    "handle of another instance": StoredMessage(conversation=handle(30), instance_name="spoke"),
    "both ends": StoredMessage(conversation=conversation(20)),
    "both ends on the instance": StoredMessage(conversation=conversation(20), instance_name="hub"),
    "two instances": StoredMessage(conversation=conversation(22)),
    "handle of two conversations": StoredMessage(conversation=handle(50)),
    "dialog by a handle of two conversations": DescribedMessage(
        "hub", None, "S", NOON, conversation_id=handle(50)
    ),
}
"""What cannot, by what is wrong with it."""
