"""Paths as rows: each way, and each hop of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from routing.rules.pathing import PathWithReturn
from routing.rules.ways import HopPath, MessageTrace
from routing.schemas import TRACED_HOPS, TRACED_WAYS
from routing.tables.schema_rows import SchemaRows

THERE, BACK = "THERE", "BACK"


def traces_of(path: PathWithReturn) -> Iterator[tuple[str, MessageTrace]]:
    """Yield the traces there and back, each with its direction."""
    yield THERE, path.there
    if path.back is not None:
        yield BACK, path.back


def way_rows(paths: Sequence[PathWithReturn]) -> SchemaRows:
    """Return all ways in the order in which they were found, in the columns of `TRACED_WAYS`."""
    return SchemaRows(TRACED_WAYS, tuple({**place, **_way(way)} for place, way in _places(paths)))


def hop_rows(paths: Sequence[PathWithReturn]) -> SchemaRows:
    """Return all hops of these, in the columns of `TRACED_HOPS`."""
    return SchemaRows(
        TRACED_HOPS,
        tuple(
            {**place, "hop": number, **hop.plain()}
            for place, way in _places(paths)
            for number, hop in enumerate(way.hops, 1)
        ),
    )


def _places(paths: Sequence[PathWithReturn]) -> Iterator[tuple[dict[str, Any], HopPath]]:
    for number, path in enumerate(paths, 1):
        for direction, trace in traces_of(path):
            for place, way in enumerate(trace.ways, 1):
                yield {"path": number, "direction": direction, "way": place}, way


def _way(way: HopPath) -> dict[str, Any]:
    return {
        "outcome": str(way.ending),
        "reason": None if way.reason is None else str(way.reason),
        "instance_name": way.instance,
        "database_name": way.database,
        "address": way.address,
    }
