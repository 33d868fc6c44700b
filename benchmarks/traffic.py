"""Make messages and dialogs of a shape.

A dialog draws a number of `Shape.numbers`, which decides the routing of all its messages. The number of distinct
routing keys is thus about the requested one. A tenth of the dialogs use services that no object names.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.naming import DAY, WHOLE, by_chance, database_name, guid, instance_name, service_name
from benchmarks.shape import BALANCED, DATABASES, MESSAGES_A_DIALOG, SCOPES, Shape

_UNKNOWN, _HELD = 0.1, 0.3


def _split(frame: DataFrame, name: str, number: str, share: float) -> DataFrame:
    """Deal out numbers (a column): whether one is among a share of all (column ``name``), and its rank there.

    The rank, among those numbers or among the others, takes the number's place.
    """
    parts = F.lit(int(share * WHOLE))
    before, after = (F.floor((F.col(number) + n) * parts / WHOLE) for n in (0, 1))
    ranked = frame.withColumn("before", before).withColumn(name, after > F.col("before"))
    rank = F.when(F.col(name), F.col("before")).otherwise(F.col(number) - F.col("before"))
    return ranked.withColumn(number, rank).drop("before")


def _with_key(dialogs: DataFrame, shape: Shape) -> DataFrame:
    """Add the values that a dialog's key number decides. Two numbers rarely make one key.

    The rows have a dialog (bigint). The new columns are instance, database and service numbers, service_name,
    broker (the id of a bound dialog), is_network, is_bound and has_row. The steps are separate, so that no
    expression repeats another many times.
    """
    dialog, rank, held_back = F.col("dialog"), F.col("rank"), F.col("held")
    numbered = dialogs.withColumn("number", F.pmod(F.xxhash64(dialog, F.lit(7)), F.lit(shape.numbers)))
    # In the order of the numbers dialogs with a row would all be alike; a hash mixes them.
    numbered = numbered.withColumn("has_row", by_chance(F.col("number"), 6, shape.with_row))
    numbered = _split(numbered.withColumnRenamed("number", "rank"), "is_network", "rank", shape.network)
    placed = _split(numbered, "is_bound", "rank", shape.bound).withColumns(
        {
            "instance": F.when(by_chance(dialog, 8, shape.hot), 0).otherwise(rank % shape.instances).cast("int"),
            "rank": F.floor(rank / shape.instances),
            "is_garbage": by_chance(dialog, 9, shape.garbage),
        }
    )
    # An arrival searches msdb wherever it goes, so that all of the rank is left for its service.
    scoped = placed.withColumns(
        {
            "database": (rank % DATABASES).cast("int"),
            "rank": F.when(F.col("is_network"), rank).otherwise(F.floor(rank / DATABASES)),
            "is_bound": F.col("is_bound") | F.col("is_garbage"),
            "is_unknown": F.col("is_garbage") | by_chance(dialog, 1, _UNKNOWN),
        }
    )
    served = _split(scoped, "is_held", "rank", _HELD).withColumns(
        {"held": rank % (DATABASES * 10), "service": 1 + rank % shape.named_services}
    )
    turn = F.floor(rank / shape.named_services) % BALANCED
    return served.withColumns(
        {
            "service_name": F.when(F.col("is_garbage"), F.concat(F.lit("garbage/"), dialog.cast("string")))
            .when(F.col("is_unknown"), F.concat(F.lit("unknown/"), (dialog % 1000).cast("string")))
            .when(F.col("is_held"), service_name((F.lit(99_999) - held_back).cast("int")))
            .otherwise(service_name(F.col("service").cast("int"))),
            "broker": F.when(F.col("is_unknown"), guid(dialog, "nobody"))
            .when(F.col("is_held"), guid(F.col("instance") * SCOPES + F.floor(held_back / 10), "database"))
            .when(F.col("service") % 3 == 1, guid(F.col("service") * 10 + 1 + turn, "remote"))
            .otherwise(guid(dialog, "elsewhere")),
        }
    )


def messages(spark: SparkSession, shape: Shape) -> DataFrame:
    """Rows of ``messages``, in the order of their times."""
    number, sequence = F.col("id"), F.col("sequence")
    is_long = number < shape.longest
    rows = spark.range(0, shape.messages, 1, 16).withColumns(
        {
            "dialog": F.when(is_long, 0).otherwise(F.floor(number / MESSAGES_A_DIALOG)),
            "sequence": F.when(is_long, number).otherwise(number % MESSAGES_A_DIALOG),
        }
    )
    keyed = _with_key(rows.withColumn("conversation", guid(F.col("dialog"), "conversation")), shape)
    return keyed.select(
        F.concat("conversation", F.lit(":I:"), sequence.cast("string")).alias("message_id"),
        F.col("conversation").alias("conversation_id"),
        F.lit(True).alias("is_initiator"),
        sequence.alias("message_sequence_number"),
        F.timestamp_seconds(F.lit(DAY) + number * 86_400 / shape.messages).alias("enqueue_time"),
        instance_name(F.col("instance")).alias("instance_name"),
        F.when(~F.col("is_network"), database_name(F.col("database"))).alias("database_name"),
        F.col("service_name").alias("to_service_name"),
        F.when(F.col("is_bound"), F.col("broker")).alias("to_broker_instance"),
        F.when(F.col("is_network"), (number % 12).cast("int")).alias("hops_remaining"),
    )


def dialogs(spark: SparkSession, shape: Shape) -> DataFrame:
    """Return a row for each dialog if its key's number has one. Those from the network match no message."""
    dialog = F.col("dialog")
    place = F.pmod(F.xxhash64(dialog, F.lit(5)), F.lit(WHOLE)) / WHOLE
    is_acknowledged = place < shape.acknowledged
    is_begun = place >= shape.acknowledged + shape.open
    count = -(-shape.messages // MESSAGES_A_DIALOG)
    rows = spark.range(0, count, 1, 2).withColumnRenamed("id", "dialog")
    return (
        _with_key(rows, shape)
        .where("has_row")
        .select(
            instance_name(F.col("instance")).alias("instance_name"),
            database_name(F.col("database")).alias("database_name"),
            guid(dialog, "conversation").alias("conversation_id"),
            F.lit(True).alias("is_initiator"),
            F.when(is_begun, F.col("broker")).alias("far_broker_instance"),
            F.when(is_acknowledged, F.timestamp_seconds(F.lit(DAY + 43_200))).alias("acknowledged_at"),
            F.when(is_acknowledged, F.col("broker")).alias("acknowledged_broker_instance"),
        )
    )
