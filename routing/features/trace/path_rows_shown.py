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
    return SchemaRows(TRACED_WAYS, tuple({**place, **_path_row(hop_path)} for place, hop_path in _places(paths)))


def hop_rows(paths: Sequence[PathWithReturn]) -> SchemaRows:
    """Return all hops of these, in the columns of `TRACED_HOPS`."""
    return SchemaRows(
        TRACED_HOPS,
        tuple(
            {**place, "hop": number, **hop.plain()}
            for place, hop_path in _places(paths)
            for number, hop in enumerate(hop_path.hops, 1)
        ),
    )


def _places(paths: Sequence[PathWithReturn]) -> Iterator[tuple[dict[str, Any], HopPath]]:
    for number, path in enumerate(paths, 1):
        for direction, trace in traces_of(path):
            for place, hop_path in enumerate(trace.ways, 1):
                yield {"path": number, "direction": direction, "way": place}, hop_path


def _path_row(hop_path: HopPath) -> dict[str, Any]:
    return {
        "outcome": str(hop_path.ending),
        "reason": None if hop_path.reason is None else str(hop_path.reason),
        "instance_name": hop_path.instance,
        "database_name": hop_path.database,
        "address": hop_path.address,
    }
