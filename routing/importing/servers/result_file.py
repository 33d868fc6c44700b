"""Write result sets into a file as sqlcmd does, so that a server's answer is read like a file that users bring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import UUID

from routing.importing.catalog.text_lines import cell_value, unquoted

_INSTANCE = "instance_name"
_SPECIAL = frozenset(',"\r\n')


class ResultFile:
    """A file of complete result sets. It drops an incomplete set, because rows of its view are missing.

    ``instance_name`` comes from the first row with that column. ``sets`` and ``rows`` count the contents of the
    file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.instance_name: str | None = None
        self.sets = self.rows = 0
        # The byte-order mark shows that this is UTF-8, even if a text has half a surrogate pair.
        self._file = path.open("w", encoding="utf-8-sig", errors="surrogatepass", newline="")
        self._file.flush()
        self._whole = self._file.tell()
        self._rows_of_set = 0
        self._instance_at: int | None = None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def begin(self, columns: Sequence[str]) -> None:
        """Begin a result set."""
        self._rows_of_set = 0
        self._instance_at = columns.index(_INSTANCE) if _INSTANCE in columns else None
        dashes = ("-" * max(1, len(name)) for name in columns)
        self._file.write(f"{','.join(map(_cell, columns))}\n{','.join(dashes)}\n")

    def add(self, rows: Iterable[Iterable[object]]) -> None:
        """Add rows to the result set."""
        for row in rows:
            cells = [_cell(value) for value in row]
            if self.instance_name is None and self._instance_at is not None:
                self.instance_name = cell_value(cells[self._instance_at], padded=False)
            self._file.write(",".join(cells) + "\n")
            self._rows_of_set += 1

    def end(self) -> None:
        """End the result set, which was read to its last row."""
        self._file.write("\n")
        self._file.flush()
        self._whole = self._file.tell()
        self.sets += 1
        self.rows += self._rows_of_set

    def drop(self) -> None:
        """Remove the rows of a result set that broke off."""
        self._file.flush()
        self._file.seek(self._whole)
        self._file.truncate()


def _cell(value: object) -> str:
    """Write a value. A text that the script has quoted stays unchanged."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, bytes | bytearray):
        return f"0x{value.hex().upper()}"
    if isinstance(value, UUID):
        return str(value).upper()
    text = str(value)
    if not isinstance(value, str) or unquoted(text) is not None:
        return text
    if text in ("", "NULL") or text != text.strip() or not _SPECIAL.isdisjoint(text):
        return '"' + text.replace('"', '""') + '"'
    return text
