"""Lint a configuration: from tables to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from routing.cases.server_evidence import NO_EVIDENCE, ServerEvidence, evidence_of_tables
from routing.engines.traffic_tables import open_traffic
from routing.lint import address_rules, configuration_rules, endpoint_hazards, lint_estate, message_rules
from routing.lint.catalogue import BY_CODE, LintRule
from routing.lint.custom_rules import CustomRule, configuration_of, find_own
from routing.lint.endpoint_hazards import OpenDialogsOf, OpenMessageFollower, prove_hazards
from routing.lint.lint_estate import LintEstate, LintFinding, estate_of
from routing.lint.lint_settings import DEFAULT_DAYS, LintSettings, LintSuppression
from routing.lint.message_rules import DialogGroup, RouteName, open_dialogs, read_changed_picks, used_routes
from routing.lint.probing import answers_of
from routing.lint.server_rules import find_in_servers
from routing.process import no_search_for_cycles
from routing.result_schemas import FINDINGS, ROUTE_COVERAGE
from routing.rules.timeline import micros_of
from routing.schemas import ROUTES
from routing.tables.arrow_rows import SchemaRows
from routing.tables.given_tables import take_tables
from routing.tables.table_columns import Table, TableColumns
from routing.terms import ReadRow, TableRow


class ResolvedFacts(NamedTuple):
    """The routes that resolved messages used, and what they show of their dialogs if that was read."""

    used: set[RouteName]
    changed: Sequence[DialogGroup] = ()
    dialogs_of: OpenDialogsOf | None = None


# Convert findings to sorted rows in full columns, without suppressed ones.


def kinds_with(rules: Iterable[CustomRule]) -> Mapping[str, LintRule]:
    """Return every kind of finding by its code, those of custom rules last."""
    return {**BY_CODE, **{rule.code: rule.kind for rule in rules}}


def suppressed_of(findings: Iterable[LintFinding], suppress: Sequence[LintSuppression]) -> set[LintFinding]:
    """Return the findings that are not to be shown."""
    return {finding for finding in findings if any(_covers(part, finding) for part in suppress)}


def _covers(suppression: LintSuppression, finding: LintFinding) -> bool:
    parts = finding._asdict()
    return all(parts[name] == value for name, value in vars(suppression).items() if value is not None)


def rows_of(findings: Iterable[LintFinding], kinds: Mapping[str, LintRule]) -> SchemaRows:
    """Return findings in their full columns, sorted by them."""
    full = [full_row(finding, kinds) for finding in findings]
    full.sort(key=place_of)
    return SchemaRows(FINDINGS, tuple(full))


def place_of(row: ReadRow) -> tuple[Any, ...]:
    """Return a row's place in the order of its columns, null first."""
    return tuple((value is not None, value or "") for value in row.values())


def full_row(finding: LintFinding, kinds: Mapping[str, LintRule]) -> TableRow:
    """Return a finding in its full columns."""
    kind = kinds[finding.code]
    values = {**finding._asdict(), "severity": str(kind.severity), "advice": kind.advice}
    return {name: values[name] for name in FINDINGS.names}


# The tables that findings about a row of routes depend on, and the columns that identify such a finding.
_AROUND_ROUTES = ("instances", "databases", "services")
_NAME = ("instance_name", "database_name", "name")


@dataclass(frozen=True)
class LintResult:
    """The result of `lint`. All rows are in the order of the report.

    ``findings`` and ``suppressed`` have the columns code, severity, instance_name, database_name, object, message,
    advice and error_number. ``coverage`` has instance_name, routes and used. It is None without resolved messages.
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

    ``tables`` maps routes, databases, services, instances and optionally dialogs, route_requests and queues to
    DataFrames, Arrow tables or datasets (tables.md). They may have rows that `resolve` refuses. ``now`` is UTC if
    it has no zone.

    ``resolved`` are rows of ``resolved_routes`` in any of these forms. They allow lint to find unused routes
    (SBR028) and dialogs with a changed pick (SBR039), to count dialogs at risk (SBR041), and to measure coverage.
    ``rules`` are custom ones (`lint_settings.load_rules`). Raises InputError for a missing table or column,
    RuleError if a rule fails.
    """
    moment, facts = micros_of(now), None
    tables = take_tables(tables, lint_estate.READ)
    columns = lint_estate.columns(tables, moment)
    if resolved is not None:
        dialogs_of = partial(open_dialogs, resolved)
        facts = ResolvedFacts(used_routes(open_traffic(resolved)), read_changed_picks(resolved), dialogs_of)
    settings = LintSettings(tuple(suppress), expiring_within_days, tuple(rules))
    return lint_columns(columns, moment, settings, facts, evidence_of_tables(tables))


