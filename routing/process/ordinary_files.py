"""Files that are read to their end: a pipe need not have one, a device such as ``/dev/zero`` has none."""

from __future__ import annotations

import errno
from pathlib import Path


def refuse_special_file(path: Path) -> None:
    """Raise OSError where a pipe, device or socket stands."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a pipe, device or socket, and only ordinary files are read", str(path))


def read_ordinary_file(path: Path) -> bytes:
    """Return the content of a file. Raises OSError."""
    refuse_special_file(path)
    return path.read_bytes()
