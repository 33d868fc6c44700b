"""Allow one run at a time on a local file system, by a lock file beside the table ``runs``.

The holder of the file's lock (flock) works; the operating system lets go of it when that process ends, however
it ends, so that the file of a killed run is taken over by the next one. Object stores, catalogs and whatever else
is not this machine's have no such lock: there the last commit of a run decides (`ledger.record`).
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from routing.config import TableLocation
from routing.errors import StorageError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; Delta's own conflict check remains.
    fcntl = None  # type: ignore[assignment]


def lock_file(runs: TableLocation) -> Path | None:
    """Return the lock file of a table ``runs``; None where the table is not on this machine's file system."""
    path = re.sub(r"\Afile:(//(?=/))?", "", runs.text)
    # A configuration makes local paths absolute; whatever else is not absolute is a URI.
    if runs.is_name or runs.is_elsewhere or not Path(path).is_absolute() or fcntl is None:
        return None
    return Path(path + ".lock")


# The lock files of this process, by the descriptors that hold them.
_files_by_descriptor: dict[int, Path] = {}


@contextmanager
def only_run(runs: TableLocation, run_id: str) -> Iterator[None]:
    """Lock the tables beside this one for one run. Raises StorageError where another run holds the lock."""
    file = lock_file(runs)
    if file is None:
        yield
        return
    missing_folders = [folder for folder in (file.parent, *file.parents) if not folder.exists()]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _acquire(file, run_id)
    except OSError as error:
        raise StorageError.failed(f"locking {file}", error.strerror or str(error)) from error
    _files_by_descriptor[descriptor] = file
    try:
        yield
    finally:
        del _files_by_descriptor[descriptor]
        _remove(file, descriptor)
        os.close(descriptor)
        # A run that wrote nothing does not leave empty folders.
        with suppress(OSError):
            for folder in missing_folders:
                folder.rmdir()


def give_up() -> None:
    """Remove the lock files of this process, which is about to end; the system then releases the locks."""
    for descriptor, file in list(_files_by_descriptor.items()):
        # The thread that holds it may have released it meanwhile.
        with suppress(OSError):
            _remove(file, descriptor)


def _remove(file: Path, descriptor: int) -> None:
    # If this run's file was removed meanwhile, the file of this name is another run's.
    if _stands(file, descriptor):
        file.unlink(missing_ok=True)


def _acquire(file: Path, run_id: str) -> int:
    """Return the open and locked file, which names this process and run."""
    while True:
        descriptor = _open(file)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between opening and locking, a run that has just ended may have removed the file: then begin again.
            if _stands(file, descriptor):
                _write_holder(descriptor, {"pid": os.getpid(), "run_id": run_id})
                return descriptor
        except BlockingIOError as error:
            pid, other = _holder(descriptor)
            os.close(descriptor)
            raise StorageError.locked(str(file), pid, other) from error
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(file: Path) -> int:
    """Open the lock file, and create it if there is none; never follow a link, since the file is written to."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StorageError.no_lock_file(str(file)) from error
        raise
    status = os.fstat(descriptor)
    # A file with no name left has just been removed; one with a second name belongs to something else.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise StorageError.no_lock_file(str(file))
    return descriptor


def _stands(file: Path, descriptor: int) -> bool:
    """Return True if the open file is still the one of this name."""
    try:
        return os.path.samestat(file.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _write_holder(descriptor: int, holder: dict[str, object]) -> None:
    """Write the holder to the open file, not by its name, which may be another file's by now."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode("utf-8"), 0)


def _holder(descriptor: int) -> tuple[str, str]:
    """Return the process and the run that a lock file names."""
    try:
        holder = json.loads(os.read(descriptor, 4096) or b"{}")
        return str(holder.get("pid", "unknown")), str(holder.get("run_id", "unknown"))
    except (OSError, ValueError, AttributeError, RecursionError):
        return "unknown", "unknown"
