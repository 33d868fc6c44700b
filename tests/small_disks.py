"""Small disks that cannot be written: full, mounted read-only, or owned by another user."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_NOBODY = 65534


@contextmanager
def small_disk() -> Iterator[Path]:
    """Mount a disk of four megabytes in a folder that every user may read. Skip if this is not allowed."""
    with tempfile.TemporaryDirectory(prefix="sbroute-disk-") as folder:
        Path(folder).chmod(0o755)
        disk = Path(folder) / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "tmpfs", str(disk)]
        if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("only a user who may mount a file system has a disk that is full")
        try:
            yield disk
        finally:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Leave no room on a disk."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as stream:
        try:
            while stream.write(b"x" * 4096):
                pass
        except OSError:
            pass
    yield
    filler.unlink()


@contextmanager
def nearly_full(disk: Path) -> Iterator[None]:
    """Leave space for the first files of a command: locks, marks and a line of a log."""
    with full(disk):
        filler = disk / "filler"
        os.truncate(filler, filler.stat().st_size - 8_192)
        yield


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """Mount a disk to be read only."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


@contextmanager
def of_somebody_else(disk: Path) -> Iterator[None]:
    """Become a user with read access everywhere here and no write access."""
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
