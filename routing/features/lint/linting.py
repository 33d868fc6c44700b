"""Lint a configuration: from tables to findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from routing.features.lint import lint_tables, registry, traffic_findings
from routing.features.lint.configuration import configuration_of
from routing.features.lint.custom_rules import CustomRule, find_own
from routing.features.lint.finding_rows import kinds_with, rows_of, suppressed_of
from routing.features.lint.hazards import prove_hazards
from routing.features.lint.lint_estate import estate_of
from routing.features.lint.lint_finding import LintFinding
from routing.features.lint.lint_settings import DEFAULT_DAYS, LintSettings, LintSuppression
from routing.features.lint.open_messages import OpenMessageFollower
from routing.features.lint.probing import answers_of
from routing.features.lint.resolved import RebalancedDialogs, RouteName, changed_picks, open_dialogs, used_routes
from routing.features.lint.targets import OpenDialogsOf
from routing.process.garbage import no_search_for_cycles
from routing.schemas import ROUTE_COVERAGE, ROUTES
from routing.tables.schema_rows import SchemaRows
from routing.tables.table_columns import Table, TableColumns
from routing.tables.times import micros_of

# What findings in a row of routes are told by, besides the row itself; and what each of them names.
_AROUND_ROUTES = ("instances", "databases", "services")
_NAME = ("instance_name", "database_name", "name")


@dataclass(frozen=True)
class LintResult:
    """The result of `lint`; all rows are in the order in which they are printed.

    findings, suppressed: columns code, severity, instance_name, database_name, object, message, advice,
    error_number. coverage: instance_name, routes, used; None where no resolved messages were given.
    """

    findings: SchemaRows
    suppressed: SchemaRows
    coverage: SchemaRows | None


def lint(
    tables: Mapping[str, Table],
    *,
    now: datetime,
    expiring_within_days: int = DEFAULT_DAYS,
    suppress: Sequence[LintSuppression] = (),
    resolved: Table | None = None,
    rules: Sequence[CustomRule] = (),
) -> LintResult:
    """Find faults and hazards of a configuration at one moment.

    ``tables`` maps routes, databases, services, instances and, where there are any, dialogs and route_requests to
    DataFrames, Arrow tables or datasets (tables.md); they may hold rows that `resolve` refuses. ``now`` is UTC
    where it has no zone. ``resolved`` are rows of ``resolved_routes``, as any of these: with them routes that no
    message used (SBR028) and dialogs whose pick changed (SBR039) are found, dialogs at risk (SBR041) are counted,
    and coverage is known. ``rules`` are custom ones (`rule_files.load_rules`). Raises InputError where a table or
    column is missing, RuleError where one of these fails.
    """
    moment = micros_of(now)
    return lint_columns(
        lint_tables.columns(tables, moment),
        moment,
        LintSettings(tuple(suppress), expiring_within_days, tuple(rules)),
        used=None if resolved is None else used_routes(resolved),
        changed=[] if resolved is None else changed_picks(resolved),
        dialogs_of=None if resolved is None else partial(open_dialogs, resolved),
    )


def lint_columns(
    columns: Mapping[str, TableColumns],
    now: int,
    settings: LintSettings,
    *,
    used: set[RouteName] | None = None,
    changed: Sequence[RebalancedDialogs] = (),
    dialogs_of: OpenDialogsOf | None = None,
) -> LintResult:
    """Lint columns of the tables that `lint_tables.READ` names, at a moment (microseconds).

    ``used`` are the routes that messages used; ``changed`` and ``dialogs_of`` tell of their dialogs.
    """
    every = find_all(columns, now, settings.expiring_within_days, used, changed, dialogs_of)
    if settings.rules:
        every |= find_own(settings.rules, configuration_of(columns, now))
    suppressed, kinds = suppressed_of(every, settings.suppress), kinds_with(settings.rules)
    return LintResult(
        findings=rows_of(every - suppressed, kinds),
        suppressed=rows_of(suppressed, kinds),
        coverage=None
        if used is None
        else SchemaRows(ROUTE_COVERAGE, tuple(traffic_findings.coverage(columns["routes"], used))),
    )


def find_all(
    columns: Mapping[str, TableColumns],
    now: int,
    days: int = DEFAULT_DAYS,
    used: set[RouteName] | None = None,
    changed: Sequence[RebalancedDialogs] = (),
    dialogs_of: OpenDialogsOf | None = None,
    rows: TableColumns | None = None,
) -> set[LintFinding]:
    """Find all findings in columns of the tables that `lint_tables.READ` names, at a moment (microseconds).

    ``rows`` are those rows of routes that are looked at one by one, all where None.
    """
    with no_search_for_cycles():
        estate = estate_of(columns, now, days)
        route_rows = columns["routes"] if rows is None else rows
        follower = OpenMessageFollower(estate)
        hazards = prove_hazards(estate, follower)
        evidence = registry.LintEvidence(
            estate, answers_of(estate), follower, hazards, used, list(changed), dialogs_of, route_rows
        )
        return registry.find_all(evidence)


Moment = tuple[Mapping[str, TableColumns], int]
"""Columns of the tables, and a moment."""


def lint_apart(
    before: Moment,
    after: Moment,
    days: int = DEFAULT_DAYS,
    suppress: Sequence[LintSuppression] = (),
    rules: Sequence[CustomRule] = (),
) -> tuple[SchemaRows, SchemaRows]:
    """Return the findings of `lint` that the first side alone has, and those that the second alone has.

    Suppressed ones are left out. Where the sides differ in routes alone, a row of a route that is equal on both
    has the same findings on both, and is not looked at.
    """
    near = _differing_routes(before, after)
    old, new = (
        find_all(columns, now, days, rows=near and near(columns["routes"]))
        | (find_own(rules, configuration_of(columns, now)) if rules else set())
        for columns, now in (before, after)
    )
    kinds = kinds_with(rules)
    first, second = (rows_of(alone - suppressed_of(alone, suppress), kinds) for alone in (old - new, new - old))
    return first, second


def _differing_routes(before: Moment, after: Moment) -> Callable[[TableColumns], TableColumns] | None:
    """Return a selection of routes by the names of which a version differs; None where it may lack findings.

    What is found in a row names its instance, database and route.
    """
    (old, then), (new, now) = before, after
    if then != now or any(old[key] is not new[key] and old[key] != new[key] for key in _AROUND_ROUTES):
        return None
    names = {row[: len(_NAME)] for row in _whole(old["routes"]) ^ _whole(new["routes"])}

    def take(routes: TableColumns) -> TableColumns:
        return routes.take([place for place, name in enumerate(routes.rows(*_NAME)) if name in names])

    return take


def _whole(routes: TableColumns) -> set[tuple[Any, ...]]:
    return set(routes.rows(*ROUTES.names))
