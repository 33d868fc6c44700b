"""Recognise lasting faults of the storage, such as a full disk. Other faults, such as a time-out, pass."""

from __future__ import annotations

import errno
import os
import re

# With these faults, the same command fails again until somebody changes the storage or a permission.
_WRITABLE = "once this user has write permission, or name another location"
LASTING = {
    errno.ENOSPC: "once there is free space",
    errno.EDQUOT: "once the quota has free space",
    errno.EROFS: "once the file system is mounted read-write, or name another location",
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EOPNOTSUPP: "with a location on a file system that supports this",
    errno.ENOTSUP: "with a location on a file system that supports this",
    errno.ENOSYS: "with a location on a file system that supports this",
    errno.ENOTDIR: "with a location below a folder",
    errno.ENAMETOOLONG: "with a shorter location",
}
"""The numbers of lasting faults, each with the end of a hint that begins with "run again" (`hint_of`)."""
# Rust writes "(os error 28)" and Arrow "[errno 28]". Java writes the words after a colon, or the exception's name.
_WORDS = {os.strerror(number).lower(): number for number in LASTING}
_DENIED = ("accessdeniedexception", "accesscontrolexception")
_TEXT = re.compile(
    rf"\(os error (\d+)\)|\[errno (\d+)\]|(?:^|: )({'|'.join(_WORDS)})\b|({'|'.join(_DENIED)})", re.I | re.M
)


def find_fault_of_folder(folder: str | os.PathLike[str]) -> str | None:
    """Return the reason why this user cannot write into a folder, or None if nothing prevents it."""
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    return os.strerror(errno.EROFS if is_read_only else errno.EACCES)


def hint_of(why: str) -> str | None:
    """Return the hint for a reason that begins with the words of a lasting fault."""
    return next((f"run again {hint}" for n, hint in LASTING.items() if why.startswith(os.strerror(n))), None)


# How delta-rs writes the causes of an error, and what Python and Arrow write before its words.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BRANCH = "\u21b3"
_NUMBER = re.compile(r"\[errno \d+\] ?", re.IGNORECASE)


def join_tree(text: str) -> str:
    """Return the text of an error with the causes that delta-rs writes below it in one line."""
    return ": ".join(part.strip() for part in _COLOUR.sub("", text).split(_BRANCH))


def name_lasting_fault(error: BaseException, line: str) -> str | None:
    """Return the text of a lasting fault in an error with its file, or with the beginning of ``line``."""
    fault = find_lasting_fault(error)
    if fault is None:
        return None
    words = os.strerror(fault)
    before = _NUMBER.sub("", line).partition(words)[0].rstrip(":, ").rpartition(": ")[2]
    where = getattr(error, "filename", None) or before.removesuffix(". Detail")
    return f"{words} ({where})" if where else words


def find_lasting_fault(error: BaseException) -> int | None:
    """Return the number of the lasting fault in an error or its causes, or None."""
    seen = set[int]()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        number = _number_of(cause)
        if number in LASTING:
            return number
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return None


def _number_of(error: BaseException) -> int | None:
    """Return the number of one error, or the one in its text."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    # Errors of this package may quote other texts, such as the name of a folder.
    if type(error).__module__.startswith("routing."):
        return None
    for rust, arrow, words, denied in _TEXT.findall(str(error)):
        number = errno.EACCES if denied else _WORDS[words.lower()] if words else int(rust or arrow)
        if number in LASTING:
            return number
    return None
