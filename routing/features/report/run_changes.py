"""Compare the last run with the run before: what both recorded, and the routes that they read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from routing.config import Config, TableLocation
from routing.delta.opening import TableOpener
from routing.errors import InputError
from routing.features.diff.comparison import TableCache
from routing.features.diff.configuration_changes import find_route_changes, list_differences
from routing.features.diff.sides import DiffSides, GivenTables, OneSide, read_given
from routing.features.report.facts import ReportChanges, RouteChange, WordCount
from routing.rules.timeline import micros_of
from routing.schemas import RUNS, Schema
from routing.tables.read_rows import read_rows
from routing.tables.table_columns import Table, TableColumns
from routing.terms import Outcome, ReadRow, Reason

# Which routes differ between two times or tables, in words; and which counts do.


def list_altered(
    before: TableColumns, after: TableColumns, before_at: int, after_at: int
) -> tuple[RouteChange, ...]:
    """List the routes in force at two times that one table alone has, or that differ, by their names.

    ``before`` and ``after`` are columns of ``routes``, the times microseconds since 1970. A route counts by its
    name, as in `find_route_changes`.
    """
    diff_sides = DiffSides(
        OneSide("before", before_at, {"routes": before}), OneSide("after", after_at, {"routes": after})
    )
    return tuple(map(_change, find_route_changes(diff_sides)))


def _change(row: ReadRow) -> RouteChange:
    sentences = [list_differences(row, "before"), list_differences(row, "after")]
    who = row["instance_name"], row["database_name"], row["name"]
    return RouteChange(*who, row["change"].upper(), " \N{RIGHTWARDS ARROW} ".join(filter(None, sentences)))


def count_words(words: Iterable[str], before: Mapping[Any, int], now: Mapping[Any, int]) -> list[WordCount]:
    """Return each of these words that messages were counted of, before or now, in the words' order."""
    pairs = ((str(word), before.get(word) or 0, now.get(word) or 0) for word in words)
    return [WordCount(*pair) for pair in pairs if any(pair[1:])]


_TOLD = ("run_id", "mode", "outcome_counts", "reason_counts", "input_versions", "settings")
_WHEN = ("as_of", "now", "started_at", "finished_at")
_READ = Schema(tuple(field for field in RUNS if field.name in (*_TOLD, *_WHEN)))
_NEWEST_FIRST = ("finished_at", "run_id")


def changes_since(config: Config, opener: TableOpener, runs: Table) -> ReportChanges | None:
    """Compare the last run that counts with the one before; None where there are not two.

    The routes are those that each read, in force when it began or at the time that it decided for. They are None
    where a run read another table, or one without versions, or its version cannot be read any more. ``runs`` is
    the table of that name.
    """
    last_runs = read_rows(runs, _READ, last_by=_NEWEST_FIRST, limit=2)
    if len(last_runs) < 2:
        return None
    now, before = last_runs
    return ReportChanges(
        run_id=before["run_id"],
        finished_at=micros_of(before["finished_at"]),
        is_incremental="incremental" in (now["mode"], before["mode"]),
        outcomes=count_words(Outcome, before["outcome_counts"], now["outcome_counts"]),
        reasons=count_words(Reason, before["reason_counts"], now["reason_counts"]),
        routes=_routes(config.tables["routes"], before, now, TableCache(opener)),
    )


def _routes(
    location: TableLocation, before: ReadRow, now: ReadRow, table_cache: TableCache
) -> Sequence[RouteChange] | None:
    """Return the routes that differ; None where those of a run are not at hand."""
    here = {str(location), str(table_cache.opener.placed("tables.routes", location))}
    read = [
        (json.loads(run["settings"])["tables"]["routes"], run["input_versions"]["routes"]) for run in (before, now)
    ]
    if any(place not in here or version is None for place, version in read):
        return None
    try:
        routes_by_version = {version: _columns(table_cache, location, version) for _, version in read}
    except InputError:
        return None
    old, new = (routes_by_version[version] for _, version in read)
    return list_altered(old, new, _time(before), _time(now))


def _columns(table_cache: TableCache, location: TableLocation, version: int) -> TableColumns:
    """Return the routes at a version. Raises InputError where it is not there, or not as a whole."""
    routes = table_cache.open("routes", location, version)
    return read_given(GivenTables("", 0, {"routes": routes}, {"routes": version}), "routes")


def _time(run: ReadRow) -> int:
    """Return the time as of which a run decided the routes in force, if it is one time."""
    return micros_of(run["as_of"] or run["now"] or run["started_at"])
