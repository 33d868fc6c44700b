"""Read and write tables with Spark by path, object-store URI or catalog name. No other module does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from routing.arguments import checked
from routing.config import Config, ConfigError, TableLocation, in_reading_order, reading_steps
from routing.delta import commits
from routing.delta.table_creation import creating
from routing.delta.table_log import TableLog
from routing.errors import InputError, OutputError, StorageError, first_sentence
from routing.rules.timeline import TimeRange
from routing.run_context import reporting_failures
from routing.schemas import Schema
from routing.sessions.existing_session import ExistingSession, HasSession, condition
from routing.tables import sql_statements
from routing.tables.column_comments import comments_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession

# Spark's error conditions for a missing table, and for a table that cannot be read at a version.
#
# Any other condition means something else, such as a missing permission or a failed network.


_ABSENT = (
    *("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "NO_SUCH_CATALOG_EXCEPTION"),
    # The first part of a name is not a catalog.
    "REQUIRES_SINGLE_PART_NAMESPACE",
    *("PATH_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND", "DELTA_FILE_OR_DIR_NOT_FOUND"),
)
# For a name, the table has another format or has lost its files. For a path, there is no table.
_NOT_DELTA = ("DELTA_ONLY_OPERATION", "DELTA_TABLE_ONLY_OPERATION", "DELTA_MISSING_DELTA_TABLE")
_WITHOUT_VERSIONS = (
    # DESCRIBE HISTORY of a view, in Spark 4, Spark 3.5 and Delta.
    *("EXPECT_TABLE_NOT_VIEW", "_LEGACY_ERROR_TEMP_1013"),
    *("DELTA_CANNOT_DESCRIBE_VIEW_HISTORY", "DELTA_OPERATION_ON_VIEW_NOT_ALLOWED"),
    # Reads at a version of views and other formats, and of tables with row filters or masks.
    *("UNSUPPORTED_FEATURE.TIME_TRAVEL", "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
    *("FGAC_TIME_TRAVEL_NOT_SUPPORTED", "ROW_LEVEL_SECURITY_COLUMN_MASK_FEATURE_NOT_SUPPORTED"),
)


def is_absent(error: BaseException, location: TableLocation) -> bool:
    """Return whether an error means that no table has this name, or that this path has no Delta table."""
    return _is_one(error, _ABSENT) or (not location.is_name and is_no_delta(error))


def is_no_delta(error: BaseException) -> bool:
    """Return whether an error says that the table has another format than Delta or has lost its files."""
    return _is_one(error, _NOT_DELTA)


def has_no_versions(error: BaseException, location: TableLocation) -> bool:
    """Return whether an error means that a table can be read, but not at a version."""
    return location.is_name and _is_one(error, (*_WITHOUT_VERSIONS, *_NOT_DELTA))


def _is_one(error: BaseException, conditions: Iterable[str]) -> bool:
    """Return True if an error has one of these conditions, or a subcondition."""
    error_condition = f"{condition(error)}."
    return any(error_condition.startswith(f"{known_condition}.") for known_condition in conditions)


# Statistics on every column cost as much as the write itself. Files can be skipped only by columns with similar
# values in each file: runs, times, perhaps instances. Every file has all kinds of ids and outcomes.
STATISTICS: dict[str, tuple[str, ...]] = {
    "resolved_routes": ("enqueue_time", "instance_name", "decided_at", "run_id"),
    "rejected_messages": ("enqueue_time", "instance_name"),
    "pending_messages": ("enqueue_time", "instance_name"),
    "message_paths": ("instance_name", "decided_at"),
    "route_candidates": ("instance_name", "decided_at"),
}
_MEASURED = "delta.dataSkippingStatsColumns"


def properties_of(key: str, cluster_by: Sequence[str] = ()) -> dict[str, str]:
    """Return the properties of a new output. Delta clusters only by columns with statistics."""
    names = dict.fromkeys((*STATISTICS.get(key, ()), *cluster_by))
    return {_MEASURED: ",".join(names)} if names else {}


@dataclass(frozen=True)
class TableSnapshot:
    """One Delta version of a table: every read of it sees the same rows.

    ``log`` is the log in which the version was found, if it was looked up.
    """

    location: TableLocation
    version: int
    log: TableLog | None = field(default=None, compare=False, repr=False)

    @property
    def name_in_sql(self) -> str:
        """The table's name in a statement. For a path it is Delta's name."""
        return str(sql_statements.sql_name(self.location))

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the table's rows at this version."""
        return self._load(spark.read.format("delta").option("versionAsOf", self.version))

    def read_changes(self, spark: SparkSession, since: int) -> DataFrame:
        """Read the table's change data feed of the commits after a version, up to this one.

        The rows have _change_type, _commit_version and _commit_timestamp as well.
        """
        reader = spark.read.format("delta").option("readChangeFeed", "true")
        return self._load(reader.option("startingVersion", since + 1).option("endingVersion", self.version))

    def open_log(self, session_owner: HasSession) -> TableLog:
        """Return the table's log, which is opened now if the version was not found in one."""
        return TableLog(session_owner, self.location) if self.log is None else self.log

    def _load(self, reader: DataFrameReader) -> DataFrame:
        if self.location.is_name:
            return sql_statements.read_named(reader, self.location)
        return reader.load(self.location.text)


