"""One run at a time on a local file system: a lock file beside the table ``runs``.

Whoever holds the file's lock (flock) works; the operating system lets go of it when that process ends, however
it ends, so that the file of a killed run is taken over by the next one. Object stores and catalogs have no such
lock: there the last commit of a run decides (`ledger.record`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from routing.config import Location
from routing.errors import StorageError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; Delta's own conflict check remains.
    fcntl = None  # type: ignore[assignment]


def lock_file(runs: Location) -> Path | None:
    """Where the lock of a table ``runs`` is; None where it is not on a local file system."""
    path = re.sub(r"\Afile:(//(?=/))?", "", runs.text)
    # A configuration makes local paths absolute; whatever else is not absolute is a URI.
    if runs.is_name or not Path(path).is_absolute() or fcntl is None:
        return None
    return Path(path + ".lock")


@contextmanager
def only_run(runs: Location, run_id: str) -> Iterator[None]:
    """Be the only run that writes beside this table. Raises StorageError where another one is at work."""
    file = lock_file(runs)
    if file is None:
        yield
        return
    made = [folder for folder in (file.parent, *file.parents) if not folder.exists()]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _acquired(file, run_id)
    except OSError as error:
        raise StorageError.failed(f"locking {file}", error.strerror or str(error)) from error
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)
        # A run that wrote nothing leaves no folders behind either.
        with suppress(OSError):
            for folder in made:
                folder.rmdir()


def _acquired(file: Path, run_id: str) -> int:
    """The open and locked file, which names this process and run."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid, other = _holder(descriptor)
            os.close(descriptor)
            raise StorageError.locked(str(file), pid, other) from error
        # A run that has just ended may have removed the file between these two steps: then begin again.
        with suppress(FileNotFoundError):
            if file.stat().st_ino == os.fstat(descriptor).st_ino:
                file.write_text(json.dumps({"pid": os.getpid(), "run_id": run_id}), encoding="utf-8")
                return descriptor
        os.close(descriptor)


def _holder(descriptor: int) -> tuple[str, str]:
    """The process and the run that a lock file names."""
    try:
        told = json.loads(os.read(descriptor, 4096) or b"{}")
        return str(told.get("pid", "unknown")), str(told.get("run_id", "unknown"))
    except (OSError, ValueError, AttributeError):
        return "unknown", "unknown"
