"""Where SQL Server Service Broker messages go, and why: resolve messages against route tables with PySpark.

`resolve` takes tables and returns DataFrames; `run` goes from Delta tables to Delta tables as `load_config` says;
`diff` tells what changes between two configurations, times or versions, or by a script; `report` shows a run, and
`write_page` puts that on a page.
Each is imported when it is first used, Spark by those that need it: the command line is to be there at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routing.analysis.diff.asked import Scripts, Versions
    from routing.analysis.diff.diffing import Diff, diff
    from routing.analysis.explain.asked import Described, Stored
    from routing.analysis.explain.explaining import explain
    from routing.analysis.explain.given import open_tables
    from routing.analysis.lint.configuration import Configuration
    from routing.analysis.lint.own import mark as finding
    from routing.analysis.messages.asked import ask
    from routing.analysis.messages.listing import list_messages
    from routing.analysis.reconcile.reconciling import Reconciliation, reconcile
    from routing.analysis.report.facts import Flow, Report
    from routing.analysis.report.reporting import report
    from routing.analysis.report.writing import write_page
    from routing.analysis.texts import text_of
    from routing.analysis.trace.tracing import trace
    from routing.config import Config
    from routing.config import load as load_config
    from routing.errors import ContractError, RoutingError, StorageError
    from routing.messages.dialog_hash import register as register_dialog_hash
    from routing.runs.done import Run
    from routing.runs.local import resolve_local
    from routing.runs.pipeline import Resolution, current_routes, read_run, resolve, run
    from routing.runs.ranking import RankedCandidates, candidates
    from routing.runs.tracing import trace_all
    from routing.sessions.session import start_of_config as spark_session
    from routing.storage.tables import table_names
    from routing.terms import MatchingStep, Outcome, Reason

__all__ = [
    "Config",
    "Configuration",
    "ContractError",
    "Described",
    "Diff",
    "Flow",
    "MatchingStep",
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
    "Stored",
    "Versions",
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

_ROOMS = {
    "routing.analysis.diff.asked": ("Scripts", "Versions"),
    "routing.analysis.diff.diffing": ("Diff", "diff"),
    "routing.analysis.explain.asked": ("Described", "Stored"),
    "routing.analysis.explain.explaining": ("explain",),
    "routing.analysis.explain.given": ("open_tables",),
    "routing.analysis.lint.configuration": ("Configuration",),
    "routing.analysis.lint.own": ("finding",),
    "routing.analysis.messages.asked": ("ask",),
    "routing.analysis.messages.listing": ("list_messages",),
    "routing.analysis.reconcile.reconciling": ("Reconciliation", "reconcile"),
    "routing.analysis.report.facts": ("Flow", "Report"),
    "routing.analysis.report.reporting": ("report",),
    "routing.analysis.report.writing": ("write_page",),
    "routing.analysis.texts": ("text_of",),
    "routing.analysis.trace.tracing": ("trace",),
    "routing.config": ("Config", "load_config"),
    "routing.errors": ("ContractError", "RoutingError", "StorageError"),
    "routing.messages.dialog_hash": ("register_dialog_hash",),
    "routing.runs.done": ("Run",),
    "routing.runs.local": ("resolve_local",),
    "routing.runs.pipeline": ("Resolution", "current_routes", "read_run", "resolve", "run"),
    "routing.runs.ranking": ("RankedCandidates", "candidates"),
    "routing.runs.tracing": ("trace_all",),
    "routing.sessions.session": ("spark_session",),
    "routing.storage.tables": ("table_names",),
    "routing.terms": ("MatchingStep", "Outcome", "Reason"),
}
_OTHER_NAMES = {
    "finding": "mark",
    "load_config": "load",
    "register_dialog_hash": "register",
    "spark_session": "start_of_config",
}


def __getattr__(name: str) -> Any:
    for room, names in _ROOMS.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(room), _OTHER_NAMES.get(name, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
