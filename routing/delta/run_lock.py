"""Allow one run at a time on a local file system, with a lock file next to the table ``runs``.

Only the process that holds the lock of the file (flock) works. The operating system releases the lock however that
process ends, so the next run takes over the file of a killed run. Windows and some file systems have no such lock.
They use a second file that names its owner: host, process and the start of that process. The next run takes over
the file of an ended process of this host. The file of another host stays until it is removed.

Object stores and catalogs have no lock. With or without a lock, the last commit of a run decides whether it counts
(`protocol.finish`).
"""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import socket
import stat
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from routing.config import TableLocation
from routing.errors import StorageError, quote
from routing.terms import JsonObject

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock.
    fcntl = None  # type: ignore[assignment]

# Errors of file systems without locks, such as some network file systems.
_NO_LOCKS = frozenset((errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS))
# Errors of file systems without hard links.
_NO_LINKS = frozenset((*_NO_LOCKS, errno.EPERM, errno.EMLINK, errno.EINVAL))
# The most bytes that are read of a lock file.
_MOST = 4096


def lock_file(runs: TableLocation) -> Path | None:
    """Return the lock file of a table ``runs``, or None if the table is not on this machine's file system."""
    path = re.sub(r"\Afile:(//(?=/))?", "", runs.text)
    # A configuration makes local paths absolute, so any other text is a URI.
    if runs.is_name or runs.is_elsewhere or not Path(path).is_absolute():
        return None
    return Path(path + ".lock")


# The locks of this process, by identity: if a lock file was removed, another lock may have created it again.
_held: dict[int, SystemLock | OwnedFile] = {}


@contextmanager
def only_run(runs: TableLocation, run_id: str) -> Iterator[None]:
    """Lock the tables of a job for one run. Raises StorageError if another run holds the lock."""
    file = lock_file(runs)
    if file is None:
        yield
        return
    missing_folders = [folder for folder in (file.parent, *file.parents) if not folder.exists()]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = _acquire(file, run_id)
    except OSError as error:
        raise StorageError.failed(f"locking {file}", error.strerror or str(error)) from error
    _held[id(lock)] = lock
    try:
        yield
    finally:
        del _held[id(lock)]
        lock.remove()
        lock.close()
        # A run that wrote nothing does not leave empty folders.
        with suppress(OSError):
            for folder in missing_folders:
                folder.rmdir()


def give_up() -> None:
    """Remove the lock files of this process before its end. The system then releases the locks."""
    for lock in list(_held.values()):
        # The thread that holds it may have released it meanwhile.
        with suppress(OSError):
            lock.remove()


def _acquire(file: Path, run_id: str) -> SystemLock | OwnedFile:
    if fcntl is not None:
        try:
            return SystemLock.acquire(file, run_id)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
    return OwnedFile.acquire(file.with_name(f"{file.name}.owner"), run_id)


