"""Define the blocks of a document. Commands state their results in blocks, and `routing.render` writes them.

Text in a block is data, not markup: the writer replaces control characters. Statements are T-SQL to paste, so the
writer does not wrap, shorten or colour them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum


class Tone(str, Enum):
    """The emphasis of a text: colour and weight on a terminal."""

    STRONG = "strong"
    GOOD = "good"
    WAITING = "waiting"
    BAD = "bad"
    QUIET = "quiet"


@dataclass(frozen=True)
class TonedText:
    """A part of a sentence that stands out."""

    text: str
    tone: Tone


Words = str | TonedText | Sequence[str | TonedText]
"""The words of a sentence: a text, or parts with tones. Parts follow each other without spaces."""
Cell = str | int | float | bool | None | datetime | timedelta | TonedText
"""A value of a table: writers word numbers, times and durations, and print None as "-"."""


@dataclass(frozen=True)
class DocumentHeading:
    """A heading. Level 1 is the title of the document, 2 a section, 3 a subsection."""

    words: Words
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """One or more sentences. ``indent`` is the depth.

    ``hang`` is the additional indent of the lines after the first.
    """

    words: Words
    indent: int = 0
    hang: int = 0


@dataclass(frozen=True)
class ListItem:
    """An item of a list. Its further lines begin below the text, not below the bullet.

    ``bullet`` is a prefix such as "1." or "-". ``indent`` is the depth.
    """

    words: Words
    bullet: str = "-"
    indent: int = 0


@dataclass(frozen=True)
class LabelledFact:
    """A labelled sentence, such as "since: 8 h 48 min (2026-01-05T09:12:03Z)"."""

    label: str
    words: Words
    indent: int = 0


@dataclass(frozen=True)
class SqlStatement:
    """T-SQL or a command line to paste, with its line breaks.

    ``purpose`` says where to run it and what it does. It becomes a comment if only statements are printed.
    ``indent`` is the depth in text. ``server`` is the name for sqlcmd's ``:CONNECT``, or a placeholder ``<…>`` for
    a name that sqlcmd cannot take. It is None if the statement is not for a server.
    """

    text: str
    purpose: str = ""
    indent: int = 0
    server: str | None = None


@dataclass(frozen=True)
class TableColumn:
    """A column of a table. Numbers are aligned to the right."""

    name: str
    is_number: bool = False


@dataclass(frozen=True)
class DataTable:
    """A table with a value for each column in every row. ``more`` is the number of omitted rows.

    On a narrow terminal the writer states constant columns once above the table, then wraps texts, and finally
    prints each row as a list.
    """

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    more: int = 0


Block = DocumentHeading | Paragraph | ListItem | LabelledFact | SqlStatement | DataTable
Document = Sequence[Block]


def make_columns(names: Sequence[str], numbers: Sequence[str] = ()) -> list[TableColumn]:
    """Return columns by name. Those in ``numbers`` hold numbers."""
    return [TableColumn(name, name in numbers) for name in names]
