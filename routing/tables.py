"""The only room that reads and writes tables: by path, object-store URI or catalog name."""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import CharType, DataType, StringType, StructType, VarcharType

from routing import commits
from routing.config import Location
from routing.errors import ConfigError, InputError, OutputError, StorageError, first_sentence

# Statistics on every column cost as much as the write itself. Files can be skipped by what lies together in them:
# runs, times, perhaps instances. Ids and outcomes are in every file alike, so theirs would skip nothing.
STATISTICS = {
    "resolved_routes": "instance_name,decided_at,run_id",
    "rejected_messages": "instance_name",
}


_WIDER = {"int": "bigint"}


@dataclass(frozen=True)
class Snapshot:
    """One Delta version of a table: every read of it sees the same rows."""

    location: Location
    version: int

    def read(self, spark: SparkSession) -> DataFrame:
        """The table's rows at this version."""
        reader = spark.read.format("delta").option("versionAsOf", self.version)
        return reader.table(sql_name(self.location)) if self.location.is_name else reader.load(self.location.text)


def sql_name(location: Location) -> str:
    """The table as SQL names it, every part quoted."""
    parts = location.text.split(".") if location.is_name else ["delta", location.text]
    return ".".join(_quoted(part) for part in parts)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def current_version(spark: SparkSession, location: Location) -> int | None:
    """The newest version of the Delta table that stands there; None where there is none."""
    from pyspark.errors import AnalysisException

    here = commits.newest_version(location)
    if here is not None:
        return here
    try:
        newest = spark.sql(f"DESCRIBE HISTORY {sql_name(location)} LIMIT 1").collect()
    except AnalysisException:
        return None
    return int(newest[0]["version"]) if newest else None


def snapshots(spark: SparkSession, tables: Mapping[str, Location]) -> dict[str, Snapshot]:
    """The newest version of every input. Raises InputError where a table is missing."""
    found = {}
    for key, location in tables.items():
        version = current_version(spark, location)
        if version is None:
            raise InputError.missing_table(key, str(location))
        found[key] = Snapshot(location, version)
    return found


def check_output(spark: SparkSession, key: str, location: Location, schema: StructType) -> int | None:
    """Refuse a location that holds anything but a table of this schema, before a run begins.

    Returns the table's version, None where there is no table yet. Raises OutputError.
    """
    version = current_version(spark, location)
    if version is not None:
        faults = differences(Snapshot(location, version).read(spark).schema, schema)
        if faults:
            raise OutputError.other_schema(key, str(location), faults)
        return version
    if location.is_name or "://" in location.text:
        return None
    folder = Path(location.text)
    if folder.is_dir() and any(folder.iterdir()):
        raise OutputError.not_a_table(key, str(location))
    return None


def check_writable(key: str, location: Location) -> None:
    """Refuse a local path where nothing can be written. Raises OutputError."""
    if location.is_name or "://" in location.text:
        return
    folder = Path(location.text)
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise OutputError.not_writable(key, str(location), f"{nearest} is no folder that can be written to")


def differences(found: StructType, wanted: StructType) -> list[str]:
    """What keeps a table of one schema from being one of another, a text each; empty where nothing does."""
    types = {field.name: field.dataType.simpleString() for field in found}
    names = {field.name for field in wanted}
    faults = [
        f"column {field.name} is {types.get(field.name, 'missing')}, not {field.dataType.simpleString()}"
        for field in wanted
        if types.get(field.name) != field.dataType.simpleString()
    ]
    return faults + [f"column {name} is unknown" for name in types if name not in names]


def overwrite(rows: DataFrame, key: str, location: Location, run_id: str) -> int | None:
    """Replace a whole table in one commit; returns the version written, None where nothing changes.

    Raises StorageError.
    """
    return _write(rows, key, location, run_id, "overwrite")


def append(rows: DataFrame, key: str, location: Location, run_id: str, turn: int | None = None) -> int | None:
    """Add rows in one commit; returns the version written, None where there are none. Raises StorageError.

    With ``turn`` nothing is added where somebody has made a commit with this turn, or a later one.
    """
    return _write(rows, key, location, run_id, "append", turn)


def _write(
    rows: DataFrame, key: str, location: Location, run_id: str, mode: str, turn: int | None = None
) -> int | None:
    writer = rows.write.format("delta").mode(mode).option("userMetadata", run_id)
    if turn is not None:
        writer = writer.option("txnAppId", "sbroute").option("txnVersion", str(turn))
    writer = writer.option("compression", "zstd")
    if key in STATISTICS:
        writer = writer.option("delta.dataSkippingStatsColumns", STATISTICS[key])
    try:
        if location.is_name:
            writer.saveAsTable(sql_name(location))
        else:
            writer.save(location.text)
        return _version_of(rows.sparkSession, location, run_id)
    except Exception as error:
        raise StorageError.failed(f"writing output.{key} to {location}", first_sentence(error)) from error


