"""Conversation endpoints and the transmission queue → dialogs, messages and observed routing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from routing.importing.catalog.transmission_status import error_number, outcome
from routing.importing.covered import CoveredRows
from routing.importing.keyed import name_message
from routing.terms import TRANSMISSION_QUEUE, TableRow

_SHOWN = 3


def dialogs(covered: CoveredRows, rows: Sequence[TableRow]) -> None:
    """Add one row an endpoint; it does not tell BEGIN DIALOG's far broker id from an acknowledgement's."""
    seen = set()
    columns = (
        *("instance_name", "database_name", "conversation_id", "is_initiator", "conversation_group_id"),
        *("far_service", "far_broker_instance", "lifetime"),
    )
    for row in rows:
        key = tuple(row[name] for name in columns[:4])
        if key in seen:
            covered.reject("conversation_endpoints", row, "the conversation endpoint appears twice")
            continue
        seen.add(key)
        exported = {name: row[name] for name in columns}
        covered.add("dialogs", {**exported, "acknowledged_at": None, "acknowledged_broker_instance": None})


def messages(covered: CoveredRows, rows: Mapping[str, Sequence[TableRow]]) -> None:
    """Add the messages of the queue, each with the endpoint of its handle, and the statuses observed of them."""
    by_handle = {
        (row["instance_name"], row["database_name"], row["conversation_handle"]): row
        for row in rows.get("conversation_endpoints", ())
    }
    seen: set[tuple[str, str]] = set()
    statuses: Counter[str] = Counter()
    for row in rows.get("transmission_queue", ()):
        endpoint = by_handle.get((row["instance_name"], row["database_name"], row["conversation_handle"]))
        if endpoint is None:
            covered.without_endpoint.append(row)
            continue
        message = _message(row, endpoint)
        key = (message["instance_name"], message["message_id"])
        if key in seen:
            covered.reject("transmission_queue", row, f"the message {message['message_id']} appears twice")
            continue
        seen.add(key)
        covered.add("messages", message)
        covered.add("observed_routing", _observe(row, message, statuses))
    _note_statuses(covered, statuses)


def reject_without_endpoint(covered: CoveredRows) -> None:
    """Reject the rows of queues that no dialog is known of: what they are bound to is not known."""
    for row in covered.without_endpoint:
        covered.reject("transmission_queue", row, _why_without_endpoint(covered, row))


def _why_without_endpoint(covered: CoveredRows, row: TableRow) -> str:
    """Return the reason why a message has no dialog: endpoints not exported, or none with its handle."""
    instance, database = row["instance_name"], row["database_name"]
    if (instance, database) not in covered.units.get("conversation_endpoints", {}):
        return f"sys.conversation_endpoints of {instance}.{database} is missing: export it as well"
    return f"no conversation endpoint has its handle {row['conversation_handle']}"


def _message(row: TableRow, endpoint: TableRow) -> TableRow:
    known_by = {
        "instance_name": row["instance_name"],
        "database_name": row["database_name"],
        "conversation_id": endpoint["conversation_id"],
        "is_initiator": endpoint["is_initiator"],
        "message_sequence_number": row["message_sequence_number"],
    }
    return {
        **known_by,
        "message_id": name_message(known_by),
        "enqueue_time": row["enqueue_time"],
        "observed_at": row["exported_at"],
        "to_service_name": row["to_service_name"],
        "to_broker_instance": row["to_broker_instance"],
        "hops_remaining": None,
        "from_service_name": row["from_service_name"],
    }


def _observe(row: TableRow, message: TableRow, statuses: Counter[str]) -> TableRow:
    """Build the status row of a queued message; ``statuses`` counts blank and unrecognised texts."""
    status, number = status_of(row)
    if number is None:
        statuses[status] += 1
    same = ("instance_name", "database_name", "conversation_id", "is_initiator", "message_sequence_number")
    return {
        **{name: message[name] for name in (*same, "message_id", "observed_at")},
        "conversation_handle": row["conversation_handle"],
        "source": TRANSMISSION_QUEUE,
        "status_text": status or None,
        "error_number": number,
        "outcome": outcome(number),
        **{name: row[name] for name in ("to_service_name", "to_broker_instance", "from_service_name")},
    }


def status_of(row: TableRow) -> tuple[str, int | None]:
    """Return the status of a row of the queue, and its number; a blank one has none.

    What the server found in its own messages counts: the text may be in any language.
    """
    status = (row["transmission_status"] or "").strip()
    if not status:
        return status, None
    return status, row["error_number"] or error_number(status)


def _note_statuses(covered: CoveredRows, statuses: Counter[str]) -> None:
    blank = statuses.pop("", 0)
    if blank:
        why = "not tried yet, or sent and not acknowledged"
        covered.notes.append(f"{_messages_have(blank)} a blank transmission_status: {why}")
    if statuses:
        texts = ", ".join(repr(text[:100]) for text, _ in statuses.most_common(_SHOWN))
        have = _messages_have(statuses.total())
        covered.notes.append(
            f"{have} a transmission_status that is not recognised, such as {texts}; if it is in another"
            " language than English, export the queue by sbroute import queries, which adds SQL Server's number"
        )


def _messages_have(number: int) -> str:
    return "1 message has" if number == 1 else f"{number} messages have"
