"""Read the facts of messages, and find the rejected ones (rule book, 0; tables)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .instances import Instance
from .text import broker_id, is_guid, text_or_none
from .times import utc

MESSAGE_COLUMNS = (
    "message_id",
    "conversation_id",
    "is_initiator",
    "message_sequence_number",
    "enqueue_time",
    "observed_at",
    "instance_name",
    "database_name",
    "to_service_name",
    "to_broker_instance",
    "hops_remaining",
    "from_service_name",
)
REQUIRED_COLUMNS = (
    "message_id",
    "conversation_id",
    "is_initiator",
    "enqueue_time",
    "instance_name",
    "to_service_name",
)
DialogKey = tuple[str, str, str, bool]


@dataclass(slots=True)
class Message:
    """A message in the form for routing: values as compared, times in UTC."""

    message_id: str
    conversation_id: str
    is_initiator: bool
    sequence_number: int | None
    enqueue_time: datetime
    at: datetime
    instance: Instance
    database: str | None
    service: str
    own_broker: str | None
    hops: int | None
    broker: str | None
    dialog_expired: bool


def asking_order(message: Message) -> tuple[datetime, str, str, bool]:
    """Return the sort key of messages that ask for routes, by which earlier requests are open before them."""
    return message.at, message.message_id, message.conversation_id, message.is_initiator


def as_written(value: Any) -> Any:
    r"""Decode bytes that are not UTF-8, with each undecodable byte as ``\xNN``. Return other values unchanged."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def faults(row: dict[str, Any], instances: dict[str, Instance]) -> list[str]:
    """List every reason why a messages row is set aside, in the order of the tables page."""
    reasons = [
        f"MISSING_{column.upper()}" for column in REQUIRED_COLUMNS if row.get(column) is None or row[column] == ""
    ]
    reasons += [f"NOT_UTF8_{column.upper()}" for column in MESSAGE_COLUMNS if isinstance(row.get(column), bytes)]
    conversation_id = text_or_none(as_written(row.get("conversation_id")))
    if conversation_id is not None and not is_guid(conversation_id):
        reasons.append("CONVERSATION_ID_NOT_A_GUID")
    instance_name = text_or_none(row.get("instance_name"))
    database = text_or_none(row.get("database_name"))
    if instance_name is not None:
        instance = instances.get(instance_name)
        if instance is None:
            reasons.append("UNKNOWN_INSTANCE")
        elif database is not None and database not in instance.databases:
            reasons.append("UNKNOWN_DATABASE")
    return reasons


def read_dialogs(rows: list[dict[str, Any]] | None) -> dict[DialogKey, dict[str, Any]]:
    """Index the dialog endpoints by database, conversation and role."""
    return {
        (
            row["instance_name"],
            row["database_name"],
            row["conversation_id"].lower(),
            row["is_initiator"],
        ): row
        for row in rows or ()
    }


def bound_to(own: str | None, dialog: dict[str, Any] | None, at: datetime) -> str | None:
    """Find the broker instance that a message is bound to before matching."""
    if own is not None or dialog is None:
        return own
    acknowledged_at = utc(dialog.get("acknowledged_at"))
    if acknowledged_at is not None and acknowledged_at <= at:
        acknowledged = broker_id(dialog.get("acknowledged_broker_instance"))
        if acknowledged is not None:
            return acknowledged
    return broker_id(dialog.get("far_broker_instance"))


def read_message(
    row: dict[str, Any],
    instances: dict[str, Instance],
    dialogs: dict[DialogKey, dict[str, Any]],
    as_of: datetime | None,
) -> Message:
    """Read a messages row without faults."""
    enqueue_time = utc(row["enqueue_time"])
    assert enqueue_time is not None
    at = as_of or utc(row.get("observed_at")) or enqueue_time
    database = text_or_none(row.get("database_name"))
    conversation_id = row["conversation_id"].lower()
    dialog = None
    if database is not None:
        key = (row["instance_name"], database, conversation_id, row["is_initiator"])
        dialog = dialogs.get(key)
    broker = broker_id(row.get("to_broker_instance"))
    lifetime = None if dialog is None else utc(dialog.get("lifetime"))
    return Message(
        message_id=row["message_id"],
        conversation_id=conversation_id,
        is_initiator=row["is_initiator"],
        sequence_number=row.get("message_sequence_number"),
        enqueue_time=enqueue_time,
        at=at,
        instance=instances[row["instance_name"]],
        database=database,
        service=row["to_service_name"],
        own_broker=broker,
        hops=row.get("hops_remaining"),
        broker=bound_to(broker, dialog, at),
        dialog_expired=lifetime is not None and lifetime <= at,
    )
