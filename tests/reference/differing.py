"""Compare two full runs of the oracle over the same messages, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import zip_longest
from typing import Any

from .instances import read_instances
from .messages import MESSAGE_COLUMNS, faults
from .paths import follow_all
from .resolver import Tables, resolve
from .ways import Path, Way

Row = dict[str, Any]
COMPARED = ("outcome", "reason", "route_name", "address", "mirror_address", "destination_database")
ENDING = ("ending", "ending_reason", "ending_instance_name", "ending_database_name")
HOP = ("hop_direction", "hop", "hop_instance_name", "hop_scope")
SHOWN = [column for column in MESSAGE_COLUMNS if column not in ("observed_at", "hops_remaining")]
_Steps = list[tuple[tuple[Any, ...], tuple[Any, ...]]]
"""Places of hops, each with its compared values."""


def decisions(tables: Tables, as_of: datetime | None) -> list[tuple[Row, _Steps]]:
    """Return the decision, the end and the steps in both directions of each message, in order.

    A rejected message is REJECTED with all its reasons, and has no steps.
    """
    done, paths = resolve(tables, as_of=as_of), follow_all(tables, as_of)
    resolved, rejected = iter(done.resolved_routes), iter(done.rejected_messages)
    instances = read_instances(tables)
    differing: list[tuple[Row, _Steps]] = []
    for place, row in enumerate(tables["messages"]):
        if faults(row, instances):
            codes = ", ".join(next(rejected)["reasons"])
            words = {"outcome": "REJECTED", "reason": codes, "ending": "REJECTED", "ending_reason": codes}
            differing.append(({**dict.fromkeys((*COMPARED, *ENDING)), **words}, []))
        else:
            decided, path = next(resolved), paths[place]
            ending = dict(zip(ENDING, path.joint, strict=True))
            differing.append(({**{column: decided[column] for column in COMPARED}, **ending}, list(_steps(path))))
    return differing


def both(before: Tables, after: Tables, as_of: tuple[datetime | None, datetime | None]) -> list[Row]:
    """Return a row for each message of the first tables: the message as read, and its two decisions."""
    messages = before["messages"]
    tables = {**after, "messages": messages, "dialogs": before["dialogs"]}
    pairs = zip(messages, decisions(before, as_of[0]), decisions(tables, as_of[1]), strict=True)
    return [
        {
            **{column: message.get(column) for column in SHOWN},
            **{f"{column}_before": value for column, value in mine.items()},
            **{f"{column}_after": value for column, value in theirs.items()},
            **dict(zip(HOP, _part(old, new), strict=True)),
        }
        for message, (mine, old), (theirs, new) in pairs
    ]


def has_changed(row: Row) -> bool:
    """Return whether any compared value differs."""
    return any(row[f"{column}_before"] != row[f"{column}_after"] for column in (*COMPARED, *ENDING))


def _steps(path: Path) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    for direction, traces in (("THERE", [path.there]), ("BACK", path.answers)):
        for trace in traces:
            ways = {(way.hops, way.end, way.instance, way.database, way.address): way for way in trace.ways}
            for way in ways.values():
                yield from _steps_of(direction, way)


def _steps_of(direction: str, way: Way) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    place: tuple[Any, ...] = ()
    for number, hop in enumerate(way.hops, 1):
        place = direction, number, hop.instance, hop.scope
        yield place, (hop.step, hop.route, hop.address, hop.outcome, hop.reason)
    yield place, (way.end, way.instance, way.database)


def _part(old: _Steps, new: _Steps) -> tuple[Any, ...]:
    """Return the first hop at which two paths differ, or nulls if they are equal or a side rejects the message."""
    if old and new:
        for mine, theirs in zip_longest(old, new):
            if mine != theirs:
                places = [step[0] for step in (theirs, mine) if step is not None]
                return min(places, key=lambda place: (place[0] == "BACK", place[1]))
    return (None,) * len(HOP)
