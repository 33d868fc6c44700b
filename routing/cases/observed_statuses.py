"""Find the newest row of observed_routing about each of some messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from routing.engines.traffic_tables import TrafficTable
from routing.rules import text
from routing.terms import CLASSIFY_EVENT, EVENT_SOURCES, TRANSMISSION_QUEUE, ReadRow, SortKey

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
    message_rows = [row for row in rows if row["observed_at"] is not None and _is_of(row, message)]
    if not message_rows:
        return None
    message_rows.sort(key=lambda row: _place_of(row, latest))
    queued = [row["observed_at"] for row in message_rows if row["source"] == TRANSMISSION_QUEUE]
    handles = [row["conversation_handle"] for row in message_rows if row["conversation_handle"] is not None]
    newest_values = {
        "queued_at": queued[-1] if queued else None,
        "conversation_handle": handles[-1] if handles else None,
    }
    return {**message_rows[-1], **newest_values}


def _is_of(row: ReadRow, message: ReadRow) -> bool:
    """Return True if a row of the instance is about a message.

    A queue's row must have its id, an event's row its conversation. An event without a number may be about any
    message with the same role, service and direction.
    """
    if row["source"] == TRANSMISSION_QUEUE:
        # Of older imports two databases may have used one id.
        is_its_queue = row["database_name"] in (None, "", message["database_name"])
        return is_its_queue and bool(row["message_id"] == message["message_id"])
    if row["source"] not in EVENT_SOURCES or row["is_initiator"] != message["is_initiator"]:
        return False
    if text.fold(row["conversation_id"] or "") != text.fold(message["conversation_id"] or ""):
        return False
    sequence, service = row["message_sequence_number"], text.empty_as_null(row["to_service_name"])
    if sequence not in (None, message["message_sequence_number"]) or service not in (
        None,
        message["to_service_name"],
    ):
        return False
    database = text.empty_as_null(message["database_name"])
    is_arrival = row["is_from_network"]
    if is_arrival is None:
        is_arrival = row["source"] != CLASSIFY_EVENT
    return is_arrival == (database is None) and (is_arrival or row["database_name"] in (None, "", database))


def _place_of(row: ReadRow, latest: int | None) -> SortKey:
    """Return the place of a row among those of one message: the last one counts.

    Of one time a queue's with a number counts before events. A row of a time after ``latest``, which had not come
    when it was imported, is newer than none.
    """
    number, is_queue = row["error_number"], row["source"] == TRANSMISSION_QUEUE
    status_rank = (is_queue and number is not None, not is_queue, -1 if number is None else number)
    return (
        latest is None or row["observed_at"] <= latest,
        row["observed_at"],
        *status_rank,
        *(row[name] or "" for name in ("status_text", "source", "outcome", "next_hop")),
    )
