"""Compare millions of messages in Spark: both decisions of each, counts and examples.

Messages are never joined with messages, because their ids may be doubled. Each side's keys, plan and requests are
found separately, and one pass takes every message through both. There is no shuffle as long as the joined tables
can be broadcast.

The paths of keys are followed on the driver. A path is stored as its end and the numbers of its steps, which both
sides share, so that hops are compared as numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from routing.cases.estate_differences import Only, PathDifference, find_affected
from routing.cases.estate_sides import DiffSides, OneSide, naming
from routing.config import TableLocation
from routing.delta import file_systems, spark_tables
from routing.delta.opening import TableOpener
from routing.delta.table_details import check_writable
from routing.messages import keying, results, validate
from routing.messages.compiling import compile_messages
from routing.messages.job import ResolveJob
from routing.messages.keying import OF_ESTATE, look_up
from routing.messages.validate import add_reasons
from routing.plan.checked_inputs import CheckedInputs, ResolveOptions
from routing.plan.key_rows import PathFields
from routing.result_schemas import (
    CHANGED_HOP,
    DECIDED,
    ENDING,
    ENDS,
    EXAMPLES,
    KEY_CHANGES,
    MESSAGE_CHANGES,
    SIDES,
)
from routing.rules.path_changes import THERE, PathStep, ending_of, steps_of
from routing.rules.pathing import PathWithReturn
from routing.runs.run_work import UntimedStages
from routing.schemas import ArrayOf, ColumnKind, Field, Schema
from routing.sessions.existing_session import ExistingSession
from routing.tables import spark_forms
from routing.tables.cached_frames import FrameCache, small_side
from routing.tables.frames import collect, frame_of_tuples
from routing.tables.row_faults import refuse_faults
from routing.tables.spark_forms import conform, in_shape, no_rows
from routing.terms import MSDB, REJECTED, Reason
from routing.views.diff.decision_comparison import DIFF_JOB, SHOWN, MessageChanges

BEFORE, AFTER = (tuple(f"{name}_{when}" for name in DECIDED) for when in ("before", "after"))
ENDED_BEFORE, ENDED_AFTER = (tuple(f"{name}_{when}" for name in ENDING) for when in SIDES)
_GROUP = [name for name in KEY_CHANGES.names if name != "messages"]
_LOWEST = [name for name in EXAMPLES.names if name not in ENDS]
_STEPS = "steps"
_PATH = Schema((*(Field(name, ColumnKind.STRING) for name in ENDING), Field(_STEPS, ArrayOf(ColumnKind.INT))))
_DECIDED = Schema(
    (
        *(f for f in MESSAGE_CHANGES if f.name not in CHANGED_HOP),
        *(Field(f"{_STEPS}_{when}", ArrayOf(ColumnKind.INT)) for when in SIDES),
    )
)
# Steps of messages that their own instance stops for any routes. No step of a plan has these numbers.
_EXPIRED, _REQUESTED, _REQUESTED_IN_MSDB = -1, -2, -3
# Columns of messages that are cleaned, with the names of their original values.
_AS_READ = {name: f"{name}_as_read" for name in ("database_name", "conversation_id")}
_PLACE = "place"


@dataclass
class PathSteps:
    """The steps of paths of both sides, each with its number."""

    numbers: dict[PathStep, int] = field(default_factory=dict)

    @property
    def fields(self) -> PathFields:
        """The stored fields of a path: its end and its steps."""
        return PathFields(_PATH, self._number)

    def _number(self, path: PathWithReturn) -> tuple[Any, ...]:
        steps = steps_of(path.judged)
        return *ending_of(path.judged), tuple([self.numbers.setdefault(one, len(self.numbers)) for one in steps])

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the places of steps by their numbers."""
        shape = Schema((Field("step", ColumnKind.INT), *(f for f in MESSAGE_CHANGES if f.name in CHANGED_HOP)))
        return frame_of_tuples(spark, ((number, *step.place) for step, number in self.numbers.items()), shape)


