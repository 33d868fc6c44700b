"""Messages to be counted for a report, and the counting told by plain Python."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from routing.rules.timeline import micros_of
from tests.frames import moment
from tests.listed_messages import RESOLVED, Row, random_rows, resolved

FLOW = (
    *("instance_name", "database_name", "to_service_name", "outcome", "reason"),
    *("route_name", "address", "destination_database"),
)


def micros(text: str) -> int:
    """An ISO text as microseconds since 1970."""
    return micros_of(moment(text))


# The oldest of its flow was tried again, and found its way.
ROWS = [
    *RESOLVED,
    resolved("b1", "//stock", "05:00:00", "DELAYED NO_ROUTE"),
    resolved("b1", "//stock", "05:00:00", "SENT NETWORK_ADDRESS", 2, route_name="Late", address="tcp://late:4022"),
]
FLOWS = [
    ("HUB", "Shop", "//stock", "DELAYED", "NO_ROUTE", None, None, None, 3, "08:00:00"),
    ("HUB", "Other", "//stock", "DELAYED", "NO_ROUTE", None, None, None, 1, "06:00:00"),
    ("HUB", "Shop", "//billing", "SENT", "NETWORK_ADDRESS", "ToBilling", None, None, 1, "07:00:00"),
    ("HUB", "Shop", "//stock", "DELAYED", "BROKER_DISABLED", None, None, None, 1, "10:00:00"),
    ("HUB", "Shop", "//stock", "DELIVERED", "LOCAL_SERVICE", None, None, None, 1, "09:00:00"),
    ("HUB", "Shop", "//stock", "SENT", "NETWORK_ADDRESS", "Late", "tcp://late:4022", None, 1, "05:00:00"),
    ("SPOKE", None, "//stock", "DELIVERED", "LOCAL_SERVICE", None, None, None, 1, "10:00:00"),
]
"""The flows of ``ROWS``, in the order of fields, the oldest as a time of the day."""


def balanced(name: str, dialog: int, broker: str, at: str = "12:00:00", attempt: int = 1, **columns: Any) -> Row:
    """A message that was balanced to a broker instance."""
    own = {"conversation_id": f"c{dialog}", "matching_step": 3, "broker_instance": broker}
    decided = {"decided_at": f"2026-01-05T{at}Z", **columns}
    return resolved(name, "//shared", at, "SENT NETWORK_ADDRESS", attempt, **{**own, **decided})


BALANCED = [
    balanced("d1", 1, "id-a"),
    balanced("d2", 1, "id-a", "12:00:01"),
    balanced("d3", 2, "id-a", "12:00:02"),
    balanced("d4", 3, "id-b", "12:00:03"),
    # The first attempt picked an id of which no more is known.
    balanced("d5", 4, "id-gone", "12:00:00"),
    balanced("d5", 4, "id-b", "12:00:04", 2),
    balanced("d6", 5, "id-b", "12:00:05", matching_step=1),
    # What arrives, and what comes back from its own address, is balanced by the routes of msdb.
    balanced("d7", 6, "id-m", "12:00:06", database_name=None),
    balanced("d8", 7, "id-m", "12:00:07", rerouted_from="Own"),
    balanced("d9", 8, "id-a", "12:00:08", instance="SPOKE"),
]


def random_traffic(chance: random.Random, messages: int) -> list[Row]:
    """Return messages of a few groups, dialogs and times. Some have several attempts, and some are before 1970."""
    rows = random_rows(chance, messages)
    for row in rows:
        day = chance.choice(("1969-12-31", "2026-01-05", "2026-01-06"))
        row["decided_at"] = (
            f"{day}T{chance.randrange(24):02d}:5{chance.randrange(10)}:59.99999{chance.randrange(10)}Z"
        )
        row["route_name"] = chance.choice((None, "ToA", "ToB"))
        row["address"] = chance.choice((None, "LOCAL", "tcp://é:4022"))
        row["destination_database"] = chance.choice((None, "Stock"))
        row["matching_step"] = chance.choice((None, 3, 3, 5))
        row["broker_instance"] = chance.choice(("id-a", "id-b"))
        row["rerouted_from"] = chance.choice((None, None, "Own"))
        row["conversation_id"] = f"c{chance.randrange(9)}"
    return rows


def last_attempts(rows: list[Row]) -> list[Row]:
    """The rows that no later attempt has replaced."""
    last: Counter[tuple[str, str]] = Counter()
    for row in rows:
        key = (row["instance_name"], row["message_id"])
        last[key] = max(last[key], row["attempt"])
    return [row for row in rows if row["attempt"] == last[row["instance_name"], row["message_id"]]]


def flows_plainly(rows: list[Row]) -> dict[tuple[Any, ...], tuple[int, int]]:
    """How many messages each flow has, and when its oldest was enqueued."""
    counts: dict[tuple[Any, ...], tuple[int, int]] = {}
    for row in last_attempts(rows):
        flow, at = tuple(row.get(name) for name in FLOW), micros(row["enqueue_time"])
        messages, oldest = counts.get(flow, (0, at))
        counts[flow] = (messages + 1, min(oldest, at))
    return counts


def points_plainly(rows: list[Row], seconds: int) -> Counter[tuple[Any, ...]]:
    """How many messages were decided in each step."""
    step = seconds * 1_000_000
    return Counter(
        (
            micros(row["decided_at"]) // step * step,
            *(row[name] for name in ("instance_name", "to_service_name", "outcome")),
        )
        for row in last_attempts(rows)
    )


def dialogs_plainly(rows: list[Row], spans: dict[tuple[str, str, str], tuple[Any, Any]]) -> dict[Any, int]:
    """How many dialogs were balanced to each id in its span of time."""
    dialogs_by_pick: dict[tuple[str, ...], set[str]] = {}
    for row in last_attempts(rows):
        is_arrival = row["database_name"] is None or row.get("rerouted_from") is not None
        scope = (row["instance_name"], "msdb" if is_arrival else row["database_name"], row["to_service_name"])
        since, until = spans.get(scope, (0, 0))
        at = micros(row["decided_at"])
        if row.get("matching_step") == 3 and (since is None or since <= at) and (until is None or at < until):
            dialogs_by_pick.setdefault((*scope, row["broker_instance"]), set()).add(row["conversation_id"])
    return {name: len(dialogs) for name, dialogs in dialogs_by_pick.items()}
