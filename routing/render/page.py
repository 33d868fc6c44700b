"""A document as a part of an HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

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
    TonedText,
    Words,
)
from routing.render.wording import count, find_tone, format_value, printable


def write_html(document: Document) -> str:
    """Return a document as HTML elements, a line each; text of the data is escaped.

    Spans have the class of their tone (``tone-bad``), tables scroll on their own, statements stand in ``pre``.
    """
    return "\n".join(line for block in document for line in _elements(block))


def _elements(block: Block) -> Iterator[str]:
    if isinstance(block, DocumentHeading):
        yield f"<h{block.level}>{_markup(block.words)}</h{block.level}>"
    elif isinstance(block, Paragraph):
        yield f"<p>{_markup(block.words)}</p>"
    elif isinstance(block, ListItem):
        item_mark = "" if block.mark == "-" else f"{_text(block.mark)} "
        yield f'<p class="item">{item_mark}{_markup(block.words)}</p>'
    elif isinstance(block, LabelledFact):
        yield f"<p><b>{_text(block.label)}:</b> {_markup(block.words)}</p>"
    elif isinstance(block, SqlStatement):
        lines = "\n".join(_text(line) for line in block.text.split("\n"))
        yield f"<pre><code>{lines}</code></pre>"
    else:
        yield from _table(block)


def _table(table: DataTable) -> Iterator[str]:
    yield '<div class="table"><table>'
    if table.title:
        yield f"<caption>{_text(table.title)}</caption>"
    heads = "".join(f'<th scope="col">{_text(column.name)}</th>' for column in table.columns)
    yield f"<thead><tr>{heads}</tr></thead><tbody>"
    for row in table.rows:
        cells = (
            f"<td{' class=number' if column.is_number else ''}>{_cell(value)}</td>"
            for column, value in zip(table.columns, row, strict=True)
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    if table.more:
        yield f"<p>and {count(table.more, 'more row')}</p>"


def _cell(value: Cell) -> str:
    tone, text = find_tone(value), _text(format_value(value))
    return text if tone is None else f'<span class="tone-{tone.value}">{text}</span>'


def _markup(words: Words) -> str:
    parts = [words] if isinstance(words, (str, TonedText)) else words
    return "".join(_text(part) if isinstance(part, str) else _cell(part) for part in parts)


def _text(text: str) -> str:
    return escape(printable(text))
