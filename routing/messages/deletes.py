"""Distinguish new messages from deleted ones, and find the rows of deleted messages in other tables."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages.pending import KEY
from routing.schemas import KEYS, MESSAGES
from routing.tables.cached_frames import JoinSide
from routing.tables.spark_forms import readable_texts
from routing.terms import MSDB

MESSAGE_ROW = [
    *KEY,
    *("conversation_id", "is_initiator", "message_sequence_number", "enqueue_time"),
    *("to_service_name", "database_name"),
]
"""The columns that identify a message. Conversation ids are compared without case.

Message ids are not enough, because a rejected message may have the id of an earlier one.
"""
FOLDED = "conversation_id"
REQUEST_ROW = [*KEYS["route_requests"], "conversation_id", "is_initiator"]
"""The columns that identify a route request."""
_NET = "_net"


def net_changes(appended: DataFrame, removed: DataFrame) -> DataFrame:
    """Return each changed row once, with the number of its additions minus the number of its removals.

    Both frames are conformed rows of one table. Rows that cancel out are left out, for example rows that a DELETE
    only moved to another file, and rows that were appended and deleted since the last run.
    """
    signed = appended.withColumn(_NET, F.lit(1)).unionByName(removed.withColumn(_NET, F.lit(-1)))
    return signed.groupBy(*appended.columns).agg(F.sum(_NET).alias(_NET)).where(F.col(_NET) != 0)


def new_messages(net: DataFrame) -> DataFrame:
    """Return the new rows of `net_changes`, each as often as it was added."""
    copies = F.explode(F.sequence(F.lit(1), F.col(_NET).cast("int")))
    return net.where(F.col(_NET) > 0).select(*MESSAGES.names, copies.alias(_NET)).select(*MESSAGES.names)


def removed_messages(net: DataFrame) -> DataFrame:
    """Return the messages with removed rows in `net_changes`, by `MESSAGE_ROW`."""
    return net.where(F.col(_NET) < 0).select(*MESSAGE_ROW).distinct()


def still_stored(messages: DataFrame, removed: JoinSide) -> DataFrame:
    """Return the removed messages that still have a row in the table. This reads the whole table."""
    return messages.select(*MESSAGE_ROW).join(_other_side(removed), _is_same_message(), "left_semi").distinct()


def without(rows: DataFrame, messages: JoinSide) -> DataFrame:
    """Return ``rows`` without those of ``messages``, which are given by `MESSAGE_ROW`."""
    return rows.join(_other_side(messages), _is_same_message(), "left_anti")


def as_rejected(messages: DataFrame) -> DataFrame:
    """Return `MESSAGE_ROW` as ``rejected_messages`` stores it."""
    texts = {name: text for name, text in readable_texts().items() if name in MESSAGE_ROW}
    return messages.withColumns(texts)


def requests_of(requests: DataFrame, messages: JoinSide) -> DataFrame:
    """Return the rows of ``new_route_requests`` that ``messages`` opened, by `REQUEST_ROW`.

    A message may have asked in msdb, after it came back to its instance. Rows of release 0.2.0 and older do not
    name the conversation.
    """
    same = [F.col(name).eqNullSafe(_other(name)) for name in KEY]
    same.append(F.col("service_name") == _other("to_service_name"))
    scope = F.coalesce(_other("database_name"), F.lit(MSDB))
    same.append(F.col("database_name").isin(scope, F.lit(MSDB)))
    conversation, is_initiator = F.lower("conversation_id"), F.col("is_initiator")
    same.append(conversation.isNull() | (conversation == F.lower(_other("conversation_id"))))
    same.append(is_initiator.isNull() | (is_initiator == _other("is_initiator")))
    own_requests = requests.join(_other_side(messages), reduce(Column.__and__, same), "left_semi")
    return own_requests.select(*REQUEST_ROW).distinct()


def _is_same_message() -> Column:
    columns = {name: (F.col(name), _other(name)) for name in MESSAGE_ROW}
    columns[FOLDED] = (F.lower(FOLDED), F.lower(_other(FOLDED)))
    return reduce(Column.__and__, (mine.eqNullSafe(other) for mine, other in columns.values()))


def _other_side(messages: JoinSide) -> DataFrame:
    return messages.with_hint().select(*(F.col(name).alias(f"other_{name}") for name in MESSAGE_ROW))


def _other(name: str) -> Column:
    return F.col(f"other_{name}")
