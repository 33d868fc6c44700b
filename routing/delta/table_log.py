"""Read the commits of a Delta table at one moment, each with the digest that identifies it.

The commits of a local table are read from its files, without Spark. For other tables, DESCRIBE HISTORY lists them,
the newest first. A statement costs about as much as a small query, so every fact is read once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from routing.config import TableLocation
from routing.delta import commits, table_details
from routing.delta.commits import CommitInfo, CommitInfos
from routing.delta.job_outputs import RESTORE, TableCommit, is_maintenance, read_mark
from routing.delta.local_tables import find_id
from routing.errors import HistoryGap
from routing.sessions.existing_session import condition
from routing.tables import sql_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from routing.sessions.existing_session import HasSession

# Spark lists this many of the newest commits at first, and ten times as many whenever more are needed.
_BLOCK, _GROWTH = 10, 10
# The columns of a commit's history that its digest covers.
_DIGESTED = (
    *("operation", "operationParameters", "readVersion", "isolationLevel", "isBlindAppend"),
    *("operationMetrics", "userMetadata", "engineInfo"),
)


class TableLog:
    """The commits of a table, up to the newest one when the log was opened.

    Older commits are read when they are needed. ``session_owner`` gives the session, which the commits of a local
    table do not need.
    """

    def __init__(self, session_owner: HasSession, location: TableLocation, block: int = _BLOCK) -> None:
        self._session_owner, self.location, self._limit = session_owner, location, block
        self._files = commits.list_files(location)
        self._infos_of_files: dict[int, CommitInfo] = {}
        self._rows: CommitInfos = []
        self._is_read, self._is_whole = False, bool(self._files)
        self._digests: dict[int, str | None] = {}

    @cached_property
    def newest(self) -> int | None:
        """The number of the newest commit, or None. Raises Spark's error if there is no table."""
        if self._files:
            return max(self._files)
        return next((version for version, _ in self._newest_first()), None)

    @property
    def version(self) -> int:
        """The number of the newest commit. Raises ValueError if the log has none."""
        if self.newest is None:
            raise ValueError(f"the log of {self.location} has no commit")
        return self.newest

    @cached_property
    def detail(self) -> table_details.TableDetail:
        """The details of the table, read with Spark."""
        return table_details.detail(self._session_owner.spark, self.location)

    @cached_property
    def table_id(self) -> str:
        """The unique id of the table, read without Spark if the table is local and delta-rs can open it."""
        return find_id(self.location) or self.detail.table_id

    def commits_after(self, version: int) -> list[TableCommit]:
        """Return every commit after a version, in order. Raises HistoryGap, StorageError."""
        return list(commits.read_marks(self.infos_after(version)))

    def infos_after(self, version: int) -> CommitInfos:
        """Return the commit info of every commit after a version, in order.

        Raises HistoryGap if a commit is no longer in the log, StorageError if the log is damaged.
        """
        commit_infos = [*self._newest_first(after=version)][::-1]
        if any(number != expected for expected, (number, _) in enumerate(commit_infos, version + 1)):
            raise HistoryGap.cleaned(str(self.location), version)
        return commit_infos

    def commit(self, version: int) -> TableCommit | None:
        """Return one commit, or None if it is not in the log. Announced marks are ignored."""
        info = self._info(version)
        return None if info is None else next(commits.read_marks([(version, info)]))

    def history(self) -> Iterator[TableCommit]:
        """Yield the commits, the newest first, back to the first gap in the log. Raises StorageError."""
        # A commit waits until the older commit that may announce it has been read.
        waiting: CommitInfos = []
        for version, info in self._newest_first():
            waiting.append((version, info))
            operation = str(info.get("operation"))
            is_unmarked = read_mark(info.get("userMetadata")) is None
            may_be_announced = operation == RESTORE.upper() or (operation == commits.ERASING and is_unmarked)
            if not may_be_announced and (len(waiting) == 1 or not is_maintenance(operation)):
                yield from reversed([*commits.read_marks(reversed(waiting))])
                waiting = []
        yield from reversed([*commits.read_marks(reversed(waiting))])

    def identity(self, version: int) -> str | None:
        """Return the digest of a commit to record, or None if the commit is not in the log.

        For a path, this is the SHA-256 of its log file. For a name, it is that of its row in the history, since a
        catalog may hide its paths. The digest of an unmarked row includes its time, if the time is part of the
        commit. A mark names one attempt at a run, so a marked row needs no time, and no DESCRIBE DETAIL.
        """
        if not self.location.is_name:
            return self._digest_of_file(version)
        info = self._info(version)
        if info is None:
            return None
        is_marked = read_mark(info.get("userMetadata")) is not None
        return _digest(version, info, has_time=not is_marked and self.detail.has_commit_time(version))

    def is_commit(self, version: int, identity: str) -> bool:
        """Return True if a recorded digest is that of the commit of this version, with its time or without."""
        if not self.location.is_name:
            return self._digest_of_file(version) == identity
        info = self._info(version)
        return info is not None and identity in {_digest(version, info, has_time=has) for has in (True, False)}

    def _info(self, version: int) -> CommitInfo | None:
        return next((info for number, info in self._newest_first(after=version - 1) if number == version), None)

    def _newest_first(self, after: int = -1) -> Iterator[tuple[int, CommitInfo]]:
        """Yield the commit infos after a version, the newest first, back to the first gap."""
        if self._files:
            version = max(self._files)
            while version in self._files and version > after:
                if version not in self._infos_of_files:
                    self._infos_of_files[version] = commits.read_info(self._files[version], self.location)
                yield version, self._infos_of_files[version]
                version -= 1
            return
        place = 0
        while place < len(self._rows) or self._read_back(after):
            if self._rows[place][0] <= after:
                return
            yield self._rows[place]
            place += 1

    def _read_back(self, after: int) -> bool:
        """Read older commits, if possible all commits after a version at once. Return False if there are none."""
        known_count = len(self._rows)
        while len(self._rows) == known_count and not self._is_whole:
            if self._is_read:
                # Leave room for commits that were added meanwhile.
                wanted = self._rows[0][0] - after + self._limit if after >= 0 else 0
                self._limit = max(self._limit * _GROWTH, wanted)
            self._read_block()
        return len(self._rows) > known_count

    def _read_block(self) -> None:
        rows = sql_statements.describe_history(self._session_owner.spark, self.location, self._limit)
        oldest = self._rows[-1][0] if self._rows else None
        # Skip commits that were added meanwhile: they are newer than those that were read before.
        self._rows += [(int(row["version"]), row) for row in rows if oldest is None or row["version"] < oldest]
        self._is_read, self._is_whole = True, len(rows) < self._limit

    def _digest_of_file(self, version: int) -> str | None:
        if version not in self._digests:
            file = f"{self.location.text.rstrip('/')}/_delta_log/{version:020d}.json"
            if commits.is_local(self.location):
                path = Path(file)
                self._digests[version] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
            else:
                self._digests[version] = _sha256_of(self._session_owner.spark, file)
        return self._digests[version]


def _digest(version: int, info: CommitInfo, *, has_time: bool) -> str:
    digested = {name: info[name] for name in _DIGESTED if info.get(name) is not None}
    if has_time:
        digested["timestamp"] = info["micros"]
    return hashlib.sha256(json.dumps({"version": version, **digested}, sort_keys=True).encode()).hexdigest()


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
