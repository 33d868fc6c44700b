"""A small estate with hand-written actions of SQL Server, with an observation of every class."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from tests import estate_rows
from tests.estate_rows import SALES, STOCK, STORE, endpoint, instance, observation, route, service
from tests.frames import Tables

Row = dict[str, Any]
NOON = datetime(2026, 1, 5, 12, 0, 0, tzinfo=timezone.utc)
STOCK_HOP, STORE_HOP = "tcp://stock.example:4022", "tcp://store.example:4022"


def conversation(number: int) -> str:
    """A conversation id, as import writes it."""
    return estate_rows.conversation(number).lower()


def after(seconds: float) -> datetime:
    """A time after noon."""
    return NOON + timedelta(seconds=seconds)


def event(number: int, outcome: str, at: float = 0, **columns: Any) -> Row:
    """An event of database Sales on hub, of a message for //stock."""
    defaults: Row = {
        "message_id": None,
        "outcome": outcome,
        "is_from_network": False,
        "to_service_name": "//stock",
    }
    return observation(number, after(at), **{"source": "CLASSIFY_EVENT", **defaults, **columns})


def arrival(number: int, outcome: str, at: float = 0, **columns: Any) -> Row:
    """Return an event of an arrival from the network at hub, for //orders."""
    return (
        event(number, outcome, at, database_name=None, is_from_network=True, to_service_name="//orders") | columns
    )


def balanced(number: int, broker: str | None, next_hop: str | None) -> Row:
    """An event of a message for the balanced service."""
    return event(number, "SENT", to_service_name="//balanced", to_broker_instance=broker, next_hop=next_hop)


def queued(number: int, at: float = 0, **columns: Any) -> Row:
    """A row of the transmission queue of Sales, as import writes it."""
    own = {"source": "TRANSMISSION_QUEUE", "message_id": f"{conversation(number)}:I:0", "is_from_network": None}
    return event(number, "DELAYED", at, **own) | {"outcome": None, "to_service_name": None} | columns


def message(number: int, service: str, **columns: Any) -> Row:
    """Return a message of Sales on hub at noon, as import writes it except for the case of its conversation."""
    own = {"message_id": f"{conversation(number)}:I:0", "message_sequence_number": None, "enqueue_time": NOON}
    return estate_rows.message(number, service, **own, **columns)


def estate() -> Tables:
    """Return an instance with two remote services, one of them balanced, its own service, and its messages."""
    return estate_rows.estate(
        instances=[instance("hub", "tcp://hub.example:4022")],
        services=[service("Sales", "//orders")],
        routes=[
            route("Stock", "//stock", STOCK_HOP),
            route("East", "//balanced", STOCK_HOP, broker_instance=STOCK),
            route("West", "//balanced", STORE_HOP, broker_instance=STORE),
            route("Orders", "//orders", "LOCAL", database_name="msdb"),
        ],
        messages=[
            message(1, "//stock"),
            message(12, "//gone"),
            message(13, "//stock"),
            # Bound to an id that neither an event nor a dialog tells.
            message(22, "//balanced", to_broker_instance=f"{{{STORE.upper()}}}"),
            message(90, "//stock"),
        ],
        dialogs=[endpoint(21, conversation_id=conversation(21), far_broker_instance=STOCK)],
    )


