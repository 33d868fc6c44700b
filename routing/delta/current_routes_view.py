"""Show SQL users only the rows of the last run that counts, in the view ``current_routes`` of a catalog.

The view names one version of ``resolved_routes``, and is replaced once the next run counts. Until then, readers
see all rows of the run before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from routing.config import Config, ConfigError, TableLocation
from routing.delta.opening import TableOpener
from routing.errors import InputError, first_sentence
from routing.schemas import RESOLVED_ROUTES
from routing.sessions.existing_session import condition
from routing.tables import sql_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PINNED = re.compile(r"VERSION AS OF ([0-9]{1,18})")
_OTHER_THAN_CODE = re.compile(
    r"(`(?:[^`]|``)*(?:`|\Z))|'(?:[^'\\]|\\.)*(?:'|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL
)
_PART = r"(?:`(?:[^`]|``)+`|\w+)"
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_TABLE = re.compile(rf"\b(?:FROM|JOIN)\s+({_NAME})", re.IGNORECASE)


def location_of_view(config: Config) -> TableLocation | None:
    """Return the view's name: ``output.current_routes``, or by default a name next to ``resolved_routes``.

    Returns None if the outputs have no names in a catalog.
    """
    resolved = config.output["resolved_routes"]
    if not (resolved.is_name and config.output["runs"].is_name):
        return None
    default_location = TableLocation(f"{resolved.text.rpartition('.')[0]}.current_routes", is_name=True)
    return config.view or default_location


@dataclass(frozen=True)
class ShownView:
    """The tables and the version behind a view.

    ``tables`` has the full names, in lower case, of the tables that it selects from. It is empty if this is not a
    view. ``version`` is the version that the view names, or None.
    """

    tables: frozenset[tuple[str, ...]]
    version: int | None

    def is_of(self, spark: SparkSession, resolved: TableLocation) -> bool:
        """Return whether it selects from a job's ``resolved_routes``."""
        parts = tuple(resolved.text.split("."))
        full = parts if len(parts) > 2 else (sql_statements.read_current_catalog(spark), *parts)
        return tuple(part.lower() for part in full) in self.tables


def find_view(spark: SparkSession, view: TableLocation) -> ShownView | None:
    """Read the view with a name, or return None if the catalog does not have the name."""
    from pyspark.errors import AnalysisException

    try:
        lines = sql_statements.describe_table(spark, view).collect()
    except AnalysisException as error:
        if condition(error) not in ("TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND"):
            raise
        return None
    details = {str(line["col_name"]): str(line["data_type"]) for line in lines}
    return read_view(details, sql_statements.read_current_catalog(spark))


def read_view(details: Mapping[str, str], catalog: str) -> ShownView:
    """Read the tables and the version of a view from DESCRIBE TABLE EXTENDED.

    ``catalog`` is used if DESCRIBE does not name the catalog of the view.
    """
    text = _OTHER_THAN_CODE.sub(lambda match: match.group(1) or " ", details.get("View Text", ""))
    # The catalog and namespace of the session that created the view complete a name with fewer than three parts.
    made_in = _parts(details.get("View Catalog and Namespace", "")) or (catalog.lower(),)
    pinned = _PINNED.search(text)
    names = (_parts(match.group(1)) for match in _TABLE.finditer(text))
    tables = frozenset((*made_in[: max(3 - len(name), 0)], *name) for name in names)
    return ShownView(tables, int(pinned.group(1)) if pinned else None)


def _parts(name: str) -> tuple[str, ...]:
    """Return the parts of a name in SQL, in lower case."""
    return tuple(part.strip("`").replace("``", "`").lower() for part in re.findall(_PART, name))


@dataclass(frozen=True)
class ViewRefusal:
    """The reason why the view could not be updated. With ``is_stale``, the name exists and shows other rows."""

    note: str
    is_stale: bool


def show(opener: TableOpener, config: Config, version: int) -> ViewRefusal | None:
    """Show a version of ``resolved_routes`` in the view. Only outputs with catalog names have a view.

    A run counts without the view, so this raises no error.
    """
    view = location_of_view(config)
    if view is None:
        return None
    spark, resolved = opener.spark, config.output["resolved_routes"]
    name, is_there = sql_statements.sql_name(view), True
    try:
        shown_view = find_view(spark, view)
        is_there = shown_view is not None
        if shown_view is not None and not shown_view.is_of(spark, resolved):
            note = f"{name} does not select from output.resolved_routes and is left as it is: name another view"
            return ViewRefusal(f"{note} by output.current_routes", is_stale=True)
        if shown_view is None or shown_view.version != version:
            sql_statements.show_version(spark, view, resolved, version, is_there)
    except Exception as error:  # noqa: BLE001
        problem = f"still shows its old version, not version {version}" if is_there else "cannot be made"
        return ViewRefusal(f"the view {name} {problem}: {first_sentence(error)}", is_stale=is_there)
    return None


def show_jobs(opener: TableOpener, jobs: Sequence[Config], view: TableLocation) -> list[TableLocation]:
    """Create or replace a view of the current rows of several jobs, and return the views that it selects from.

    Raises ConfigError if the outputs of a job are not names of a catalog, and InputError if a job has no view yet.
    """
    selected = []
    for job in jobs:
        name = location_of_view(job)
        if name is None:
            raise ConfigError.without_view(job.file)
        if find_view(opener.spark, name) is None:
            raise InputError(f"the view {name} of {job.file} does not exist", "run the job once")
        selected.append(name)
    sql_statements.show_union(opener.spark, view, selected, RESOLVED_ROUTES.names)
    return selected
