"""The tables of a question: as they are given, or opened as a configuration names them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from routing.config import Config, in_reading_order
from routing.delta.opening import TableOpener
from routing.features.explain.explain_source import ExplainSource
from routing.schemas import INPUTS
from routing.tables.table_columns import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_source(
    tables: Mapping[str, Table] | Config, as_of: datetime | None, spark: SparkSession | None
) -> tuple[ExplainSource, datetime | None]:
    """Open the tables, or those of a configuration, with the one decision time if there is any."""
    if isinstance(tables, Config):
        settings, as_of = tables, as_of or tables.resolve.as_of
        tables = open_tables(settings, spark=spark)
    return ExplainSource.of(tables), as_of


def open_tables(
    settings: Config, opener: TableOpener | None = None, *, spark: SparkSession | None = None
) -> dict[str, Table]:
    """Open every input of a configuration, and the tables of import that exist, each at its newest version.

    Args:
        settings: the configuration.
        opener: opens the tables; by default local ones by delta-rs, others by Spark.
        spark: the session for tables that need one; by default one is started.

    Returns:
        Tables by configuration key: datasets of Arrow, or DataFrames where Spark reads them.

    Raises:
        InputError: an input is missing.

    Example:
        >>> tables = routing.open_tables(routing.load_config("job.yaml"))
        >>> tables["routes"].count_rows()
        4
    """
    opener = opener or TableOpener.of_settings(settings.spark, spark)
    kept_locations = {key: settings.kept[key] for key in in_reading_order(settings.kept)}
    kept_tables = {key: opener.find(f"tables.{key}", location) for key, location in kept_locations.items()}
    inputs = opener.open({key: settings.tables[key] for key in INPUTS if key in settings.tables})
    return {**inputs, **{key: opened.rows for key, opened in kept_tables.items() if opened is not None}}
