"""The newest commits of a Delta table on a local file system, read from its log without asking Spark.

A table's version is the number of its newest commit, which is a file of that name. DESCRIBE HISTORY says the same
for any table and takes a query of its own each time, which is much of a small run. Whatever cannot be answered
here (an object store, a catalog name, no log) is None, and then Spark is asked.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from routing.config import Location

_COMMIT = re.compile(r"([0-9]{20})\.json")
_COMMIT_INFO = '{"commitInfo"'


def newest_version(location: Location) -> int | None:
    """The number of the newest commit."""
    return max(_commits(location), default=None)


def written_by(location: Location, run_id: str, newest: int = 20) -> list[int] | None:
    """The versions among the ``newest`` commits whose user metadata is the run's id."""
    commits = _commits(location)
    if not commits:
        return None
    return [v for v in sorted(commits)[-newest:] if _user_metadata(commits[v]) == run_id]


def _commits(location: Location) -> dict[int, Path]:
    if location.is_name or "://" in location.text:
        return {}
    log = Path(location.text, "_delta_log")
    named = ((_COMMIT.fullmatch(file.name), file) for file in log.glob("*.json"))
    return {int(match.group(1)): file for match, file in named if match}


def _user_metadata(commit: Path) -> str | None:
    with commit.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(_COMMIT_INFO):
                text = json.loads(line)["commitInfo"].get("userMetadata")
                return None if text is None else str(text)
    return None
