"""Which runs count: the last row of ``runs``, what unfinished runs left behind, and the commit that decides.

The versions that the last counting run recorded are the truth. A write that comes after them belongs to a run
that was killed, or that lost a race, and is taken back before the next run writes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from routing import faultpoints, history, keeping, schemas, tables
from routing.config import Config, Location
from routing.errors import InputError, StorageError
from routing.releases import check_release, refuse_newer


@dataclass(frozen=True)
class LastRun:
    """The last run that counts."""

    run_id: str
    mode: str
    finished_at: datetime
    input_versions: Mapping[str, int]
    output_versions: Mapping[str, int]
    outcome_counts: Mapping[str, int]
    settings: str

    @property
    def turn(self) -> int:
        """The place in the order of runs of the one that comes after this."""
        micros = int(self.finished_at.timestamp()) * 1_000_000 + self.finished_at.microsecond
        return micros + 1


FIRST_TURN = 1


def last_run(spark: SparkSession, runs: Location, run_id: str | None = None) -> LastRun | None:
    """The last run that counts; None where there is none yet, or ``runs`` is another kind of table.

    Raises OutputError where a newer release has written these tables, InputError where ``run_id``, which is to
    be the next, counts already.
    """
    version = tables.current_version(spark, runs)
    if version is None:
        return None
    table = tables.Snapshot(runs, version).read(spark)
    if tables.differences(table.schema, schemas.RUNS):
        # A newer release may have other columns; whatever else this is, `tables.check_output` says it.
        check_release(table, str(runs))
        return None
    wanted = ("run_id", "mode", "input_versions", "output_versions", "outcome_counts", "settings")
    last = F.struct(*wanted, F.unix_micros("finished_at").alias("finished"))
    told = table.agg(
        F.max_by(last, F.struct("finished_at", "run_id")).alias("last"),
        F.collect_set("release").alias("releases"),
        F.bool_or(F.col("run_id") == F.lit(run_id)).alias("is_known"),
    ).collect()[0]
    refuse_newer(told["releases"], str(runs))
    if told["is_known"]:
        raise InputError(f"run {run_id!r} is recorded already in {runs}", "give the next run an id of its own")
    if told["last"] is None:
        return None
    found = told["last"].asDict(recursive=True)
    return LastRun(finished_at=history.from_micros(found.pop("finished")), **found)


def check_succession(config: Config, last: LastRun) -> None:
    """Refuse to go on from a run over other messages. Raises InputError."""
    settings = json.loads(last.settings)
    before, runs = settings["tables"]["messages"], settings["output"]["runs"]
    now = str(config.tables["messages"])
    # A folder that was moved as a whole is the same tables still.
    if before != now and _way(runs, before) != _way(str(config.output["runs"]), now):
        raise InputError.full_run_needed(f"the last run {last.run_id!r} read {before!r}, not {now!r}")


def _way(start: str, to: str) -> str:
    """The relative path between two local paths; anything else as it is."""
    return os.path.relpath(to, start) if Path(start).is_absolute() and Path(to).is_absolute() else to


def settled(spark: SparkSession, location: Location, recorded: int) -> int:
    """The version to read for what the last run left: the newest one, maintenance included.

    Where an unfinished run has written since, it is the one that the last run recorded.
    """
    current = tables.current_version(spark, location)
    if current is None or history.writes_since(spark, location, recorded, current):
        return recorded
    return current


def recovered(
    spark: SparkSession, config: Config, last: LastRun, found: Mapping[str, int]
) -> tuple[dict[str, int], list[str]]:
    """The outputs as the last run left them: version by key, and a note for each that had to be restored.

    ``found`` are the versions that the output tables have now. Raises InputError where an output is gone or was
    made anew, StorageError where it cannot be restored.
    """
    versions, notes = {}, []
    for key, recorded in last.output_versions.items():
        location = config.output[key]
        current = found.get(key, -1)
        if current < recorded:
            raise InputError.full_run_needed(f"what run {last.run_id!r} wrote to output.{key} is no longer there")
        versions[key] = current
        if history.writes_since(spark, location, recorded, current):
            versions[key] = history.restore(spark, key, location, recorded)
            notes.append(f"output.{key} held rows of an unfinished run and was brought back to version {recorded}")
            faultpoints.reached(f"restored {key}")
    return versions, notes


def check_alone(
    spark: SparkSession, config: Config, before: Mapping[str, int], written: Mapping[str, int], run_id: str
) -> None:
    """Refuse to count where somebody else has written to an output since the start. Raises StorageError.

    ``before`` and ``written`` are versions by key, at the start (-1: no table) and as this run left them.
    """
    for key, version in written.items():
        start = before.get(key, -1)
        # One commit more than before is this run's own.
        if version > start + 1:
            commits = history.writes_since(spark, config.output[key], start, version)
            if any(row["userMetadata"] != run_id and row["version"] <= version for row in commits):
                raise StorageError.overtaken(key, str(config.output[key]))


def record(spark: SparkSession, config: Config, row: Mapping[str, Any], last: LastRun | None) -> None:
    """Make a run count, by its row in ``runs``. Raises StorageError.

    Of several runs that went on from the same one only the first can: they all have the same turn.
    """
    frame = keeping.frame_of(spark, [row], schemas.RUNS)
    turn = FIRST_TURN if last is None else last.turn
    faultpoints.reached("before runs")
    runs = config.output["runs"]
    version = tables.append(frame, "runs", runs, str(row["run_id"]), turn)
    if version is None and not _holds(spark, runs, str(row["run_id"])):
        raise StorageError.overtaken("runs", str(runs))
    faultpoints.reached("after runs")


def _holds(spark: SparkSession, runs: Location, run_id: str) -> bool:
    """Whether a run is recorded: a catalog that makes the table does not say whose commit that was."""
    version = tables.current_version(spark, runs)
    if version is None:
        return False
    return bool(tables.Snapshot(runs, version).read(spark).where(F.col("run_id") == run_id).limit(1).count())