@dataclass(frozen=True)
class SystemLock:
    """A lock of the operating system on an open file, which names this process and run."""

    file: Path
    descriptor: int

    @classmethod
    def acquire(cls, file: Path, run_id: str) -> SystemLock:
        """Return the lock. Raises StorageError if another process has it, and OSError without locks."""
        while True:
            descriptor = _open(file)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Between opening and locking, a run that has just ended may have removed the file: begin again.
                if _stands(file, descriptor):
                    _write_holder(descriptor, {"pid": os.getpid(), "run_id": run_id})
                    return cls(file, descriptor)
            except BlockingIOError as error:
                holder = _decode(os.read(descriptor, _MOST))
                os.close(descriptor)
                raise StorageError.locked(str(file), _name(holder, "pid"), _name(holder, "run_id")) from error
            except OSError as error:
                if error.errno in _NO_LOCKS:
                    cls(file, descriptor).remove()
                os.close(descriptor)
                raise
            os.close(descriptor)

    def remove(self) -> None:
        """Remove the file. If this run's file was removed before, the file of this name is another run's."""
        if _stands(self.file, self.descriptor):
            self.file.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock."""
        os.close(self.descriptor)


@dataclass(frozen=True)
class OwnedFile:
    """A file that exists while its owner works. ``content`` names the owner."""

    file: Path
    content: bytes

    @classmethod
    def acquire(cls, file: Path, run_id: str) -> OwnedFile:
        """Create and return the file. Raises StorageError if another process may own it."""
        owner = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "process_started": find_process_start(os.getpid()),
            "run_id": run_id,
            "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "key": uuid.uuid4().hex,
        }
        owned_file = cls(file, json.dumps(owner).encode("utf-8"))
        while not owned_file._create():
            other = owned_file._read()
            if other is None:
                continue
            if not _has_ended(_decode(other)):
                raise owned_file._locked(_decode(other))
            cls(file, other).remove()
        return owned_file

    def _create(self) -> bool:
        """Create the file with its content atomically. Return False if it exists."""
        draft = self.file.with_name(f"{self.file.name}.{os.getpid()}")
        try:
            draft.write_bytes(self.content)
            os.link(draft, self.file)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return self._create_in_place()
        finally:
            draft.unlink(missing_ok=True)
        return True

    def _create_in_place(self) -> bool:
        try:
            self.file.touch(exist_ok=False)
        except FileExistsError:
            return False
        self.file.write_bytes(self.content)
        return True

    def _read(self) -> bytes | None:
        """Return the content of the file with this name, or None if it was removed."""
        try:
            if not stat.S_ISREG(self.file.lstat().st_mode):
                raise StorageError.no_lock_file(str(self.file))
            with self.file.open("rb") as file:
                return file.read(_MOST)
        except FileNotFoundError:
            return None

    def remove(self) -> None:
        """Remove the file if it still has this content. Otherwise it is another run's."""
        claimed_file = self.file.with_name(f"{self.file.name}.{os.getpid()}.removed")
        if self._read() != self.content:
            return
        with suppress(FileNotFoundError):
            self.file.rename(claimed_file)
            if OwnedFile(claimed_file, b"")._read() != self.content:
                # Another run took it over in between.
                claimed_file.rename(self.file)
            claimed_file.unlink(missing_ok=True)

    def close(self) -> None:
        """Close nothing: the lock is released when the file is removed."""

    def _locked(self, owner: JsonObject) -> StorageError:
        names = {name: _name(owner, name) for name in ("run_id", "pid", "host", "since")}
        described = f"run {quote(names['run_id'])}, process {quote(names['pid'])} on host {quote(names['host'])}"
        try:
            seconds = (datetime.now(timezone.utc) - datetime.fromisoformat(names["since"])).total_seconds()
            age = f"{max(seconds, 0) / 3600:.1f} hours"
        except (ValueError, TypeError):
            age = "an unknown time"
        command = f'del "{self.file}"' if sys.platform == "win32" else f"rm {shlex.quote(str(self.file))}"
        return StorageError.locked_by_owner(str(self.file), described, age, command)


def _has_ended(owner: JsonObject) -> bool:
    """Return True if an owner is a process of this host that has ended."""
    pid, started = owner.get("pid"), owner.get("process_started")
    if owner.get("host") != socket.gethostname() or not isinstance(pid, int):
        return False
    now = find_process_start(pid)
    # Another process may have this id by now.
    return now is None or (isinstance(started, str) and now != started)


def find_process_start(pid: int) -> str | None:
    """Return the start time of a process of this host in the system's notation, or None without the process."""
    if sys.platform == "win32":  # pragma: no cover
        command = f"(Get-Process -Id {pid}).StartTime.Ticks"
        answer = subprocess.run(
            ["powershell", "-NoProfile", "-Command", command], capture_output=True, text=True, check=False
        )
        return answer.stdout.strip() or None
    if Path("/proc/self/stat").exists():
        try:
            # The name of the program, in brackets, may hold anything.
            return Path("/proc", str(pid), "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
        except (FileNotFoundError, ProcessLookupError):
            return None
    answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None


def _open(file: Path) -> int:
    """Open or create the lock file. Links are never followed, because the file is written to."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StorageError.no_lock_file(str(file)) from error
        raise
    status = os.fstat(descriptor)
    # A file without a name has just been removed. A file with a second name belongs to something else.
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
    """Write the holder to the open file. Its name may belong to another file by now."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode("utf-8"), 0)


def _decode(content: bytes) -> JsonObject:
    """Return the holder in a lock file, or an empty one if the file is not a JSON object."""
    try:
        holder = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _name(holder: JsonObject, name: str) -> str:
    return str(holder.get(name, "unknown"))
