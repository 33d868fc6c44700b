"""Convert delayed messages to rows of ``pending_messages``, and these rows to messages that a run tries again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routing.rules.resolving import VERDICT_COLUMNS
from routing.schemas import MESSAGES, PENDING_MESSAGES, RESOLVED_ROUTES, ColumnKind, Field, Schema
from routing.tables.cached_frames import JoinSide
from routing.tables.spark_forms import in_shape, readable
from routing.terms import Outcome, Rejection

KEY = ["instance_name", "message_id"]
_ORDER = ["enqueue_time", "conversation_id", "is_initiator", "message_sequence_number"]
_SAME_ROW = [*_ORDER, "to_service_name", "database_name"]
# The columns with a message's original values, which a run changes before it decides.
_AS_CAME = {"observed_at": "came_observed_at", "conversation_id": "came_conversation_id"}
# The columns with the values of a row of pending_messages. They are null for a new message.
_LAST = {
    "last_decided_at": "stored_decided_at",
    "run_id": "stored_run_id",
    "decision_digest": "stored_digest",
    "due_at": "stored_due_at",
    "may_ask": "stored_may_ask",
    "last_reason": "stored_reason",
}


def is_pending() -> Column:
    """Return whether a resolved row is tried again. The sender of a network message tries that again (D9)."""
    return (F.col("outcome") == str(Outcome.DELAYED)) & F.col("database_name").isNotNull()


def tries_again(outcome: str, database_name: str | None) -> bool:
    """Return True if the next run tries the message of one row again."""
    return outcome == Outcome.DELAYED and database_name is not None


def digest(values: Mapping[str, Column]) -> Column:
    """Return a hash of a decision's columns in ``resolved_routes``. Equal decisions have equal hashes."""
    kinds = {field.name: str(field.kind) for field in RESOLVED_ROUTES}
    typed = [values[name].cast(kinds[name]) for name in VERDICT_COLUMNS]
    # xxhash64 skips nulls. Without the flags, decisions with a null in different columns would have equal hashes.
    return F.xxhash64(*(column.isNull() for column in typed), *typed)


def try_again(pending: DataFrame, now: datetime) -> DataFrame:
    """Convert rows of ``pending_messages`` to messages as of ``now``, in the columns of `try_first`."""
    values = {"observed_at": F.lit(now), "attempt": F.col("attempt") + 1}
    return _columns(pending, values, {column: F.col(name) for name, column in _LAST.items()})


def try_first(messages: DataFrame) -> DataFrame:
    """Add the attempt, which is 1, and the columns that `pending_messages` reads to new messages."""
    return _columns(messages, {"attempt": F.lit(1)}, dict.fromkeys(_LAST.values(), F.lit(None)))


def _columns(messages: DataFrame, values: dict[str, Column], stored: dict[str, Column]) -> DataFrame:
    """Return the columns of conformed messages with integers as bigint, attempt, and the given additional ones."""
    kinds = {f.name: "bigint" if f.kind == ColumnKind.INT else str(f.kind) for f in MESSAGES}
    kinds["attempt"] = "int"
    columns = [values.get(name, F.col(name)).cast(kind).alias(name) for name, kind in kinds.items()]
    as_came = (F.col(name).cast(kinds[name]).alias(column) for name, column in _AS_CAME.items())
    stored_kinds = {_LAST[field.name]: str(field.kind) for field in PENDING_MESSAGES if field.name in _LAST}
    return messages.select(
        *columns, *as_came, *(column.cast(stored_kinds[name]).alias(name) for name, column in stored.items())
    )


def withheld_first(messages: DataFrame, run_id: str, now: datetime) -> DataFrame:
    """Return the rows of ``pending_messages`` for new messages whose instance is in quarantine.

    They have attempt 0, because no run has decided them. Column ``is_changed`` is true.
    """
    values = {"attempt": F.lit(0), "last_decided_at": F.lit(now), "run_id": F.lit(run_id)}
    absent = dict.fromkeys(("decision_digest", "due_at", "may_ask"), F.lit(None))
    return _in_quarantine(messages.withColumns({**values, **absent, "is_changed": F.lit(True)}))


def withheld_again(pending: DataFrame) -> DataFrame:
    """Return rows of ``pending_messages`` whose instance is in quarantine, with column ``is_changed``."""
    is_changed = ~is_withheld()
    return _in_quarantine(pending.withColumns({"is_changed": is_changed, "due_at": F.lit(None)}))


def _in_quarantine(rows: DataFrame) -> DataFrame:
    """Return rows of ``pending_messages`` with the reason of the quarantine."""
    rows = rows.withColumn("last_reason", F.lit(str(Rejection.INSTANCE_QUARANTINED)))
    return in_shape(rows, Schema((*PENDING_MESSAGES, Field("is_changed", ColumnKind.BOOLEAN))))


def is_withheld() -> Column:
    """Return whether a row of ``pending_messages`` waits because its instance is in quarantine."""
    return F.col("last_reason") == str(Rejection.INSTANCE_QUARANTINED)


def is_stored() -> Column:
    """Return whether a message of `try_first` or `try_again` has a row in ``pending_messages``."""
    return F.col(_LAST["run_id"]).isNotNull()


def is_unchanged(decision_digest: Column) -> Column:
    """Return whether a retried message has the decision of its last row. The result is never null."""
    return F.col("stored_digest").isNotNull() & (decision_digest == F.col("stored_digest"))


