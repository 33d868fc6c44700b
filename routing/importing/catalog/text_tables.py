"""Read the tables of a text into result sets, with the same steps for all layouts.

A header names the columns: a line with dashes below it, or one of column names. Without a header, the layout that
the rows fit names them. A line is a row if its cells fit their columns. Lines that tools print between tables are
skipped, and a line that may be a row is rejected with its place.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from routing.importing.catalog import named_servers, row_check, text_lines, views
from routing.importing.catalog import printed_lines as printed
from routing.importing.catalog.cell_rows import SharedTexts
from routing.importing.catalog.cell_values import read_cell
from routing.importing.catalog.text_lines import TextForm, TextLayout, TextLine
from routing.importing.import_faults import unreadable_file

_AT_ONCE = 2_000
_TRIED = 100
_MANY_BLANKS = "  "
_STATUS = "transmission_status"
_SCREEN = 79
"""sqlcmd wraps at 80 characters where nothing else is said; a column of dashes as long as that was wrapped."""
_OTHER_SEPARATORS = "~^#:!@*/\\\x01\x1f\u00a6\u00a7"
_ODD_BEGINNINGS = ("-", '"-', "(", "\uff08", "#", "=", "*", ":-")
_TITLES = ("#", "h")
_KEPT_TITLES = 100
_LOG_ENTRY = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{2,7})[ \t]{1,9}(?:spid\d{1,9}s?|Server|Logon|Backup)[ \t]{1,20}(\S.*)"
)
_HEAD = 200
_Fixed = printed.FixedColumns | None
_NO_LINE: TextLine = (0, [""])


def result_sets(text: str, file: str, view: views.CatalogView | None) -> list[views.ResultSet]:
    """Return all result sets of a text. ``view`` is the file's view if it is known.

    Raises InputError without a header or a layout that fits the rows, and for lines that sqlcmd wrapped.
    """
    layout, text = text_lines.find_layout(text, file)
    reader = _TextReader(file, view, layout, is_plain=text.isascii(), has_zeros="\x00" in text)
    return reader.read(text_lines.split_lines(text, layout))


@dataclass
class _Table:
    """A table that is being read. ``lines`` are not in its result set yet."""

    result_set: views.ResultSet
    width: int
    is_printed: bool
    padded: bool
    fixed: _Fixed = None
    header: Sequence[str] = ()
    lines: list[TextLine] = field(default_factory=list)
    is_all_quoted: bool | None = None
    texts: SharedTexts = field(default_factory=SharedTexts)
    flushed: int = 0
    is_counted: bool = False


class _TextReader:
    def __init__(
        self, file: str, view: views.CatalogView | None, layout: TextLayout, *, is_plain: bool, has_zeros: bool
    ) -> None:
        self._file, self._view, self._layout = file, view, layout
        self._is_plain, self._has_zeros = is_plain, has_zeros
        self._is_separated = layout.form is TextForm.SEPARATED
        self._tables: list[_Table] = []
        self._table: _Table | None = None
        self._divided: _Table | None = None
        self._database = printed.NO_DATABASE
        self._servers: named_servers.ServerMarks = {}
        self._titles: deque[tuple[str, frozenset[str]]] = deque(maxlen=_KEPT_TITLES)
        self._written: dict[str | None, str] = {}
        self._early: list[tuple[int, str]] = []
        self._is_blank, self._is_first, self._was_error = True, True, False
        self._skipped: int | None = None
        self._one_header: str | None = None

    def read(self, lines: Iterable[TextLine]) -> list[views.ResultSet]:
        line: TextLine | None = None
        for below in lines:
            if line is not None:
                self._take(line, below)
            line = below
        if line is not None:
            self._take(line, _NO_LINE)
        sets = [table.result_set for table in self._tables]
        for table in self._tables:
            self._flush(table)
            table.result_set.server = self._written.get(named_servers.find_server(table.result_set.servers))
        if not sets and self._view is not None:
            raise unreadable_file(self._file, "it is empty" if self._is_blank else "it has no table with a header")
        if sets:
            sets[0].rejected[:0] = self._early
        for part in sets:
            part.rejected.sort()
        return sets

    def _take(self, line: TextLine, below: TextLine) -> None:
        cells, table = line[1], self._table
        first, next_first = cells[0], below[1][0]
        if (
            table is not None
            and 1 < len(cells) == table.width
            and first
            and not first.isspace()
            and not first.startswith(_ODD_BEGINNINGS)
            and not next_first.startswith(_ODD_BEGINNINGS)
            and first.strip('" ').lower() not in views.NAMES
            and printed.find_error(self._text(cells)) is None
            and not self._was_error
        ):
            # Nearly all lines are rows like this.
            table.lines.append(line)
            if len(table.lines) >= _AT_ONCE:
                self._flush(table)
            return
        self._take_other_line(line, below)

    def _take_other_line(self, line: TextLine, below: TextLine) -> None:
        number, cells = line
        text = self._text(cells)
        self._refuse_wrapped(text, self._text(below[1]))
        was_error, self._was_error = self._was_error, False
        if number == self._skipped:
            return
        if not text.strip(f" \t\r{self._layout.separator}"):
            self._end_printed()
            return
        self._is_blank = False
        if self._table is None and printed.are_dashes(text) and self._layout.form is TextForm.FIXED:
            # SELECT DB_NAME() has no name above its dashes, as SELECT @@SERVERNAME has none.
            self._one_header = ""
            return
        header, self._one_header = self._one_header, None
        if header is not None and printed.is_remark(self._text(below[1]), may_be_row=False):
            if views.names_database(header):
                self._leave(printed.DatabaseMark(text.strip()))
                return
            if not header:
                self._titles.append(named_servers.title_of_cell(text))
        has_width = self._table is not None and 1 < self._table.width == len(cells)
        # A status that a tool cut off may end like the name of a connection, and a name may begin like a heading.
        is_fixed = self._table is not None and self._table.fixed is not None
        is_cell = is_fixed and text.rstrip().endswith(printed.ELLIPSES)
        is_cell |= (is_fixed or not self._is_printed_line(cells)) and text.startswith(_TITLES)
        if self._begin(line, below):
            self._is_first = False
        elif not (has_width or is_cell) and (server := named_servers.find_connection(text)) is not None:
            if server.kind in named_servers.TITLES:
                self._titles.append(server[:2])
                self._leave(self._database)
                return
            self._servers = named_servers.connect(self._servers, server)
            self._written.update(dict.fromkeys(server.words, server.name))
            self._leave(printed.find_database(server.rest) or printed.NO_DATABASE)
        elif (error := printed.find_error(text)) is not None:
            self._was_error = True
            self._reject_incomplete(number, f"the server reports error {error}", text)
        elif was_error and not has_width:
            # The error's own text.
            pass
        elif (database := printed.find_database(text)) is not None and self._is_printed_line(cells):
            self._leave(database)
        elif printed.is_remark(text, may_be_row=has_width or is_cell):
            self._check_count(number, printed.find_count(text))
            self._end_printed()
        elif self._table is not None:
            self._add(self._table, line)
        else:
            self._take_outside(line)

    def _text(self, cells: Sequence[str]) -> str:
        return self._layout.separator.join(cells) if len(cells) > 1 else cells[0]

    def _is_printed_line(self, cells: Sequence[str]) -> bool:
        """Return True if a line cannot be a row: it has no cells beside its first, and a table has more."""
        return len(cells) == 1 and (self._table is None or self._table.width > 1 or self._table.fixed is not None)

    def _leave(self, mark: printed.DatabaseMark) -> None:
        """End the table for the next database or server."""
        self._database = mark
        self._end_printed()
        self._divided, self._table = self._table or self._divided, None

    def _end_printed(self) -> None:
        """End a table that a tool has printed. A spreadsheet may have blank lines between its rows."""
        if self._table is not None and self._table.is_printed:
            self._table = None

    def _check_count(self, number: int, count: int | None) -> None:
        """Reject a count of more rows than the table above it has."""
        table = self._tables[-1] if self._tables else None
        if table is None or table.is_counted or count is None:
            return
        table.is_counted, lines = True, table.flushed + len(table.lines)
        if lines < count:
            self._reject(number, f"it counts {count} rows, and the table above it has {lines}: export it again")

    def _reject(self, number: int, why: str) -> None:
        rejected = self._tables[-1].result_set.rejected if self._tables else self._early
        rejected.append((number, why))

    def _reject_incomplete(self, number: int, why: str, line: str) -> None:
        self._reject(number, f"{why}, so the export is incomplete: {line.strip()[:100]}")

    def _add_title(self, line: str) -> str | None:
        caption = named_servers.find_caption(line)
        if caption is None:
            return None
        self._titles.append(caption[:2])
        return caption.kind

    def _add(self, table: _Table, line: TextLine) -> None:
        if not self._is_separated and table.fixed is None and len(line[1]) == 1 < table.width:
            # A line outside a frame, or a text below an HTML table.
            self._table = None
            self._take_outside(line)
            return
        if len(line[1]) == 1 < table.width:
            self._add_title(line[1][0])
        table.lines.append(line)
        if len(table.lines) >= _AT_ONCE:
            self._flush(table)

    def _take_outside(self, line: TextLine) -> None:
        """Skip a printed line outside tables, unless it can be a row of the table above."""
        number, cells = line
        if not self._is_separated and printed.is_tool_error(cells[0]):
            self._reject_incomplete(number, "a tool reports an error or a limit", cells[0])
            return
        if len(cells) == 1 and self._add_title(cells[0]) in named_servers.TITLES:
            self._leave(self._database)
            return
        if not self._tables:
            if self._is_separated:
                self._table = _Table(self._result_set(()), len(cells), is_printed=False, padded=_is_padded(cells))
                self._table.lines.append(line)
                self._tables.append(self._table)
                self._is_first = False
            return
        if self._divided is not None and len(cells) > 1:
            self._table = replace(
                self._divided,
                result_set=self._result_set(self._divided.result_set.columns),
                lines=[line],
                texts=SharedTexts(),
                flushed=0,
                is_counted=False,
            )
            self._tables.append(self._table)
            self._divided = None
            return
        table = self._tables[-1]
        columns = table.result_set.columns
        row = table.fixed.split(cells[0]) if table.fixed is not None else cells
        values = [self._value(table, cell) for cell in row] if isinstance(row, list) else []
        if row_check.fits(columns, values, are_texts_enough=True):
            self._reject(number, "it looks like a row, but is below the end of its table")

    # Headers

    def _begin(self, line: TextLine, below: TextLine) -> bool:
        cells = line[1]
        if self._layout.form is TextForm.FIXED:
            is_inside = self._table is not None
            fixed = printed.find_columns(cells[0], below[1][0], self._file)
            if fixed is None or (is_inside and not views.NAMES.intersection(fixed.names)):
                return False
            self._skipped = below[0]
            header = fixed.names[0]
            if len(fixed.names) == 1 and (views.names_database(header) or views.names_server(header)):
                # The next line is a name, as of SELECT @@SERVERNAME or DB_NAME().
                self._table, self._one_header = None, header
            else:
                self._open(fixed.names, cells, is_printed=True, fixed=fixed)
            return True
        names = views.fold_columns(map(text_lines.cell_text, cells))
        dashes = self._dashes(below[1], len(cells))
        has_dashes = dashes and (self._is_first or any(name in views.NAMES for name in names))
        if self._is_separated and self._is_first and len(cells) == len(below[1]) == 1:
            under = text_lines.cell_text(below[1][0]).lower()
            if names[0] != under and {names[0], under} <= views.NAMES:
                why = "each of its cells is on a line of its own"
                raise unreadable_file(self._file, why, "export it as CSV, or with sbroute import queries")
        if not (has_dashes or self._names_columns(names) or (self._layout.is_typed and self._is_first)):
            return False
        if not self._is_separated and len(cells) == 1 and cells[0].strip().lower() not in views.NAMES:
            return False
        self._take_above(names)
        self._open(names, cells, is_printed=has_dashes or not self._is_separated)
        self._skipped = below[0] if has_dashes else None
        return True

    def _dashes(self, cells: Sequence[str], width: int) -> bool:
        """Return True if cells are the dashes below a header. psql has a cross between them."""
        if len(cells) == 1 < width and cells[0].count("+") == width - 1:
            cells = cells[0].split("+")
        texts = [text_lines.cell_text(cell) for cell in cells]
        if len(texts) > 1 and not texts[-1]:
            # DBeaver ends each line with a separator.
            texts.pop()
        return len(cells) == width and all("-" in text and not text.strip("-:") for text in texts)

    def _names_columns(self, names: Sequence[str]) -> bool:
        """Return whether half of the cells are names of columns, and at least two except in the first line.

        Names that identify a view are always a header. A view with different columns in versions of SQL Server
        always has a header, mostly of unknown names.
        """
        headings = sum(name in views.NAMES for name in names)
        if headings and views.find_view_by_columns(names) is not None:
            return True
        if self._is_first and self._view is not None and not self._view.layout and headings > 1:
            return True
        return headings >= (1 if self._is_first else 2) and 2 * headings >= len(names)

    def _open(
        self, names: tuple[str, ...], header: Sequence[str], *, is_printed: bool, fixed: _Fixed = None
    ) -> None:
        current, result_set = self._table, self._result_set(names)
        self._divided = None
        if (
            current is not None
            and current.is_printed
            and (current.result_set.columns, current.result_set.database) == (names, self._database.name)
            and current.fixed == fixed
        ):
            # sqlcmd -h repeats the header within a result set.
            return
        has_blanks = len(header) > 1 and all(cell.startswith(" ") for cell in header[1:])
        padded = is_printed or not self._is_separated or has_blanks
        self._table = _Table(result_set, len(names), is_printed, padded, fixed, header)
        self._tables.append(self._table)

    def _result_set(self, columns: tuple[str, ...]) -> views.ResultSet:
        return views.ResultSet(
            columns,
            database=self._database.name,
            has_certain_database=self._database.is_certain,
            servers=self._servers,
            titles=tuple(self._titles),
        )

    def _take_above(self, names: Sequence[str]) -> None:
        """Reject the lines above the first header, if they are rows of nothing and the header tells a view."""
        above = self._tables[0] if len(self._tables) == 1 else None
        if above is None or above.result_set.columns or views.find_view_by_columns(names) is None:
            return
        if not self._find_layouts(above.lines):
            self._early += [(number, "it is above the first header") for number, _ in above.lines]
            self._tables.clear()
            self._table = None

    def _refuse_wrapped(self, text: str, below: str) -> None:
        """Raise InputError where dashes go on in the next line; a short name of dashes alone is a value there."""
        if not self._is_separated and self._layout.form is not TextForm.FIXED:
            return
        separator = self._layout.separator
        text, below = (line.replace(separator, " ") if separator else line for line in (text, below))
        is_one_column = " " not in text.strip() and " " not in below.strip()
        if printed.are_dashes(text) and printed.are_dashes(below) and not (is_one_column and len(text) < _SCREEN):
            raise views.export_again(self._file, "sqlcmd has wrapped its lines", "-w 65535")

    # Rows

    def _flush(self, table: _Table) -> None:
        """Move the lines of a table into its result set, or reject them."""
        lines, table.lines = table.lines, []
        table.flushed += len(lines)
        if not lines and table.result_set.columns:
            return
        if not table.result_set.columns:
            table.result_set.columns = self._find_layout(lines)
            table.width = len(table.result_set.columns)
        result_set = table.result_set
        names, numbers, rows = result_set.columns, list[int](), list[Sequence[str]]()
        cut, above_number = set[int](), next(reversed(result_set.rows.numbers), None)
        is_framed, above = self._layout.form is TextForm.FRAMED, list[str]()
        twice = sorted(name for name in views.KEPT.intersection(names) if names.count(name) > 1)
        for number, cells in lines:
            row = self._row(table, cells)
            is_complete = is_framed and len(cells) == len(names)
            if is_complete and above and row_check.is_wrapped(names, above, cells):
                row = "a row is wrapped over several lines"
                if numbers and numbers[-1] == number - 1:
                    rows.pop()
                    result_set.rejected.append((numbers.pop(), row))
            elif is_complete:
                above = cells
            if twice and not isinstance(row, str):
                row = row_check.find_clash(twice, names, row) or row
            if self._has_zeros and any("\x00" in cell and len(cell) > 1 for cell in row):
                row = "it has characters of the code 0, as text in another encoding has"
            if not self._is_separated and not isinstance(row, str):
                broken = (
                    name for name, cell in zip(names, row, strict=True) if name in views.LONGEST and "\n" in cell
                )
                row = next((f"{name} has several lines, so it may be several names" for name in broken), row)
            if isinstance(row, str):
                result_set.rejected.append((number, row))
                if above_number is not None and len(cells) < len(names) and self._is_separated:
                    cut.add(above_number)
                above_number = None
            else:
                above_number = number
                numbers.append(number)
                rows.append(row)
        if table.is_all_quoted is None:
            all_cells = (cell for row in (table.header, *rows) for cell in row)
            table.is_all_quoted = self._is_separated and not any(map(text_lines.is_plain_cell, all_cells))
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        values = {
            name: self._values(table, cells) if name in views.KEPT or row_check.checks(name) else cells
            for name, cells in zip(names, columns, strict=True)
        }
        misfits: dict[int, str] = {}
        for name in filter(row_check.checks, values):
            for place, why in row_check.find_misfits(name, values[name], is_complete=table.fixed is not None):
                misfits.setdefault(place, why)
        if misfits:
            result_set.rejected += [(numbers[place], why) for place, why in misfits.items()]
            fitting = [place for place in range(len(numbers)) if place not in misfits]
            numbers = [numbers[place] for place in fitting]
            values = {name: [cells[place] for place in fitting] for name, cells in values.items()}
        result_set.rows.add(numbers, values, table.texts, is_plain=self._is_plain)
        _doubt_statuses(result_set, cut)

    def _row(self, table: _Table, cells: list[str]) -> list[str] | str:
        """Return the cells of a line, one for each column, or the reason why it is not a row."""
        if table.fixed is not None:
            return table.fixed.split(cells[0])
        width, separator = len(table.result_set.columns), self._layout.separator
        if len(cells) == width:
            return cells
        end = len(cells)
        while end > width and not cells[end - 1].strip():
            # Spreadsheets fill lines up with empty cells.
            end -= 1
        cells = cells[:end]
        if separator == "\t" and 1 < len(cells) < width:
            # Editors take blanks off the ends of lines, and with them the last empty cells of a grid.
            filled = [*cells, *[""] * (width - len(cells))]
            if self._may_be_row(table, filled):
                return filled
        if len(cells) > width and self._is_separated:
            joined = row_check.join_surplus(table.result_set.columns, cells, separator)
            if joined is not None:
                return joined
        return cells if len(cells) == width else f"it has {len(cells)} cells, the header {width}"

    def _may_be_row(self, table: _Table, cells: list[str]) -> bool:
        """Return False for the rest of a status with a line end: no handle of a conversation begins it."""
        names = table.result_set.columns
        typed = _STATUS in names and "conversation_handle" in names
        return not typed or row_check.fits(names, [self._value(table, cell) for cell in cells])

    def _values(self, table: _Table, cells: Sequence[str]) -> Sequence[str | None]:
        value_by_cell = {cell: self._value(table, cell) for cell in set(cells)}
        return list(map(value_by_cell.__getitem__, cells))

    def _value(self, table: _Table, cell: str) -> str | None:
        has_quotes = self._is_separated or views.VIEW_NAME in table.result_set.columns
        return text_lines.cell_value(
            cell, padded=table.padded, is_all_quoted=bool(table.is_all_quoted), has_quotes=has_quotes
        )

    # Layouts of tables without a header

    def _find_layout(self, lines: Sequence[TextLine]) -> tuple[str, ...]:
        fitting = self._find_layouts(lines)
        if len(fitting) != 1:
            header = lines[0][1][0].lower()
            for sign in _OTHER_SEPARATORS if len(lines[0][1]) == 1 else ():
                if views.find_view_by_columns([name.strip(' "') for name in header.split(sign)]) is not None:
                    raise text_lines.unknown_separator(sign, self._file)
            names = header.split()
            if len(lines[0][1]) == 1 and views.find_view_by_columns(names) is not None:
                why = (
                    f"its columns are separated only by blanks, so cells cannot be recognised: {', '.join(names)}"
                )
                raise unreadable_file(self._file, why, "export it as CSV, or with sbroute import queries")
            why = f"no line names the columns of a view, and its {len(lines[0][1])} columns are unknown"
            raise unreadable_file(self._file, why, "export it with a header, or with sbroute import queries")
        return fitting[0]

    def _find_layouts(self, lines: Sequence[TextLine]) -> list[tuple[str, ...]]:
        """Return the layouts that most of the first rows of a table without a header fit."""
        tried, padded = [cells for _, cells in lines[:_TRIED]], _is_padded(lines[0][1])
        named = self._view or views.VIEWS.get(text_lines.cell_text(tried[0][0]).lower())
        if named is None:
            return []
        # Those of the queries, the view's own, and its own after added columns.
        heads = ((), named.added_columns, (views.VIEW_NAME, *named.added_columns))
        own_layouts = [(*head, *named.layout) for head in heads if named.layout and self._view is not None]
        return [
            layout
            for layout in (*named.of_queries, *own_layouts)
            if layout and 2 * sum(_fits_layout(layout, cells, named, padded) for cells in tried) > len(tried)
        ]


def read_error_log(text: str) -> views.ResultSet | None:
    """Return the first line of each entry of a file ERRORLOG, as SQL Server writes it, or None for other texts."""
    if _LOG_ENTRY.match(text[:_HEAD]) is None:
        return None
    matches = ((number, _LOG_ENTRY.match(line)) for number, line in enumerate(text.splitlines(), 1))
    entries = [(number, match[1], match[2]) for number, match in matches if match is not None]
    numbers, dates, texts = zip(*entries, strict=True)
    part = views.ResultSet(("log_date", "text"))
    part.rows.add(numbers, {"log_date": dates, "text": texts}, SharedTexts(), is_plain=False)
    return part


def _doubt_statuses(result_set: views.ResultSet, above_fragments: Collection[int]) -> None:
    """Reject rows with a status that may continue in the line below, which is not a row."""
    if not above_fragments or _STATUS not in result_set.columns:
        return
    statuses = result_set.rows.column(_STATUS)
    for place, number in enumerate(result_set.rows.numbers):
        if number in above_fragments and statuses[place]:
            result_set.rows.faults[place] = f"{_STATUS} may go on in the next line, which is no row"


def _is_padded(cells: Sequence[str]) -> bool:
    return any(cell.endswith(_MANY_BLANKS) and text_lines.is_plain_cell(cell) for cell in cells)


def _fits_layout(layout: tuple[str, ...], cells: Sequence[str], view: views.CatalogView, padded: bool) -> bool:
    if len(cells) != len(layout):
        return False
    values: dict[str, object] = {}
    for name, cell in zip(layout, cells, strict=True):
        column, value = view.column(name), text_lines.cell_value(cell, padded=padded)
        try:
            values[name] = None if column is None else read_cell(value, column.kind)
        except ValueError:
            return False
        if row_check.checks(name) and any(row_check.find_misfits(name, [value], is_complete=False)):
            return False
    if not any(values.get(column.name) for column in view.columns):
        return layout in view.of_queries and bool(values["instance_name"])
    return all(values.get(column.name) not in (None, "") for column in view.columns if column.required)
