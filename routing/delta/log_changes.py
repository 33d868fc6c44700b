"""Find the files by which two versions of a table differ, from the actions of Delta's log between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# Operations that remove rows and change none.
DELETES = ("DELETE", "TRUNCATE")
# A file name that Delta's log and Spark write in the same way.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._=-]+")


@dataclass(frozen=True)
class LoggedFile:
    """A data file as the log names it.

    ``partition`` has its partition values, or None if the log does not list them. ``has_vector`` is True if a
    deletion vector hides some of its rows.
    """

    path: str
    partition: Mapping[str, str | None] | None
    has_vector: bool

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class ChangedFiles:
    """The files that only the later version has, and the files that only the earlier one has."""

    added: tuple[LoggedFile, ...]
    removed: tuple[LoggedFile, ...]

    @property
    def names_for_delta(self) -> frozenset[str]:
        """The names of files that only Delta can read, since they have deletion vectors or unknown partitions."""
        changed = (*self.added, *self.removed)
        return frozenset(file.name for file in changed if file.has_vector or file.partition is None)

    @property
    def has_plain_names(self) -> bool:
        """Whether Spark can select the rows of `names_for_delta` by file name."""
        return all(_PLAIN_NAME.fullmatch(name) for name in self.names_for_delta)


def removes_rows(action: Any) -> bool:
    """Return True if an action of the log removes rows, by removing a file or hiding rows of one."""
    removed, added = action["remove"], action["add"]
    return (removed is not None and removed["dataChange"]) or (
        added is not None and added["dataChange"] and added["deletionVector"] is not None
    )


def find_changed_files(log: Iterable[Any]) -> ChangedFiles:
    """Find the files that differ between two versions, from the actions of all commits between them.

    Maintenance that only adds files lists active files again, with other statistics. Maintenance that only removes
    files removes files without rows, or files of deletion vectors.
    """
    actions = list(log)
    removing, adding = ({row["version"] for row in actions if row[kind] is not None} for kind in ("remove", "add"))
    added, removed = dict[Any, LoggedFile](), dict[Any, LoggedFile]()
    for row in sorted(actions, key=lambda row: (row["version"], row["remove"] is None)):
        removed_file, added_file = row["remove"], row["add"]
        is_rewritten = row["version"] in removing & adding
        if (
            removed_file is not None
            and (removed_file["dataChange"] or is_rewritten)
            and added.pop(_key(removed_file), None) is None
        ):
            removed[_key(removed_file)] = _file(removed_file)
        if added_file is not None and (added_file["dataChange"] or is_rewritten):
            added[_key(added_file)] = _file(added_file)
    return ChangedFiles(tuple(added.values()), tuple(removed.values()))


def _key(file: Any) -> tuple[Any, ...]:
    """Return the identity of a file with its deletion vector."""
    vector = file["deletionVector"]
    return (file["path"], *(() if vector is None else (vector["pathOrInlineDv"], vector["offset"])))


def _file(file: Any) -> LoggedFile:
    partition = file["partitionValues"]
    return LoggedFile(
        file["path"], None if partition is None else dict(partition), file["deletionVector"] is not None
    )