def _version_of(spark: SparkSession, location: Location, run_id: str) -> int | None:
    """The version that a run committed: another writer may have committed since.

    None where there is none: Delta leaves out a commit that changes nothing (no rows over no rows).
    """
    here = commits.written_by(location, run_id)
    if here is not None:
        return max(here, default=None)
    history = spark.sql(f"DESCRIBE HISTORY {sql_name(location)} LIMIT 20").collect()
    return max((int(row["version"]) for row in history if row["userMetadata"] == run_id), default=None)


def create_if_missing(spark: SparkSession, key: str, location: Location, schema: StructType) -> None:
    """Make a table of this schema where there is none, and add the columns that an existing one lacks.

    Raises StorageError.
    """
    columns = [f"{_quoted(f.name)} {f.dataType.simpleString()}" for f in schema]
    required = [c if f.nullable else f"{c} NOT NULL" for c, f in zip(columns, schema, strict=True)]
    name = sql_name(location)
    try:
        version = current_version(spark, location)
        if version is None:
            spark.sql(f"CREATE TABLE IF NOT EXISTS {name} ({', '.join(required)}) USING DELTA")
            return
        found = {field.name for field in Snapshot(location, version).read(spark).schema}
        missing = [column for column, field in zip(columns, schema, strict=True) if field.name not in found]
        if missing:
            spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(missing)})")
    except Exception as error:
        raise StorageError.failed(f"creating tables.{key} at {location}", first_sentence(error)) from error


REMOVE = "_remove"
"""The column of a merged frame that is true for rows to be removed from the table."""


def merge(
    rows: DataFrame,
    key: str,
    location: Location,
    on: Sequence[str],
    *,
    folded: Collection[str] = (),
    insert_only: bool = False,
) -> None:
    """Bring rows into a table in one commit: those whose key stands there replace it, others are added.

    ``on`` are the columns of the key, of which no two rows may share one; ``folded`` those compared without
    case. A row whose `REMOVE` is true is removed; with ``insert_only`` nothing that stands there is touched.
    Raises StorageError.
    """
    spark = rows.sparkSession
    names = [_quoted(name) for name in rows.columns if name != REMOVE]
    same = [
        f"lower(t.{_quoted(n)}) <=> lower(s.{_quoted(n)})" if n in folded else f"t.{_quoted(n)} <=> s.{_quoted(n)}"
        for n in on
    ]
    clauses = []
    if not insert_only:
        clauses.append(f"WHEN MATCHED AND s.{_quoted(REMOVE)} THEN DELETE")
        clauses.append("WHEN MATCHED THEN UPDATE SET " + ", ".join(f"t.{name} = s.{name}" for name in names))
    added = f"INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
    clauses.append(f"WHEN NOT MATCHED {'' if insert_only else f'AND NOT s.{_quoted(REMOVE)} '}THEN {added}")
    # A name of its own: the session may be shared, by other imports or by people.
    view = f"sbroute_merge_{key}_{uuid.uuid4().hex}"
    both = f"{sql_name(location)} AS t USING {_quoted(view)} AS s"
    try:
        rows.createOrReplaceTempView(view)
        spark.sql(f"MERGE INTO {both} ON {' AND '.join(same)} {' '.join(clauses)}").collect()
    except Exception as error:
        raise StorageError.failed(f"writing tables.{key} to {location}", first_sentence(error)) from error
    finally:
        spark.catalog.dropTempView(view)


def cannot_hold(found: StructType, wanted: StructType) -> list[str]:
    """The columns of a table that rows of the wanted schema cannot be written to, a text each."""
    types = {field.name: field.dataType for field in found}
    return [
        f"column {field.name} is {types[field.name].simpleString()}, not {field.dataType.simpleString()}"
        for field in wanted
        if field.name in types and not _holds(types[field.name], field.dataType)
    ]


def _holds(found: DataType, wanted: DataType) -> bool:
    if isinstance(wanted, StringType):
        return isinstance(found, StringType | CharType | VarcharType)
    return found.simpleString() in (wanted.simpleString(), _WIDER.get(wanted.simpleString()))


def read_text(spark: SparkSession, uri: str) -> str:
    """A small text file through Spark, such as a configuration on an object store. Raises ConfigError."""
    try:
        return str(spark.read.text(uri, wholetext=True).collect()[0][0])
    except Exception as error:
        raise ConfigError.unreadable(uri, first_sentence(error)) from error
