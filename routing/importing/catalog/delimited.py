"""Text with separators → result sets: columns known by a header line, or by a layout that fits.

sqlcmd writes a line of dashes under the header and fills up with blanks; SSMS writes a header or none; bcp
writes none. sqlcmd may write several result sets into one file. Excel may say its separator in the first line,
and Windows PowerShell the type of what it exports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from routing.errors import quote
from routing.importing.catalog.cells import SEPARATORS, Line, lines
from routing.importing.catalog.result_sets import (
    NAMES,
    SERVER_SAID,
    ResultSet,
    errors_among,
    is_remark,
    refuse_wrapped,
)
from routing.importing.catalog.values import read_cell
from routing.importing.catalog.views import VIEW_NAME, VIEWS, View
from routing.importing.faults import unreadable_file

_TRIED = 100
_MANY_BLANKS = "  "
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_TYPE_LINE = "#TYPE "


def result_sets(text: str, file: str, view: View | None) -> list[ResultSet]:
    """All result sets of a text; ``view`` is what the file is known to hold.

    Raises InputError where there is neither a header nor a layout that the rows fit.
    """
    first = text[: _length_of_first_line(text)]
    said = _SEPARATOR_LINE.fullmatch(first.strip(" "))
    is_typed = first.startswith(_TYPE_LINE)
    if said is not None or is_typed:
        # Its line end stays, so that the lines keep their numbers.
        text = text[len(first) :]
    separator = _separator(text) if said is None else _known_separator(said.group(1), file)
    found = [line for line in lines(text, separator) if any(line.texts) and not is_remark(",".join(line.texts))]
    for line, below in pairwise(found):
        if _are_dashes(line) and _are_dashes(below):
            refuse_wrapped(" ".join(line.texts), " ".join(below.texts), file)
    blocks = _blocks(found, view, is_typed)
    if not blocks:
        raise unreadable_file(file, "it is empty")
    return [
        _read_with_header(block) if block.header else _read_without_header(block, file, view) for block in blocks
    ]


@dataclass
class _Block:
    header: Line | None
    dashes: Line | None
    lines: list[Line]


def _length_of_first_line(text: str) -> int:
    ends = [position for position in (text.find("\n"), text.find("\r")) if position >= 0]
    return min(ends, default=len(text))


def _known_separator(character: str, file: str) -> str:
    if character not in SEPARATORS:
        raise unreadable_file(file, f"its separator {quote(character)} is none of , ; | and tab")
    return character


def _separator(text: str) -> str:
    """The one that splits the first line into the most column names, else into the most cells."""
    head = text.lstrip("\r\n").split("\n", 1)[0]

    def names(separator: str) -> tuple[int, int]:
        cells = [cell.strip().strip('"').lower() for cell in head.split(separator)]
        return sum(cell in NAMES for cell in cells), len(cells)

    return max(SEPARATORS, key=names)


def _blocks(found: Sequence[Line], view: View | None, has_header: bool) -> list[_Block]:
    """A line of dashes makes the line before it a header; else a first line of column names is one."""
    blocks: list[_Block] = []
    for index, line in enumerate(found):
        below = found[index + 1] if index + 1 < len(found) else None
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


def _are_dashes(line: Line) -> bool:
    return all(cell and not cell.strip("-") for cell in line.texts)


def _may_be_header(line: Line, dashes: Line, is_first: bool) -> bool:
    """Whether a line goes with the dashes below it: a row may be followed by one with a name of dashes."""
    is_named = is_first or any(cell.lower() in NAMES for cell in line.texts)
    return is_named and len(dashes.cells) == len(line.cells)


def _is_header(line: Line, is_first: bool, view: View | None) -> bool:
    """Whether half of its cells or more are names of columns; but for a first line, two of them at least.

    Of a view whose columns differ between versions of SQL Server there is always a header, mostly of others.
    """
    headings = sum(cell.lower() in NAMES for cell in line.texts)
    if is_first and view is not None and not view.layout and headings > 1:
        return True
    return headings >= (1 if is_first else 2) and 2 * headings >= len(line.cells)


def _read_with_header(block: _Block) -> ResultSet:
    assert block.header is not None
    return _fill(tuple(cell.lower() for cell in block.header.texts), block.lines, padded=block.dashes is not None)


def _read_without_header(block: _Block, file: str, view: View | None) -> ResultSet:
    padded = any(cell.text.endswith(_MANY_BLANKS) for cell in block.lines[0].cells if not cell.is_quoted)
    fitting = [layout for layout in _layouts(view, block.lines[0]) if _fits(layout, block.lines, view, padded)]
    if len(fitting) != 1:
        why = f"it has no header line, and its {len(block.lines[0].cells)} columns cannot be known"
        raise unreadable_file(file, why, "export it with a header, or with sbroute import queries")
    return _fill(fitting[0], block.lines, padded)


def _layouts(view: View | None, first: Line) -> Iterable[tuple[str, ...]]:
    """The layouts that a file may have: those of its view, and of the view that its own cells name."""
    if view is None:
        named = VIEWS.get(first.texts[0].lower()) if first.texts else None
        return named.of_queries if named else ()
    own = view.layout
    return (*view.of_queries, own, *((*part, *own) for part in _heads(view) if own))


def _heads(view: View) -> Iterable[tuple[str, ...]]:
    """The added columns before those of the view itself, with and without the view's name."""
    return (view.added_columns, (VIEW_NAME, *view.added_columns))


def _fits(layout: tuple[str, ...], block: Sequence[Line], view: View | None, padded: bool) -> bool:
    """Whether most of the first lines have as many cells, each of the kind of its column."""
    if not layout:
        return False
    tried = block[:_TRIED]
    kinds = view or VIEWS[block[0].texts[0].lower()]
    good = sum(_is_such_a_row(layout, line, kinds, padded) for line in tried)
    return 2 * good > len(tried)


def _is_such_a_row(layout: tuple[str, ...], line: Line, view: View, padded: bool) -> bool:
    """Whether each cell is of its column's kind, and none lacks that must not; or the view is empty there."""
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


def _fill(columns: tuple[str, ...], block: Sequence[Line], padded: bool) -> ResultSet:
    found = ResultSet(columns)
    errors = errors_among((line.number, ",".join(line.texts)) for line in block)
    for line in block:
        if line.number in errors:
            found.rejected.append((line.number, SERVER_SAID))
            continue
        if len(line.cells) != len(columns):
            why = f"it has {len(line.cells)} cells, the header {len(columns)}"
            found.rejected.append((line.number, why))
            continue
        cells = {name: cell.value(padded) for name, cell in zip(columns, line.cells, strict=True)}
        found.rows.append((line.number, dict(cells)))
    return found
