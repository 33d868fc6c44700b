"""Validate input tables as they are given: columns without a fault, and frames (tables.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.plan.checked_inputs import CheckedInputs, check_without_spark
from routing.rules.resolving import MATTERS
from routing.schemas import DIALOGS, KEYS, ColumnKind
from routing.tables import frames, spark_forms
from routing.tables.cached_frames import FRAME_LIMITS, CarriedFrame, FrameCache, FrameLimits
from routing.tables.read_rows import read_settings
from routing.tables.row_faults import SHOWN, RowFault, refuse_faults
from routing.tables.spark_forms import conform, is_missing, is_utf8, readable
from routing.tables.table_columns import Table, TableColumns, is_frame

if TYPE_CHECKING:
    import pyarrow

_KEY = KEYS["dialogs"]
_TEXTS = [field.name for field in DIALOGS if field.kind == ColumnKind.STRING]


@dataclass(frozen=True)
class InputTables:
    """Input tables in their declared columns; ``dialogs`` None where there is no such table.

    Dialogs of Arrow's are as they were given. ``few_dialogs``: the rows of a frame of few dialogs, which the
    driver carries, for each pass over the messages would read their table anew.
    """

    settings: Mapping[str, TableColumns]
    dialogs: Table | None
    few_dialogs: pyarrow.Table | None = None


def read(tables: Mapping[str, Table], limits: FrameLimits = FRAME_LIMITS) -> InputTables:
    """Read the configuration and, where they are few by ``limits``, the dialogs. Raises InputError."""
    dialogs = tables.get("dialogs")
    if dialogs is None or not is_frame(dialogs):
        return InputTables(read_settings(tables), dialogs)
    reads: list[Callable[[], Any]] = [lambda: read_settings(tables), lambda: _carry_dialogs(dialogs, limits)]
    settings, carried = frames.at_once(dialogs.sparkSession, lambda read: read(), reads)
    return InputTables(settings, carried.rows, carried.values)


def _carry_dialogs(dialogs: DataFrame, limits: FrameLimits) -> CarriedFrame:
    """Convert dialogs to their columns; few are read into the driver. Raises InputError."""
    conformed = conform(dialogs, "dialogs")
    return FrameCache(limits).carry(conformed) if frames.has_arrow() else CarriedFrame(conformed, None)


def check(inputs: InputTables) -> CheckedInputs:
    """Stop where a row of the configuration or of dialogs is at fault. Raises InputError."""
    settings, dialogs = inputs.settings, inputs.dialogs
    if dialogs is None or inputs.few_dialogs is not None or not is_frame(dialogs):
        checked = check_without_spark(settings, dialogs if inputs.few_dialogs is None else inputs.few_dialogs)
        return checked if checked.dialogs is None else replace(checked, dialogs=dialogs)
    survey = _survey(dialogs)
    refuse_faults(settings, _first_faults(dialogs) if survey.faults else [], survey.faults)
    return CheckedInputs(settings, dialogs if survey.rows else None, survey.rows, survey.ending)


@dataclass(frozen=True)
class DialogSurvey:
    """Counts of dialogs: those that may change a decision (`may_change_decision`), those that end, and faults."""

    rows: int = 0
    ending: int = 0
    faults: int = 0


def may_change_decision() -> Column:
    """Return whether a dialog may change a decision: it ends, is acknowledged, or may bind by a text.

    Of plain columns only: a text that turns out to be no broker instance does no harm later on, and is rare.
    """
    return reduce(Column.__or__, (F.col(name).isNotNull() for name in MATTERS))


def _survey(dialogs: DataFrame) -> DialogSurvey:
    """Count dialogs and their faults in one pass, an aggregate by their keys."""
    counted = dialogs.groupBy(*_keys()).agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(may_change_decision()).alias("mattering"),
        F.count("lifetime").alias("ending"),
        F.sum(F.size(_missing()) + _count_undecodable()).alias("faults"),
    )
    doubled = F.count_if(F.col("rows") > 1)
    totals = counted.agg(
        F.coalesce(F.sum("mattering"), F.lit(0)).alias("rows"),
        F.coalesce(F.sum("ending"), F.lit(0)).alias("ending"),
        F.coalesce(F.sum("faults") + doubled, F.lit(0)).alias("faults"),
    ).collect()[0]
    return DialogSurvey(int(totals["rows"]), int(totals["ending"]), int(totals["faults"]))


def _keys() -> list[Column]:
    """Return the key of a dialog, its conversation id as it is compared."""
    return [
        (spark_forms.fold(F.col(name)) if name == "conversation_id" else F.col(name)).alias(name) for name in _KEY
    ]


def _missing() -> Column:
    """Return the required values that one row lacks: an array of faults."""
    faults = [
        F.when(is_missing(field.name, field.kind), F.lit(f"{field.name} is missing"))
        for field in DIALOGS
        if not field.nullable
    ]
    return F.array_compact(F.array(*faults))


def _count_undecodable() -> Column:
    """Count the texts of one row that are no UTF-8."""
    counts = (F.when(is_utf8(F.col(name)), 0).when(F.col(name).isNotNull(), 1).otherwise(0) for name in _TEXTS)
    return reduce(Column.__add__, counts)


def _undecodable() -> Column:
    """Return the texts of one row that are no UTF-8: an array of faults, as `storage.faults` words them."""
    faults = []
    for name in _TEXTS:
        shown = F.substring(readable(F.col(name)), 1, 100)
        fault = F.concat(F.lit(f"{name} '"), shown, F.lit("' is not UTF-8"))
        faults.append(F.when(~is_utf8(F.col(name)), fault))
    return F.array_compact(F.array(*faults))


def _first_faults(dialogs: DataFrame) -> list[RowFault]:
    """Return the first faults of dialogs, `SHOWN` at most."""
    texts = (readable(F.col(name)) if name in _TEXTS else F.col(name).cast("string") for name in _KEY)
    shown = [F.substring(text, 1, 100) for text in texts]
    row_key = F.concat_ws(", ", *(F.coalesce(part, F.lit("NULL")) for part in shown))
    rows = dialogs.select(row_key.alias("row_key"), F.explode(F.concat(_missing(), _undecodable())).alias("fault"))
    doubled = dialogs.groupBy(*_keys()).agg(F.count(F.lit(1)).alias("rows")).where("rows > 1")
    fault = F.format_string("%s rows have this key", F.col("rows").cast("string"))
    keys = doubled.select(F.concat_ws(", ", *shown).alias("row_key"), fault.alias("fault"))
    first_rows = rows.unionByName(keys).orderBy("row_key", "fault").limit(SHOWN).collect()
    return [RowFault("dialogs", row["row_key"], row["fault"]) for row in first_rows]
