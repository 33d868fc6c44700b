"""A generated day of the made-up company: 2026-01-05, UTC, the same rows for the same seed."""

from __future__ import annotations

import random
from datetime import datetime
from itertools import accumulate

from routing.demo.company import at_hour, found_company, guid, service
from routing.demo.company_traffic import ANSWERED_PARTNER, WAITING_PARTNER, all_flows
from routing.demo.conversation_writer import ConversationWriter
from routing.demo.drafting import Row, Tables

_FIRST_ROUNDS = 3
_CAMPAIGNS = ("hq-customers", "Campaigns")


def generate_day(seed: int = 20260105, messages: int = 12_000) -> Tables:
    """Return the input tables of the day, with exactly that many messages rows, in order of time.

    A message has a row at each instance that it passes. The rows reach every outcome and reason,
    and every reason for which a row is set aside, from some 2,000 messages on.
    """
    rng = random.Random(seed)
    day = ConversationWriter(rng, found_company(rng))
    _ask_for_routes(day)
    bad = _bad_messages(day)
    flows = all_flows()
    weights = list(accumulate(flow.weight for flow in flows))
    # Every flow speaks early, so that a short day has all of them too.
    queue = flows * _FIRST_ROUNDS
    rows = day.draft.tables["messages"]
    while len(rows) + len(bad) < messages:
        flow = queue.pop(0) if queue else rng.choices(flows, cum_weights=weights)[0]
        day.converse(flow)
    rows[:] = sorted(rows[: max(0, messages - len(bad))], key=_time_and_id) + bad[:messages]
    return day.draft.tables


def _time_and_id(row: Row) -> tuple[str, str]:
    # Times of one zone compare as text too, microseconds written out.
    at = row["enqueue_time"]
    assert isinstance(at, datetime)
    return at.isoformat(timespec="microseconds"), str(row["message_id"])


def _ask_for_routes(day: ConversationWriter) -> None:
    """Add two requests to the record: one that still waits, one that was answered with a route."""
    waiting, answered = service(WAITING_PARTNER), service(ANSWERED_PARTNER)
    day.draft.request(*_CAMPAIGNS, waiting, at_hour(-6), "yesterday-1")
    asked = at_hour(9.2)
    conversation = guid(day.rng)
    day.draft.request(*_CAMPAIGNS, answered, asked, "bluebird-1", at_hour(9.25), conversation)
    day.draft.message("bluebird-1", conversation, asked, *_CAMPAIGNS, answered)


def _bad_messages(day: ConversationWriter) -> list[Row]:
    """Return rows that cannot be resolved: one for each fault that a row can have by itself."""
    good: Row = {
        "instance_name": "store-leeds",
        "database_name": "Till",
        "is_initiator": True,
        "message_sequence_number": 0,
        "enqueue_time": at_hour(15.5),
        "to_service_name": service("Orders/Entry"),
    }
    faults: tuple[tuple[str, Row], ...] = (
        ("no-message-id", {"message_id": None}),
        ("no-conversation", {"conversation_id": None}),
        ("no-end", {"is_initiator": None}),
        ("no-time", {"enqueue_time": None}),
        ("no-instance", {"instance_name": None}),
        ("no-service", {"to_service_name": ""}),
        ("not-a-guid", {"conversation_id": "order 4711"}),
        ("unknown-instance", {"instance_name": "store-penzance"}),
        ("unknown-database", {"database_name": "TillOld"}),
    )
    rows = day.draft.tables["messages"]
    columns = dict.fromkeys(rows[0])
    return [
        {**columns, **good, "message_id": f"bad-{name}", "conversation_id": guid(day.rng), **fault}
        for name, fault in faults
    ]
