"""The tables of a configuration that are reconciled, each at one version, and the output that is replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from routing.config import RECONCILIATION as KEY
from routing.config import Config, in_reading_order
from routing.delta import replaced_outputs
from routing.delta.local_tables import UnreadableTable
from routing.delta.opening import OpenedTable, TableOpener
from routing.delta.releases import release
from routing.delta.replaced_outputs import ReplacedOutput
from routing.errors import ConfigError, InputError
from routing.schemas import RECONCILIATION
from routing.tables.input_columns import MOST_MESSAGES
from routing.tables.table_columns import Table, as_dataset, is_frame

_OBSERVED = "observed_routing"
TRAFFIC = (_OBSERVED, "messages", "dialogs")


def look_at_output(config: Config, opener: TableOpener) -> ReplacedOutput | None:
    """Return the output that is to be replaced; None where the configuration names none. Raises OutputError."""
    location = config.beside.get(KEY)
    return None if location is None else replaced_outputs.look_at(opener, KEY, location, RECONCILIATION)


def open_tables(config: Config, opener: TableOpener) -> dict[str, OpenedTable]:
    """Return the tables that are reconciled, at their newest versions: what grows all read in one way.

    By Spark where one of these is, or where there are more than `MOST_MESSAGES` observations. Raises ConfigError
    where no observations are configured, InputError where a table is missing.
    """
    if _OBSERVED not in config.kept:
        raise ConfigError.no_observed(config.file)
    opened = {}
    named = {**config.tables, _OBSERVED: config.kept[_OBSERVED]}
    for key in in_reading_order(named):
        location = named[key]
        opened_table = opener.find(f"tables.{key}", location)
        if opened_table is None:
            raise InputError.missing_table(key, str(location))
        opened[key] = opened_table
    traffic = {key: opened[key] for key in TRAFFIC if key in opened}
    why = _why_by_spark(traffic)
    if why is None:
        opener.tell("observations are reconciled without Spark")
        return opened
    spark = opener.start_for("observations", "reconciled", why)
    from routing.delta.spark_tables import TableSnapshot

    for key, one in traffic.items():
        if not is_frame(one.rows) and one.version is not None:
            location = {**config.tables, **config.kept}[key]
            opened[key] = replace(one, rows=TableSnapshot(location, one.version).read(spark))
    return opened


def _why_by_spark(traffic: Mapping[str, OpenedTable]) -> UnreadableTable | None:
    frames = [key for key, one in traffic.items() if is_frame(one.rows)]
    if frames:
        return UnreadableTable(f"tables.{frames[0]} is read by Spark")
    count = as_dataset(traffic[_OBSERVED].rows).count_rows()
    return UnreadableTable(f"there are {count:,}, more than {MOST_MESSAGES:,}") if count > MOST_MESSAGES else None


def replace_output(
    place: ReplacedOutput, opener: TableOpener, rows: Table, versions: Mapping[str, int | None]
) -> int:
    """Replace the output in one commit, and say which version that made. Raises StorageError."""
    commit_facts: dict[str, Any] = {"command": "reconcile", "release": release(), "input_versions": dict(versions)}
    metadata = json.dumps(commit_facts, sort_keys=True)
    if is_frame(rows):
        return place.replace_by_spark(rows.sparkSession, rows, metadata)
    if isinstance(place.writer, UnreadableTable):
        from routing.tables.frames import frame_of_tuples
        from routing.tables.table_columns import columns_in

        spark = opener.start_for(f"output.{KEY}", "written", place.writer)
        columns = columns_in(rows, RECONCILIATION, {name: name for name in RECONCILIATION.names})
        frame = frame_of_tuples(spark, columns.rows(*RECONCILIATION.names), RECONCILIATION.optional())
        return place.replace_by_spark(spark, frame, metadata)
    return place.replace(replaced_outputs.reader_of(rows, RECONCILIATION), metadata)
