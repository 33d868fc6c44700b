"""Read the history of a Delta table by commit, and distinguish commits with the same number.

The log of a table on a local file system is read without Spark: the newest commit's file has the table's version
as its name. Otherwise DESCRIBE HISTORY gives the same, with a query each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routing.config import TableLocation
from routing.delta.job_outputs import RESTORE, RUN, CommitMark, TableCommit, is_maintenance, read_mark
from routing.errors import HistoryGap, StorageError
from routing.sessions.existing_session import condition
from routing.tables import sql_statements
from routing.terms import JsonObject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.sessions.existing_session import HasSession

_COMMIT = re.compile(r"([0-9]{20})\.json")
_STORED = re.compile(r"[0-9]{20}\.(?:json\Z|checkpoint\.)")
# Spark lists as many of the newest commits at first, and ten times as many each time that more are asked for.
_BLOCK, _GROWTH = 50, 10
# The property that announces a statement where the session refuses to mark the statement's commit itself.
ANNOUNCEMENT = "sbroute.restore"
# How a run deletes rows.
_ERASING = "MERGE"
_TOLD = (
    *("operation", "operationParameters", "readVersion", "isolationLevel", "isBlindAppend"),
    *("operationMetrics", "userMetadata", "engineInfo"),
)
CommitInfo = JsonObject
"""What a commit of Delta's log says of itself: operation, operationParameters, userMetadata and so on."""
CommitInfos = list[tuple[int, CommitInfo]]
"""Versions, each with what its commit says of itself."""


def is_local(location: TableLocation) -> bool:
    """Return whether a table's path is on this machine's disk. A configuration makes such paths absolute."""
    return not (location.is_name or location.is_elsewhere) and Path(location.text).is_absolute()


def has_commits(location: TableLocation) -> bool:
    """Return True if the log of a local table holds a commit or a checkpoint."""
    log = Path(location.text, "_delta_log")
    if not is_local(location) or not log.is_dir():
        return False
    # It stops at the first: a log may have thousands of files.
    with os.scandir(log) as files:
        return any(_STORED.match(file.name) for file in files)


def newest_version(location: TableLocation) -> int | None:
    """Return the number of the newest commit of a local table, or None without one or without a local log."""
    return max(_files(location), default=None)


def commits_after(asked: HasSession, location: TableLocation, version: int) -> list[TableCommit]:
    """Return every commit after a version, in order.

    Raises HistoryGap where one of them cannot be told any more, StorageError where the log is damaged.
    """
    return list(_read(commit_infos_after(asked, location, version)))


def commit_infos_after(asked: HasSession, location: TableLocation, version: int) -> CommitInfos:
    """Return the commit info of every commit after a version, in order: operation, operationParameters and so on.

    Raises HistoryGap, StorageError.
    """
    commit_infos = [*_newest_first(asked, location, after=version)][::-1]
    if any(number != expected for expected, (number, _) in enumerate(commit_infos, version + 1)):
        raise HistoryGap.cleaned(str(location), version)
    return commit_infos


def read_history(asked: HasSession, location: TableLocation, block: int = _BLOCK) -> Iterator[TableCommit]:
    """Read the commits of a table, newest first, as far back as the log goes without a gap.

    They are read as needed: files one at a time, and Spark's history in blocks. Raises StorageError if the log is
    damaged.
    """
    # What announces a commit comes before it.
    waiting: CommitInfos = []
    for version, info in _newest_first(asked, location, block):
        waiting.append((version, info))
        operation = str(info.get("operation"))
        is_restore = operation == RESTORE.upper()
        may_be_announced = is_restore or (operation == _ERASING and read_mark(info.get("userMetadata")) is None)
        if not may_be_announced and (len(waiting) == 1 or not is_maintenance(operation)):
            yield from reversed([*_read(reversed(waiting))])
            waiting = []
    yield from reversed([*_read(reversed(waiting))])


def _newest_first(
    asked: HasSession, location: TableLocation, block: int = _BLOCK, after: int = -1
) -> Iterator[tuple[int, CommitInfo]]:
    """Yield the commit infos after a version, newest first, up to the first missing file."""
    files = _files(location)
    if not files:
        yield from _back_by_spark(asked.spark, location, block, after)
    version = max(files, default=-1)
    while version in files and version > after:
        yield version, _commit_info(files[version], location)
        version -= 1


def _back_by_spark(
    spark: SparkSession, location: TableLocation, block: int, after: int
) -> Iterator[tuple[int, CommitInfo]]:
    """Read commit infos by DESCRIBE HISTORY, which lists the newest first."""
    limit, oldest = block, None
    while True:
        rows = sql_statements.describe_history(spark, location, limit=limit).collect()
        for row in rows:
            if row["version"] <= after:
                return
            # A commit that came in meanwhile is newer than those that were read.
            if oldest is None or row["version"] < oldest:
                oldest = int(row["version"])
                yield oldest, row.asDict(recursive=True)
        if len(rows) < limit:
            return
        limit *= _GROWTH