@dataclass(frozen=True)
class UnversionedTable:
    """A view or catalog table that cannot be read at a version. Two reads of it may return different rows."""

    location: TableLocation
    version: None = None

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the rows of the table at the time when they are read."""
        return sql_statements.read_named(spark.read, self.location)


Input = TableSnapshot | UnversionedTable


@checked
def table_names(config: Config) -> dict[str, str]:
    """Return the names by which SQL and ``spark.read.table`` reach the tables of a configuration.

    Args:
        config: the configuration.

    Returns:
        Names by configuration key; a path is named by Delta, as ``delta`` with the path for its table.

    Example:
        >>> names = routing.table_names(routing.load_config("job.yaml"))
        >>> names["routes"].startswith("`delta`.`"), names["routes"].endswith("/in/routes`")
        (True, True)
    """
    locations = {**config.tables, **config.import_tables, **config.output, **config.other_outputs}
    return {key: str(sql_statements.sql_name(location)) for key, location in locations.items()}


def find(session_owner: HasSession, location: TableLocation) -> Input | None:
    """Find the newest version of a table, or its current rows without versions. Returns None without a table.

    Raises StorageError if this cannot be determined, for example without permission.
    """
    log = open_log(session_owner, location)
    return None if log is None else find_in(session_owner, location, log)


def find_in(session_owner: HasSession, location: TableLocation, log: TableLog | UnversionedTable) -> Input:
    """Return the newest version in a table's log, or its rows as they are. Raises StorageError as `find` does."""
    newest = log if isinstance(log, UnversionedTable) else TableSnapshot(location, log.version, log)
    if not location.is_name:
        return newest
    try:
        # A table with row filters may show its history but refuse a read at a version. A view may be broken.
        _ = newest.read(session_owner.spark).schema
    except Exception as error:
        if isinstance(newest, TableSnapshot) and has_no_versions(error, location):
            return UnversionedTable(location)
        raise StorageError.failed(f"reading {location}", first_sentence(error)) from error
    return newest


def open_log(session_owner: HasSession, location: TableLocation) -> TableLog | UnversionedTable | None:
    """Open the log of a table, or return None without a table. Raises StorageError as `find` does."""
    if commits.is_local(location) and not commits.has_commits(location):
        return None
    log = TableLog(session_owner, location)
    try:
        return None if log.newest is None else log
    except Exception as error:
        if is_absent(error, location) or (is_no_delta(error) and _is_gone(session_owner.spark, location)):
            return None
        if has_no_versions(error, location):
            return UnversionedTable(location)
        raise StorageError.failed(f"looking for a table at {location}", first_sentence(error)) from error


def _is_gone(spark: SparkSession, location: TableLocation) -> bool:
    """Return whether only the name of a table is left in the catalog."""
    try:
        _ = UnversionedTable(location).read(spark).schema
    except Exception as error:  # noqa: BLE001
        # Reading the table reports any other error.
        return is_absent(error, location)
    return False


def holds_files(spark: SparkSession, location: TableLocation) -> bool:
    """Return whether a path or URI exists, as a table or otherwise. Raises StorageError."""
    try:
        _ = spark.read.format("binaryFile").load(location.text).schema
    except Exception as error:
        if is_absent(error, location):
            return False
        raise StorageError.failed(f"looking for {location}", first_sentence(error)) from error
    return True


