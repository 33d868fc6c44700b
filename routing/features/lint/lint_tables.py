"""The tables that findings are made from, as columns; of what grows with the traffic only rows that can matter."""

from __future__ import annotations

from collections.abc import Mapping

from routing.engines.traffic_tables import open_traffic
from routing.schemas import OPTIONAL_INPUTS
from routing.tables.input_columns import columns_of, read_each
from routing.tables.table_columns import Table, TableColumns, check_given

READ = ("routes", "databases", "services", "instances", "dialogs", "route_requests")
"""The tables that findings are made from."""


def columns(tables: Mapping[str, Table], now: int) -> dict[str, TableColumns]:
    """Return the tables that lint reads. Raises InputError where a table or a column is missing.

    Of dialogs and requests the rows that can tell something at a moment (microseconds) alone, and maybe some more:
    `faults` and `traffic` decide.
    """
    check_given(tables, READ)
    tables_read = {key: tables[key] for key in READ if key in tables}
    return read_each(tables_read, lambda key: read_one(tables_read[key], key, now))


def read_one(table: Table, key: str, now: int) -> TableColumns:
    """Return one of these tables. Raises InputError where a column is missing."""
    return read_traffic(table, key, now) if key in OPTIONAL_INPUTS else columns_of(table, key)


def read_traffic(table: Table, key: str, now: int) -> TableColumns:
    """Return the rows of dialogs or requests that can tell something at a moment. Raises InputError."""
    return open_traffic(table, key).doubtful_rows(key, now)
