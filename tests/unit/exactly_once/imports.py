"""An import over logs in memory, in the order of the real one: it brings a route and a message that needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from routing.errors import StorageError
from routing.importing.import_journal import ORDER

JOURNAL = "unfinished_imports"
WRITTEN = tuple(key for key in ORDER if key in ("routes", "messages", "imports"))


@dataclass(frozen=True)
class Import:
    """An import of one number, which represents its rows in every table."""

    number: int

    def __call__(self, tables: Any) -> None:
        """Complete the rows in the journal, then do the same as `importing.storing.commit_changes`."""
        held = tables.newest(JOURNAL)
        for number in () if held is None else sorted(tables.rows(JOURNAL, held)):
            held = self._write(tables, number, held)
        versions = {key: tables.newest(key) for key in WRITTEN}
        if all(self.number in _rows(tables, key, version) for key, version in versions.items()):
            return
        held = tables.commit_next(JOURNAL, held, frozenset({self.number}))
        self._write(tables, self.number, held, versions)

    @staticmethod
    def _write(tables: Any, number: int, held: int, versions: dict[str, int | None] | None = None) -> int:
        """Write an import's rows and empty the journal, unless another import wrote to it."""
        versions = versions or {key: tables.newest(key) for key in WRITTEN}
        for key in WRITTEN:
            if tables.newest(JOURNAL) != held:
                raise StorageError.imported_meanwhile(JOURNAL, tables.place(JOURNAL))
            rows = _rows(tables, key, versions[key])
            # What is only appended to gets no commit where nothing is new.
            if key != "messages" or number not in rows:
                tables.commit_next(key, versions[key], rows | {number})
        emptied: int = tables.commit_next(JOURNAL, held, frozenset())
        return emptied


def _rows(tables: Any, key: str, version: int | None) -> frozenset[int]:
    return frozenset() if version is None else tables.rows(key, version)
