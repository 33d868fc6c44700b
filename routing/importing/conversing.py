"""Dialogs and messages as Spark brings them into the tables: they may be many, so no row is collected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routing.importing.storing import ON, SCHEMAS
from routing.storage import tables
from routing.storage.joining import small_side

_KIND = "_kind"
_ACKNOWLEDGED = ("acknowledged_at", "acknowledged_broker_instance")


def dialog_changes(exported: DataFrame, stored: DataFrame, covered: DataFrame) -> DataFrame:
    """The dialogs to put or remove, one row a key, with ``_kind`` (added, changed, removed) and the flag.

    ``covered`` has the exported instance_name and database_name. An acknowledgement whose time is stored
    stays, and the exported broker id is then its id; else that id holds as of the export.
    """
    columns = SCHEMAS["dialogs"].names
    same_end = [
        F.lower(F.col(f"n.{name}")).eqNullSafe(F.lower(F.col(f"o.{name}")))
        if name == "conversation_id"
        else F.col(f"n.{name}").eqNullSafe(F.col(f"o.{name}"))
        for name in ON["dialogs"]
    ]
    in_covered = stored.join(small_side(covered), ["instance_name", "database_name"], "left_semi")
    paired = exported.alias("n").join(in_covered.alias("o"), same_end, "full_outer")
    is_old, is_new = F.col("o.conversation_id").isNotNull(), F.col("n.conversation_id").isNotNull()
    found = paired.select(
        *(F.when(is_new, _value(name)).otherwise(F.col(f"o.{name}")).alias(name) for name in columns),
        F.when(~is_new, "removed")
        .when(~is_old, "added")
        .when(_differs([name for name in columns if name not in ON["dialogs"]]), "changed")
        .alias(_KIND),
        (~is_new).alias(tables.REMOVE),
    )
    return found.where(F.col(_KIND).isNotNull())


def _value(name: str) -> Column:
    """A column of a dialog that was exported, whether or not it is stored."""
    old, new = F.col(f"o.{name}"), F.col(f"n.{name}")
    is_acknowledged = F.col("o.acknowledged_at").isNotNull()
    far = F.col("n.far_broker_instance")
    is_its_id = F.coalesce(
        F.lower(far) == F.lower(F.col("o.acknowledged_broker_instance")),
        F.col("o.acknowledged_broker_instance").isNull(),
    )
    if name == "acknowledged_at":
        return old
    if name == "acknowledged_broker_instance":
        return F.when(is_acknowledged, F.coalesce(old, far))
    if name == "far_broker_instance":
        return F.when(is_acknowledged & is_its_id, old).otherwise(new)
    return new


def _differs(names: Sequence[str]) -> Column:
    condition = F.lit(False)
    for name in names:
        condition = condition | ~_value(name).eqNullSafe(F.col(f"o.{name}"))
    return condition


def unknown_rows(exported: DataFrame, stored: DataFrame, key: str) -> DataFrame:
    """The exported rows whose key the table does not hold."""
    names = list(ON[key])
    return exported.join(stored.select(*names), names, "left_anti").select(*SCHEMAS[key].names)


def kinds(changes: DataFrame) -> Counter[str]:
    """How many rows are added, changed and removed."""
    return Counter({row[_KIND]: row["count"] for row in changes.groupBy(_KIND).count().collect()})


def without_kind(changes: DataFrame) -> DataFrame:
    """The same rows, as they are merged."""
    return changes.drop(_KIND)
