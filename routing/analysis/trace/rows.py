"""Paths as rows: each way, and each hop of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from routing.rules.pathing import Path
from routing.rules.ways import Trace, Way
from routing.schemas import TRACED_HOPS, TRACED_WAYS
from routing.storage.rows import Rows

THERE, BACK = "THERE", "BACK"


def traces_of(path: Path) -> Iterator[tuple[str, Trace]]:
    """What was followed, by its direction."""
    yield THERE, path.there
    if path.back is not None:
        yield BACK, path.back


def way_rows(paths: Sequence[Path]) -> Rows:
    """All ways in the order in which they were found, in the columns of `TRACED_WAYS`."""
    return Rows(TRACED_WAYS, tuple({**place, **_way(way)} for place, way in _places(paths)))


def hop_rows(paths: Sequence[Path]) -> Rows:
    """All hops of these, in the columns of `TRACED_HOPS`."""
    return Rows(
        TRACED_HOPS,
        tuple(
            {**place, "hop": number, **hop.plain()}
            for place, way in _places(paths)
            for number, hop in enumerate(way.hops, 1)
        ),
    )


def _places(paths: Sequence[Path]) -> Iterator[tuple[dict[str, Any], Way]]:
    for number, path in enumerate(paths, 1):
        for direction, trace in traces_of(path):
            for place, way in enumerate(trace.ways, 1):
                yield {"path": number, "direction": direction, "way": place}, way


def _way(way: Way) -> dict[str, Any]:
    return {
        "outcome": str(way.ending),
        "reason": None if way.reason is None else str(way.reason),
        "instance_name": way.instance,
        "database_name": way.database,
        "address": way.address,
    }
