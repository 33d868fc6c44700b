"""What Delta's log says of a table: its commits since a version, where it lies; and the way back to a version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from routing.config import Location
from routing.errors import StorageError, first_sentence
from routing.tables import current_version, sql_name

# Operations that bring rows in; all others (OPTIMIZE, VACUUM, properties, a DELETE of old rows) are maintenance.
_WRITES = (
    *("WRITE", "MERGE", "UPDATE", "STREAMING UPDATE", "CLONE"),
    *("CREATE TABLE AS SELECT", "REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT"),
)


@dataclass(frozen=True)
class Detail:
    """What DESCRIBE DETAIL tells of a table; ``root`` is where its files lie."""

    root: str
    created_at: datetime
    column_mapping: str


def detail(spark: SparkSession, location: Location) -> Detail:
    """The table's own description of itself."""
    row = (
        spark.sql(f"DESCRIBE DETAIL {sql_name(location)}")
        .select("location", F.unix_micros("createdAt").alias("created"), "properties")
        .collect()[0]
    )
    return Detail(
        root=str(row["location"]).rstrip("/"),
        created_at=from_micros(row["created"] or 0),
        column_mapping=dict(row["properties"] or {}).get("delta.columnMapping.mode", "none"),
    )


def from_micros(micros: int) -> datetime:
    """Microseconds since 1970 as an aware UTC time, exact."""
    seconds, rest = divmod(int(micros), 1_000_000)
    return datetime.fromtimestamp(seconds, timezone.utc).replace(microsecond=rest)


def writes_since(spark: SparkSession, location: Location, version: int, current: int) -> list[Row]:
    """The commits after a version, up to the current one, that brought rows into an output table."""
    if current <= version:
        return []
    commits = spark.sql(f"DESCRIBE HISTORY {sql_name(location)} LIMIT {current - version}")
    rows = commits.select("version", "operation", "userMetadata").collect()
    return [row for row in rows if row["version"] > version and row["operation"] in _WRITES]


def restore(spark: SparkSession, key: str, location: Location, version: int) -> int:
    """Bring an output table back to a version, in one commit; returns the new version. Raises StorageError."""
    try:
        spark.sql(f"RESTORE TABLE {sql_name(location)} TO VERSION AS OF {version}").collect()
    except Exception as error:
        raise StorageError.not_restored(key, str(location), version, first_sentence(error)) from error
    return current_version(spark, location) or version


def show_current_routes(spark: SparkSession, resolved: Location, runs: Location) -> None:
    """Make the view ``current_routes`` beside a catalog's ``resolved_routes``, if it is not there yet.

    It leaves out rows of runs that do not count, and of earlier attempts. Raises StorageError.
    """
    view = sql_name(Location(f"{resolved.text.rpartition('.')[0]}.current_routes", is_name=True))
    routes = f"(SELECT * FROM {sql_name(resolved)} WHERE run_id IN (SELECT run_id FROM {sql_name(runs)}))"
    try:
        spark.sql(
            f"CREATE VIEW IF NOT EXISTS {view} AS SELECT r.* FROM {routes} AS r LEFT JOIN (SELECT instance_name,"
            f" message_id, max(attempt) AS last_attempt FROM {routes} WHERE attempt > 1"
            " GROUP BY instance_name, message_id) AS l"
            " ON r.instance_name = l.instance_name AND r.message_id = l.message_id"
            " WHERE r.attempt = coalesce(l.last_attempt, r.attempt)"
        )
    except Exception as error:
        raise StorageError.failed(f"creating the view {view}", first_sentence(error)) from error
