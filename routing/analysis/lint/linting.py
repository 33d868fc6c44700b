"""Lint a configuration: from tables to findings."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from routing.analysis.lint import reading, registry, traffic
from routing.analysis.lint.catalogue import BY_CODE
from routing.analysis.lint.estate import estate_of
from routing.analysis.lint.finding import Found
from routing.analysis.lint.hazards import prove_hazards
from routing.analysis.lint.options import DEFAULT_DAYS, Suppression
from routing.analysis.lint.probing import answers_of
from routing.analysis.lint.resolved import Changed, RouteName, changed_picks, open_dialogs, used_routes
from routing.analysis.lint.targets import OpenDialogsOf
from routing.analysis.lint.walks import Walks
from routing.schemas import FINDINGS, ROUTE_COVERAGE, ROUTES
from routing.storage.columns import Columns, Table
from routing.storage.rows import Rows
from routing.storage.times import micros_of

# What findings in a row of routes are told by, besides the row itself; and what each of them names.
_AROUND_ROUTES = ("instances", "databases", "services")
_NAME = ("instance_name", "database_name", "name")


@dataclass(frozen=True)
class Lint:
    """What `lint` returns; all rows are in the order in which they are printed.

    findings, suppressed: columns code, severity, instance_name, database_name, object, message, advice,
    error_number. coverage: instance_name, routes, used; None where no resolved messages were given.
    """

    findings: Rows
    suppressed: Rows
    coverage: Rows | None


def lint(
    tables: Mapping[str, Table],
    *,
    now: datetime,
    expiring_within_days: int = DEFAULT_DAYS,
    suppress: Sequence[Suppression] = (),
    resolved: Table | None = None,
) -> Lint:
    """Faults and hazards of a configuration at one moment.

    ``tables`` maps routes, databases, services, instances and, where there are any, dialogs and route_requests to
    DataFrames, Arrow tables or datasets (tables.md); they may hold rows that `resolve` refuses. ``now`` is UTC
    where it has no zone. ``resolved`` are rows of ``resolved_routes``, as any of these: with them routes that no
    message used (SBR028) and dialogs whose pick changed (SBR039) are found, dialogs at risk (SBR041) are told, and
    coverage is known. Raises InputError where a table or column is missing.
    """
    moment = micros_of(now)
    columns = reading.columns(tables, moment)
    used = None if resolved is None else used_routes(resolved)
    changed = [] if resolved is None else changed_picks(resolved)
    dialogs_of = None if resolved is None else partial(open_dialogs, resolved)
    every = find_all(columns, moment, expiring_within_days, used, changed, dialogs_of)
    suppressed = _suppressed(every, suppress)
    return Lint(
        findings=_rows(every - suppressed),
        suppressed=_rows(suppressed),
        coverage=None if used is None else Rows(ROUTE_COVERAGE, tuple(traffic.coverage(columns["routes"], used))),
    )


def find_all(
    columns: Mapping[str, Columns],
    now: int,
    days: int = DEFAULT_DAYS,
    used: set[RouteName] | None = None,
    changed: Sequence[Changed] = (),
    dialogs_of: OpenDialogsOf | None = None,
    rows: Columns | None = None,
) -> set[Found]:
    """All that is found in columns of the tables that `reading.READ` names, at a moment (microseconds).

    ``rows`` are those rows of routes that are looked at one by one, all where None.
    """
    with _no_search_for_cycles():
        estate = estate_of(columns, now, days)
        given = columns["routes"] if rows is None else rows
        walks = Walks(estate)
        hazards = prove_hazards(estate, walks)
        found = registry.Evidence(
            estate, answers_of(estate), walks, hazards, used, list(changed), dialogs_of, given
        )
        return registry.find_all(found)


Moment = tuple[Mapping[str, Columns], int]
"""Columns of the tables, and a moment."""


def lint_apart(
    before: Moment, after: Moment, days: int = DEFAULT_DAYS, suppress: Sequence[Suppression] = ()
) -> tuple[Rows, Rows]:
    """The findings of `lint` that the first side alone has, and those that the second alone has.

    Suppressed ones are left out. Where the sides differ in routes alone, a row of a route that is equal on both is
    told the same on both, and not looked at.
    """
    near = _differing_routes(before, after)
    old, new = (
        find_all(columns, now, days, rows=near and near(columns["routes"])) for columns, now in (before, after)
    )
    first, second = old - new, new - old
    return _rows(first - _suppressed(first, suppress)), _rows(second - _suppressed(second, suppress))


def _differing_routes(before: Moment, after: Moment) -> Callable[[Columns], Columns] | None:
    """What takes those rows of routes of whose name a version differs; None where more can be told differently.

    What is found in a row names its instance, database and route.
    """
    (old, then), (new, now) = before, after
    if then != now or any(old[key] is not new[key] and old[key] != new[key] for key in _AROUND_ROUTES):
        return None
    names = {row[: len(_NAME)] for row in _whole(old["routes"]) ^ _whole(new["routes"])}

    def take(routes: Columns) -> Columns:
        return routes.take([place for place, name in enumerate(routes.rows(*_NAME)) if name in names])

    return take


def _whole(routes: Columns) -> set[tuple[Any, ...]]:
    return set(routes.rows(*ROUTES.names))


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Keep Python from looking for cycles among so many objects: there are none, and it takes 40 % of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _suppressed(every: Iterable[Found], suppress: Sequence[Suppression]) -> set[Found]:
    return {one for one in every if any(_covers(part, one) for part in suppress)}


def _covers(one: Suppression, finding: Found) -> bool:
    """Whether a suppression's every given part is the finding's."""
    parts = finding._asdict()
    return all(parts[name] == value for name, value in vars(one).items() if value is not None)


def _rows(found: Iterable[Found]) -> Rows:
    """Findings in their full columns, sorted by them."""
    names = FINDINGS.names
    full = [_full(one) for one in found]
    full.sort(key=lambda row: tuple((row[name] is not None, row[name] or "") for name in names))
    return Rows(FINDINGS, tuple(full))


def _full(one: Found) -> dict[str, Any]:
    kind = BY_CODE[one.code]
    values = {**one._asdict(), "severity": str(kind.severity), "advice": kind.advice}
    return {name: values[name] for name in FINDINGS.names}
