"""The places of the files that import reads, and the bytes and names in them that no table can store."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Generic, TypeVar, Union, cast

from routing.config import is_uri
from routing.errors import InputError, quote
from routing.importing.import_faults import unreadable_file
from routing.process import refuse_special_file
from routing.rules.text import UndecodedText

if TYPE_CHECKING:
    from routing.importing.fetching import SessionPath


FilePlace = Union[Path, "SessionPath"]
"""The place of a file or folder, on this machine or behind a session. Its text is the name for users."""
Reach = Callable[[str], FilePlace]
"""What a command line names → its place. Raises InputError."""


def on_this_disk(named: str) -> Path:
    """Return a place of this machine.

    Raises InputError for a URI, where only a Spark session can look, and for a pipe or device, which need not end.
    """
    if is_uri(named):
        hint = "copy the files to this machine; import reads URIs with Spark"
        raise InputError(f"{quote(named)} is a URI, but this command reads only files on this machine", hint)
    return ordinary_place(named)


def ordinary_place(named: str) -> Path:
    """Return a path. Raises InputError for a pipe, device or socket, and for an invalid file name."""
    path = Path(named)
    try:
        refuse_special_file(path)
    # A name with a character 0 in it is a ValueError.
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        hint = "save its output to a file, and name the file"
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


# Bytes of files that cannot be decoded, and half characters: no table takes them, so their row is rejected.
#
# Until then an undecodable byte stands in the text as the half character U+DC00 plus its value, as Python
# writes it in the words of a command line: what stood around it stays where it was.


KEEP = "sbroute.keep"
"""The name, for decoders, of what keeps undecodable bytes in the text."""
_HALF = re.compile("[\ud800-\udfff]")
_BYTE = range(0xDC00, 0xDD00)


def _keep(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(_BYTE.start + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(KEEP, _keep)


def count_undecodable(text: str) -> int:
    """Count the half characters of a text."""
    return len(_HALF.findall(text))


def is_writable(value: object) -> bool:
    """Return whether a table takes a value: any but a text that was undecodable, or holds half a character."""
    if not isinstance(value, str):
        return True
    return not isinstance(value, UndecodedText) and (value.isascii() or _HALF.search(value) is None)


def as_shown(text: str) -> str:
    r"""Return a text as it is shown: an undecodable byte as ``\xNN``, another half character as ``\uNNNN``."""
    return _HALF.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code - _BYTE.start:02x}" if code in _BYTE else f"\\u{code:04x}"


def find_undecodable(values: Iterable[object]) -> str | None:
    """Return a sentence on the first value of a row that tables cannot store, or None."""
    for value in values:
        # Most values are plain ASCII, which is cheap to see.
        if isinstance(value, str) and not (type(value) is str and value.isascii()) and not is_writable(value):
            return f"it contains bytes that cannot be decoded, or half a character: {_quote(value)}"
    return None


def _quote(text: str) -> str:
    shown = as_shown(text if len(text) <= _SHOWN else _around(text))
    return "'" + "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown) + "'"


_SHOWN, _BEFORE = 100, 40


def _around(text: str) -> str:
    half_character = _HALF.search(text)
    start = max((half_character.start() if half_character else 0) - _BEFORE, 0)
    return f"…{text[start : start + _SHOWN]}…"


# The files of a folder at any depth, as one listing that always ends.


MOST_FILES = 100_000
"""A folder that holds more is none of exports and scripts."""
_PARQUET = ".parquet"
_HIDDEN = (".", "_")
# Folders of the packages of web projects, which may be very large.
_PACKAGES = frozenset(["node_modules", "bower_components"])
_Place = TypeVar("_Place", bound=FilePlace)


def list_files(folder: _Place, notes: list[str], most: int = MOST_FILES) -> list[_Place]:
    """List the files of a folder by name. A folder of Parquet files counts as one file.

    Files and folders with names that begin with ``.`` or ``_`` are skipped. Links to a folder that contains them,
    to a listed place or to one outside ``folder`` are skipped with a note, and so are pipes, devices and sockets.
    Raises InputError for more than ``most`` files or folders, and OSError.
    """
    return find_files(folder, lambda file, why: notes.append(f"{file}: {why}"), most)


def find_files(folder: _Place, skip: Callable[[str, str], None], most: int = MOST_FILES) -> list[_Place]:
    """List the files of a folder as `list_files`. ``skip`` gets each skipped file, and why it is skipped."""
    return list(_Listing(folder, skip, most).files_of(folder))


@dataclass
class _Listing(Generic[_Place]):
    """One walk through a folder, and how many files and folders it has come across."""

    folder: _Place
    skip: Callable[[str, str], None]
    most: int
    counts: Counter[str] = field(default_factory=Counter)
    # The folders that lead to where the walk is, without links.
    above: list[Path] = field(default_factory=list)

    def files_of(self, folder: _Place) -> Iterator[_Place]:
        real = folder.resolve() if isinstance(folder, Path) else None
        if real is not None:
            self.above.append(real)
        entries = cast("Iterable[_Place]", folder.iterdir())
        shown = (entry for entry in entries if not entry.name.startswith(_HIDDEN))
        for entry in sorted(shown, key=lambda path: path.name):
            why = self._why_not(entry)
            if why is not None:
                self.skip(as_shown(str(entry)), why)
                self._count("files")
            elif entry.is_dir() and entry.suffix.lower() != _PARQUET:
                self._count("folders")
                yield from self.files_of(entry)
            else:
                self._count("files")
                yield entry
        if real is not None:
            self.above.pop()

    def _count(self, kind: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] > self.most:
            why = f"{quote(self.folder)} holds more than {self.most:,} {kind}"
            raise InputError(why, "name a folder with only exports")

    def _why_not(self, entry: _Place) -> str | None:
        if not is_writable(entry.name):
            return "not read, its name is not UTF-8"
        if entry.name in _PACKAGES:
            return "not read, it has packages of other programs"
        if not isinstance(entry, Path):
            return None
        if entry.is_symlink():
            if not entry.exists():
                return "not read, it is a broken link"
            real = entry.resolve()
            if entry.is_dir() and any(real == folder or real in folder.parents for folder in self.above):
                return "not followed, it is a link to a folder that contains it"
            top = self.above[0]
            if top not in real.parents:
                return "not followed, it is a link to a place outside the folder"
            parts = real.relative_to(top).parts
            if not any(part.startswith(_HIDDEN) or part in _PACKAGES for part in parts):
                return f"not followed, it is a link to {as_shown('/'.join(parts))}, which is in the folder too"
        return None if entry.is_file() or entry.is_dir() else "not read, it is not a regular file"
