"""Make a report on how messages are routed, from the tables of a run or any others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from routing.advice.estate_troubles import find_troubles
from routing.advice.remedy import EstateTrouble
from routing.arguments import checked
from routing.cases.compared_tables import TableCache
from routing.cases.estate_sides import GivenTables, read_given
from routing.cases.server_evidence import evidence_of_tables
from routing.config import RECONCILIATION, Config, TableLocation
from routing.delta import counted_runs
from routing.delta.import_times import note_unfinished
from routing.delta.opening import TableOpener
from routing.engines.traffic_tables import open_traffic
from routing.errors import InputError, RoutingError
from routing.lint.lint_estate import READ, read_one
from routing.lint.lint_settings import LintSettings
from routing.lint.lint_settings import settings as lint_settings
from routing.lint.linting import ResolvedFacts, lint_columns
from routing.lint.message_rules import used_routes
from routing.process import no_search_for_cycles
from routing.render.phrases import when
from routing.render.wording import count
from routing.rules.timeline import micros_of
from routing.schemas import OPTIONAL_INPUTS, RUNS, SEEN
from routing.tables.given_tables import take_tables
from routing.tables.read_rows import read_each, read_rows
from routing.tables.table_columns import Table, TableColumns
from routing.terms import Outcome, ReadRow, Reason
from routing.views.configuration_changes import describe_route_changes
from routing.views.page.estate_matrix import list_places
from routing.views.page.facts import Report, ReportChanges, RouteChange, count_words
from routing.views.report.dialog_balance import count_dialogs, find_balances, find_choices, spans_of
from routing.views.report.flows import FlowEndings, count_all, count_observed
from routing.views.run_documents import say_unchanged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RESOLVED = "resolved_routes"
_NOT_SHOWN = {
    "queues": "Whether queues are off or unread is not known: there is no table tables.queues.",
    "endpoint_counts": "Whether conversations leak is not known: there is no table tables.endpoint_counts.",
}
_ALL = tuple(key for key in READ if key not in OPTIONAL_INPUTS)


@dataclass(frozen=True)
class _Input:
    opener: TableOpener
    key: str
    location: TableLocation
    version: int | None

    @property
    def not_known(self) -> str:
        """The sentence for a table that is shown at its newest version."""
        newest = f"The table {self.key} is shown at its newest version"
        if self.version is None:
            return f"{newest}: the run recorded no version of it."
        return f"{newest}: version {self.version:,}, which the run read, is no longer available."

    def open_as_read(self) -> Table | None:
        """Return the table at its version, or None without a version or if its log no longer has it."""
        if self.version is None:
            return None
        try:
            return self.opener.open_at(f"tables.{self.key}", self.location, self.version)
        # Spark has several errors for a missing version. After any other error the newest version fails as well.
        except Exception:  # noqa: BLE001
            return None

    def open_newest(self) -> Table:
        """Return the table at its newest version. Raises InputError if there is no table."""
        return self.opener.open_at(f"tables.{self.key}", self.location)


@dataclass(frozen=True)
class ReportTables:
    """Tables by key: ``resolved_routes`` and the inputs of lint. ``run`` is the row of ``runs``, if known.

    ``not_known`` are sentences about unavailable parts of the run. ``as_read`` are the tables at the versions that
    the run read. ``runs`` is the table of that name if this run was the last. ``reconciliation`` is the output of
    `reconcile`. ``imported`` are the tables of queues and endpoints.
    """

    tables: Mapping[str, Table]
    run: ReadRow | None
    not_known: tuple[str, ...]
    as_read: Mapping[str, _Input] = field(default_factory=dict)
    runs: Table | None = None
    reconciliation: Table | None = None
    imported: Mapping[str, Table] = field(default_factory=dict)

    @property
    def resolved(self) -> Table:
        """The messages that were resolved."""
        return self.tables[_RESOLVED]

    @property
    def settings(self) -> dict[str, Table]:
        """All other tables."""
        return {key: table for key, table in self.tables.items() if key != _RESOLVED}


def of_tables(tables: Mapping[str, Table]) -> ReportTables:
    """Use the given tables. Raises InputError if one is missing."""
    tables = take_tables(tables, (*_ALL, _RESOLVED))
    tables_read = {key: tables[key] for key in (*READ, _RESOLVED) if key in tables}
    not_known = ("Which run wrote these rows, and how many messages it rejected, is not known.",)
    observed = {key: tables[key] for key in SEEN if key in tables}
    return ReportTables(tables_read, None, not_known, reconciliation=tables.get(RECONCILIATION), imported=observed)


def of_config(config: Config, opener: TableOpener) -> ReportTables:
    """Return the last run that counts, and the tables as it read them.

    Raises InputError if there is no valid run yet or a table is missing, OutputError as `counted_runs.open_left`
    does.
    """
    config = counted_runs.leave_out_missing(opener, config)
    last = counted_runs.last_run(opener, config.output["runs"])
    if last is None:
        raise InputError.nothing_recorded(str(config.output["runs"]))
    tables = {_RESOLVED: counted_runs.open_left(opener, config, last, _RESOLVED)}
    as_read: dict[str, _Input] = {}
    not_known: list[str] = []
    for key in (key for key in READ if key in config.tables):
        table_input = _Input(opener, key, config.tables[key], last.input_versions.get(key))
        table = table_input.open_as_read()
        if table is None:
            not_known.append(table_input.not_known)
        else:
            as_read[key] = table_input
        tables[key] = table_input.open_newest() if table is None else table
    # At the version read before, because a run may be recorded in between.
    runs = opener.open_at("output.runs", config.output["runs"], last.read_at)
    [run] = read_rows(runs, RUNS, last_by=("finished_at",), limit=1, only={"run_id": [last.run_id]})
    place = config.other_outputs.get(RECONCILIATION)
    reconciliation = None if place is None else opener.find(f"output.{RECONCILIATION}", place)
    unfinished = (f"{note[0].upper()}{note[1:]}." for note in note_unfinished(opener, config.journal))
    notes = (*_note_rejected(run), *unfinished, *not_known)
    observed = opener.find_all({key: config.import_tables[key] for key in SEEN if key in config.import_tables})
    not_shown = tuple(sentence for key, sentence in _NOT_SHOWN.items() if key not in observed)
    imports = config.import_tables.get("imports") if not_shown else None
    if imports is not None and opener.find("tables.imports", imports) is not None:
        notes += not_shown
    reconciled = None if reconciliation is None else reconciliation.rows
    return ReportTables(tables, run, notes, as_read, runs, reconciled, observed)


def read_troubles(observed_tables: Mapping[str, Table]) -> list[EstateTrouble] | None:
    """Return the troubles that the tables of queues and endpoints show, or None without both."""
    if not observed_tables:
        return None
    return find_troubles(evidence_of_tables(observed_tables))


def read_settings(report_tables: ReportTables, now: int) -> tuple[dict[str, TableColumns], tuple[str, ...]]:
    """Return all tables except the messages, as lint reads them at a time, and the list of unknown facts.

    Deleted files of a version are noticed only while reading. Such a table is read at its newest version.
    """
    not_known: dict[str, str] = {}

    def read(key: str) -> TableColumns:
        try:
            return read_one(report_tables.tables[key], key, now)
        except RoutingError:
            raise
        # Arrow and Spark have several errors for missing files. After other errors the newest version fails too.
        except Exception:
            if key not in report_tables.as_read:
                raise
            not_known[key] = report_tables.as_read[key].not_known
            return read_one(report_tables.as_read[key].open_newest(), key, now)

    columns_by_key = read_each(report_tables.settings, read)
    return columns_by_key, (*report_tables.not_known, *(not_known[key] for key in READ if key in not_known))


def _note_rejected(run: ReadRow) -> list[str]:
    rejected = run["rows_rejected"]
    # An incremental run counts only its own messages.
    earlier = ["What earlier runs rejected is in rejected_messages."] if run["mode"] == "incremental" else []
    if not rejected:
        return earlier
    were, their = ("was", "its") if rejected == 1 else ("were", "their")
    subject = f"{count(rejected, 'message')} {were} rejected by the run"
    return [f"{subject}, and {their} outcome is not known: see rejected_messages.", *earlier]


_COMPARED = ("run_id", "mode", "outcome_counts", "reason_counts", "input_versions", "settings")
_TIMES = ("as_of", "now", "started_at", "finished_at")
_COMPARED_RUN = RUNS.only(*_COMPARED, *_TIMES)
_NEWEST_FIRST = ("finished_at", "run_id")


def changes_since(config: Config, opener: TableOpener, runs: Table) -> ReportChanges | None:
    """Compare the last valid run with the previous one. Returns None if there are not two.

    The compared routes are those in force when each run began, or at its decision time. They are None if a run
    read another table, a table without versions, or a version that is no longer available. ``runs`` is the table
    of that name.
    """
    last_runs = read_rows(runs, _COMPARED_RUN, last_by=_NEWEST_FIRST, limit=2)
    if len(last_runs) < 2:
        return None
    now, before = last_runs
    return ReportChanges(
        run_id=before["run_id"],
        finished_at=micros_of(before["finished_at"]),
        is_incremental="incremental" in (now["mode"], before["mode"]),
        outcomes=count_words(Outcome, before["outcome_counts"], now["outcome_counts"]),
        reasons=count_words(Reason, before["reason_counts"], now["reason_counts"]),
        routes=_route_changes(config.tables["routes"], before, now, TableCache(opener)),
    )


def _route_changes(
    location: TableLocation, before: ReadRow, now: ReadRow, table_cache: TableCache
) -> Sequence[RouteChange] | None:
    """Return the routes that differ, or None if those of a run are unavailable."""
    locations = {str(location), str(table_cache.opener.placed("tables.routes", location))}
    read = [
        (json.loads(run["settings"])["tables"]["routes"], run["input_versions"]["routes"]) for run in (before, now)
    ]
    if any(place not in locations or version is None for place, version in read):
        return None
    try:
        routes_by_version = {version: _routes_at(table_cache, location, version) for _, version in read}
    except InputError:
        return None
    old, new = (routes_by_version[version] for _, version in read)
    return describe_route_changes(old, new, _decision_time(before), _decision_time(now))


def _routes_at(table_cache: TableCache, location: TableLocation, version: int) -> TableColumns:
    routes = table_cache.open("routes", location, version)
    return read_given(GivenTables("", 0, {"routes": routes}, {"routes": version}), "routes")


def _decision_time(run: ReadRow) -> int:
    return micros_of(run["as_of"] or run["now"] or run["started_at"])


def headline(report_tables: ReportTables, messages: int) -> str:
    """Write the extent of the report in one line. ``messages`` is the number in the outputs."""
    run = report_tables.run
    if run is None:
        return count(messages, "resolved message")
    read, resolved, rejected = (run[name] for name in ("rows_read", "rows_resolved", "rows_rejected"))
    counts = f"{count(read, 'message')} read, {resolved:,} resolved, {say_unchanged(run)}{rejected:,} rejected"
    as_of = "" if run["as_of"] is None else f", all decided as of {when(run['as_of'])}"
    # An incremental run adds to the rows of earlier runs.
    whole = "" if messages == resolved else f"; the outputs hold {count(messages, 'message')}"
    checked = "" if run["now"] is None else f"; delayed messages were last checked as of {when(run['now'])}"
    return f"Run {run['run_id']} ended {when(run['finished_at'])}: {counts}{as_of}{whole}{checked}"


@checked
def report(
    tables: Mapping[str, Table] | Config,
    *,
    now: datetime | None = None,
    lint: LintSettings | None = None,
    opener: TableOpener | None = None,
    spark: SparkSession | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Report:
    """Report the messages of the last run: their outcomes, the stuck ones, and the findings of lint.

    Args:
        tables: a configuration, or tables by its keys (tables.md), including ``resolved_routes`` and, if
            it exists, ``reconciliation``: DataFrames, Arrow tables or datasets.
        now: the time for ages and for lint (UTC without a zone), by default the current time.
        lint: selects the findings that count, by default as in the configuration.
        opener: opens the configuration's tables, by default local ones by delta-rs and others by Spark.
        spark: the session for tables that need one. By default one is started.
        progress: called with the name of each step.

    Returns:
        The facts, as plain values.

    Raises:
        ContractError: a table is missing or breaks its contract.
        StorageError: a table could not be read.

    Example:
        >>> found = routing.report(routing.load_config("job.yaml"))
        >>> found.headline.split(": ")[1]
        '7 messages read, 5 resolved, 2 rejected'
    """
    moment = micros_of(datetime.now(timezone.utc) if now is None else now)
    if isinstance(tables, Config):
        # Before tables are opened, so that invalid settings are reported at once.
        lint = lint or lint_settings(tables.lint, tables.file)
        opener = opener or TableOpener.of_settings(tables.spark, spark)
        report_tables = of_config(tables, opener)
        changes = None if report_tables.runs is None else changes_since(tables, opener, report_tables.runs)
    else:
        report_tables, changes = of_tables(tables), None
    with no_search_for_cycles():
        return _make_report(report_tables, changes, moment, lint or LintSettings(), progress)


def _make_report(
    report_tables: ReportTables,
    changes: ReportChanges | None,
    moment: int,
    lint: LintSettings,
    progress: Callable[[str], None],
) -> Report:
    progress("reading the configuration")
    columns, not_known = read_settings(report_tables, moment)
    progress("counting messages")
    flows, series = count_all(open_traffic(report_tables.resolved), find_end=FlowEndings.of(columns).find)
    choices = find_choices(columns, moment if series.last is None else min(moment, series.last))
    balances = find_balances(choices, count_dialogs(report_tables.resolved, spans_of(choices)))
    progress("linting")
    linted = lint_columns(columns, moment, lint, ResolvedFacts(used_routes(open_traffic(report_tables.resolved))))
    return Report(
        headline=headline(report_tables, sum(flow.messages for flow in flows)),
        not_known=not_known,
        made_at=moment,
        flows=flows,
        places=list_places(columns),
        series=series,
        balances=balances,
        findings=linted.findings,
        coverage=linted.coverage,
        changes=changes,
        observed=None if report_tables.reconciliation is None else count_observed(report_tables.reconciliation),
        troubles=read_troubles(report_tables.imported),
    )
