"""Where SQL Server Service Broker messages go, and why: resolve messages against route tables with PySpark.

`resolve` takes tables and returns DataFrames; `run` goes from Delta tables to Delta tables as `load_config` says.
Spark is imported when one of these is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.config import Config
from routing.config import load as load_config
from routing.errors import ContractError, RoutingError, StorageError
from routing.terms import MatchingStep, Outcome, Reason

if TYPE_CHECKING:
    from routing.messages.dialog_hash import register as register_dialog_hash
    from routing.runs.pipeline import Resolution, Run, current_routes, read_run, resolve, run

__all__ = [
    "Config",
    "ContractError",
    "MatchingStep",
    "Outcome",
    "Reason",
    "Resolution",
    "RoutingError",
    "Run",
    "StorageError",
    "current_routes",
    "load_config",
    "read_run",
    "register_dialog_hash",
    "resolve",
    "run",
]

_NEEDS_SPARK = {
    "Resolution": "routing.runs.pipeline",
    "Run": "routing.runs.pipeline",
    "current_routes": "routing.runs.pipeline",
    "read_run": "routing.runs.pipeline",
    "resolve": "routing.runs.pipeline",
    "run": "routing.runs.pipeline",
    "register_dialog_hash": "routing.messages.dialog_hash",
}


def __getattr__(name: str) -> Any:
    if name not in _NEEDS_SPARK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_NEEDS_SPARK[name])
    return module.register if name == "register_dialog_hash" else getattr(module, name)
