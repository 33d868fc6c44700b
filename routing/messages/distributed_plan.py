"""Decide the names in messages on Python workers, for many keys or a large configuration.

The driver only counts. A task gets the names and rows of one instance, or of some of its services if they are too
many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages.route_plan import MessageSource
from routing.messages.setting_frames import in_one_table
from routing.plan.checked_inputs import FOR_ALL
from routing.plan.instance_plans import (
    COUNTS,
    DECIDED_NAMES,
    DECIDING,
    SERVICE_OF,
    TABLE,
    UNREAD,
    USES,
    decide_names,
)
from routing.plan.key_rows import KeyCounts, PlanUses
from routing.sessions.python_workers import map_pairs_by_workers
from routing.tables.cached_frames import JoinSide, bytes_of_rows
from routing.tables.frames import spark_schema

_PART = "part"


class DistributedPlan(NamedTuple):
    """The decisions for the names in messages, as the side of a join.

    ``uses`` are the features of the rules that the decisions use. ``name_count`` is the number of distinct names.
    """

    names: JoinSide
    uses: PlanUses
    counts: KeyCounts
    name_count: int


def decide_by_instance(source: MessageSource, tables: Mapping[str, DataFrame]) -> DistributedPlan:
    """Decide the names in all messages. ``tables`` are those of the configuration.

    If the session cannot cache frames, many names are decided again in each pass. Names of one service stay
    together in a task.
    """
    cache = source.lookups.frame_cache
    limit = cache.limits.part_rows
    names, name_count = cache.keep_counted(source.names())
    rows = in_one_table({key: tables[key] for key in DECIDING}).drop(UNREAD)
    if name_count <= cache.limits.held_rows:
        rows = _select_rows(rows, names, name_count, source)
    large_names, large_rows = (
        _count_large(names, limit),
        _count_large(rows.where(_service_of_row().isNotNull()), limit),
    )
    parts = {
        instance: -(-max(large_names.get(instance, 0), large_rows.get(instance, 0)) // limit)
        for instance in sorted({*large_names, *large_rows})
    }
    decided = cache.keep_sized(_decide(names, rows, parts)).rows
    timelines = decided.drop(*COUNTS.names, *USES)
    uses, counts, size = _summarize(decided, bytes_of_rows(timelines.schema))
    name_side = source.broadcasts.of_size("the names in messages", timelines, size)
    return DistributedPlan(name_side, uses, counts, name_count)


def _instance() -> Column:
    """Return the hash of a row's instance. The name may be any bytes."""
    return F.xxhash64("instance_name")


def _count_large(rows: DataFrame, limit: int) -> dict[int, int]:
    """Count the rows of each instance (by `_instance`) that has more than ``limit``."""
    counted = rows.groupBy(_instance().alias("instance")).agg(F.count(F.lit(1)).alias("count"))
    return {row[0]: row[1] for row in counted.where(F.col("count") > limit).collect()}


def _select_rows(rows: DataFrame, names: DataFrame, count: int, source: MessageSource) -> DataFrame:
    """Select the rows that concern an instance and a service of ``count`` names.

    They are found by one 64-bit hash, so the result may include a few other rows.
    """
    for_all = F.lit("")
    places = F.array(_hash_place(F.col("to_service_name")), _hash_place(for_all))
    wanted = names.select(F.explode(places).alias("wanted")).distinct()
    wanted_side = source.broadcasts.join_side("the services in messages", wanted, 2 * count)
    place = _hash_place(F.coalesce(_service_of_row(), for_all))
    return rows.join(wanted_side.with_hint(), place == F.col("wanted"), how="left_semi")


def _hash_place(service: Column) -> Column:
    return F.xxhash64(F.col("instance_name"), service)


def _service_of_row() -> Column:
    """Return the one service that a row of `in_one_table` concerns, or null for all services."""
    service = F.lit(None).cast("string")
    for key, column in SERVICE_OF.items():
        service = F.when(F.col(TABLE) == key, F.col(column)).otherwise(service)
    concerns_all = service.isin(*(name for name in FOR_ALL if name is not None))
    return F.when(~concerns_all, service)


def _decide(names: DataFrame, rows: DataFrame, parts: Mapping[int, int]) -> DataFrame:
    """Return the rows of `DECIDED_NAMES` for all names. ``parts`` are the numbers of parts of large instances."""
    count = F.lit(1)
    if parts:
        pairs = [F.lit(number) for pair in parts.items() for number in pair]
        count = F.coalesce(F.create_map(*pairs)[_instance()], F.lit(1))
    number = F.pmod(F.xxhash64("to_service_name"), count).cast("int")
    service = _service_of_row()
    of_service = F.pmod(F.xxhash64(service), count).cast("int")
    numbers = F.when(service.isNull(), F.sequence(F.lit(0), count - 1)).otherwise(F.array(of_service))
    by = ["instance_name", _PART]
    left = names.withColumn(_PART, number).groupBy(*by)
    right = rows.withColumn(_PART, F.explode(numbers)).groupBy(*by)
    return map_pairs_by_workers(left, right, decide_names, spark_schema(DECIDED_NAMES))


def _summarize(decided: DataFrame, size: Column) -> tuple[PlanUses, KeyCounts, int]:
    """Return the features that decisions use, the numbers of messages, and the ``size``."""
    valid = F.when(F.col("scope_is_known"), F.col("valid")).otherwise(0)
    sums = [F.coalesce(F.sum(count), F.lit(0)) for count in (F.col("rows"), valid)]
    uses = [F.coalesce(F.bool_or(name), F.lit(False)) for name in USES]
    [row] = decided.agg(*sums, size, *uses).collect()
    rows_read, rows_valid, bytes_of_all, *used = row
    return PlanUses(*used), KeyCounts(rows_read, rows_valid, is_exact=False), int(bytes_of_all)