# Observations, and of each episode the class and how many of them it has; in the order of conversations and time.
OBSERVED: list[tuple[list[Row], list[tuple[str, int]]]] = [
    ([event(1, "SENT", next_hop=STOCK_HOP), queued(1, 5)], [("CONFIRMED", 1), ("COMPATIBLE", 1)]),
    ([event(2, "SENT", next_hop=STORE_HOP)], [("CONTRADICTED", 1)]),
    # As SQL Server tries again: 4, 8, 16, 32 seconds, then every 64.
    (
        [event(3, "DELAYED", at, error_number=9793) for at in (0, 4, 12, 28, 60, 124, 188)],
        [("CONTRADICTED", 7)],
    ),
    # Just under, and just at 192 seconds apart.
    (
        [
            event(4, "DELAYED", 0, to_service_name="//no", error_number=9793),
            event(4, "DELAYED", 191.999999, to_service_name="//no", error_number=9793),
            event(4, "DELAYED", 383.999999, to_service_name="//no", error_number=9793),
        ],
        [("CONFIRMED", 2), ("CONFIRMED", 1)],
    ),
    # Another answer is another episode; the one before comes again as a third.
    (
        [event(5, "SENT", 0), event(5, "DELAYED", 1, error_number=9793), event(5, "SENT", 2)],
        [("CONFIRMED", 1), ("CONTRADICTED", 1), ("CONFIRMED", 1)],
    ),
    # The other end of the conversation, and another service, are sides of their own.
    (
        [event(6, "SENT"), event(6, "SENT", is_initiator=False), event(6, "SENT", to_service_name="//other")],
        [("CONFIRMED", 1), ("CONTRADICTED", 1), ("CONFIRMED", 1)],
    ),
    ([arrival(7, "DELIVERED"), arrival(7, "DELIVERED", 3)], [("CONFIRMED", 2)]),
    ([arrival(8, "DELAYED", error_number=9796)], [("CONTRADICTED", 1)]),
    (
        [arrival(9, "DROPPED", source="FORWARD_DROPPED", to_service_name="//stock", error_number=9793)],
        [("COMPATIBLE", 1)],
    ),
    ([event(10, "SENT", instance_name="gone")], [("NOT_PREDICTED", 1)]),
    ([event(11, "SENT", database_name="Gone")], [("NOT_PREDICTED", 1)]),
    # The service of a queue's row is that of its message; of one that nothing tells none is known.
    ([queued(12, error_number=9793, outcome="DELAYED")], [("CONFIRMED", 1)]),
    ([queued(13, status_text="Something else")], [("NOT_OBSERVED", 1)]),
    ([queued(14)], [("NOT_PREDICTED", 1)]),
    ([event(15, "SENT", database_name=None)], [("NOT_PREDICTED", 1)]),
    # What could not be delivered names no service: that of its conversation's other observations is taken.
    (
        [
            arrival(16, "DELIVERED"),
            arrival(16, "DROPPED", 1, source="UNDELIVERABLE", to_service_name=None, error_number=28012),
        ],
        [("CONFIRMED", 1), ("COMPATIBLE", 1)],
    ),
]
# By the hash of this project, 24 and 25 of the balanced messages go to the second id.
BALANCED: list[tuple[list[Row], list[tuple[str, int]]]] = [
    # The id of a dialog that is bound to it, of a message that names it, and of one that nothing else tells.
    ([balanced(21, STOCK, STOCK_HOP)], [("CONFIRMED", 1)]),
    ([balanced(22, STORE, STORE_HOP)], [("CONFIRMED", 1)]),
    ([balanced(23, SALES, None)], [("CONTRADICTED", 1)]),
    ([balanced(24, STORE, STORE_HOP)], [("CONFIRMED", 1)]),
    ([balanced(25, STOCK, STOCK_HOP)], [("COMPATIBLE", 1)]),
    ([balanced(26, None, "tcp://else.example:4022")], [("CONTRADICTED", 1)]),
]


ROWS = [row for rows, _ in (*OBSERVED, *BALANCED) for row in rows]
ASK = {"remote_service_name": "SQL/ServiceBroker/BrokerConfiguration", "address": "LOCAL", "name": "Ask"}


def hostile() -> tuple[Tables, list[Row]]:
    """Return the hand-written estate with rare additions, such as requests, ended dialogs and ids in braces."""
    tables = estate()
    tables["routes"].append({**tables["routes"][0], **ASK, "database_name": "Other"})
    tables["databases"].append({**tables["databases"][0], "name": "Other", "service_broker_guid": "0" * 8})
    tables["routes"].append({**tables["routes"][0], "name": "Old", "remote_service_name": "//old"})
    tables["routes"][-1] |= {"valid_to": "2026-01-05T12:00:10Z"}
    ends = {"conversation_id": event(40, "SENT")["conversation_id"].upper(), "lifetime": "2026-01-05T12:00:05Z"}
    tables["dialogs"].append({**tables["dialogs"][0], **ends, "far_broker_instance": None})
    rows = [
        *ROWS,
        *(event(n, "DELAYED", n, database_name="Other", error_number=9770) for n in range(30, 34)),
        *(event(40, "DROPPED" if at > 4 else "SENT", at) for at in (0, 4, 5, 300)),
        event(41, "SENT", is_initiator=None),
        event(42, "SENT", to_service_name=""),
        event(43, "SENT", conversation_id="x" * 36),
        event(44, "SOMETHING"),
        *(event(45 + at, "SENT", at, to_service_name="//old") for at in (8, 9, 10, 11)),
        event(60, "SENT", to_service_name="//balanced", to_broker_instance=f" {{{'0' * 8}}} "),
        # Two at one moment, whose order is that of their words.
        event(61, "SENT"),
        event(61, "DELAYED", error_number=9793),
    ]
    return tables, rows