class SideJobs(NamedTuple):
    """A side's decisions, and its paths (`keying.OF_ESTATE`, with the fields of `PathSteps`)."""

    decisions: ResolveJob
    paths: ResolveJob


def decide_sides(messages: DataFrame, before: SideJobs, after: SideJobs) -> DataFrame:
    """Return every conformed message with both decisions and endings, and the steps of both paths, in few columns.

    The columns are those of `result_schemas.MESSAGE_CHANGES` without `CHANGED_HOP`, with steps_before and
    steps_after. Both sides must have the same dialogs. A rejected message has only the outcome and ending
    REJECTED, with its codes as reasons.
    """
    as_read = messages.withColumns({copied_name: F.col(name) for name, copied_name in _AS_READ.items()})
    prepared = keying.prepare(as_read, before.decisions.options.as_of)
    # The dialog of a message does not depend on the side, so it is looked up once.
    decided = keying.find_dialog(prepared, before.decisions.source.dialog_side)
    for jobs, when in ((before, "before"), (after, "after")):
        decided = _end_side(_decide_side(decided, jobs.decisions, when), jobs.paths, when)
    written = {name: F.col(copied_name) for name, copied_name in _AS_READ.items()}
    steps = [f"{_STEPS}_{when}" for when in SIDES]
    return in_shape(decided, _DECIDED, {**written, **{name: F.col(name) for name in steps}})


def _end_side(messages: DataFrame, job: ResolveJob, when: str) -> DataFrame:
    """Add where messages of `_decide_side` end, and the steps of their paths.

    A message that its own instance delivers, keeps or drops ends there. The others have the plan's path.
    """
    timed = messages.withColumn("decided_at", keying.time_of(job.options.as_of))
    outcome, reason = F.col(f"outcome_{when}"), F.col(f"reason_{when}")
    is_rejected = outcome == REJECTED
    keyed = job.source.key(keying.read_dialog(timed))
    chosen = results.choose(keyed, job.plan, job.source.dialog_hash, fits=job.fits, is_rejected=is_rejected)
    followed = results.cut(chosen.withColumn("path", results.by_hops(F.col("choice"))))
    path = F.col("path")
    requested = F.when(F.col("in_msdb"), F.lit(_REQUESTED_IN_MSDB)).otherwise(F.lit(_REQUESTED))
    stopped = F.when(reason == str(Reason.DIALOG_EXPIRED), F.lit(_EXPIRED)).when(
        reason == str(Reason.ROUTE_REQUESTED), requested
    )
    is_stopped = stopped.isNotNull() & ~is_rejected
    own = {"ending": outcome, "ending_reason": reason}
    here = {**own, "ending_instance_name": F.col("instance_name"), "ending_database_name": F.lit(None)}
    values = {
        name: F.when(is_rejected, own.get(name, F.lit(None))).when(is_stopped, here[name]).otherwise(path[name])
        for name in ENDING
    }
    nothing = F.array().cast("array<int>")
    values[_STEPS] = F.when(is_rejected, nothing).when(is_stopped, F.array(stopped)).otherwise(path[_STEPS])
    of_side = [value.alias(f"{name}_{when}") for name, value in values.items()]
    return followed.select(*(name for name in messages.columns if name != "in_msdb"), *of_side)


def _decide_side(messages: DataFrame, job: ResolveJob, when: str) -> DataFrame:
    """Add the compared columns of a side's decision to messages of `keying.find_dialog`, and ``in_msdb``.

    ``in_msdb`` is True if a request for a route stops the message in msdb after it came back.
    """
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
    of_side = [compared[name].alias(f"{name}_{when}") for name in DECIDED]
    in_msdb = F.lit(False)
    if job.requests is not None:
        in_msdb = F.col("requested_in_msdb") & ~F.col("requested")
    return decided.select(*messages.columns, *of_side, in_msdb.alias("in_msdb"))


def _unless_rejected(values: Mapping[str, Column]) -> dict[str, Column]:
    """Return the values of messages with ``reasons``, where rejected ones have only their codes."""
    is_rejected = F.size("reasons") > 0
    others = {"outcome": F.lit(REJECTED), "reason": F.array_join("reasons", ", ")}
    return {
        name: F.when(is_rejected, others.get(name, F.lit(None))).otherwise(value) for name, value in values.items()
    }


