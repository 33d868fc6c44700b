"""Input tables as they are given → what a run works with: columns without a fault, and frames (tables.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.messages import ids
from routing.messages.rejecting import is_missing
from routing.rules import text
from routing.rules.estate import Instance
from routing.schemas import DIALOGS, KEYS
from routing.storage.columns import Columns, Table, instances_of
from routing.storage.conform import conform
from routing.storage.faults import SHOWN, Fault, refuse_faults
from routing.storage.inputs import read_settings

_KEY = KEYS["dialogs"]


@dataclass(frozen=True)
class Inputs:
    """Input tables in their declared columns; ``dialogs`` None where there is no such table."""

    settings: Mapping[str, Columns]
    dialogs: DataFrame | None


@dataclass(frozen=True)
class Checked:
    """Inputs without a fault, and what was found out meanwhile.

    instances: of each instance what its own rows say; no services, no routes. dialogs: None where there are none;
    dialog_rows: how many, ending: how many of them have a lifetime.
    """

    settings: Mapping[str, Columns]
    instances: Mapping[str, Instance]
    dialogs: DataFrame | None
    dialog_rows: int = 0
    ending: int = 0

    @property
    def has_transport(self) -> bool:
        """Whether a route may read its address from the service name."""
        return any(text.is_transport(address) for address in set(self.settings["routes"].values["address"]))

    def with_settings(self, settings: Mapping[str, Columns]) -> Checked:
        """Another configuration, without a fault, and the same dialogs."""
        return replace(self, settings=settings, instances=_list_instances(settings))


def read(tables: Mapping[str, Table]) -> Inputs:
    """Read the configuration, and bring dialogs to their columns. Raises InputError."""
    settings = read_settings(tables)
    dialogs = tables.get("dialogs")
    return Inputs(settings, None if dialogs is None else conform(dialogs, "dialogs"))


def check(inputs: Inputs) -> Checked:
    """Stop where a row of the configuration or of dialogs is at fault. Raises InputError."""
    settings, dialogs = inputs.settings, inputs.dialogs
    found = Survey() if dialogs is None else _survey(dialogs)
    others = [] if dialogs is None or not found.faults else _first_faults(dialogs)
    refuse_faults(settings, others, found.faults)
    return Checked(settings, _list_instances(settings), dialogs if found.rows else None, found.rows, found.ending)


def _list_instances(settings: Mapping[str, Columns]) -> dict[str, Instance]:
    return instances_of({key: settings[key] for key in ("instances", "databases")})


@dataclass(frozen=True)
class Survey:
    """What is counted of dialogs: those that may change a decision (`matters`), those with an end, and faults."""

    rows: int = 0
    ending: int = 0
    faults: int = 0


def matters() -> Column:
    """Whether a dialog may change a decision: it has an end, is acknowledged, or has a text where it may be bound.

    Of plain columns only: a text that turns out to be no broker id does no harm later on, and is rare.
    """
    given = (F.col(name).isNotNull() for name in ("lifetime", "acknowledged_at", "far_broker_instance"))
    return reduce(Column.__or__, given)


def _survey(dialogs: DataFrame) -> Survey:
    """One pass over the dialogs, an aggregate by their keys."""
    counted = dialogs.groupBy(*_keys()).agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(matters()).alias("mattering"),
        F.count("lifetime").alias("ending"),
        F.sum(F.size(_missing())).alias("missing"),
    )
    doubled = F.count_if(F.col("rows") > 1)
    found = counted.agg(
        F.coalesce(F.sum("mattering"), F.lit(0)).alias("rows"),
        F.coalesce(F.sum("ending"), F.lit(0)).alias("ending"),
        F.coalesce(F.sum("missing") + doubled, F.lit(0)).alias("faults"),
    ).collect()[0]
    return Survey(int(found["rows"]), int(found["ending"]), int(found["faults"]))


def _keys() -> list[Column]:
    """The key of a dialog, its conversation id as it is compared."""
    return [(ids.fold(F.col(name)) if name == "conversation_id" else F.col(name)).alias(name) for name in _KEY]


def _missing() -> Column:
    """The faults of one row: its required values that are missing, an array."""
    faults = [
        F.when(is_missing(field.name, field.kind), F.lit(f"{field.name} is missing"))
        for field in DIALOGS
        if not field.nullable
    ]
    return F.array_compact(F.array(*faults))


def _first_faults(dialogs: DataFrame) -> list[Fault]:
    """As many faults of dialogs as are told."""
    shown = [F.substring(F.col(name).cast("string"), 1, 100) for name in _KEY]
    row_key = F.concat_ws(", ", *(F.coalesce(part, F.lit("NULL")) for part in shown))
    rows = dialogs.select(row_key.alias("row_key"), F.explode(_missing()).alias("fault"))
    doubled = dialogs.groupBy(*_keys()).agg(F.count(F.lit(1)).alias("rows")).where("rows > 1")
    said = F.format_string("%s rows have this key", F.col("rows").cast("string"))
    keys = doubled.select(F.concat_ws(", ", *shown).alias("row_key"), said.alias("fault"))
    found = rows.unionByName(keys).orderBy("row_key", "fault").limit(SHOWN).collect()
    return [Fault("dialogs", row["row_key"], row["fault"]) for row in found]
