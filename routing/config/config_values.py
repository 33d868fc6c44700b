"""What single values of a configuration mean: locations, sizes, times."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from pathlib import Path
from urllib.parse import urlsplit

from routing.errors import quote

_SIZE = re.compile(r"\A(\d+)\s*([kmgt]?)i?b?\Z", re.IGNORECASE)
# Of one slash as well, as Databricks writes dbfs:/; a scheme of one letter is a drive of Windows.
_URI = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]+:/")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class TableLocation:
    """The location of a table: a path or URI, or a name of the catalog.

    ``is_elsewhere``: a path that the session reads from another disk than this machine's, told by `file_systems`.
    """

    text: str
    is_name: bool = False
    is_elsewhere: bool = False

    @classmethod
    def parse(cls, text: str, folder: str) -> TableLocation:
        """Return a location as a configuration file in ``folder`` writes it (commands.md)."""
        if is_uri(text):
            return cls(text)
        if not re.search(r"[/\\:]", text) and len(text.split(".")) in (2, 3) and all(text.split(".")):
            return cls(text, is_name=True)
        if is_uri(folder):
            return cls(posixpath.join(folder, text))
        # As Spark reads it: a folder `..` takes back the one before, whatever links there are.
        return cls(os.path.normpath(Path(folder, text).absolute()))

    def __str__(self) -> str:
        return self.text

    def with_suffix(self, suffix: str) -> TableLocation:
        """Return the place beside this one whose last part ends in a suffix."""
        return replace(self, text=self.text.rstrip("/") + suffix)


def size_in_bytes(size: str) -> int:
    """Convert a size such as ``512MB`` to bytes; units are powers of 1024, as Spark reads them.

    Raises ValueError where the text is no size.
    """
    match = _SIZE.match(size.strip())
    if match is None:
        raise ValueError(f"{quote(size)} is not a size such as 512MB")
    return int(match.group(1)) * _UNITS[match.group(2).lower()]


def parse_time(value: object) -> datetime:
    """Return an ISO 8601 time as an aware UTC datetime; UTC where no offset is given.

    Raises ValueError where the value is no time.
    """
    if isinstance(value, datetime):
        time = value
    elif isinstance(value, date):
        time = datetime(value.year, value.month, value.day)
    elif isinstance(value, str):
        time = _iso_time(value)
    else:
        raise ValueError(f"{quote(value)} is not an ISO 8601 time")
    try:
        return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except OverflowError:
        raise ValueError(f"{quote(value)} is not a time between the years 1 and 9999") from None


def names_zone(text: str) -> bool:
    """Return True if a time says how far from UTC it is. Raises ValueError where it is not an ISO 8601 time."""
    return _iso_time(text).tzinfo is not None


def _iso_time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(re.sub(r"[zZ]\Z", "+00:00", text.strip()))
    except ValueError:
        raise ValueError(f"{quote(text)} is not an ISO 8601 time") from None


def is_uri(text: str) -> bool:
    """Return True if a text is a URI, such as ``s3a://bucket/x`` or ``dbfs:/x``: Spark reads what stands there."""
    return _URI.match(text) is not None


def folder_of(file: str) -> str:
    """Return the folder of a configuration file, to which its relative paths belong."""
    return posixpath.dirname(file) if is_uri(file) else str(Path(file).absolute().parent)


def path_in(folder: str, text: str) -> str | None:
    """Return a path of this machine as a configuration in ``folder`` writes it; None where it is none."""
    if is_uri(text) or "\0" in text or (is_uri(folder) and not Path(text).is_absolute()):
        return None
    return os.path.normpath(Path(folder, text).absolute())


def is_server(text: str) -> bool:
    """Return whether a text is a server's http(s) address, without user, query and invisible characters."""
    try:
        parts = urlsplit(text)
        is_whole = parts.hostname is not None and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return (
        is_whole
        and parts.scheme in ("http", "https")
        and "@" not in parts.netloc
        and re.search(r"[?#\s]", text) is None
        and text.isprintable()
    )
