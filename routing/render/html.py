"""Write a document as HTML. Data is escaped, and long names may break after ``/``, ``.`` and ``-``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

from routing.document import (
    Block,
    Cell,
    DataTable,
    Document,
    DocumentHeading,
    LabelledFact,
    ListItem,
    SqlStatement,
    TonedText,
    Words,
)
from routing.render.wording import count, format_value, printable, printable_lines

_BREAK_AFTER = re.compile(r"(?<=\w)([/.-])(?=\w)")


def write_words(words: Words) -> str:
    """Return words as HTML. A line may break at a blank or between the parts of a name."""
    if isinstance(words, str):
        return _BREAK_AFTER.sub(r"\1<wbr>", escape(printable(words)))
    if isinstance(words, TonedText):
        return f'<span class="{words.tone.value}">{write_words(words.text)}</span>'
    return "".join(map(write_words, words))


def write_html(document: Document) -> str:
    """Return a document as HTML, with its headings at level 4. Statements keep their lines."""
    parts: list[str] = []
    for is_list, alike in groupby(document, lambda block: isinstance(block, ListItem)):
        blocks = list(alike)
        parts += [_list(blocks)] if is_list else map(_block, blocks)
    return "\n".join(parts)


def _list(items: Iterable[Block]) -> str:
    """Write the items of a list, and indent deeper ones."""
    lines = (
        f'<li class="depth{item.indent}">{write_words(item.words)}</li>'
        for item in items
        if isinstance(item, ListItem)
    )
    return f"<ul>{''.join(lines)}</ul>"


def _block(block: Block) -> str:
    if isinstance(block, DocumentHeading):
        return f"<h4>{write_words(block.words)}</h4>"
    if isinstance(block, LabelledFact):
        return f"<p><b>{write_words(block.label)}:</b> {write_words(block.words)}</p>"
    if isinstance(block, SqlStatement):
        return f"<pre>{escape(printable_lines(block.text))}</pre>"
    if isinstance(block, DataTable):
        return "".join(_table(block))
    return f"<p>{write_words(block.words)}</p>"


def _table(block: DataTable) -> Iterator[str]:
    heads = "".join(f'<th scope="col">{write_words(column.name)}</th>' for column in block.columns)
    yield f'<table class="plain"><thead><tr>{heads}</tr></thead><tbody>'
    for row in block.rows:
        yield f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>"
    yield "</tbody></table>"
    if block.more:
        yield f"<p>and {count(block.more, 'more row')}</p>"


def _cell(value: Cell) -> str:
    return write_words(value if isinstance(value, str | TonedText) else format_value(value))
