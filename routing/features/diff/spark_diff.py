"""Messages by the million compared where Spark has them: both decisions of each, counts and examples."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.config import TableLocation
from routing.delta import file_systems, spark_tables
from routing.delta.opening import TableOpener
from routing.delta.table_details import check_writable
from routing.features.diff.decision_comparison import SHOWN, MessageChanges
from routing.features.diff.sides import OneSide, naming
from routing.messages import changed_decisions, validate
from routing.messages.compiling import compile_messages
from routing.plan.checked_inputs import CheckedInputs, ResolveOptions
from routing.runs.run_work import UntimedStages
from routing.schemas import MESSAGE_CHANGES
from routing.sessions.session_settings import ExistingSession
from routing.tables.cached_frames import FrameCache
from routing.tables.frames import collect
from routing.tables.row_faults import refuse_faults
from routing.tables.spark_forms import conform, no_rows

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
    keeper: FrameCache,
    notes: list[str],
    *,
    affected: Sequence[Mapping[str, Collection[str]]] | None = None,
    out: TableLocation | None = None,
) -> MessageChanges:
    """Compare the messages of one side with those of the other by Spark.

    ``options`` say how messages are resolved, except for the time, which is each side's own. ``affected`` are
    values by column, of which every message that can change has one set; None where any can. ``out`` is where the
    changed messages are written, as a whole in place of what stands there. ``keeper`` must keep until the messages
    of the result have been read; ``notes`` get what was not broadcast. Raises InputError, which names the side,
    where a row is at fault, OutputError where nothing can be written, and StorageError.
    """
    spark = traffic.messages.sparkSession
    if out is not None:
        out = file_systems.place(out, spark)
        check_writable(OUT, out)
        TableOpener.of_session(spark).lacks_columns(OUT, out, MESSAGE_CHANGES)
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
            keeper,
            UntimedStages(),
            notes=notes,
        )
        for side_inputs, one_side in zip(checked, sides, strict=True)
    )
    changed = changed_decisions.find_changed(changed_decisions.decide_sides(messages_to_judge, before, after))
    stored = keeper.keep(changed) if out is None else _write(changed, out)
    return MessageChanges(
        before.counted.counts.rows_read if affected is None else messages.count(),
        list(collect(changed_decisions.count_changed(stored)).dicts()),
        list(collect(changed_decisions.find_examples(stored, SHOWN)).dicts()),
        stored,
    )


def _check(traffic: SideMessages, sides: tuple[OneSide, OneSide]) -> tuple[CheckedInputs, CheckedInputs]:
    """Check both sides. Raises InputError."""
    before, after = sides
    dialogs = None if traffic.dialogs is None else conform(traffic.dialogs, "dialogs")
    with naming(before.label):
        checked = validate.check(validate.InputTables(before.settings, dialogs))
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
    spark_tables.overwrite(changed, OUT, out, "sbroute diff")
    spark = changed.sparkSession
    return spark_tables.snapshots(ExistingSession(spark), {OUT: out})[OUT].read(spark)