def open_output_log(session_owner: HasSession, location: TableLocation) -> TableLog | None:
    """Open the log of a Delta table to write to, or return None without a table.

    Raises OutputError if a view or another kind of table is there, and StorageError as `find` does.
    """
    log = open_log(session_owner, location)
    if isinstance(log, UnversionedTable):
        raise OutputError.without_versions(str(location))
    return log


def current_version(session_owner: HasSession, location: TableLocation) -> int | None:
    """Return the newest version of a Delta table that is to be written to, as `open_output_log` does."""
    log = open_output_log(session_owner, location)
    return None if log is None else log.version


def snapshots(session_owner: HasSession, tables: Mapping[str, TableLocation]) -> dict[str, Input]:
    """Return every input at its newest version, if it has any.

    Tables that an import commits last are opened first.

    Raises InputError if one is missing, and StorageError.
    """
    inputs = find_inputs(session_owner, tables)
    check_inputs(inputs, tables)
    return inputs


def find_inputs(session_owner: HasSession, tables: Mapping[str, TableLocation]) -> dict[str, Input]:
    """Return the inputs that exist, as `snapshots` does. Raises StorageError."""
    *first, last = reading_steps(tables)
    inputs = {key: find(session_owner, tables[key]) for keys in first for key in keys}
    inputs |= call_concurrently(
        session_owner, lambda key: find(session_owner, tables[key]), {key: tables[key] for key in last}
    )
    return {key: newest for key in tables if (newest := inputs[key]) is not None}


def check_inputs(inputs: Mapping[str, Input], tables: Mapping[str, TableLocation]) -> None:
    """Raise InputError if one of the tables is not among the inputs."""
    for key in in_reading_order(tables):
        if key not in inputs:
            raise InputError.missing_table(key, str(tables[key]))


T = TypeVar("T")


def call_concurrently(
    session_owner: HasSession, do: Callable[[str], T], tables: Mapping[str, TableLocation]
) -> dict[str, T]:
    """Call a function for the key of each table and return the results by key.

    The calls are concurrent unless all tables are local. Looking up a table takes Spark as long as a small query,
    nearly all of it waiting.
    """
    keys = list(tables)
    if all(commits.is_local(location) for location in tables.values()):
        return {key: do(key) for key in keys}
    from routing.tables.frames import run_concurrently

    return dict(zip(keys, run_concurrently(session_owner.spark, do, keys), strict=True))


ORDER_OF_RUNS = "sbroute"
"""Delta's application id of the transactions by which runs take their turns."""


def order_since(since: int | None) -> str:
    """Return the application id for the turns of all runs, or of runs that continue from a version of ``runs``."""
    return ORDER_OF_RUNS if since is None else f"{ORDER_OF_RUNS} since {since}"


@dataclass(frozen=True)
class WriteOptions:
    """The options of a commit to an output.

    ``metadata`` is the commit's user metadata. With ``adds``, rows are appended, and otherwise they replace all
    rows, or those ``within`` a range. With ``widens``, the rows have columns that the table lacks.
    ``cluster_by`` has the columns by which the table is clustered, and stays clustered. With ``turn``, nothing is
    added if another writer already committed with this turn of ``order`` or a later one.
    """

    metadata: str
    adds: bool = False
    widens: bool = False
    cluster_by: tuple[str, ...] = ()
    turn: int | None = None
    order: str = ORDER_OF_RUNS
    within: TimeRange | None = None


def put(rows: DataFrame, key: str, location: TableLocation, options: WriteOptions) -> None:
    """Write an output table in one commit, or make none without changes. Raises StorageError."""
    writer = rows.write.format("delta").mode("append" if options.adds else "overwrite")
    writer = writer.option("userMetadata", options.metadata).option("compression", "zstd")
    if options.turn is not None:
        writer = writer.option("txnAppId", options.order).option("txnVersion", str(options.turn))
    if options.widens:
        writer = writer.option("mergeSchema", "true")
    properties = properties_of(key, options.cluster_by)
    if properties:
        writer = writer.option("delta.dataSkippingStatsColumns", properties[_MEASURED])
    # Without a condition, an overwrite would end the clustering.
    if options.within is not None or (options.cluster_by and not options.adds):
        writer = sql_statements.replacing(writer, options.within)
    _save(writer, f"output.{key}", location)


