"""Tell how messages are routed: from the tables of a run, or any others, to a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from routing.config import Config
from routing.delta.opening import TableOpener
from routing.features.lint.lint_settings import LintSettings
from routing.features.lint.lint_settings import settings as lint_settings
from routing.features.lint.linting import lint_columns
from routing.features.lint.resolved import used_routes
from routing.features.report import report_tables as tables_given
from routing.features.report.choices import find_choices
from routing.features.report.dialog_balance import find_balances, spans_of
from routing.features.report.facts import Report, ReportChanges
from routing.features.report.flows import count_all, count_dialogs
from routing.features.report.observed_counts import count_observed
from routing.features.report.report_network import list_places
from routing.features.report.run_changes import changes_since
from routing.process.garbage import no_search_for_cycles
from routing.tables.table_columns import Table
from routing.tables.times import micros_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def report(
    tables: Mapping[str, Table] | Config,
    *,
    now: datetime | None = None,
    lint: LintSettings | None = None,
    opener: TableOpener | None = None,
    spark: SparkSession | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Report:
    """Report the messages of the last run: their outcomes, where they are stuck, and what lint finds.

    Args:
        tables: a configuration, or tables by its keys (tables.md), ``resolved_routes`` and, where it exists,
            ``reconciliation`` among them: DataFrames, Arrow tables or datasets.
        now: the time as of which ages are computed and lint judges (UTC without a zone); by default now.
        lint: which findings count; by default those of the configuration.
        opener: opens the configuration's tables; by default local ones by delta-rs, others by Spark.
        spark: the session for tables that need one; by default one is started.
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
        # Before a table is opened: a wrong setting is told at once.
        lint = lint or lint_settings(tables.lint, tables.file)
        opener = opener or TableOpener.of_settings(tables.spark, spark)
        report_tables = tables_given.of_config(tables, opener)
        changes = None if report_tables.runs is None else changes_since(tables, opener, report_tables.runs)
    else:
        report_tables, changes = tables_given.of_tables(tables), None
    with no_search_for_cycles():
        return _make_report(report_tables, changes, moment, lint or LintSettings(), progress)


def _make_report(
    report_tables: tables_given.ReportTables,
    changes: ReportChanges | None,
    moment: int,
    lint: LintSettings,
    progress: Callable[[str], None],
) -> Report:
    progress("counting messages")
    flows, series = count_all(report_tables.resolved)
    progress("reading the configuration")
    columns, not_known = tables_given.read_settings(report_tables, moment)
    choices = find_choices(columns, moment if series.last is None else min(moment, series.last))
    balances = find_balances(choices, count_dialogs(report_tables.resolved, spans_of(choices)))
    progress("linting")
    linted = lint_columns(columns, moment, lint, used=used_routes(report_tables.resolved))
    return Report(
        headline=tables_given.headline(report_tables, sum(flow.messages for flow in flows)),
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
    )
