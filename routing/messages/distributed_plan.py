"""Decide the names in messages on Python workers, by instance: for many keys, or a large configuration.

The driver only counts. Names and rows of an instance are brought together, and split by service if they are too
many for a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages.route_plan import DecidedFrames, MessageSource
from routing.messages.setting_frames import in_one_table
from routing.plan.checked_inputs import FOR_ALL
from routing.plan.instance_plans import (
    COUNTS,
    DECIDED_NAMES,
    DECIDING,
    NAMES,
    SERVICE_OF,
    TABLE,
    UNREAD,
    USES,
    decide_names,
)
from routing.plan.key_rows import KeyCounts, PlanUses
from routing.tables.cached_frames import JoinSide, bytes_of_rows
from routing.tables.frames import spark_schema

if TYPE_CHECKING:
    import pyarrow

_PART = "part"


class DistributedPlan(NamedTuple):
    """The decisions for the names in messages, how messages are joined with them, and the number of messages."""

    decided: DecidedFrames
    names: JoinSide
    counts: KeyCounts
    name_count: int


class _Extent(NamedTuple):
    """The number of rows, and the rows of each instance that has too many for a task."""

    rows: int
    large: Mapping[str, int]


def decide_by_instance(source: MessageSource, tables: Mapping[str, DataFrame]) -> DistributedPlan:
    """Decide the names in all messages. ``tables`` are those of the configuration.

    Messages are read once, or twice if the session cannot cache frames.
    """
    cache = source.lookups.frame_cache
    names = cache.store(source.names())
    name_extent = _measure(names, cache.limits.part_rows)
    rows = in_one_table({key: tables[key] for key in DECIDING}).drop(UNREAD)
    if name_extent.rows <= cache.limits.held_rows:
        rows = _naming(names, name_extent.rows, rows, source)
    parts = _count_parts(name_extent, _measure(rows, cache.limits.part_rows), cache.limits.part_rows)
    decided = cache.store(_decide(names, rows, parts))
    uses, counts, size = _summarize(decided)
    side = source.broadcasts.of_size("the names in messages", decided.drop(*COUNTS.names, *USES), size)
    plan = DecidedFrames(tuple(NAMES.names), side.rows, None, size, uses)
    return DistributedPlan(plan, side, counts, name_extent.rows)


def _measure(rows: DataFrame, most: int) -> _Extent:
    """Count rows, and those of each instance with more than ``most``."""
    counted = rows.groupBy("instance_name").agg(F.count(F.lit(1)).alias("count"))
    large = F.when(F.col("count") > most, F.struct("instance_name", "count"))
    [row] = counted.agg(F.coalesce(F.sum("count"), F.lit(0)).alias("count"), F.collect_list(large)).collect()
    return _Extent(row[0], {name: count for name, count in row[1] if name is not None})


def _count_parts(names: _Extent, rows: _Extent, most: int) -> dict[str, int]:
    """Return in how many parts an instance is decided, for each that is too large for one task."""
    instances = {*names.large, *rows.large}
    return {name: -(-max(names.large.get(name, 0), rows.large.get(name, 0)) // most) for name in sorted(instances)}


def _naming(names: DataFrame, count: int, rows: DataFrame, source: MessageSource) -> DataFrame:
    """Select the rows that concern a service in ``names``, or all services. ``count`` is the number of names."""
    services = names.select(F.col("to_service_name").alias("wanted")).distinct()
    wanted = source.broadcasts.join_side("the services in messages", services, count)
    service = _service_of_row()
    is_wanted = service == F.col("wanted")
    concerning_one = rows.where(service.isNotNull()).join(wanted.with_hint(), is_wanted, how="left_semi")
    return rows.where(service.isNull()).unionByName(concerning_one)


def _service_of_row() -> Column:
    """Return the one service that a row of `in_one_table` concerns, or null for all services."""
    service = F.lit(None).cast("string")
    for key, column in SERVICE_OF.items():
        service = F.when(F.col(TABLE) == key, F.col(column)).otherwise(service)
    concerns_all = service.isin(*(name for name in FOR_ALL if name is not None))
    return F.when(~concerns_all, service)


def _decide(names: DataFrame, rows: DataFrame, parts: Mapping[str, int]) -> DataFrame:
    """Return the rows of `DECIDED_NAMES` for all names."""
    count = _parts_of_instance(parts)
    number = F.pmod(F.xxhash64("to_service_name"), count).cast("int")
    service = _service_of_row()
    own = F.array(F.pmod(F.xxhash64(service), count).cast("int"))
    numbers = F.when(service.isNull(), F.sequence(F.lit(0), count - 1)).otherwise(own)
    by = ["instance_name", _PART]
    left = names.withColumn(_PART, number).groupBy(*by)
    right = rows.withColumn(_PART, F.explode(numbers)).groupBy(*by)

    def work(names_of_part: pyarrow.Table, rows_of_part: pyarrow.Table) -> pyarrow.Table:
        return decide_names(names_of_part, rows_of_part)

    # pyspark reads hints as types, and those of this file are text.
    work.__annotations__ = {}
    return left.cogroup(right).applyInArrow(work, spark_schema(DECIDED_NAMES))


def _parts_of_instance(parts: Mapping[str, int]) -> Column:
    """Return the number of parts of a row's instance."""
    if not parts:
        return F.lit(1)
    pairs = [F.lit(value) for pair in parts.items() for value in pair]
    return F.coalesce(F.create_map(*pairs)[F.col("instance_name")], F.lit(1))


def _summarize(decided: DataFrame) -> tuple[PlanUses, KeyCounts, int]:
    """Read the decisions once. Return what they use, the numbers of messages, and the bytes of the rows."""
    valid = F.when(F.col("scope_is_known"), F.col("valid")).otherwise(0)
    sums = [F.coalesce(F.sum(count), F.lit(0)) for count in (F.col("rows"), valid)]
    uses = [F.coalesce(F.bool_or(name), F.lit(False)) for name in USES]
    [row] = decided.agg(*sums, bytes_of_rows(decided.schema), *uses).collect()
    read, known, size, *used = row
    return PlanUses(*used), KeyCounts(read, known, is_exact=False), int(size)