def _files(location: TableLocation) -> dict[int, Path]:
    """Return the files of a local table's log by version."""
    if not is_local(location):
        return {}
    named = ((_COMMIT.fullmatch(file.name), file) for file in Path(location.text, "_delta_log").glob("*.json"))
    return {int(match.group(1)): file for match, file in named if match}


def _commit_info(file: Path, location: TableLocation) -> CommitInfo:
    """Read the commit info of a log file, empty where it has none. Raises StorageError where a line is no JSON."""
    commit_info: CommitInfo = {}
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                action = json.loads(line)
            except ValueError as error:
                raise StorageError.damaged_log(str(location), int(file.stem)) from error
            if isinstance(action, dict) and isinstance(action.get("commitInfo"), dict):
                commit_info = action["commitInfo"]
    return commit_info


def _read(commit_infos: Iterable[tuple[int, CommitInfo]]) -> Iterator[TableCommit]:
    """Yield commits with their marks. A commit may have announced a RESTORE, or the MERGE right after it."""
    announced: CommitMark | None = None
    announced_by = -1
    for version, info in commit_infos:
        operation, metadata = str(info.get("operation")), info.get("userMetadata")
        parameters = info.get("operationParameters") or {}
        commit_mark = read_mark(metadata)
        if operation == "SET TBLPROPERTIES":
            mark = _announcement(parameters.get("properties"))
            announced, announced_by = (announced, announced_by) if mark is None else (mark, version)
        elif commit_mark is None and announced is not None:
            is_next_merge = operation == _ERASING and announced.kind == RUN and version == announced_by + 1
            if is_next_merge or (operation == "RESTORE" and _is_announced(announced, parameters)):
                commit_mark, announced = announced, None
        yield TableCommit(version, operation, metadata, commit_mark, _restored_version(operation, parameters))


def _restored_version(operation: str, parameters: JsonObject) -> int | None:
    """Return the version that a RESTORE names, or None for a time."""
    version = str(parameters.get("version")) if operation == "RESTORE" else ""
    return int(version) if version.isascii() and version.isdigit() else None


def _announcement(properties: Any) -> CommitMark | None:
    try:
        properties_read = json.loads(properties or "{}")
    except (TypeError, ValueError):
        return None
    return read_mark(properties_read.get(ANNOUNCEMENT)) if isinstance(properties_read, dict) else None


def _is_announced(announced: CommitMark, parameters: JsonObject) -> bool:
    return announced.kind == RESTORE and str(announced.version) == str(parameters.get("version"))


def identity(asked: HasSession, location: TableLocation, version: int) -> str | None:
    """Return the digest of a commit's log file, or None if the log does not go back so far.

    This is the SHA-256 of its file if that can be read. A catalog may hide the paths of its tables. For a table by
    name it is therefore the digest of the commit's row in the history, without its time unless the commit includes
    it.
    """
    if location.is_name:
        return _identity_by_name(asked.spark, location, version)
    file = f"{location.text.rstrip('/')}/_delta_log/{version:020d}.json"
    if is_local(location):
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if Path(file).is_file() else None
    return _sha256_of(asked.spark, file)


def _sha256_of(spark: SparkSession, uri: str) -> str | None:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    from routing.delta.file_systems import as_pattern

    try:
        files = (
            spark.read.format("binaryFile")
            .load(as_pattern(uri))
            .select(F.sha2("content", 256).alias("hash"))
            .collect()
        )
    except AnalysisException as error:
        if condition(error) != "PATH_NOT_FOUND":
            raise
        return None
    return str(files[0]["hash"])


def _identity_by_name(spark: SparkSession, location: TableLocation, version: int) -> str | None:
    from pyspark.sql import functions as F

    rows = sql_statements.describe_history(spark, location).where(F.col("version") == version)
    history_rows = rows.withColumn("timestamp", F.unix_micros("timestamp")).collect()
    if not history_rows:
        return None
    row = history_rows[0].asDict(recursive=True)
    commit_info = {name: row[name] for name in _TOLD if row.get(name) is not None}
    if _has_time_of_its_own(spark, location, version):
        commit_info["timestamp"] = row["timestamp"]
    return hashlib.sha256(json.dumps({"version": version, **commit_info}, sort_keys=True).encode()).hexdigest()


def _has_time_of_its_own(spark: SparkSession, location: TableLocation, version: int) -> bool:
    """Return True if a commit has its own time: other times are those of files, which a copy changes."""
    properties = sql_statements.describe_detail(spark, location).select("properties").collect()[0][0] or {}
    since = int(properties.get("delta.inCommitTimestampEnablementVersion", 0))
    return properties.get("delta.enableInCommitTimestamps") == "true" and version >= since
