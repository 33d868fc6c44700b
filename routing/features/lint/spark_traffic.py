"""Rows of dialogs and route requests that a finding can be about, found by Spark where they are."""

from __future__ import annotations

import operator
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routing.schemas import INPUTS, KEYS
from routing.tables.declared_columns import conform
from routing.tables.frames import collect
from routing.tables.spark_forms import is_missing
from routing.tables.table_columns import TableColumns


def read(table: DataFrame, key: str) -> TableColumns:
    """Return the rows of an input table that can tell something. Raises InputError where a column is missing."""
    return collect(_telling(conform(table, key), key))


def _telling(frame: DataFrame, key: str) -> DataFrame:
    """Select rows that lack a value or share their key; of dialogs those of one group too.

    More than these may be left: `faults` and `traffic` decide.
    """
    if key != "dialogs":
        return frame.where(_lacks(key))
    same = [F.lower(name) if name == "conversation_id" else F.col(name) for name in KEYS[key]]
    in_group = F.col("is_initiator") & (F.col("far_service") != "") & (F.col("conversation_group_id") != "")
    group = [F.col(n) for n in ("instance_name", "database_name", "far_service", "conversation_group_id")]
    marks = {"_doubled": _several(F.lit(True), same), "_grouped": _several(in_group, group)}
    return frame.withColumns(marks).where(_lacks(key) | F.col("_doubled") | (in_group & F.col("_grouped")))


def _lacks(key: str) -> Column:
    """Return whether a row lacks a required value."""
    return reduce(operator.or_, (is_missing(f.name, f.kind) for f in INPUTS[key] if not f.nullable))


def _several(rows: Column, columns: list[Column]) -> Column:
    """Return whether several of some rows are equal in columns."""
    return F.count(F.when(rows, 1)).over(Window.partitionBy(*columns)) > 1
