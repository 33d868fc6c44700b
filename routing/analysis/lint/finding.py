"""How a finding is made: a Column that is null when fine and a struct when not, all from `found`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from routing import validate
from routing.analysis.lint.catalogue import BY_CODE

SHAPE = StructType(
    [
        StructField("code", StringType()),
        StructField("severity", StringType()),
        StructField("instance_name", StringType()),
        StructField("database_name", StringType()),
        StructField("object", StringType()),
        StructField("message", StringType()),
        StructField("advice", StringType()),
        StructField("error_number", IntegerType()),
    ]
)
# What a step of lint gives: the columns that differ from row to row; the others come from the catalogue.
FOUND = ("code", "instance_name", "database_name", "object", "message", "error_number")
_SHOWN = 5


def found(
    code: str, is_fault: Column, thing: Column, sentence: str, *values: Column, number: Column | None = None
) -> Column:
    """The maker of all findings: null when fine, else struct(code, object, message, error_number).

    ``thing`` is the object, such as a route's name; ``sentence`` holds a ``%s`` for each value; ``number`` is
    the engine's where it depends on the row.
    """
    own = F.lit(BY_CODE[code].error_number) if number is None else number
    return F.when(
        is_fault,
        F.struct(
            F.lit(code).alias("code"),
            thing.alias("object"),
            validate.check(F.lit(True), sentence, *values).alias("message"),
            own.cast("int").alias("error_number"),
        ),
    )


def exploded(rows: DataFrame, checks: Sequence[Column]) -> DataFrame:
    """The findings of rows (columns `FOUND`); all checks of a row are made in one select.

    ``rows`` has instance_name and database_name.
    """
    checked = rows.select(
        "instance_name", "database_name", F.explode(F.array_compact(F.array(*checks))).alias("f")
    )
    return checked.select(
        "f.code", "instance_name", "database_name", F.col("f.object"), F.col("f.message"), F.col("f.error_number")
    )


def listed(names: Column) -> Column:
    """An array of names as text: sorted, at most five shown and the rest counted."""
    distinct = F.array_sort(F.array_distinct(names))
    rest = F.size(distinct) - _SHOWN
    shown = F.array_join(F.slice(distinct, 1, _SHOWN), ", ")
    return F.when(rest > 0, F.concat(shown, F.format_string(" and %s more", rest.cast("string")))).otherwise(shown)


def utc(time: Column) -> Column:
    """A time as ISO 8601 text in UTC, whatever the session's zone."""
    seconds = F.unix_seconds(time)
    rest = F.pmod(seconds, F.lit(86_400))
    day = F.date_add(F.lit("1970-01-01").cast("date"), ((seconds - rest) / 86_400).cast("int"))
    hours, minutes = (rest / 3600).cast("int"), (rest / 60).cast("int") % 60
    return F.format_string("%sT%02d:%02d:%02dZ", day.cast("string"), hours, minutes, (rest % 60).cast("int"))