def lint_columns(
    columns: Mapping[str, TableColumns],
    now: int,
    settings: LintSettings,
    resolved: ResolvedFacts | None = None,
    server: ServerEvidence = NO_EVIDENCE,
) -> LintResult:
    """Lint columns of the tables in `lint_estate.READ`, at a moment (microseconds), and the facts of servers."""
    all_findings = find_all(columns, now, settings.expiring_within_days, resolved)
    all_findings.update(find_in_servers(server, now, settings.expiring_within_days))
    if settings.rules:
        all_findings |= find_own(settings.rules, configuration_of(columns, now))
    suppressed, kinds = suppressed_of(all_findings, settings.suppress), kinds_with(settings.rules)
    return LintResult(
        findings=rows_of(all_findings - suppressed, kinds),
        suppressed=rows_of(suppressed, kinds),
        coverage=None
        if resolved is None
        else SchemaRows(ROUTE_COVERAGE, tuple(message_rules.coverage(columns["routes"], resolved.used))),
    )


def find_all(
    columns: Mapping[str, TableColumns],
    now: int,
    days: int = DEFAULT_DAYS,
    resolved: ResolvedFacts | None = None,
    rows: TableColumns | None = None,
) -> set[LintFinding]:
    """Find all findings in columns of the tables in `lint_estate.READ`, at a moment (microseconds).

    ``rows`` are the routes to check one at a time, or None for all.
    """
    with no_search_for_cycles():
        estate = estate_of(columns, now, days)
        return {
            *address_rules.route_rows(estate, columns["routes"] if rows is None else rows),
            *address_rules.refused_rows(estate),
            *_find_in_estate(estate, None if resolved is None else resolved.dialogs_of),
            *(message_rules.torn_groups(estate) if "dialogs" in columns else ()),
            *(() if resolved is None else message_rules.unused_routes(estate, resolved.used)),
            *(() if resolved is None else message_rules.changed_picks(resolved.changed)),
        }


def _find_in_estate(estate: LintEstate, dialogs_of: OpenDialogsOf | None) -> Iterator[LintFinding]:
    """Find the hazards of rows together, and of the messages that an estate must deliver."""
    probe_answers, follower = answers_of(estate), OpenMessageFollower(estate)
    # The choices of open dialogs that lead to several targets, proved by following messages.
    hazards = prove_hazards(estate, follower)
    balanced = configuration_rules.balanced_services(estate)
    yield from configuration_rules.broker_ids(estate)
    yield from configuration_rules.disabled_brokers(estate)
    yield from configuration_rules.doubled_services(estate)
    yield from configuration_rules.unbalanced_routes(balanced)
    yield from configuration_rules.doubled_routes(balanced)
    yield from configuration_rules.needless_requests(estate)
    yield from configuration_rules.lost_requests(estate)
    yield from configuration_rules.lacking_services(probe_answers)
    yield from configuration_rules.caught_services(estate, probe_answers)
    yield from configuration_rules.open_to_several(estate, probe_answers, hazards)
    yield from configuration_rules.open_to_one(estate, follower)
    yield from configuration_rules.shadowed_routes(estate, probe_answers, balanced)
    yield from endpoint_hazards.several_targets(follower, hazards, dialogs_of)
    yield from message_rules.answers(estate, probe_answers)
    yield from message_rules.no_return(estate)
    yield from message_rules.loops(estate, probe_answers)


Moment = tuple[Mapping[str, TableColumns], int]
"""Columns of the tables, and a moment."""


def lint_apart(
    before: Moment,
    after: Moment,
    days: int = DEFAULT_DAYS,
    suppress: Sequence[LintSuppression] = (),
    rules: Sequence[CustomRule] = (),
) -> tuple[SchemaRows, SchemaRows]:
    """Return the findings of `lint` that only the first side has, then the findings of only the second side.

    Suppressed findings are left out. If the sides differ only in routes, equal rows of routes have the same
    findings on both sides and are not checked.
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
    """Return a filter for routes with a name that has different versions. None means that the filter is unsafe.

    A finding on a row names its instance, database and route.
    """
    (old, then), (new, now) = before, after
    if then != now or any(old[key] is not new[key] and old[key] != new[key] for key in _AROUND_ROUTES):
        return None
    names = {row[: len(_NAME)] for row in _whole(old["routes"]) ^ _whole(new["routes"])}

    return lambda routes: routes.take([place for place, row in enumerate(routes.rows(*_NAME)) if row in names])


def _whole(routes: TableColumns) -> set[tuple[Any, ...]]:
    return set(routes.rows(*ROUTES.names))