def _save(writer: DataFrameWriter, key: str, location: TableLocation) -> None:
    """Write rows to a table. Raises StorageError."""
    with reporting_failures(f"writing {key} to {location}"):
        if location.is_name:
            sql_statements.save_named(writer, location)
        else:
            writer.save(location.text)


def write_output(
    rows: DataFrame,
    key: str,
    location: TableLocation,
    options: WriteOptions,
    job: str,
    schema: Schema | None = None,
) -> None:
    """Write an output that may not exist yet, as `put` does. ``job`` is that of `creating`.

    With ``schema``, a missing table that is clustered or in a catalog is created before the rows are written. In
    a catalog it has comments on its columns.
    """
    with creating(location, job):
        if schema is not None and (location.is_name or options.cluster_by):
            # If a catalog creates a table together with its rows, that commit has no mark.
            create_output(rows.sparkSession, key, location, schema.optional(), options.cluster_by)
        put(rows, key, location, options)


def _comments(key: str, location: TableLocation) -> Mapping[str, str] | None:
    """Return the comments on the columns of a table in a catalog, where people see them."""
    return comments_of(key) if location.is_name else None


def create_output(
    spark: SparkSession, key: str, location: TableLocation, schema: Schema, cluster_by: Sequence[str] = ()
) -> None:
    """Create an empty output, unless somebody has just created it. Raises StorageError."""
    with reporting_failures(f"creating output.{key} at {location}"):
        properties = properties_of(key, cluster_by)
        sql_statements.create_table(spark, location, schema, properties, cluster_by, _comments(key, location))


def cluster_output(spark: SparkSession, key: str, log: TableLog, names: tuple[str, ...]) -> None:
    """Set the columns by which an output is clustered, if it has others. Raises StorageError."""
    if log.detail.cluster_by == names:
        return
    with reporting_failures(f"clustering output.{key} at {log.location}"):
        measured = log.detail.properties.get(_MEASURED)
        if measured is not None and not set(names) <= set(measured.split(",")):
            sql_statements.set_properties(spark, log.location, properties_of(key, names))
        sql_statements.cluster_by(spark, log.location, names)


def create_if_missing(spark: SparkSession, key: str, location: TableLocation, schema: Schema) -> None:
    """Create a table of this schema, or add the columns that an existing one lacks.

    Raises StorageError.
    """
    with reporting_failures(f"creating tables.{key} at {location}"):
        version = current_version(ExistingSession(spark), location)
        if version is None:
            sql_statements.create_table(spark, location, schema, comments=_comments(key, location))
            return
        column_names = {field.name.lower() for field in TableSnapshot(location, version).read(spark).schema}
        missing = [field for field in schema if field.name not in column_names]
        if missing:
            sql_statements.add_columns(spark, location, missing, _comments(key, location))


REMOVE = "_remove"
"""The column of a merged frame that is true for rows to be removed from the table."""


def merge(
    rows: DataFrame,
    table_name: str,
    location: TableLocation,
    on: Sequence[str],
    *,
    folded: Collection[str] = (),
    insert_only: bool = False,
) -> None:
    """Merge rows into a table in one commit. Rows with a stored key replace its row, and others are added.

    ``table_name`` is for errors. ``on`` has the key columns, and no two rows may share a key. Those in ``folded``
    are compared without case. A row with a true `REMOVE` is deleted. With ``insert_only``, existing rows stay
    unchanged. Raises StorageError.
    """
    with reporting_failures(f"writing {table_name} to {location}"):
        sql_statements.merge(rows, location, on, removed_by=REMOVE, folded=folded, insert_only=insert_only)


def replace_rows(rows: DataFrame, key: str, location: TableLocation) -> None:
    """Replace all rows of a table, in one commit. Raises StorageError."""
    _save(rows.write.format("delta").mode("overwrite"), f"tables.{key}", location)


def read_text(spark: SparkSession, uri: str) -> str:
    """Return a small text file through Spark, such as a configuration on an object store. Raises ConfigError."""
    try:
        text = str(spark.read.text(uri, wholetext=True).collect()[0][0])
    except Exception as error:
        raise ConfigError.unreadable(uri, first_sentence(error)) from error
    # Spark silently replaces invalid UTF-8 by this character.
    if "\ufffd" in text:
        raise ConfigError.not_utf8(uri, text.count("\n", 0, text.index("\ufffd")) + 1)
    return text
