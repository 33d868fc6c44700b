"""Which routes differ between two times or tables, in words; and which counts do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from routing.features.diff.route_changes import find_route_changes, list_differences
from routing.features.diff.sides import DiffSides, OneSide
from routing.features.report.facts import RouteChange, WordCount
from routing.tables.table_columns import TableColumns


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


def _change(row: Mapping[str, Any]) -> RouteChange:
    sentences = [list_differences(row, "before"), list_differences(row, "after")]
    who = row["instance_name"], row["database_name"], row["name"]
    return RouteChange(*who, row["change"].upper(), " \N{RIGHTWARDS ARROW} ".join(filter(None, sentences)))


def count_words(words: Iterable[str], before: Mapping[Any, int], now: Mapping[Any, int]) -> list[WordCount]:
    """Return each of these words that messages were counted of, before or now, in the words' order."""
    pairs = ((str(word), before.get(word) or 0, now.get(word) or 0) for word in words)
    return [WordCount(*pair) for pair in pairs if any(pair[1:])]
