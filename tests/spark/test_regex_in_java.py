"""Regular expressions in Java, and functions that replace them, take linear time in the length of a text."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

from routing.messages.openers import missing_route
from routing.tables import spark_forms
from routing.tables.spark_forms import read_brokers
from tests.adversaries import Text, texts
from tests.patterns import LENGTH, Use, in_python, java_uses, rooms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Repeated slashes once took 17 seconds. Linear expressions take less than a second for all texts together.
_BOUND = 10.0
_RUN: dict[str, Callable[[Column, str], Column]] = {
    "regexp_replace": lambda x, pattern: F.regexp_replace(x, pattern, ""),
    "split": lambda x, pattern: F.size(F.split(x, pattern)),
    "regexp_extract": lambda x, pattern: F.regexp_extract(x, pattern, 0),
    "rlike": lambda x, pattern: x.rlike(pattern),
}
USES, _ = java_uses(rooms())


def _seconds(spark: SparkSession, tried: list[Text], length: int, read: Column) -> float:
    """Measure the time in which a query reads the texts, in seconds."""
    rows = [(one.head, one.part, length // len(one.part), one.tail) for one in tried]
    frame = spark.createDataFrame(rows, "head string, part string, n int, tail string")
    made = frame.select(F.concat("head", F.expr("repeat(part, n)"), "tail").alias("x"))
    made = read_brokers(made, broker_id="x")
    counted = made.select(F.sum(F.length(read.cast("string"))))
    started = time.monotonic()
    counted.collect()
    return time.monotonic() - started


@pytest.mark.parametrize("use", USES, ids=lambda use: use.where)
def test_java_takes_time_by_the_length(spark: SparkSession, use: Use) -> None:
    read = _RUN[use.method](F.col("x"), use.pattern)
    tried = [one for one in texts(in_python(use.pattern)) if one.tail]
    assert _seconds(spark, tried, 2_000, read) < _BOUND
    assert _seconds(spark, [one for one in tried if len(one.part) == 1], LENGTH, read) < _BOUND


_READERS = {
    "leading_address": lambda: spark_forms.leading_address(F.col("x")),
    "is_guid": lambda: spark_forms.is_guid(F.col("x")),
    "broker_id": lambda: F.col("broker_id"),
    "missing_route": lambda: missing_route(F.col("x"), "urn:x"),
}
_HOSTILE = [
    Text("a", "/", "b"),
    Text("tcp://", ":", ""),
    Text("tcp://[", ":", "x"),
    Text("tcp://h:1", "/", "b"),
    Text("tcp://", "1", ":"),
    Text("a", " /", "b"),
    Text("", "&", ""),
    Text("{", "{ ", "}"),
]


@pytest.mark.parametrize("reader", _READERS)
def test_functions_take_bounded_time_on_hostile_texts(spark: SparkSession, reader: str) -> None:
    assert _seconds(spark, _HOSTILE, LENGTH, _READERS[reader]()) < _BOUND
