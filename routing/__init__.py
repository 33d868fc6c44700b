"""Resolve SQL Server Service Broker messages against route tables: where each of them goes, and why.

`resolve` takes tables and returns DataFrames; `run` goes from Delta tables to Delta tables as `load_config` says;
`diff` tells what changes between two configurations, times or versions, or by a script; `report` shows a run, and
`write_page` puts that on a page.
Each is imported when it is first used, Spark by those that need it: the command line is to be there at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routing.config import Config
    from routing.config import load as load_config
    from routing.delta.spark_tables import table_names
    from routing.errors import ContractError, RoutingError, StorageError
    from routing.features.diff.comparison import Scripts, TableVersions
    from routing.features.diff.diffing import Diff, diff
    from routing.features.explain.explain_source import open_tables
    from routing.features.explain.explaining import explain
    from routing.features.explain.questions import DescribedMessage, StoredMessage
    from routing.features.lint.custom_rules import Configuration
    from routing.features.lint.custom_rules import custom_rule as finding
    from routing.features.messages.message_filter import ask
    from routing.features.messages.message_list import list_messages
    from routing.features.reconcile.reconciling import Reconciliation, reconcile
    from routing.features.report.facts import MessageFlow, Report
    from routing.features.report.page_file import write_page
    from routing.features.report.reporting import report
    from routing.features.result_text import text_of
    from routing.features.trace.tracing import trace
    from routing.messages.dialog_hash import register as register_dialog_hash
    from routing.runs.local_runs import resolve_local
    from routing.runs.pipeline import Resolution, current_routes, read_run, resolve, run
    from routing.runs.running import Run
    from routing.runs.spark_outputs import RankedCandidates, candidates, trace_all
    from routing.sessions.session import start_of_config as spark_session
    from routing.terms import MatchingStep, Outcome, Reason

__all__ = [
    "Config",
    "Configuration",
    "ContractError",
    "DescribedMessage",
    "Diff",
    "MatchingStep",
    "MessageFlow",
    "Outcome",
    "RankedCandidates",
    "Reason",
    "Reconciliation",
    "Report",
    "Resolution",
    "RoutingError",
    "Run",
    "Scripts",
    "StorageError",
    "StoredMessage",
    "TableVersions",
    "ask",
    "candidates",
    "current_routes",
    "diff",
    "explain",
    "finding",
    "list_messages",
    "load_config",
    "open_tables",
    "read_run",
    "reconcile",
    "register_dialog_hash",
    "report",
    "resolve",
    "resolve_local",
    "run",
    "spark_session",
    "table_names",
    "text_of",
    "trace",
    "trace_all",
    "write_page",
]

_MODULES = {
    "routing.features.diff.comparison": ("Scripts", "TableVersions"),
    "routing.features.diff.diffing": ("Diff", "diff"),
    "routing.features.explain.questions": ("DescribedMessage", "StoredMessage"),
    "routing.features.explain.explain_source": ("open_tables",),
    "routing.features.explain.explaining": ("explain",),
    "routing.features.lint.custom_rules": ("Configuration", "finding"),
    "routing.features.messages.message_filter": ("ask",),
    "routing.features.messages.message_list": ("list_messages",),
    "routing.features.reconcile.reconciling": ("Reconciliation", "reconcile"),
    "routing.features.report.facts": ("MessageFlow", "Report"),
    "routing.features.report.reporting": ("report",),
    "routing.features.report.page_file": ("write_page",),
    "routing.features.result_text": ("text_of",),
    "routing.features.trace.tracing": ("trace",),
    "routing.config": ("Config", "load_config"),
    "routing.errors": ("ContractError", "RoutingError", "StorageError"),
    "routing.messages.dialog_hash": ("register_dialog_hash",),
    "routing.runs.running": ("Run",),
    "routing.runs.local_runs": ("resolve_local",),
    "routing.runs.pipeline": ("Resolution", "current_routes", "read_run", "resolve", "run"),
    "routing.runs.spark_outputs": ("RankedCandidates", "candidates", "trace_all"),
    "routing.sessions.session": ("spark_session",),
    "routing.delta.spark_tables": ("table_names",),
    "routing.terms": ("MatchingStep", "Outcome", "Reason"),
}
_OTHER_NAMES = {
    "finding": "custom_rule",
    "load_config": "load",
    "register_dialog_hash": "register",
    "spark_session": "start_of_config",
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(module), _OTHER_NAMES.get(name, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
