"""Which messages are set aside, and why (tables.md, 'rejected_messages'): the Spark form of `rules.rejecting`."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages import ids
from routing.plan.keys import FROM_NETWORK
from routing.rules.rejecting import INT_RANGE, TEXTS
from routing.schemas import MESSAGES, Kind
from routing.storage.joining import small_side
from routing.storage.utf8 import is_utf8, readable
from routing.terms import Rejection


def add_reasons(messages: DataFrame, scopes: DataFrame) -> DataFrame:
    """Conformed messages with ``reasons``, an array of codes: empty where they can be resolved.

    ``scopes`` as in `lookups.Lookups`.
    """
    instances = scopes.where(F.col("database_name") == FROM_NETWORK)
    databases = scopes.select("instance_name", F.col("database_name").alias("key_database"))
    # Both have one row a key, so the joins keep the number of messages.
    rows = (
        messages.withColumn("key_database", F.coalesce("database_name", F.lit(FROM_NETWORK)))
        .join(small_side(_mark(instances.select("instance_name"), "instance_is_known")), "instance_name", "left")
        .join(small_side(_mark(databases, "database_is_known")), ["instance_name", "key_database"], how="left")
    )
    codes = find_codes(F.col("instance_is_known").isNotNull(), F.col("database_is_known").isNotNull())
    return rows.withColumn("reasons", F.array_compact(F.array(*codes)))


def _mark(names: DataFrame, mark: str) -> DataFrame:
    return names.withColumn(mark, F.lit(True))


def find_codes(instance_is_known: Column, database_is_known: Column) -> list[Column]:
    """The rejection codes of a message row, each null where it does not apply, in the order of tables.md."""
    database = ids.empty_as_null(F.col("database_name"))
    given = ids.empty_as_null(F.col("conversation_id"))
    instance = ids.empty_as_null(F.col("instance_name"))
    missing = [
        _code(is_missing(field.name, field.kind), Rejection.missing(field.name))
        for field in MESSAGES
        if not field.nullable
    ]
    return [
        *missing,
        *(_code(~is_utf8(F.col(name)), Rejection.not_utf8(name)) for name in TEXTS),
        _code(~F.col("hops_remaining").between(*INT_RANGE), Rejection.out_of_range("hops_remaining")),
        _code(~ids.is_guid(given), Rejection.CONVERSATION_ID_NOT_A_GUID),
        _code(instance.isNotNull() & ~instance_is_known, Rejection.UNKNOWN_INSTANCE),
        _code(database.isNotNull() & instance_is_known & ~database_is_known, Rejection.UNKNOWN_DATABASE),
    ]


def readable_texts() -> dict[str, Column]:
    """Return the texts of a message as ``rejected_messages`` stores them, by column."""
    return {name: readable(F.col(name)) for name in TEXTS}


def is_missing(name: str, kind: object) -> Column:
    """Whether a required value is null, or empty text."""
    value = F.col(name)
    return value.isNull() | (value == "") if kind == Kind.STRING else value.isNull()


def _code(applies: Column, code: str) -> Column:
    return F.when(applies, F.lit(str(code)))
