"""Read YAML and ``--set`` into a configuration of frozen dataclasses, and report all faults together.

This package does not import Spark, so that a wrong option or key is reported at once.
"""

from routing.config.config_file import load, load_section
from routing.config.config_model import (
    BESIDE,
    CANDIDATES,
    CLUSTER_BY,
    INPUTS,
    JOURNAL,
    KEPT,
    OUTPUTS,
    PATHS,
    RECONCILIATION,
    SECTIONS,
    VIEW,
    Config,
    ConfigError,
    LineageSettings,
    ResolveSettings,
    TableLocation,
    in_reading_order,
    is_uri,
    parse_time,
    read_duration,
    reading_steps,
    size_in_bytes,
)

__all__ = [
    "BESIDE",
    "CANDIDATES",
    "CLUSTER_BY",
    "INPUTS",
    "JOURNAL",
    "KEPT",
    "OUTPUTS",
    "PATHS",
    "RECONCILIATION",
    "SECTIONS",
    "VIEW",
    "Config",
    "ConfigError",
    "LineageSettings",
    "ResolveSettings",
    "TableLocation",
    "in_reading_order",
    "is_uri",
    "load",
    "load_section",
    "parse_time",
    "read_duration",
    "reading_steps",
    "size_in_bytes",
]
