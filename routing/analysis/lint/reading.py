"""The tables that findings are made from, as columns; of what grows with the traffic only rows that can matter."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from routing.schemas import INPUTS, KEYS, OPTIONAL_INPUTS
from routing.storage.columns import Columns, Table, check_given, is_frame
from routing.storage.conform import conform
from routing.storage.inputs import columns_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

READ = ("routes", "databases", "services", "instances", "dialogs", "route_requests")
"""The tables that findings are made from."""


def columns(tables: Mapping[str, Table]) -> dict[str, Columns]:
    """The tables that lint reads. Raises InputError where a table or a column is missing.

    Of dialogs and requests in a DataFrame only the rows that `_telling` leaves; Arrow tables are in memory.
    """
    check_given(tables, READ)
    return {key: _columns(tables[key], key) for key in READ if key in tables}


def _columns(table: Table, key: str) -> Columns:
    grows = key in OPTIONAL_INPUTS and is_frame(table)
    return columns_of(_telling(table, key) if grows else table, key)


def _telling(table: DataFrame, key: str) -> DataFrame:
    """Rows that lack a value or share their key; of dialogs those of one group too.

    More than these may be left: `faults` and `traffic` decide.
    """
    from pyspark.sql import functions as F

    frame = conform(table, key)
    if key != "dialogs":
        return frame.where(_lacks(key))
    same = [F.lower(name) if name == "conversation_id" else F.col(name) for name in KEYS[key]]
    in_group = F.col("is_initiator") & (F.col("far_service") != "") & (F.col("conversation_group_id") != "")
    group = [F.col(n) for n in ("instance_name", "database_name", "far_service", "conversation_group_id")]
    marks = {"_doubled": _several(F.lit(True), same), "_grouped": _several(in_group, group)}
    return frame.withColumns(marks).where(_lacks(key) | F.col("_doubled") | (in_group & F.col("_grouped")))


def _lacks(key: str) -> Column:
    """Whether a row lacks a required value."""
    from pyspark.sql import functions as F

    required = [F.col(field.name) for field in INPUTS[key] if not field.nullable]
    return reduce(operator.or_, (value.isNull() | (value.cast("string") == "") for value in required))


def _several(rows: Column, columns: list[Column]) -> Column:
    """Whether several of some rows are equal in columns."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    return F.count(F.when(rows, 1)).over(Window.partitionBy(*columns)) > 1
