"""Messages of two runs as tables, their statuses, and their listing in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

Row = dict[str, Any]
DAY = "2026-01-05T"
MONDAY, TUESDAY = "2026-01-05T12:00:00.123456Z", "2026-01-06T12:00:00.654321Z"
NO_ROUTE = "The target service name could not be found. Ensure that the service name is specified correctly."


def resolved(
    name: str, service: str, time: str, verdict: str, attempt: int = 1, *, instance: str = "HUB", **columns: Any
) -> Row:
    """Return a row of ``resolved_routes``. ``verdict`` is its outcome and reason."""
    outcome, reason = verdict.split()
    number = int.from_bytes(name.encode(), "big") % 10**6
    fixed = {
        "message_id": name,
        "conversation_id": f"c0{number:06d}-1111-2222-3333-444444444444",
        "is_initiator": True,
        "enqueue_time": f"{DAY}{time}Z",
        "instance_name": instance,
        "database_name": "Shop",
        "to_service_name": service,
        "decided_at": f"{DAY}12:00:00Z",
        "outcome": outcome,
        "reason": reason,
        "run_id": f"run-{attempt}",
        "attempt": attempt,
    }
    return {**fixed, **columns}


def in_files(rows: list[Row], folder: Path, parts: int = 1, by: list[str] | None = None) -> Any:
    """Return rows of ``resolved_routes`` as a dataset of several files, as a table has that grew."""
    from deltalake import write_deltalake

    from routing.config import TableLocation
    from routing.delta.local_tables import UnreadableTable, dataset_of, open_local
    from routing.schemas import RESOLVED_ROUTES
    from tests.frames import arrow_of

    for part in range(parts):
        write_deltalake(str(folder), arrow_of(rows[part::parts], RESOLVED_ROUTES), mode="append", partition_by=by)
    opened = open_local(TableLocation(str(folder)))
    assert not isinstance(opened, UnreadableTable)
    return dataset_of(str(folder), opened)


RESOLVED = [
    # Found its service at the second attempt.
    resolved("a1", "//stock", "09:00:00", "DELAYED NO_ROUTE"),
    resolved("a1", "//stock", "09:00:00", "DELIVERED LOCAL_SERVICE", 2),
    # Was tried three times; of the same id, but elsewhere, is the message after it.
    resolved("a2", "//stock", "10:00:00", "DELAYED NO_ROUTE"),
    resolved("a2", "//stock", "10:00:00", "DELAYED NO_ROUTE", 2),
    resolved("a2", "//stock", "10:00:00", "DELAYED BROKER_DISABLED", 3),
    resolved("a2", "//stock", "10:00:00", "DELIVERED LOCAL_SERVICE", instance="SPOKE", database_name=None),
    resolved("a3", "//stock", "08:00:00", "DELAYED NO_ROUTE"),
    resolved("a4", "//billing", "07:00:00", "SENT NETWORK_ADDRESS", route_name="ToBilling"),
    resolved("a5", "//stock", "08:00:00.000001", "DELAYED NO_ROUTE"),
    # The older of the same moment is the one with the smaller id.
    resolved("a7", "//stock", "08:00:00", "DELAYED NO_ROUTE"),
    resolved("o1", "//stock", "06:00:00", "DELAYED NO_ROUTE", database_name="Other"),
]


def observed(name: str, at: str, text: str | None, number: int | None, **columns: Any) -> Row:
    """A row of ``observed_routing`` as import makes it of a queue."""
    fixed = {
        "instance_name": "HUB",
        "database_name": "Shop",
        "conversation_id": "-",
        "message_id": name,
        "observed_at": at,
        "source": "TRANSMISSION_QUEUE",
        "status_text": text,
        "error_number": number,
    }
    return {**fixed, **columns}


OBSERVED = [
    observed("a3", MONDAY, None, None),
    observed("a3", TUESDAY, NO_ROUTE, 9793),
    observed("a2", TUESDAY, "The broker is disabled in msdb.", 9791),
    # Has left the queue since.
    observed("a5", MONDAY, NO_ROUTE, 9793),
    observed("a4", TUESDAY, None, None),
    observed("a7", TUESDAY, "Etwas ging schief.", None),
    # Of another source, and later than any export.
    observed("a3", "2026-01-07T12:00:00Z", "dropped", 28071, source="UNDELIVERABLE"),
    observed("o1", MONDAY, NO_ROUTE, 9793, database_name="Other"),
    # No run has decided it yet.
    observed("n1", TUESDAY, NO_ROUTE, 9793),
]


def exported(database: str, at: str, view: str = "transmission_queue", instance: str = "HUB") -> Row:
    """A row of ``imports``."""
    times = {"exported_at": at, "imported_at": at}
    return {"instance_name": instance, "database_name": database, "view_or_file": view, **times}


# The newest export of Other's queue is empty; that of SPOKE's was never made.
IMPORTS = [
    exported("Shop", TUESDAY),
    exported("Other", TUESDAY),
    exported("Shop", "2026-01-08T12:00:00Z", "routes"),
    exported("Shop", "2026-01-08T12:00:00Z", "transmission_queue", "ELSEWHERE"),
]

_VERDICTS = (
    *("DELAYED NO_ROUTE", "DELAYED BROKER_DISABLED", "DROPPED BROKER_DISABLED"),
    *("SENT NETWORK_ADDRESS", "FORWARDED NETWORK_ADDRESS", "DELIVERED LOCAL_SERVICE"),
)
_RANKS = {"DELAYED": 1, "DROPPED": 2, "DELIVERED": 3, "SENT": 3, "FORWARDED": 3}
_LEVELS = ("instance_name", "to_service_name", "reason")


def random_rows(chance: random.Random, messages: int) -> list[Row]:
    """Return messages of a few groups and times. Some have several attempts, and a few ids are duplicates."""
    rows: list[Row] = []
    for number in range(messages):
        name = f"m{chance.randrange(messages * 3) if chance.random() < 0.05 else number}"
        service, instance = chance.choice(("//a", "//b", "//é")), chance.choice(("HUB", "SPOKE", "hub"))
        time = f"{chance.randrange(3):02d}:00:0{chance.randrange(3)}.00000{chance.randrange(3)}"
        database = chance.choice((None, "Shop", "Other"))
        for attempt in range(1, chance.choice((1, 1, 1, 2, 3)) + 1):
            verdict = chance.choice(_VERDICTS)
            rows.append(resolved(name, service, time, verdict, attempt, instance=instance, database_name=database))
    chance.shuffle(rows)
    return rows


def list_plainly(rows: list[Row], only: dict[str, list[str]], *, oldest: bool, limit: int) -> Row:
    """Return the expected list and counts, computed row by row."""
    last: Counter[tuple[str, str]] = Counter()
    for row in rows:
        key = (row["instance_name"], row["message_id"])
        last[key] = max(last[key], row["attempt"])
    current = [
        row
        for row in rows
        if row["attempt"] == last[row["instance_name"], row["message_id"]]
        and all(row[name] in values for name, values in only.items())
    ]

    def place(row: Row) -> tuple[Any, ...]:
        ties = (*(row[name] for name in _LEVELS), row["message_id"], row["conversation_id"])
        # Times of one length compare as texts.
        by_age = (row["enqueue_time"].ljust(30), *ties, row["database_name"] or "~")
        return by_age if oldest else (_RANKS[row["outcome"]], *by_age)

    listed = sorted(current, key=place)[:limit]
    groups = Counter(tuple(row[name] for name in (*_LEVELS, "outcome")) for row in current)
    shown = {tuple(row[name] for name in _LEVELS) for row in listed}
    return {
        "ids": [(row["instance_name"], row["message_id"], row["reason"], row["database_name"]) for row in listed],
        "counts": Counter((row["outcome"], row["reason"]) for row in current),
        "groups": sorted((*group, count) for group, count in groups.items() if group[:3] in shown),
    }
