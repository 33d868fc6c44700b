"""Create tables on this disk so that an interrupted creation can be completed.

A folder with files but no commit could belong to another program, so it is refused. Before a job creates a table,
it writes a marker next to the folder, ``NAME.creating``, that names the job. If the command is interrupted, the
job's next command finds the marker, removes the leftover files and creates the table. The first commit ends the
marker.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from stat import S_ISREG

from routing.config import TableLocation
from routing.delta.commits import has_commits, is_local
from routing.delta.run_lock import only_run
from routing.errors import OutputError, StorageError

_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# Spark's file system adds a checksum, and delta-rs writes a file under a name with a number first.
_SUFFIX = r"(?:\.crc)?(?:#\d+)?"
_DATA_FILE = re.compile(rf"\.?part-\d{{5}}-{_ID}[-.]c\d{{3}}(?:\.[a-z0-9]+)?\.parquet{_SUFFIX}")
_FIRST = "0" * 20
_LOG_FILE = re.compile(
    rf"(?:_commit_{_ID}\.json\.tmp|\.{{1,2}}{_FIRST}\.(?:json|crc)\.{_ID}\.tmp){_SUFFIX}|{_FIRST}\.json#\d+"
)
_LOG = "_delta_log"
_FOLDERS = {_LOG, f"{_LOG}/_commits", f"{_LOG}/_staged_commits"}


def check_vacant(setting: str, location: TableLocation, job: str) -> None:
    """Check that a table can be created at a location where none exists.

    Args:
        setting: what names the location, such as ``output.runs``.
        location: the place of the table.
        job: the location that identifies the job, that of its table ``runs`` or ``imports``.

    Raises:
        OutputError: the folder holds files that no interrupted creation of this job left.
    """
    if not is_vacant(location, job):
        raise OutputError.not_a_table(setting, str(location))


def is_vacant(location: TableLocation, job: str) -> bool:
    """Return True if the folder is missing, empty, or holds only leftovers of this job."""
    if not is_local(location):
        return True
    folder = Path(location.text)
    if not os.path.lexists(folder) or (folder.is_dir() and not any(folder.iterdir())):
        return True
    return _find_leftover(folder, job) is not None


@contextmanager
def creating(location: TableLocation, job: str) -> Iterator[None]:
    """Mark a table as being created by the block, until its first commit is stored.

    Args:
        location: the place of the table.
        job: the location that identifies the job, as in `check_vacant`.

    Raises:
        StorageError: another process creates the table, the folder holds other files by now, or the marker cannot
            be written.
    """
    if not is_local(location):
        yield
        return
    folder = Path(location.text)
    marker = _marker_of(folder)
    if has_commits(location) and not marker.exists():
        yield
        return
    # The job's lock is next to this table, and already protects it.
    lock = nullcontext() if str(location) == job else only_run(location, f"creation of {location}")
    try:
        with lock:
            if not has_commits(location):
                _remove_leftover(location, job)
                _write_marker(marker, job)
            yield
    finally:
        # A failed creation that wrote nothing does not need a marker.
        if has_commits(location) or not folder.exists():
            marker.unlink(missing_ok=True)


def end_creation(location: TableLocation) -> None:
    """Remove the marker of a table that exists: its creation was interrupted after the first commit."""
    if is_local(location) and has_commits(location):
        _marker_of(Path(location.text)).unlink(missing_ok=True)


def _marker_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.creating")


def _write_marker(marker: Path, job: str) -> None:
    """Write the marker and wait until the disk has it. Raises StorageError."""
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"job": job}, file)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError.failed(f"writing {marker}", error.strerror or str(error)) from error


def _remove_leftover(location: TableLocation, job: str) -> None:
    """Remove the files of an interrupted creation. Raises StorageError."""
    folder = Path(location.text)
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    files = _find_leftover(folder, job)
    if files is None:
        raise StorageError.failed(f"creating {location}", "the folder holds files that are not of this job")
    try:
        for file in files:
            file.unlink(missing_ok=True)
        for name in sorted(_FOLDERS, reverse=True):
            with suppress(FileNotFoundError):
                (folder / name).rmdir()
    except OSError as error:
        raise StorageError.failed(f"cleaning up {location}", error.strerror or str(error)) from error


def _find_leftover(folder: Path, job: str) -> list[Path] | None:
    """Return the files of an interrupted creation by this job, or None if the folder holds any other file.

    Every file must have a name that this release writes, and be no older than the marker.
    """
    since = _read_marker(_marker_of(folder), job)
    if since is None or folder.is_symlink() or not folder.is_dir():
        return None
    files = []
    for place, folders, names in os.walk(folder):
        below = Path(place).relative_to(folder).as_posix()
        in_log = below != "."
        children = {name if below == "." else f"{below}/{name}" for name in folders}
        paths = [Path(place, name) for name in names]
        if not children <= _FOLDERS or any(Path(place, name).is_symlink() for name in folders):
            return None
        for path in paths:
            status = path.lstat()
            is_own = _LOG_FILE.fullmatch(path.name) if in_log else _DATA_FILE.fullmatch(path.name)
            if not (is_own and S_ISREG(status.st_mode) and status.st_mtime_ns >= since):
                return None
        files += paths
    return files


def _read_marker(marker: Path, job: str) -> int | None:
    """Return the time of this job's marker in nanoseconds, or None."""
    try:
        if marker.is_symlink() or json.loads(marker.read_text(encoding="utf-8")) != {"job": job}:
            return None
        return marker.stat().st_mtime_ns
    except (OSError, ValueError, RecursionError):
        return None
