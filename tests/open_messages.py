"""Messages of initiators for the tests' own walk, which nothing has stored."""

from __future__ import annotations

from datetime import datetime

from tests.reference.instances import Instance
from tests.reference.messages import Message

CONVERSATIONS = [f"d0000000-0000-4000-8000-{number:012d}" for number in range(24)]
"""Dialogs of so many hashes that every broker instance is picked by one."""


def message_to(
    instance: Instance,
    database: str | None,
    service: str,
    at: datetime,
    *,
    conversation: str = CONVERSATIONS[0],
    broker: str | None = None,
) -> Message:
    """Return a message to a service, which a database sends, or which arrives at the instance."""
    return Message(
        message_id="m",
        conversation_id=conversation,
        is_initiator=True,
        sequence_number=None,
        enqueue_time=at,
        at=at,
        instance=instance,
        database=database,
        service=service,
        own_broker=broker,
        hops=None,
        broker=broker,
        dialog_expired=False,
    )
