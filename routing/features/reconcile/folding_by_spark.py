"""Observations of a DataFrame, folded into episodes by windows over conversations, as `folding` does it."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from routing.errors import InputError
from routing.features.reconcile.episode import ANSWER, APART, EPISODES, OF_ARRIVALS, ORDER, SIDE
from routing.schemas import OBSERVED_ROUTING
from routing.tables import spark_forms
from routing.tables.declared_columns import conform, in_shape

_KEY, _SERVICE = "observed_routing", "to_service_name"
_ALWAYS = tuple(field.name for field in OBSERVED_ROUTING if not field.nullable)
_CONVERSATION = ("instance_name", "conversation_id", "is_initiator")


def fold(observed: DataFrame, messages: DataFrame | None) -> tuple[DataFrame, int]:
    """Return the episodes, in the columns of `EPISODES`, and how many observations there are.

    ``messages`` are in their declared columns. Raises InputError where a row lacks a required value.
    """
    rows = conform(observed, _KEY)
    lacking = [F.count_if(F.col(name).isNull()).alias(name) for name in _ALWAYS]
    [counts] = rows.agg(F.count(F.lit(1)).alias("rows"), *lacking).collect()
    for name in _ALWAYS:
        if counts[name]:
            raise InputError.without_value(_KEY, name, counts[name])
    return _episodes(_with_services(_read(rows), messages)), int(counts["rows"])


def _read(rows: DataFrame) -> DataFrame:
    """Return the observations, times as microseconds, with ``is_arrival``."""
    is_arrival = F.col("source").isin(list(OF_ARRIVALS)) | F.coalesce("is_from_network", F.lit(False))
    observations = rows.withColumns(
        {
            "is_arrival": is_arrival,
            "observed_at": F.unix_micros("observed_at"),
            "conversation_id": F.lower("conversation_id"),
            _SERVICE: spark_forms.empty_as_null(F.col(_SERVICE)),
        }
    )
    return observations.withColumn(
        "database_name", F.when(~F.col("is_arrival"), spark_forms.empty_as_null(F.col("database_name")))
    )


def _with_services(rows: DataFrame, messages: DataFrame | None) -> DataFrame:
    """Return the observations, each with its service as far as anything tells it."""
    if messages is not None:
        by_id = ["instance_name", "message_id"]
        # One service for an id.
        services = messages.groupBy(*by_id).agg(F.min(_SERVICE).alias("service"))
        rows = rows.join(services, by_id, how="left").withColumn(_SERVICE, F.coalesce(_SERVICE, "service"))
    alike = Window.partitionBy(*_CONVERSATION)
    return rows.withColumn(_SERVICE, F.coalesce(F.col(_SERVICE), F.min(_SERVICE).over(alike)))


def _episodes(rows: DataFrame) -> DataFrame:
    """Return the episodes of observations."""
    in_order = [F.asc_nulls_last(name) for name in dict.fromkeys(ORDER)]
    by_side = Window.partitionBy(*SIDE).orderBy(*in_order)
    before = F.lag("observed_at").over(by_side)
    differs = [~F.lag(name).over(by_side).eqNullSafe(F.col(name)) for name in ANSWER]
    begins = before.isNull() | (F.col("observed_at") - before >= APART)
    for one in differs:
        begins = begins | one
    numbered = rows.withColumns({"begins": begins, "place": F.row_number().over(by_side)})
    so_far = by_side.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    episodes = numbered.withColumn("episode", F.sum(F.col("begins").cast("int")).over(so_far))
    answer_columns = [name for name in EPISODES.names if name in OBSERVED_ROUTING.names and name not in SIDE]
    first = F.min_by(F.struct(*answer_columns), "place").alias("first")
    times = (F.min("observed_at").alias("first_at"), F.max("observed_at").alias("last_at"))
    grouped = episodes.groupBy(*SIDE, "episode").agg(first, *times, F.count(F.lit(1)).alias("observations"))
    return in_shape(grouped, EPISODES, {name: F.col(f"first.{name}") for name in answer_columns})
