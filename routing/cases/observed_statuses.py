"""Find the newest row of observed_routing about each of some messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from routing.cases.background import is_of, place_of
from routing.engines.traffic_tables import TrafficTable
from routing.rules import text
from routing.terms import EVENT_SOURCES, TRANSMISSION_QUEUE, ReadRow

_READ = (
    *("instance_name", "database_name", "conversation_id", "conversation_handle", "is_initiator"),
    *("message_sequence_number", "message_id", "observed_at", "source", "status_text", "error_number"),
    *("outcome", "to_service_name", "is_from_network", "next_hop"),
)


def newest_statuses(
    observed: TrafficTable | None, messages: Sequence[ReadRow], latest: int | None = None
) -> list[ReadRow | None]:
    """Return for each message the newest row of ``observed_routing`` about it, as `newest_of_rows` does."""
    if observed is None or not messages:
        return [None] * len(messages)
    instances = sorted({row["instance_name"] for row in messages})
    of_queues = {"source": [TRANSMISSION_QUEUE], "message_id": sorted({row["message_id"] for row in messages})}
    conversations = sorted({text.fold(row["conversation_id"]) for row in messages})
    of_events = {"source": list(EVENT_SOURCES), "conversation_id": conversations}
    rows_by_key: dict[tuple[str, str], list[ReadRow]] = {}
    for only, key in ((of_queues, _id), (of_events, _conversation)):
        for row in observed.rows(_READ, only={"instance_name": instances, **only}).dicts():
            rows_by_key.setdefault(key(row), []).append(row)
    messages_with_rows = (
        (row, (*rows_by_key.get(_id(row), ()), *rows_by_key.get(_conversation(row), ()))) for row in messages
    )
    return [newest_of_rows(rows, row, latest) for row, rows in messages_with_rows]


def _id(row: ReadRow) -> tuple[str, str]:
    return row["instance_name"], row["message_id"]


def _conversation(row: ReadRow) -> tuple[str, str]:
    return row["instance_name"], text.fold(row["conversation_id"])


def newest_of_rows(rows: Iterable[ReadRow], message: ReadRow, latest: int | None = None) -> ReadRow | None:
    """Return the newest row about a message, or None.

    A row with a time after ``latest`` was in the future when it was imported, and never counts as newer than
    another. Times are microseconds. The row also has ``queued_at``, the time of the newest export with the
    message, and the newest conversation handle.
    """
    message_rows = [row for row in rows if row["observed_at"] is not None and is_of(row, message)]
    if not message_rows:
        return None
    message_rows.sort(key=lambda row: place_of(row, latest))
    queued = [row["observed_at"] for row in message_rows if row["source"] == TRANSMISSION_QUEUE]
    handles = [row["conversation_handle"] for row in message_rows if row["conversation_handle"] is not None]
    newest_values = {
        "queued_at": queued[-1] if queued else None,
        "conversation_handle": handles[-1] if handles else None,
    }
    return {**message_rows[-1], **newest_values}
