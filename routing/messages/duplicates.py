"""DUPLICATE_MESSAGE_ID: message rows whose (instance_name, message_id) is stored already, or stands twice.

The one check of a run that grows with what is stored: it reads two columns of `resolved_routes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from routing.messages.pending import KEY, order_of_doubles
from routing.messages.rejecting import add_reasons
from routing.schemas import MESSAGES
from routing.storage.joining import Broadcasts, Side
from routing.storage.keeping import Keeper
from routing.terms import Rejection


@dataclass(frozen=True)
class Distinct:
    """Messages without doubles, and the doubles as read with their reasons (None where there are none)."""

    messages: DataFrame
    duplicates: DataFrame | None
    count: int


def set_doubles_aside(
    messages: DataFrame,
    stored: DataFrame | None,
    scopes: DataFrame,
    keeper: Keeper,
    broadcasts: Broadcasts,
    count: int | None = None,
) -> Distinct:
    """Of each key the row that counts, and every row that cannot be judged anyway.

    ``messages`` are new rows, conformed; ``stored`` the rows of earlier runs, None where there are none;
    ``scopes`` as in `lookups.Lookups`. Of doubles within ``messages`` the smallest by enqueue_time,
    conversation_id, is_initiator and message_sequence_number counts, among those without another fault.
    ``count`` is the number of new rows, if it is known. What ``keeper`` is given must stay until both are written.
    """
    found = keeper.keep(_find_doubles(messages, stored, broadcasts, count))
    how_many = found.count()
    if not how_many:
        return Distinct(messages, None, 0)
    doubled = broadcasts.side("the doubled message ids", found, how_many)
    judged = keeper.keep(_judge(messages, doubled, scopes))
    is_duplicate = F.col("is_duplicate")
    others = messages.join(doubled.with_hint().select(*KEY), KEY, how="left_anti")
    counting = judged.where(~is_duplicate).select(*MESSAGES.names)
    duplicates = judged.where(is_duplicate).select(
        *MESSAGES.names,
        F.concat("reasons", F.array(F.lit(str(Rejection.DUPLICATE_MESSAGE_ID)))).alias("reasons"),
    )
    return Distinct(others.select(*MESSAGES.names).unionByName(counting), duplicates, duplicates.count())


def _find_doubles(
    messages: DataFrame, stored: DataFrame | None, broadcasts: Broadcasts, count: int | None
) -> DataFrame:
    """The keys that are stored already or stand twice: instance_name, message_id, is_stored; distinct."""
    new = messages.select(*KEY).where("instance_name IS NOT NULL AND message_id IS NOT NULL")
    twice = new.groupBy(*KEY).agg(F.count(F.lit(1)).alias("rows")).where("rows > 1")
    found = twice.select(*KEY, F.lit(False).alias("is_stored"))
    if stored is not None:
        side = broadcasts.side("the keys of the new messages", new, count)
        hits = stored.select(*KEY).join(side.with_hint(), KEY, how="left_semi")
        found = found.unionByName(hits.select(*KEY, F.lit(True).alias("is_stored")))
    return found.groupBy(*KEY).agg(F.bool_or("is_stored").alias("is_stored"))


def _judge(messages: DataFrame, doubled: Side, scopes: DataFrame) -> DataFrame:
    """The rows of doubled keys with their other faults (reasons), and is_duplicate."""
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
