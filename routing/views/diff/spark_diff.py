"""Compare millions of messages in Spark: both decisions of each, counts and examples.

Messages are never joined with messages, whose ids may be doubled. Each side's keys and requests are found on their
own, and in one pass every message goes through both in Python workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routing.cases.estate_differences import Only, PathDifference
from routing.cases.estate_sides import OneSide, naming
from routing.delta.ledger import ReplacedOutput
from routing.delta.spark_tables import TableSnapshot
from routing.engines.spark.worker_passes import changed_messages
from routing.messages import validate
from routing.messages.compiling import compile_messages, open_source
from routing.messages.route_plan import RoutePlan
from routing.plan.checked_inputs import CheckedInputs, check_inputs
from routing.result_schemas import ENDS, EXAMPLES, KEY_CHANGES, MESSAGE_CHANGES
from routing.run_context import ResolveOptions, RunContext
from routing.sessions.python_workers import prepare_workers
from routing.tables import spark_forms
from routing.tables.cached_frames import FrameCache
from routing.tables.frames import collect
from routing.tables.row_faults import refuse_faults
from routing.tables.spark_forms import conform, in_shape, no_rows
from routing.views.diff.decision_comparison import DIFF_JOB, SHOWN, MessageChanges

_GROUP = [name for name in KEY_CHANGES.names if name != "messages"]
_LOWEST = [name for name in EXAMPLES.names if name not in ENDS]
_PLACE = "place"
# A condition of more values takes longer to be handed over than it saves.
_MOST_VALUES = 1_000


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


@dataclass(frozen=True)
class SideMessages:
    """The messages of both sides, and their dialogs if there are any."""

    messages: DataFrame
    dialogs: DataFrame | None


def compare(
    traffic: SideMessages,
    difference: PathDifference,
    options: ResolveOptions,
    frame_cache: FrameCache,
    notes: list[str],
    *,
    place: ReplacedOutput | None = None,
) -> MessageChanges:
    """Compare the messages of one side with those of the other by Spark.

    ``options`` say how messages are resolved, except for the time, which is each side's own. ``place`` is
    the table that the changed messages replace. ``frame_cache`` must keep until the messages of the result have
    been read; ``notes`` get the tables that were not broadcast. Raises InputError, which names the side, if a row
    is faulty, StorageError, and EnvironmentFault if the session has no Python workers.
    """
    spark = traffic.messages.sparkSession
    prepare_workers(spark)
    messages = conform(traffic.messages, "messages")
    affected, sides = _find_affected(messages, difference), difference.sides
    if affected is not None and not affected:
        nothing = no_rows(spark, MESSAGE_CHANGES)
        return MessageChanges(messages.count(), [], [], nothing if place is None else _write(nothing, place))
    checked = _check(traffic, sides.both)
    messages_to_judge = messages if affected is None else messages.where(_is_one_of(affected))

    def compile_side(inputs: CheckedInputs, one_side: OneSide) -> RoutePlan:
        context = RunContext(replace(options, as_of=one_side.moment), notes=notes)
        source = open_source(messages_to_judge, inputs, context, frame_cache)
        return compile_messages(source)

    before, after = (compile_side(*checked_and_side) for checked_and_side in zip(checked, sides.both, strict=True))
    changed = changed_messages(messages_to_judge, before, after)
    stored = frame_cache.keep(changed) if place is None else _write(changed, place)
    return MessageChanges(
        before.counts.rows_read if affected is None else messages.count(),
        list(collect(count_changed(stored)).dicts()),
        list(collect(find_examples(stored, SHOWN)).dicts()),
        stored,
    )


def _find_affected(messages: DataFrame, difference: PathDifference) -> Sequence[Only] | None:
    """Return the sets of values by column that changeable messages have, or None if any message can change."""
    # Dialogs also differ between two times.
    if not difference.sides.is_one_time:
        return None
    if not difference.affected.filters:
        return []

    def find_services(only: Only) -> list[str]:
        rows = messages.where(_has(only) & (F.col("to_service_name") != "")).select("to_service_name").distinct()
        return [str(service) for service in collect(rows).values["to_service_name"]]

    return difference.select(difference.affected, find_services)


def _check(traffic: SideMessages, sides: tuple[OneSide, OneSide]) -> tuple[CheckedInputs, CheckedInputs]:
    before, after = sides
    dialogs = None if traffic.dialogs is None else conform(traffic.dialogs, "dialogs")
    with naming(before.label):
        surveyed = validate.survey_inputs(validate.InputTables(before.settings, frame=dialogs))
        checked = check_inputs(before.settings, *surveyed)
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


def _write(changed: DataFrame, place: ReplacedOutput) -> DataFrame:
    spark = changed.sparkSession
    version = place.replace_by_spark(spark, changed, DIFF_JOB)
    return TableSnapshot(place.location, version).read(spark)