def own_times(pending: DataFrame) -> DataFrame:
    """Return the observed_at of rows of ``pending_messages`` by key, in the form that rejected rows have."""
    keys = (readable(F.col(name)).alias(name) for name in KEY)
    return pending.select(*keys, F.col("observed_at").alias("own_time"), F.lit(True).alias("is_again"))


def as_read(rejected: DataFrame, times_of_tried: JoinSide) -> DataFrame:
    """Restore the observed_at of rejected rows that were tried again. ``times_of_tried`` is from `own_times`."""
    # A message has one pending row, so the join keeps the number of rows.
    joined = rejected.join(times_of_tried.with_hint(), KEY, how="left")
    observed = F.when(F.col("is_again"), F.col("own_time")).otherwise(F.col("observed_at"))
    return joined.withColumn("observed_at", observed).select(*rejected.columns)


def add_decision(messages: DataFrame, values: Mapping[str, Column]) -> DataFrame:
    """Add outcome, reason and decision_digest to decided messages. ``values`` are from `results.decide`."""
    decision = {name: values[name] for name in ("outcome", "reason")}
    return messages.withColumns({**decision, "decision_digest": digest(values)})


def pending_messages(decided: DataFrame, run_id: str, shape: Schema = PENDING_MESSAGES) -> DataFrame:
    """Return the rows of ``pending_messages`` from the decided messages of a run.

    ``decided`` has the columns of `try_first` and `try_again`, of `add_decision` and of `due_times.add_due_times`.
    A message with an unchanged decision keeps the values of its last row. ``shape`` has the columns to return.
    """
    is_same = is_unchanged(F.col("decision_digest"))

    def stored_or(stored: Column, new: Column) -> Column:
        return F.when(is_same, stored).otherwise(new)

    values = {name: F.col(column) for name, column in _AS_CAME.items()}
    values |= {
        "attempt": stored_or(F.col("attempt") - 1, F.col("attempt")),
        "last_decided_at": stored_or(F.col("stored_decided_at"), F.col("decided_at")),
        "last_reason": F.col("reason"),
        "run_id": stored_or(F.col("stored_run_id"), F.lit(run_id)),
    }
    return in_shape(decided, shape, values)


def differs_from_stored() -> Column:
    """Return whether the row that a decided message has in ``pending_messages`` differs from the stored one."""
    decisive = {name: F.col(name) for name in ("decision_digest", "due_at", "may_ask")}
    pairs = {**decisive, "last_reason": F.col("reason")}
    return reduce(Column.__or__, (~value.eqNullSafe(F.col(_LAST[name])) for name, value in pairs.items()))


def select_delayed_in_full(resolved: DataFrame) -> DataFrame:
    """Select the pending rows of a full run's ``resolved_routes``, for `after_full_run`."""
    return resolved.where(is_pending()).select(
        *(F.col(name).alias(f"resolved_{name}") for name in [*KEY, *_SAME_ROW]),
        "attempt",
        F.col("decided_at").alias("last_decided_at"),
        F.col("reason").alias("last_reason"),
        "run_id",
        digest_of_row().alias("decision_digest"),
        F.lit(None).alias("due_at"),
        F.lit(None).alias("may_ask"),
    )


def digest_of_row() -> Column:
    """Return the digest of a row of ``resolved_routes``."""
    return digest({name: F.col(name) for name in VERDICT_COLUMNS})


def with_digests(pending: DataFrame, resolved: DataFrame) -> DataFrame:
    """Return pending rows with the digests of their last rows in ``resolved_routes``, or null without one.

    Rows of release 0.2.0 have no digest, and a last row may have been deleted.
    """
    by_key = [*KEY, "attempt"]
    # A message has one row for each attempt, so the join keeps the number of rows.
    digests = resolved.select(*by_key, digest_of_row().alias("decision_digest"))
    joined = pending.drop("decision_digest").join(digests, by_key, how="left")
    return joined.select(*PENDING_MESSAGES.names)


def after_full_run(messages: DataFrame, waiting: JoinSide) -> DataFrame:
    """Return the rows of ``pending_messages`` after a full run, which does not write this table.

    ``messages`` are its input, and ``waiting`` is the result of `select_delayed_in_full` for its rows. A full run
    accepts duplicate ids. The smallest of delayed duplicates is tried again.
    """
    same_key = [F.col(name) == F.col(f"resolved_{name}") for name in KEY]
    own_values = {**{name: F.col(name) for name in _SAME_ROW}, "conversation_id": F.lower("conversation_id")}
    same_row = [own_values[name].eqNullSafe(F.col(f"resolved_{name}")) for name in _SAME_ROW]
    condition = reduce(Column.__and__, same_key + same_row)
    first = F.row_number().over(Window.partitionBy(*KEY).orderBy(*order_of_doubles()))
    rows = messages.select(*MESSAGES.names).join(waiting.with_hint(), condition, how="inner")
    return in_shape(rows.withColumn("place", first).where("place = 1"), PENDING_MESSAGES)


def order_of_doubles() -> list[Column]:
    """Return the order of duplicate rows: by the columns in the contract, then by all others."""
    rest = [name for name in MESSAGES.names if name not in _ORDER]
    columns = {name: F.col(name) for name in [*_ORDER, *rest]}
    columns["conversation_id"] = F.lower("conversation_id")
    return list(columns.values())
