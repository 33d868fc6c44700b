"""Find messages whose (instance_name, message_id) is already stored or occurs twice, and reject them.

Only this check takes longer the more is stored: it reads two columns of ``resolved_routes``.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from routing.messages.lookups import RunLookups
from routing.messages.pending import KEY, order_of_doubles
from routing.schemas import MESSAGES
from routing.tables.cached_frames import BroadcastBudget, FrameCache, JoinSide, select_by_hash
from routing.terms import Rejection


def set_doubles_aside(messages: DataFrame, doubled: JoinSide, lookups: RunLookups) -> tuple[DataFrame, DataFrame]:
    """Reject the rows of duplicate keys, except one row of each key that is not stored yet.

    Returns the messages without duplicates, and the original duplicates with their reasons.

    ``messages`` are new rows, conformed, and ``doubled`` is the result of `find_doubles`. Of the rows without
    another fault, the one with the smallest enqueue_time, conversation_id, is_initiator and
    message_sequence_number is kept. If all rows of a key have another fault, all are kept. Quarantine does not
    count as a fault. The frames in the cache of ``lookups`` must stay until both are written.
    """
    judged = lookups.frame_cache.keep(_judge(messages, doubled, lookups))
    is_duplicate = F.col("is_duplicate")
    single = messages.join(doubled.with_hint().select(*KEY), KEY, how="left_anti")
    counting = judged.where(~is_duplicate).select(*MESSAGES.names)
    duplicates = judged.where(is_duplicate).select(
        *MESSAGES.names,
        F.concat("reasons", F.array(F.lit(str(Rejection.DUPLICATE_MESSAGE_ID)))).alias("reasons"),
    )
    return single.select(*MESSAGES.names).unionByName(counting), duplicates


def find_doubles(
    messages: DataFrame,
    stored: DataFrame | None,
    frame_cache: FrameCache,
    broadcasts: BroadcastBudget,
    count: int | None = None,
) -> JoinSide | None:
    """Find the distinct keys that are already stored or occur twice: instance_name, message_id, is_stored.

    Returns None without any. ``count`` is the number of new rows, if it is known.

    Stored keys are found by a 64-bit hash, which Spark looks up faster than texts. A stored key that only shares
    the hash of a new key has no new row, so it is not a duplicate.
    """
    new = messages.select(*KEY).where("instance_name IS NOT NULL AND message_id IS NOT NULL")
    rows = new.select(*KEY, F.lit(1).alias("rows"), F.lit(False).alias("is_stored"))
    if stored is not None:
        new_hashes = new.select(F.xxhash64(*KEY).alias("hash"))
        hash_side = broadcasts.join_side("the keys of the new messages", new_hashes, count)
        alike = select_by_hash(stored.select(*KEY), F.xxhash64(*KEY), hash_side, count)
        rows = rows.unionByName(alike.select(*KEY, F.lit(0).alias("rows"), F.lit(True).alias("is_stored")))
    keys = rows.groupBy(*KEY).agg(F.sum("rows").alias("rows"), F.bool_or("is_stored").alias("is_stored"))
    is_doubled = (F.col("rows") > 1) | ((F.col("rows") > 0) & F.col("is_stored"))
    doubled, doubled_count = frame_cache.keep_counted(keys.where(is_doubled).select(*KEY, "is_stored"), count)
    return broadcasts.join_side("the doubled message ids", doubled, doubled_count) if doubled_count else None


def _judge(messages: DataFrame, doubled: JoinSide, lookups: RunLookups) -> DataFrame:
    """Return the rows of doubled keys with their other faults (reasons), and is_duplicate."""
    # ``doubled`` has each key once, so the join keeps the number of messages.
    rows = lookups.add_reasons(messages.join(doubled.with_hint(), KEY, how="inner"))
    rows = rows.withColumn("reasons", F.array_remove("reasons", str(Rejection.INSTANCE_QUARANTINED)))
    faulty = F.size("reasons") > 0
    same_key = Window.partitionBy(*KEY)
    place = F.row_number().over(same_key.orderBy(faulty, *order_of_doubles()))
    any_sound = F.bool_or(~faulty).over(same_key)
    counts = ~faulty & ~F.col("is_stored") & (F.col("place") == 1)
    return rows.withColumns({"place": place, "any_sound": any_sound}).withColumn(
        "is_duplicate", (F.col("is_stored") | F.col("any_sound")) & ~counts
    )
