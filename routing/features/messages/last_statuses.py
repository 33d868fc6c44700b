"""What SQL Server itself last said of messages: the newest transmission_status or event, beside the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from routing.engines.traffic_tables import TrafficTable
from routing.features.explain.background import StatusText, is_of, place_of, status_of
from routing.rules import text
from routing.rules.observed import ReasonComparison
from routing.terms import EVENT_SOURCES, MSDB, TRANSMISSION_QUEUE, Outcome, ReadRow, Reason

_READ = (
    *("instance_name", "database_name", "conversation_id", "conversation_handle", "is_initiator"),
    *("message_sequence_number", "message_id", "observed_at", "source", "status_text", "error_number"),
    *("outcome", "to_service_name", "is_from_network", "next_hop"),
)


def newest_statuses(
    observed: TrafficTable | None, messages: Sequence[ReadRow], latest: int | None = None
) -> list[ReadRow | None]:
    """Return the newest row of ``observed_routing`` that tells of each of some messages; None where none does.

    A row of a time after ``latest``, which had not come when it was imported, is newer than no other. Times are
    microseconds. Each also has ``queued_at``, the time of the newest export that holds the message, and the
    newest conversation handle.
    """
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
    every = ((row, (*rows_by_key.get(_id(row), ()), *rows_by_key.get(_conversation(row), ()))) for row in messages)
    return [_newest(rows, row, latest) for row, rows in every]


def _id(row: ReadRow) -> tuple[str, str]:
    return row["instance_name"], row["message_id"]


def _conversation(row: ReadRow) -> tuple[str, str]:
    return row["instance_name"], text.fold(row["conversation_id"])


def _newest(rows: Sequence[ReadRow], message: ReadRow, latest: int | None) -> ReadRow | None:
    mine = [row for row in rows if is_of(row, message)]
    if not mine:
        return None
    mine.sort(key=lambda row: place_of(row, latest))
    queued = [row["observed_at"] for row in mine if row["source"] == TRANSMISSION_QUEUE]
    handles = [row["conversation_handle"] for row in mine if row["conversation_handle"] is not None]
    newest_values = {
        "queued_at": queued[-1] if queued else None,
        "conversation_handle": handles[-1] if handles else None,
    }
    return {**mine[-1], **newest_values}


def compare_status(message: ReadRow, row: ReadRow) -> tuple[StatusText, ReasonComparison]:
    """Compare the status of a row with a message's verdict."""
    database = message["database_name"]
    in_msdb = database is None or database.lower() == MSDB or message["rerouted_from"] is not None
    status = status_of(row)
    outcome = Outcome(message["outcome"])
    return status, status.compared(Reason(message["reason"]), in_msdb=in_msdb, outcome=outcome)