def find_changed(decided: DataFrame, steps: PathSteps) -> DataFrame:
    """Select the rows of `decide_sides` that differ in a compared column, with the hop at which the paths part."""
    changed = decided.where(_differs())
    both = F.arrays_zip(*(F.col(f"{_STEPS}_{when}") for when in SIDES))
    parting = F.get(
        F.filter(both, lambda pair: ~pair[f"{_STEPS}_before"].eqNullSafe(pair[f"{_STEPS}_after"])), F.lit(0)
    )
    sizes = [F.size(f"{_STEPS}_{when}") for when in SIDES]
    parted = changed.withColumn("parting", F.when((sizes[0] > 0) & (sizes[1] > 0), parting))
    places = small_side(steps.frame(decided.sparkSession))
    for when in SIDES:
        step = F.col(f"parting.{_STEPS}_{when}")
        parted = look_up(parted.withColumn("step", step), places, ["step"], optional=["step"])
        # In msdb if the search ended there, else in the message's own scope.
        scope = F.when(step == _REQUESTED_IN_MSDB, F.lit(MSDB)).otherwise(_own_scope())
        stopped = F.struct(
            F.lit(THERE).alias("hop_direction"),
            F.lit(1).cast("bigint").alias("hop"),
            F.col("instance_name").alias("hop_instance_name"),
            scope.alias("hop_scope"),
        )
        known = F.when(F.col("hop").isNotNull(), F.struct(*CHANGED_HOP))
        parted = parted.withColumn(f"place_{when}", F.when(step < 0, stopped).otherwise(known)).drop(
            "step", *CHANGED_HOP
        )
    old, new = F.col("place_before"), F.col("place_after")

    def order(place: Column) -> Column:
        return F.when(place["hop_direction"] == THERE, F.lit(0)).otherwise(F.lit(1_000_000)) + place["hop"]

    place = F.when(new.isNull() | (order(old) < order(new)), old).otherwise(new)
    return in_shape(parted, MESSAGE_CHANGES, {name: place[name] for name in CHANGED_HOP})


def _own_scope() -> Column:
    return F.coalesce(F.when(F.col("database_name") != "", F.col("database_name")), F.lit(MSDB))


def _differs() -> Column:
    """Return True if any compared column differs."""
    names = zip((*BEFORE, *ENDED_BEFORE), (*AFTER, *ENDED_AFTER), strict=True)
    return reduce(Column.__or__, (~F.col(mine).eqNullSafe(F.col(theirs)) for mine, theirs in names))


def count_changed(changed: DataFrame) -> DataFrame:
    """Count the messages by change, in rows of `result_schemas.KEY_CHANGES`: one hash aggregate."""
    named = changed.withColumn("database_name", spark_forms.empty_as_null(F.col("database_name")))
    return in_shape(named.groupBy(*_GROUP).agg(F.count(F.lit(1)).alias("messages")), KEY_CHANGES)


def find_examples(changed: DataFrame, most: int) -> DataFrame:
    """Select ``most`` messages for each change of the columns `ENDS` (`result_schemas.EXAMPLES`).

    They are the lowest by instance, message id and conversation, nulls first. Spark limits each partition before
    the shuffle.
    """
    order = [F.asc_nulls_first(name) for name in _LOWEST]
    place = F.row_number().over(Window.partitionBy(*ENDS).orderBy(*order))
    return in_shape(changed.withColumn(_PLACE, place).where(F.col(_PLACE) <= most), EXAMPLES)


OUT = "message_changes"
# A condition with more values takes longer to send than it saves.
_MOST_VALUES = 1_000


@dataclass(frozen=True)
class SideMessages:
    """The messages of both sides, and their dialogs if there are any."""

    messages: DataFrame
    dialogs: DataFrame | None


