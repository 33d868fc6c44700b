"""Which message rows cannot be judged: a truth table, and the order of several reasons."""

from __future__ import annotations

from typing import Any

import pytest

from routing.rules import text
from routing.rules.estate import Database, Instance
from routing.rules.rejecting import REQUIRED, TEXTS, is_sound, rejections
from routing.schemas import MESSAGES, Kind

# Reads a text as tables hold it.
raw = text.decode_utf8
HUB = Instance("hub", databases={"Sales": Database("Sales", None, is_enabled=False)})
# A database that is called as undecodable bytes are shown.
ODD = Instance("hub", databases={r"\xff": Database(r"\xff", None, is_enabled=False)})
SOUND: dict[str, Any] = {
    "message_id": "m",
    "conversation_id": "0000000A-aaaa-bbbb-cccc-00000000000f",
    "is_initiator": False,
    "message_sequence_number": None,
    "enqueue_time": 0,
    "observed_at": None,
    "instance_name": "hub",
    "database_name": "Sales",
    "to_service_name": " ",
    "to_broker_instance": "any text",
    "hops_remaining": None,
}
GUID = "CONVERSATION_ID_NOT_A_GUID"

# What differs from the sound row, the instance, and the codes.
TABLE: list[tuple[dict[str, Any], Instance | None, list[str]]] = [
    ({}, HUB, []),
    ({"message_id": None}, HUB, ["MISSING_MESSAGE_ID"]),
    ({"message_id": ""}, HUB, ["MISSING_MESSAGE_ID"]),
    ({"conversation_id": None}, HUB, ["MISSING_CONVERSATION_ID"]),
    ({"conversation_id": ""}, HUB, ["MISSING_CONVERSATION_ID"]),
    ({"conversation_id": "{0000000A-aaaa-bbbb-cccc-00000000000f}"}, HUB, [GUID]),
    ({"conversation_id": "0000000A-aaaa-bbbb-cccc-00000000000g"}, HUB, [GUID]),
    ({"conversation_id": "00000000-0000-0000-0000-000000000000"}, HUB, []),
    ({"is_initiator": None}, HUB, ["MISSING_IS_INITIATOR"]),
    ({"enqueue_time": None, "observed_at": 1}, HUB, ["MISSING_ENQUEUE_TIME"]),
    ({"to_service_name": None}, HUB, ["MISSING_TO_SERVICE_NAME"]),
    ({"to_service_name": ""}, HUB, ["MISSING_TO_SERVICE_NAME"]),
    ({"hops_remaining": -(2**31)}, HUB, []),
    ({"hops_remaining": 2**31 - 1}, HUB, []),
    ({"hops_remaining": -(2**31) - 1}, HUB, ["OUT_OF_RANGE_HOPS_REMAINING"]),
    ({"hops_remaining": 2**31}, HUB, ["OUT_OF_RANGE_HOPS_REMAINING"]),
    ({"instance_name": None}, None, ["MISSING_INSTANCE_NAME"]),
    ({"instance_name": ""}, None, ["MISSING_INSTANCE_NAME"]),
    ({"instance_name": "Hub"}, None, ["UNKNOWN_INSTANCE"]),
    ({"database_name": None}, HUB, []),
    ({"database_name": ""}, HUB, []),
    ({"database_name": "sales"}, HUB, ["UNKNOWN_DATABASE"]),
    ({"database_name": "sales"}, None, ["UNKNOWN_INSTANCE"]),
    ({"from_service_name": raw(b"\x81")}, HUB, ["NOT_UTF8_FROM_SERVICE_NAME"]),
    ({"to_service_name": raw(b"\x81")}, HUB, ["NOT_UTF8_TO_SERVICE_NAME"]),
    ({"conversation_id": raw(b"\xff")}, HUB, ["NOT_UTF8_CONVERSATION_ID", GUID]),
    ({"instance_name": raw(b"\xff")}, HUB, ["NOT_UTF8_INSTANCE_NAME", "UNKNOWN_INSTANCE"]),
    ({"database_name": raw(b"\xff")}, ODD, ["NOT_UTF8_DATABASE_NAME", "UNKNOWN_DATABASE"]),
    ({"database_name": r"\xff"}, ODD, []),
    (
        {
            "message_id": raw(b"m\xff"),
            "to_broker_instance": raw(b"\xff"),
            "is_initiator": None,
            "hops_remaining": 2**31,
        },
        HUB,
        [
            "MISSING_IS_INITIATOR",
            "NOT_UTF8_MESSAGE_ID",
            "NOT_UTF8_TO_BROKER_INSTANCE",
            "OUT_OF_RANGE_HOPS_REMAINING",
        ],
    ),
    (
        {**dict.fromkeys(SOUND), "hops_remaining": 2**31, "conversation_id": "x", "database_name": "x"},
        HUB,
        [
            "MISSING_MESSAGE_ID",
            "MISSING_IS_INITIATOR",
            "MISSING_ENQUEUE_TIME",
            "MISSING_INSTANCE_NAME",
            "MISSING_TO_SERVICE_NAME",
            "OUT_OF_RANGE_HOPS_REMAINING",
            GUID,
            "UNKNOWN_DATABASE",
        ],
    ),
]


@pytest.mark.parametrize(("other", "instance", "codes"), TABLE, ids=[str(other) for other, _, _ in TABLE])
def test_a_row(other: dict[str, Any], instance: Instance | None, codes: list[str]) -> None:
    assert rejections({**SOUND, **other}, instance) == codes


@pytest.mark.parametrize(("other", "instance", "codes"), TABLE, ids=[str(other) for other, _, _ in TABLE])
def test_a_row_of_a_listed_place(other: dict[str, Any], instance: Instance | None, codes: list[str]) -> None:
    """What is looked at fast: all but instance and database, with the same result."""
    row = {**SOUND, **other}
    own = [code for code in codes if "INSTANCE" not in code and "DATABASE" not in code and "UTF8" not in code]
    names = ("message_id", "conversation_id", "is_initiator", "enqueue_time", "to_service_name", "hops_remaining")
    assert is_sound(*(row[name] for name in names)) is (not own)


def test_what_is_required_is_what_the_table_requires() -> None:
    assert list(REQUIRED) == [field.name for field in MESSAGES if not field.nullable]
    assert list(TEXTS) == [field.name for field in MESSAGES if field.kind == Kind.STRING]
