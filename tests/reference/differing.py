"""The difference of two full runs of the oracle over the same messages, row by row."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .instances import read_instances
from .messages import MESSAGE_COLUMNS, faults
from .resolver import Tables, resolve

Row = dict[str, Any]
COMPARED = ("outcome", "reason", "route_name", "address", "mirror_address", "destination_database")
SHOWN = [column for column in MESSAGE_COLUMNS if column not in ("observed_at", "hops_remaining")]


def decisions(tables: Tables, as_of: datetime | None) -> list[Row]:
    """Tell of each messages row, in order, what is decided; one set aside is REJECTED for all its reasons."""
    done = resolve(tables, as_of=as_of)
    resolved, rejected = iter(done.resolved_routes), iter(done.rejected_messages)
    instances = read_instances(tables)
    found = []
    for row in tables["messages"]:
        if faults(row, instances):
            codes = next(rejected)["reasons"]
            found.append({**dict.fromkeys(COMPARED), "outcome": "REJECTED", "reason": ", ".join(codes)})
        else:
            decided = next(resolved)
            found.append({column: decided[column] for column in COMPARED})
    return found


def both(before: Tables, after: Tables, as_of: tuple[datetime | None, datetime | None]) -> list[Row]:
    """Put the two decisions of each message of the first tables into one row, the message as it was read."""
    messages = before["messages"]
    own = {**after, "messages": messages, "dialogs": before["dialogs"]}
    pairs = zip(messages, decisions(before, as_of[0]), decisions(own, as_of[1]), strict=True)
    return [
        {
            **{column: message.get(column) for column in SHOWN},
            **{f"{column}_before": mine[column] for column in COMPARED},
            **{f"{column}_after": theirs[column] for column in COMPARED},
        }
        for message, mine, theirs in pairs
    ]


def has_changed(row: Row) -> bool:
    """Tell whether anything that is compared differs."""
    return any(row[f"{column}_before"] != row[f"{column}_after"] for column in COMPARED)