def compare(
    traffic: SideMessages,
    sides: DiffSides,
    options: ResolveOptions,
    frame_cache: FrameCache,
    notes: list[str],
    *,
    out: TableLocation | None = None,
) -> MessageChanges:
    """Compare the messages of one side with those of the other by Spark.

    ``options`` are those of resolving messages, except for the time, which belongs to each side. ``out`` is the
    table that the changed messages replace. ``frame_cache`` must live until the messages of the result have been
    read, and ``notes`` get the tables that were not broadcast. Raises InputError with the side of a faulty row,
    OutputError if writing is impossible, and StorageError.
    """
    spark = traffic.messages.sparkSession
    if out is not None:
        out = file_systems.place(out, spark)
        check_writable(OUT, out)
        TableOpener.of_session(spark).find_shape(OUT, out, MESSAGE_CHANGES, DIFF_JOB)
    messages = conform(traffic.messages, "messages")
    affected = _find_affected(messages, sides)
    if affected is not None and not affected:
        nothing = no_rows(spark, MESSAGE_CHANGES)
        return MessageChanges(messages.count(), [], [], nothing if out is None else _write(nothing, out))
    checked = _check(traffic, sides.both)
    messages_to_judge = messages if affected is None else messages.where(_is_one_of(affected))
    steps = PathSteps()

    def compile_side(inputs: CheckedInputs, one_side: OneSide) -> SideJobs:
        side_options = replace(options, as_of=one_side.moment)
        args = (messages_to_judge, inputs, side_options, frame_cache, UntimedStages())
        paths = compile_messages(*args, keying=OF_ESTATE, notes=notes, path_fields=steps.fields)
        return SideJobs(compile_messages(*args, notes=notes), paths)

    before, after = (compile_side(*one) for one in zip(checked, sides.both, strict=True))
    changed = find_changed(decide_sides(messages_to_judge, before, after), steps)
    stored = frame_cache.keep(changed) if out is None else _write(changed, out)
    return MessageChanges(
        before.decisions.counted.counts.rows_read if affected is None else messages.count(),
        list(collect(count_changed(stored)).dicts()),
        list(collect(find_examples(stored, SHOWN)).dicts()),
        stored,
    )


def _find_affected(messages: DataFrame, sides: DiffSides) -> Sequence[Only] | None:
    """Return the sets of values by column that changeable messages have, or None if any message can change."""
    # Dialogs also differ between two times.
    if not sides.is_one_time:
        return None
    affected = find_affected(sides)
    if not affected.filters:
        return []

    def find_services(only: Only) -> list[str]:
        rows = messages.where(_has(only) & (F.col("to_service_name") != "")).select("to_service_name").distinct()
        return [str(service) for service in collect(rows).values["to_service_name"]]

    return PathDifference.of(sides, affected).select(affected, find_services)


def _check(traffic: SideMessages, sides: tuple[OneSide, OneSide]) -> tuple[CheckedInputs, CheckedInputs]:
    """Check both sides. Raises InputError."""
    before, after = sides
    dialogs = None if traffic.dialogs is None else conform(traffic.dialogs, "dialogs")
    with naming(before.label):
        checked = validate.check(validate.InputTables(before.settings, frame=dialogs))
    with naming(after.label):
        refuse_faults(after.differs_in(before))
    return checked, checked.with_settings(after.settings)


def _is_one_of(affected: Sequence[Only]) -> Column:
    """Return True if a message can change. Very many values are not checked."""
    return reduce(Column.__or__, (_has(values) for values in affected), F.lit(False))


def _has(values: Only) -> Column:
    conditions = (
        F.col(name).isin(list(names_of_column))
        for name, names_of_column in values.items()
        if len(names_of_column) <= _MOST_VALUES
    )
    return reduce(Column.__and__, conditions, F.lit(True))


def _write(changed: DataFrame, out: TableLocation) -> DataFrame:
    """Write the changed messages in one commit, and read them as stored. Raises StorageError."""
    spark_tables.overwrite(changed, OUT, out, DIFF_JOB)
    spark = changed.sparkSession
    return spark_tables.snapshots(ExistingSession(spark), {OUT: out})[OUT].read(spark)
