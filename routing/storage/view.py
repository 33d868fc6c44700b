"""The view ``current_routes`` of a catalog: the rows of the last run that counts, and of no other, for SQL.

It names one version of ``resolved_routes`` and is replaced once the next run counts, so that whoever reads it in
between sees the counting run before, whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from routing.config import Config, Location
from routing.errors import condition, first_sentence
from routing.sessions.holding import HasSession
from routing.storage import statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PINNED = re.compile(r"VERSION AS OF ([0-9]{1,18})")


def location_of_view(config: Config) -> Location | None:
    """Where the view stands, beside ``resolved_routes``; None where outputs are no names of a catalog."""
    resolved = config.output["resolved_routes"]
    if not (resolved.is_name and config.output["runs"].is_name):
        return None
    return Location(f"{resolved.text.rpartition('.')[0]}.current_routes", is_name=True)


def find_shown_version(spark: SparkSession, view: Location) -> int | None:
    """The version that the view shows, -1 where it names none; None where there is no such view."""
    from pyspark.errors import AnalysisException

    try:
        lines = statements.describe_table(spark, view).where("col_name = 'View Text'").collect()
    except AnalysisException as error:
        if condition(error) not in ("TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND"):
            raise
        return None
    found = _PINNED.search(str(lines[0]["data_type"])) if lines else None
    # Release 0.1.0 made a view that names no version.
    return int(found.group(1)) if found else -1


class Outputs(HasSession, Protocol):
    """The outputs of a configuration, and the session that writes them."""

    @property
    def config(self) -> Config:
        """The configuration."""


@dataclass(frozen=True)
class Refusal:
    """Why the view does not show what it should; ``is_stale``: there is one that shows something older."""

    note: str
    is_stale: bool


def show(outputs: Outputs, version: int) -> Refusal | None:
    """Have the view show a version of ``resolved_routes``; outputs that are no names of a catalog have none.

    A run counts whatever a catalog says to its view, so that nothing is raised.
    """
    view = location_of_view(outputs.config)
    if view is None:
        return None
    spark, resolved = outputs.spark, outputs.config.output["resolved_routes"]
    was: int | None = -1
    try:
        was = find_shown_version(spark, view)
        if was != version:
            statements.show_version(spark, view, resolved, version)
    except Exception as error:  # noqa: BLE001
        what = "cannot be made" if was is None else f"still shows what it did, not version {version}"
        return Refusal(f"the view {statements.sql_name(view)} {what}: {first_sentence(error)}", was is not None)
    return None
