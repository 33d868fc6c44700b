"""Whether a file is one's own: nobody but its owner and root can change it, or put another in its place."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def is_own(file: Path) -> bool:
    """Return True if a file and every folder above it belong to this user or root, and no other may write there.

    A folder where all may write is fine with the sticky bit, as /tmp has it. A link is nobody's own: name what
    it leads to. Raises OSError where there is no such file.
    """
    if os.name == "nt":  # pragma: no cover - Windows has other rights; a profile's folders are its user's.
        return file.is_file()
    return stat.S_ISREG(file.lstat().st_mode) and all(
        _is_safe(part.lstat()) for part in (file, *file.absolute().parents)
    )


def _is_safe(status: os.stat_result) -> bool:
    user = os.getuid()
    if status.st_uid not in (user, 0) or stat.S_ISLNK(status.st_mode):
        return False
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return True
    by_group = status.st_mode & stat.S_IWGRP and not _is_own_group(user, status.st_gid)
    return not (by_group or status.st_mode & stat.S_IWOTH)


def _is_own_group(user: int, group: int) -> bool:
    """Return True if a group is that of one user alone: the one of the user's name, which many systems make."""
    import grp
    import pwd

    try:
        return pwd.getpwuid(user).pw_name == grp.getgrgid(group).gr_name
    except KeyError:
        return False
