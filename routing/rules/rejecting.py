"""Find the message rows that cannot be judged, and why (tables.md, ``rejected_messages``)."""

from __future__ import annotations

from routing.rules import text
from routing.rules.estate import SqlInstance
from routing.rules.text import UndecodedText
from routing.terms import ReadRow, Rejection

REQUIRED = ("message_id", "conversation_id", "is_initiator", "enqueue_time", "instance_name", "to_service_name")
"""The columns of a message that must have a value, in the order of the table."""
TEXTS = (
    "message_id",
    "conversation_id",
    "instance_name",
    "database_name",
    "to_service_name",
    "to_broker_instance",
    "from_service_name",
)
"""The columns of a message that hold text, in the order of the table."""
DECODED = ("message_id", "to_service_name", "to_broker_instance", "from_service_name")
"""The columns of an otherwise valid message that must be checked for UTF-8.

The others need no check: GUIDs are ASCII, and known instances and databases equal a text of the configuration.
"""
INT_RANGE = (-(2**31), 2**31 - 1)
"""The least and the greatest value of an integer column."""


def is_int(number: int) -> bool:
    """Return True if an integer fits into 32 bits."""
    least, most = INT_RANGE
    return least <= number <= most


def rejections(row: ReadRow, instance: SqlInstance | None) -> list[str]:
    """Return the rejection codes of a row of ``messages``, in the order of tables.md.

    ``instance`` is that of the row, or None if it is unlisted. The row may lack optional columns.
    """
    undecoded = [name for name in TEXTS if isinstance(row.get(name), UndecodedText)]
    # A listed name may look like undecodable bytes in their readable form, but it differs from them.
    instance = None if "instance_name" in undecoded else instance
    conversation, database = text.empty_as_null(row["conversation_id"]), text.empty_as_null(row["database_name"])
    hops, names_instance = row["hops_remaining"], bool(row["instance_name"])
    checks: list[tuple[bool, str]] = [
        *((row[name] in (None, ""), Rejection.missing(name)) for name in REQUIRED),
        *((True, Rejection.not_utf8(name)) for name in undecoded),
        (hops is not None and not is_int(hops), Rejection.out_of_range("hops_remaining")),
        (conversation is not None and not text.is_guid(conversation), str(Rejection.CONVERSATION_ID_NOT_A_GUID)),
        (names_instance and instance is None, str(Rejection.UNKNOWN_INSTANCE)),
        (
            instance is not None
            and database is not None
            and (database not in instance.databases or "database_name" in undecoded),
            str(Rejection.UNKNOWN_DATABASE),
        ),
    ]
    return [code for applies, code in checks if applies]


def is_sound(
    message_id: str | None,
    conversation_id: str | None,
    is_initiator: bool | None,
    enqueue_time: int | None,
    to_service_name: str | None,
    hops_remaining: int | None,
) -> bool:
    """Return True if a message of a listed database has no `rejections`. This is much faster than computing them.

    The caller has checked that its texts are UTF-8.
    """
    is_told = message_id and conversation_id and to_service_name and is_initiator is not None
    return bool(
        is_told
        and enqueue_time is not None
        and (hops_remaining is None or is_int(hops_remaining))
        and text.is_guid(conversation_id)
    )
