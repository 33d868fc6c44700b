"""Split a text into the lines of its tables, each with its cells: by separators, in frames, or as HTML.

A cell is an unchanged text, with its quotation marks. `cell_value` reads it. Lines of sqlcmd's columns without a
separator have one cell here, and `FixedColumns` splits them by the dashes of each header.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from html.parser import HTMLParser

from routing.errors import InputError, quote
from routing.importing.catalog.printed_lines import cut, is_fixed_width, lines_of
from routing.importing.catalog.views import NAMES
from routing.importing.import_faults import unreadable_file

TextLine = tuple[int, list[str]]
"""A line's number and its cells."""

LONGEST_CELL = 20_000
"""No column of the views is longer than 4,000 characters; a quote that stays open for more was none."""

_BOX = "│"
# Header, frame and rows of one table may have different lines.
_BOXES = str.maketrans(dict.fromkeys("║┃┆┇┊┋╎╏", _BOX))
_BARS = ("|", _BOX)
SEPARATORS = (",", "\t", ";", *_BARS)
# A quoted cell up to its separator, a cell without quotation marks, and a bar without a backslash before it.
_CLOSED = {
    separator: re.compile(rf'[ ]*"(?:[^"]|""){{0,{LONGEST_CELL}}}"[ ]*(?={re.escape(separator)}|\r|\n|\Z)')
    for separator in SEPARATORS
}
_PLAIN = {separator: re.compile(rf"[^{re.escape(separator)}\r\n]*") for separator in SEPARATORS}
_BETWEEN = {separator: re.compile(rf"(?<!\\){re.escape(separator)}") for separator in _BARS}
_EMPTY_TEXT = "\x00"
# SQL Server's tools, DataGrip, DBeaver, Oracle's tools and bulk exports show NULL in these forms.
_NULLS = frozenset(["<null>", "[null]", "(null)", "\\n"])
# Markdown and Jira show a value as code, in bold, struck out or as a link. Underscores may be part of a name.
_CODE = re.compile(
    r"(`+)([^`]+)\1|\{\{([^{}]+)\}\}|<(?:code|kbd|tt|samp)>([^<>]+)</(?:code|kbd|tt|samp)>", re.IGNORECASE
)
_DECORATED = re.compile(
    r"\*{1,3}([^*]+)\*{1,3}|~~([^~]+)~~|<(\w+://[^<>]+)>|\[([^\[\]]+)\]\([^()]*\)"
    r"|<(?:b|strong|i|em|u|s|del|ins|mark|small|span|a)(?: [^<>]*)?>([^<>]+)</[a-z]+>",
    re.IGNORECASE,
)
_UNSEEN = re.compile(r"<!--[^<>]*-->|\[\^[\w-]+\]")
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
# Tags of HTML that begin a new line in a cell, and the sign for it until the cell is complete.
_BREAKS, _LINE_BREAK = frozenset(["br", "p", "div", "li"]), "\x0b"
_LINE_END = re.compile(r"\r\n|\r|\n")
_MOST_SHARED = 20_000
_TRIED = 100
_HEAD = 100_000
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
# The first line of a file that Export-Csv of Windows PowerShell writes.
TYPE_LINE = "#TYPE "
_TABLE = re.compile(r"<table\b[^>]*>\s*<(?:caption|col|colgroup|thead|tbody|tr)\b", re.IGNORECASE)
# Lines of box drawings and Markdown that separate rows.
_RULE = re.compile(r"(?=.*[-=\u2500\u2501\u2550])[-+=:|\s\u2500-\u257f]+")
# DuckDB and Polars show the types of columns below their names, above the line that ends the header.
_TYPES = re.compile(
    r"^([ \t]*[\u250c\u256d\u250f\u2554].*\n.*\n(?:[ \t\u2502-]+\r?\n)?)[ \t]*\u2502(?: *[a-z][^\u2502\n]*\u2502)+"
    r"(?=[ \t]*\r?\n[ \t]*[\u251c\u2521\u2523\u255e-\u2560])",
    re.MULTILINE,
)
_MARKDOWN_RULE = re.compile(r"^[ \t]*(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|[ \t\r]*$", re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_QUOTED_PRINTABLE = re.compile(
    r"^Content-Transfer-Encoding:[ \t]*quoted-printable|<[a-z]+ [a-z-]+=3D", re.IGNORECASE | re.MULTILINE
)
_JIRA_HEADER = "||"
_ASCIIDOC = re.compile(r"^\|={3,}[ \t\r]*$", re.MULTILINE)
# What osql and FreeTDS print before each line that they read, as in 1> 2>
_PROMPTS = re.compile(r"^(?:\d{1,9}> )+", re.MULTILINE)
# A mail quotes each line of the mail before it.
_MARKS = re.compile("^[\ufeff\x1a]+", re.MULTILINE)
_INDENTED_DASHES = re.compile(r"^([ \t]+)-+(?: -+)+ *\r?$", re.MULTILINE)
_QUOTE_SIGNS = re.compile(r"^[ \t]*(?:> ?)+", re.MULTILINE)


class TextForm(Enum):
    """Form in which the tables of a text are written."""

    SEPARATED = "separators between cells"
    FIXED = "columns of fixed width"
    FRAMED = "a frame around rows"
    HTML = "HTML"


@dataclass(frozen=True)
class TextLayout:
    """The form of a text, and its separator; ``is_typed`` where PowerShell's type stands above its header."""

    form: TextForm
    separator: str = ""
    is_typed: bool = False
    has_entities: bool = False


def find_layout(text: str, file: str) -> tuple[TextLayout, str]:
    """Return the layout of a text, and the text without a first line that names its separator or type.

    Raises InputError for an invalid separator, and for AsciiDoc.
    """
    text = _without_margin(text)
    if is_html(text):
        if _QUOTED_PRINTABLE.search(text) is not None:
            raise unreadable_file(file, "it is a mail in quoted-printable", "save the mail as HTML")
        return TextLayout(TextForm.HTML), text
    text = _frame_simple_tables(text)
    if _ASCIIDOC.search(text):
        raise unreadable_file(
            file, "it is a table of AsciiDoc", "export it as CSV, or with sbroute import queries"
        )
    if is_fixed_width(text):
        return TextLayout(TextForm.FIXED), text
    first = _LINE_END.split(text, maxsplit=1)[0]
    separator_line = _SEPARATOR_LINE.fullmatch(first.strip(" "))
    is_typed = first.startswith(TYPE_LINE)
    if separator_line is not None or is_typed:
        # Its line end stays, so that the lines keep their numbers.
        text = text[len(first) :]
    if separator_line is not None:
        if separator_line[1] not in SEPARATORS:
            raise unknown_separator(separator_line[1], file)
        return TextLayout(TextForm.SEPARATED, separator_line[1]), text
    separator, head = _find_separator(text[:_HEAD].translate(_BOXES))
    if separator == _BOX:
        text = _TYPES.sub(rf"\1{_INNER_RULE}", text.translate(_BOXES))
    if separator in _BARS and head.lstrip().startswith(separator):
        is_marked = head.lstrip().startswith(_JIRA_HEADER) or _MARKDOWN_RULE.search(text) is not None
        has_entities = separator == "|" and is_marked and "+-" not in text
        return TextLayout(TextForm.FRAMED, separator, has_entities=has_entities), text
    return TextLayout(TextForm.SEPARATED, separator, is_typed), text


_SIMPLE_RULE = re.compile(r" *=+(?: +=+)+ *")
_INNER_RULE, _RULES_OF_TABLE = "|---|", 3


def _frame_simple_tables(text: str) -> str:
    """Return a text with bars between the cells of reStructuredText's simple tables.

    A rule such as ``====  ====`` stands above and below a header, and at the end. The last column has no border.
    """
    lines, spans, rules = lines_of(text) if "==" in text[:_HEAD] else [], list[tuple[int, int]](), 0
    if not any(map(_SIMPLE_RULE.fullmatch, lines)):
        return text
    for place, line in enumerate(lines):
        if _SIMPLE_RULE.fullmatch(line) is not None:
            columns = [match.span() for match in re.finditer("=+", line)]
            rules = rules + 1 if columns == spans else 1
            spans = columns if rules < _RULES_OF_TABLE else []
            lines[place] = _INNER_RULE if spans else ""
        elif spans:
            lines[place] = _frame(line, spans) if line.strip() else _INNER_RULE
    return "\n".join(lines)


def _frame(line: str, spans: Sequence[tuple[int, int]]) -> str:
    cells = cut(line, [*spans[:-1], (spans[-1][0], spans[-1][1] + len(line))])
    if cells is None or line[: spans[0][0]].strip():
        # More cells than the header has: the line is rejected.
        cells = [*("" for _ in spans), line]
    return "|" + "|".join(cell.replace("|", "\\|") for cell in cells) + "|"


def is_html(text: str) -> bool:
    """Return whether a text has a table of HTML."""
    return _TABLE.search(text, 0, _HEAD) is not None


def _without_margin(text: str) -> str:
    """Return a text without marks of files, and without what mails and pages put before each line."""
    if "\ufeff" in text or "\x1a" in text:
        # The mark of a file that was added to another one, or of the end of one.
        text = _MARKS.sub("", text)
    if text.lstrip().startswith(">") and all(line.lstrip()[:1] in ("", ">") for line in lines_of(text)):
        text = _QUOTE_SIGNS.sub("", text)
    text = _PROMPTS.sub("", text) if "1> " in text else text
    indented = _INDENTED_DASHES.search(text)
    return text if indented is None else text.replace("\n" + indented[1], "\n").removeprefix(indented[1])


def unknown_separator(character: str, file: str) -> InputError:
    """Return the error that a file has cells between other signs."""
    return unreadable_file(file, f"its separator {quote(character)} is not one of , ; | and tab")


def _find_separator(text: str) -> tuple[str, str]:
    """Choose the separator that splits the first line with two column names, else the first line, most."""
    heads = [line.split("\r", 1)[0] for line in text[:_HEAD].lstrip("\r\n").split("\n")[:_TRIED]]
    with_names = (head for head in heads for separator in SEPARATORS if _count_names(head, separator)[0] > 1)
    head = next(with_names, heads[0])
    return max(SEPARATORS, key=lambda separator: _count_names(head, separator)), head


def _count_names(head: str, separator: str) -> tuple[int, int]:
    cells = [cell.strip().strip('"').lower() for cell in head.split(separator)]
    return sum(cell in NAMES for cell in cells), len(cells)


def split_lines(text: str, layout: TextLayout) -> Iterator[TextLine]:
    """Yield the lines of a text. A line without anything is one of a blank cell; a rule is one of dashes."""
    if layout.form is TextForm.HTML:
        yield from _HtmlRows(text).lines
    elif layout.form is TextForm.FIXED:
        yield from ((number, [line]) for number, line in enumerate(lines_of(text), start=1))
    elif layout.form is TextForm.FRAMED:
        yield from _framed(text, layout)
    else:
        yield from separated(text, layout.separator)


class _Pieces(dict[str, str]):
    """Shares equal pieces of lines up to a limit. A piece that is not a complete cell raises KeyError."""

    def __missing__(self, piece: str) -> str:
        if '"' in piece and (piece.count('"') != 2 or not (piece[0] == piece[-1] == '"')):
            raise KeyError(piece)
        if len(self) < _MOST_SHARED:
            self[piece] = piece
        return piece


def separated(text: str, separator: str) -> Iterator[TextLine]:
    """Yield the lines of a text with separators.

    A cell is quoted only if it begins with a quotation mark and is closed before a separator or the line's end. It
    may contain line ends. Any other quotation mark is a character, so no value can swallow the rest of a file.
    """
    whole = _Pieces().__getitem__
    position, number = 0, 1
    while position < len(text):
        line_end = _LINE_END.search(text, position)
        stop, after = (len(text), len(text)) if line_end is None else line_end.span()
        line = text[position:stop]
        try:
            yield number, list(map(whole, line.split(separator)))
            position, number = after, number + 1
            continue
        except KeyError:
            pass
        start, cells = number, []
        while True:
            match = _CLOSED[separator].match(text, position)
            if match is not None:
                number += len(_LINE_END.findall(match.group(0)))
            else:
                match = _PLAIN[separator].match(text, position)
                assert match is not None  # it matches nothing as well
            cells.append(match.group(0))
            position = match.end()
            if not text.startswith(separator, position):
                break
            position += len(separator)
        position += 2 if text.startswith("\r\n", position) else 1
        number += 1
        yield start, cells


def _framed(text: str, layout: TextLayout) -> Iterator[TextLine]:
    bar = layout.separator
    for number, line in enumerate(lines_of(text), start=1):
        inside = line.strip()
        if _RULE.fullmatch(inside) is not None:
            continue
        if not inside.startswith(bar):
            yield number, [line]
            continue
        if inside.startswith(_JIRA_HEADER) and inside.endswith(_JIRA_HEADER):
            # A header of Jira and Confluence.
            inside = inside.replace(_JIRA_HEADER, bar)
        inside = inside[1:-1] if inside.endswith(bar) and len(inside) > 1 else inside[1:]
        cells = [cell.strip().replace(f"\\{bar}", bar) for cell in _BETWEEN[bar].split(inside)]
        # Only its bars distinguish a row of one cell from a printed line.
        yield number, list(map(_undecorated, cells)) if layout.has_entities else cells


def _undecorated(cell: str) -> str:
    cell = _BREAK.sub("\n", _UNSEEN.sub("", cell)).strip()
    while (code := _CODE.fullmatch(cell)) is None and (match := _DECORATED.fullmatch(cell)) is not None:
        cell = next(filter(None, match.groups())).strip()
    if code is not None and code[2] is not None:
        # Code has neither entities nor escaped characters.
        return code[2].strip()
    text = cell if code is None else code[3] or code[4]
    return html.unescape(_ESCAPED.sub(r"\1", text)).strip()


@dataclass
class _HtmlTable:
    lines: list[TextLine] = field(default_factory=list)
    cells: list[str] | None = None
    is_in_cell: bool = False


class _HtmlRows(HTMLParser):
    """The rows of the tables of a page; a text beside them is a line of one cell.

    A table in a cell comes before the table around it, and its texts are lines of the cell.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[TextLine] = []
        self._tables: list[_HtmlTable] = []
        self.feed(text)
        self.close()
        while self._tables:
            self._end_table()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a table, row or cell."""
        table = self._tables[-1] if self._tables else None
        if tag == "table":
            if table is not None and table.is_in_cell and table.cells:
                self._add_text(_shown_lines(table.cells[-1]))
            self._tables.append(_HtmlTable())
        elif table is None:
            return
        elif tag == "tr":
            self._end_row(table)
            table.cells = []
        elif tag in ("td", "th") and table.cells is not None:
            table.cells.append("")
            table.is_in_cell = True
        elif tag in _BREAKS:
            self._add_to_cell(table, _LINE_BREAK)

    def handle_endtag(self, tag: str) -> None:
        """End a row, cell or table."""
        if not self._tables:
            return
        if tag in ("td", "th"):
            self._tables[-1].is_in_cell = False
        elif tag == "tr":
            self._end_row(self._tables[-1])
        elif tag == "table":
            self._end_table()

    def handle_data(self, data: str) -> None:
        """Add to the text of a cell, or keep a text outside the tables."""
        table = self._tables[-1] if self._tables else None
        if table is not None and table.cells is not None:
            self._add_to_cell(table, data)
        else:
            self._add_text(data)

    def _add_text(self, text: str) -> None:
        if text.strip():
            self.lines.append((self.getpos()[0], [text]))

    def _add_to_cell(self, table: _HtmlTable, text: str) -> None:
        if table.is_in_cell and table.cells:
            table.cells[-1] += text

    def _end_row(self, table: _HtmlTable) -> None:
        if table.cells:
            table.lines.append((self.getpos()[0], list(map(_shown_lines, table.cells))))
        table.cells, table.is_in_cell = None, False

    def _end_table(self) -> None:
        table = self._tables.pop()
        self._end_row(table)
        number = self.getpos()[0]
        self.lines += [(number, [""]), *table.lines, (number, [""])]
        if self._tables:
            texts = (cell for _, cells in table.lines for cell in cells)
            # No value is longer, and each table around this one has the text again.
            self._add_to_cell(self._tables[-1], _LINE_BREAK.join(("", *texts, ""))[: 2 * LONGEST_CELL])


def _shown_lines(cell: str) -> str:
    """Return the text of a cell of HTML with the line ends that a browser shows."""
    return "\n".join(" ".join(line.split()) for line in cell.split(_LINE_BREAK)).strip()


def cell_value(cell: str, *, padded: bool, is_all_quoted: bool = False, has_quotes: bool = True) -> str | None:
    """Return the text of a cell, None for NULL.

    ``padded`` if the tool fills columns with blanks, ``is_all_quoted`` if it quotes everything. Quotes then do not
    distinguish the text NULL from no value. ``has_quotes`` if the tool added the quotes around a cell.
    """
    inside = unquoted(cell.strip(" ")) if has_quotes else None
    if inside is not None:
        # The query and the tool both quoted the text, so unwrap it again.
        unquoted_again = unquoted(inside)
        text = inside if unquoted_again is None else unquoted_again
        return None if is_all_quoted and text == "NULL" else text
    text = cell.strip(" \t") if padded else cell
    if text == _EMPTY_TEXT:
        # So bcp writes an empty text, and NULL as nothing.
        return ""
    return None if is_null(text) else text


def is_null(cell: str) -> bool:
    """Return whether an unquoted cell is the word of a tool for NULL."""
    return cell.strip(" \t") == "NULL" or cell.strip(" \t").lower() in _NULLS


def cell_text(cell: str) -> str:
    """Return the text of a cell, without quotation marks and the blanks around it."""
    inside = unquoted(cell.strip(" "))
    return (cell if inside is None else inside).strip()


def is_plain_cell(cell: str) -> bool:
    """Return whether a cell has text without quotation marks around it."""
    return bool(cell) and unquoted(cell.strip(" ")) is None


def unquoted(text: str) -> str | None:
    """Return the text between quotation marks, or None without them or with single ones inside."""
    if len(text) < 2 or not text[0] == text[-1] == '"':
        return None
    inside = text[1:-1]
    return inside.replace('""', '"') if '"' not in inside.replace('""', "") else None
