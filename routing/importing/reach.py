"""What import asks of the files that it reads, wherever they lie: `pathlib.Path` answers it for this machine's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from routing.config import is_uri
from routing.errors import InputError, quote
from routing.importing.import_faults import unreadable_file
from routing.process.ordinary_files import refuse_special_file

if TYPE_CHECKING:
    from typing_extensions import Self


class FileStat(Protocol):
    """The attribute that import reads of a file's description."""

    @property
    def st_mtime(self) -> float:
        """When it was last written, in seconds of Unix."""


class FilePlace(Protocol):
    """The place of a file or folder, as whose text it is named to users. What looks there raises OSError."""

    @property
    def name(self) -> str:
        """Its last part."""

    @property
    def stem(self) -> str:
        """Its last part without the ending."""

    @property
    def suffix(self) -> str:
        """The ending, with the dot."""

    @property
    def parent(self) -> Self:
        """The folder that it is in."""

    def __truediv__(self, written: str) -> Self:
        """Return the place that is written so in a file of this folder."""

    def exists(self) -> bool:
        """Return True if anything is there."""

    def is_dir(self) -> bool:
        """Return True if a folder is there."""

    def is_file(self) -> bool:
        """Return True if a file is there."""

    def iterdir(self) -> Iterable[Self]:
        """List the entries of the folder, in no order."""

    def read_bytes(self) -> bytes:
        """Return the content of the file."""

    def stat(self) -> FileStat:
        """Return the file's own description."""


Reach = Callable[[str], FilePlace]
"""What a command line names → its place. Raises InputError."""


def on_this_disk(named: str) -> Path:
    """Return a place of this machine.

    Raises InputError for a URI, where only a Spark session can look, and for a pipe or device, which need not end.
    """
    if is_uri(named):
        hint = "copy what is there to this machine; import reads URIs, by Spark"
        raise InputError(f"{quote(named)} is a URI, and only files of this machine are read here", hint)
    return ordinary_place(named)


def ordinary_place(named: str) -> Path:
    """Return a path. Raises InputError for a pipe, device or socket, and for what is no name of a file."""
    path = Path(named)
    try:
        refuse_special_file(path)
    # A name with a character 0 in it is a ValueError.
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        hint = "save what it gives to a file, and name that"
        raise unreadable_file(named, why or str(error), hint) from error
    return path


@contextmanager
def copied(place: FilePlace) -> Iterator[Path]:
    """Yield a path on this machine's disk: the place itself, or a copy for as long as it is read."""
    if isinstance(place, Path):
        yield place
        return
    with TemporaryDirectory(prefix="sbroute-") as folder:
        copy = Path(folder, place.name)
        _copy(place, copy)
        yield copy


def _copy(place: FilePlace, copy: Path) -> None:
    if place.is_file():
        copy.write_bytes(place.read_bytes())
        return
    copy.mkdir()
    for inner in place.iterdir():
        _copy(inner, copy / inner.name)
