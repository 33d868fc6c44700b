"""Replace an output as a whole in one commit: by delta-rs where it writes it rightly, else by Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from routing.config import TableLocation
from routing.delta import commits
from routing.delta.counted_runs import release
from routing.delta.data_files import RowSource
from routing.delta.local_tables import LocalTable, UnreadableTable
from routing.delta.opening import TableOpener
from routing.delta.spark_tables import STATISTICS
from routing.delta.table_details import check_vacant, check_writable
from routing.errors import OutputError, RoutingError, StorageError, first_sentence
from routing.schemas import Schema
from routing.tables.read_rows import check_shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class ReplacedOutput:
    """An output of section ``output``, looked at before anything is computed.

    ``writer`` writes it without Spark; None where it is to be made so. ``lacks``: columns that an older release
    did not write.
    """

    key: str
    location: TableLocation
    schema: Schema
    writer: LocalTable | UnreadableTable | None
    lacks: tuple[str, ...] = ()

    def replace(self, rows: RowSource, metadata: str) -> LocalTable:
        """Replace the table by delta-rs, and return it at the version that made; ``metadata``: the commit's.

        Raises StorageError, and what making the rows raises.
        """
        if isinstance(self.writer, UnreadableTable):
            raise ValueError("the table is Spark's to write")
        names = STATISTICS.get(self.key, "")
        try:
            properties = {"delta.dataSkippingStatsColumns": names} if names else {}
            stored = self.writer or LocalTable.make(self.location, self.schema.optional(), properties=properties)
            return stored.replace_rows(rows, self.schema, names.split(",") if names else (), metadata)
        except RoutingError:
            raise
        except Exception as error:
            raise StorageError.failed(self._writing, first_sentence(error)) from error

    def replace_by_spark(self, spark: SparkSession, rows: DataFrame, metadata: str) -> int:
        """Replace the table by Spark, and return the version that made. Raises StorageError."""
        from routing.delta import spark_tables
        from routing.sessions.existing_session import ExistingSession

        if self.location.is_name and spark_tables.current_version(ExistingSession(spark), self.location) is None:
            # A catalog that makes a table together with its rows does not mark that commit.
            spark_tables.create_if_missing(spark, self.key, self.location, self.schema.optional())
        spark_tables.put(
            rows, self.key, self.location, spark_tables.WriteOptions(metadata, adds=False, widens=bool(self.lacks))
        )
        latest = commits.latest_commits(ExistingSession(spark), self.location)
        ours = [commit.version for commit in latest if commit.metadata == metadata]
        if not ours:
            raise StorageError.failed(self._writing, "its commit is not in the table's history")
        return max(ours)

    @property
    def _writing(self) -> str:
        return f"writing output.{self.key} to {self.location}"


def look_at(opener: TableOpener, key: str, location: TableLocation, schema: Schema) -> ReplacedOutput:
    """Refuse a `placed` location that holds anything but a table of this schema, or cannot be written to.

    Columns that may be null may be missing, as in a table of an older release. Raises OutputError.
    """
    check_writable(key, location)
    opened = opener.find(f"output.{key}", location)
    if opened is None:
        check_vacant(key, location)
        return ReplacedOutput(key, location, schema, opener.open_to_write(location, None))
    if opened.version is None:
        raise OutputError.without_versions(str(location))
    lacks = check_shape(opened.rows, key, str(location), schema)
    return ReplacedOutput(key, location, schema, opener.open_to_write(location, opened.version), tuple(lacks))


def metadata_of(command: str, versions: Mapping[str, int | None], as_of: datetime | None) -> str:
    """Return the user metadata of a commit as one line of JSON: what was read by which command of this release."""
    run_facts = {"command": command, "release": release(), "as_of": as_of and as_of.isoformat()}
    return json.dumps({**run_facts, "input_versions": dict(versions)}, sort_keys=True)
