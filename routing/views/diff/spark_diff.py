"""Compare messages by the million where Spark has them: both decisions of each, counts and examples.

Messages are never joined with messages, whose ids may be doubled: each side's keys, plan and requests are found on
their own, and in one pass every message goes through both. Nothing is exchanged on its way as long as what it
is joined with can be broadcast.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routing.cases.estate_sides import OneSide, naming
from routing.config import TableLocation
from routing.delta import file_systems, spark_tables
from routing.delta.opening import TableOpener
from routing.delta.table_details import check_writable
from routing.messages import keying, results, validate
from routing.messages.compiling import compile_messages
from routing.messages.job import ResolveJob
from routing.messages.validate import add_reasons
from routing.plan.checked_inputs import CheckedInputs, ResolveOptions
from routing.result_schemas import DECIDED, EXAMPLES, KEY_CHANGES, MESSAGE_CHANGES
from routing.runs.run_work import UntimedStages
from routing.sessions.existing_session import ExistingSession
from routing.tables import spark_forms
from routing.tables.cached_frames import FrameCache
from routing.tables.frames import collect
from routing.tables.row_faults import refuse_faults
from routing.tables.spark_forms import conform, in_shape, no_rows
from routing.terms import REJECTED
from routing.views.diff.decision_comparison import DIFF_JOB, SHOWN, MessageChanges

BEFORE, AFTER = (tuple(f"{name}_{when}" for name in DECIDED) for when in ("before", "after"))
_GROUP = [name for name in KEY_CHANGES.names if name != "messages"]
_ENDS = [name for name in EXAMPLES.names if name.endswith(("_before", "_after"))]
_LOWEST = [name for name in EXAMPLES.names if name not in _ENDS]
# Columns of messages that are made clean on the way, and under what name they stay as they were read.
_AS_READ = {name: f"{name}_as_read" for name in ("database_name", "conversation_id")}
_PLACE = "place"


def decide_sides(messages: DataFrame, before: ResolveJob, after: ResolveJob) -> DataFrame:
    """Return every conformed message with both decisions, columns of `result_schemas.MESSAGE_CHANGES`; narrow.

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
    lookups = job.source.lookups
    timed = messages.withColumn("decided_at", keying.time_of(job.options.as_of))
    judged = add_reasons(timed, lookups.scopes) if rejects else timed
    scoped = keying.add_scope(judged, lookups) if lookups.checked.has_transport else judged
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
    """Count the messages by change, in rows of `result_schemas.KEY_CHANGES`: one hash aggregate."""
    named = changed.withColumn("database_name", spark_forms.empty_as_null(F.col("database_name")))
    return in_shape(named.groupBy(*_GROUP).agg(F.count(F.lit(1)).alias("messages")), KEY_CHANGES)


def find_examples(changed: DataFrame, most: int) -> DataFrame:
    """Select ``most`` messages of each change from an outcome and reason to others (`result_schemas.EXAMPLES`).

    The lowest by instance, message id and conversation, nulls first. Spark keeps as many of each part before it
    exchanges any.
    """
    order = [F.asc_nulls_first(name) for name in _LOWEST]
    place = F.row_number().over(Window.partitionBy(*_ENDS).orderBy(*order))
    return in_shape(changed.withColumn(_PLACE, place).where(F.col(_PLACE) <= most), EXAMPLES)


OUT = "message_changes"
# A condition of more values takes longer to be handed over than it saves.
_MOST_VALUES = 1_000


@dataclass(frozen=True)
class SideMessages:
    """The messages of both sides, and their dialogs if there are any, as they are given."""

    messages: DataFrame
    dialogs: DataFrame | None


def compare(
    traffic: SideMessages,
    sides: tuple[OneSide, OneSide],
    options: ResolveOptions,
    frame_cache: FrameCache,
    notes: list[str],
    *,
    affected: Sequence[Mapping[str, Collection[str]]] | None = None,
    out: TableLocation | None = None,
) -> MessageChanges:
    """Compare the messages of one side with those of the other by Spark.

    ``options`` say how messages are resolved, except for the time, which is each side's own. ``affected`` are
    values by column, of which every message that can change has one set; None where any can. ``out`` is where the
    changed messages are written, as a whole in place of what stands there. ``frame_cache`` must keep until the
    messages of the result have been read; ``notes`` get what was not broadcast. Raises InputError, which names
    the side, where a row is at fault, OutputError where nothing can be written, and StorageError.
    """
    spark = traffic.messages.sparkSession
    if out is not None:
        out = file_systems.place(out, spark)
        check_writable(OUT, out)
        TableOpener.of_session(spark).find_shape(OUT, out, MESSAGE_CHANGES, DIFF_JOB)
    messages = conform(traffic.messages, "messages")
    if affected is not None and not affected:
        nothing = no_rows(spark, MESSAGE_CHANGES)
        return MessageChanges(messages.count(), [], [], nothing if out is None else _write(nothing, out))
    checked = _check(traffic, sides)
    messages_to_judge = messages if affected is None else messages.where(_is_one_of(affected))
    before, after = (
        compile_messages(
            messages_to_judge,
            side_inputs,
            replace(options, as_of=one_side.moment),
            frame_cache,
            UntimedStages(),
            notes=notes,
        )
        for side_inputs, one_side in zip(checked, sides, strict=True)
    )
    changed = find_changed(decide_sides(messages_to_judge, before, after))
    stored = frame_cache.keep(changed) if out is None else _write(changed, out)
    return MessageChanges(
        before.counted.counts.rows_read if affected is None else messages.count(),
        list(collect(count_changed(stored)).dicts()),
        list(collect(find_examples(stored, SHOWN)).dicts()),
        stored,
    )


def _check(traffic: SideMessages, sides: tuple[OneSide, OneSide]) -> tuple[CheckedInputs, CheckedInputs]:
    """Check both sides. Raises InputError."""
    before, after = sides
    dialogs = None if traffic.dialogs is None else conform(traffic.dialogs, "dialogs")
    with naming(before.label):
        checked = validate.check(validate.InputTables(before.settings, frame=dialogs))
    with naming(after.label):
        refuse_faults(after.differs_in(before))
    return checked, checked.with_settings(after.settings)


def _is_one_of(affected: Sequence[Mapping[str, Collection[str]]]) -> Column:
    """Return whether a message can change; of very many values none is looked at."""
    return reduce(Column.__or__, (_has(values) for values in affected), F.lit(False))


def _has(values: Mapping[str, Collection[str]]) -> Column:
    conditions = (
        F.col(name).isin(list(names_of_column))
        for name, names_of_column in values.items()
        if len(names_of_column) <= _MOST_VALUES
    )
    return reduce(Column.__and__, conditions, F.lit(True))


def _write(changed: DataFrame, out: TableLocation) -> DataFrame:
    """Write the changed messages in one commit, and read them as they are stored. Raises StorageError."""
    spark_tables.overwrite(changed, OUT, out, DIFF_JOB)
    spark = changed.sparkSession
    return spark_tables.snapshots(ExistingSession(spark), {OUT: out})[OUT].read(spark)
