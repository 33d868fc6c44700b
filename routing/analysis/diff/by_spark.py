"""Messages by the million compared where Spark has them: both decisions of each, and what is told of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.analysis.diff.comparing import SHOWN, Changed
from routing.analysis.diff.sides import OneSide, naming
from routing.config import Location
from routing.messages import changes, validate
from routing.messages.compiling import compile_messages
from routing.plan.checked import Checked
from routing.plan.options import Options
from routing.runs.stages import Untimed
from routing.schemas import MESSAGE_CHANGES
from routing.sessions.holding import Held
from routing.storage import disks, tables
from routing.storage.conform import conform, no_rows
from routing.storage.faults import refuse_faults
from routing.storage.frames import collect
from routing.storage.keeping import Keeper
from routing.storage.opening import Opener
from routing.storage.places import check_writable

OUT = "message_changes"
# A condition of more values takes longer to be handed over than it saves.
_MOST_VALUES = 1_000


@dataclass(frozen=True)
class Traffic:
    """The messages of both sides, and their dialogs if there are any, as they are given."""

    messages: DataFrame
    dialogs: DataFrame | None


def compare(
    traffic: Traffic,
    sides: tuple[OneSide, OneSide],
    options: Options,
    keeper: Keeper,
    notes: list[str],
    *,
    affected: Sequence[Mapping[str, Collection[str]]] | None = None,
    out: Location | None = None,
) -> Changed:
    """What changes for the messages from one side to the other.

    ``options`` say how messages are resolved but for the time, which is each side's own. ``affected`` are values
    by column, of which every message that can change has one set; None where any can. ``out`` is where the changed
    messages are written, as a whole in place of what stands there. ``keeper`` must keep until the messages of the
    result have been read; ``notes`` get what was not broadcast. Raises InputError, which names the side, where a
    row is at fault, OutputError where nothing can be written, and StorageError.
    """
    spark = traffic.messages.sparkSession
    if out is not None:
        out = disks.place(out, spark)
        check_writable(OUT, out)
        Opener.of_session(spark).lacks_columns(OUT, out, MESSAGE_CHANGES)
    messages = conform(traffic.messages, "messages")
    if affected is not None and not affected:
        nothing = no_rows(spark, MESSAGE_CHANGES)
        return Changed(messages.count(), [], [], nothing if out is None else _write(nothing, out))
    checked = _check(traffic, sides)
    found = messages if affected is None else messages.where(_is_one_of(affected))
    before, after = (
        compile_messages(found, known, replace(options, as_of=side.moment), keeper, Untimed(), notes=notes)
        for known, side in zip(checked, sides, strict=True)
    )
    changed = changes.find_changed(changes.decide_sides(found, before, after))
    stored = keeper.keep(changed) if out is None else _write(changed, out)
    return Changed(
        before.counted.counts.rows_read if affected is None else messages.count(),
        list(collect(changes.count_changed(stored)).dicts()),
        list(collect(changes.find_examples(stored, SHOWN)).dicts()),
        stored,
    )


def _check(traffic: Traffic, sides: tuple[OneSide, OneSide]) -> tuple[Checked, Checked]:
    """Both sides without a fault. Raises InputError."""
    before, after = sides
    dialogs = None if traffic.dialogs is None else conform(traffic.dialogs, "dialogs")
    with naming(before.label):
        checked = validate.check(validate.Inputs(before.settings, dialogs))
    with naming(after.label):
        refuse_faults(after.differs_in(before))
    return checked, checked.with_settings(after.settings)


def _is_one_of(affected: Sequence[Mapping[str, Collection[str]]]) -> Column:
    """Whether a message can change; of very many values none is looked at."""
    return reduce(Column.__or__, (_has(values) for values in affected), F.lit(False))


def _has(values: Mapping[str, Collection[str]]) -> Column:
    conditions = (F.col(name).isin(list(found)) for name, found in values.items() if len(found) <= _MOST_VALUES)
    return reduce(Column.__and__, conditions, F.lit(True))


def _write(changed: DataFrame, out: Location) -> DataFrame:
    """Write the changed messages in one commit, and read them as they are stored. Raises StorageError."""
    tables.overwrite(changed, OUT, out, "sbroute diff")
    spark = changed.sparkSession
    return tables.snapshots(Held(spark), {OUT: out})[OUT].read(spark)
