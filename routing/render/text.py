"""Write a document as text for a terminal, a pipe or a notebook, with wrapping and colours.

rich is imported only when a document is written, so JSON and help start faster.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from textwrap import wrap
from typing import TYPE_CHECKING

from routing.document import (
    Block,
    Cell,
    DataTable,
    Document,
    DocumentHeading,
    LabelledFact,
    ListItem,
    Paragraph,
    SqlStatement,
    TableColumn,
    Tone,
    TonedText,
    Words,
)
from routing.render.wording import count, find_tone, format_value, printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPE_WIDTH = 80
"""The width of a text that no terminal bounds."""
_STYLES = {
    Tone.STRONG: "bold",
    Tone.GOOD: "green",
    Tone.WAITING: "yellow",
    Tone.BAD: "bold red",
    Tone.QUIET: "dim",
}
# What begins a variable of sqlcmd or a placeholder of a migration tool, which are replaced in comments as well.
_PLACE_TO_FILL_IN = re.compile(r"\$(?=[({A-Za-z_])|\{(?=\{)|#(?=\{)")
_INDENT = 2
_GAP = 2
# Text narrower than this reads worse than a list of values, and so does an id that is broken.
_LEAST_TEXT = 16
_LONGEST_WORD = 40


def write_text(document: Document, *, width: int = PIPE_WIDTH, is_coloured: bool = False) -> str:
    """Return a document as lines of at most ``width`` characters, without a line break at the end.

    Statements keep their lines, however long they are. Names and other texts of the data are printed without
    control characters. Colours are ANSI sequences, only where ``is_coloured``.
    """
    from rich.console import Console

    buffer = io.StringIO()
    # In a kernel rich would also display the text itself.
    console = Console(
        file=buffer,
        width=max(width, 1),
        color_system="standard" if is_coloured else None,
        force_terminal=is_coloured,
        force_jupyter=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for line in _lines_of(document, max(width, 1)):
        console.print(line, soft_wrap=True)
    return "\n".join(line.rstrip() for line in buffer.getvalue().removesuffix("\n").split("\n"))


def write_sql(document: Document, otherwise: str = "There is nothing to run.") -> str:
    """Return only the statements of a document, each after a comment with its purpose.

    Statements for servers become a script for sqlcmd, with a block for each server. Each batch has a line that
    only sqlcmd understands. Other tools therefore reject the script before anything runs. ``otherwise`` is the
    comment for a document without statements.
    """
    statements = [block for block in document if isinstance(block, SqlStatement)]
    if not statements:
        return "\n".join(_comment_lines(otherwise))
    by_server: dict[str | None, list[SqlStatement]] = {}
    for statement in statements:
        by_server.setdefault(statement.server, []).append(statement)
    blocks = [
        "\n".join(_server_lines(server, server_statements)) for server, server_statements in by_server.items()
    ]
    if any(server is not None for server in by_server):
        blocks.insert(0, "\n".join([_STOP_AT_ERROR, *_comment_lines(_OF_SQLCMD)]))
    return "\n\n".join(blocks)


_STOP_AT_ERROR = ":on error exit"
"""Makes sqlcmd stop at an error, such as an unreachable server. It is not T-SQL."""
_OF_SQLCMD = (
    "Run this file with sqlcmd -i, or in SSMS in SQLCMD mode (menu Query). Elsewhere nothing of it"
    " runs: each batch"
    " has a line that begins with a colon, which is a syntax error there."
)


def _server_lines(server: str | None, statements: Sequence[SqlStatement]) -> Iterator[str]:
    """Yield the lines of the statements for a server: a batch, or several where variables are declared again."""
    is_known = server is None or not server.startswith("<")
    if server is not None:
        line = f":CONNECT {printable(server)}"
        yield from [line] if is_known else _comment_lines(line)
    has_declared = False
    for number, statement in enumerate(statements):
        if has_declared and _declares(statement):
            yield from ("GO", "", _STOP_AT_ERROR)
            has_declared = False
        elif number:
            yield ""
        has_declared |= _declares(statement)
        yield from _comment_lines(statement.purpose)
        for line in _statement_lines(statement):
            yield line if is_known or line.startswith("--") else f"-- {line}"
    if server is not None:
        yield "GO"


def _declares(statement: SqlStatement) -> bool:
    """Return True if a statement declares a variable, which a batch can do once."""
    return statement.text.startswith("DECLARE ") or "\nDECLARE " in statement.text


def _comment_lines(text: str) -> list[str]:
    """Return a text as T-SQL comments without placeholders that sqlcmd would replace."""
    if not text:
        return []
    harmless = _PLACE_TO_FILL_IN.sub(r"\g<0> ", printable_lines(text))
    lines = (line for part in harmless.split("\n") for line in wrap(part, PIPE_WIDTH - 3) or [""])
    return [f"-- {line}".rstrip() for line in lines]


def _lines_of(document: Document, width: int) -> Iterator[Text]:
    before: Block | None = None
    for block in document:
        if before is not None and _needs_gap(before, block):
            yield _as_text("")
        yield from _block_lines(block, width)
        before = block


def _needs_gap(before: Block, block: Block) -> bool:
    """Return True if a blank line separates two blocks."""
    if isinstance(before, DocumentHeading):
        return before.level == 1
    separated_types = (DocumentHeading, DataTable, SqlStatement)
    return isinstance(block, separated_types) or isinstance(before, separated_types)


def _block_lines(block: Block, width: int) -> Iterator[Text]:
    if isinstance(block, DocumentHeading):
        yield from _wrap("", _as_text(block.words, "bold"), width)
    elif isinstance(block, Paragraph):
        yield from _wrap(" " * _INDENT * block.indent, _as_text(block.words), width, hang=_INDENT * block.hang)
    elif isinstance(block, ListItem):
        yield from _wrap(f"{' ' * _INDENT * block.indent}{block.bullet} ", _as_text(block.words), width)
    elif isinstance(block, LabelledFact):
        label = _as_text((TonedText(f"{block.label}:", Tone.QUIET), " "))
        words = _join([label, _as_text(block.words)])
        yield from _wrap(" " * _INDENT * block.indent, words, width, hang=_INDENT)
    elif isinstance(block, SqlStatement):
        yield from (_as_text(f"{' ' * _INDENT * block.indent}{line}") for line in _statement_lines(block))
    else:
        yield from _table_lines(block, width)


def _statement_lines(block: SqlStatement) -> list[str]:
    return printable_lines(block.text).split("\n")


def _as_text(words: Words, style: str = "") -> Text:
    from rich.text import Text

    text = Text(style=style)
    for part in [words] if isinstance(words, (str, TonedText)) else words:
        if isinstance(part, TonedText):
            text.append(printable(part.text), _STYLES[part.tone])
        else:
            text.append(printable(part))
    return text


def _join(parts: Iterable[Text]) -> Text:
    from rich.text import Text

    return Text.assemble(*parts)


def _wrap(lead: str, text: Text, width: int, hang: int = 0) -> Iterator[Text]:
    """Yield a text in lines: ``lead`` before the first, as many spaces and ``hang`` before the others."""
    room = max(width - len(lead) - hang, 1)
    first, *other_lines = _fold(text, room + hang)
    yield _join([_as_text(lead), first])
    if other_lines:
        # The first line may be longer than the others: the rest of the text is wrapped again.
        remaining_text = text[_consumed(text, first) :]
        yield from (_join([_as_text(" " * (len(lead) + hang)), line]) for line in _fold(remaining_text, room))


def _consumed(text: Text, first: Text) -> int:
    """Return the number of characters of a text in its first line, with the spaces after it."""
    end = len(first.plain)
    while end < len(text.plain) and text.plain[end] == " ":
        end += 1
    return end


@cache
def _measure() -> Console:
    """Return the console that rich needs for wrapping. Each text sets its own width."""
    from rich.console import Console

    return Console(file=io.StringIO(), force_jupyter=False)


def _fold(text: Text, room: int) -> list[Text]:
    if text.cell_len <= room:
        text.rstrip()
        return [text]
    lines = text.wrap(_measure(), room, overflow="fold")
    for line in lines:
        line.rstrip()
    return list(lines) or [text]


def _table_lines(table: DataTable, width: int) -> Iterator[Text]:
    if table.title:
        yield from _wrap("", _as_text(table.title, "bold"), width)
    columns, rows = list(table.columns), [list(row) for row in table.rows]
    if sum(_natural_widths(columns, rows)) + _GAP * (len(columns) - 1) > width:
        columns, rows, lifted = _lift_constants(columns, rows)
        for column, value in lifted:
            yield from _block_lines(LabelledFact(column.name, _cell_words(value)), width)
        if lifted:
            yield _as_text("")
    widths = _fit_widths(columns, rows, width)
    if widths is None:
        yield from _record_lines(columns, rows, width)
    else:
        yield from _row_lines(columns, [TonedText(column.name, Tone.QUIET) for column in columns], widths)
        for row in rows:
            yield from _row_lines(columns, row, widths)
    if table.more:
        yield from _wrap("", _as_text(f"and {count(table.more, 'more row')}"), width)


def _cell_words(value: Cell) -> Words:
    tone = find_tone(value)
    text = format_value(value)
    return text if tone is None else TonedText(text, tone)


def _natural_widths(columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]]) -> list[int]:
    from rich.cells import cell_len

    return [
        max([cell_len(printable(column.name)), *(cell_len(format_value(row[at])) for row in rows)])
        for at, column in enumerate(columns)
    ]


def _lift_constants(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]]
) -> tuple[list[TableColumn], list[list[Cell]], list[tuple[TableColumn, Cell]]]:
    """Split off columns with the same value in all of two or more rows. Return the rest, and these columns."""
    if len(rows) < 2:
        return list(columns), [list(row) for row in rows], []
    constant = {at for at in range(len(columns)) if len({format_value(row[at]) for row in rows}) == 1}
    varying = [at for at in range(len(columns)) if at not in constant]
    if not varying:
        return list(columns), [list(row) for row in rows], []
    return (
        [columns[at] for at in varying],
        [[row[at] for at in varying] for row in rows],
        [(columns[at], rows[0][at]) for at in sorted(constant)],
    )


def _fit_widths(columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]], width: int) -> list[int] | None:
    """Return a width for each column so that they fit side by side, or None if texts would become too narrow."""
    natural = _natural_widths(columns, rows)
    least = [
        full if column.is_number else min(full, max(_LEAST_TEXT, len(column.name), _longest_word(rows, at)))
        for at, (column, full) in enumerate(zip(columns, natural, strict=True))
    ]
    room = width - _GAP * (len(columns) - 1)
    if sum(least) > room:
        return None
    # The widest column shrinks first, down to the next widest.
    widths = list(natural)
    while sum(widths) > room:
        widest = max((at for at in range(len(widths)) if widths[at] > least[at]), key=lambda at: widths[at])
        widths[widest] -= 1
    return widths


def _longest_word(rows: Sequence[Sequence[Cell]], at: int) -> int:
    """Return the length of a column's longest word, up to that of an id."""
    lengths = (len(word) for row in rows for word in format_value(row[at]).split())
    return min(max(lengths, default=0), _LONGEST_WORD)


def _row_lines(columns: Sequence[TableColumn], row: Sequence[Cell], widths: Sequence[int]) -> Iterator[Text]:
    """Yield a row in as many lines as its longest cell needs."""
    cells = [_fold(_as_text(_cell_words(value)), room) for value, room in zip(row, widths, strict=True)]
    for number in range(max(map(len, cells))):
        parts: list[Text] = []
        for column, lines, room in zip(columns, cells, widths, strict=True):
            line = lines[number].copy() if number < len(lines) else _as_text("")
            line.align("right" if column.is_number else "left", room)
            parts += [_as_text(" " * _GAP if parts else ""), line]
        yield _join(parts)


def _record_lines(columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]], width: int) -> Iterator[Text]:
    """Yield each row as a list of the values that it has."""
    for number, row in enumerate(rows):
        if number:
            yield _as_text("")
        for column, value in zip(columns, row, strict=True):
            if value is not None:
                yield from _block_lines(LabelledFact(column.name, _cell_words(value)), width)
