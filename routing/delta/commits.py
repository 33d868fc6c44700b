"""Read the log files of a local Delta table, and the marks that runs leave in commits.

A table's version is the number of its newest commit, which is a file of that name. `table_log` reads the commits
of any table.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from routing.config import TableLocation
from routing.delta.job_outputs import RESTORE, RUN, CommitMark, TableCommit, read_mark
from routing.errors import StorageError
from routing.terms import JsonObject

_COMMIT = re.compile(r"([0-9]{20})\.json")
_STORED = re.compile(r"[0-9]{20}\.(?:json\Z|checkpoint\.)")
# The property that announces a statement if the session refuses to mark the statement's commit.
ANNOUNCEMENT = "sbroute.restore"
ERASING = "MERGE"
"""How a run deletes rows."""
CommitInfo = JsonObject
"""The commitInfo of a commit in Delta's log: operation, operationParameters, userMetadata and so on."""
CommitInfos = list[tuple[int, CommitInfo]]
"""Versions, each with the commit info of its commit."""


def is_local(location: TableLocation) -> bool:
    """Return whether a table's path is on this machine's disk. A configuration makes such paths absolute."""
    return not (location.is_name or location.is_elsewhere) and Path(location.text).is_absolute()


def has_commits(location: TableLocation) -> bool:
    """Return True if the log of a local table holds a commit or a checkpoint."""
    log = Path(location.text, "_delta_log")
    if not is_local(location) or not log.is_dir():
        return False
    # Stop at the first, because a log may have thousands of files.
    with os.scandir(log) as files:
        return any(_STORED.match(file.name) for file in files)


def newest_version(location: TableLocation) -> int | None:
    """Return the number of the newest commit of a local table, or None without a commit or a log."""
    return max(list_files(location), default=None)


def list_files(location: TableLocation) -> dict[int, Path]:
    """Return the files of a local table's log by version."""
    if not is_local(location):
        return {}
    named = ((_COMMIT.fullmatch(file.name), file) for file in Path(location.text, "_delta_log").glob("*.json"))
    return {int(match.group(1)): file for match, file in named if match}


def read_info(file: Path, location: TableLocation) -> CommitInfo:
    """Read the commit info of a log file, empty if it has none. Raises StorageError if a line is not JSON."""
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


def read_marks(commit_infos: Iterable[tuple[int, CommitInfo]]) -> Iterator[TableCommit]:
    """Yield commits with their marks. An earlier commit may announce a RESTORE, or the MERGE right after it."""
    announced: CommitMark | None = None
    announced_by = -1
    for version, info in commit_infos:
        operation, metadata = str(info.get("operation")), info.get("userMetadata")
        parameters = info.get("operationParameters") or {}
        commit_mark = read_mark(metadata)
        if operation == "SET TBLPROPERTIES":
            announcement = _announcement(parameters.get("properties"))
            announced, announced_by = (
                (announced, announced_by) if announcement is None else (announcement, version)
            )
        elif commit_mark is None and announced is not None:
            is_next_merge = operation == ERASING and announced.kind == RUN and version == announced_by + 1
            is_restored = announced.kind == RESTORE and str(announced.version) == str(parameters.get("version"))
            if is_next_merge or (operation == "RESTORE" and is_restored):
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
