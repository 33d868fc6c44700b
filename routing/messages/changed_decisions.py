"""What two configurations, or two times, make of the same messages: both decisions of a message in one row.

Messages are never joined with messages, whose ids may be doubled: each side's keys, plan and requests are found on
their own, and in one pass every message goes through both. Nothing is exchanged on its way as long as what it
is joined with can be broadcast.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routing.messages import keying, results
from routing.messages.job import ResolveJob
from routing.messages.rejected_rows import add_reasons
from routing.schemas import DECIDED, EXAMPLES, KEY_CHANGES, MESSAGE_CHANGES
from routing.tables import spark_forms
from routing.tables.spark_forms import in_shape
from routing.terms import REJECTED

BEFORE, AFTER = (tuple(f"{name}_{when}" for name in DECIDED) for when in ("before", "after"))
_GROUP = [name for name in KEY_CHANGES.names if name != "messages"]
_ENDS = [name for name in EXAMPLES.names if name.endswith(("_before", "_after"))]
_LOWEST = [name for name in EXAMPLES.names if name not in _ENDS]
# Columns of messages that are made clean on the way, and under what name they stay as they were read.
_AS_READ = {name: f"{name}_as_read" for name in ("database_name", "conversation_id")}
_PLACE = "place"


def decide_sides(messages: DataFrame, before: ResolveJob, after: ResolveJob) -> DataFrame:
    """Return every conformed message with both decisions, columns of `schemas.MESSAGE_CHANGES`; narrow.

    Both sides must have the same dialogs. A message that is set aside has outcome REJECTED, its codes as reason,
    and nothing else.
    """
    as_read = messages.withColumns({copied_name: F.col(name) for name, copied_name in _AS_READ.items()})
    prepared = keying.prepare(as_read, before.options.as_of)
    # Which row of the dialogs is a message's does not depend on the side: it is looked up once.
    decided = keying.find_dialog(prepared, before.source.dialog_side)
    for job, names in ((before, BEFORE), (after, AFTER)):
        decided = _decide_side(decided, job, names)
    return in_shape(decided, MESSAGE_CHANGES, {name: F.col(copied_name) for name, copied_name in _AS_READ.items()})


def _decide_side(messages: DataFrame, job: ResolveJob, names: tuple[str, ...]) -> DataFrame:
    """Add the compared columns of a side's decision, under these names, to messages of `keying.find_dialog`."""
    rejects = job.counted.may_reject
    scopes = job.source.lookups.scopes
    timed = messages.withColumn("decided_at", keying.time_of(job.options.as_of))
    judged = add_reasons(timed, scopes) if rejects else timed
    scoped = keying.add_scope(judged, job.source.lookups) if job.source.has_transport else judged
    keyed = job.source.key(keying.read_dialog(scoped))
    is_rejected = F.size("reasons") > 0 if rejects else None
    chosen = results.choose(keyed, job.plan, job.source.dialog_hash, fits=job.fits, is_rejected=is_rejected)
    decided, values = results.decide(job, chosen)
    compared = {name: values[name] for name in DECIDED}
    if rejects:
        compared = _unless_rejected(compared)
    of_side = [compared[name].alias(alias) for name, alias in zip(DECIDED, names, strict=True)]
    return decided.select(*messages.columns, *of_side)


def _unless_rejected(values: Mapping[str, Column]) -> dict[str, Column]:
    """Return the values of messages with ``reasons``; of those that are set aside the codes alone."""
    is_rejected = F.size("reasons") > 0
    others = {"outcome": F.lit(REJECTED), "reason": F.array_join("reasons", ", ")}
    return {
        name: F.when(is_rejected, others.get(name, F.lit(None))).otherwise(value) for name, value in values.items()
    }


def find_changed(decided: DataFrame) -> DataFrame:
    """Select the rows of `decide_sides` that differ in a compared column."""
    return decided.where(_differs())


def _differs() -> Column:
    """Return whether anything that is compared differs."""
    differ = (~F.col(mine).eqNullSafe(F.col(theirs)) for mine, theirs in zip(BEFORE, AFTER, strict=True))
    return reduce(Column.__or__, differ)


def count_changed(changed: DataFrame) -> DataFrame:
    """Count the messages by change, in rows of `schemas.KEY_CHANGES`: one hash aggregate."""
    named = changed.withColumn("database_name", spark_forms.empty_as_null(F.col("database_name")))
    return in_shape(named.groupBy(*_GROUP).agg(F.count(F.lit(1)).alias("messages")), KEY_CHANGES)


def find_examples(changed: DataFrame, most: int) -> DataFrame:
    """Select ``most`` messages of each change from an outcome and reason to others (`schemas.EXAMPLES`).

    The lowest by instance, message id and conversation, nulls first. Spark keeps as many of each part before it
    exchanges any.
    """
    order = [F.asc_nulls_first(name) for name in _LOWEST]
    place = F.row_number().over(Window.partitionBy(*_ENDS).orderBy(*order))
    return in_shape(changed.withColumn(_PLACE, place).where(F.col(_PLACE) <= most), EXAMPLES)
