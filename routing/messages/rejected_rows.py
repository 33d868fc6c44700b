"""Set messages aside, each with its reasons (tables.md, 'rejected_messages') and what is known of its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from routing.messages.pending import KEY, order_of_doubles
from routing.plan.key_rows import FROM_NETWORK
from routing.schemas import MESSAGES
from routing.tables.cached_frames import BroadcastBudget, FrameCache, JoinSide, small_side
from routing.tables.read_rows import find_held, read_keys
from routing.tables.spark_forms import find_codes
from routing.tables.table_columns import shape_of
from routing.terms import Rejection


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


# DUPLICATE_MESSAGE_ID: message rows whose (instance_name, message_id) is stored already, or stands twice.
#
# The one check of a run that grows with what is stored: it reads two columns of `resolved_routes`. Arrow does
# that in a fraction of Spark's time: where it reads both tables, and the new keys are not very many, it looks
# for them.


# Up to so many bytes of new keys are in the memory of this process: some four million, if their ids are GUIDs.
SEARCHED = 256 * 1024**2


@dataclass(frozen=True)
class DoubledKeys:
    """The keys that are stored already or stand twice: instance_name, message_id, is_stored; distinct."""

    keys: DataFrame
    count: int


@dataclass(frozen=True)
class DistinctMessages:
    """Messages without doubles, and the doubles as read with their reasons (None where there are none)."""

    messages: DataFrame
    duplicates: DataFrame | None
    count: int


def set_doubles_aside(
    messages: DataFrame,
    doubled_keys: DoubledKeys,
    scopes: DataFrame,
    frame_cache: FrameCache,
    broadcasts: BroadcastBudget,
) -> DistinctMessages:
    """Keep the row that counts of each doubled key, and reject the others.

    ``messages`` are new rows, conformed, and ``doubled_keys`` the doubled keys among them; ``scopes`` as in
    `lookups.RunLookups`. Of doubles within ``messages`` the smallest by enqueue_time, conversation_id,
    is_initiator and message_sequence_number counts, among those without another fault. What ``frame_cache`` is
    given must stay until both are written.
    """
    if not doubled_keys.count:
        return DistinctMessages(messages, None, 0)
    doubled = broadcasts.join_side("the doubled message ids", doubled_keys.keys, doubled_keys.count)
    judged = frame_cache.keep(_judge(messages, doubled, scopes))
    is_duplicate = F.col("is_duplicate")
    others = messages.join(doubled.with_hint().select(*KEY), KEY, how="left_anti")
    counting = judged.where(~is_duplicate).select(*MESSAGES.names)
    duplicates = judged.where(is_duplicate).select(
        *MESSAGES.names,
        F.concat("reasons", F.array(F.lit(str(Rejection.DUPLICATE_MESSAGE_ID)))).alias("reasons"),
    )
    return DistinctMessages(others.select(*MESSAGES.names).unionByName(counting), duplicates, duplicates.count())


def search_doubles(
    spark: SparkSession, new: Any, stored: Any | None, frame_cache: FrameCache, most_bytes: int = SEARCHED
) -> DoubledKeys | None:
    """Return the doubled keys of new messages, by Arrow; None where there are too many of them to be searched for.

    ``new`` are the messages as Arrow reads them, ``stored`` the rows of earlier runs in `resolved_routes`, None
    where there are none.
    """
    import pyarrow
    import pyarrow.compute as pc

    shape = shape_of(new, "messages")
    rows = read_keys(new, {name: shape[name] for name in KEY}, most_bytes)
    if rows is None:
        return None
    counted = rows.group_by(KEY).aggregate([([], "count_all")])
    keys = counted.select(KEY)
    stored_keys = keys.slice(0, 0) if stored is None else find_held(stored, keys)
    twice = counted.filter(pc.field("count_all") > 1).select(KEY)
    both = [
        part.append_column("is_stored", pyarrow.repeat(is_stored, len(part)))
        for part, is_stored in ((stored_keys, True), (twice, False))
    ]
    marked = pyarrow.concat_tables(both).group_by(KEY).aggregate([("is_stored", "any")])
    doubled = marked.rename_columns([*KEY, "is_stored"])
    frame = spark.createDataFrame(doubled.combine_chunks())
    return DoubledKeys(
        frame_cache.store(frame) if len(doubled) > frame_cache.limits.held_rows else frame, len(doubled)
    )


def find_doubles(
    messages: DataFrame,
    stored: DataFrame | None,
    frame_cache: FrameCache,
    broadcasts: BroadcastBudget,
    count: int | None = None,
) -> DoubledKeys:
    """Find doubled keys by Spark, however many; ``count`` is the number of new rows, if it is known."""
    new = messages.select(*KEY).where("instance_name IS NOT NULL AND message_id IS NOT NULL")
    twice = new.groupBy(*KEY).agg(F.count(F.lit(1)).alias("rows")).where("rows > 1")
    doubled = twice.select(*KEY, F.lit(False).alias("is_stored"))
    if stored is not None:
        new_keys = broadcasts.join_side("the keys of the new messages", new, count)
        hits = stored.select(*KEY).join(new_keys.with_hint(), KEY, how="left_semi")
        doubled = doubled.unionByName(hits.select(*KEY, F.lit(True).alias("is_stored")))
    keys = frame_cache.keep(doubled.groupBy(*KEY).agg(F.bool_or("is_stored").alias("is_stored")))
    return DoubledKeys(keys, keys.count())


def _judge(messages: DataFrame, doubled: JoinSide, scopes: DataFrame) -> DataFrame:
    """Return the rows of doubled keys with their other faults (reasons), and is_duplicate."""
    # A doubled key stands there once, so the join keeps the number of messages.
    rows = add_reasons(messages.join(doubled.with_hint(), KEY, how="inner"), scopes)
    faulty = F.size("reasons") > 0
    same_key = Window.partitionBy(*KEY)
    place = F.row_number().over(same_key.orderBy(faulty, *order_of_doubles()))
    any_sound = F.bool_or(~faulty).over(same_key)
    counts = ~faulty & ~F.col("is_stored") & (F.col("place") == 1)
    return rows.withColumns({"place": place, "any_sound": any_sound}).withColumn(
        "is_duplicate", (F.col("is_stored") | F.col("any_sound")) & ~counts
    )
