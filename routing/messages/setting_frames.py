"""The configuration as frames of Spark, if it is too large for the driver.

Python workers validate it with the functions that the driver uses for a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from routing.errors import EnvironmentFault
from routing.plan.checked_inputs import (
    CheckedTables,
    DialogSurvey,
    FaultSurvey,
    select_dialogs,
)
from routing.plan.instance_plans import FAULTS, TABLE, check_rows
from routing.plan.key_rows import FROM_NETWORK
from routing.schemas import KEYS, SETTINGS, TABLES
from routing.sessions.python_workers import map_by_workers, prepare_workers
from routing.tables.arrow_rows import with_zones
from routing.tables.frames import run_concurrently, spark_schema, times_as_numbers
from routing.tables.row_faults import RowFault
from routing.tables.spark_forms import conform, no_rows
from routing.tables.table_columns import Table, by_engine, select_arrow, shape_of

ReadFrames = Callable[[], Mapping[str, DataFrame]]
"""Reads the configuration as frames in their declared columns."""
_REQUESTS = "route_requests"
# The approximate number of rows that a task validates.
_CHECKED_AT_ONCE = 200_000


@dataclass(frozen=True)
class DistributedInputs(CheckedTables):
    """Valid inputs whose configuration stays in Spark."""

    frames: Mapping[str, DataFrame]

    @property
    def has_transport(self) -> bool:
        """True, because a route may read its address from the service name. No route is checked for this."""
        return True

    def count_unended_requests(self) -> int:
        """Count the distinct requests without ended_at in the columns of route_requests."""
        requests = self.frames.get(_REQUESTS)
        if requests is None:
            return 0
        return requests.where("ended_at IS NULL").select(*KEYS[_REQUESTS]).distinct().count()


def open_settings(tables: Mapping[str, Table], spark: SparkSession) -> dict[str, DataFrame]:
    """Return the tables of the configuration as frames in their declared columns. Raises InputError."""
    return {key: conform(_as_frame(tables[key], key, spark), key) for key in SETTINGS if key in tables}


def _as_frame(table: Any, key: str, spark: SparkSession) -> DataFrame:
    def convert() -> DataFrame:
        rows = select_arrow(table, list(shape_of(table, key).values()))
        # pyspark cannot find the types of an empty table.
        return spark.createDataFrame(with_zones(rows)) if rows.num_rows else no_rows(spark, TABLES[key])

    frame: DataFrame = by_engine({key: table}, spark=lambda: table, arrow=convert)
    return frame


def prepare_frames(read_frames: ReadFrames, notes: list[str]) -> Mapping[str, DataFrame] | None:
    """Return the configuration as frames, or note why Python workers cannot decide and return None."""
    frames = read_frames()
    try:
        prepare_workers(frames["instances"].sparkSession)
    except EnvironmentFault as fault:
        notes.append(f"the driver decides all routing keys: {fault.message}")
        return None
    return frames


def without_instances(frames: Mapping[str, DataFrame], instances: Collection[str]) -> dict[str, DataFrame]:
    """Return ``frames`` without the rows of some instances."""
    if not instances:
        return dict(frames)
    is_other = ~F.coalesce(F.col("instance_name").isin(*instances), F.lit(False))
    return {key: frame.where(is_other) for key, frame in frames.items()}


def check_frames(
    frames: Mapping[str, DataFrame],
    dialogs: Table | None,
    survey: DialogSurvey,
    *,
    quarantines: bool,
    are_valid: bool,
) -> DistributedInputs:
    """Return the checked inputs, as `checked_inputs.check_inputs` does. Raises InputError."""
    faults = survey.faults if are_valid else _find_faults(frames) | survey.faults
    quarantine = faults.judge(quarantines=quarantines)
    return DistributedInputs(
        without_instances(frames, quarantine.instances),
        dialogs=select_dialogs(dialogs, survey, quarantine),
        dialog_rows=survey.rows,
        ending=survey.ending,
        quarantine=quarantine,
    )


def _find_faults(frames: Mapping[str, DataFrame]) -> FaultSurvey:
    """Validate in workers. One worker gets all rows of a key."""
    spark = frames["instances"].sparkSession

    def find(key: str) -> list[Row]:
        parts = 1 + frames[key].count() // _CHECKED_AT_ONCE
        # The versions of a route, which differ only in valid_from, must be validated together.
        together = frames[key].repartition(parts, *(name for name in KEYS[key] if name != "valid_from"))
        return map_by_workers(together, partial(check_rows, key), spark_schema(FAULTS)).collect()

    faults = (
        FaultSurvey(row["count"], [RowFault(*fault) for fault in row["first"]], frozenset(row["instances"]))
        for rows in run_concurrently(spark, find, list(frames))
        for row in rows
    )
    return reduce(FaultSurvey.__or__, faults, FaultSurvey())


def in_one_table(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of several tables with all their columns, and the key of their table."""
    marked = [frame.withColumn(TABLE, F.lit(key)) for key, frame in frames.items()]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), marked)


def find_scopes(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the databases of known instances, and `FROM_NETWORK` for each: instance_name, database_name."""
    instances = frames["instances"].select("instance_name")
    databases = frames["databases"].select("instance_name", F.col("name").alias("database_name"))
    of_instances = databases.join(instances, "instance_name", how="left_semi")
    return of_instances.unionByName(instances.withColumn("database_name", F.lit(FROM_NETWORK)))


def digest_frames(frames: Mapping[str, DataFrame]) -> dict[str, str]:
    """Return a digest of each table, independent of the order of its rows.

    It differs from that of the same table in the driver (`retries.digest_inputs`).
    """
    spark = frames["instances"].sparkSession
    return dict(zip(frames, run_concurrently(spark, lambda key: _digest(frames[key]), list(frames)), strict=True))


def _digest(frame: DataFrame) -> str:
    plain = times_as_numbers(frame)
    row = F.to_json(F.struct(*plain.columns))
    hashes = plain.select(*(F.xxhash64(F.lit(seed), row).alias(f"hash_{seed}") for seed in (0, 1)))
    sums = [F.sum(F.col(name).cast("decimal(38,0)")) for name in hashes.columns]
    [values] = hashes.agg(F.count(F.lit(1)), *sums).collect()
    return "-".join(map(str, values))
