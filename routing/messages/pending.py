"""Find the delayed messages that are tried again, and those that are pending afterwards."""

from __future__ import annotations

from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routing.schemas import MESSAGES, PENDING_MESSAGES, ColumnKind
from routing.tables.cached_frames import JoinSide
from routing.tables.spark_forms import in_shape, readable
from routing.terms import Outcome

KEY = ["instance_name", "message_id"]
_ORDER = ["enqueue_time", "conversation_id", "is_initiator", "message_sequence_number"]
_SAME_ROW = [*_ORDER, "to_service_name", "database_name"]
# What a job reads anew of a message that may be pending afterwards: its values as they came in, by name.
_AS_CAME = {"observed_at": "came_observed_at", "conversation_id": "came_conversation_id"}


def is_pending() -> Column:
    """Return whether a resolved row is tried again (D9: the sender of a network message does that itself)."""
    return (F.col("outcome") == str(Outcome.DELAYED)) & F.col("database_name").isNotNull()


def tries_again(outcome: str, database_name: str | None) -> bool:
    """Return True if the next run tries the message of one row again."""
    return outcome == Outcome.DELAYED and database_name is not None


def try_again(pending: DataFrame, now: datetime) -> DataFrame:
    """Convert rows of ``pending_messages`` to messages as of ``now``, in the columns of `try_first`."""
    values = {"observed_at": F.lit(now), "attempt": F.col("attempt") + 1}
    return _columns(pending, values)


def try_first(messages: DataFrame) -> DataFrame:
    """Add to new messages their attempt, and the columns that `pending_messages` keeps as they came in."""
    return _columns(messages, {"attempt": F.lit(1)})


def _columns(messages: DataFrame, values: dict[str, Column]) -> DataFrame:
    """Return the columns of conformed messages, whose integers are bigint, and attempt."""
    kinds = {f.name: "bigint" if f.kind == ColumnKind.INT else str(f.kind) for f in MESSAGES}
    kinds["attempt"] = "int"
    columns = [values.get(name, F.col(name)).cast(kind).alias(name) for name, kind in kinds.items()]
    return messages.select(
        *columns, *(F.col(name).cast(kinds[name]).alias(original_name) for name, original_name in _AS_CAME.items())
    )


def own_times(pending: DataFrame) -> DataFrame:
    """Return the observed_at with which the rows of ``pending_messages`` were read, by their keys as rejected."""
    keys = (readable(F.col(name)).alias(name) for name in KEY)
    return pending.select(*keys, F.col("observed_at").alias("own_time"), F.lit(True).alias("is_again"))


def as_read(rejected: DataFrame, times_of_tried: JoinSide) -> DataFrame:
    """Restore the own observed_at of rejected rows that were tried again (``times_of_tried``: `own_times`)."""
    # A message is pending once, so the join keeps the number of rows.
    joined = rejected.join(times_of_tried.with_hint(), KEY, how="left")
    observed = F.when(F.col("is_again"), F.col("own_time")).otherwise(F.col("observed_at"))
    return joined.withColumn("observed_at", observed).select(*rejected.columns)


def pending_messages(decided: DataFrame, run_id: str) -> DataFrame:
    """Return the rows of ``pending_messages`` after a run.

    ``decided`` are its messages, those of `try_first` and `try_again`, as it read them, with outcome, reason and
    decided_at: a row a message.
    """
    values = {name: F.col(original_name) for name, original_name in _AS_CAME.items()}
    values |= {"last_decided_at": F.col("decided_at"), "last_reason": F.col("reason"), "run_id": F.lit(run_id)}
    return in_shape(decided.where(is_pending()), PENDING_MESSAGES, values)


def select_delayed_in_full(resolved: DataFrame) -> DataFrame:
    """Select the pending rows of a full run's ``resolved_routes``, for `after_full_run`."""
    return resolved.where(is_pending()).select(
        *(F.col(name).alias(f"resolved_{name}") for name in [*KEY, *_SAME_ROW]),
        "attempt",
        F.col("decided_at").alias("last_decided_at"),
        F.col("reason").alias("last_reason"),
        "run_id",
    )


def after_full_run(messages: DataFrame, waiting: JoinSide) -> DataFrame:
    """Return the rows of ``pending_messages`` after a full run, which keeps no such table.

    ``messages`` are those it read, ``waiting`` what `select_delayed_in_full` finds of the rows it wrote. A full
    run does not look for doubled ids; of doubles that are delayed the smallest is tried again.
    """
    same_key = [F.col(name) == F.col(f"resolved_{name}") for name in KEY]
    own_values = {**{name: F.col(name) for name in _SAME_ROW}, "conversation_id": F.lower("conversation_id")}
    same_row = [own_values[name].eqNullSafe(F.col(f"resolved_{name}")) for name in _SAME_ROW]
    condition = reduce(Column.__and__, same_key + same_row)
    first = F.row_number().over(Window.partitionBy(*KEY).orderBy(*order_of_doubles()))
    rows = messages.select(*MESSAGES.names).join(waiting.with_hint(), condition, how="inner")
    return in_shape(rows.withColumn("place", first).where("place = 1"), PENDING_MESSAGES)


def order_of_doubles() -> list[Column]:
    """Return the order of doubled rows: by what the contract names, then by everything else."""
    rest = [name for name in MESSAGES.names if name not in _ORDER]
    columns = {name: F.col(name) for name in [*_ORDER, *rest]}
    columns["conversation_id"] = F.lower("conversation_id")
    return list(columns.values())
