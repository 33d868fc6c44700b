"""What grows with the traffic, read of DataFrames in their declared columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.features.explain.known_tables import Row
from routing.features.explain.questions import AGE, ConversationEnd
from routing.rules.text import fold
from routing.schemas import ColumnKind, Field, Schema
from routing.tables import frames, spark_forms
from routing.tables.broadcast_joins import small_side
from routing.tables.spark_forms import readable
from routing.tables.table_columns import Only, TableColumns

_SHOWN_INSTANCES = 20
# What decides of a message besides its time, first what tells the order in which messages ask: rows equal in all
# of it are decided alike.
_TEXTS = ("message_id", "conversation_id", "role", "database_name", "to_broker_instance")


def messages_of(messages: DataFrame, only: Only) -> TableColumns:
    """Return the messages that have one of some values in each of some columns, of some instances at most."""
    # Ordered and cut, each partition gives its first rows, in one job.
    found = frames.where_in(messages, only).orderBy("instance_name").limit(_SHOWN_INSTANCES)
    return frames.collect(found)


def observed_of(observed: DataFrame, only: Only) -> TableColumns:
    """Return the few rows of observed_routing that have one of some values in each of some columns."""
    return frames.collect(frames.where_in(observed, only))


def of_conversation(messages: DataFrame, conversation: str) -> DataFrame:
    """Return all messages of a conversation, given by its folded id."""
    return messages.where(F.lower("conversation_id") == conversation)


def of_handle(observed: DataFrame, handle: str) -> DataFrame:
    """Return all rows of observed_routing that have a folded conversation handle."""
    return observed.where(F.lower("conversation_handle") == handle)


def oldest_of(messages: DataFrame, end: ConversationEnd) -> TableColumns:
    """Return the oldest message of an end, out of those that `of_conversation` found."""
    mine = messages.where(F.col("is_initiator").eqNullSafe(F.lit(end.is_initiator).cast("boolean")))
    for name, value in (("instance_name", end.instance_name), ("database_name", end.database_name)):
        # Empty text is null.
        mine = mine.where(F.coalesce(readable(F.col(name)), F.lit("")) == (value or ""))
    return frames.collect(mine.orderBy(*(F.asc_nulls_last(name) for name in AGE)).limit(1))


def dialogs_of(dialogs: DataFrame, conversations: Collection[str], only: Only) -> TableColumns:
    """Return the dialogs of conversations, given by their folded ids, that have one of the values of ``only``."""
    mine, folded = frames.where_in(dialogs, only), F.lower("conversation_id")
    if len(conversations) < 2:
        return frames.collect(mine.where(folded.isin(list(conversations))))
    shape = Schema((Field("wanted", ColumnKind.STRING),))
    wanted = frames.frame_of(dialogs.sparkSession, [{"wanted": found} for found in sorted(conversations)], shape)
    # As many as a part has messages.
    return frames.collect(mine.join(small_side(wanted), folded == F.col("wanted"), how="left_semi"))


def in_parts(messages: DataFrame, only: Only, as_of: int | None, sizes: Iterator[int]) -> Iterator[TableColumns]:
    """Yield messages in parts of ``sizes``, in the order of (t, message_id); those without any time are left out.

    Of rows at the end of a part that are equal in all that decides, some may be left out.
    """
    placed = frames.where_in(messages, only).withColumn("_place", _place(as_of)).where("_place.t IS NOT NULL")
    rest = placed
    while True:
        size = next(sizes)
        part = frames.collect(rest.orderBy("_place").limit(size).drop("_place"))
        yield part
        if len(part) < size:
            return
        last = max(_place_of(row, as_of) for row in part.dicts())
        rest = placed.where(F.col("_place") > _literal(last))


def _place(as_of: int | None) -> Column:
    """Return the place of a message among those that ask: t, its id, and what else it is decided by."""
    t = F.unix_micros(F.coalesce("observed_at", "enqueue_time")) if as_of is None else F.lit(as_of).cast("long")
    own = {"conversation_id": spark_forms.conversation_id(F.col("conversation_id"))}
    own["role"] = F.when(F.col("is_initiator"), "1").otherwise("0")
    texts = [F.coalesce(own.get(name, F.col(name)), F.lit("")).alias(name) for name in _TEXTS]
    return F.struct(t.alias("t"), *texts)


def _place_of(row: Row, as_of: int | None) -> tuple[Any, ...]:
    """Return the sort key of a row; texts are compared by their code points, as in Spark."""
    seen = row["enqueue_time"] if row["observed_at"] is None else row["observed_at"]
    own = {"conversation_id": fold(row["conversation_id"] or ""), "role": "1" if row["is_initiator"] else "0"}
    return seen if as_of is None else as_of, *((own[name] if name in own else row[name]) or "" for name in _TEXTS)


def _literal(place: tuple[Any, ...]) -> Column:
    t, *texts = place
    named = [F.lit(text).alias(name) for name, text in zip(_TEXTS, texts, strict=True)]
    return F.struct(F.lit(t).cast("long").alias("t"), *named)
