"""Text with separators → result sets: columns known by a header line, or by a layout that fits.

sqlcmd writes a line of dashes under the header and fills up with blanks; SSMS writes a header or none; bcp
writes none. sqlcmd may write several result sets into one file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from routing.importing.catalog.cells import SEPARATORS, Line, lines
from routing.importing.catalog.values import read_cell
from routing.importing.catalog.views import VIEW_NAME, VIEWS, View
from routing.importing.faults import unreadable_file

_NAMES = {name for view in VIEWS.values() for name in (*view.layout, *view.exported)}
_REMARKS = re.compile(r"\(\d+ rows? affected\)|Changed database context to '.*'\.|Completion time: .*")
_TRIED = 100
_MANY_BLANKS = "  "


@dataclass
class ResultSet:
    """One result set: its column names in lower case, and a cell or None for each in every row.

    ``rows`` are (line number, cells by column name); ``rejected`` are (line number, why).
    """

    columns: tuple[str, ...]
    rows: list[tuple[int, dict[str, object]]] = field(default_factory=list)
    rejected: list[tuple[int, str]] = field(default_factory=list)


def result_sets(text: str, file: str, view: View | None) -> list[ResultSet]:
    """All result sets of a text; ``view`` is what the file is known to hold.

    Raises InputError where there is neither a header nor a layout that the rows fit.
    """
    separator = _separator(text)
    found = [line for line in lines(text, separator) if not _is_remark(line)]
    blocks = _blocks(found)
    if not blocks:
        raise unreadable_file(file, "it is empty")
    return [
        _read_with_header(block) if block.header else _read_without_header(block, file, view) for block in blocks
    ]


@dataclass
class _Block:
    header: Line | None
    has_dashes: bool
    lines: list[Line]


def _separator(text: str) -> str:
    """The one that splits the first line into the most column names, else into the most cells."""
    head = text.lstrip("\r\n").split("\n", 1)[0]

    def names(separator: str) -> tuple[int, int]:
        cells = [cell.strip().strip('"').lower() for cell in head.split(separator)]
        return sum(cell in _NAMES for cell in cells), len(cells)

    return max(SEPARATORS, key=names)


def _is_remark(line: Line) -> bool:
    """A blank line, or what sqlcmd and SSMS say besides the rows."""
    return not any(line.texts) or _REMARKS.fullmatch(",".join(line.texts)) is not None


def _blocks(found: Sequence[Line]) -> list[_Block]:
    """A line of dashes makes the line before it a header; else a first line of column names is one."""
    blocks: list[_Block] = []
    for index, line in enumerate(found):
        below = found[index + 1] if index + 1 < len(found) else None
        if below is not None and _are_dashes(below) and len(below.cells) == len(line.cells):
            blocks.append(_Block(line, has_dashes=True, lines=[]))
        elif blocks and blocks[-1].has_dashes and not blocks[-1].lines and _are_dashes(line):
            continue
        elif _is_header(line, is_first=index == 0):
            blocks.append(_Block(line, has_dashes=False, lines=[]))
        elif blocks:
            blocks[-1].lines.append(line)
        else:
            blocks.append(_Block(None, has_dashes=False, lines=[line]))
    return blocks


def _are_dashes(line: Line) -> bool:
    return all(cell and not cell.strip("-") for cell in line.texts)


def _is_header(line: Line, is_first: bool) -> bool:
    """Whether half of its cells or more are names of columns; but for a first line, two of them at least."""
    headings = sum(cell.lower() in _NAMES for cell in line.texts)
    return headings >= (1 if is_first else 2) and 2 * headings >= len(line.cells)


def _read_with_header(block: _Block) -> ResultSet:
    assert block.header is not None
    return _fill(tuple(cell.lower() for cell in block.header.texts), block.lines, padded=block.has_dashes)


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
    for line in block:
        if len(line.cells) != len(columns):
            why = f"it has {len(line.cells)} cells, the header {len(columns)}"
            found.rejected.append((line.number, why))
            continue
        cells = {name: cell.value(padded) for name, cell in zip(columns, line.cells, strict=True)}
        found.rows.append((line.number, dict(cells)))
    return found
