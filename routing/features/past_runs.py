"""The runs so far, and one of them: the table ``runs`` in, rows for people and programs out (tables.md)."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from routing.errors import RunError
from routing.schemas import LISTED_RUNS, ONE_RUN, RUNS, Schema
from routing.tables.read_rows import read_rows
from routing.tables.schema_rows import SchemaRows
from routing.tables.table_columns import Table
from routing.tables.times import micros_of

NEAREST = 3
# As many of the newest runs are looked through for one that was meant.
_LOOKED_THROUGH = 1_000
_MICROSECONDS = 1e6
_NEWEST_FIRST = ("started_at", "run_id")
_OF_A_LIST = Schema(tuple(f for f in RUNS if f.name in (*LISTED_RUNS.names, "finished_at")))
_IDS = Schema(tuple(f for f in RUNS if f.name in _NEWEST_FIRST))


def list_runs(runs: Table, limit: int | None = None) -> SchemaRows:
    """Return the recorded runs, newest first, without settings, versions and stages.

    ``runs`` is the table of that name. Rows of `schemas.LISTED_RUNS`.
    """
    run_rows = read_rows(runs, _OF_A_LIST, last_by=_NEWEST_FIRST, limit=limit)
    return SchemaRows(
        LISTED_RUNS, tuple(_in_order({**row, "seconds": _seconds(row)}, LISTED_RUNS) for row in run_rows)
    )


def find_run(runs: Table, asked: str, location: str) -> SchemaRows:
    """Find the run that has this id, or else the only one whose id begins with it. Raises RunError.

    One row of `schemas.ONE_RUN`. ``location`` is for the message. Raises RunError.
    """
    newest = [str(row["run_id"]) for row in read_rows(runs, _IDS, last_by=_NEWEST_FIRST)]
    ids = [run_id for run_id in dict.fromkeys(newest) if run_id.startswith(asked)]
    if not ids or not asked:
        raise RunError.unknown(asked, location, _nearest(newest[:_LOOKED_THROUGH], asked))
    if len(ids) > 1 and asked not in ids:
        raise RunError.ambiguous(asked, ids[:NEAREST], len(ids))
    run_id = asked if asked in ids else ids[0]
    [row] = read_rows(runs, RUNS, last_by=_NEWEST_FIRST, limit=1, only={"run_id": [run_id]})
    return SchemaRows(ONE_RUN, ({**row, "seconds": _seconds(row), "slow_stages": _slow_stages(row)},))


def _in_order(row: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    return {name: row[name] for name in schema.names}


def _seconds(row: Mapping[str, Any]) -> float:
    return (micros_of(row["finished_at"]) - micros_of(row["started_at"])) / _MICROSECONDS


def _slow_stages(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the stages, slowest first, with their share of the run; a run of no time has no shares."""
    whole = _seconds(row)
    slowest = sorted(((seconds, stage) for stage, seconds in row["stage_seconds"].items()), reverse=True)
    return [
        {"stage": stage, "seconds": seconds, "share": seconds / whole if whole > 0 else None}
        for seconds, stage in slowest
    ]


def _nearest(ids: Sequence[str], asked: str) -> list[str]:
    """Return the ids that are spelled most alike, of the newest runs; the newest where none is alike."""
    # What was typed may be the beginning of an id.
    beginnings: dict[str, str] = {}
    for run_id in ids:
        beginnings.setdefault(run_id[: len(asked)], run_id)
    alike = difflib.get_close_matches(asked[:100], list(beginnings), n=NEAREST)
    return [beginnings[beginning] for beginning in alike] or list(ids[:NEAREST])
