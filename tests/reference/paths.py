"""Compute the rows of ``message_paths`` from input tables, independently of the package."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .following import Network
from .messages import asking_order, faults, read_dialogs, read_message
from .requests import RequestBook
from .text import text_or_none
from .times import utc
from .ways import Path

Row = dict[str, Any]
Tables = dict[str, list[Row]]
_OF_THE_MESSAGE = ("message_id", "is_initiator", "message_sequence_number", "enqueue_time", "to_service_name")


def own_paths(tables: Tables) -> list[Path]:
    """List the paths of all messages in the order of their rows. The messages must be valid."""
    paths = follow_all(tables, None)
    return [paths[place] for place in range(len(tables["messages"]))]


def path_rows(tables: Tables, as_of: datetime | None = None) -> list[Row]:
    """Return the rows of ``message_paths`` with all columns."""
    return [_row(tables["messages"][place], path, as_of) for place, path in follow_all(tables, as_of).items()]


def follow_all(tables: Tables, as_of: datetime | None) -> dict[int, Path]:
    """Follow all accepted messages, and return their paths by the places of their rows."""
    network, dialogs = Network(tables), read_dialogs(tables.get("dialogs"))
    book, rows = RequestBook(tables.get("route_requests")), tables["messages"]
    read = {
        place: read_message(row, network.instances, dialogs, utc(as_of))
        for place, row in enumerate(rows)
        if not faults(row, network.instances)
    }
    # In this order a message's request is open before a later one asks.
    return {
        place: network.trace(read[place], book, rows[place].get("from_service_name"))
        for place in sorted(read, key=lambda place: asking_order(read[place]))
    }


def _row(row: Row, path: Path, as_of: datetime | None) -> Row:
    there, back = path.there, path.back
    end = None if there.is_cut else there.ways[0]
    reply = None if back is None or back.is_cut else back.ways[0]
    return {
        **{column: row.get(column) for column in _OF_THE_MESSAGE},
        "instance_name": row["instance_name"],
        "conversation_id": row["conversation_id"].lower(),
        "database_name": text_or_none(row.get("database_name")),
        "from_service_name": text_or_none(row.get("from_service_name")),
        "decided_at": utc(as_of) or utc(row.get("observed_at")) or utc(row["enqueue_time"]),
        "outcome": there.end,
        "reason": end and end.reason,
        "final_instance_name": end and end.instance,
        "final_database_name": end and end.database,
        "final_address": end and end.address,
        "hops": [
            {
                "instance_name": hop.instance,
                "scope": hop.scope,
                "matching_step": hop.step,
                "route_name": hop.route,
                "address": hop.address,
                "outcome": hop.outcome,
                "reason": hop.reason,
            }
            for hop in there.ways[0].hops
        ],
        "ways_agree": there.ways_agree,
        "multiple_targets": there.multiple_targets,
        "return_outcome": path.back_end,
        "return_reason": reply and reply.reason,
        "return_instance_name": reply and reply.instance,
        "return_database_name": reply and reply.database,
        "return_ways_agree": back and back.ways_agree,
        "joint_ending": path.joint.end,
    }
