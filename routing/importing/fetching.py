"""Fetch import files through the Spark session, from a URI or the file system of its cluster.

They are fetched unchanged, and read by the same code as local files.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, dropwhile
from pathlib import Path, PurePosixPath

from routing.config import TableLocation, is_uri
from routing.config.secrets import holds_secret
from routing.delta import file_systems
from routing.delta.commits import is_local
from routing.delta.file_systems import Folder, ListedFile
from routing.delta.local_tables import UnreadableTable
from routing.delta.opening import TableOpener
from routing.errors import quote
from routing.importing.import_faults import secret_in_address
from routing.importing.import_files import FilePlace, Reach, ordinary_place

# So many bytes are fetched by one query, and one file at least: a query takes longer than a small file.
BYTES_AT_ONCE = 32 * 1024**2
# The scheme of a URI, and the bucket or host.
_ROOT = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]+:(//[^/]*)?/?")


def reach_by(opener: TableOpener, *, bytes_at_once: int = BYTES_AT_ONCE) -> Reach:
    """Return the function that opens places of a command line: URIs by the session, all others on this machine.

    A whole path that is not there is the session's where that reads paths from another disk (`file_systems`).
    """

    def reach(named: str) -> FilePlace:
        if is_uri(named) and holds_secret(named):
            raise secret_in_address()
        path = Path(named)
        if not is_uri(named) and (not path.is_absolute() or path.exists()):
            return ordinary_place(named)
        if is_local(opener.placed(quote(named), TableLocation(named))):
            return path
        return SessionPath(_Fetcher(opener, bytes_at_once), named)

    return reach


@dataclass
class _Fetcher:
    """The paths that the session has found, and the content of files. It fetches several files at once."""

    opener: TableOpener
    bytes_at_once: int = BYTES_AT_ONCE
    _waiting: dict[str, ListedFile] = field(default_factory=dict)
    _content: dict[str, bytes] = field(default_factory=dict)

    def look(self, text: str) -> Folder | ListedFile | None:
        why = UnreadableTable("it is a URI" if is_uri(text) else "it is not on this machine's disk")
        spark = self.opener.start_for(quote(text), "read", why)
        listing = file_systems.look(spark, text)
        if listing == {} and PurePosixPath(text).name.startswith(("_", ".")):
            raise OSError(errno.EPERM, "the session cannot read files with names that begin with _ or .", text)
        self._waiting.update((file.path, file) for file in _in_order(listing))
        return listing

    def content(self, file: ListedFile) -> bytes:
        """Return the content of a file. The next files with the same ending are fetched with it."""
        if file.path not in self._content:
            batch = self._batch(file)
            self._content.update(file_systems.read(self.opener.spark, batch))
            for fetched in batch:
                self._waiting.pop(fetched.path, None)
        return self._content.pop(file.path)

    def _batch(self, file: ListedFile) -> list[ListedFile]:
        ending = PurePosixPath(file.path).suffix
        following = dropwhile(lambda waiting: waiting != file, self._waiting.values())
        alike = [candidate for candidate in following if PurePosixPath(candidate.path).suffix == ending] or [file]
        sizes = accumulate(candidate.size for candidate in alike)
        fitting = [candidate for candidate, size in zip(alike, sizes, strict=True) if size <= self.bytes_at_once]
        return fitting or [file]


def _in_order(listing: Folder | ListedFile | None) -> Iterator[ListedFile]:
    if isinstance(listing, ListedFile):
        yield listing
    elif listing is not None:
        for name in sorted(listing):
            yield from _in_order(listing[name])


@dataclass(frozen=True)
class _Stat:
    st_mtime: float


class SessionPath:
    """A path in the file systems of the session, with the methods of `Path` that import uses.

    It keeps the text from the command line.
    """

    def __init__(self, fetcher: _Fetcher, text: str, listing: Folder | ListedFile | None = None) -> None:
        self._fetcher, self._listed = fetcher, listing
        self._text = text if _ROOT.fullmatch(text) else text.rstrip("/") or "/"

    @cached_property
    def _listing(self) -> Folder | ListedFile | None:
        return self._fetcher.look(self._text) if self._listed is None else self._listed

    def __str__(self) -> str:
        return self._text

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self._text).name

    @property
    def stem(self) -> str:
        """Its last part without the ending."""
        return PurePosixPath(self._text).stem

    @property
    def suffix(self) -> str:
        """The ending, with the dot."""
        return PurePosixPath(self._text).suffix

    @property
    def parent(self) -> SessionPath:
        """The folder that it is in."""
        return SessionPath(self._fetcher, self._text.rpartition("/")[0] or "/")

    def __truediv__(self, written: str) -> SessionPath:
        """Join a path to this one. An absolute path stays on the same file system."""
        root = _ROOT.match(self._text)
        if written.startswith("/"):
            return SessionPath(self._fetcher, (root.group().rstrip("/") if root else "") + written)
        return SessionPath(self._fetcher, f"{self._text.rstrip('/')}/{PurePosixPath(written)}")

    def exists(self) -> bool:
        """Return whether the place holds a file or folder."""
        return self._listing is not None

    def is_dir(self) -> bool:
        """Return whether the place is a folder."""
        return isinstance(self._listing, dict)

    def is_file(self) -> bool:
        """Return whether the place is a file."""
        return isinstance(self._listing, ListedFile)

    def iterdir(self) -> Iterator[FilePlace]:
        """Yield the entries of the folder, without asking the session again."""
        if not isinstance(self._listing, dict):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self._text)
        for name, entry in self._listing.items():
            yield SessionPath(self._fetcher, str(self / name), entry)

    def read_bytes(self) -> bytes:
        """Read the file by the session."""
        return self._fetcher.content(self._file())

    def stat(self) -> _Stat:
        """Return the file's time of change."""
        return _Stat(self._file().modified.timestamp())

    def _file(self) -> ListedFile:
        if not isinstance(self._listing, ListedFile):
            number = errno.ENOENT if self._listing is None else errno.EISDIR
            raise OSError(number, os.strerror(number), self._text)
        return self._listing
