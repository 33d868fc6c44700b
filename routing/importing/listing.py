"""The files of a folder at any depth, as one listing that always ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from routing.errors import InputError, quote
from routing.importing.reach import FilePlace
from routing.importing.undecodable import as_shown, is_writable

MOST_FILES = 100_000
"""A folder that holds more is none of exports and scripts."""
_PARQUET = ".parquet"
_Place = TypeVar("_Place", bound=FilePlace)


def list_files(folder: _Place, notes: list[str], most: int = MOST_FILES) -> list[_Place]:
    """List the files of a folder in the order of their names; a folder of Parquet files is one.

    Files and folders whose names begin with ``.`` or ``_`` are left out. A link to a folder that it lies in is not
    followed, and a pipe, device or socket is not read: ``notes`` names each. Raises InputError where there are
    more than ``most`` files or folders, OSError where the system does.
    """
    return list(_Listing(folder, notes, most).files_of(folder))


@dataclass
class _Listing(Generic[_Place]):
    """One walk through a folder, and how many files and folders it has come across."""

    folder: _Place
    notes: list[str]
    most: int
    counts: Counter[str] = field(default_factory=Counter)
    # The folders that lead to where the walk is, without links.
    above: list[Path] = field(default_factory=list)

    def files_of(self, folder: _Place) -> Iterator[_Place]:
        real = folder.resolve() if isinstance(folder, Path) else None
        if real is not None:
            self.above.append(real)
        shown = (entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
        for entry in sorted(shown, key=lambda path: path.name):
            why = self._why_not(entry)
            if why is not None:
                self.notes.append(f"{as_shown(str(entry))}: {why}")
                self._count("files")
            elif entry.is_dir() and entry.suffix.lower() != _PARQUET:
                self._count("folders")
                yield from self.files_of(entry)
            else:
                self._count("files")
                yield entry
        if real is not None:
            self.above.pop()

    def _count(self, what: str) -> None:
        self.counts[what] += 1
        if self.counts[what] > self.most:
            why = f"{quote(self.folder)} holds more than {self.most:,} {what}"
            raise InputError(why, "name a folder of exports alone")

    def _why_not(self, entry: _Place) -> str | None:
        """Return why an entry is neither followed nor read; None where it is."""
        if not is_writable(entry.name):
            return "not read, its name is no UTF-8"
        if not isinstance(entry, Path):
            return None
        if entry.is_symlink():
            if entry.is_dir():
                real = entry.resolve()
                leads_up = any(real == folder or real in folder.parents for folder in self.above)
                return "not followed, it is a link to a folder that it lies in" if leads_up else None
            if not entry.exists():
                return "not read, it is a link to nothing"
        return None if entry.is_file() or entry.is_dir() else "not read, it is no ordinary file"
