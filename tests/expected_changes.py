"""What a comparison is to find, from two runs of the tests' own resolver over the same messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.reference.estates import Tables
from tests.reference.instances import read_instances
from tests.reference.messages import faults
from tests.reference.resolver import resolve

Row = Mapping[str, Any]
DECIDED = ("outcome", "reason", "route_name", "address", "mirror_address", "destination_database")
MESSAGE = (
    *("message_id", "conversation_id", "is_initiator", "message_sequence_number", "enqueue_time"),
    *("instance_name", "database_name", "to_service_name", "to_broker_instance", "from_service_name"),
)
COLUMNS = (*MESSAGE, *(f"{name}_{side}" for side in ("before", "after") for name in DECIDED))
_RANKS = {"DELAYED": 1, "DROPPED": 2, "REJECTED": 3}


def decisions(tables: Tables, as_of: datetime) -> list[tuple[Any, ...]]:
    """What becomes of each message, in their order."""
    done, instances = resolve(tables, as_of), read_instances(tables)
    resolved, rejected = iter(done.resolved_routes), iter(done.rejected_messages)
    found = []
    for row in tables["messages"]:
        if faults(row, instances):
            found.append(("REJECTED", ", ".join(next(rejected)["reasons"]), None, None, None, None))
        else:
            verdict = next(resolved)
            found.append(tuple(verdict[name] for name in DECIDED))
    return found


def changed_rows(
    before: Tables, after: Tables, as_of: datetime, later: datetime | None = None
) -> list[dict[str, Any]]:
    """Every changed message, with both decisions; messages and dialogs are those of ``before``."""
    others = {**after, "messages": before["messages"], "dialogs": before["dialogs"]}
    both = zip(before["messages"], decisions(before, as_of), decisions(others, later or as_of), strict=True)
    return [
        dict(zip(COLUMNS, (*(row.get(name) for name in MESSAGE), *old, *new), strict=True))
        for row, old, new in both
        if old != new
    ]


def counted(rows: Iterable[Row], names: Sequence[str] = COLUMNS) -> Counter[tuple[Any, ...]]:
    """How often each combination of values stands there."""
    return Counter(tuple(row[name] for name in names) for row in rows)


def is_worse(row: Row) -> bool:
    """Whether a message gets worse."""
    return _RANKS.get(row["outcome_after"], 0) > _RANKS.get(row["outcome_before"], 0)


def first_three(rows: Iterable[Row], ends: tuple[str, str, str, str]) -> list[dict[str, Any]]:
    """The examples of a change from an outcome and reason to others."""
    names = ("instance_name", "message_id", "conversation_id")
    mine = [
        {name: row[name] for name in names}
        for row in rows
        if (row["outcome_before"], row["reason_before"], row["outcome_after"], row["reason_after"]) == ends
    ]
    mine.sort(key=lambda row: [(row[name] is not None, row[name] or "") for name in names])
    return mine[:3]
