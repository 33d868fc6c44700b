"""Read text with separators into result sets: columns are known by a header line, or by a layout that fits.

sqlcmd writes a line of dashes under the header and fills up with blanks; SSMS writes a header or none; bcp
writes none. sqlcmd may write several result sets into one file. Excel may say its separator in the first line,
and Windows PowerShell the type of what it exports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from routing.errors import quote
from routing.importing.catalog.cell_values import read_cell
from routing.importing.catalog.views import (
    NAMES,
    SERVER_SAID,
    VIEW_NAME,
    VIEWS,
    CatalogView,
    ResultSet,
    errors_among,
    find_view_by_columns,
    is_remark,
    refuse_wrapped,
)
from routing.importing.import_faults import unreadable_file

# Text with separators → lines of cells, as sqlcmd, bcp and SSMS write them.
#
# Only a cell that begins with a quotation mark and is closed before a separator or the line's end is quoted;
# any other quotation mark is a character. So no value can swallow the rest of a file.


LONGEST_CELL = 20_000
"""No column of the views is longer than 4,000 characters; a quote that stays open for more was none."""

SEPARATORS = (",", "\t", ";", "|")

_MOST_SHARED = 20_000
_EMPTY_TEXT = "\x00"
_LINE_END = re.compile(r"\r\n|\r|\n")
_CLOSED = {
    separator: re.compile(rf'[ ]*"((?:[^"]|""){{0,{LONGEST_CELL}}})"[ ]*(?={re.escape(separator)}|\r|\n|\Z)')
    for separator in SEPARATORS
}
_PLAIN = {separator: re.compile(rf"[^{re.escape(separator)}\r\n]*") for separator in SEPARATORS}


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class CellLine:
    """The cells of one line, and the line's number."""

    number: int
    cells: tuple[ExportCell, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The cells without the blanks around them."""
        return tuple(cell.text.strip() for cell in self.cells)


class _PlainCells(dict[str, ExportCell]):
    """Cells without quotes, by text: lines share those that come first."""

    def __missing__(self, text: str) -> ExportCell:
        cell = ExportCell(text)
        if len(self) < _MOST_SHARED:
            self[text] = cell
        return cell


def lines(text: str, separator: str) -> Iterator[CellLine]:
    """Yield the lines of a text; a quoted cell may hold line ends."""
    position, number = 0, 1
    plain_cells = _PlainCells()
    while position < len(text):
        line_end = _LINE_END.search(text, position)
        stop = len(text) if line_end is None else line_end.start()
        if text.find('"', position, stop) < 0:
            yield CellLine(number, tuple(map(plain_cells.__getitem__, text[position:stop].split(separator))))
            position = stop if line_end is None else line_end.end()
            number += 1
            continue
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


_TRIED = 100
_HEAD = 100_000
_MANY_BLANKS = "  "
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_TYPE_LINE = "#TYPE "
_TAB = "\t"


def result_sets(text: str, file: str, view: CatalogView | None) -> list[ResultSet]:
    """Return all result sets of a text; ``view`` is what the file is known to hold.

    Raises InputError where there is neither a header nor a layout that the rows fit.
    """
    first = text[: _length_of_first_line(text)]
    separator_line = _SEPARATOR_LINE.fullmatch(first.strip(" "))
    is_typed = first.startswith(_TYPE_LINE)
    if separator_line is not None or is_typed:
        # Its line end stays, so that the lines keep their numbers.
        text = text[len(first) :]
    separator = (
        _find_separator(text) if separator_line is None else _known_separator(separator_line.group(1), file)
    )
    cell_lines = [
        line for line in lines(text, separator) if any(line.texts) and not is_remark(",".join(line.texts))
    ]
    for line, below in pairwise(cell_lines):
        if _are_dashes(line) and _are_dashes(below):
            refuse_wrapped(" ".join(line.texts), " ".join(below.texts), file)
    blocks = _blocks(cell_lines, view, is_typed)
    if not blocks:
        raise unreadable_file(file, "it is empty")
    above = _take_above(blocks, view)
    sets = [
        _read_with_header(block, separator) if block.header else _read_without_header(block, file, view)
        for block in blocks
    ]
    sets[0].rejected[:0] = [(line.number, "it stands above the first header") for line in above]
    return sets


@dataclass
class _Block:
    header: CellLine | None
    dashes: CellLine | None
    lines: list[CellLine]


def _length_of_first_line(text: str) -> int:
    ends = [position for position in (text.find("\n"), text.find("\r")) if position >= 0]
    return min(ends, default=len(text))


def _known_separator(character: str, file: str) -> str:
    if character not in SEPARATORS:
        raise unreadable_file(file, f"its separator {quote(character)} is none of , ; | and tab")
    return character


def _find_separator(text: str) -> str:
    """Choose the separator that splits the first line with two column names, else the first line, most."""
    heads = [line.split("\r", 1)[0] for line in text[:_HEAD].lstrip("\r\n").split("\n")[:_TRIED]]
    with_names = (head for head in heads for each in SEPARATORS if _count_names(head, each)[0] > 1)
    head = next(with_names, heads[0])
    return max(SEPARATORS, key=lambda separator: _count_names(head, separator))


def _count_names(head: str, separator: str) -> tuple[int, int]:
    """Count the names of columns among the cells of a line, and its cells."""
    cells = [cell.strip().strip('"').lower() for cell in head.split(separator)]
    return sum(cell in NAMES for cell in cells), len(cells)


def _blocks(cell_lines: Sequence[CellLine], view: CatalogView | None, has_header: bool) -> list[_Block]:
    """Return a line of dashes makes the line before it a header; else a first line of column names is one."""
    blocks: list[_Block] = []
    for index, line in enumerate(cell_lines):
        below = cell_lines[index + 1] if index + 1 < len(cell_lines) else None
        if blocks and blocks[-1].dashes is line:
            continue
        if below is not None and _are_dashes(below) and _may_be_header(line, below, index == 0):
            blocks.append(_Block(line, dashes=below, lines=[]))
        elif _is_header(line, index == 0, view) or (has_header and index == 0):
            blocks.append(_Block(line, dashes=None, lines=[]))
        elif blocks:
            blocks[-1].lines.append(line)
        else:
            blocks.append(_Block(None, dashes=None, lines=[line]))
    return blocks


def _take_above(blocks: list[_Block], view: CatalogView | None) -> list[CellLine]:
    """Remove the lines above the first header, if they are rows of nothing and the header tells a view."""
    first, *others = blocks
    header = others[0].header if others else None
    if first.header is not None or header is None or find_view_by_columns(_names_of(header)) is None:
        return []
    if _find_layouts(first, view):
        return []
    blocks[:] = others
    return first.lines


def _with_last_cells(line: CellLine, count: int) -> CellLine:
    """Return a line with empty cells at its end, if any cell has a neighbour."""
    missing = count - len(line.cells) if len(line.cells) > 1 else 0
    return replace(line, cells=(*line.cells, *[ExportCell("")] * missing)) if missing > 0 else line


def _names_of(header: CellLine) -> tuple[str, ...]:
    return tuple(cell.lower() for cell in header.texts)


def _are_dashes(line: CellLine) -> bool:
    return all(cell and not cell.strip("-") for cell in line.texts)


def _may_be_header(line: CellLine, dashes: CellLine, is_first: bool) -> bool:
    """Return True if a line goes with the dashes below it: a row may be followed by one with a name of dashes."""
    is_named = is_first or any(cell.lower() in NAMES for cell in line.texts)
    return is_named and len(dashes.cells) == len(line.cells)


def _is_header(line: CellLine, is_first: bool, view: CatalogView | None) -> bool:
    """Return whether half of the cells, and two unless the line is the first, are names of columns.

    Names that tell a view are a header, whatever stands beside them. Of a view whose columns differ between
    versions of SQL Server there is always a header, mostly of others.
    """
    names = _names_of(line)
    headings = sum(name in NAMES for name in names)
    if headings and find_view_by_columns(names) is not None:
        return True
    if is_first and view is not None and not view.layout and headings > 1:
        return True
    return headings >= (1 if is_first else 2) and 2 * headings >= len(line.cells)


def _read_with_header(block: _Block, separator: str) -> ResultSet:
    assert block.header is not None
    if separator == _TAB:
        # Editors take blanks off the ends of lines, and with them the last empty cells of a grid.
        block.lines = [_with_last_cells(line, len(block.header.cells)) for line in block.lines]
    is_all_quoted = not any(cell.is_plain for line in (block.header, *block.lines) for cell in line.cells)
    return _fill(_names_of(block.header), block.lines, block.dashes is not None, is_all_quoted=is_all_quoted)


def _read_without_header(block: _Block, file: str, view: CatalogView | None) -> ResultSet:
    fitting = _find_layouts(block, view)
    if len(fitting) != 1:
        why = f"it has no header line, and its {len(block.lines[0].cells)} columns cannot be known"
        raise unreadable_file(file, why, "export it with a header, or with sbroute import queries")
    return _fill(fitting[0], block.lines, _is_padded(block))


def _find_layouts(block: _Block, view: CatalogView | None) -> list[tuple[str, ...]]:
    """Return the layouts that the rows of a block without a header fit."""
    padded = _is_padded(block)
    return [layout for layout in _layouts(view, block.lines[0]) if _fits(layout, block.lines, view, padded)]


def _is_padded(block: _Block) -> bool:
    return any(cell.text.endswith(_MANY_BLANKS) for cell in block.lines[0].cells if not cell.is_quoted)


def _layouts(view: CatalogView | None, first: CellLine) -> Iterable[tuple[str, ...]]:
    """Return the layouts that a file may have: those of its view, and of the view that its own cells name."""
    if view is None:
        named = VIEWS.get(first.texts[0].lower()) if first.texts else None
        return named.of_queries if named else ()
    layout = view.layout
    return (*view.of_queries, layout, *((*part, *layout) for part in _heads(view) if layout))


def _heads(view: CatalogView) -> Iterable[tuple[str, ...]]:
    """Return the added columns before those of the view itself, with and without the view's name."""
    return (view.added_columns, (VIEW_NAME, *view.added_columns))


def _fits(layout: tuple[str, ...], block: Sequence[CellLine], view: CatalogView | None, padded: bool) -> bool:
    """Return True if most of the first lines have as many cells, each of the kind of its column."""
    if not layout:
        return False
    tried = block[:_TRIED]
    kinds = view or VIEWS[block[0].texts[0].lower()]
    good = sum(_is_such_a_row(layout, line, kinds, padded) for line in tried)
    return 2 * good > len(tried)


def _is_such_a_row(layout: tuple[str, ...], line: CellLine, view: CatalogView, padded: bool) -> bool:
    """Return whether a line's cells fit the columns of a layout, and no required one is missing."""
    if len(line.cells) != len(layout):
        return False
    values: dict[str, object] = {}
    for name, cell in zip(layout, line.cells, strict=True):
        column = view.column(name)
        try:
            values[name] = None if column is None else read_cell(cell.value(padded), column.kind)
        except ValueError:
            return False
    is_empty = not any(values.get(column.name) for column in view.columns)
    if is_empty:
        return layout in view.of_queries and bool(values["instance_name"])
    return all(values.get(column.name) not in (None, "") for column in view.columns if column.required)


def _without_filling(cells: tuple[ExportCell, ...], count: int) -> tuple[ExportCell, ...]:
    """Return cells without the empty ones after the first ``count``, with which spreadsheets fill lines up."""
    end = len(cells)
    while end > count and not cells[end - 1].text.strip():
        end -= 1
    return cells[:end]


def _fill(
    columns: tuple[str, ...], block: Sequence[CellLine], padded: bool, *, is_all_quoted: bool = False
) -> ResultSet:
    result_set = ResultSet(columns)
    numbers: list[int] = []
    rows: list[list[str | None]] = []
    errors = errors_among((line.number, ",".join(line.texts)) for line in block)
    for line in block:
        if line.number in errors:
            result_set.rejected.append((line.number, SERVER_SAID))
            continue
        cells = _without_filling(line.cells, len(columns))
        if len(cells) != len(columns):
            why = f"it has {len(cells)} cells, the header {len(columns)}"
            result_set.rejected.append((line.number, why))
            continue
        numbers.append(line.number)
        rows.append([cell.value(padded, is_all_quoted=is_all_quoted) for cell in cells])
    result_set.rows.add_rows(numbers, columns, rows)
    return result_set
