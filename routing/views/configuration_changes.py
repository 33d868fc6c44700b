"""Find the valid routes that differ between two sides, and the lint findings that appear or disappear."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from routing.cases.estate_sides import DiffSides, OneSide
from routing.lint.catalogue import Severity
from routing.lint.lint_settings import LintSettings
from routing.lint.linting import lint_apart
from routing.render.wording import format_time
from routing.result_schemas import FINDING_CHANGES, FINDINGS, ROUTE_CHANGES, SIDES
from routing.rules import text
from routing.tables.arrow_rows import SchemaRows, with_moments
from routing.tables.table_columns import TableColumns
from routing.terms import ReadRow, TableRow
from routing.views.page.facts import RouteChange

_NAME = ("instance_name", "database_name", "name")
_SAID = ("remote_service_name", "broker_instance", "lifetime", "address", "mirror_address")
_BOUNDS = ("valid_from", "valid_to", "lifetime")
ADDED, REMOVED, CHANGED = "added", "removed", "changed"
Name = tuple[Any, ...]
RouteValues = tuple[Any, ...]
# The columns of a route with their displayed names, in order.
_CALLED = {
    "remote_service_name": "service",
    "broker_instance": "broker",
    "address": "address",
    "mirror_address": "mirror",
    "lifetime": "lifetime",
}
# The forms for comparison of values that are not compared as written.
_COMPARED: Mapping[str, Callable[[Any], Any]] = {
    "remote_service_name": text.empty_as_null,
    "broker_instance": text.broker_id,
    "mirror_address": text.empty_as_null,
}


def find_route_changes(diff_sides: DiffSides) -> SchemaRows:
    """List valid routes that only one side has or that differ, by instance, database and name.

    Routes are identified by name, and equal versions count once. A future lifetime is part of a route.
    """
    # At one time, only routes with different rows can differ.
    near = (
        {row[: len(_NAME)] for row in diff_sides.differing.get("routes", ())} if diff_sides.is_one_time else None
    )
    old, new = (_in_force(one_side, near) for one_side in (diff_sides.before, diff_sides.after))
    change_rows = [
        _row(name, old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
        if _compared(old.get(name)) != _compared(new.get(name))
    ]
    lifetimes = ("lifetime_before", "lifetime_after")
    return SchemaRows(ROUTE_CHANGES, tuple(with_moments(change_rows, lifetimes)))


def _in_force(one_side: OneSide, near: Collection[Name] | None) -> dict[Name, RouteValues]:
    """Return the columns of a side's valid routes, by name. ``near`` limits them to its names."""
    routes, at = one_side.settings["routes"], one_side.at
    if near is not None:
        routes = routes.take([place for place, name in enumerate(routes.rows(*_NAME)) if name in near])
    route_rows = zip(routes.rows(*_BOUNDS), routes.rows(*_NAME), routes.rows(*_SAID), strict=True)
    return {
        name: text
        for (begins, *ends), name, text in route_rows
        if (begins is None or begins <= at) and all(end is None or at < end for end in ends)
    }


def _compared(route_values: RouteValues | None) -> RouteValues | None:
    if route_values is None:
        return None
    pairs = zip(_SAID, route_values, strict=True)
    return tuple(_COMPARED[name](value) if name in _COMPARED else value for name, value in pairs)


def _row(name: Name, old: RouteValues | None, new: RouteValues | None) -> TableRow:
    change = ADDED if old is None else REMOVED if new is None else CHANGED
    row: TableRow = {"change": change, **dict(zip(_NAME, name, strict=True))}
    for before_or_after, route_values in (("before", old), ("after", new)):
        values = (None,) * len(_SAID) if route_values is None else route_values
        row.update({f"{column}_{before_or_after}": value for column, value in zip(_SAID, values, strict=True)})
    return {column: row[column] for column in ROUTE_CHANGES.names}


def state_change(row: ReadRow) -> str:
    """Write the columns of a route of ROUTE_CHANGES on both sides, only the different ones for a changed route."""
    return " \N{RIGHTWARDS ARROW} ".join(filter(None, (_list_differences(row, name) for name in SIDES)))


def _list_differences(row: ReadRow, before_or_after: str) -> str:
    is_changed = row["change"] == CHANGED
    differs = [name for name in _CALLED if not is_changed or row[f"{name}_before"] != row[f"{name}_after"]]
    differences = [
        f"{_CALLED[name]} {_text(row[f'{name}_{before_or_after}'])}"
        for name in differs
        if row[f"{name}_{before_or_after}"] or is_changed
    ]
    return ", ".join(differences)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return format_time(value)
    return "-" if value is None else str(value)


def describe_route_changes(
    before: TableColumns, after: TableColumns, before_at: int, after_at: int
) -> tuple[RouteChange, ...]:
    """Describe the valid routes at two times that only one table has, or that differ.

    ``before`` and ``after`` are columns of ``routes``, the times microseconds since 1970. A route counts by its
    name, as in `find_route_changes`.
    """
    diff_sides = DiffSides(
        OneSide("before", before_at, {"routes": before}), OneSide("after", after_at, {"routes": after})
    )
    return tuple(map(_describe_change, find_route_changes(diff_sides)))


def _describe_change(row: ReadRow) -> RouteChange:
    route_address = row["instance_name"], row["database_name"], row["name"]
    return RouteChange(*route_address, row["change"].upper(), state_change(row))


COMES, GOES = "comes", "goes"
_WORST_FIRST = [str(severity) for severity in Severity]


def find_finding_changes(
    diff_sides: DiffSides, dialogs: Sequence[TableColumns | None], settings: LintSettings
) -> SchemaRows:
    """Return the findings that only one side has: new ones first, the worst of each first.

    Whole rows are compared, so a finding with another message is gone and new. ``dialogs`` are, for each side, the
    rows of relevant dialogs at its time. Suppressed findings are left out.
    """
    if diff_sides.is_one_time and not diff_sides.differing:
        return SchemaRows(FINDING_CHANGES, ())
    before, after = (
        (_columns(one_side, rows), one_side.at) for one_side, rows in zip(diff_sides.both, dialogs, strict=True)
    )
    finding_rows = lint_apart(before, after, settings.expiring_within_days, settings.suppress, settings.rules)
    removed, added = (
        [{"change": change, **row} for row in rows]
        for change, rows in zip((GOES, COMES), finding_rows, strict=True)
    )
    return SchemaRows(FINDING_CHANGES, (*sorted(added, key=_place), *sorted(removed, key=_place)))


def _columns(one_side: OneSide, dialogs: TableColumns | None) -> Mapping[str, TableColumns]:
    return {**one_side.settings, **({} if dialogs is None else {"dialogs": dialogs})}


def _place(row: ReadRow) -> tuple[Any, ...]:
    column_values = ((row[name] is not None, row[name] or "") for name in FINDINGS.names if name != "error_number")
    return (_WORST_FIRST.index(row["severity"]), *column_values, row["error_number"] or 0)
