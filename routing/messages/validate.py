"""Validate input tables (tables.md).

A fault in the configuration stops the run or puts its instance in quarantine. A faulty message is set aside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages.setting_frames import ReadFrames, check_frames, prepare_frames, without_instances
from routing.plan.checked_inputs import CheckedTables, DialogSurvey, FaultSurvey, check_inputs, survey_dialogs
from routing.plan.key_rows import FROM_NETWORK
from routing.rules.resolving import MATTERS
from routing.schemas import DIALOGS, KEYS, ColumnKind
from routing.tables import frames, spark_forms
from routing.tables.cached_frames import (
    FRAME_LIMITS,
    BroadcastBudget,
    CarriedFrame,
    FrameCache,
    FrameLimits,
    JoinSide,
    look_up,
)
from routing.tables.read_rows import read_few_settings, read_settings
from routing.tables.row_faults import SHOWN, RowFault
from routing.tables.spark_forms import conform, find_codes, is_missing, is_utf8, readable
from routing.tables.table_columns import Table, TableColumns, by_engine

_DIALOG_KEY = KEYS["dialogs"]
_PLACE = ["instance_name", "key_database"]
_TEXTS = [field.name for field in DIALOGS if field.kind == ColumnKind.STRING]


@dataclass(frozen=True)
class InputTables:
    """Input tables in their declared columns, and any dialogs.

    ``settings`` is None if the configuration is too large for the driver. ``read_frames`` reads it by Spark, and
    is None if the driver must decide. ``frame`` has dialogs that Spark reads. ``in_arrow`` has dialogs that came
    as Arrow, or the rows of a small ``frame``. The driver keeps these, because each pass over the messages would
    read their table again.
    """

    settings: Mapping[str, TableColumns] | None
    frame: DataFrame | None = None
    in_arrow: Table | None = None
    read_frames: ReadFrames | None = None

    @property
    def frames(self) -> Mapping[str, DataFrame]:
        """The configuration as frames, for workers."""
        if self.read_frames is None:
            raise TypeError("the driver must decide")
        return self.read_frames()

    @property
    def stored_dialogs(self) -> DataFrame | None:
        """The dialogs that each pass reads from their table, or None if they are few or came as Arrow."""
        return self.frame if self.in_arrow is None else None


def read(
    tables: Mapping[str, Table],
    limits: FrameLimits = FRAME_LIMITS,
    read_frames: ReadFrames | None = None,
    notes: list[str] | None = None,
) -> InputTables:
    """Read the configuration and dialogs into the driver if ``limits`` allow it. Raises InputError.

    Without ``read_frames`` the configuration is always read into the driver. ``notes`` gets a note if workers
    cannot decide.
    """

    def read_configuration() -> InputTables:
        if read_frames is None or not frames.has_arrow():
            return InputTables(read_settings(tables))
        settings = read_few_settings(tables, limits.driver_rows)
        if settings is not None:
            return InputTables(settings, read_frames=read_frames)
        by_spark = prepare_frames(read_frames, [] if notes is None else notes)
        if by_spark is None:
            return InputTables(read_settings(tables))
        return InputTables(None, read_frames=lambda: by_spark)

    def read_at_once() -> InputTables:
        dialogs: Any = tables["dialogs"]
        reads: list[Callable[[], Any]] = [read_configuration, lambda: _carry_dialogs(dialogs, limits)]
        configuration, carried = frames.run_concurrently(dialogs.sparkSession, lambda read: read(), reads)
        read: InputTables = replace(configuration, frame=carried.rows, in_arrow=carried.values)
        return read

    return by_engine(
        {key: tables[key] for key in ("dialogs",) if key in tables},
        spark=read_at_once,
        arrow=lambda: replace(read_configuration(), in_arrow=tables.get("dialogs")),
    )


def _carry_dialogs(dialogs: DataFrame, limits: FrameLimits) -> CarriedFrame:
    """Convert dialogs to their declared columns. Few dialogs are read into the driver. Raises InputError."""
    conformed = conform(dialogs, "dialogs")
    return FrameCache(limits).carry(conformed) if frames.has_arrow() else CarriedFrame(conformed, None)


class Suspects(Enum):
    """The dialogs of a Spark frame that may have faults: all, those that a run needs, or none."""

    ALL = "all"
    NEEDED = "needed"
    NONE = "none"


def check(
    inputs: InputTables,
    *,
    reduced: DataFrame | None = None,
    suspects: Suspects = Suspects.ALL,
    quarantines: bool = False,
    are_valid: bool = False,
) -> CheckedTables:
    """Raise InputError if a row of the configuration or of dialogs has a fault (see `check_inputs`).

    ``reduced`` has the dialogs of ``inputs.frame`` that the run needs, or is None if it needs all. With
    ``reduced``, only ``suspects`` are searched for faults. With ``are_valid``, the configuration is not searched.
    """
    dialogs, survey = survey_inputs(inputs, reduced=reduced, suspects=suspects)
    if inputs.settings is None:
        return check_frames(inputs.frames, dialogs, survey, quarantines=quarantines, are_valid=are_valid)
    checked = check_inputs(inputs.settings, dialogs, survey, quarantines=quarantines, are_valid=are_valid)
    read_frames = inputs.read_frames
    if read_frames is None:
        return checked
    left_out = checked.quarantine.instances
    return replace(checked, read_frames=lambda: without_instances(read_frames(), left_out))


def survey_inputs(
    inputs: InputTables, *, reduced: DataFrame | None = None, suspects: Suspects = Suspects.ALL
) -> tuple[Table | None, DialogSurvey]:
    """Return the dialogs that a run needs, with their counts and the faults of ``suspects``, as in `check`."""
    frame, in_arrow = inputs.frame, inputs.in_arrow
    if frame is None or inputs.stored_dialogs is None:
        return in_arrow if frame is None else frame, survey_dialogs(in_arrow)
    if reduced is None:
        return frame, _survey(frame)
    survey = _survey(reduced) if suspects is Suspects.NEEDED else _count(reduced)
    if suspects is Suspects.ALL:
        survey = replace(_survey(frame), rows=survey.rows, ending=survey.ending)
    return reduced, survey


def may_change_decision() -> Column:
    """Return whether a dialog may change a decision: it ends, is acknowledged, or names a far broker instance.

    Texts are not parsed. A text that is not a broker instance is rare, and it changes no decision.
    """
    return reduce(Column.__or__, (F.col(name).isNotNull() for name in MATTERS))


def _count(dialogs: DataFrame) -> DialogSurvey:
    """Count valid dialogs."""
    counts = dialogs.agg(F.count_if(may_change_decision()), F.count("lifetime")).collect()[0]
    return DialogSurvey(int(counts[0]), int(counts[1]))


def _survey(dialogs: DataFrame) -> DialogSurvey:
    """Count dialogs and their faults, and find the first faults."""
    # Grouping by a hash is faster than by texts. Two keys may share a hash, so any faults are counted again.
    rows, ending, faults = _count_with_faults(dialogs, [F.xxhash64(*_keys())])
    if not faults:
        return DialogSurvey(rows, ending)
    rows, ending, faults = _count_with_faults(dialogs, _keys())
    if not faults:
        return DialogSurvey(rows, ending)
    faults_of_key = F.sum(_count_faults()).alias("faults")
    counted = dialogs.groupBy(*_keys()).agg(F.count(F.lit(1)).alias("rows"), faults_of_key)
    name = F.when(is_utf8(F.col("instance_name")) & (F.col("instance_name") != ""), F.col("instance_name"))
    at_fault = counted.where((F.col("faults") > 0) | (F.col("rows") > 1)).select(name.alias("name")).distinct()
    instances = frozenset(row["name"] for row in at_fault.collect())
    return DialogSurvey(rows, ending, FaultSurvey(faults, _first_faults(dialogs), instances))


def _count_with_faults(dialogs: DataFrame, key: list[Column]) -> tuple[int, int, int]:
    """Count the dialogs that may change a decision, those with a lifetime, and all faults and duplicate keys."""
    counted = dialogs.groupBy(*key).agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(may_change_decision()).alias("mattering"),
        F.count("lifetime").alias("ending"),
        F.sum(_count_faults()).alias("faults"),
    )
    doubled = F.count_if(F.col("rows") > 1)
    counts = (F.sum("mattering"), F.sum("ending"), F.sum("faults") + doubled)
    totals = counted.agg(*(F.coalesce(count, F.lit(0)) for count in counts)).collect()[0]
    return int(totals[0]), int(totals[1]), int(totals[2])


def _keys() -> list[Column]:
    """Return the key of a dialog, with its conversation id folded."""
    return [
        (spark_forms.fold(F.col(name)) if name == "conversation_id" else F.col(name)).alias(name)
        for name in _DIALOG_KEY
    ]


def _faults() -> Iterator[tuple[Column, Column]]:
    """Yield the condition of each fault that a row may have, with its words as in `tables.row_faults`."""
    for field in DIALOGS:
        if not field.nullable:
            yield is_missing(field.name, field.kind), F.lit(f"{field.name} is missing")
    for name in _TEXTS:
        shown = F.substring(readable(F.col(name)), 1, 100)
        yield ~is_utf8(F.col(name)), F.concat(F.lit(f"{name} '"), shown, F.lit("' is not UTF-8"))


def _count_faults() -> Column:
    """Count the faults of one row. Spark would not compile an array of faults."""
    return reduce(Column.__add__, (F.when(condition, 1).otherwise(0) for condition, _ in _faults()))


def _first_faults(dialogs: DataFrame) -> list[RowFault]:
    """Return the first faults of dialogs, at most `SHOWN`."""
    texts = (readable(F.col(name)) if name in _TEXTS else F.col(name).cast("string") for name in _DIALOG_KEY)
    shown = [F.substring(text, 1, 100) for text in texts]
    row_key = F.concat_ws(", ", *(F.coalesce(part, F.lit("NULL")) for part in shown))
    faults = F.array_compact(F.array(*(F.when(condition, words) for condition, words in _faults())))
    rows = dialogs.select(row_key.alias("row_key"), F.explode(faults).alias("fault"))
    doubled = dialogs.groupBy(*_keys()).agg(F.count(F.lit(1)).alias("rows")).where("rows > 1")
    fault = F.format_string("%s rows have this key", F.col("rows").cast("string"))
    keys = doubled.select(F.concat_ws(", ", *shown).alias("row_key"), fault.alias("fault"))
    first_rows = rows.unionByName(keys).orderBy("row_key", "fault").limit(SHOWN).collect()
    return [RowFault("dialogs", row["row_key"], row["fault"]) for row in first_rows]


# Find the messages to set aside, with their reasons (tables.md, 'rejected_messages').


def add_reasons(
    messages: DataFrame, scopes: JoinSide, quarantined: Collection[str], broadcasts: BroadcastBudget
) -> DataFrame:
    """Add ``reasons`` to conformed messages: an array of codes, empty if a message can be resolved.

    ``scopes`` as in `lookups.RunLookups`. ``quarantined`` are the instances in quarantine.
    """
    scoped = messages.withColumn("key_database", F.coalesce("database_name", F.lit(FROM_NETWORK)))
    if scopes.fits:
        rows = _add_known(scoped, scopes)
    else:
        # This shuffles the messages once, or not at all if they name few databases.
        places = _add_known(scoped.select(*_PLACE).distinct(), scopes)
        rows = look_up(scoped, broadcasts.join_side("the databases in messages", places), _PLACE)
    instance_is_known, database_is_known = F.col("instance_is_known"), F.col("database_is_known")
    codes = find_codes(instance_is_known.isNotNull(), database_is_known.isNotNull(), quarantined)
    return rows.withColumn("reasons", F.array_compact(F.array(*codes)))


def _add_known(rows: DataFrame, scopes: JoinSide) -> DataFrame:
    """Add instance_is_known and database_is_known, null if unknown."""
    listed = scopes.with_hint()
    instances = listed.where(F.col("database_name") == FROM_NETWORK)
    databases = listed.select("instance_name", F.col("database_name").alias("key_database"))
    # Both have one row for each key, so the joins keep the number of messages.
    of_instance = rows.join(
        _add_flag(instances.select("instance_name"), "instance_is_known"), "instance_name", "left"
    )
    return of_instance.join(_add_flag(databases, "database_is_known"), _PLACE, how="left")


def _add_flag(names: DataFrame, flag: str) -> DataFrame:
    return names.withColumn(flag, F.lit(True))
