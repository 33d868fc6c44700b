"""From the tables of a configuration to one output that another command than ``resolve`` writes, by Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from pyspark.sql import SparkSession

from routing.config import Config
from routing.delta import local_disks, replaced_outputs, spark_tables
from routing.delta.opening import TableOpener
from routing.runs.changing import telling_what_may_change
from routing.runs.message_frames import MessageFrame
from routing.runs.stages import Progress, Stages
from routing.runs.work import open_inputs
from routing.schemas import Schema
from routing.tables.frame_cache import FrameCache
from routing.tables.table_columns import Table


@dataclass(frozen=True)
class OutputTable:
    """An output: its key in the configuration, its columns, and the command that writes it."""

    key: str
    schema: Schema
    command: str


@dataclass(frozen=True)
class RunInputs:
    """The opened tables of a configuration, the time at which all messages are decided, and what times stages."""

    tables: Mapping[str, Table]
    as_of: datetime | None
    clock: Stages


T = TypeVar("T", bound=MessageFrame)


@dataclass(frozen=True)
class StoredOutput(Generic[T]):
    """The rows that were made, and the version of the table that has them."""

    frame: T
    version: int
    contents: Table
    clock: Stages


def replace_output(
    spark: SparkSession,
    config: Config,
    output: OutputTable,
    make: Callable[[RunInputs], T],
    *,
    as_of: datetime | None,
    progress: Callable[[Progress], None],
    tell: Callable[[str], None],
) -> StoredOutput[T]:
    """Replace an output in one commit by what ``make`` makes of the tables of a configuration.

    Each input is read at one version, or as it is where it has none; the commit's user metadata names these.
    ``as_of`` in place of the configuration's; ``progress`` is called with each stage when it begins and when it
    has ended, ``tell`` by what each table is read. Raises ConfigError where the output is not configured,
    OutputError where another table stands there, InputError and StorageError.
    """
    config = local_disks.place_all(config, spark)
    location = config.output_of(output.key, output.command)
    clock, opener = Stages(progress), TableOpener.of_session(spark, tell)
    moment = config.resolve.as_of if as_of is None else as_of
    with clock.stage("read"):
        place = replaced_outputs.look_at(opener, output.key, location, output.schema)
        inputs = spark_tables.snapshots(opener, config.tables)
    versions = {key: snapshot.version for key, snapshot in inputs.items()}
    metadata = replaced_outputs.metadata_of(output.command, versions, moment)
    with FrameCache() as keeper, telling_what_may_change(inputs):
        opened = {**open_inputs(opener, inputs, keeper), "messages": inputs["messages"].read(spark)}
        frame = make(RunInputs(opened, moment, clock))
        try:
            with clock.stage("write"):
                version = place.replace_by_spark(spark, frame.rows, metadata)
        finally:
            frame.unpersist()
        contents = opener.open_at(f"output.{output.key}", location, version)
    return StoredOutput(frame, version, contents, clock)
