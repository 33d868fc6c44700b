"""Rows that resolve refuses, as its own validation finds them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing import validate
from routing.analysis.lint.estate import Estate
from routing.analysis.lint.finding import exploded, found
from routing.terms import LOCAL_ADDRESS


def refused_rows(estate: Estate) -> DataFrame:
    """SBR010: a required value is missing, a key stands twice, versions overlap, an own address is none.

    The addresses of routes are findings of their own (SBR005, SBR006), so that here every route that has one
    has a good one.
    """
    good = {
        "address": F.when(F.col("address") != "", F.lit(LOCAL_ADDRESS)),
        "mirror_address": F.lit(None).cast("string"),
    }
    tables = {**estate.tables, "routes": estate.tables["routes"].withColumns(good)}
    faults = validate.findings(tables)
    # The first part of every key is the instance.
    rows = faults.withColumns(
        {
            "instance_name": F.substring_index("row_key", ", ", 1),
            "database_name": F.lit(None).cast("string"),
        }
    )
    message = "table %s: %s"
    return exploded(
        rows, [found("SBR010", F.lit(True), F.col("row_key"), message, F.col("table_name"), F.col("fault"))]
    )
