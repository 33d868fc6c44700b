"""Which messages are set aside, and why (tables.md, 'rejected_messages'), with what is known of their place."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routing.plan.keys import FROM_NETWORK
from routing.tables.broadcast_joins import small_side
from routing.tables.spark_forms import find_codes


def add_reasons(messages: DataFrame, scopes: DataFrame) -> DataFrame:
    """Add ``reasons`` to conformed messages, an array of codes: empty where they can be resolved.

    ``scopes`` as in `lookups.RunLookups`.
    """
    instances = scopes.where(F.col("database_name") == FROM_NETWORK)
    databases = scopes.select("instance_name", F.col("database_name").alias("key_database"))
    # Both have one row a key, so the joins keep the number of messages.
    rows = (
        messages.withColumn("key_database", F.coalesce("database_name", F.lit(FROM_NETWORK)))
        .join(
            small_side(_add_flag(instances.select("instance_name"), "instance_is_known")), "instance_name", "left"
        )
        .join(small_side(_add_flag(databases, "database_is_known")), ["instance_name", "key_database"], how="left")
    )
    codes = find_codes(F.col("instance_is_known").isNotNull(), F.col("database_is_known").isNotNull())
    return rows.withColumn("reasons", F.array_compact(F.array(*codes)))


def _add_flag(names: DataFrame, flag: str) -> DataFrame:
    return names.withColumn(flag, F.lit(True))
