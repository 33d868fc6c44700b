"""One table of messages: their rejections by the rules, Spark and Arrow, and their last attempts."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from tests.estate_rows import database, estate, instance
from tests.frames import Tables

Row = dict[str, Any]
GUID = "CONVERSATION_ID_NOT_A_GUID"
NOON = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)
SOUND: Row = {
    "message_id": "m",
    "conversation_id": "0000000A-aaaa-bbbb-cccc-00000000000f",
    "is_initiator": False,
    "message_sequence_number": None,
    "enqueue_time": NOON,
    "observed_at": None,
    "instance_name": "hub",
    "database_name": "Sales",
    "to_service_name": " ",
    "to_broker_instance": "any text",
    "hops_remaining": None,
    "from_service_name": None,
}
# The estate: ``odd`` has a database that is called as undecodable bytes are shown.
PLACES = {"hub": "Sales", "odd": r"\xff"}

# What differs from the sound row, and the codes. Bytes are a text that is no UTF-8.
REJECTIONS: list[tuple[Row, list[str]]] = [
    ({}, []),
    ({"is_initiator": True}, []),
    ({"message_id": None}, ["MISSING_MESSAGE_ID"]),
    ({"message_id": ""}, ["MISSING_MESSAGE_ID"]),
    ({"message_id": " "}, []),
    ({"conversation_id": None}, ["MISSING_CONVERSATION_ID"]),
    ({"conversation_id": ""}, ["MISSING_CONVERSATION_ID"]),
    ({"conversation_id": "{0000000A-aaaa-bbbb-cccc-00000000000f}"}, [GUID]),
    ({"conversation_id": " 0000000A-aaaa-bbbb-cccc-00000000000f"}, [GUID]),
    ({"conversation_id": "0000000A-aaaa-bbbb-cccc-00000000000"}, [GUID]),
    ({"conversation_id": "0000000A-aaaa-bbbb-cccc-00000000000g"}, [GUID]),
    ({"conversation_id": "00000000-0000-0000-0000-000000000000"}, []),
    ({"is_initiator": None}, ["MISSING_IS_INITIATOR"]),
    ({"enqueue_time": None, "observed_at": NOON}, ["MISSING_ENQUEUE_TIME"]),
    ({"to_service_name": None}, ["MISSING_TO_SERVICE_NAME"]),
    ({"to_service_name": ""}, ["MISSING_TO_SERVICE_NAME"]),
    *(({"hops_remaining": hops}, []) for hops in (0, -1, -(2**31), 2**31 - 1)),
    ({"hops_remaining": -(2**31) - 1}, ["OUT_OF_RANGE_HOPS_REMAINING"]),
    ({"hops_remaining": 2**31}, ["OUT_OF_RANGE_HOPS_REMAINING"]),
    ({"instance_name": None}, ["MISSING_INSTANCE_NAME"]),
    ({"instance_name": ""}, ["MISSING_INSTANCE_NAME"]),
    ({"instance_name": "Hub"}, ["UNKNOWN_INSTANCE"]),
    ({"database_name": None}, []),
    ({"database_name": ""}, []),
    ({"database_name": "sales"}, ["UNKNOWN_DATABASE"]),
    ({"database_name": "sales", "instance_name": "rim"}, ["UNKNOWN_INSTANCE"]),
    ({"from_service_name": b"\x81"}, ["NOT_UTF8_FROM_SERVICE_NAME"]),
    ({"to_service_name": b"\x81"}, ["NOT_UTF8_TO_SERVICE_NAME"]),
    ({"conversation_id": b"\xff"}, ["NOT_UTF8_CONVERSATION_ID", GUID]),
    ({"instance_name": b"\xff"}, ["NOT_UTF8_INSTANCE_NAME", "UNKNOWN_INSTANCE"]),
    ({"instance_name": "odd", "database_name": b"\xff"}, ["NOT_UTF8_DATABASE_NAME", "UNKNOWN_DATABASE"]),
    ({"instance_name": "odd", "database_name": r"\xff"}, []),
    (
        {"message_id": b"m\xff", "to_broker_instance": b"\xff", "is_initiator": None, "hops_remaining": 2**31},
        [
            "MISSING_IS_INITIATOR",
            "NOT_UTF8_MESSAGE_ID",
            "NOT_UTF8_TO_BROKER_INSTANCE",
            "OUT_OF_RANGE_HOPS_REMAINING",
        ],
    ),
    (
        {**dict.fromkeys(SOUND), "hops_remaining": 2**31, "conversation_id": "x", "instance_name": "hub"}
        | {"database_name": "x"},
        [
            "MISSING_MESSAGE_ID",
            "MISSING_IS_INITIATOR",
            "MISSING_ENQUEUE_TIME",
            "MISSING_TO_SERVICE_NAME",
            "OUT_OF_RANGE_HOPS_REMAINING",
            GUID,
            "UNKNOWN_DATABASE",
        ],
    ),
    (
        dict.fromkeys(SOUND),
        [
            "MISSING_MESSAGE_ID",
            "MISSING_CONVERSATION_ID",
            "MISSING_IS_INITIATOR",
            "MISSING_ENQUEUE_TIME",
            "MISSING_INSTANCE_NAME",
            "MISSING_TO_SERVICE_NAME",
        ],
    ),
]
# Codes of what a message itself does not tell: its place, and what is compared with known names.
OF_ITS_PLACE = {
    *("MISSING_INSTANCE_NAME", "UNKNOWN_INSTANCE", "UNKNOWN_DATABASE"),
    *("NOT_UTF8_INSTANCE_NAME", "NOT_UTF8_DATABASE_NAME"),
}


def rejection_tables() -> Tables:
    """Return the messages as tables. The sequence number of each message is its place."""
    rows = [{**SOUND, **other} for other, _ in REJECTIONS]
    return estate(
        instances=[instance(name) for name in PLACES],
        databases=[database(place, f"{name}'s", instance_name=name) for name, place in PLACES.items()],
        messages=[{**row, "message_sequence_number": place} for place, row in enumerate(rows)],
    )


def expected_reasons() -> dict[int, list[str]]:
    """The codes of the messages that are set aside, by their sequence number."""
    return {place: codes for place, (_, codes) in enumerate(REJECTIONS) if codes}


# Instance, message and attempt of stored rows, and whether the row is its message's last.
ATTEMPTS: list[tuple[str, str, int, bool]] = [
    ("hub", "once", 1, True),
    ("hub", "twice", 1, False),
    ("hub", "twice", 2, True),
    ("hub", "later", 3, True),
    ("hub", "later", 1, False),
    ("hub", "later", 2, False),
    # The id of a message of another instance, and one that differs in case.
    ("rim", "twice", 1, True),
    ("hub", "Twice", 1, True),
    # A message that came twice is two rows of one attempt.
    ("rim", "doubled", 1, True),
    ("rim", "doubled", 1, True),
    ("rim", "again", 1, False),
    ("rim", "again", 2, True),
    ("rim", "again", 2, True),
]
