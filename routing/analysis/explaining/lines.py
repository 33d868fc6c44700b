"""The lines of a path: one flat row each, so that two explanations can be compared line by line."""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_TEXT, _TEXTS, _INT, _BIGINT, _TIME = (
    StringType(),
    ArrayType(StringType()),
    IntegerType(),
    LongType(),
    TimestampType(),
)
# search: 1 the message's own scope, 2 msdb once the message has come back, null for the message as a whole.
# step: the matching step that the line belongs to. name: of a route, database or tier. reasons: why a route did
# not match. routes: the names of a tier's routes. at: the moment that decides. count: how many.
_FIELDS: dict[str, Any] = {
    "search": _INT,
    "step": _INT,
    "item": _TEXT,
    "finding": _TEXT,
    "name": _TEXT,
    "reasons": _TEXTS,
    "service_name": _TEXT,
    "broker_instance": _TEXT,
    "address": _TEXT,
    "mirror_address": _TEXT,
    "valid_from": _TIME,
    "valid_to": _TIME,
    "at": _TIME,
    "database_name": _TEXT,
    "routes": _TEXTS,
    "outcome": _TEXT,
    "reason": _TEXT,
    "count": _BIGINT,
}
_REQUIRED = ("item", "finding")
STEPS = StructType(
    [
        StructField("question", _INT, False),
        StructField("position", _INT, False),
        *(StructField(name, kind, name not in _REQUIRED) for name, kind in _FIELDS.items()),
    ]
)
# The order of lines: facts of the message, then a search's parts, then the verdict.
MESSAGE, VERDICT = 0, 90
SCOPE, REPLY, BROKER, STEP, REST, TIER, LOCATION, TRANSPORT = range(8)
# How many routes, databases or ids one list shows; the rest are counted.
SHOWN = 20


def part(search: int, section: int) -> int:
    """Where the lines of a search's section stand."""
    return 10 * search + section


class Line:
    """Makes lines; its nulls are made once, for most fields of most lines are null."""

    def __init__(self) -> None:
        self._nulls = {name: _field(name, None) for name in _FIELDS}

    def __call__(
        self, where: int | Column, item: str, finding: str | Column, *, rank: int | Column = 0, **values: Any
    ) -> Column:
        """One line as a struct; fields that are not given are null, plain values become literals.

        ``where`` and ``rank`` order the lines (`ordered`), before their names.
        """
        given = {"item": item, "finding": finding, **values}
        return F.struct(
            _column(where).cast("int").alias("part"),
            _column(rank).cast("int").alias("rank"),
            *(_field(name, given[name]) if name in given else self._nulls[name] for name in _FIELDS),
        )


def _field(name: str, value: Any) -> Column:
    # The type as text: pyspark hands over any other form of it by way of JSON and the session.
    return _column(value).cast(_FIELDS[name].simpleString()).alias(name)


def _column(value: Any) -> Column:
    return value if isinstance(value, Column) else F.lit(value)


def exploded(frame: DataFrame, lines: list[Column]) -> DataFrame:
    """question and the lines of each row of a frame; a null line is left out."""
    return frame.select("question", F.explode(F.array_compact(F.array(*lines))).alias("line"))


def ordered(parts: list[DataFrame]) -> DataFrame:
    """All lines of all questions in the schema `STEPS`, numbered from 1 in their order."""
    rows = reduce(DataFrame.unionByName, parts).select("question", "line.*")
    steps = F.coalesce(F.col("step"), F.lit(-1))
    # Route versions share a name, so the time they begin breaks the tie; no two lines are equal in all of these.
    order = ("part", steps, "rank", "name", "valid_from", "broker_instance", "item", "address", "at", "finding")
    position = F.row_number().over(Window.partitionBy("question").orderBy(*order))
    numbered = rows.withColumn("position", position)
    told = numbered.select(*STEPS.names)
    # Paths are short: one task sorts them, where orderBy would first run all of the above to take samples.
    return told.coalesce(1).sortWithinPartitions("question", "position")
