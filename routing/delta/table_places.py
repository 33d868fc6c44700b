"""Whether a table can stand at a place, as far as a file system tells, before anything is read; ways between."""

from __future__ import annotations

import os
from pathlib import Path

from routing.config import TableLocation
from routing.delta import commits
from routing.errors import OutputError


def check_writable(key: str, location: TableLocation) -> None:
    """Refuse a local path where nothing can be written. Raises OutputError."""
    if not commits.is_local(location):
        return
    folder = Path(location.text)
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise OutputError.not_writable(key, str(location), f"{nearest} is not a folder that can be written to")


def check_vacant(key: str, location: TableLocation) -> None:
    """Refuse a folder that holds files and, as is known, no table. Raises OutputError."""
    folder = Path(location.text)
    if commits.is_local(location) and folder.is_dir() and any(folder.iterdir()):
        raise OutputError.not_a_table(key, str(location))


def relative_path(start: str, to: str) -> str:
    """Return the relative path between two local paths, which a moved folder keeps; another location as it is."""
    return os.path.relpath(to, start) if Path(start).is_absolute() and Path(to).is_absolute() else to
