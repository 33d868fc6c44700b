"""What changed from the run before to the last one: what both recorded, and the routes that they read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from routing.analysis.diff.opening import Shelf
from routing.analysis.diff.sides import Given, read_given
from routing.analysis.report.altered import count_words, list_altered
from routing.analysis.report.facts import Changes, RouteChange
from routing.config import Config, Location
from routing.errors import InputError
from routing.schemas import RUNS, Schema
from routing.storage.columns import Columns, Table
from routing.storage.opening import Opener
from routing.storage.stored import read_rows
from routing.storage.times import micros_of
from routing.terms import Outcome, Reason

_TOLD = ("run_id", "mode", "outcome_counts", "reason_counts", "input_versions", "settings")
_WHEN = ("as_of", "now", "started_at", "finished_at")
_READ = Schema(tuple(field for field in RUNS if field.name in (*_TOLD, *_WHEN)))
_NEWEST_FIRST = ("finished_at", "run_id")
Row = Mapping[str, Any]


def changes_since(config: Config, opener: Opener, runs: Table) -> Changes | None:
    """What the last run that counts found otherwise than the one before; None where there are not two.

    The routes are those that each read, in force when it began or at the time that it decided for. They are None
    where a run read another table, or one without versions, or its version cannot be read any more. ``runs`` is
    the table of that name.
    """
    found = read_rows(runs, _READ, last_by=_NEWEST_FIRST, limit=2)
    if len(found) < 2:
        return None
    now, before = found
    return Changes(
        run_id=before["run_id"],
        finished_at=micros_of(before["finished_at"]),
        is_incremental="incremental" in (now["mode"], before["mode"]),
        outcomes=count_words(Outcome, before["outcome_counts"], now["outcome_counts"]),
        reasons=count_words(Reason, before["reason_counts"], now["reason_counts"]),
        routes=_routes(config.tables["routes"], before, now, Shelf(opener)),
    )


def _routes(location: Location, before: Row, now: Row, shelf: Shelf) -> Sequence[RouteChange] | None:
    """The routes that differ; None where those of a run are not at hand."""
    here = {str(location), str(shelf.opener.placed("tables.routes", location))}
    read = [
        (json.loads(run["settings"])["tables"]["routes"], run["input_versions"]["routes"]) for run in (before, now)
    ]
    if any(place not in here or version is None for place, version in read):
        return None
    try:
        found = {version: _columns(shelf, location, version) for _, version in read}
    except InputError:
        return None
    old, new = (found[version] for _, version in read)
    return list_altered(old, new, _time(before), _time(now))


def _columns(shelf: Shelf, location: Location, version: int) -> Columns:
    """The routes at a version. Raises InputError where it is not there, or not as a whole."""
    routes = shelf.open("routes", location, version)
    return read_given(Given("", 0, {"routes": routes}, {"routes": version}), "routes")


def _time(run: Row) -> int:
    """When a run decided which routes are in force, as far as that is one time."""
    return micros_of(run["as_of"] or run["now"] or run["started_at"])
