"""Text with separators → lines of cells, as sqlcmd, bcp and SSMS write them.

Only a cell that begins with a quotation mark and is closed before a separator or the line's end is quoted;
any other quotation mark is a character. So no value can swallow the rest of a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_CELL = 20_000
"""No column of the views is longer than 4,000 characters; a quote that stays open for more was none."""

SEPARATORS = (",", "\t", ";", "|")

_EMPTY_TEXT = "\x00"
_LINE_END = re.compile(r"\r\n|\r|\n")
_CLOSED = {
    separator: re.compile(rf'[ ]*"((?:[^"]|""){{0,{LONGEST_CELL}}})"[ ]*(?={re.escape(separator)}|\r|\n|\Z)')
    for separator in SEPARATORS
}
_PLAIN = {separator: re.compile(rf"[^{re.escape(separator)}\r\n]*") for separator in SEPARATORS}


@dataclass(frozen=True)
class ExportCell:
    """One cell: its text as written, and whether it stood in quotes."""

    text: str
    is_quoted: bool = False

    @property
    def is_plain(self) -> bool:
        """Tell whether something stands here without quotes, which a text too long for a view may have."""
        return bool(self.text) and not self.is_quoted and unquoted(self.text.strip(" ")) is None

    def value(self, padded: bool, *, is_all_quoted: bool = False) -> str | None:
        """Return its text, None for NULL.

        ``padded`` where the tool fills columns up with blanks, ``is_all_quoted`` where it quotes everything: then
        the quotes do not tell the text NULL from no value.
        """
        if self.is_quoted:
            return None if is_all_quoted and self.text == "NULL" else self.text
        text = self.text.strip(" \t") if padded else self.text
        if text == _EMPTY_TEXT:
            # So bcp writes an empty text, and NULL as nothing.
            return ""
        return None if text.strip(" \t") == "NULL" else text


@dataclass(frozen=True)
class CellLine:
    """The cells of one line, and the line's number."""

    number: int
    cells: tuple[ExportCell, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The cells without the blanks around them."""
        return tuple(cell.text.strip() for cell in self.cells)


def lines(text: str, separator: str) -> Iterator[CellLine]:
    """Yield the lines of a text; a quoted cell may hold line ends."""
    position, number = 0, 1
    while position < len(text):
        start, cells = number, []
        while True:
            match = _CLOSED[separator].match(text, position) if _opens(text, position) else None
            if match is not None:
                cells.append(ExportCell(_inside(match.group(1)), is_quoted=True))
                number += len(_LINE_END.findall(match.group(0)))
            else:
                match = _PLAIN[separator].match(text, position)
                assert match is not None  # it matches nothing as well
                cells.append(ExportCell(match.group(0)))
            position = match.end()
            if not text.startswith(separator, position):
                break
            position += len(separator)
        position += 2 if text.startswith("\r\n", position) else 1
        number += 1
        yield CellLine(start, tuple(cells))


def _opens(text: str, position: int) -> bool:
    """Return True if the first character that is no blank is a quotation mark."""
    while position < len(text) and text[position] == " ":
        position += 1
    return text.startswith('"', position)


def _inside(quoted: str) -> str:
    """Return a quoted cell's text; what the query had quoted and the tool quoted again is unwrapped once more."""
    text = quoted.replace('""', '"')
    inside = unquoted(text)
    return text if inside is None else inside


def unquoted(text: str) -> str | None:
    """Return the text between quotation marks; None where there are none, or single ones within."""
    inside = text[1:-1]
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"' and '"' not in inside.replace('""', "")
    return inside.replace('""', '"') if is_quoted else None
