"""Read sqlcmd's columns without a separator. The line of dashes gives the width of each column."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from routing.importing.catalog.printed_lines import are_dashes
from routing.importing.catalog.views import LONGEST, NAMES, export_again, fold_columns

_SIDE_BY_SIDE = re.compile(r"^-+(?: -+)+ *\r?$", re.MULTILINE)
_DASHES = re.compile(r"-+")
_FILLER = "\uffff"
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
# How much room a character takes differs between releases and code pages of sqlcmd, but one for all is the rule.
_ROOMS: tuple[Callable[[str], int], ...] = (
    lambda character: 2 if ord(character) > 0xFFFF else 1,
    lambda character: 2 if unicodedata.east_asian_width(character) in "WF" else 1,
    lambda character: len(character.encode("utf-8", "surrogatepass")),
)


def is_fixed_width(text: str) -> bool:
    """Return True if dashes are in adjacent columns, with one blank between them."""
    return _SIDE_BY_SIDE.search(text) is not None


@dataclass(frozen=True)
class FixedColumns:
    """The names of the columns and where each begins and ends.

    ``is_trimmed`` if -W took the blanks off: then dashes are as long as names, and say nothing of the rows.
    """

    names: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    is_trimmed: bool

    def split(self, line: str) -> list[str] | str:
        """Return the cells of a line, or the reason why it is not a row."""
        texts = line.split() if self.is_trimmed else _cut(line, self.spans)
        if texts is None:
            return "it is not aligned with the dashes of its header"
        if len(texts) != len(self.names):
            return f"it has {len(texts)} words, the header {len(self.names)}: -W needs a separator (-s)"
        return texts if self.is_trimmed else self._find_cut(texts) or texts

    def _find_cut(self, texts: Sequence[str]) -> str | None:
        """Return the reason why a row is not trusted: a text fills a column that is narrower than the view's."""
        for name, text, (start, end) in zip(self.names, texts, self.spans, strict=True):
            if end - start < LONGEST.get(name, 0) and len(text) >= end - start:
                return f"{name} fills its {end - start} characters: sqlcmd may have cut it off (-y, -Y)"
        return None


def find_columns(line: str, below: str, file: str) -> FixedColumns | None:
    """Return the columns that a line and the dashes below it name; None where they are none.

    Raises InputError where a name fills its column and begins a known one: values may be cut off as well.
    """
    if not are_dashes(below):
        return None
    spans = tuple(match.span() for match in _DASHES.finditer(below))
    written = [line[start:end].strip() for start, end in spans]
    names, are_full = fold_columns(written), list[bool]()
    for name, text, (start, end) in zip(names, written, spans, strict=True):
        are_full.append(len(text) == end - start)
        is_full = name and are_full[-1] and name not in NAMES
        if (
            is_full
            and any(column in NAMES for column in names)
            and any(known_name.startswith(name) for known_name in NAMES)
        ):
            raise export_again(file, f"sqlcmd has cut off the name of its column {name}", "-Y 0 and -y 0")
    if len(spans) > 1 and not any(names[1:]) and len(NAMES.intersection(line.lower().split())) > 1:
        shown = ", ".join(line.lower().split())
        raise export_again(file, f"its blanks have collapsed, so cells are not under their columns: {shown}", "-s")
    return FixedColumns(names, spans, all(are_full)) if any(names) else None


def _cut(line: str, spans: Sequence[tuple[int, int]]) -> list[str] | None:
    """Return the values under the dashes, or None if any text is between the columns."""
    fitting_texts = []
    for text in _possible_layouts(line):
        if not _fits_columns(text, spans):
            continue
        fitting_texts.append(text)
        # sqlcmd fills up the last column too, so the right one has the length of the dashes.
        if len(text) == spans[-1][1]:
            fitting_texts = [text]
            break
    if not fitting_texts:
        return None
    return [fitting_texts[0][start:end].replace(_FILLER, "").strip() for start, end in spans]


def _possible_layouts(line: str) -> Iterator[str]:
    """Yield the possible layouts of a line, with fillers after characters that take more than one column."""
    yield line
    for room in () if line.isascii() else _ROOMS:
        yield _with_fillers(line, room)


def _with_fillers(line: str, room: Callable[[str], int]) -> str:
    def fill(match: re.Match[str]) -> str:
        return match[0] + _FILLER * (room(match[0]) - 1)

    return _BEYOND_ASCII.sub(fill, line)


def _fits_columns(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Return True if there is nothing between the columns, nor after the last."""
    return not text[spans[-1][1] :].strip() and all(text[end : end + 1] in ("", " ") for _, end in spans)
