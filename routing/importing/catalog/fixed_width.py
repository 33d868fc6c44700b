"""Read sqlcmd's columns without a separator: the line of dashes says how wide each of them is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from routing.importing.catalog.delimited import ExportCell, unquoted
from routing.importing.catalog.views import (
    LONGEST,
    NAMES,
    SERVER_SAID,
    VIEW_NAME,
    ResultSet,
    are_dashes,
    errors_among,
    export_again,
    is_remark,
    lines_of,
    refuse_wrapped,
)

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
    """Return True if dashes stand side by side, with one blank between them."""
    return _SIDE_BY_SIDE.search(text) is not None


@dataclass(frozen=True)
class _Header:
    """The names of the columns and where each begins and ends."""

    names: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @property
    def is_trimmed(self) -> bool:
        """Whether -W took the blanks off: then dashes are as long as names, and say nothing of the rows."""
        return all(end - start == len(name) for name, (start, end) in zip(self.names, self.spans, strict=True))


def fixed_width(text: str, file: str) -> list[ResultSet]:
    """Return the result sets of a text; lines before the first header are what the server said.

    Raises InputError where sqlcmd has wrapped the lines or cut off a column's name.
    """
    sets: list[ResultSet] = []
    header: _Header | None = None
    lines = lines_of(text)
    dashes_at = 0
    errors = errors_among(enumerate(lines, start=1))
    for number, line in enumerate(lines, start=1):
        below = lines[number] if number < len(lines) else ""
        refuse_wrapped(line, below, file)
        next_header = _header(line, below)
        if next_header is not None:
            header, dashes_at = next_header, number + 1
            _refuse_cut(header, file)
            sets.append(ResultSet(header.names))
        elif header is not None and number in errors:
            sets[-1].rejected.append((number, SERVER_SAID))
        elif header is not None and number != dashes_at and not is_remark(line):
            _read(sets[-1], header, number, line)
    return sets


def _header(line: str, below: str) -> _Header | None:
    """Return the header that a line and the dashes below it are; None where they are not."""
    if not are_dashes(below):
        return None
    spans = tuple(match.span() for match in _DASHES.finditer(below))
    names = tuple(line[start:end].strip().lower() for start, end in spans)
    return _Header(names, spans) if any(name in NAMES for name in names) else None


def _refuse_cut(header: _Header, file: str) -> None:
    """Raise InputError where a name fills its column and begins a known one: values may be cut off as well."""
    for name, (start, end) in zip(header.names, header.spans, strict=True):
        is_full = name and len(name) == end - start and name not in NAMES
        if is_full and any(column_name.startswith(name) for column_name in NAMES):
            raise export_again(file, f"sqlcmd has cut off the name of its column {name}", "-Y 0 and -y 0")


def _read(result_set: ResultSet, header: _Header, number: int, line: str) -> None:
    """Read one line as a row, or reject it."""
    texts = line.split() if header.is_trimmed else _cut(line, header.spans)
    if texts is None:
        result_set.rejected.append((number, "it does not stand under the dashes of its header"))
    elif len(texts) != len(header.names):
        why = f"it has {len(texts)} words, the header {len(header.names)}: -W needs a separator (-s)"
        result_set.rejected.append((number, why))
    else:
        cut_off = None if header.is_trimmed else _cut_off(header, texts)
        if cut_off is not None:
            result_set.rejected.append((number, cut_off))
            return
        cells = [_cell(text, header).value(padded=True) for text in texts]
        result_set.rows.add_rows([number], header.names, [cells])


def _cell(text: str, header: _Header) -> ExportCell:
    """Return one value; the queries of this project quote their texts."""
    inside = unquoted(text) if VIEW_NAME in header.names else None
    return ExportCell(text) if inside is None else ExportCell(inside, is_quoted=True)


def _cut(line: str, spans: Sequence[tuple[int, int]]) -> list[str] | None:
    """Return the values under the dashes; None where there is none but something stands between them."""
    fitting_texts = []
    for text in _laid(line):
        if not _stands(text, spans):
            continue
        fitting_texts.append(text)
        # sqlcmd fills up the last column too, so the right one has the length of the dashes.
        if len(text) == spans[-1][1]:
            fitting_texts = [text]
            break
    if not fitting_texts:
        return None
    return [fitting_texts[0][start:end].replace(_FILLER, "").strip() for start, end in spans]


def _laid(line: str) -> Iterator[str]:
    """Yield the line in each way in which it may fill columns: fillers follow what takes more room than one."""
    yield line
    for room in () if line.isascii() else _ROOMS:
        yield _with_fillers(line, room)


def _with_fillers(line: str, room: Callable[[str], int]) -> str:
    def fill(match: re.Match[str]) -> str:
        return match[0] + _FILLER * (room(match[0]) - 1)

    return _BEYOND_ASCII.sub(fill, line)


def _stands(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Return True if there is nothing between the columns, nor after the last."""
    return not text[spans[-1][1] :].strip() and all(text[end : end + 1] in ("", " ") for _, end in spans)


def _cut_off(header: _Header, texts: Sequence[str]) -> str | None:
    """Return the reason why a row is not trusted: a text fills a column that is narrower than the view's."""
    for name, text, (start, end) in zip(header.names, texts, header.spans, strict=True):
        if end - start < LONGEST.get(name, 0) and len(text) >= end - start:
            return f"{name} fills its {end - start} characters: sqlcmd may have cut it off (-y, -Y)"
    return None
